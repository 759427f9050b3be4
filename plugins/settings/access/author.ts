import type { Snapshot } from '../../../db/store.ts'
import type { Principal } from './view.ts'

/**
 * The author of a change: the user, or the owner of the key (`system` if it has none), and the request's bearer key.
 */
export interface Author { readonly username: string, readonly keyId?: string, readonly keyName?: string }

/** Returns the id and name of a principal's bearer key, for audit records; empty if there is no bearer key. */
export const toBearerKeyIdentity = ({ kind, credential }: Principal): Pick<Author, 'keyId' | 'keyName'> =>
  credential !== undefined && (kind === 'system-key' || kind === 'user-key')
    ? { keyId: credential.id, keyName: credential.name }
    : {}

/** Returns the author of the changes that a principal makes. */
export const toAuthor = (principal: Principal): Author => ({
  username: principal.username ?? '', ...toBearerKeyIdentity(principal)
})

/**
 * Returns the users whose rights a principal relies on: the user itself, or the creator and the owner of a system key.
 * Empty for the operator, who uses a key from a settings file or the command line. What the principal grants is
 * effective only while all of these users have the rights for it.
 */
export function responsibleUsersOf (users: Snapshot['users'], { createdBy, username }: Principal): string[] {
  const user = username !== undefined && users.has(username) ? username : undefined
  return [...new Set([createdBy, user])].filter((name) => name !== undefined)
}
