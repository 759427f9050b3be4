import type { Snapshot } from '../../../db/store.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { ownerOfAddress } from '../../base/limits/index.ts'
import type { Principal } from './view.ts'
import { isAdmins } from './visibility.ts'

/**
 * The owner to whom everything that a caller holds is counted: the user, with all of the user's keys; a system key; or
 * for callers without credentials the address.
 */
export function ownerOf ({ kind, username, key }: Principal, address: string): string {
  if (kind === 'anonymous' || kind === 'guest') return ownerOfAddress(address)
  return username === undefined ? key : `user ${username}`
}

/**
 * The user to whom the cost of a server is counted; undefined for admins' servers, which have no bounds of an owner.
 */
export const chargedUser = (snapshot: Snapshot, { owner }: ServerConfig): string | undefined =>
  isAdmins(snapshot, owner) ? undefined : owner
