// The tables of the recorded calls and of the audit log.
import { sql } from 'drizzle-orm'
import { bigint, bigserial, doublePrecision, index, jsonb, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import type { AuditEntry } from '../audit-trail.ts'
import type { ActivityStatus } from '../ports/activities.ts'

/** The columns by which calls are filtered. */
const filterColumns = () => ({
  status: text().$type<ActivityStatus>().notNull(),
  server: text().notNull(),
  tool: text().notNull(),
  group: text(),
  username: text(),
  keyId: text('key_id'),
  keyName: text('key_name')
})

/**
 * The recorded calls; `timestamp` in ms since 1970. Each filter column has an index in the order of a page. There is no
 * index on `status`: most calls succeed, so partial indexes of the failed ones are enough. The index on tools includes
 * the server, since a tool is mostly filtered together with its server, and combining two indexes would look up each
 * call separately. `data` and `sealed` contain the encrypted members: `input`, `output`, `errorMessage`, `policy`,
 * `guards` and `refused`. `sealedBy` is the id of their encryption key, by which they are counted without reading them.
 */
export const activities = pgTable('activities', {
  id: uuid().primaryKey(),
  timestamp: bigint({ mode: 'number' }).notNull(),
  ...filterColumns(),
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
  // Failed calls are few, and operators look for them: with these indexes, no successful calls are read to find them.
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
 * The recorded calls of each hour (counted from 1970), grouped by the filter columns: their number, and the sum of
 * their durations in ms. `hash` is the hash of the other columns. Each row is updated by the statement that adds or
 * removes the calls. The columns that are read for sums come first, where PostgreSQL reads them fastest.
 */
export const activityHours = pgTable('activity_hours', {
  hour: bigint({ mode: 'number' }).notNull(),
  calls: bigint({ mode: 'number' }).notNull(),
  duration: doublePrecision().notNull(),
  ...filterColumns(),
  hash: text().notNull()
}, ({ hour, hash }) => [primaryKey({ columns: [hour, hash] })])

/**
 * The audit log; `timestamp` in ms since 1970. `data` and `sealed` contain `before`, `after` and the bearer key,
 * encrypted: although their secrets are masked, only admins may read them.
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
