import { messageOf } from '../../../db/errors.ts'
import type { Activities, Activity } from '../../../db/ports/activities.ts'
import { memoryOf } from '../../../protocol/text.ts'
import type { FinishedCall } from '../../gateway/index.ts'

/** Max number and max memory in bytes of waiting activities. Beyond either, new ones are shed. */
interface RecorderBounds { readonly entries: number, readonly size: number }

export interface RecorderDeps {
  readonly store: Pick<Activities, 'append'>
  readonly describe: (call: FinishedCall) => Activity
  /** Whether the database is known to be unavailable. */
  readonly isAway: () => boolean
  readonly bounds: RecorderBounds
  readonly log: (level: 'info' | 'warn', sentence: string) => void
}

/** Max time until an activity is written, in ms. */
const pause = 1_000
/** The number of waiting activities, and their memory in bytes, at which they are written at once. */
const full = { entries: 500, size: 1024 * 1024 }
/** Max number of activities in one batch, and its max memory in bytes, after which no activity is added. */
const batch = { entries: 1_000, size: 4 * 1024 * 1024 }
/** Longest pause between attempts to write, in ms. */
const maxPause = 5_000
/** Max attempts to write a batch that an available database rejects; then the batch is shed. */
const maxAttempts = 5
/** Max memory of the texts that are described in one turn of the event loop, in bytes. */
const turn = 256 * 1024
/** Estimated memory of an activity without its payloads, in bytes. */
const overhead = 512

const lengthOf = ({ exchange, output = '' }: FinishedCall): number => memoryOf(exchange.paramsText) + memoryOf(output)
const sizeOf = ({ input = '', output = '' }: Activity): number => overhead + memoryOf(input) + memoryOf(output)

/**
 * Writes calls to the database in batches. A call is described and written after its response. While the database is
 * slow or unavailable, calls beyond the bounds are shed and counted.
 */
export class ActivityRecorder {
  readonly #deps: RecorderDeps
  #calls: FinishedCall[] = []
  /** Their memory, in bytes. */
  #callsSize = 0
  #waiting: Activity[] = []
  #size = 0
  #written = 0
  #shed = 0
  #timer: NodeJS.Timeout | undefined
  #isTurnDue = false
  #writing: Promise<void> | undefined
  #failures = 0
  #closed = false

  constructor (deps: RecorderDeps) {
    this.#deps = deps
  }

  /** Number of written activities. */
  get written (): number { return this.#written }
  /** Number of activities that were not recorded. */
  get shed (): number { return this.#shed }
  /** Number of activities that wait to be written. */
  get waiting (): number { return this.#calls.length + this.#waiting.length }

  get #isFull (): boolean { return this.#waiting.length >= full.entries || this.#size >= full.size }

  /** Records a finished call. */
  note (call: FinishedCall): void {
    const { entries, size } = this.#deps.bounds
    if (this.#closed || this.waiting >= entries || this.#size + this.#callsSize >= size) {
      this.#shed++
      return
    }
    this.#calls.push(call)
    this.#callsSize += lengthOf(call)
    if (this.#isTurnDue) return
    this.#isTurnDue = true
    setImmediate(this.#turn)
  }

  /** Stops recording, and writes the waiting activities; sheds those left after the timeout. @param timeout in ms */
  async close (timeout: number): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#describe(Infinity)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, timeout) })
    await Promise.race([late, this.#writeAll()])
    clearTimeout(timer)
    if (this.#waiting.length === 0) return
    this.#deps.log('warn', `${this.#waiting.length} calls were not recorded: the database did not take them in time`)
    this.#shed += this.#waiting.length
    this.#waiting = []
  }

  readonly #turn = (): void => {
    this.#isTurnDue = false
    this.#describe(turn)
    if (this.#calls.length > 0 && !this.#closed) {
      this.#isTurnDue = true
      setImmediate(this.#turn)
    }
    if (this.#writing !== undefined || this.#closed) return
    if (this.#isFull && this.#failures === 0) this.#begin()
    else this.#writeIn(pause)
  }

  /** Describes calls until their texts exceed a size in bytes. */
  #describe (maxSize: number): void {
    let described = 0
    let count = 0
    for (const call of this.#calls) {
      if (described >= maxSize) break
      count++
      described += overhead + lengthOf(call)
      this.#callsSize -= lengthOf(call)
      try {
        const activity = this.#deps.describe(call)
        this.#waiting.push(activity)
        this.#size += sizeOf(activity)
      } catch {
        this.#shed++
      }
    }
    this.#calls = count === this.#calls.length ? [] : this.#calls.slice(count)
  }

  #writeIn (ms: number): void {
    this.#timer ??= setTimeout(() => { this.#begin() }, ms).unref()
  }

  #begin (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
      if (this.#closed || this.#waiting.length === 0) return
      if (this.#failures > 0) this.#writeIn(Math.min(maxPause, pause * 2 ** (this.#failures - 1)))
      else if (this.#isFull) this.#begin()
      else this.#writeIn(pause)
    })
  }

  #nextBatch (): Activity[] {
    let size = 0
    const end = this.#waiting.findIndex((activity, index) =>
      index >= batch.entries || (size += sizeOf(activity)) > batch.size)
    return end === -1 ? [...this.#waiting] : this.#waiting.slice(0, Math.max(1, end))
  }

  /** Writes one batch. A failed batch is kept and written again; `append` is idempotent. Never throws. */
  async #write (): Promise<void> {
    const next = this.#nextBatch()
    const { store, isAway, log } = this.#deps
    try {
      await store.append(next)
      this.#written += next.length
      if (this.#failures > 0) log('info', `calls are recorded again; ${this.#shed} were not recorded since the start`)
      this.#failures = 0
    } catch (error) {
      if (this.#failures++ === 0) {
        log('warn', `calls cannot be recorded now: ${messageOf(error)}`)
      }
      if (isAway() || this.#failures < maxAttempts) return
      log('warn', `${next.length} calls were not recorded: the database refuses them`)
      this.#shed += next.length
      this.#failures = 0
    }
    this.#waiting.splice(0, next.length)
    for (const activity of next) this.#size -= sizeOf(activity)
  }

  async #writeAll (): Promise<void> {
    await this.#writing
    while (this.#waiting.length > 0) {
      await this.#write()
      if (this.#failures > 0) return
    }
  }
}
