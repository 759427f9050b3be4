import { randomUUID } from 'node:crypto'
import type { Change, Snapshot, StoredGroup } from '../../db/store.ts'
import { errors } from '../errors/list.ts'
import { maskConfig } from '../secrets/mask.ts'
import type { Committed } from '../settings/settings.ts'

type Json = Record<string, unknown>

/** One change of one entity. Secrets are masked; passwords and tokens are left out. */
export interface AuditEntry {
  id: string
  /** ISO 8601. */
  timestamp: string
  /** The user who asked for it; `system`: a bearer key without an owner. */
  username: string
  action: 'create' | 'update' | 'delete'
  entity: 'user' | 'server' | 'group' | 'key' | 'prompt' | 'resource' | 'systemConfig'
  /** The name of the entity (of a resource, its URI); of a renamed server the former one. Ids are in `before` or `after`. */
  name: string
  /** The entity before the change; absent for `create`. `{id?, name?, truncated: true}` when it is too large to be kept. */
  before?: Json
  /** The entity after the change; absent for `delete`. As `before` when it is too large. */
  after?: Json
}

/** An entry as it is kept: `before` and `after` as JSON text, which takes less memory. */
type StoredEntry = Omit<AuditEntry, 'before' | 'after'> & { before?: string, after?: string }

/** Max number of entries, and max characters of one `before` or `after` (`part`) and of all of them (`size`). */
export interface AuditBounds { entries: number, part: number, size: number }

/** The newest changes made by the management API, in memory. */
export class Audit {
  readonly #bounds: AuditBounds
  readonly #notify: (entry: StoredEntry) => void
  readonly #entries: StoredEntry[] = []
  #size = 0

  /** @param notify called with each new entry */
  constructor (bounds: AuditBounds, notify: (entry: StoredEntry) => void) {
    this.#bounds = bounds
    this.#notify = notify
  }

  /** Adds an entry for each change of a commit. Commits without an author, such as the last use of keys, make no entries. */
  add (committed: Committed): void {
    if (committed.by === undefined) return
    for (const change of committed.changes) {
      const entry = toEntry(change, committed, this.#bounds.part)
      if (!entry) continue
      this.#entries.push(entry)
      this.#size += sizeOf(entry)
      this.#trim()
      this.#notify(entry)
    }
  }

  /**
   * One page, the newest first.
   * @param cursor the `nextCursor` of the page before, which is absent on the last one
   * @throws InvalidInput for a cursor whose entry is not, or no longer, in the list
   */
  list (limit: number, cursor?: string): { data: AuditEntry[], nextCursor?: string } {
    const newestFirst = [...this.#entries].reverse()
    const from = cursor === undefined ? 0 : newestFirst.findIndex(({ id }) => id === cursor) + 1
    if (cursor !== undefined && from === 0) {
      throw new errors.InvalidInput('"cursor" is not (or no longer) one of this list: begin again without it')
    }
    const page = newestFirst.slice(from, from + limit)
    const last = page.at(-1)
    const hasMore = last !== undefined && from + limit < newestFirst.length
    return { data: page.map(toShown), ...(hasMore ? { nextCursor: last.id } : {}) }
  }

  /** Drops the oldest entries until the others are within the bounds. */
  #trim (): void {
    while (this.#entries.length > this.#bounds.entries || this.#size > this.#bounds.size) {
      this.#size -= sizeOf(this.#entries.shift())
    }
  }
}

function toEntry (change: Change, { by = '', former, next }: Committed, maxSize: number): StoredEntry | undefined {
  const { before, after, entity, name } = partsOf(change, former, next)
  if (before === undefined && after === undefined) return undefined
  return {
    id: randomUUID(),
    timestamp: new Date().toISOString(),
    username: by,
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
  const text = JSON.stringify(part)
  return text.length > maxSize ? JSON.stringify({ id: part.id, name: part.name, truncated: true }) : text
}

const sizeOf = ({ before = '', after = '' }: Pick<StoredEntry, 'before' | 'after'> = {}): number => before.length + after.length

const toShown = ({ before, after, ...entry }: StoredEntry): AuditEntry => ({
  ...entry,
  ...(before === undefined ? {} : { before: JSON.parse(before) as Json }),
  ...(after === undefined ? {} : { after: JSON.parse(after) as Json })
})

/** The entity of a change, before and after it. */
interface Parts { entity: AuditEntry['entity'], name: string, before?: Json, after?: Json }

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
