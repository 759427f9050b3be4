import type { Worker } from 'node:worker_threads'
import { errorCode, messageOf } from '../../../db/errors.ts'
import { Semaphore, Shares, baseLimits } from '../limits/index.ts'
import { parsedSizeOf } from './parsed-size.ts'
import { startWorker } from './start-worker.ts'
import type { WorkerMessage, PoolTask } from './worker.ts'

/** Thrown for a task that takes too long, needs too much memory, is cancelled, or makes its thread end. */
export class TaskAborted extends Error {}

/** Max size of a thread's heap for young objects, in MB, beside `heap`. V8's default is 48. */
const youngGeneration = 12

const noLongerNeeded = 'it is no longer needed'

/** Returns the reason for aborting a task that needs too much memory, as a clause. @param heap the heap size, in MB */
export const tooMuchMemory = (heap: number): string => `it needs more than ${heap} MB of memory`

interface PoolBounds {
  /** Max threads. If there are several, one owner uses at most all but one of them. */
  readonly threads: number
  /** The number of threads for privileged tasks only; default: 0. */
  readonly reserved?: number
  /** Max heap of each thread, in MB. */
  readonly heap: number
  /** Max time to load a module, in ms. */
  readonly loading?: number
  /** Time without a task after which a thread ends, in ms. */
  readonly idle: number
  /** Max length of a text in `parsed` after which the thread is kept, in characters; default: unlimited. */
  readonly kept?: number
  /** Max running and waiting tasks, with a share for each owner; default: unlimited. */
  readonly tasks?: number
}

interface RunOptions {
  /** The owner against whose share the task counts. Owners take turns. */
  readonly owner: string
  /** Max time of the task after it has started, in ms. */
  readonly time: number
  /** Whether the task may use all threads, including the reserved ones. */
  readonly isPrivileged?: boolean
  /** Ends the task when its answer is no longer needed. */
  readonly signal?: AbortSignal
  /** JSON texts that the task parses. If they may take more than half of the heap, the task is not run. */
  readonly parsed?: readonly string[]
  /** Whether the task itself is such a text. */
  readonly isMeasured?: boolean
}

/** Worker threads for tasks whose CPU time or memory cannot be bounded in advance. The threads start on demand. */
export class WorkerPool {
  readonly #bounds: PoolBounds
  readonly #places: Semaphore
  readonly #tasks: Shares | undefined
  readonly #threads = new Set<PoolThread>()
  readonly #idle: PoolThread[] = []

  constructor (bounds: PoolBounds = baseLimits.workers) {
    this.#bounds = bounds
    const { threads, reserved, tasks } = bounds
    this.#places = new Semaphore({ places: threads, perOwner: Math.max(1, threads - 1), reserved })
    this.#tasks = tasks === undefined ? undefined : new Shares(tasks, 'tasks for worker threads')
  }

  /**
   * Runs a task in a thread.
   * @param module the path of a module, for `entryPointPath`, which cli/build.mjs must list; its export `run` is called
   * with the task
   * @param task plain data; or a function that returns it once a thread is free, so that a large task that waits takes
   *   no memory
   * @throws TaskAborted; ShareError if too many tasks are waiting; Error with the text of an error that the task throws
   */
  async run<Answer> (
    module: string,
    task: unknown,
    { owner, time, isPrivileged = false, signal, parsed = [], isMeasured = false }: RunOptions
  ): Promise<Answer> {
    const releaseTask = this.#tasks?.take(owner)
    const release = await this.#places.take(owner, isPrivileged)
    try {
      if (signal?.aborted === true) throw new TaskAborted(noLongerNeeded)
      const data: unknown = typeof task === 'function' ? (task as () => unknown)() : task
      const texts = isMeasured ? [data as string] : parsed
      this.#checkParsable(texts)
      const thread = this.#idle.pop() ?? this.#start()
      const message = await thread.run({ module, task: data }, time, signal)
      const { kept = Infinity } = this.#bounds
      if (texts.some(({ length }) => length > kept)) thread.end()
      else {
        this.#idle.push(thread)
        thread.park()
      }
      if ('failure' in message) throw new Error(message.failure)
      return message.answer as Answer
    } finally {
      release()
      releaseTask?.()
    }
  }

  /** @throws TaskAborted if the values of these JSON texts may take more than half of a thread's heap */
  #checkParsable (texts: readonly string[]): void {
    const { heap } = this.#bounds
    const parsable = heap * 1_048_576 / 2
    if (texts.reduce((size, text) => size + parsedSizeOf(text, 'json', parsable), 0) > parsable) {
      throw new TaskAborted(tooMuchMemory(heap))
    }
  }

  /** Ends all threads. Running tasks are stopped. */
  close (): void {
    for (const thread of this.#threads) thread.end()
  }

  #start (): PoolThread {
    const thread = new PoolThread(this.#bounds, () => {
      this.#threads.delete(thread)
      const at = this.#idle.indexOf(thread)
      if (at !== -1) this.#idle.splice(at, 1)
    })
    this.#threads.add(thread)
    return thread
  }
}

type TaskResult = Exclude<WorkerMessage, { isLoaded: true }>

class PoolThread {
  readonly #bounds: PoolBounds
  readonly #worker: Worker
  readonly #onEnd: () => void
  #idleTimer: NodeJS.Timeout | undefined
  /** Stops the running task. */
  #stop: (reason: string) => void = () => {}

  /** @param onEnd called when the thread has ended or is about to end */
  constructor (bounds: PoolBounds, onEnd: () => void) {
    this.#bounds = bounds
    this.#onEnd = onEnd
    const resourceLimits = { maxOldGenerationSizeMb: bounds.heap, maxYoungGenerationSizeMb: youngGeneration }
    this.#worker = startWorker('plugins/base/threads/worker', { resourceLimits })
    // Without this listener, an error while no task runs would end the process.
    this.#worker
      .on('error', (error) => {
        const isMemory = errorCode(error) === 'ERR_WORKER_OUT_OF_MEMORY'
        this.#stop(isMemory ? tooMuchMemory(bounds.heap) : messageOf(error))
      })
      .on('exit', () => { this.end() })
  }

  /** Runs a task. @throws TaskAborted, after which the thread has ended */
  async run (task: PoolTask, time: number, signal?: AbortSignal): Promise<TaskResult> {
    const worker = this.#worker
    clearTimeout(this.#idleTimer)
    worker.ref()
    const { loading = baseLimits.workers.loading } = this.#bounds
    const cancel = (): void => { this.#stop(noLongerNeeded) }
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<TaskResult>((resolve, reject) => {
        this.#stop = (reason) => { reject(new TaskAborted(reason)) }
        signal?.addEventListener('abort', cancel)
        timer = setTimeout(() => { this.#stop('its module was not loaded in time') }, loading)
        worker.on('message', (message: WorkerMessage) => {
          if (!('isLoaded' in message)) {
            resolve(message)
            return
          }
          clearTimeout(timer)
          timer = setTimeout(() => { this.#stop(`it takes longer than ${time / 1_000} s`) }, time)
        })
        worker.postMessage(task)
      })
    } catch (error) {
      this.end()
      throw error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', cancel)
      this.#stop = () => {}
      worker.removeAllListeners('message')
    }
  }

  /** Marks the thread as idle. If no task follows within the pool's `idle` time, the thread ends. */
  park (): void {
    this.#worker.unref()
    this.#idleTimer = setTimeout(() => { this.end() }, this.#bounds.idle).unref()
  }

  end (): void {
    clearTimeout(this.#idleTimer)
    this.#stop('the thread has ended')
    this.#onEnd()
    void this.#worker.terminate()
  }
}

/** The worker threads for tasks without a pool of their own. */
export const workers = new WorkerPool()
