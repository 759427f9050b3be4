// The tables of what has happened: calls, and changes of the settings.
import { sql } from 'drizzle-orm'
import { bigint, bigserial, doublePrecision, index, jsonb, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import type { AuditEntry } from '../audit-trail.ts'
import type { ActivityStatus } from '../ports/activities.ts'

/** What a call is filtered by. */
const dimensions = () => ({
  server: text().notNull(),
  tool: text().notNull(),
  status: text().$type<ActivityStatus>().notNull(),
  group: text(),
  username: text(),
  keyId: text('key_id'),
  keyName: text('key_name')
})

/**
 * The recorded calls; `timestamp` in ms since 1970. Each column that calls are filtered by has an index in the order of
 * a page. Most calls succeed, so an index of the failed ones serves both. The one of tools holds their servers too: a
 * tool is mostly asked for with its server, and two indexes that are combined lead to each call by itself. `data` and
 * `sealed` hold `input`, `output` and `errorMessage`. `sealedBy` is the id of the key, since the sealed texts are too
 * long to be read for counting.
 */
export const activities = pgTable('activities', {
  id: uuid().primaryKey(),
  timestamp: bigint({ mode: 'number' }).notNull(),
  ...dimensions(),
  duration: doublePrecision().notNull(),
  sourceIp: text('source_ip'),
  clientId: text('client_id'),
  clientName: text('client_name'),
  data: jsonb().$type<{ secret: string }>(),
  sealed: text(),
  sealedBy: text('sealed_by')
}, ({ id, timestamp, server, tool, status, group, username, keyId, keyName, sealedBy }) => [
  index('activities_timestamp').on(timestamp, id),
  index('activities_server').on(server, timestamp, id),
  index('activities_tool').on(tool, timestamp, id, server),
  // Errors are few, and what an operator looks for: of one who has none, no other calls are read.
  index('activities_errors').on(timestamp, id).where(sql`${status} = 'error'`),
  index('activities_errors_server').on(server, timestamp, id).where(sql`${status} = 'error'`),
  index('activities_errors_tool').on(tool, timestamp, id).where(sql`${status} = 'error'`),
  index('activities_errors_username').on(username, timestamp, id).where(sql`${status} = 'error'`),
  index('activities_errors_key_name').on(keyName, timestamp, id).where(sql`${status} = 'error'`),
  index('activities_group').on(group, timestamp, id).where(sql`${group} is not null`),
  index('activities_username').on(username, timestamp, id),
  index('activities_key').on(keyId, timestamp, id).where(sql`${keyId} is not null`),
  index('activities_key_name').on(keyName, timestamp, id).where(sql`${keyName} is not null`),
  index('activities_sealed_by').on(sealedBy).where(sql`${sealedBy} is not null`)
])

/**
 * The recorded calls of each hour (counted from 1970) that are alike in what they are filtered by: their number, and
 * the sum of their durations in ms. `hash` is that of the other columns. Each row changes with the calls, in one
 * statement.
 */
export const activityHours = pgTable('activity_hours', {
  hour: bigint({ mode: 'number' }).notNull(),
  hash: text().notNull(),
  ...dimensions(),
  calls: bigint({ mode: 'number' }).notNull(),
  duration: doublePrecision().notNull()
}, ({ hour, hash }) => [primaryKey({ columns: [hour, hash] })])

/**
 * The audit log; `timestamp` in ms since 1970. `data` and `sealed` hold `before`, `after` and the key: they are masked
 * for people, and may still name what only admins are to see.
 */
export const auditEntries = pgTable('audit', {
  number: bigserial({ mode: 'number' }).primaryKey(),
  id: uuid().notNull().unique(),
  timestamp: bigint({ mode: 'number' }).notNull(),
  username: text().notNull(),
  action: text().$type<AuditEntry['action']>().notNull(),
  entity: text().$type<AuditEntry['entity']>().notNull(),
  name: text().notNull(),
  data: jsonb().$type<{ secret: string }>().notNull(),
  sealed: text()
}, ({ number, username, entity }) => [
  index('audit_username').on(username, number),
  index('audit_entity').on(entity, number)
])
