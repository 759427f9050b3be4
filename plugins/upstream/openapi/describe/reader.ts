import type { Worker } from 'node:worker_threads'
import { Semaphore } from '../../../base/limits/index.ts'
import type { Reach } from '../../../base/outbound/index.ts'
import { startWorker } from '../../../base/threads/index.ts'
import { DescriptionError, type CompiledDescription } from '../plan.ts'
import type { ReadResult, ReadTask } from './worker.ts'
import { upstreamLimits } from '../../limits.ts'

interface ReaderLimits {
  /** Max time for one description, in ms. */
  readTime: number
  /** Max memory of the thread, in MB. */
  readHeap: number
  /** Time without a description after which the thread ends, in ms. */
  readIdle: number
}

/**
 * A worker thread that reads descriptions, one after the other. It ends with the first one that fails, and after some
 * idle time.
 */
export class DescriptionReader {
  readonly #worker: Worker
  readonly #limits: ReaderLimits
  readonly #onEnd: (reader: DescriptionReader) => void
  #idleTimer: NodeJS.Timeout | undefined

  /** @param onEnd called when the reader has ended */
  constructor (onEnd: (reader: DescriptionReader) => void, readerLimits: ReaderLimits = upstreamLimits.openapi) {
    this.#onEnd = onEnd
    this.#limits = readerLimits
    const resourceLimits = { maxOldGenerationSizeMb: readerLimits.readHeap }
    this.#worker = startWorker('plugins/upstream/openapi/describe/worker', { resourceLimits })
    // An error while no task runs must not end the process.
    this.#worker.on('error', () => {})
  }

  /** Reads one description. @throws DescriptionError, after which the reader has ended */
  async read (task: ReadTask, signal: AbortSignal): Promise<CompiledDescription> {
    clearTimeout(this.#idleTimer)
    this.#worker.ref()
    try {
      const result = await this.#run(task, signal)
      if ('problem' in result) throw new DescriptionError(result.problem)
      this.#worker.unref()
      this.#idleTimer = setTimeout(() => { this.#end() }, this.#limits.readIdle).unref()
      return result.compiled
    } catch (error) {
      this.#end()
      throw error
    }
  }

  #end (): void {
    clearTimeout(this.#idleTimer)
    this.#onEnd(this)
    void this.#worker.terminate()
  }

  /** Posts a task to the thread, and waits for its result, its end, the time limit or the signal. */
  async #run (task: ReadTask, signal: AbortSignal): Promise<ReadResult> {
    const { readTime, readHeap } = this.#limits
    const ends = new AbortController()
    try {
      return await new Promise<ReadResult>((resolve, reject) => {
        const fail = (reason: string): void => { reject(new DescriptionError(reason)) }
        const onMessage = (result: ReadResult): void => { resolve(result) }
        const onExit = (): void => { fail('reading it failed') }
        const onError = (error: Error & { code?: string }): void => {
          if (error.code !== 'ERR_WORKER_OUT_OF_MEMORY') reject(error)
          else fail(`reading it takes more than ${readHeap} MB of memory`)
        }
        const timer = setTimeout(() => { fail(`reading it takes longer than ${readTime / 1_000} s`) }, readTime)
        const worker = this.#worker.on('message', onMessage).on('error', onError).on('exit', onExit)
        ends.signal.addEventListener('abort', () => {
          clearTimeout(timer)
          worker.off('message', onMessage).off('error', onError).off('exit', onExit)
        })
        signal.addEventListener('abort', () => { fail('it is not needed any more') }, { signal: ends.signal })
        if (signal.aborted) fail('it is not needed any more')
        else worker.postMessage(task)
      })
    } finally {
      ends.abort()
    }
  }
}

/** Limits the readers that run at once: one is for servers that users have stored, in turns. */
const readers =
  new Semaphore({ places: upstreamLimits.openapi.readers, perOwner: 1, reserved: upstreamLimits.openapi.readers - 1 })
/** Readers without a task, whose threads have started already. */
const idle = new Set<DescriptionReader>()

/**
 * Reads a description in a worker thread, limited in time and memory, so that the event loop is not blocked.
 * @param reach of the server that it is for
 * @throws DescriptionError with the reason and the place of a problem
 */
export async function readDescription (
  task: ReadTask, { owner, trusted }: Reach, signal: AbortSignal
): Promise<CompiledDescription> {
  const release = await readers.take(owner, trusted)
  try {
    const [reader = new DescriptionReader((ended) => { idle.delete(ended) })] = idle
    idle.delete(reader)
    const compiled = await reader.read(task, signal)
    idle.add(reader)
    return compiled
  } finally {
    release()
  }
}
