import { sql } from 'drizzle-orm'
import {
  bigint, check, index, integer, jsonb, pgTable, primaryKey, type PgTable, real, text, timestamp, uuid
} from 'drizzle-orm/pg-core'
import { entityFactsOf, listEntityNames, type ListEntityName } from '../entities.ts'
import type { ClientOrigin } from '../ports/clients.ts'

export * from './log-tables.ts'
export * from './social-tables.ts'

/**
 * The columns that all tables of settings have. `position` is the entry's place in the order of configuration, and
 * never changes. `key` is its name; null for an entry without a valid name, or with the same name as an earlier one:
 * such an entry is kept and not used. `spelling` is the JSON text of `data` if JSONB does not preserve it, for example
 * because of the order of members. `sealed` contains the encrypted secrets, in place of which `data` has masks.
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

/** The tables of the settings, by section. `sections` is for all sections without a table of their own. */
export const settingsTables = {
  // `name` is the full name; `key` is shortened if the name is too long for an index.
  mcpServers: pgTable(entityFactsOf('mcpServers').table, { ...entryColumns(), name: text().notNull() }),
  ...Object.fromEntries(listEntityNames.map((name) => [name, listTable(name)])) as Record<ListEntityName, PgTable>,
  // This table has at most one row.
  systemConfig: pgTable('system_config', entryColumns()),
  sections: pgTable('sections', { ...entryColumns(), name: text().notNull() })
}
/** A name of `settingsTables`. */
export type SettingsTableName = keyof typeof settingsTables
export const settingsTableNames = Object.keys(settingsTables) as SettingsTableName[]
// Not a table of the database: only its type is used.
const widestTable = pgTable('', { ...entryColumns(), name: text(), alias: text() })
/** A row with the columns of all settings tables. */
export type StoredSettingsRow = typeof widestTable.$inferSelect
/** A table by name, typed as if it had all columns; Drizzle reads and writes those that exist. */
export const settingsTableOf = (name: SettingsTableName): typeof widestTable =>
  settingsTables[name] as unknown as typeof widestTable

/** The state of the settings, in one row. `version`: the number of commits; `head`: the id of the last one. */
export const settingsRevision = pgTable('revision', {
  id: integer().primaryKey().default(1),
  version: bigint({ mode: 'number' }).notNull(),
  head: uuid().notNull()
}, ({ id }) => [check('revision_is_one_row', sql`${id} = 1`)])

/**
 * The last commits. `touched`: the positions of the rows that the commit wrote or removed, so that other replicas read
 * only these; null if there are too many.
 */
export const commits = pgTable('commits', {
  version: bigint({ mode: 'number' }).primaryKey(),
  id: uuid().notNull(),
  touched: jsonb().$type<Partial<Record<SettingsTableName, number[]>>>()
})

/** Counters with an expiry, for rate limits and quotas; `key` is a hash. */
export const counters = pgTable('counters', {
  key: text().primaryKey(),
  count: integer().notNull(),
  expires: timestamp({ withTimezone: true }).notNull()
}, ({ expires }) => [index('counters_expires').on(expires)])

/**
 * The clients of the authorization server. `key` is the client id, shortened if it is too long for an index. `data` is
 * the JSON text of the entry without its unknown members; these are encrypted in `sealed`, with a mask in `unknown`.
 * `idleSince` is `lastUsed`, otherwise the time of creation.
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
 * The entries of all collections of `Records`; `id` is the collection's name and the key. A value is JSON text in
 * `value`, or encrypted in `data` and `sealed`.
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

/** Embeddings as unit vectors; `key` is the hash of an id, `hash` the hash of the embedded text. */
export const vectors = pgTable('vectors', {
  collection: text().notNull(),
  key: text().notNull(),
  hash: text().notNull(),
  embedding: real().array().notNull(),
  usedAt: timestamp('used_at', { withTimezone: true }).notNull().defaultNow()
}, ({ collection, key }) => [primaryKey({ columns: [collection, key] })])
