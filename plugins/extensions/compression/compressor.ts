import { memoryOf } from '../../../protocol/text.ts'
import { type Release, ShareError, Shares } from '../../base/limits/index.ts'
import { WorkerPool } from '../../base/threads/index.ts'
import type { CompressionAnswer, CompressionTask } from './worker.ts'
import { extensionsLimits } from '../limits.ts'

const { heap, idle, time, waiting } = extensionsLimits.compression

/** Compresses results in a worker thread, one at a time, in round-robin order of their owners. */
export class Compressor {
  readonly #pool = new WorkerPool({ threads: 1, heap, idle })
  readonly #failed: (reason: unknown) => void
  /** Memory of the waiting results, in bytes. */
  readonly #waiting = new Shares(waiting, 'results that are compressed')

  /** @param failed is called with the reason when a result cannot be compressed */
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
    try {
      return await this.#pool.run<CompressionAnswer>('plugins/extensions/compression/worker', task, { owner, time })
    } catch (error) {
      this.#failed(error)
      return undefined
    } finally {
      leave()
    }
  }

  /** Ends the thread. */
  close (): void { this.#pool.close() }
}
