import type { Snapshot } from '../../../db/store.ts'
import type { Principal } from '../../settings/index.ts'
import { markOf } from '../users/account.ts'
import type { Entered } from './better-auth.ts'

/** A session, without its token. */
export interface Session {
  readonly session: {
    readonly id: string, readonly userId: string, readonly createdAt: string, readonly expiresAt: string
  }
  readonly user: { readonly id: string, readonly name: string, readonly username: string, readonly isAdmin: boolean }
}

export const credentialId = ({ id }: { id: string }): string => `social ${id}`

/** The principal of a session; undefined: the account is no longer the one that the login led to. */
export function principalOf (session: Entered & { readonly id: string }, { users }: Snapshot): Principal | undefined {
  const user = users.get(session.username)
  if (!user || markOf(user) !== session.mark) return undefined
  return {
    key: credentialId(session),
    kind: 'social-session',
    user: user.username,
    username: user.username,
    isAdmin: user.isAdmin === true,
    credential: { id: credentialId(session) },
    standing: (later) => principalOf(session, later)
  }
}
