import type { Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { expiryOf } from './expiry.ts'

type Users = Snapshot['users']

const isAdmin = (users: Users, username: string): boolean => users.get(username)?.isAdmin === true

/**
 * Whether a key that is enabled and has not expired counts now (DECISIONS §4). A system key has an admin's rights from its maker, and from
 * its owner where it has one: it counts while they are admins. Without a maker it is the operator's.
 */
export function counts (key: BearerKey, { users }: Pick<Snapshot, 'users'>): boolean {
  if (key.enabled === false || (key.expiresAt !== undefined && expiryOf(key) <= Date.now())) return false
  if (key.kind === 'user') return true
  const { createdBy, owner } = key
  return (createdBy === undefined || isAdmin(users, createdBy)) && (owner === undefined || isAdmin(users, owner))
}

/**
 * Whether a key of kind `user` sees what an admin sees. It does as long as its owner is an admin, and so is whoever made it: only admins
 * make keys for others.
 */
export const seesAll = ({ owner = '', createdBy = owner }: BearerKey, users: Users): boolean =>
  isAdmin(users, owner) && isAdmin(users, createdBy)
