import fp from 'fastify-plugin'
import { isUsableServer, type Snapshot } from '../../../db/store.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import { quoteName } from '../../../schemas/unknown-members.ts'
import { ServerDirectory, type RegisteredProvider } from './directory.ts'
import { makeView, type Principal, type ViewScope, type View } from './view.ts'
import {
  canUseRoute, canSee, findGroupScope, resolveRouteScope, showsGroup, visibleServers, type PublicToolsMode,
  type VisibleServer
} from './visibility.ts'

declare module 'fastify' {
  interface FastifyInstance { access: Access }
}

/**
 * The target of a route. `name`: the id or name of a group, or the name of a server; `group`: the id or name of a
 * group; without either, all servers. `smart`: whether the route is a `$smart` route.
 */
interface RouteTarget { name?: string, group?: string, smart?: boolean }

/** Decides which principal sees which servers, in the same way for MCP, REST and documents. */
export interface Access {
  /** The settings with the registered providers. The same object until either changes. */
  readonly snapshot: Snapshot
  /** Registers a built-in provider. Its config determines who sees it, as the config of a server does. */
  register: (provider: RegisteredProvider) => void
  /** Lists the enabled servers and registered providers that a view shows, in the order of precedence. */
  visibleServers: (view: View) => VisibleServer[]
  /**
   * Returns a principal's view on an MCP route.
   * @throws UnknownRoute (also if the principal may not see the target), RouteDisabled, OutOfScope
   */
  viewOfRoute: (principal: Principal, target: RouteTarget) => View
  /** Returns the view of a principal on one server. @throws NoSuch, also if the principal may not see it */
  viewOfServer: (principal: Principal, name: string) => View
  /**
   * Returns a caller's view on an open route, whose target is a server, a group, a name that may be either, or
   * everything.
   * @param noun the noun for the target in the message of NoSuch
   * @throws NoSuch, also for a target that the caller may not see there; NotFound for a caller without credentials if
   *   PUBLIC_TOOLS is `off`
   */
  viewOfOpenRoute: (principal: Principal, target: RouteTarget & { server?: string }, noun: string) => View
  /** Whether this principal would get the same view again if the view were made now. */
  isViewCurrent: (view: View, principal: Principal) => boolean
  /** Whether this principal can now see a server in the scope of a view that was made earlier. */
  canSeeServer: (view: View, principal: Principal, server: string) => boolean
}

/** `app.access`: decides which principal sees which servers. */
export default fp(async (app) => {
  const { PUBLIC_TOOLS: publicTools } = app.config.env
  const directory = new ServerDirectory(() => app.settings.current)
  // Views are cached per principal and snapshot; refusals are not cached.
  let snapshot: Snapshot | undefined
  let views = new WeakMap<Principal, Map<string, View>>()
  const cached = (principal: Principal, key: string, make: (current: Snapshot) => View): View => {
    const { current } = directory
    if (current !== snapshot) { snapshot = current; views = new WeakMap() }
    let known = views.get(principal)
    if (!known) views.set(principal, known = new Map())
    let found = known.get(key)
    if (!found) known.set(key, found = make(current))
    return found
  }
  const visible = (view: View): VisibleServer[] => visibleServers(directory.current, view, publicTools)
  app.decorate('access', {
    get snapshot () { return directory.current },
    register: (provider) => { directory.register(provider) },
    visibleServers: visible,
    viewOfRoute: (principal, target) =>
      cached(principal, cacheKeyOf(target), (current) => routeView(current, principal, target, publicTools)),
    viewOfServer: (principal, name) =>
      cached(principal, `server ${name}`, (current) => serverView(current, principal, name, publicTools)),
    viewOfOpenRoute: (principal, target, noun) =>
      cached(principal, `open ${cacheKeyOf(target)}`, (current) =>
        openView(current, principal, target, noun, publicTools)),
    isViewCurrent: (former, principal) => isViewCurrent(directory.current, former, principal, publicTools),
    canSeeServer: ({ scope, presentation }, principal, server) =>
      visible(makeView(principal, scope, presentation)).some((each) => each.server.name === server)
  })
}, { name: 'access', dependencies: ['config', 'settings'] })

function cacheKeyOf ({ name, group, server, smart = false }: RouteTarget & { server?: string }): string {
  const mark = smart ? '$' : ''
  if (group !== undefined) return `${mark}group ${group}`
  if (name !== undefined) return `${mark}any ${name}`
  return server === undefined ? mark : `server ${server}`
}

/** Whether `$smart` is enabled. */
const isSmartOn = ({ system }: Snapshot): boolean => system.smartRouting?.enabled !== false

/** Whether a principal's system key is limited to some servers and groups, and does not list this name. */
const isUnlisted = ({ kind, keyScope }: Principal, name: string): boolean =>
  kind === 'system-key' &&
  keyScope !== undefined &&
  !(keyScope.accessType !== 'groups' && keyScope.servers.includes(name)) &&
  !(keyScope.accessType !== 'servers' && keyScope.groups.includes(name))

function routeView (
  snapshot: Snapshot, principal: Principal, { name, group, smart }: RouteTarget, publicTools: PublicToolsMode
): View {
  if (smart && !isSmartOn(snapshot)) throw new errors.UnknownRoute('"$smart"')
  const target = group ?? name
  const byName = snapshot.system.routing?.enableGroupNameRoute !== false
  // A scoped key gets the same error for every name outside its scope, so that it cannot find out which names exist.
  const unknown = (): Error =>
    target !== undefined && isUnlisted(principal, target)
      ? new errors.OutOfScope()
      : new errors.UnknownRoute(quoteName(target ?? ''))
  const scope = scopeOf(snapshot, { name, group }, byName)
  if (!scope) throw unknown()
  const view = makeView(principal, scope, smart ? 'search' : undefined)
  if (!isVisible(snapshot, view, publicTools)) throw unknown()
  if (!smart && scope.kind === 'global' && snapshot.system.routing?.enableGlobalRoute === false) {
    throw new errors.RouteDisabled()
  }
  if (!canUseRoute(snapshot, principal, scope)) throw new errors.OutOfScope()
  return view
}

function scopeOf (snapshot: Snapshot, { name, group }: RouteTarget, byName: boolean): ViewScope | undefined {
  if (group !== undefined) return findGroupScope(snapshot, group, byName)
  return name === undefined ? { kind: 'global' } : resolveRouteScope(snapshot, name, byName)
}

function serverView (snapshot: Snapshot, principal: Principal, name: string, publicTools: PublicToolsMode): View {
  const view = makeView(principal, { kind: 'server', name })
  if (!isVisible(snapshot, view, publicTools)) throw noSuchError('server', name)
  return view
}

function openView (
  snapshot: Snapshot,
  principal: Principal,
  { name, group, server }: RouteTarget & { server?: string },
  noun: string,
  publicTools: PublicToolsMode
): View {
  if (publicTools === 'off' && principal.kind === 'anonymous') throw new errors.NotFound()
  // Documents accept group names regardless of `enableGroupNameRoute`, which applies to MCP routes only.
  const scope: ViewScope | undefined = server !== undefined && name === undefined && group === undefined
    ? { kind: 'server', name: server }
    : scopeOf(snapshot, { name, group }, true)
  const unknown = (): Error => noSuchError(noun, group ?? name ?? server ?? '')
  if (!scope) throw unknown()
  const view = makeView(principal, { ...scope, open: true })
  const exists = scope.kind === 'global' || (scope.kind === 'group'
    ? showsGroup(snapshot, view, publicTools)
    : visibleServers(snapshot, view, publicTools).length > 0)
  if (!exists) throw unknown()
  return view
}

function isViewCurrent (snapshot: Snapshot, former: View, principal: Principal, publicTools: PublicToolsMode): boolean {
  const { scope, presentation } = former
  const { enableGlobalRoute = true, enableGroupNameRoute = true } = snapshot.system.routing ?? {}
  const isSmart = presentation === 'search'
  if (isSmart ? !isSmartOn(snapshot) : scope.kind === 'global' && !enableGlobalRoute) return false
  if (scope.kind === 'group' && (!snapshot.groups.has(scope.id) || (scope.byName === true && !enableGroupNameRoute))) {
    return false
  }
  const view = makeView(principal, scope, presentation)
  const { key } = former.unfiltered ?? former
  return view.key === key && isVisible(snapshot, view, publicTools) && canUseRoute(snapshot, principal, scope)
}

/**
 * Whether the route of a view exists for the view's principal. The global route always does; a group does for an admin,
 * and for a principal that sees one of its servers, also while that server is disabled, so that maintenance does not
 * end sessions; a server does for a principal that sees it, while it is enabled.
 */
function isVisible (snapshot: Snapshot, view: View, publicTools: PublicToolsMode): boolean {
  const { scope, principal } = view
  if (scope.kind === 'global' || (principal.isAdmin && scope.kind === 'group')) return true
  if (scope.kind === 'group') return showsGroup(snapshot, view, publicTools)
  const server = snapshot.servers.get(scope.name)
  return server !== undefined && isUsableServer(server) && canSee(snapshot, principal, server, publicTools)
}
