import { sql } from 'drizzle-orm'
import {
  bigint, check, index, integer, jsonb, pgTable, primaryKey, type PgTable, real, text, timestamp, uuid
} from 'drizzle-orm/pg-core'
import { entityFactsOf, listEntityNames, type ListEntityName } from '../entities.ts'
import type { ClientOrigin } from '../ports/clients.ts'

export * from './log-tables.ts'
export * from './social-tables.ts'

/**
 * Returns the columns that all settings tables have. `position`: the place in the order of configuration, which stays
 * the same for a row. `key`: the name or id of the entry; null if it has none, or an earlier entry has the same one:
 * such an entry is kept but not used. `spelling`: the JSON text of `data`, if JSONB cannot represent it exactly, for
 * example because of the order of members. `sealed`: the encrypted secrets, in place of which `data` has masks.
 */
const entryColumns = () => ({
  position: bigint({ mode: 'number' }).primaryKey(),
  key: text().unique(),
  data: jsonb().$type<unknown>(),
  spelling: text(),
  sealed: text()
})

function listTable (name: ListEntityName): PgTable {
  const { table, alias } = entityFactsOf(name)
  return pgTable(table, alias === undefined ? entryColumns() : { ...entryColumns(), alias: text().unique() })
}

/**
 * The tables of the settings, by the name of the section. The table `sections` holds the sections that have no table of
 * their own.
 */
export const settingsTables = {
  // `name` is the full name of the server; `key` is shortened if the name is too long for an index.
  mcpServers: pgTable(entityFactsOf('mcpServers').table, { ...entryColumns(), name: text().notNull() }),
  ...Object.fromEntries(listEntityNames.map((name) => [name, listTable(name)])) as Record<ListEntityName, PgTable>,
  // This table has at most one row.
  systemConfig: pgTable('system_config', entryColumns()),
  sections: pgTable('sections', { ...entryColumns(), name: text().notNull() })
}
/** A member name of `settingsTables`. */
export type SettingsTableName = keyof typeof settingsTables
export const settingsTableNames = Object.keys(settingsTables) as SettingsTableName[]
// Not a table of the database: only its type is used.
const widestTable = pgTable('', { ...entryColumns(), name: text(), alias: text() })
/** A row with the columns of all settings tables. */
export type StoredSettingsRow = typeof widestTable.$inferSelect
/** Returns a settings table, typed as if it had all columns; Drizzle reads and writes only the columns that exist. */
export const settingsTableOf = (name: SettingsTableName): typeof widestTable =>
  settingsTables[name] as unknown as typeof widestTable

/** The version of the settings, in one row. `version`: the number of commits; `head`: the id of the last commit. */
export const settingsRevision = pgTable('revision', {
  id: integer().primaryKey().default(1),
  version: bigint({ mode: 'number' }).notNull(),
  head: uuid().notNull()
}, ({ id }) => [check('revision_is_one_row', sql`${id} = 1`)])

/**
 * The last commits of the settings. `touched`: the positions of the rows that the commit wrote or removed, by table, so
 * that other replicas read only these rows; null if there are too many.
 */
export const commits = pgTable('commits', {
  version: bigint({ mode: 'number' }).primaryKey(),
  id: uuid().notNull(),
  touched: jsonb().$type<Partial<Record<SettingsTableName, number[]>>>()
})

/** Counters with an expiry, for rate limits and quotas; `key` is the hash of the counter's key. */
export const counters = pgTable('counters', {
  key: text().primaryKey(),
  count: integer().notNull(),
  expires: timestamp({ withTimezone: true }).notNull()
}, ({ expires }) => [index('counters_expires').on(expires)])

/**
 * The clients of the authorization server. `key` is the client id, shortened if it is too long for an index. `data` is
 * the JSON text of the settings entry (`ClientEntry`) without its unknown members and `lastUsedAt`. `sealed` contains
 * the unknown members in encrypted form, with a mask in `unknown`. `idleSince` is `lastUsed` or, for an unused client,
 * the time of its creation.
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

/**
 * The entries of all collections of `Records`. `id` consists of the collection's name and the entry's key. A value is
 * in `value` as JSON text, or in `sealed` in encrypted form, with a mask in `data`.
 */
export const records = pgTable(
  'records',
  {
    id: text().primaryKey(),
    collection: text().notNull(),
    version: text().notNull(),
    value: text(),
    data: jsonb().$type<{ secret: string }>(),
    sealed: text(),
    owner: text(),
    labels: text().array().notNull(),
    at: timestamp({ withTimezone: true }).notNull(),
    changed: timestamp({ withTimezone: true }).notNull(),
    expires: timestamp({ withTimezone: true })
  },
  ({ collection, owner, labels, at, changed, expires }) => [
    index('records_at').on(collection, at),
    index('records_owner').on(collection, owner, at),
    index('records_changed').on(collection, changed),
    index('records_expires').on(collection, expires),
    index('records_labels').using('gin', labels)
  ]
)

/** Embeddings as unit vectors. `key` is the hash of the embedding's id, `hash` the hash of the embedded text. */
export const vectors = pgTable('vectors', {
  collection: text().notNull(),
  key: text().notNull(),
  hash: text().notNull(),
  embedding: real().array().notNull(),
  usedAt: timestamp('used_at', { withTimezone: true }).notNull().defaultNow()
}, ({ collection, key }) => [primaryKey({ columns: [collection, key] })])
