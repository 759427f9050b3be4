import { Type } from '@sinclair/typebox'
import { invalidMemberError, noSuchError } from '../../../plugins/base/errors/index.ts'
import { toAuthor } from '../../../plugins/settings/index.ts'
import { ChangeToAccept, DefinitionChangeSchema } from '../../../schemas/definitions-api.ts'
import { ServerParams } from '../../../schemas/server-api.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { type ApiHandlerContext, createApiRouter } from '../endpoint.ts'

/** Routes that list the changed definitions of a server (those that differ from the pinned ones), and accept them. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const api = createApiRouter(app, 'Servers')
  const managed = {
    params: ServerParams,
    before: ({ principal, params }: Pick<ApiHandlerContext<typeof ServerParams>, 'principal' | 'params'>) => {
      app.servers.assertCanManage(principal, params.name)
    }
  }

  api.get('/servers/:name/changes', {
    ...managed,
    summary: 'List the changed definitions of a server',
    description: 'Definitions of tools, prompts and skills, and the instructions, that differ from the pinned ones; ' +
      'with `pin: ask` or `block`, also new ones. A definition that has changed back is not listed.',
    data: Type.Array(DefinitionChangeSchema)
  }, async ({ params }) => ({ data: await app.definitions.changes(params.name) }))

  api.post('/servers/:name/changes/accept', {
    ...managed,
    summary: 'Accept a changed definition',
    description: 'Pins the definition. 404 if there is no such change, or if the definition has changed again since ' +
      '`digest`.',
    body: ChangeToAccept
  }, async ({ principal, params, body: { kind, item = kind === 'instructions' ? kind : undefined, digest } }) => {
    if (item === undefined) throw invalidMemberError('body.item', `must name the ${kind}`)
    if (!await app.definitions.accept(toAuthor(principal), params.name, kind, item, digest)) {
      throw noSuchError('change', `${kind} ${item}`)
    }
    return { message: 'The definition was accepted' }
  })
}
export default routes
