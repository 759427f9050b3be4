import { isDeepStrictEqual } from 'node:util'

/** An account as stored, in the database or in a backup. */
export type StoredAccount = Readonly<Record<string, unknown>>

/**
 * Creates a function that converts an account of a backup to the account to restore. Unless an existing account has the
 * same name, creation time and password, the result has a new `restoredAt`, which is part of the account's mark
 * (`identity/users/account.ts`): tokens and logins that were issued for a former password stay invalid. An account that
 * has not changed keeps its present `demotedAt`, so that grants to clients from before a demotion do not become valid
 * again. Team memberships by login are taken from the existing account.
 * @param present the existing accounts
 * @param keepsTokens whether accounts are restored unchanged: there are no existing accounts, and the operator confirms
 *   that no password was changed since the backup
 * @returns the function. `isEncrypted`: whether the account is encrypted in the backup, so that its password cannot be
 *   compared
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
