import { Worker } from 'node:worker_threads'
import { limits } from '../../../limits/index.ts'
import type { CompiledDescription } from '../plan.ts'
import { DescriptionError } from '../problems.ts'
import type { ReadResult, ReadTask } from './worker.ts'

/** The worker's file: TypeScript beside TypeScript, JavaScript where it is built. */
const file = new URL(`./worker${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`, import.meta.url)
/** A thread does not inherit what lets this one run TypeScript, in tests and under `npm run dev`. */
const start = file.pathname.endsWith('.ts')
  ? {
      code: `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))}).then(({ register }) => { register(); return import(${JSON.stringify(file.href)}) })`,
      eval: true
    }
  : { code: file, eval: false }

/** How long one description may take, in ms; how many MB of memory; and after how many ms without any the thread ends. */
export interface ReaderLimits { readTime: number, readHeap: number, readIdle: number }

/** A thread that reads descriptions, one after the other. It ends with the first one that fails, and after a while without any. */
export class DescriptionReader {
  readonly #worker: Worker
  readonly #bounds: ReaderLimits
  readonly #ended: (reader: DescriptionReader) => void
  #timer: NodeJS.Timeout | undefined

  /** @param ended told when it takes no more */
  constructor (ended: (reader: DescriptionReader) => void, bounds: ReaderLimits = limits.openapi) {
    this.#ended = ended
    this.#bounds = bounds
    // Nothing of our environment is its business.
    this.#worker = new Worker(start.code, { eval: start.eval, resourceLimits: { maxOldGenerationSizeMb: bounds.readHeap }, env: {} })
    // What it says when nobody waits for it is of no interest.
    this.#worker.on('error', () => {})
  }

  /** @throws DescriptionError; it has ended then */
  async read (task: ReadTask, signal: AbortSignal): Promise<CompiledDescription> {
    clearTimeout(this.#timer)
    this.#worker.ref()
    try {
      const answer = await this.#ask(task, signal)
      if ('problem' in answer) throw new DescriptionError(answer.problem)
      this.#worker.unref()
      this.#timer = setTimeout(() => { this.#end() }, this.#bounds.readIdle)
      this.#timer.unref()
      return answer.compiled
    } catch (error) {
      this.#end()
      throw error
    }
  }

  #end (): void {
    clearTimeout(this.#timer)
    this.#ended(this)
    void this.#worker.terminate()
  }

  async #ask (task: ReadTask, signal: AbortSignal): Promise<ReadResult> {
    const worker = this.#worker
    const { readTime, readHeap } = this.#bounds
    let timer: NodeJS.Timeout | undefined
    const listeners: Array<() => void> = []
    try {
      return await new Promise<ReadResult>((resolve, reject) => {
        const end = (): void => { reject(new DescriptionError('it is not needed any more')) }
        const failed = (error: Error & { code?: string }): void => {
          reject(
            error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? new DescriptionError(`reading it takes more than ${readHeap} MB of memory`) : error
          )
        }
        const exited = (): void => { reject(new DescriptionError('reading it failed')) }
        worker.once('message', resolve).once('error', failed).once('exit', exited)
        signal.addEventListener('abort', end, { once: true })
        listeners.push(() => {
          worker.off('message', resolve).off('error', failed).off('exit', exited)
          signal.removeEventListener('abort', end)
        })
        timer = setTimeout(() => { reject(new DescriptionError(`reading it takes longer than ${readTime / 1_000} s`)) }, readTime)
        if (signal.aborted) end()
        // The bytes are handed over, not copied, where they are all that their memory holds.
        else {
          worker.postMessage(
            task,
            task.document instanceof Uint8Array &&
              task.document.byteLength === task.document.buffer.byteLength &&
              task.document.buffer instanceof ArrayBuffer
              ? [task.document.buffer]
              : []
          )
        }
      })
    } finally {
      clearTimeout(timer)
      for (const remove of listeners) remove()
    }
  }
}
