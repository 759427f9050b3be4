import { randomUUID } from 'node:crypto'
import type { AuditEntry } from '../../../db/audit-trail.ts'
import type { Change, Snapshot, StoredGroup } from '../../../db/store.ts'
import type { Author } from '../access/author.ts'
import { maskConfig } from '../../base/secrets/index.ts'
import type { Committed } from '../settings.ts'

type Json = Record<string, unknown>

/**
 * The entries for a commit: one for each changed entity. Secrets are masked; passwords and tokens are left out. The name of a renamed
 * server is the former one; the id of a key or group is in `before` or `after`.
 * @param maxSize of one `before` or `after`, in characters; beyond: it is `{id?, name?, truncated: true}`
 */
export function entriesOfCommit (committed: Committed, maxSize: number): AuditEntry[] {
  if (committed.by === undefined) return []
  const { by, changes, former, next } = committed
  return changes.flatMap((change) => entryOf(by, partsOf(change, former, next), maxSize) ?? [])
}

/** The entry for a change; undefined: there was nothing, and there is nothing. @param maxSize as for `entriesOf` */
export function entryOf (by: Author, { before, after, entity, name }: Parts, maxSize: number): AuditEntry | undefined {
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
  // What is much too large is not put into words first.
  const text = leastSize(part, maxSize) > maxSize ? undefined : JSON.stringify(part)
  return text === undefined || text.length > maxSize ? JSON.stringify({ id: part.id, name: part.name, truncated: true }) : text
}

/** A length that the JSON text of a value has at least, in characters; the count stops above `max`. */
function leastSize (value: unknown, max: number): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return value === undefined ? 0 : 1
  let size = 2
  for (const name of Object.keys(value)) {
    if (size > max) break
    const each = (value as Json)[name]
    if (each !== undefined) size += (Array.isArray(value) ? 0 : name.length + 3) + leastSize(each, max - size)
  }
  return size
}

/** The entity of a change, before and after it, without secrets. */
export interface Parts { entity: AuditEntry['entity'], name: string, before?: Json, after?: Json }

function partsOf (change: Change, former: Snapshot, next: Snapshot): Parts {
  switch (change.entity) {
    case 'systemConfig':
      return { entity: 'systemConfig', name: 'systemConfig', before: maskConfig(former.system), after: maskConfig(next.system) }
    case 'mcpServers': {
      const [before, after] = [former.servers.get(change.key)?.config, next.servers.get(change.rename ?? change.key)?.config]
      // Both have the name, since a change may be a renaming.
      return {
        entity: 'server',
        name: change.key,
        before: before && { name: change.key, config: maskConfig(before) },
        after: after && { name: change.rename ?? change.key, config: maskConfig(after) }
      }
    }
    case 'groups': {
      const [before, after] = [former.groups.get(change.key), next.groups.get(change.key)]
      return {
        entity: 'group',
        name: (after ?? before)?.name ?? change.key,
        before: before && withServers(before),
        after: after && withServers(after)
      }
    }
    case 'bearerKeys': {
      const [before, after] = [former.keys.get(change.key), next.keys.get(change.key)]
      return {
        entity: 'key',
        name: (after ?? before)?.name ?? change.key,
        before: before && withoutToken(before),
        after: after && withoutToken(after)
      }
    }
    case 'prompts': {
      const [before, after] = [former.prompts.get(change.key), next.prompts.get(change.key)]
      return { entity: 'prompt', name: (after ?? before)?.name ?? change.key, before, after }
    }
    case 'resources': {
      const [before, after] = [former.resources.get(change.key), next.resources.get(change.key)]
      return { entity: 'resource', name: (after ?? before)?.uri ?? change.key, before, after }
    }
    case 'users': {
      const [before, after] = [former.users.get(change.key), next.users.get(change.key)]
      return {
        entity: 'user',
        name: change.key,
        before: before && withoutPassword(before),
        after: after && { ...withoutPassword(after), ...(before && before.password !== after.password ? { passwordChanged: true } : {}) }
      }
    }
  }
}

/** A group with its members under the name that the API uses. */
const withServers = ({ members, ...group }: StoredGroup): Json => ({ ...group, servers: members })
const withoutToken = ({ token: _token, tokenHash: _hash, ...key }: Json): Json => key
const withoutPassword = ({ password: _password, ...user }: Json): Json => user
