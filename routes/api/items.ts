import { Type } from '@sinclair/typebox'
import type { onRequestHookHandler } from 'fastify'
import { ItemRecord, NewDescription, Success, Toggle } from '../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { principalOf } from './principal.ts'

/** What of a server can be switched off and described anew, one by one. */
const kinds = [
  { kind: 'tools', what: 'tool', param: 'toolName', maxLength: 1_024 },
  { kind: 'prompts', what: 'prompt', param: 'promptName', maxLength: 1_024 },
  { kind: 'resources', what: 'resource', param: 'resourceUri', maxLength: 2_048 }
] as const

const routes: FastifyPluginAsyncTypebox = async (app) => {
  for (const { kind, what, param, maxLength } of kinds) {
    const tags = ['Servers']
    const path = `/servers/:serverName/${kind}/:${param}`
    const params = Type.Object({ serverName: Type.String(), [param]: Type.String({ minLength: 1, maxLength }) })
    const keyOf = (request: { params: unknown }): [string, string] => {
      const { serverName, [param]: key } = request.params as Record<string, string>
      return [serverName ?? '', key ?? '']
    }
    const response = { 200: Success(ItemRecord) }
    // Whether it is there, and yours, is answered before what is wrong with the body (DECISIONS §1).
    const mustManage: onRequestHookHandler = (request, _reply, done) => {
      const [server, key] = keyOf(request)
      app.servers.mustManageItem(principalOf(request), server, kind, key)
      done()
    }

    app.post(`${path}/toggle`, {
      schema: { tags, summary: `Enable or disable a ${what}`, params, body: Toggle, response },
      config: { effect: 'change' },
      onRequest: mustManage
    }, async (request) => {
      const { enabled } = request.body
      const [server, key] = keyOf(request)
      return {
        success: true as const,
        data: await app.servers.override(principalOf(request), server, kind, key, { enabled }),
        message: `The ${what} was ${enabled ? 'enabled' : 'disabled'}`
      }
    })

    app.put(
      `${path}/description`,
      {
        schema: {
          tags,
          summary: `Describe a ${what} in other words`,
          description: 'It stays, whatever the server says later.',
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
          message: `The description of the ${what} was set`
        }
      }
    )

    app.delete(`${path}/description`, {
      schema: { tags, summary: `Give a ${what} its server's description back`, params, response },
      config: { effect: 'change' },
      onRequest: mustManage
    }, async (request) => {
      const [server, key] = keyOf(request)
      return {
        success: true as const,
        data: await app.servers.override(principalOf(request), server, kind, key, { description: null }),
        message: `The description of the ${what} is the server's own again`
      }
    })
  }
}
export default routes
