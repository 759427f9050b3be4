import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  check,
  doublePrecision,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  real,
  text,
  timestamp,
  uuid
} from 'drizzle-orm/pg-core'
import type { BearerKey, Group, SystemConfig, User } from '../../schemas/settings.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { ActivityStatus, TokenKind } from '../ports.ts'

/**
 * What every entry of the settings has. `position` is its place in the order of configuration, for life; `key` its name (null: an
 * odd or second entry of a file, which is kept and does not count); `spelling` the JSON text of `data` where JSONB would give it
 * back otherwise, as with members in another order; `sealed` the secrets for which `data` has masks.
 */
const entry = <Data>() => ({
  position: bigint({ mode: 'number' }).primaryKey(),
  key: text().unique(),
  data: jsonb().$type<Data>(),
  spelling: text(),
  sealed: text()
})

export const users = pgTable('users', entry<User>())
/** `name` is the whole name; `key` is cut where an index could not hold it. */
export const servers = pgTable('servers', { ...entry<ServerConfig>(), name: text().notNull() })
export const groups = pgTable('groups', { ...entry<Group>(), name: text().unique() })
export const bearerKeys = pgTable('bearer_keys', { ...entry<BearerKey>(), tokenHash: text('token_hash').unique() })
/** One row, or none. */
export const systemConfig = pgTable('system_config', entry<SystemConfig>())
/** Sections of the settings that have no table of their own, kept as they came. */
export const sections = pgTable('sections', { ...entry<unknown>(), name: text().notNull() })

/** One row: how often the settings were changed, and the last commit. */
export const revision = pgTable('revision', {
  id: integer().primaryKey().default(1),
  version: bigint({ mode: 'number' }).notNull(),
  head: uuid().notNull()
}, ({ id }) => [check('revision_is_one_row', sql`${id} = 1`)])

/** The last commits: which rows each of them touched, so that others need not read all. Null: too many to tell. */
export const commits = pgTable('commits', {
  version: bigint({ mode: 'number' }).primaryKey(),
  id: uuid().notNull(),
  touched: jsonb().$type<Partial<Record<TableName, number[]>>>()
})

/** Counts that end by themselves; the key is a hash. */
export const counters = pgTable('counters', {
  key: text().primaryKey(),
  count: integer().notNull(),
  expires: timestamp({ withTimezone: true }).notNull()
}, ({ expires }) => [index('counters_expires').on(expires)])

/** What can be taken once, by its hash: `data` and `sealed` as in an entry. Once `taken`, they are empty, and `family` is remembered for a while. */
export const grants = pgTable('grants', {
  hash: text().primaryKey(),
  family: text().notNull(),
  data: jsonb().$type<{ secret: string }>(),
  sealed: text(),
  taken: boolean().notNull().default(false),
  expires: timestamp({ withTimezone: true }).notNull()
}, ({ expires }) => [index('grants_expires').on(expires)])

/** Whose tokens a family is. Revoked, it stays until all of them have expired: none of them counts, also one that comes late. */
export const tokenFamilies = pgTable(
  'token_families',
  {
    family: text().primaryKey(),
    clientId: text('client_id'),
    username: text(),
    revoked: boolean().notNull().default(false),
    expires: timestamp({ withTimezone: true }).notNull()
  },
  ({ clientId, username, expires }) => [
    index('token_families_client').on(clientId),
    index('token_families_user').on(username),
    index('token_families_expires').on(expires)
  ]
)

/** Tokens by their hashes; a refresh token that was swapped stays as a used one. One without its family does not count. */
export const tokens = pgTable('tokens', {
  hash: text().primaryKey(),
  family: text().notNull(),
  kind: text().$type<TokenKind>().notNull(),
  scope: text().notNull(),
  resource: text(),
  used: boolean().notNull().default(false),
  expires: timestamp({ withTimezone: true }).notNull()
}, ({ family, expires }) => [index('tokens_family').on(family), index('tokens_expires').on(expires)])

/** Calls that were recorded; `timestamp` is in ms since 1970. */
export const activities = pgTable('activities', {
  id: uuid().primaryKey(),
  timestamp: bigint({ mode: 'number' }).notNull(),
  server: text().notNull(),
  tool: text().notNull(),
  duration: doublePrecision().notNull(),
  status: text().$type<ActivityStatus>().notNull(),
  input: text(),
  output: text(),
  group: text(),
  username: text(),
  keyId: text('key_id'),
  keyName: text('key_name'),
  sourceIp: text('source_ip'),
  errorMessage: text('error_message')
}, ({ timestamp, username, id }) => [index('activities_timestamp').on(timestamp, id), index('activities_username').on(username, timestamp)])

/** Embeddings as unit vectors; `key` is the hash of an id, `hash` that of what was embedded. */
export const vectors = pgTable('vectors', {
  collection: text().notNull(),
  key: text().notNull(),
  hash: text().notNull(),
  embedding: real().array().notNull()
}, ({ collection, key }) => [primaryKey({ columns: [collection, key] })])

const tables = { users, mcpServers: servers, groups, bearerKeys, systemConfig, sections }
/** By the name of the section that each keeps; `sections` keeps the rest. */
export type TableName = keyof typeof tables
export const tableNames = Object.keys(tables) as TableName[]
// Only its type is wanted: all columns that any of these tables has.
// eslint-disable-next-line @typescript-eslint/no-unused-vars
const widest = pgTable('', { ...entry<unknown>(), name: text(), tokenHash: text() })
/** A row, with all columns that any of these tables has. */
export type Stored = typeof widest.$inferSelect
/** A table by name, as one with all columns: Drizzle writes and reads those that are there. */
export const tableOf = (name: TableName): typeof widest => tables[name] as unknown as typeof widest
