import type { Snapshot } from '../../../db/store.ts'

/** The identity of a caller. Created once per request, immutable. */
export interface Principal {
  /** Identifies the principal. Sessions are bound to it. */
  readonly key: string
  readonly kind: 'system-key' | 'user-key' | 'access-token' | 'social-session' | 'user' | 'guest' | 'anonymous'
  /** The user by which `isolation: user` separates connections: a key's owner, if it has one. */
  readonly user: string
  /** The stored user whose servers the principal may see. */
  readonly username?: string
  /** Whether the principal sees every server. */
  readonly isAdmin: boolean
  /**
   * The user who created the system key; it is also recorded as the creator of keys created with it. Absent: the key is
   * the operator's, from a settings file.
   */
  readonly maker?: string
  /** The routes that a scoped credential is limited to; undefined: all. */
  readonly grant?: Grant
  /** The scopes of an access token; undefined for all other credentials, which have no scopes. */
  readonly scopes?: readonly string[]
  /**
   * The path of the resource that an access token is issued for (RFC 8707), without a trailing slash; undefined: the
   * whole gateway.
   */
  readonly audience?: string
  /** The stored credential that identified the principal: a bearer key or a token. Its sessions end with it. */
  readonly credential?: Credential
  /**
   * The same principal in a later snapshot; undefined: the credential is no longer valid. Absent for bearer keys on MCP
   * routes.
   */
  readonly standing?: (snapshot: Snapshot) => Principal | undefined
}

/** The access token scope that MCP routes require. */
export const mcpScope = 'mcp'

/** Whether a principal may use MCP and run tools and prompts: true except for access tokens without the scope `mcp`. */
export const mayRun = ({ scopes }: Principal): boolean => scopes?.includes(mcpScope) ?? true

/** A stored credential, without its secret. */
export interface Credential { readonly id: string, readonly name?: string }

/** The routes that a scoped bearer key is limited to. */
export interface Grant {
  readonly accessType: 'groups' | 'servers' | 'custom'
  readonly groups: readonly string[]
  readonly servers: readonly string[]
}

/**
 * A set of servers. `open`: on a route that requires no credentials, which shows public servers and those that the
 * caller's credential adds.
 */
export type Scope = { readonly open?: boolean } & (
  | { readonly kind: 'global' }
  // `byName`: the route addresses the group by its name, which is possible only while `enableGroupNameRoute` is on.
  | { readonly kind: 'group', readonly id: string, readonly name: string, readonly byName?: boolean }
  | { readonly kind: 'server', readonly name: string }
)

/**
 * How items are presented: under the names of one server (`raw`), under qualified names (`merged`), or by `search`
 * (`$smart`).
 */
export type PresentationName = 'raw' | 'merged' | 'search'

/** A principal, a set of servers, and a presentation. Views with the same key have the same content. */
export interface View {
  readonly principal: Principal
  readonly scope: Scope
  readonly presentation: PresentationName
  readonly key: string
}

export function makeView (
  principal: Principal,
  scope: Scope,
  presentation: PresentationName = scope.kind === 'server' ? 'raw' : 'merged'
): View {
  return {
    principal,
    scope,
    presentation,
    key: JSON
      .stringify([...whoSees(principal, scope), ...whereSeen(scope), presentation])
  }
}

const others = new WeakMap<View, Map<PresentationName, View>>()

/**
 * The view of the same servers by the same principal in another presentation. Repeated calls return the same object.
 */
export function inPresentation (view: View, presentation: PresentationName): View {
  if (view.presentation === presentation) return view
  let made = others.get(view)
  if (!made) others.set(view, made = new Map())
  let other = made.get(presentation)
  if (!other) made.set(presentation, other = makeView(view.principal, view.scope, presentation))
  return other
}

/**
 * The properties of a principal that determine what it sees (`shows` in visibility.ts), and no others, so that
 * principals that see the same items share surfaces. Every input of that decision must be listed here: if one is
 * missing, a principal gets the surface of another one.
 */
function whoSees ({ kind, isAdmin, username, grant }: Principal, { open = false }: Scope): unknown[] {
  const everything = isAdmin ? 'all' : username === undefined ? 'anyone' : ['user', username]
  // On routes that require a credential, the scope of a key is checked by `admits`, for the route; it does not filter
  // the servers.
  if (!open || (isAdmin && grant === undefined)) return [everything]
  return ['open', everything, kind === 'anonymous', grant === undefined ? null : grantText(grant)]
}

const grantTexts = new WeakMap<Grant, string>()

/** A grant as text. Cached, since grants are immutable and may list thousands of names. */
function grantText (grant: Grant): string {
  let text = grantTexts.get(grant)
  if (text === undefined) grantTexts.set(grant, text = JSON.stringify([grant.accessType, grant.groups, grant.servers]))
  return text
}

/** Identifies the route that shows a view, whoever asks. */
export const routeOf = ({ scope, presentation }: View): string => JSON.stringify([...whereSeen(scope), presentation])

function whereSeen (scope: Scope): string[] {
  switch (scope.kind) {
    case 'global': return ['global']
    case 'group': return ['group', scope.id]
    case 'server': return ['server', scope.name]
  }
}
