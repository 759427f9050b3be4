import type { ServerResponse } from 'node:http'
import { Table } from '../../../protocol/table.ts'
import { memory } from './memory.ts'
import { baseLimits } from './limits.ts'

/** All answers that are counted, by number. */
const readers = new Table<number, Unread>()
let numbers = 0

export interface UnreadOptions {
  /** The owner in whose share it counts; undefined: in nobody's. */
  readonly owner?: string
  /** Memory per unread byte. */
  readonly cost?: number
}

/**
 * The bytes of one HTTP answer that its client has not read yet. They count in the memory budget: beyond it, the
 * connection with the most unread bytes is closed.
 */
export class Unread {
  readonly #number = ++numbers
  readonly #raw: ServerResponse
  readonly #toWrite: () => number
  readonly #owner: string | undefined
  readonly #cost: number
  #bytes = 0
  /** When the client last read something, in ms since the epoch. */
  #readAt = Date.now()

  /**
   * @param onClose adds a listener for the end of the connection; default: to the answer itself
   * @param toWrite the bytes of the answer that are not written yet
   */
  constructor (
    raw: ServerResponse,
    onClose: (listener: () => void) => void = (listener) => { raw.once('close', listener) },
    toWrite = () => 0,
    { owner, cost = baseLimits.unreadCost }: UnreadOptions = {}
  ) {
    this.#raw = raw
    this.#toWrite = toWrite
    this.#owner = owner
    this.#cost = cost
    readers.set(this.#number, this)
    onClose(() => { this.#forget() })
  }

  /** Updates the count. @returns the unread bytes of this answer */
  count (): number {
    if (!readers.has(this.#number)) return 0
    const bytes = this.#raw.writableLength + this.#toWrite()
    if (bytes < this.#bytes) this.#readAt = Date.now()
    memory.add((bytes - this.#bytes) * this.#cost, this.#owner)
    this.#bytes = bytes
    return bytes
  }

  /**
   * Updates the count after a write, and closes the connections of the slowest readers while the memory budget is
   * exceeded.
   */
  add (): void {
    this.count()
    let isRelieved = true
    while (isRelieved && memory.held > memory.max) isRelieved = dropSlowest(0)
  }

  /** Whether the client has read nothing for so many ms. */
  stalls (time: number): boolean { return Date.now() - this.#readAt >= time }

  /** Closes the connection. */
  drop (): void {
    this.#forget()
    this.#raw.destroy()
  }

  #forget (): void {
    if (readers.take(this.#number)) memory.add(-this.#bytes * this.#cost, this.#owner)
  }
}

/**
 * Closes the connection with the most unread bytes.
 * @param stall of clients that have read nothing for so many ms
 * @returns false when no memory is left to gain
 */
function dropSlowest (stall: number): boolean {
  const before = memory.held
  const [slowest] = readers.values().sort((a, b) => b.count() - a.count()).filter((reader) => reader.stalls(stall))
  // Counting alone frees memory where clients have read meanwhile.
  if (memory.held < before) return true
  if (!slowest || slowest.count() <= worthCounting) return false
  slowest.drop()
  return true
}

memory.relieveBy(() => dropSlowest(baseLimits.readStall))

/** Answers up to this size, in bytes, are not counted. */
export const worthCounting = 64 * 1024
