import type { Snapshot } from '../../../db/store.ts'
import type { Item, ListKind } from '../../../protocol/lists.ts'
import { memoized } from '../../../protocol/memoized.ts'

/** The identity of a caller. Immutable. */
export interface Principal {
  /** Identifies the principal. Sessions are bound to it. */
  readonly key: string
  readonly kind: 'system-key' | 'user-key' | 'access-token' | 'social-session' | 'user' | 'guest' | 'anonymous'
  /** The name by which `isolation: user` separates connections: the user, the key's owner, or a name for the key. */
  readonly user: string
  /** The user whose servers the principal may see. The names `guest` and `system` belong to no stored user. */
  readonly username?: string
  /** The team that owns the bearer key. Such a principal has no user, and sees what the team sees. */
  readonly team?: string
  /** Whether the principal sees every server. */
  readonly isAdmin: boolean
  /**
   * The user who created the system key, and who is also recorded as the creator of keys that are created with it.
   * Absent for a key of the operator, from a settings file.
   */
  readonly createdBy?: string
  /** The routes that a scoped bearer key is limited to; undefined for a credential that is not limited. */
  readonly keyScope?: KeyScope
  /** The scopes of an access token; undefined for all other credentials, which have no scopes. */
  readonly scopes?: readonly string[]
  /** The path of an access token's resource (RFC 8707), without a trailing slash; undefined: the whole gateway. */
  readonly audience?: string
  /**
   * The credential that identified the principal, such as a bearer key or a token. The principal's sessions end when
   * the credential becomes invalid.
   */
  readonly credential?: CredentialReference
  /** The time at which the login ends, in ms since 1970. Absent for credentials whose expiry is announced. */
  readonly expiresAt?: number
  /** Returns the principal in a later snapshot; undefined: no longer valid. Absent for bearer keys on MCP routes. */
  readonly inSnapshot?: (snapshot: Snapshot) => Principal | undefined
  /**
   * Throws if the current settings do not match the request's precondition (If-Match). Called before each attempt to
   * change the settings.
   */
  readonly checkPrecondition?: () => void
  /**
   * The address of the request, for policies. Absent on routes that pass it as `Exchange.address`, and for principals
   * that are not the caller.
   */
  readonly address?: string
}

/** Whether a principal has a credential. Principals without one may be different people. */
export const hasCredential = ({ kind }: Principal): boolean => kind !== 'anonymous' && kind !== 'guest'

/** The access token scope that MCP routes require. */
export const mcpScope = 'mcp'

/** Whether a principal may use MCP and run tools and prompts: true except for access tokens without the scope `mcp`. */
export const canUseMcp = ({ scopes }: Principal): boolean => scopes?.includes(mcpScope) ?? true

/** A stored credential, without its secret. */
export interface CredentialReference { readonly id: string, readonly name?: string }

/** The groups and servers whose routes a scoped bearer key is limited to. */
export interface KeyScope {
  readonly accessType: 'groups' | 'servers' | 'custom'
  readonly groups: readonly string[]
  readonly servers: readonly string[]
}

/**
 * A set of servers. `open`: whether an open route (one that requires no credential) shows the set. It then consists of
 * the servers visible to anybody, and those that the caller's credential adds.
 */
export type ViewScope = { readonly open?: boolean } & (
  | { readonly kind: 'global' }
  // `byName`: the route addresses the group by its name, which is possible only while `enableGroupNameRoute` is on.
  | { readonly kind: 'group', readonly id: string, readonly name: string, readonly byName?: boolean }
  | { readonly kind: 'server', readonly name: string }
)

/** How items are presented: under the server's own names (`raw`), with prefixes (`merged`), or by search (`$smart`). */
export type PresentationName = 'raw' | 'merged' | 'search'

/** Hides single items from a view, as if their servers did not list them. */
export interface ItemFilter {
  /** Two filters with the same key on one snapshot hide the same items. */
  readonly key: string
  readonly isHidden: (server: string, kind: ListKind, item: Item) => boolean
}

/** A principal, a set of servers, and a presentation. Views with the same key have the same content. */
export interface View {
  readonly principal: Principal
  readonly scope: ViewScope
  readonly presentation: PresentationName
  readonly key: string
  /** The filter that hooks of the gateway set (`onView`). The view's key depends on it. */
  readonly filter?: ItemFilter
  /** The same view without the filter; undefined if it has none. */
  readonly unfiltered?: View
}

/** Creates a view. @param presentation default: `raw` for a single server, otherwise `merged` */
export function makeView (
  principal: Principal,
  scope: ViewScope,
  presentation: PresentationName = scope.kind === 'server' ? 'raw' : 'merged'
): View {
  return {
    principal,
    scope,
    presentation,
    key: JSON.stringify([...principalKeyParts(principal, scope), ...scopeKeyParts(scope), presentation])
  }
}

const viewsInPresentation = new WeakMap<View, Map<PresentationName, View>>()

/** Returns the view of the same principal and servers in another presentation; the same object for repeated calls. */
export function inPresentation (view: View, presentation: PresentationName): View {
  if (view.presentation === presentation) return view
  let made = viewsInPresentation.get(view)
  if (!made) viewsInPresentation.set(view, made = new Map())
  let other = made.get(presentation)
  if (!other) {
    const unfiltered = makeView(view.principal, view.scope, presentation)
    made.set(presentation, other = view.filter ? withFilter(unfiltered, view.filter) : unfiltered)
  }
  return other
}

/** The last filtered view of each view. */
const filteredViews = new WeakMap<View, View>()

/** Returns the view without the items that a filter hides; the same object if the filter is the view's last one. */
export function withFilter (view: View, filter: ItemFilter): View {
  const known = filteredViews.get(view)
  if (known?.filter === filter) return known
  const filtered = { ...view, filter, unfiltered: view, key: `${view.key}\n${filter.key}` }
  filteredViews.set(view, filtered)
  return filtered
}

/**
 * Returns the properties of a principal that determine what it sees (`isShown` in visibility.ts), and no others, so
 * that principals that see the same items share cached lists. Every input of that decision must be listed here: if one
 * is missing, a principal gets the list of another one.
 */
function principalKeyParts (
  { kind, isAdmin, username, team, keyScope }: Principal, { open = false }: ViewScope
): unknown[] {
  const rightsOf = team !== undefined ? ['team', team] : username === undefined ? 'anyone' : ['user', username]
  const visible = isAdmin ? 'all' : rightsOf
  // On routes that require a credential, the scope of a key is checked by `canUseRoute`, for the route; it does not
  // filter the servers.
  if (!open || (isAdmin && keyScope === undefined)) return [visible]
  return ['open', visible, kind === 'anonymous', keyScope === undefined ? null : keyScopeText(keyScope)]
}

/** The scope of a key as text. Cached, since it may contain thousands of names. */
const keyScopeText = memoized(({ accessType, groups, servers }: KeyScope) =>
  JSON.stringify([accessType, groups, servers]))

/**
 * Returns a key that identifies the route of a view, regardless of the principal. A merged route and its `$smart` route
 * have the same key, since the same items can be called on both.
 */
export const routeKeyOf = ({ scope, presentation }: View): string =>
  JSON.stringify([...scopeKeyParts(scope), presentation === 'search' ? 'merged' : presentation])

function scopeKeyParts (scope: ViewScope): string[] {
  switch (scope.kind) {
    case 'global': return ['global']
    case 'group': return ['group', scope.id]
    case 'server': return ['server', scope.name]
  }
}
