import type { Snapshot } from '../../db/store.ts'

/** The identity of a caller. Made once per request, never changed. */
export interface Principal {
  /** Identifies the principal: sessions are bound to it. */
  readonly key: string
  readonly kind: 'system-key' | 'user-key' | 'user' | 'guest' | 'anonymous'
  /** The user by which `isolation: user` separates connections: a key's owner, if it has one. */
  readonly user: string
  /** The stored user whose servers it may see. */
  readonly username?: string
  /** True: it sees every server. */
  readonly isAdmin: boolean
  /** The routes that a scoped credential is limited to; undefined: all. */
  readonly grant?: Grant
  /** The stored credential by which it was identified: a bearer key, or a token. Its sessions end with it. */
  readonly credential?: Credential
  /** The same principal in a later snapshot; undefined when the credential is not valid any more. Absent on bearer keys of MCP routes. */
  readonly standing?: (snapshot: Snapshot) => Principal | undefined
}

/** A stored credential, without its secret. */
export interface Credential { readonly id: string, readonly name?: string }

/** The routes that a scoped bearer key is limited to. */
export interface Grant {
  readonly accessType: 'groups' | 'servers' | 'custom'
  readonly groups: readonly string[]
  readonly servers: readonly string[]
}

/** A set of servers. `open`: on the routes that need no credentials, where public servers are added to the caller's own. */
export type Scope = { readonly open?: boolean } & (
  | { readonly kind: 'global' }
  | { readonly kind: 'group', readonly id: string, readonly name: string }
  | { readonly kind: 'server', readonly name: string }
)

/** The way in which items are shown: under the `raw` names of one server, `merged` under qualified names, or by `search` (`$smart`). */
export type Presentation = 'raw' | 'merged' | 'search'

/** A principal, a set of servers, and the way in which they are shown. Views with the same key see the same. */
export interface View {
  readonly principal: Principal
  readonly scope: Scope
  readonly presentation: Presentation
  readonly key: string
}

export function makeView (
  principal: Principal,
  scope: Scope,
  presentation: Presentation = scope.kind === 'server' ? 'raw' : 'merged'
): View {
  return { principal, scope, presentation, key: `${whoSees(principal, scope)} ${whereSeen(scope)} ${presentation}` }
}

/** The same text for principals that see the same servers, so that they share surfaces. */
function whoSees ({ isAdmin, grant, key, username }: Principal, { open = false }: Scope): string {
  if (isAdmin && !(open && grant)) return 'all'
  const who = username === undefined ? 'anyone' : `user ${JSON.stringify(username)}`
  const someone = isAdmin ? key : who
  return open ? `open ${someone}` : someone
}

function whereSeen (scope: Scope): string {
  switch (scope.kind) {
    case 'global': return 'global'
    case 'group': return `group ${scope.id}`
    case 'server': return `server ${JSON.stringify(scope.name)}`
  }
}
