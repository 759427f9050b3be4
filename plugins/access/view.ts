import type { Snapshot } from '../../db/store.ts'

/** Who is asking. Made once for a request, never changed. */
export interface Principal {
  /** Tells principals apart: sessions are bound to it. */
  readonly key: string
  readonly kind: 'system-key' | 'user-key' | 'user' | 'guest' | 'anonymous'
  /** What the `user` isolation separates; the key's owner where it has one. */
  readonly user: string
  /** The stored user whose servers it may see. */
  readonly username?: string
  /** Sees every server. */
  readonly isAdmin: boolean
  /** Why it may not use some routes, if it is scoped. */
  readonly grant?: Grant
  /** What its credential makes of it in a later snapshot; undefined: nobody, it does not count any more. Absent where it writes nothing. */
  readonly standing?: (snapshot: Snapshot) => Principal | undefined
}

/** The routes that a scoped bearer key opens. */
export interface Grant {
  readonly accessType: 'groups' | 'servers' | 'custom'
  readonly groups: readonly string[]
  readonly servers: readonly string[]
}

/** Through which route. */
export type Scope =
  | { readonly kind: 'global' }
  | { readonly kind: 'group', readonly id: string, readonly name: string }
  | { readonly kind: 'server', readonly name: string }

/** Who looks, through which route. Views with the same key see the same. `open`: it stands on the routes that need no credentials. */
export interface View { readonly principal: Principal, readonly scope: Scope, readonly key: string, readonly open: boolean }

export function makeView (principal: Principal, scope: Scope, open = false): View {
  const all = principal.isAdmin && !(open && principal.grant)
  const someone = principal.isAdmin
    ? principal.key
    : principal.username === undefined
      ? 'anyone'
      : `user ${JSON.stringify(principal.username)}`
  const who = all ? 'all' : open ? `open ${someone}` : someone
  const where = scope.kind === 'global' ? 'global' : scope.kind === 'group' ? `group ${scope.id}` : `server ${JSON.stringify(scope.name)}`
  return { principal, scope, key: `${who} ${where}`, open }
}
