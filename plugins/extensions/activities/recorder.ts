import { messageOf } from '../../../db/errors.ts'
import type { Activities, Activity } from '../../../db/ports/activities.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { waitAtMost } from '../../../protocol/wait-at-most.ts'
import type { FinishedCall } from '../../gateway/index.ts'

/**
 * Max number and max memory (in bytes) of waiting activities. Beyond either, new activities are shed, that is, not
 * recorded.
 */
interface RecorderBounds { readonly entries: number, readonly size: number }

export interface RecorderDeps {
  readonly store: Pick<Activities, 'append'>
  /** Creates the record of a call. */
  readonly describe: (call: FinishedCall) => Activity
  /** Whether the database is known to be unavailable. */
  readonly isStorageAway: () => boolean
  readonly bounds: RecorderBounds
  readonly log: (level: 'info' | 'warn', sentence: string) => void
}

/** Max time until an activity is written while the database is available, in ms. */
const writeDelay = 1_000
/** Waiting activities are written without delay once they reach this number, or this size in bytes. */
const batchThreshold = { entries: 500, size: 1024 * 1024 }
/** Max number of activities in one batch, and the size in bytes at which a batch is full. */
const batchBounds = { entries: 1_000, size: 4 * 1024 * 1024 }
/** Max time between two attempts to write, in ms. */
const maxRetryDelay = 5_000
/** Max attempts to write a batch that an available database rejects; then the batch is shed. */
const maxAttempts = 5
/** Memory of calls after which the creation of records continues in the next turn of the event loop, in bytes. */
const maxTurnSize = 256 * 1024
/** Estimated memory of an activity without its payloads, in bytes. */
const overhead = 512

const memoryOfCall = ({ exchange: { paramsText }, output = '' }: FinishedCall): number =>
  memoryOf(paramsText) + memoryOf(output)
const memoryOfActivity = ({ input = '', output = '' }: Activity): number =>
  overhead + memoryOf(input) + memoryOf(output)

/**
 * Writes calls to the database in batches. The record of a call is created after the call has ended, so that it does
 * not delay the response. While the database is slow or unavailable, calls beyond the bounds are shed and counted.
 */
export class ActivityRecorder {
  readonly #deps: RecorderDeps
  /** The calls whose records are not created yet. */
  #waitingCalls: FinishedCall[] = []
  /** The memory of `#waitingCalls`, in bytes. */
  #waitingCallsSize = 0
  /** The records that are not written yet. */
  #waitingActivities: Activity[] = []
  /** The memory of `#waitingActivities`, in bytes. */
  #waitingActivitiesSize = 0
  #writtenCount = 0
  #shedCount = 0
  #timer: NodeJS.Timeout | undefined
  #isTurnDue = false
  #currentWrite: Promise<void> | undefined
  #failureCount = 0
  #isClosed = false

  constructor (deps: RecorderDeps) {
    this.#deps = deps
  }

  /** The number of written activities, since the start. */
  get writtenCount (): number { return this.#writtenCount }
  /** The number of activities that were shed, since the start. */
  get shedCount (): number { return this.#shedCount }
  /** The number of activities that wait to be written. */
  get waitingCount (): number { return this.#waitingCalls.length + this.#waitingActivities.length }

  get #isFull (): boolean {
    return this.#waitingActivities.length >= batchThreshold.entries ||
    this.#waitingActivitiesSize >= batchThreshold.size
  }

  /** Queues a finished call to be recorded, or sheds it. */
  record (call: FinishedCall): void {
    const { entries, size } = this.#deps.bounds
    if (this.#isClosed ||
      this.waitingCount >= entries || this.#waitingActivitiesSize + this.#waitingCallsSize >= size) {
      this.#shedCount++
      return
    }
    this.#waitingCalls.push(call)
    this.#waitingCallsSize += memoryOfCall(call)
    if (this.#isTurnDue) return
    this.#isTurnDue = true
    setImmediate(this.#runTurn)
  }

  /**
   * Stops recording, and writes the waiting activities. Sheds the activities that remain after the timeout.
   * @param timeout max time to write, in ms
   */
  async close (timeout: number): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#describe(Infinity)
    await waitAtMost(timeout, this.#writeAll())
    if (this.#waitingActivities.length === 0) return
    this.#deps.log(
      'warn', `${this.#waitingActivities.length} calls were not recorded: the database did not accept them in time`
    )
    this.#shedCount += this.#waitingActivities.length
    this.#waitingActivities = []
  }

  readonly #runTurn = (): void => {
    this.#isTurnDue = false
    this.#describe(maxTurnSize)
    if (this.#waitingCalls.length > 0 && !this.#isClosed) {
      this.#isTurnDue = true
      setImmediate(this.#runTurn)
    }
    if (this.#currentWrite !== undefined || this.#isClosed) return
    if (this.#isFull && this.#failureCount === 0) this.#beginWriting()
    else this.#writeAfter(writeDelay)
  }

  /** Creates the records of waiting calls. @param maxSize memory of the calls, in bytes, at which it stops */
  #describe (maxSize: number): void {
    let described = 0
    let count = 0
    for (const call of this.#waitingCalls) {
      if (described >= maxSize) break
      count++
      described += overhead + memoryOfCall(call)
      this.#waitingCallsSize -= memoryOfCall(call)
      try {
        const activity = this.#deps.describe(call)
        this.#waitingActivities.push(activity)
        this.#waitingActivitiesSize += memoryOfActivity(activity)
      } catch {
        this.#shedCount++
      }
    }
    this.#waitingCalls = count === this.#waitingCalls.length ? [] : this.#waitingCalls.slice(count)
  }

  #writeAfter (ms: number): void {
    this.#timer ??= setTimeout(() => { this.#beginWriting() }, ms).unref()
  }

  #beginWriting (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#currentWrite ??= this.#writeBatch().finally(() => {
      this.#currentWrite = undefined
      if (this.#isClosed || this.#waitingActivities.length === 0) return
      if (this.#failureCount > 0) this.#writeAfter(Math.min(maxRetryDelay, writeDelay * 2 ** (this.#failureCount - 1)))
      else if (this.#isFull) this.#beginWriting()
      else this.#writeAfter(writeDelay)
    })
  }

  #nextBatch (): Activity[] {
    let size = 0
    const end = this.#waitingActivities.findIndex((activity, index) =>
      index >= batchBounds.entries || (size += memoryOfActivity(activity)) > batchBounds.size)
    return end === -1 ? [...this.#waitingActivities] : this.#waitingActivities.slice(0, Math.max(1, end))
  }

  /**
   * Writes one batch. A failed batch is kept, so that it is written again: `append` is idempotent. A batch that an
   * available database has rejected several times is shed. The returned promise never rejects.
   */
  async #writeBatch (): Promise<void> {
    const next = this.#nextBatch()
    const { store, isStorageAway, log } = this.#deps
    try {
      await store.append(next)
      this.#writtenCount += next.length
      if (this.#failureCount > 0) {
        log('info', `calls are recorded again; ${this.#shedCount} were not recorded since the start`)
      }
      this.#failureCount = 0
    } catch (error) {
      if (this.#failureCount++ === 0) {
        log('warn', `calls cannot be recorded now: ${messageOf(error)}`)
      }
      if (isStorageAway() || this.#failureCount < maxAttempts) return
      log('warn', `${next.length} calls were not recorded: the database rejected them`)
      this.#shedCount += next.length
      this.#failureCount = 0
    }
    this.#waitingActivities.splice(0, next.length)
    for (const activity of next) this.#waitingActivitiesSize -= memoryOfActivity(activity)
  }

  async #writeAll (): Promise<void> {
    await this.#currentWrite
    while (this.#waitingActivities.length > 0) {
      await this.#writeBatch()
      if (this.#failureCount > 0) return
    }
  }
}
