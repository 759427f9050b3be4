// The tables of recorded calls and of the audit log.
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
 * The recorded calls; `timestamp` is in ms since 1970. Each filter column except `status` has an index in which the
 * calls with one value are sorted as on a page: by time. An index on `status` is not needed: most calls succeed, so
 * partial indexes of the failed ones are enough. The index on tools includes the server, since calls are mostly
 * filtered by tool and server together, and combining two indexes would look up each call separately. `sealed` contains
 * the members `input`, `output`, `errorMessage`, `policy`, `guards` and `refused` in encrypted form, with a mask in
 * `data`. `sealedBy` is the id of the encryption key, so that calls can be counted by key without reading `sealed`.
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
  // Failed calls are few, and operators look for them: with these indexes, finding them reads no successful calls.
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
 * Sums of the recorded calls of each hour with the same values in the filter columns. `hour`: the number of the hour,
 * counted from 1970; `calls`: the number of calls; `duration`: the sum of their durations in ms; `hash`: the hash of
 * the filter columns. The statement that adds or removes calls also updates their sums. The columns that are read for
 * sums come first, where PostgreSQL reads them fastest.
 */
export const activityHours = pgTable('activity_hours', {
  hour: bigint({ mode: 'number' }).notNull(),
  calls: bigint({ mode: 'number' }).notNull(),
  duration: doublePrecision().notNull(),
  ...filterColumns(),
  hash: text().notNull()
}, ({ hour, hash }) => [primaryKey({ columns: [hour, hash] })])

/**
 * The audit log; `timestamp` is in ms since 1970. `sealed` contains `before`, `after`, `keyId` and `keyName` in
 * encrypted form, with a mask in `data`: only admins may read them, although they contain no secrets.
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
