/** The members of a stored account that tell whether it is the same account with the same password. */
export type Marked = Readonly<Record<string, unknown>>

/**
 * Makes a function that prepares an account of a backup. An account that is not the present one of its name, with the
 * same password, gets another `restoredAt`, which is a part of its mark (`identity/users/account.ts`): tokens and
 * logins that were issued for it do not become valid again with its former password. One that is the same keeps its
 * `demotedAt`, so that what an admin had allowed clients before a demotion does not become valid either.
 * @param present the accounts that there are now
 * @param keepsTokens there are none, and the operator says that no password was changed since: accounts stay as they
 *   are in the backup
 */
export function withMarks (
  present: readonly Marked[], keepsTokens: boolean
): (user: Marked, isUnknown?: boolean) => Marked {
  const restoredAt = new Date().toISOString()
  const known = new Map(present.map((user) => [user.username, user]))
  return (user, isUnknown = false) => {
    if (keepsTokens) return user
    const now = known.get(user.username)
    const isSame = !isUnknown && now !== undefined && now.password === user.password && now.createdAt === user.createdAt
    if (!isSame) return { ...user, restoredAt }
    if (now.restoredAt === user.restoredAt && now.demotedAt === user.demotedAt) return user
    return { ...user, restoredAt: now.restoredAt, demotedAt: now.demotedAt }
  }
}
