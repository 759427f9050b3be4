import { waitAtMost } from '../../../protocol/wait-at-most.ts'
import { messageOf } from '../../../db/errors.ts'
import type { AuditEntry, AuditFilter, AuditTrail } from '../../../db/audit-trail.ts'
import type { Author } from '../access/author.ts'
import { type DateRange, parseDateRange } from '../../base/body/index.ts'
import { awaitActivityOrAuditQuery, errors } from '../../base/errors/index.ts'
import type { CommitEvent } from '../settings.ts'
import { entriesOfCommit, toAuditEntry, type AuditedChange } from './entries.ts'
import { BoundedAuditEntries, type TrailBounds } from './memory-trail.ts'

type Json = Record<string, unknown>

export interface ShownAuditEntry extends Omit<AuditEntry, 'timestamp' | 'before' | 'after'> {
  /** The time of the change, in ISO 8601. */
  timestamp: string
  /** The entity before the change; absent for `create`. `{id?, name?, truncated: true}` if it is too large. */
  before?: Json
  /** The entity after the change; absent for `delete`. It is truncated like `before` if it is too large. */
  after?: Json
}

type AuditQuery = Omit<AuditFilter, 'from' | 'to'> & DateRange & { readonly limit?: number, readonly cursor?: string }

interface AuditDeps {
  readonly trail: AuditTrail
  /**
   * Limits. `entries` and `size` apply to the entries that wait for the storage: beyond them, the oldest entries of the
   * actor with the largest share are dropped. `part`: max characters of one `before` or `after`; `stored`: max entries
   * in the trail.
   */
  readonly bounds: TrailBounds & { readonly part: number, readonly stored: number }
  /** Masks the credentials in the texts of an entry. Default: texts are stored as they are. */
  readonly mask?: (text: string) => string
  /** Called with each new entry. */
  readonly notify: (entry: AuditEntry) => void
  readonly warn: (sentence: string) => void
}

/** Delay before a failed write is retried, in ms. */
const retryDelay = 2_000
/** Number of new entries after which the trail is trimmed. */
const trimInterval = 100
const defaultLimit = 50

/** The audit log: the changes made by the management API. */
export class AuditLog {
  readonly #deps: AuditDeps
  readonly #waiting: BoundedAuditEntries
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #sinceTrim = 0
  #hasFailed = false

  constructor (deps: AuditDeps) {
    this.#deps = deps
    this.#waiting = new BoundedAuditEntries(deps.bounds)
  }

  /** Adds an entry for each change of a commit. Commits without an author, such as the last use of a key, add none. */
  addCommit (committed: CommitEvent): void {
    this.#add(entriesOfCommit(committed, this.#deps.bounds.part))
  }

  /** Adds an entry for a change outside the settings. @param by a username, or an author with a bearer key */
  addChange (by: string | Author, parts: AuditedChange): void {
    const entry = toAuditEntry(typeof by === 'string' ? { username: by } : by, parts, this.#deps.bounds.part)
    if (entry) this.#add([entry])
  }

  #add (given: readonly AuditEntry[]): void {
    const { notify, warn, mask = (text) => text } = this.#deps
    const entries = given.map(({ before, after, ...entry }): AuditEntry => ({
      ...entry,
      name: mask(entry.name),
      ...(before === undefined ? {} : { before: mask(before) }),
      ...(after === undefined ? {} : { after: mask(after) })
    }))
    for (const entry of entries) notify(entry)
    const dropped = this.#waiting.add(entries)
    if (dropped > 0) warn(`${dropped} changes are only in the audit log of the process: the database is unavailable`)
    this.#write().catch(() => {})
  }

  /**
   * Returns one page of entries, newest first, including all changes whose requests have been answered.
   * @param query `cursor`: the `nextCursor` of the previous page; the last page has none
   * @throws InvalidInput if the entry that the cursor refers to is not, or no longer, in the list; RecordsAway
   */
  async list (query: AuditQuery): Promise<{ data: ShownAuditEntry[], nextCursor?: string }> {
    const { limit = defaultLimit, cursor, startDate, endDate, ...equal } = query
    const filter = { ...equal, ...parseDateRange({ startDate, endDate }) }
    const found =
      await awaitActivityOrAuditQuery(
        this.#write().then(async () => await this.#deps.trail.list(filter, limit + 1, cursor))
      )
    if (found === undefined) {
      throw new errors.InvalidInput('"cursor" is not (or no longer) valid for this list: start again without it')
    }
    const page = found.slice(0, limit)
    const last = page.at(-1)
    return { data: page.map(toShown), ...(last !== undefined && found.length > limit ? { nextCursor: last.id } : {}) }
  }

  /** Writes the pending entries. @param timeout max time to wait, in ms */
  async close (timeout: number): Promise<void> {
    clearTimeout(this.#timer)
    await waitAtMost(timeout, this.#write().catch(() => {}))
    clearTimeout(this.#timer)
    if (this.#waiting.size > 0) {
      this.#deps.warn(`${this.#waiting.size} changes are only in the audit log of the process`)
    }
  }

  /** Resolves when no entry is pending. @throws StorageError; the write is then retried in the background */
  async #write (): Promise<void> {
    clearTimeout(this.#timer)
    await (this.#writing ??= this.#writeAll().finally(() => { this.#writing = undefined }))
    if (this.#waiting.size > 0) await this.#write()
  }

  async #writeAll (): Promise<void> {
    const { trail, bounds, warn } = this.#deps
    const entries = [...this.#waiting]
    if (entries.length === 0) return
    try {
      await trail.append(entries)
      if (this.#hasFailed) warn('the audit log can be written again')
      this.#hasFailed = false
    } catch (error) {
      if (!this.#hasFailed) {
        warn(`the audit log cannot be written now: ${messageOf(error)}`)
      }
      this.#hasFailed = true
      this.#timer = setTimeout(() => { this.#write().catch(() => {}) }, retryDelay).unref()
      throw error
    }
    for (const entry of entries) this.#waiting.delete(entry)
    if ((this.#sinceTrim += entries.length) < trimInterval) return
    this.#sinceTrim = 0
    await trail.trim(bounds.stored)
  }
}

const toShown = ({ timestamp, before, after, ...entry }: AuditEntry): ShownAuditEntry => ({
  ...entry,
  timestamp: new Date(timestamp).toISOString(),
  ...(before === undefined ? {} : { before: valueOf(before) }),
  ...(after === undefined ? {} : { after: valueOf(after) })
})

/** Parses a stored value. Invalid JSON is returned as text, so that one bad row does not fail the list. */
function valueOf (text: unknown): Json {
  try {
    return typeof text === 'string' ? JSON.parse(text) as Json : text as Json
  } catch {
    return text as Json
  }
}
