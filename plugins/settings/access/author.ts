import type { Snapshot } from '../../../db/store.ts'
import type { Principal } from './view.ts'

/**
 * Who made a change: a user, or the owner of a key (`system` where it has none), and the bearer key that the request
 * came with.
 */
export interface Author { readonly username: string, readonly keyId?: string, readonly keyName?: string }

/** The bearer key of a principal, for records. */
export const authorKey = ({ kind, credential }: Principal): Pick<Author, 'keyId' | 'keyName'> =>
  credential !== undefined &&
    (kind === 'system-key' || kind === 'user-key')
    ? { keyId: credential.id, keyName: credential.name }
    : {}

export const toAuthor = (principal: Principal): Author => ({
  username: principal.username ?? '', ...authorKey(principal)
})

/**
 * The users on whose rights a principal acts: the user, or the maker and the owner of a system key. None: the operator,
 * by a key of a file or the command line. What the principal gives rights to counts while all of them have those
 * rights.
 */
export function sponsorsOf (users: Snapshot['users'], { maker, username }: Principal): string[] {
  const user = username !== undefined && users.has(username) ? username : undefined
  return [...new Set([maker, user])].filter((name) => name !== undefined)
}
