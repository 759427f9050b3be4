import type { ServerResponse } from 'node:http'
import { RequestTable } from '../../../protocol/table.ts'
import { onceClosed } from './closed.ts'
import { memoryBudget } from './memory.ts'
import { baseLimits } from './limits.ts'

/** All responses whose unread bytes are counted, by serial number. */
const countedReplies = new RequestTable<number, UnreadReply>()
let lastNumber = 0

export interface UnreadReplyOptions {
  /** The owner against whose share of the memory budget the response counts; undefined: no share. */
  readonly owner?: string
  /** The memory that each unread byte takes, in bytes. Default: `baseLimits.unreadCost`. */
  readonly cost?: number
}

/**
 * Counts the unread bytes of one HTTP response against the memory budget. When the budget is exceeded, the connection
 * with the most unread bytes is closed.
 */
export class UnreadReply {
  readonly #number = ++lastNumber
  readonly #raw: ServerResponse
  readonly #unwrittenBytes: () => number
  readonly #owner: string | undefined
  readonly #cost: number
  #bytes = 0
  /** The time at which the client last read something, in ms since the epoch. */
  #readAt = Date.now()

  /**
   * @param onClose registers a listener that is to be called when the bytes no longer count; default: when the response
   * is closed
   * @param unwrittenBytes returns the number of bytes that count although they are not written to the response yet
   */
  constructor (
    raw: ServerResponse,
    onClose: (listener: () => void) => void = (listener) => { onceClosed(raw, listener) },
    unwrittenBytes = () => 0,
    { owner, cost = baseLimits.unreadCost }: UnreadReplyOptions = {}
  ) {
    this.#raw = raw
    this.#unwrittenBytes = unwrittenBytes
    this.#owner = owner
    this.#cost = cost
    countedReplies.set(this.#number, this)
    onClose(() => { this.#forget() })
  }

  /** Updates the number of unread bytes, and returns it. */
  updateCount (): number {
    if (!countedReplies.has(this.#number)) return 0
    const bytes = this.#raw.writableLength + this.#unwrittenBytes()
    if (bytes < this.#bytes) this.#readAt = Date.now()
    memoryBudget.add((bytes - this.#bytes) * this.#cost, this.#owner)
    this.#bytes = bytes
    return bytes
  }

  /** Updates the count after a write. While the memory budget is exceeded, disconnects the slowest readers. */
  recordWrite (): void {
    this.updateCount()
    let isRelieved = true
    while (isRelieved && memoryBudget.held > memoryBudget.max) isRelieved = closeSlowestReader(0)
  }

  /** Whether the client has read nothing for the given time, in ms. */
  hasStalledFor (time: number): boolean { return Date.now() - this.#readAt >= time }

  close (): void {
    this.#forget()
    this.#raw.destroy()
  }

  #forget (): void {
    if (countedReplies.take(this.#number)) memoryBudget.add(-this.#bytes * this.#cost, this.#owner)
  }
}

/**
 * Frees memory: counts the unread bytes again and, if they have not become fewer, closes the connection with the most.
 * @param stall only clients that have read nothing for this time, in ms, may be disconnected
 * @returns false if no more memory can be freed
 */
function closeSlowestReader (stall: number): boolean {
  const before = memoryBudget.held
  const [slowest] = countedReplies.values().sort((a, b) => b.updateCount() - a.updateCount()).filter((reader) =>
    reader.hasStalledFor(stall))
  // Sorting has updated the counts. They are lower if clients have read in the meantime.
  if (memoryBudget.held < before) return true
  if (!slowest || slowest.updateCount() <= maxUncountedReply) return false
  slowest.close()
  return true
}

memoryBudget.setReliever(() => closeSlowestReader(baseLimits.readStall))

/** Max size of responses whose unread bytes are not counted, in bytes. */
export const maxUncountedReply = 64 * 1024
