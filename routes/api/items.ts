import { Type } from '@sinclair/typebox'
import type { onRequestHookHandler } from 'fastify'
import { ItemRecord, NewDescription, Success, Toggle } from '../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { principalOf } from './principal.ts'

/** The kinds of items that can be disabled, and whose descriptions can be replaced, one by one. */
const kinds = [
  { kind: 'tools', noun: 'tool', param: 'toolName', maxLength: 1_024 },
  { kind: 'prompts', noun: 'prompt', param: 'promptName', maxLength: 1_024 },
  { kind: 'resources', noun: 'resource', param: 'resourceUri', maxLength: 2_048 }
] as const

const routes: FastifyPluginAsyncTypebox = async (app) => {
  for (const { kind, noun, param, maxLength } of kinds) {
    const tags = ['Servers']
    const path = `/servers/:serverName/${kind}/:${param}`
    const params = Type.Object({ serverName: Type.String(), [param]: Type.String({ minLength: 1, maxLength }) })
    const keyOf = (request: { params: unknown }): [string, string] => {
      const { serverName, [param]: key } = request.params as Record<string, string>
      return [serverName ?? '', key ?? '']
    }
    const response = { 200: Success(ItemRecord) }
    // Answers 404 or 403 before the body is validated (DECISIONS §1).
    const mustManage: onRequestHookHandler = (request, _reply, done) => {
      const [server, key] = keyOf(request)
      app.servers.mustManageItem(principalOf(request), server, kind, key)
      done()
    }

    app.post(`${path}/toggle`, {
      schema: { tags, summary: `Enable or disable a ${noun}`, params, body: Toggle, response },
      config: { effect: 'change' },
      onRequest: mustManage
    }, async (request) => {
      const { enabled } = request.body
      const [server, key] = keyOf(request)
      return {
        success: true as const,
        data: await app.servers.override(principalOf(request), server, kind, key, { enabled }),
        message: `The ${noun} was ${enabled ? 'enabled' : 'disabled'}`
      }
    })

    app.put(
      `${path}/description`,
      {
        schema: {
          tags,
          summary: `Replace the description of a ${noun}`,
          description: 'It stays, whatever description the server lists later.',
          params,
          body: NewDescription,
          response
        },
        config: { effect: 'change' },
        onRequest: mustManage
      },
      async (request) => {
        const [server, key] = keyOf(request)
        return {
          success: true as const,
          data: await app.servers.override(principalOf(request), server, kind, key, { description: request.body.description }),
          message: `The description of the ${noun} was set`
        }
      }
    )

    app.delete(`${path}/description`, {
      schema: { tags, summary: `Restore a ${noun}'s description from its server`, params, response },
      config: { effect: 'change' },
      onRequest: mustManage
    }, async (request) => {
      const [server, key] = keyOf(request)
      return {
        success: true as const,
        data: await app.servers.override(principalOf(request), server, kind, key, { description: null }),
        message: `The description of the ${noun} is that of its server again`
      }
    })
  }
}
export default routes
