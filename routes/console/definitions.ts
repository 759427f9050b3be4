import type { FastifyPluginAsync } from 'fastify'
import { visible } from '../../plugins/extensions/index.ts'
import type { DefinitionChange } from '../../schemas/definitions-api.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'
import { differencesOf, markDifference } from './differences.ts'
import { noticeOf, pagesOf, textOf } from './page.ts'
import { headOf, manages } from './server-head.ts'

const path = (name: string | undefined): string => `/servers/${encodeURIComponent(name ?? '')}`

/** Page: the changed definitions of a server, and the remarks of the first look at them. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, servers } = app
  const { page, form } = pagesOf(app)

  page('server-definitions', {
    title: 'Definitions', path: '/servers/:name/definitions'
  }, async ({ principal, request, params: { name = '' } }) => {
    const server = await servers.getWithLoginUrl(principal, name)
    const changes = principal.isAdmin
      ? (await kit.api.ask(request, 'GET', `${path(name)}/changes`)).data as DefinitionChange[]
      : []
    return {
      title: `Definitions of ${name}`,
      ...headOf(app, principal, server, 'definitions'),
      isManaged: manages(app, principal, name),
      isAdmin: principal.isAdmin,
      pin: server.config.pin ?? 'warn',
      changes: changes.map(({ kind, item, before, after, since, digest }) => ({
        kind,
        item,
        shownItem: visible(item),
        since,
        digest,
        isNew: before === null,
        differences: differencesOf(membersOf(before), membersOf(after))
          .map(({ path, before: was = '', after: is = '' }) => ({ path: visible(path), ...markDifference(was, is) }))
      })),
      remarks: (server.warnings ?? []).flatMap((each) => typeof each === 'string'
        ? []
        : { ...each, item: visible(each.item), place: visible(each.place), message: visible(each.message) })
    }
  })

  form('/servers/:name/definitions', { effect: 'change' }, async (visit) => {
    const { principal, request, params: { name = '' }, form: sent } = visit
    servers.get(principal, name)
    const [kind, item, digest] = [textOf(sent.kind), textOf(sent.item), textOf(sent.digest)]
    const done = await kit.api.ask(request, 'POST', `${path(name)}/changes/accept`, { kind, item, digest })
    return { to: `${path(name)}/definitions`, notice: noticeOf(done) }
  })
}
export default routes

/** Instructions are a text rather than an object. */
const membersOf = (definition: unknown): unknown =>
  definition === null || isPlainObject(definition) ? definition : { instructions: definition }
