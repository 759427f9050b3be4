import type { Snapshot } from '../../../db/store.ts'
import type { User } from '../../../schemas/settings.ts'
import { rightsMarkOf } from '../users/mark.ts'

/**
 * A user as a login left it: the name and the mark of the account. It stands for nobody once the account has another password or other
 * rights, or was removed, so that nothing that was issued for it is of use then.
 */
export interface Account { readonly username: string, readonly mark: string }

export const accountOf = (user: User): Account => ({ username: user.username, mark: rightsMarkOf(user) })

/** The user of an account, if the account still stands. */
export function accountUser ({ users }: Snapshot, { username, mark }: Account): User | undefined {
  const user = users.get(username)
  return user && rightsMarkOf(user) === mark ? user : undefined
}

/** An account as one text, for the library's `accountId`. */
export const accountId = ({ username, mark }: Account): string => `${mark} ${username}`

export function parseAccountId (text: string): Account {
  const end = text.indexOf(' ')
  return { mark: text.slice(0, end), username: text.slice(end + 1) }
}
