import type { Snapshot } from '../../../db/store.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { ownerOfAddress } from '../../base/limits/index.ts'
import { hasCredential, type Principal } from './view.ts'
import { isAdminOwner } from './visibility.ts'

/**
 * Returns the owner that a caller's use of resources is charged to: the user, also for the user's keys; a system key;
 * or, for callers without credentials, the client address.
 */
export function chargedOwnerOf (principal: Principal, address: string): string {
  if (!hasCredential(principal)) return ownerOfAddress(address)
  const { username, key } = principal
  return username === undefined ? key : `user ${username}`
}

/**
 * Returns the user that the cost of a server is charged to; undefined for servers of admins, which have no limits per
 * owner.
 */
export const chargedUserOfServer = (snapshot: Snapshot, { owner }: ServerConfig): string | undefined =>
  isAdminOwner(snapshot, owner) ? undefined : owner

/**
 * Whether a record about a username belongs to a former account: the present account of that name was created later.
 * @param at the time of the record, in ms since the epoch
 */
export const isOfFormerAccount = (
  { users }: Pick<Snapshot, 'users'>, username: string | undefined, at: number
): boolean => at < Date.parse(users.get(username ?? '')?.createdAt ?? '')
