import { isDeepStrictEqual } from 'node:util'

/** The members of a stored account that determine whether two records are the same account with the same password. */
export type BackupAccount = Readonly<Record<string, unknown>>

/**
 * Creates a function that prepares an account of a backup for its restore. Unless the database has the same account
 * with the same password, the account gets a new `restoredAt`, which is part of its mark (`identity/users/account.ts`):
 * tokens and logins that were issued for its former password stay invalid. An unchanged account keeps its present
 * `demotedAt`, so that grants to clients from before a demotion do not become valid again. Team memberships by login
 * are taken from the existing account, not from the backup.
 * @param present the existing accounts
 * @param keepsTokens whether accounts are restored unchanged: the database has none, and the operator confirms that no
 *   password was changed since the backup
 */
export function createAccountRestorer (
  present: readonly BackupAccount[], keepsTokens: boolean
): (user: BackupAccount, isUnknown?: boolean) => BackupAccount {
  const restoredAt = new Date().toISOString()
  const known = new Map(present.map((user) => [user.username, user]))
  return (user, isUnknown = false) => {
    if (keepsTokens) return user
    const now = known.get(user.username)
    const isSame = !isUnknown && now !== undefined && now.password === user.password && now.createdAt === user.createdAt
    const { loginGroups, ...rest } = user
    if (!isSame) return { ...rest, restoredAt }
    const { restoredAt: restored, demotedAt, loginGroups: groups } = now
    if (restored === user.restoredAt && demotedAt === user.demotedAt && isDeepStrictEqual(groups, loginGroups)) {
      return user
    }
    return { ...rest, restoredAt: restored, demotedAt, ...(groups === undefined ? {} : { loginGroups: groups }) }
  }
}
