import { createHash } from 'node:crypto'
import type { User } from '../../../schemas/settings.ts'

/**
 * A digest that changes with the password and with the account, so that a new user with the name of a deleted one has another. It also
 * changes when an account is restored from a backup: with its former password, it does not get the credentials of that time back.
 */
export const markOf = ({ username, password, createdAt, restoredAt }: User): string =>
  digest([username, password, createdAt, ...(restoredAt === undefined ? [] : [restoredAt])])

/**
 * A mark that also changes when the user becomes an admin, or is one no more: what a client was allowed by an admin ends with the admin's
 * rights, and what it was allowed by another user does not grow with theirs.
 */
export const rightsMarkOf = (user: User): string => `${markOf(user)}${user.isAdmin === true ? '+' : ''}`

/** Identifies an account, and never another one of the same name: `sub` in the terms of OpenID Connect. */
export const subjectOf = ({ username, createdAt }: User): string => digest(['sub', username, createdAt])

/** The names of accounts that are gone, or are other ones now. */
export function * goneAccounts (former: ReadonlyMap<string, User>, next: ReadonlyMap<string, User>): Generator<string> {
  if (former === next) return
  for (const [username, user] of former) {
    const later = next.get(username)
    if (!later || (later !== user && subjectOf(later) !== subjectOf(user))) yield username
  }
}

const digest = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22)
