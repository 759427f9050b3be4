import { boolean, index, pgTable, text, timestamp, unique } from 'drizzle-orm/pg-core'

const times = {
  createdAt: timestamp('created_at', { withTimezone: true }).notNull(),
  updatedAt: timestamp('updated_at', { withTimezone: true }).notNull()
}

/**
 * The users of social login in the form of better-auth, one per identity at a provider. `email` is not the person's
 * real address, but derived from the hash of the identity (`syntheticEmailOf`).
 */
export const socialUsers = pgTable('social_users', {
  id: text().primaryKey(),
  name: text().notNull(),
  email: text().notNull().unique(),
  emailVerified: boolean('email_verified').notNull(),
  image: text(),
  ...times
})

/**
 * The ids of `socialUsers` at their providers. There are no columns for tokens of providers, which are never stored.
 */
export const socialAccounts = pgTable(
  'social_accounts',
  {
    id: text().primaryKey(),
    providerId: text('provider_id').notNull(),
    accountId: text('account_id').notNull(),
    userId: text('user_id').notNull().references(() => socialUsers.id, { onDelete: 'cascade' }),
    ...times
  },
  ({ providerId, accountId, userId }) => [
    unique('social_accounts_identity').on(providerId, accountId),
    index('social_accounts_user').on(userId)
  ]
)

/**
 * The sessions of social logins. `token` is one part of the session cookie; the other part is its signature. Since the
 * signing key follows from JWT_SECRET, which is not in the database, reading this table is not enough to use a session.
 * `username` and `mark` (`accountMarkOf`) are those of the local account at the time of the login.
 */
export const socialSessions = pgTable(
  'social_sessions',
  {
    id: text().primaryKey(),
    token: text().notNull().unique(),
    userId: text('user_id').notNull().references(() => socialUsers.id, { onDelete: 'cascade' }),
    username: text().notNull(),
    mark: text().notNull(),
    ipAddress: text('ip_address'),
    userAgent: text('user_agent'),
    expiresAt: timestamp('expires_at', { withTimezone: true }).notNull(),
    ...times
  },
  ({ userId, createdAt, expiresAt }) => [
    index('social_sessions_user').on(userId, createdAt),
    index('social_sessions_expires').on(expiresAt)
  ]
)

/**
 * The bindings of identities at providers to local accounts, with the members of `SocialIdentity`. `subject` is the id
 * of the local account; `bound` is the time of the binding.
 */
export const socialIdentities = pgTable(
  'social_identities',
  {
    hash: text().primaryKey(),
    provider: text().notNull(),
    username: text().notNull(),
    subject: text().notNull(),
    created: boolean().notNull(),
    verified: boolean().notNull(),
    bound: timestamp({ withTimezone: true }).notNull()
  },
  ({ username, subject }) => [index('social_identities_account').on(username, subject)]
)
