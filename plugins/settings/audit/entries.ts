import { randomUUID } from 'node:crypto'
import type { AuditEntry } from '../../../db/audit-trail.ts'
import { entities, entityFactsOf, type EntityName } from '../../../db/entities.ts'
import type { Change, Snapshot } from '../../../db/store.ts'
import type { Author } from '../access/author.ts'
import { maskConfig } from '../../base/secrets/index.ts'
import type { CommitEvent } from '../settings.ts'

type Json = Record<string, unknown>

/**
 * Creates the audit entries for a commit: one for each changed entity. Secrets are masked; passwords and tokens are
 * omitted. The entry of a renamed server has the former name; the id of a key or group is in `before` or `after`.
 * @param maxSize max characters of one `before` or `after`; a larger one is replaced by `{id?, name?, truncated: true}`
 */
export function entriesOfCommit (committed: CommitEvent, maxSize: number): AuditEntry[] {
  if (committed.by === undefined) return []
  const { by, changes, former, next } = committed
  return changes.flatMap((change) => toAuditEntry(by, toAuditedChange(change, former, next), maxSize) ?? [])
}

/**
 * Creates the audit entry for a change; undefined if the entity exists neither before nor after it.
 * @param maxSize max characters of `before` and of `after`
 */
export function toAuditEntry (
  by: Author, { before, after, entity, name }: AuditedChange, maxSize: number
): AuditEntry | undefined {
  if (before === undefined && after === undefined) return undefined
  return {
    id: randomUUID(),
    timestamp: Date.now(),
    ...by,
    action: actionOf(before, after),
    entity,
    name,
    before: before && textOf(before, maxSize),
    after: after && textOf(after, maxSize)
  }
}

function actionOf (before: Json | undefined, after: Json | undefined): AuditEntry['action'] {
  if (before === undefined) return 'create'
  return after === undefined ? 'delete' : 'update'
}

function textOf (part: Json, maxSize: number): string {
  // A value that is far too large is not serialized at all.
  const text = minJsonSize(part, maxSize) > maxSize ? undefined : JSON.stringify(part)
  return text === undefined || text.length > maxSize
    ? JSON.stringify({ id: part.id, name: part.name, truncated: true })
    : text
}

/** Returns a lower bound for the length of a value's JSON text, in characters. Counting stops above `max`. */
function minJsonSize (value: unknown, max: number): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return value === undefined ? 0 : 1
  let size = 2
  for (const name of Object.keys(value)) {
    if (size > max) break
    const each = (value as Json)[name]
    if (each !== undefined) size += (Array.isArray(value) ? 0 : name.length + 3) + minJsonSize(each, max - size)
  }
  return size
}

/** A change of one entity. `before` and `after` contain no secrets. */
export interface AuditedChange { entity: AuditEntry['entity'], name: string, before?: Json, after?: Json }

function toAuditedChange (change: Change, former: Snapshot, next: Snapshot): AuditedChange {
  if (change.entity === 'systemConfig') {
    return {
      entity: 'systemConfig', name: 'systemConfig', before: maskConfig(former.system), after: maskConfig(next.system)
    }
  }
  if (change.entity === 'order') {
    const { member, noun } = entities[change.of]
    return {
      entity: noun, name: 'order', before: { ids: [...former[member].keys()] }, after: { ids: [...next[member].keys()] }
    }
  }
  const { member, noun, label } = entities[change.entity]
  const { key, rename = key } = change
  const [before, after] = [former[member].get(key), next[member].get(rename)] as [Json | undefined, Json | undefined]
  const hasNewPassword = change.entity === 'users' && before !== undefined && before.password !== after?.password
  return {
    entity: noun,
    // `before` and `after` of a server contain its name, since a change may rename it.
    name: change.entity === 'mcpServers' ? key : String((after ?? before)?.[label] ?? key),
    before: before && withoutCredentials(change.entity, before),
    after: after && { ...withoutCredentials(change.entity, after), ...hasNewPassword ? { passwordChanged: true } : {} }
  }
}

/** Returns an entry as the API shows it, without credentials. */
function withoutCredentials (entity: EntityName, item: Json): Json {
  if (entity === 'mcpServers') return { name: item.name, config: maskConfig(item.config as Json) }
  const { members, ...rest } = item
  const { credentials = [] } = entityFactsOf(entity)
  const kept = Object.entries(rest).filter(([name]) => !credentials.includes(name))
  return { ...Object.fromEntries(kept), ...members === undefined ? {} : { servers: members } }
}
