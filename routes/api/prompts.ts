import { Type } from '@sinclair/typebox'
import { Success } from '../../schemas/api.ts'
import { callerOf } from '../caller.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { principalOf } from './principal.ts'

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.post(
    '/mcp/:serverName/prompts/:promptName',
    {
      schema: {
        tags: ['Tools'],
        summary: 'Get a prompt',
        description: 'By its own name, or as `<server><separator><prompt>`.',
        params: Type.Object({ serverName: Type.String(), promptName: Type.String() }),
        body: Type.Object(
          { arguments: Type.Optional(Type.Object({}, { additionalProperties: true })) },
          { examples: [{ arguments: { name: 'Ada' } }] }
        ),
        response: {
          200: Type.Unsafe<string>(Success(Type.Object({ messages: Type.Array(Type.Unknown()) }, { additionalProperties: true })))
        }
      },
      config: { effect: 'run' },
      // Answers 404 before the body is validated (DECISIONS §1).
      onRequest: (request, _reply, done) => {
        app.tools.mustHavePrompt(principalOf(request), request.params.serverName, request.params.promptName)
        done()
      },
      // A request without a body has no arguments.
      preValidation: (request, _reply, done) => {
        request.body ??= {}
        done()
      }
    },
    async (request, reply) => {
      const { serverName, promptName } = request.params
      const caller = callerOf(request, reply, principalOf(request))
      const data = await app.tools.prompt(caller, serverName, promptName, request.body.arguments ?? {})
      reply.type('application/json')
      return `{"success":true,"data":${data}}`
    }
  )
}
export default routes
