import type { Worker } from 'node:worker_threads'
import { memoryOf } from '../../../protocol/text.ts'
import { type Release, Semaphore, ShareError, Shares } from '../../base/limits/index.ts'
import { startWorker } from '../../base/threads/index.ts'
import type { CompressionAnswer, CompressionTask } from './worker.ts'
import { extensionsLimits } from '../limits.ts'

/**
 * Compresses results in a worker thread, one at a time, with the owners served in turns. The thread starts with the
 * first result, and ends after an idle time or when a result takes too long.
 */
export class Compressor {
  readonly #turns = new Semaphore({ places: 1 })
  readonly #failed: (reason: unknown) => void
  #worker: Worker | undefined
  #idleTimer: NodeJS.Timeout | undefined
  /** Memory of the waiting results, in bytes. */
  readonly #waiting = new Shares(extensionsLimits.compression.waiting, 'results that are compressed')

  /** @param failed called when a result could not be compressed */
  constructor (failed: (reason: unknown) => void) {
    this.#failed = failed
  }

  /**
   * Compresses a result. Never rejects.
   * @returns undefined if the result is short, cannot be compressed, or too much memory is waiting, of its owner or in
   *   total
   */
  async compress (task: CompressionTask, owner: string): Promise<CompressionAnswer> {
    let leave: Release
    try {
      leave = this.#waiting.take(owner, memoryOf(task.result))
    } catch (error) {
      if (error instanceof ShareError) return undefined
      throw error
    }
    const release = await this.#turns.take(owner)
    try {
      return await this.#run(task)
    } catch (error) {
      this.close()
      this.#failed(error)
      return undefined
    } finally {
      leave()
      release()
    }
  }

  /** Ends the thread. */
  close (): void {
    clearTimeout(this.#idleTimer)
    void this.#worker?.terminate()
    this.#worker = undefined
  }

  #start (): Worker {
    const worker = startWorker('plugins/extensions/compression/worker', {
      resourceLimits: { maxOldGenerationSizeMb: extensionsLimits.compression.heap }
    })
    // Without a listener, an error while no task runs would end the process.
    worker.on('error', () => {})
    worker.on('exit', () => { if (this.#worker === worker) this.#worker = undefined })
    return worker
  }

  async #run (task: CompressionTask): Promise<CompressionAnswer> {
    clearTimeout(this.#idleTimer)
    const worker = this.#worker ??= this.#start()
    const { time } = extensionsLimits.compression
    let stop = (): void => {}
    try {
      return await new Promise<CompressionAnswer>((resolve, reject) => {
        const onExit = (): void => { reject(new Error('the thread that compresses has ended')) }
        const timer = setTimeout(() => { reject(new Error(`compressing takes longer than ${time / 1_000} s`)) }, time)
        worker.once('message', resolve).once('error', reject).once('exit', onExit)
        stop = () => {
          clearTimeout(timer)
          worker.off('message', resolve).off('error', reject).off('exit', onExit)
        }
        worker.postMessage(task)
      })
    } finally {
      stop()
      this.#idleTimer = setTimeout(() => { this.close() }, extensionsLimits.compression.idle)
      this.#idleTimer.unref()
      worker.unref()
    }
  }
}
