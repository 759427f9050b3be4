import { memoryOf } from '../../../protocol/text.ts'
import { type Release, ShareError, Shares } from '../../base/limits/index.ts'
import { WorkerPool } from '../../base/threads/index.ts'
import type { CompressionAnswer, CompressionTask } from './worker.ts'
import { extensionsLimits } from '../limits.ts'

const { maxHeap: heap, idleTimeout: idle, time, waitingSize: waiting } = extensionsLimits.compression

/** Compresses results in a worker thread, one at a time. The owners of waiting results take turns. */
export class Compressor {
  readonly #pool = new WorkerPool({ threads: 1, heap, idle })
  readonly #reportFailure: (reason: unknown) => void
  /** The share of each owner in the memory for waiting results, in bytes. */
  readonly #waitingShares = new Shares(waiting, 'results that are compressed')

  /** @param reportFailure called with the reason when a result cannot be compressed */
  constructor (reportFailure: (reason: unknown) => void) {
    this.#reportFailure = reportFailure
  }

  /**
   * Compresses a result. Does not reject if compression fails.
   * @param owner the caller, whose share of the memory for waiting results is used
   * @returns undefined if the result does not become shorter, if it cannot be compressed, or if too many results wait
   */
  async compress (task: CompressionTask, owner: string): Promise<CompressionAnswer> {
    let release: Release
    try {
      release = this.#waitingShares.take(owner, memoryOf(task.result))
    } catch (error) {
      if (error instanceof ShareError) return undefined
      throw error
    }
    try {
      return await this.#pool.run<CompressionAnswer>('plugins/extensions/compression/worker', task, { owner, time })
    } catch (error) {
      this.#reportFailure(error)
      return undefined
    } finally {
      release()
    }
  }

  /** Ends the thread. */
  close (): void { this.#pool.close() }
}
