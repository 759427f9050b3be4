import type { Principal } from '../../settings/index.ts'

/** An account with its permissions, by which a client shows or hides parts of its interface (DECISIONS §2). */
interface ShownAccount {
  username: string
  isAdmin: boolean
  permissions: { admin: boolean; servers: 'all' | 'visible'; users: boolean; system: boolean }
}

/** The account of a principal; one without a user is named `anonymous`. */
export function toAccount ({ username, isAdmin }: Pick<Principal, 'username' | 'isAdmin'>): ShownAccount {
  return {
    username: username ?? 'anonymous',
    isAdmin,
    permissions: { admin: isAdmin, servers: isAdmin ? 'all' : 'visible', users: isAdmin, system: isAdmin }
  }
}
