import type { AuditEntry, AuditFilter, AuditTrail } from '../../db/audit-trail.ts'

/** Max number of entries, and max characters of all `before` and `after` together. */
export interface TrailBounds { readonly entries: number, readonly size: number }

const sizeOf = ({ before = '', after = '' }: Partial<AuditEntry> = {}): number => before.length + after.length

/** How many entries must be dropped from the beginning of a list for the others to be within its bounds. */
export function tooMany (entries: readonly AuditEntry[], bounds: TrailBounds): number {
  let size = entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
  let dropped = 0
  while (entries.length - dropped > bounds.entries || size > bounds.size) size -= sizeOf(entries[dropped++])
  return dropped
}

/** The newest entries, in the memory of this process; beyond the bounds, the oldest are dropped. */
export class MemoryTrail implements AuditTrail {
  readonly #bounds: TrailBounds
  readonly #entries: AuditEntry[] = []

  constructor (bounds: TrailBounds) {
    this.#bounds = bounds
  }

  async append (entries: readonly AuditEntry[]): Promise<void> {
    for (const entry of entries) this.#entries.push(entry)
    this.#entries.splice(0, tooMany(this.#entries, this.#bounds))
  }

  async list (filter: AuditFilter, limit: number, after?: string): Promise<AuditEntry[] | undefined> {
    const newestFirst = this.#entries.toReversed()
    const from = after === undefined ? 0 : newestFirst.findIndex(({ id }) => id === after) + 1
    if (after !== undefined && from === 0) return undefined
    return newestFirst.slice(from).filter((entry) => matches(entry, filter)).slice(0, limit)
  }

  async trim (): Promise<number> { return 0 }
}

function matches (entry: AuditEntry, { from = -Infinity, to = Infinity, ...equal }: AuditFilter): boolean {
  if (entry.timestamp < from || entry.timestamp >= to) return false
  return (Object.entries(equal) as Array<[keyof typeof equal, string | undefined]>).every(([name, value]) =>
    value === undefined || entry[name] === value
  )
}
