import fp from 'fastify-plugin'
import { isUsable, type Snapshot } from '../../db/store.ts'
import { errors } from '../errors/list.ts'
import { makeView, type Principal, type Scope, type View } from './view.ts'
import { admits, canSee, reach, toGroupScope, toScope, type PublicReach } from './visibility.ts'

declare module 'fastify' {
  interface FastifyInstance { access: Access }
}

/** The word in an MCP route: a group or server, or a group only. */
export interface RouteWord { name?: string, group?: string }

export interface Access {
  /**
   * A principal on an MCP route as a View.
   * @throws UnknownRoute (also for what it may not see), RouteDisabled, OutOfScope
   */
  view: (principal: Principal, word: RouteWord) => View
  /** A principal before one server. @throws NoSuch, also for what it may not see */
  server: (principal: Principal, name: string) => View
  /**
   * A caller on an open route: before a server, a group, a name that is either, or before everything.
   * @throws NoSuch, also for what it may not see there; NotFound where nothing is open to callers without credentials
   */
  open: (principal: Principal, word: RouteWord & { server?: string }, what: string) => View
  /** Whether a view that was given earlier would be given to this principal now, and be the same. */
  stands: (view: View, principal: Principal) => boolean
  /** Whether this principal reaches a server through the scope of a view that was given earlier. */
  reaches: (view: View, principal: Principal, server: string) => boolean
}

export default fp<{ publicTools: PublicReach }>(async (app, { publicTools }) => {
  // What a principal may see through a route is decided once for each snapshot; refusals are decided each time.
  let version = -1
  let views = new WeakMap<Principal, Map<string, View>>()
  const view = (principal: Principal, word: RouteWord): View => {
    const snapshot = app.settings.current
    if (snapshot.version !== version) { version = snapshot.version; views = new WeakMap() }
    let known = views.get(principal)
    if (!known) views.set(principal, known = new Map())
    const key = word.group !== undefined ? `group ${word.group}` : word.name !== undefined ? `any ${word.name}` : ''
    let found = known.get(key)
    if (!found) known.set(key, found = viewOf(snapshot, principal, word, publicTools))
    return found
  }
  app.decorate('access', {
    view,
    server: (principal, name) => serverView(app.settings.current, principal, name, publicTools),
    open: (principal, word, what) => openView(app.settings.current, principal, word, what, publicTools),
    stands: (former, principal) => stands(app.settings.current, former, principal, publicTools),
    reaches: ({ scope, open }, principal, server) =>
      reach(app.settings.current, makeView(principal, scope, open), publicTools).some((each) => each.server.name === server)
  })
}, { name: 'access', dependencies: ['settings'] })

/** Whether a system key is for some servers and groups only, and this word is none of them. */
const isUnlisted = ({ kind, grant }: Principal, word: string): boolean => kind === 'system-key' && grant !== undefined &&
  !(grant.accessType !== 'groups' && grant.servers.includes(word)) && !(grant.accessType !== 'servers' && grant.groups.includes(word))

function viewOf (snapshot: Snapshot, principal: Principal, { name, group }: RouteWord, anonymous: PublicReach): View {
  const word = group ?? name
  const byName = snapshot.system.routing?.enableGroupNameRoute !== false
  const scope: Scope | undefined =
    group !== undefined ? toGroupScope(snapshot, group, byName) : name !== undefined ? toScope(snapshot, name, byName) : { kind: 'global' }
  // A scoped key is not told of what it does not list, not even whether it is there.
  const unknown = (): Error => word !== undefined && isUnlisted(principal, word) ? new errors.OutOfScope() : new errors.UnknownRoute()
  if (!scope) throw unknown()
  const view = makeView(principal, scope)
  if (!isVisible(snapshot, view, anonymous)) throw unknown()
  if (scope.kind === 'global' && snapshot.system.routing?.enableGlobalRoute === false) throw new errors.RouteDisabled()
  if (!admits(snapshot, principal, scope)) throw new errors.OutOfScope()
  return view
}

function serverView (snapshot: Snapshot, principal: Principal, name: string, anonymous: PublicReach): View {
  const view = makeView(principal, { kind: 'server', name })
  if (!isVisible(snapshot, view, anonymous)) throw new errors.NoSuch('server')
  return view
}

function openView (
  snapshot: Snapshot,
  principal: Principal,
  { name, group, server }: RouteWord & { server?: string },
  what: string,
  anonymous: PublicReach
): View {
  if (anonymous === 'off' && principal.kind === 'anonymous') throw new errors.NotFound()
  // Group names stand in documents whatever `enableGroupNameRoute` says: that is about MCP routes.
  const scope: Scope | undefined =
    group !== undefined
      ? toGroupScope(snapshot, group, true)
      : name !== undefined
        ? toScope(snapshot, name, true)
        : server === undefined
          ? { kind: 'global' }
          : { kind: 'server', name: server }
  if (!scope) throw new errors.NoSuch(what)
  const view = makeView(principal, scope, true)
  if (scope.kind !== 'global' && reach(snapshot, view, anonymous).length === 0) throw new errors.NoSuch(what)
  return view
}

function stands (snapshot: Snapshot, former: View, principal: Principal, anonymous: PublicReach): boolean {
  const { scope } = former
  if (scope.kind === 'group' && !snapshot.groups.has(scope.id)) return false
  const view = makeView(principal, scope)
  return view.key === former.key && isVisible(snapshot, view, anonymous) && admits(snapshot, principal, scope) &&
    !(scope.kind === 'global' && snapshot.system.routing?.enableGlobalRoute === false)
}

/** Whether a route is there for a principal: its server, or one server of its group, can be seen. */
function isVisible (snapshot: Snapshot, view: View, anonymous: PublicReach): boolean {
  const { scope, principal } = view
  if (scope.kind === 'global' || (principal.isAdmin && scope.kind === 'group')) return true
  if (scope.kind === 'group') return reach(snapshot, view, anonymous).length > 0
  const server = snapshot.servers.get(scope.name)
  return server !== undefined && isUsable(server) && canSee(snapshot, principal, server, anonymous)
}
