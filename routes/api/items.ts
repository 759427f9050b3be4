import { Type } from '@sinclair/typebox'
import type { OverrideChange } from '../../plugins/settings/index.ts'
import { ItemRecord, NewDescription, EnabledUpdate } from '../../schemas/server-api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { type ApiHandlerContext, createApiRouter } from './endpoint.ts'

/** The kinds of items, each with its path parameter. `maxLength`: the max length of the parameter, in characters. */
const kinds = [
  { kind: 'tools', noun: 'tool', param: 'toolName', maxLength: 1_024 },
  { kind: 'prompts', noun: 'prompt', param: 'promptName', maxLength: 1_024 },
  { kind: 'resources', noun: 'resource', param: 'resourceUri', maxLength: 2_048 },
  { kind: 'skills', noun: 'skill', param: 'skillUri', maxLength: 2_048 }
] as const

/** Routes that disable or enable a single tool, prompt, resource or skill of a server, or replace its description. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { servers } = app
  const api = createApiRouter(app, 'Servers')
  for (const { kind, noun, param, maxLength } of kinds) {
    const path = `/servers/:serverName/${kind}/:${param}`
    const params = Type.Object({ serverName: Type.String(), [param]: Type.String({ minLength: 1, maxLength }) })
    const keyOf = (params: unknown): [server: string, key: string] => {
      const { serverName = '', [param]: key = '' } = params as Record<string, string>
      return [serverName, key]
    }
    const common = {
      params,
      data: ItemRecord,
      before: ({ principal, params }: Pick<ApiHandlerContext, 'principal' | 'params'>) => {
        const [server, key] = keyOf(params)
        servers.assertCanManageItem(principal, server, kind, key)
      }
    }
    const override = async (
      { principal, params }: Pick<ApiHandlerContext, 'principal' | 'params'>, change: OverrideChange
    ): Promise<object> => {
      const [server, key] = keyOf(params)
      return await servers.overrideItem(principal, server, kind, key, change)
    }

    api.post(`${path}/toggle`, { ...common, summary: `Enable or disable a ${noun}`, body: EnabledUpdate }, async (
      call
    ) => ({
      data: await override(call, { enabled: call.body.enabled }),
      message: `The ${noun} was ${call.body.enabled ? 'enabled' : 'disabled'}`
    }))

    api.put(`${path}/description`, {
      ...common,
      summary: `Replace the description of a ${noun}`,
      description: 'It applies even if the server later lists another description.',
      body: NewDescription
    }, async (call) => ({
      data: await override(call, { description: call.body.description }),
      message: `The description of the ${noun} was set`
    }))

    api.delete(`${path}/description`, {
      ...common,
      summary: `Restore a ${noun}'s description from its server`
    }, async (call) => ({
      data: await override(call, { description: null }),
      message: `The description of the ${noun} is that of its server again`
    }))
  }
}
export default routes
