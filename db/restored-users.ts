import { isDeepStrictEqual } from 'node:util'
import { isPlainObject } from '../schemas/unknown-members.ts'
import type { SettingsDocument } from './apply.ts'

/** A user's account as stored in the database, a settings file or a backup. */
export type StoredAccount = Readonly<Record<string, unknown>>

/**
 * Creates a function that converts an account of a backup to the account to restore. It compares the account with the
 * existing one of the same name:
 * - If creation time and password are the same, the result keeps `restoredAt`, `demotedAt` and `loginGroups` (team
 *   memberships that a login has set) of the existing account. So grants to clients from before a demotion do not
 *   become valid again.
 * - Otherwise, or if no such account exists, the result has a new `restoredAt` and no `loginGroups`. Since `restoredAt`
 *   is part of the account's mark (`accountMarkOf`), tokens and logins issued for another password stay invalid.
 * @param present the existing accounts
 * @param keepsTokens whether accounts are restored unchanged, so that their tokens stay valid: only if there are no
 *   existing accounts, and the operator confirms that no password was changed since the backup
 * @returns the function. `isEncrypted`: whether the account is encrypted in the backup, so that its password cannot be
 *   compared, and counts as different
 */
export function createAccountRestorer (
  present: readonly StoredAccount[], keepsTokens: boolean
): (user: StoredAccount, isEncrypted?: boolean) => StoredAccount {
  const restoredAt = new Date().toISOString()
  const known = new Map(present.map((user) => [user.username, user]))
  return (user, isEncrypted = false) => {
    if (keepsTokens) return user
    const now = known.get(user.username)
    const isSame =
      !isEncrypted && now !== undefined && now.password === user.password && now.createdAt === user.createdAt
    const { loginGroups, ...rest } = user
    if (!isSame) return { ...rest, restoredAt }
    const { restoredAt: restored, demotedAt, loginGroups: groups } = now
    if (restored === user.restoredAt && demotedAt === user.demotedAt && isDeepStrictEqual(groups, loginGroups)) {
      return user
    }
    return { ...rest, restoredAt: restored, demotedAt, ...(groups === undefined ? {} : { loginGroups: groups }) }
  }
}

/** Returns settings with the changes to their users that `createAccountRestorer` describes, for the same parameters. */
export function withRestoredUsers (
  document: SettingsDocument, present: readonly StoredAccount[], keepsTokens: boolean
): SettingsDocument {
  if (!Array.isArray(document.users)) return document
  const restore = createAccountRestorer(present, keepsTokens)
  return { ...document, users: document.users.map((user: unknown) => isPlainObject(user) ? restore(user) : user) }
}
