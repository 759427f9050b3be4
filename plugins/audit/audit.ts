import { randomUUID } from 'node:crypto'
import type { Change, Snapshot, StoredGroup } from '../../db/store.ts'
import { errors } from '../errors/list.ts'
import { maskConfig } from '../secrets/mask.ts'
import type { Committed } from '../settings/settings.ts'

type Json = Record<string, unknown>

/** One thing that somebody wrote. Secrets are masked, passwords and tokens left out. */
export interface AuditEntry {
  id: string
  /** ISO 8601. */
  timestamp: string
  /** Who wrote it; `system`: a bearer key that has no owner. */
  username: string
  action: 'create' | 'update' | 'delete'
  entity: 'user' | 'server' | 'group' | 'key' | 'systemConfig'
  /** Its name, before where it has another one now; a key's or group's id is in `before` or `after`. */
  name: string
  /** Of what is too large to be kept: `{id?, name?, truncated: true}`. */
  before?: Json
  after?: Json
}

/** An entry as it is kept: what was written as text, which takes less room. */
type Kept = Omit<AuditEntry, 'before' | 'after'> & { before?: string, after?: string }

/** How many entries are kept, and characters of what was written: in one before or after, and in all. */
export interface AuditBounds { entries: number, part: number, size: number }

/** The newest writes of the management API, in memory. Each is also told to whoever listens. */
export class Audit {
  readonly #bounds: AuditBounds
  readonly #tell: (entry: Kept) => void
  readonly #entries: Kept[] = []
  #size = 0

  /** @param tell called for each */
  constructor (bounds: AuditBounds, tell: (entry: Kept) => void) {
    this.#bounds = bounds
    this.#tell = tell
  }

  /** What the gateway writes by itself (when a key was last used) is nobody's deed. */
  add (committed: Committed): void {
    if (committed.by === undefined) return
    for (const change of committed.changes) {
      const entry = toEntry(change, committed, this.#bounds.part)
      if (!entry) continue
      this.#entries.push(entry)
      this.#size += sizeOf(entry)
      while (this.#entries.length > this.#bounds.entries || this.#size > this.#bounds.size) this.#size -= sizeOf(this.#entries.shift())
      this.#tell(entry)
    }
  }

  /**
   * One page, the newest first.
   * @param cursor the `nextCursor` of the page before, which is absent on the last one
   * @throws InvalidInput for a cursor that is none, or whose entry is forgotten
   */
  list (limit: number, cursor?: string): { data: AuditEntry[], nextCursor?: string } {
    const newestFirst = [...this.#entries].reverse()
    const from = cursor === undefined ? 0 : newestFirst.findIndex(({ id }) => id === cursor) + 1
    if (cursor !== undefined && from === 0) {
      throw new errors.InvalidInput('"cursor" is not (or no longer) one of this list: begin again without it')
    }
    const page = newestFirst.slice(from, from + limit)
    const last = page.at(-1)
    return { data: page.map(shown), ...(last && from + limit < newestFirst.length ? { nextCursor: last.id } : {}) }
  }
}

function toEntry (change: Change, { by = '', former, next }: Committed, most: number): Kept | undefined {
  const { before, after, entity, name } = partsOf(change, former, next)
  if (before === undefined && after === undefined) return undefined
  const action = before === undefined ? 'create' : after === undefined ? 'delete' : 'update'
  return {
    id: randomUUID(),
    timestamp: new Date().toISOString(),
    username: by,
    action,
    entity,
    name,
    before: before && textOf(before, most),
    after: after && textOf(after, most)
  }
}

function textOf (part: Json, most: number): string {
  const text = JSON.stringify(part)
  return text.length > most ? JSON.stringify({ id: part.id, name: part.name, truncated: true }) : text
}

const sizeOf = ({ before = '', after = '' }: Pick<Kept, 'before' | 'after'> = {}): number => before.length + after.length

const shown = ({ before, after, ...entry }: Kept): AuditEntry => ({
  ...entry,
  ...(before === undefined ? {} : { before: JSON.parse(before) as Json }),
  ...(after === undefined ? {} : { after: JSON.parse(after) as Json })
})

interface Parts { entity: AuditEntry['entity'], name: string, before?: Json, after?: Json }

function partsOf (change: Change, former: Snapshot, next: Snapshot): Parts {
  switch (change.entity) {
    case 'systemConfig':
      return { entity: 'systemConfig', name: 'systemConfig', before: maskConfig(former.system), after: maskConfig(next.system) }
    case 'mcpServers': {
      const [before, after] = [former.servers.get(change.key)?.config, next.servers.get(change.rename ?? change.key)?.config]
      // Both have a name, since that may be what changed.
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
        before: before && asWritten(before),
        after: after && asWritten(after)
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

const asWritten = ({ members, ...group }: StoredGroup): Json => ({ ...group, servers: members })
const withoutToken = ({ token: _token, tokenHash: _hash, ...key }: Json): Json => key
const withoutPassword = ({ password: _password, ...user }: Json): Json => user
