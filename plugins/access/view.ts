import type { Snapshot } from '../../db/store.ts'

/** Who is asking. Made once for a request, never changed. */
export interface Principal {
  /** Identifies the principal: sessions are bound to it. */
  readonly key: string
  readonly kind: 'system-key' | 'user-key' | 'user' | 'guest' | 'anonymous'
  /** What the `user` isolation separates; the key's owner where it has one. */
  readonly user: string
  /** The stored user whose servers it may see. */
  readonly username?: string
  /** Sees every server. */
  readonly isAdmin: boolean
  /** The routes that a scoped credential opens; undefined: all. */
  readonly grant?: Grant
  /** The credential that it came with, where that is kept: a bearer key, a token. Its sessions end with it. */
  readonly credential?: Credential
  /**
   * The same principal in a later snapshot; it returns undefined when the credential does not count any more. Absent on bearer keys of MCP
   * routes.
   */
  readonly standing?: (snapshot: Snapshot) => Principal | undefined
}

/** A stored credential, without its secret. */
export interface Credential { readonly id: string, readonly name?: string }

/** The routes that a scoped bearer key opens. */
export interface Grant {
  readonly accessType: 'groups' | 'servers' | 'custom'
  readonly groups: readonly string[]
  readonly servers: readonly string[]
}

/** Which servers. `open`: asked on the routes that need no credentials, where anybody's servers are added to the caller's own. */
export type Scope = { readonly open?: boolean } & (
  | { readonly kind: 'global' }
  | { readonly kind: 'group', readonly id: string, readonly name: string }
  | { readonly kind: 'server', readonly name: string }
)

/** How items are shown: `raw` names of one server, `merged` under qualified names, or found by `search` (`$smart`). */
export type Presentation = 'raw' | 'merged' | 'search'

/** Who looks, at which servers, and how they are shown. Views with the same key see the same. */
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

/** Principals that see the same servers share what is folded for them. */
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
