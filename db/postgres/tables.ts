import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  type PgTable,
  real,
  text,
  timestamp,
  uuid
} from 'drizzle-orm/pg-core'
import { factsOf, listNames, type ListName } from '../entities.ts'
import type { ClientOrigin, TokenKind } from '../ports.ts'

export * from './record-tables.ts'

export * from './social-tables.ts'

/**
 * The columns that all tables of settings have. `position` is the entry's place in the order of configuration and never changes. `key`
 * is its name; null for an entry of a settings file without a valid name, or with the name of an earlier one: it is kept and not used.
 * `spelling` is the JSON text of `data` if JSONB does not preserve it, for example the order of members. `sealed` holds the encrypted
 * secrets, in whose places `data` has masks.
 */
const entry = () => ({
  position: bigint({ mode: 'number' }).primaryKey(),
  key: text().unique(),
  data: jsonb().$type<unknown>(),
  spelling: text(),
  sealed: text()
})

const listTable = (name: ListName): PgTable =>
  pgTable(factsOf(name).table, factsOf(name).alias === undefined ? entry() : { ...entry(), alias: text().unique() })

/** The tables of settings by the names of the sections that they store; `sections` stores all others, unchanged. */
export const settingsTables = {
  // `name` is the full name; `key` is shortened if the full name is too long for an index.
  mcpServers: pgTable(factsOf('mcpServers').table, { ...entry(), name: text().notNull() }),
  ...Object.fromEntries(listNames.map((name) => [name, listTable(name)])) as Record<ListName, PgTable>,
  // At most one row.
  systemConfig: pgTable('system_config', entry()),
  sections: pgTable('sections', { ...entry(), name: text().notNull() })
}
/** The name of a section with a table; `sections`: of the table of all others. */
export type TableName = keyof typeof settingsTables
export const tableNames = Object.keys(settingsTables) as TableName[]
// Used for its type only.
// eslint-disable-next-line @typescript-eslint/no-unused-vars
const widest = pgTable('', { ...entry(), name: text(), alias: text() })
/** A row with the columns of all these tables. */
export type Stored = typeof widest.$inferSelect
/** A table by name, typed as one with all columns; Drizzle reads and writes those that exist. */
export const tableOf = (name: TableName): typeof widest => settingsTables[name] as unknown as typeof widest

/** One row: the number of changes to the settings, and the id of the last commit. */
export const revision = pgTable('revision', {
  id: integer().primaryKey().default(1),
  version: bigint({ mode: 'number' }).notNull(),
  head: uuid().notNull()
}, ({ id }) => [check('revision_is_one_row', sql`${id} = 1`)])

/** The last commits, with the rows that each one touched, so that other replicas read only those. Null: too many rows to list. */
export const commits = pgTable('commits', {
  version: bigint({ mode: 'number' }).primaryKey(),
  id: uuid().notNull(),
  touched: jsonb().$type<Partial<Record<TableName, number[]>>>()
})

/** Counters with an expiry, for rate limits; `key` is a hash. */
export const counters = pgTable('counters', {
  key: text().primaryKey(),
  count: integer().notNull(),
  expires: timestamp({ withTimezone: true }).notNull()
}, ({ expires }) => [index('counters_expires').on(expires)])

/**
 * Values that can be taken once, by a hash; `data` and `sealed` as for an entry of the settings. Once `taken`, both are null, and the
 * row with its `family` is kept for a while.
 */
export const grants = pgTable('grants', {
  hash: text().primaryKey(),
  family: text().notNull(),
  data: jsonb().$type<{ secret: string }>(),
  sealed: text(),
  taken: boolean().notNull().default(false),
  expires: timestamp({ withTimezone: true }).notNull()
}, ({ expires }) => [index('grants_expires').on(expires)])

/**
 * The client and user of a family of tokens. A revoked family is kept until its last token has expired: all its tokens are invalid,
 * also those that are added after the revocation.
 */
export const tokenFamilies = pgTable(
  'token_families',
  {
    family: text().primaryKey(),
    clientId: text('client_id'),
    username: text(),
    mark: text(),
    revoked: boolean().notNull().default(false),
    revokedAt: timestamp('revoked_at', { withTimezone: true }),
    expires: timestamp({ withTimezone: true }).notNull()
  },
  ({ clientId, username, revokedAt, expires }) => [
    index('token_families_revoked').on(revokedAt),
    index('token_families_client').on(clientId),
    index('token_families_user').on(username),
    index('token_families_expires').on(expires)
  ]
)

/** Tokens by their hashes. A refresh token that was swapped is kept as `used`. A token without a row for its family is invalid. */
export const tokens = pgTable('tokens', {
  hash: text().primaryKey(),
  family: text().notNull(),
  kind: text().$type<TokenKind>().notNull(),
  scope: text().notNull(),
  resource: text(),
  used: boolean().notNull().default(false),
  expires: timestamp({ withTimezone: true }).notNull()
}, ({ family, expires }) => [index('tokens_family').on(family), index('tokens_expires').on(expires)])

/**
 * The clients of the authorization server. `key` is the client's id, shortened if it is too long for an index; `data` is the JSON text of
 * its entry, without the members that are not known: `unknown` has a mask, and `sealed` those members. `idleSince` is `lastUsed`, else the
 * time of creation.
 */
export const oauthClients = pgTable(
  'oauth_clients',
  {
    key: text().primaryKey(),
    origin: text().$type<ClientOrigin>().notNull(),
    data: text().notNull(),
    unknown: jsonb().$type<{ secret: string }>(),
    sealed: text(),
    lastUsed: timestamp('last_used', { withTimezone: true }),
    idleSince: timestamp('idle_since', { withTimezone: true }).notNull()
  },
  ({ origin, idleSince }) => [index('oauth_clients_idle').on(idleSince).where(sql`${origin} = 'registered'`)]
)

/** Remembered consents. `username` and `clientKey` are shortened if they are too long for an index; `data` is the consent as JSON text. */
export const oauthConsents = pgTable(
  'oauth_consents',
  {
    username: text().notNull(),
    clientKey: text('client_key').notNull(),
    data: text().notNull(),
    granted: timestamp({ withTimezone: true }).notNull()
  },
  ({ username, clientKey, granted }) => [
    primaryKey({ columns: [username, clientKey] }),
    index('oauth_consents_client').on(clientKey),
    index('oauth_consents_granted').on(granted)
  ]
)

/** States of browsers at the authorization server, by the hashes of their cookies; `data` and `sealed` as for a grant. */
export const loginStates = pgTable(
  'login_states',
  {
    hash: text().primaryKey(),
    uid: text(),
    username: text(),
    data: jsonb().$type<{ secret: string }>().notNull(),
    sealed: text(),
    created: timestamp({ withTimezone: true }).notNull(),
    expires: timestamp({ withTimezone: true }).notNull()
  },
  ({ uid, username, created, expires }) => [
    index('login_states_uid').on(uid),
    index('login_states_user').on(username, created),
    index('login_states_created').on(created),
    index('login_states_expires').on(expires)
  ]
)

/** States of requests that clients came back with, by their hashes; `answers` is the hash of the answers that came with the first. */
export const usedStates = pgTable(
  'used_states',
  {
    hash: text().primaryKey(),
    answers: text().notNull(),
    used: timestamp({ withTimezone: true }).notNull().defaultNow(),
    expires: timestamp({ withTimezone: true }).notNull()
  },
  ({ used, expires }) => [index('used_states_used').on(used), index('used_states_expires').on(expires)]
)

/**
 * Logins at upstream servers and registrations there. `key` is the hash of server and holder; `data` and `sealed` as for a grant, null once
 * it was removed, which other replicas learn from the row. `claimed`: until when somebody is about to replace it.
 */
export const upstreamTokens = pgTable(
  'upstream_tokens',
  {
    key: text().primaryKey(),
    server: text().notNull(),
    holder: text().notNull(),
    version: text(),
    data: jsonb().$type<{ secret: string }>(),
    sealed: text(),
    claimed: timestamp({ withTimezone: true }),
    changed: timestamp({ withTimezone: true }).notNull()
  },
  ({ server, holder, changed }) => [
    index('upstream_tokens_server').on(server),
    index('upstream_tokens_holder').on(holder),
    index('upstream_tokens_changed').on(changed)
  ]
)

/** Embeddings as unit vectors; `key` is the hash of an id, `hash` that of the embedded text. */
export const vectors = pgTable('vectors', {
  collection: text().notNull(),
  key: text().notNull(),
  hash: text().notNull(),
  embedding: real().array().notNull(),
  usedAt: timestamp('used_at', { withTimezone: true }).notNull().defaultNow()
}, ({ collection, key }) => [primaryKey({ columns: [collection, key] })])
