import type { FastifyPluginAsync } from 'fastify'
import { escapeInvisible } from '../../plugins/extensions/index.ts'
import type { DefinitionChange } from '../../schemas/definitions-api.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'
import { differencesOf, splitAtDifference } from './differences.ts'
import { noticeOfAnswer, createPageRouter, formFieldText } from './page.ts'
import type { ShownServer } from './server-states.ts'
import { serverHeadOf, canManageServer, listedItemsOf, serverItemKinds } from './server-head.ts'

const serverPath = (name: string): string => `/servers/${encodeURIComponent(name)}`

/** The page with changed and suspicious definitions of a server, and the form that accepts one or disables an item. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, servers } = app
  const { page, form } = createPageRouter(app)

  page('server-definitions', {
    title: 'Definitions', path: '/servers/:name/definitions'
  }, async ({ principal, request, params: { name = '' } }) => {
    const server = await servers.getWithLoginUrl(principal, name)
    const changes = principal.isAdmin
      ? (await kit.api.ask(request, 'GET', `${serverPath(name)}/changes`)).data as DefinitionChange[]
      : []
    return {
      title: `Definitions of ${name}`,
      ...serverHeadOf(app, principal, server, 'definitions'),
      isManaged: canManageServer(app, principal, name),
      isAdmin: principal.isAdmin,
      pin: server.config.pin ?? 'warn',
      changes: changes.map(({ kind, item, before, after, since, digest }) => ({
        kind,
        item,
        shownItem: escapeInvisible(item),
        since,
        digest,
        isNew: before === null,
        ...itemOf(kit.base, server, kind, item),
        differences: differencesOf(membersOf(before), membersOf(after))
          .map(({ path, before: was = '', after: is = '' }) =>
            ({ path: escapeInvisible(path), ...splitAtDifference(was, is) }))
      })),
      remarks: (server.warnings ?? []).flatMap((each) => typeof each === 'string'
        ? []
        : {
            ...each,
            ...itemOf(kit.base, server, each.kind, each.item),
            item: escapeInvisible(each.item),
            place: escapeInvisible(each.place),
            message: escapeInvisible(each.message)
          })
    }
  })

  form('/servers/:name/definitions', { effect: 'change' }, async (visit) => {
    const { principal, request, params: { name = '' }, form: sent } = visit
    servers.get(principal, name)
    const [kind, item, digest] = [formFieldText(sent.kind), formFieldText(sent.item), formFieldText(sent.digest)]
    const done = formFieldText(sent.do) === 'off'
      ? await kit.api.ask(request, 'POST', `${itemPath(name, kind, item)}/toggle`, { enabled: false })
      : await kit.api.ask(request, 'POST', `${serverPath(name)}/changes/accept`, { kind, item, digest })
    return { to: `${serverPath(name)}/definitions`, notice: noticeOfAnswer(done) }
  })
}
export default routes

/** Returns the path of an item, which is the same below the console and below `/api`. */
const itemPath = (server: string, kind: string, item: string): string =>
  `${serverPath(server)}/${kind}s/${encodeURIComponent(item)}`

/**
 * Returns the URL of an item's page, and whether the item is disabled. For an item that the server does not list, such
 * as a removed one, returns an empty object.
 */
function itemOf (
  base: string, server: ShownServer, kind: string, item: string
): { href?: string, isOff?: boolean } {
  const list = serverItemKinds.find((each) => each === `${kind}s`)
  const found = list && listedItemsOf(server, list).find(({ name, uri }) => item === (list === 'skills' ? uri : name))
  return found ? { href: `${base}${itemPath(server.name, kind, item)}`, isOff: found.enabled === false } : {}
}

/** Returns a definition as an object. Instructions, which are a text, become the object's only member. */
const membersOf = (definition: unknown): unknown =>
  definition === null || isPlainObject(definition) ? definition : { instructions: definition }
