import { sql } from 'drizzle-orm'
import { boolean, check, index, integer, jsonb, pgTable, text, timestamp, unique } from 'drizzle-orm/pg-core'

const times = {
  createdAt: timestamp('created_at', { withTimezone: true }).notNull(),
  updatedAt: timestamp('updated_at', { withTimezone: true }).notNull()
}

/**
 * Users of social login as better-auth stores them, one per identity at a provider. `email` is derived from the hash of
 * the identity.
 */
export const socialUsers = pgTable('social_users', {
  id: text().primaryKey(),
  name: text().notNull(),
  email: text().notNull().unique(),
  emailVerified: boolean('email_verified').notNull(),
  image: text(),
  ...times
})

/** The ids of users at their providers. There are no columns for the providers' tokens, which are never stored. */
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
 * Sessions of social logins. `token` is one part of the cookie; the other is a signature with the encrypted key of
 * `social_secret`, so that reading this table is not enough to use a session. `username` and `mark` identify the local
 * account at the login.
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
 * Bindings of identities to local accounts. `hash`: the hash of provider and subject; `subject`: identifies the
 * account.
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

/** At most one row: the key that signs session cookies, encrypted. */
export const socialSigningKey = pgTable('social_secret', {
  id: integer().primaryKey().default(1),
  data: jsonb().$type<{ secret: string }>().notNull(),
  sealed: text()
}, ({ id }) => [check('social_secret_is_one_row', sql`${id} = 1`)])
