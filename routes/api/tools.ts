import { Type } from '@sinclair/typebox'
import { parseExactJson } from '../../plugins/downstream/index.ts'
import { Success } from '../../schemas/answers.ts'
import { ToolCallResult } from '../../schemas/openapi-routes.ts'
import { addJsonTextBodyParser, bodyTextToParse } from '../bodies.ts'
import { callerOf, wrapInEnvelope } from '../caller.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { requirePrincipal } from './principal.ts'

/** The route that calls a tool. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  addJsonTextBodyParser(app)
  app.post(
    '/tools/call/:server',
    {
      schema: {
        tags: ['Tools'],
        summary: 'Call a tool',
        description: 'By its own name, or as `<server><separator><tool>`. If the tool fails, `data` contains ' +
          '`isError`.',
        params: Type.Object({ server: Type.String() }),
        body: Type.Object(
          {
            toolName: Type.String({ minLength: 1 }),
            arguments: Type.Optional(Type.Object({}, { additionalProperties: true }))
          },
          { examples: [{ toolName: 'echo', arguments: { message: 'Hello' } }] }
        ),
        response: { 200: Type.Unsafe<string>(Success(ToolCallResult)) }
      },
      config: { effect: 'run' },
      // Checked before the body is validated, so that an unknown server causes 404 even if the body is invalid.
      onRequest: async (request) => { app.access.viewOfServer(requirePrincipal(request), request.params.server) },
      // The body is still text here, so that numbers which JavaScript cannot represent exactly are rejected.
      preValidation: async (request, reply) => {
        Object.assign(request, { body: parseExactJson(bodyTextToParse(request, reply)) })
      }
    },
    async (request, reply) => {
      const { toolName, arguments: args = {} } = request.body
      const caller = callerOf(request, reply, requirePrincipal(request))
      return wrapInEnvelope(reply, await app.tools.call(caller, request.params.server, toolName, args))
    }
  )
}
export default routes
