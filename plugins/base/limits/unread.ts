import type { ServerResponse } from 'node:http'
import { RequestTable } from '../../../protocol/table.ts'
import { memory } from './memory.ts'
import { baseLimits } from './limits.ts'

/** All responses whose unread bytes are counted, by number. */
const countedReplies = new RequestTable<number, UnreadReply>()
let lastNumber = 0

export interface UnreadReplyOptions {
  /** The owner whose share the response counts against; undefined: none. */
  readonly owner?: string
  /** Memory per unread byte. */
  readonly cost?: number
}

/**
 * The bytes of one HTTP response that its client has not read yet. They count against the memory budget; when it is
 * exceeded, the connection with the most unread bytes is closed.
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
   * @param onClose adds a listener for the end of the connection; default: the end of the response
   * @param unwrittenBytes returns the number of bytes of the response that are not written yet
   */
  constructor (
    raw: ServerResponse,
    onClose: (listener: () => void) => void = (listener) => { raw.once('close', listener) },
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
    memory.add((bytes - this.#bytes) * this.#cost, this.#owner)
    this.#bytes = bytes
    return bytes
  }

  /** Updates the count after a write. While the memory budget is exceeded, closes the slowest reader. */
  recordWrite (): void {
    this.updateCount()
    let isRelieved = true
    while (isRelieved && memory.held > memory.max) isRelieved = closeSlowestReader(0)
  }

  /** Whether the client has read nothing for the given time, in ms. */
  hasStalledFor (time: number): boolean { return Date.now() - this.#readAt >= time }

  close (): void {
    this.#forget()
    this.#raw.destroy()
  }

  #forget (): void {
    if (countedReplies.take(this.#number)) memory.add(-this.#bytes * this.#cost, this.#owner)
  }
}

/**
 * Closes the connection with the most unread bytes.
 * @param stall considers only clients that have read nothing for this time, in ms
 * @returns false if no more memory can be freed
 */
function closeSlowestReader (stall: number): boolean {
  const before = memory.held
  const [slowest] = countedReplies.values().sort((a, b) => b.updateCount() - a.updateCount()).filter((reader) =>
    reader.hasStalledFor(stall))
  // Sorting has updated the counts, which frees memory if clients have read in the meantime.
  if (memory.held < before) return true
  if (!slowest || slowest.updateCount() <= maxUncountedReply) return false
  slowest.close()
  return true
}

memory.setReliever(() => closeSlowestReader(baseLimits.readStall))

/** Max size of responses that are not counted, in bytes. */
export const maxUncountedReply = 64 * 1024
