import type { FastifyInstance } from 'fastify'
import { errors, noSuchError } from '../../plugins/base/errors/index.ts'
import type { ViewerIdentity } from '../../plugins/management/index.ts'
import { type Principal, toAuthor } from '../../plugins/settings/index.ts'

/** An option of a select field. */
export interface SelectOption { readonly value: string, readonly text: string, readonly isChosen: boolean }

/**
 * Returns the options of a select field for an MCP route. The value '' is the global route; the others are `$smart` and
 * the names of groups and servers.
 */
export function mcpRouteSelectOptions (
  { groups, servers }: FastifyInstance, principal: Principal, chosen: string
): SelectOption[] {
  const names = [
    ['', 'everything'], ['$smart', 'everything, through $smart'],
    ...groups.list(principal).map(({ name }) => [name, `the group ${name}`]),
    ...servers.names(principal).map((name) => [name, `the server ${name}`])
  ]
  return names.map(([value = '', text = '']) => ({ value, text, isChosen: value === chosen }))
}

/** Returns the path of an MCP route. @param route the value of an option from `mcpRouteSelectOptions` */
export const mcpPathOf = (route: string): string =>
  route === '' ? '/mcp' : route === '$smart' ? '/mcp/$smart' : `/mcp/${encodeURIComponent(route)}`

/**
 * Returns the options of a select field for the viewer of a route: the user, a key that the user may manage, an
 * anonymous caller or, for admins, another user.
 */
export function viewerSelectOptions (
  { keys, users }: FastifyInstance, principal: Principal, chosen: string
): SelectOption[] {
  const own = principal.username ?? ''
  const others = principal.isAdmin ? users.list().map(({ username }) => username).filter((name) => name !== own) : []
  const all = [
    ['self', `${own} (you)`], ['nobody', 'anonymous (no key)'],
    ...keys.list(principal).map(({ id, name }) => [`key:${id}`, `the key ${name}`]),
    ...others.map((name) => [`user:${name}`, `the user ${name}`])
  ]
  return all.map(([value = '', text = '']) => ({ value, text, isChosen: value === chosen }))
}

/**
 * Returns the identity of a viewer, and adds an entry to the audit log if it is another user or a key of another owner.
 * @param chosen the value of an option from `viewerSelectOptions`
 * @throws NoSuch, Forbidden for an identity that the user may not choose, InvalidInput
 */
export function resolveAndAuditViewer (
  app: FastifyInstance, principal: Principal, chosen: string, route: string
): ViewerIdentity {
  const own = { username: principal.username ?? '' }
  if (chosen === 'self') return own
  if (chosen === 'nobody') return undefined
  const [, kind, name = ''] = /^(key|user):(.*)$/s.exec(chosen) ?? []
  if (kind === undefined) throw new errors.InvalidInput('"eyes" is not a viewer that you can choose')
  if (kind === 'user') {
    if (!principal.isAdmin || !app.users.get(name)) throw noSuchError('user', name)
    auditView(app, principal, `user ${name}`, route)
    return { username: name }
  }
  const key = app.keys.get(principal, name)
  if (key.owner !== own.username) auditView(app, principal, `key ${key.name}`, route)
  return { keyId: key.id }
}

const auditView = ({ audit }: FastifyInstance, principal: Principal, name: string, route: string): void => {
  audit.addChange(toAuthor(principal), { entity: 'view', name, after: { route: mcpPathOf(route) } })
}
