import { Type } from '@sinclair/typebox'
import { noSuchError } from '../../../plugins/base/errors/index.ts'
import { toAuthor } from '../../../plugins/settings/index.ts'
import { AcceptedChange, DefinitionChangeSchema } from '../../../schemas/definitions-api.ts'
import { ServerName } from '../../../schemas/server-api.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { type ApiCall, endpointsOf } from '../endpoint.ts'

/** The changed definitions of servers. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const api = endpointsOf(app, 'Servers')
  const managed = {
    params: ServerName,
    before: ({ principal, params }: Pick<ApiCall<typeof ServerName>, 'principal' | 'params'>) => {
      app.servers.mustManage(principal, params.name)
    }
  }

  api.get('/servers/:name/changes', {
    ...managed,
    summary: 'The definitions of a server that have changed',
    description: 'Those of tools, prompts and skills, and its instructions, that differ from what is pinned; with ' +
      '`pin: ask` or `block`, new ones as well. What changes back is none.',
    data: Type.Array(DefinitionChangeSchema)
  }, async ({ params }) => ({ data: await app.definitions.changes(params.name) }))

  api.post('/servers/:name/changes/accept', {
    ...managed,
    summary: 'Accept a changed definition',
    description: 'It is pinned from now on. 404 if there is no such change, or it is another one than `digest` by now.',
    body: AcceptedChange
  }, async ({ principal, params, body: { kind, item = kind, digest } }) => {
    if (!await app.definitions.accept(toAuthor(principal), params.name, kind, item, digest)) {
      throw noSuchError('change', `${kind} ${item}`)
    }
    return { message: 'The definition was accepted' }
  })
}
export default routes
