import { Type } from '@sinclair/typebox'
import { Success } from '../../schemas/answers.ts'
import { ResourceToRead } from '../../schemas/builtins.ts'
import { callerOf, wrapInEnvelope } from '../caller.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { builtInPromptEntity, builtInResourceEntity, builtInSkillEntity } from './entities.ts'
import { addReadRoutes } from './entity.ts'
import { requirePrincipal } from './principal.ts'

/** Routes that list and get the built-in prompts, resources and skills, read any resource, and fill in any prompt. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  addReadRoutes(app, builtInPromptEntity(app))
  addReadRoutes(app, builtInResourceEntity(app))
  addReadRoutes(app, builtInSkillEntity(app))

  app.post('/resources/read', {
    schema: {
      tags: ['Built-ins'],
      summary: 'Read a resource',
      description: 'A built-in resource, or one of any server that you may see, by its URI: listed, or from a ' +
        'template.',
      body: ResourceToRead,
      response: { 200: Type.Unsafe<string>(Success(Type.Object({ contents: Type.Array(Type.Unknown()) }))) }
    },
    config: { effect: 'run' }
  }, async (request, reply) =>
    wrapInEnvelope(
      reply, await app.tools.readResourceByUri(callerOf(request, reply, requirePrincipal(request)), request.body.uri)
    ))

  app.post('/mcp/:serverName/prompts/:promptName', {
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
        200: Type.Unsafe<string>(
          Success(Type.Object({ messages: Type.Array(Type.Unknown()) }, { additionalProperties: true }))
        )
      }
    },
    config: { effect: 'run' },
    // Checked before the body is validated, so that an unknown prompt causes 404 even if the body is invalid.
    onRequest: async (request) => {
      const { params: { serverName, promptName }, ip: address } = request
      app.tools.requirePrompt({ principal: requirePrincipal(request), address }, serverName, promptName)
    },
    // A request without a body has no arguments.
    preValidation: async (request) => { request.body ??= {} }
  }, async (request, reply) => {
    const { serverName, promptName } = request.params
    const caller = callerOf(request, reply, requirePrincipal(request))
    return wrapInEnvelope(
      reply, await app.tools.getFilledPrompt(caller, serverName, promptName, request.body.arguments ?? {})
    )
  })
}
export default routes
