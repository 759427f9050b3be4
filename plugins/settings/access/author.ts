import type { Principal } from './view.ts'

/** Who made a change: a user, or the owner of a key (`system` where it has none), and the bearer key that the request came with. */
export interface Author { readonly username: string, readonly keyId?: string, readonly keyName?: string }

/** The bearer key of a principal, for records. */
export const authorKey = ({ kind, credential }: Principal): Pick<Author, 'keyId' | 'keyName'> =>
  credential !== undefined && (kind === 'system-key' || kind === 'user-key') ? { keyId: credential.id, keyName: credential.name } : {}

export const toAuthor = (principal: Principal): Author => ({ username: principal.username ?? '', ...authorKey(principal) })
