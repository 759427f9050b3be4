import type { Worker } from 'node:worker_threads'
import { limits } from '../../../base/limits/index.ts'
import { startWorker } from '../../../base/threads/index.ts'
import type { CompiledDescription } from '../plan.ts'
import { DescriptionError } from '../problems.ts'
import { textsOf } from './joined-texts.ts'
import type { more, ReadPart, ReadResult, ThreadTask } from './worker.ts'

interface ReaderLimits {
  /** Max time for one description, in ms. */
  readTime: number
  /** Max memory of the thread, in MB. */
  readHeap: number
  /** Time without a description after which the thread ends, in ms. */
  readIdle: number
}

export interface ReadTask {
  /** The bytes of the document, in JSON or YAML. */
  readonly chunks: readonly Buffer[]
  /** The URL that relative servers are resolved against. */
  readonly baseUrl: string | undefined
}

/** A worker thread that reads descriptions, one after the other. It ends with the first one that fails, and after some idle time. */
export class DescriptionReader {
  readonly #worker: Worker
  readonly #limits: ReaderLimits
  readonly #onEnd: (reader: DescriptionReader) => void
  #idleTimer: NodeJS.Timeout | undefined

  /** @param onEnd called when the reader has ended */
  constructor (onEnd: (reader: DescriptionReader) => void, readerLimits: ReaderLimits = limits.openapi) {
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
      this.#idleTimer = setTimeout(() => { this.#end() }, this.#limits.readIdle)
      this.#idleTimer.unref()
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
  async #run ({ chunks, baseUrl }: ReadTask, signal: AbortSignal): Promise<ReadResult> {
    const worker = this.#worker
    const { readTime, readHeap } = this.#limits
    let stopListening = (): void => {}
    try {
      return await new Promise<ReadResult>((resolve, reject) => {
        const onAbort = (): void => { reject(new DescriptionError('it is not needed any more')) }
        const onExit = (): void => { reject(new DescriptionError('reading it failed')) }
        const onTimeout = (): void => { reject(new DescriptionError(`reading it takes longer than ${readTime / 1_000} s`)) }
        const onError = (error: Error & { code?: string }): void => {
          const isOutOfMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
          reject(isOutOfMemory ? new DescriptionError(`reading it takes more than ${readHeap} MB of memory`) : error)
        }
        const timer = setTimeout(onTimeout, readTime)
        let compiled: CompiledDescription | undefined
        const onMessage = (message: ReadResult | ReadPart): void => {
          if ('problem' in message) { resolve(message); return }
          if ('compiled' in message) compiled = message.compiled
          else {
            compiled?.pages.push(message.page)
            compiled?.plans.push(...textsOf(message.plans))
          }
          if (!compiled) return
          if (compiled.plans.length < compiled.names.length) worker.postMessage('more' satisfies typeof more)
          else resolve({ compiled })
        }
        worker.on('message', onMessage).once('error', onError).once('exit', onExit)
        signal.addEventListener('abort', onAbort, { once: true })
        stopListening = () => {
          clearTimeout(timer)
          worker.off('message', onMessage).off('error', onError).off('exit', onExit)
          signal.removeEventListener('abort', onAbort)
        }
        if (signal.aborted) onAbort()
        else worker.postMessage({ document: Buffer.concat(chunks), baseUrl } satisfies ThreadTask)
      })
    } finally {
      stopListening()
    }
  }
}
