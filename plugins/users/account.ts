import type { Principal } from '../access/view.ts'

/** What an account may do, for a client that shows or hides things by it (DECISIONS §2). */
export interface ShownAccount {
  username: string
  isAdmin: boolean
  permissions: { admin: boolean; servers: 'all' | 'visible'; users: boolean; system: boolean }
}

export function toAccount ({ username, isAdmin }: Pick<Principal, 'username' | 'isAdmin'>): ShownAccount {
  return {
    username: username ?? 'anonymous',
    isAdmin,
    permissions: { admin: isAdmin, servers: isAdmin ? 'all' : 'visible', users: isAdmin, system: isAdmin }
  }
}
