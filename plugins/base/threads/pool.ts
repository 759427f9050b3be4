import type { Worker } from 'node:worker_threads'
import { Semaphore, Shares, baseLimits } from '../limits/index.ts'
import { startWorker } from './start-worker.ts'
import type { PoolMessage, PoolTask } from './worker.ts'

/** Thrown for a task that takes too long, or more memory than a thread has. Its thread is ended. */
export class TaskStopped extends Error {}

interface PoolBounds {
  /** Max threads; one owner has all but one of them at most. */
  readonly threads: number
  /** Max heap of each, in MB. */
  readonly heap: number
  /** Max time to load a module, in ms. */
  readonly loading: number
  /** Time without a task after which a thread ends, in ms. */
  readonly idle: number
  /** Max tasks that run or wait, with a share for each owner. */
  readonly tasks: number
}

interface RunOptions {
  /** In whose name the task runs. Owners take turns. */
  readonly owner: string
  /** Max time of the task once it begins, in ms. */
  readonly time: number
}

/** Worker threads for work whose cost cannot be bounded beforehand. They start on demand. */
export class WorkerPool {
  readonly #bounds: PoolBounds
  readonly #places: Semaphore
  readonly #tasks: Shares
  readonly #idle: PoolThread[] = []

  constructor (bounds: PoolBounds = baseLimits.workers) {
    this.#bounds = bounds
    this.#places = new Semaphore({ places: bounds.threads, perOwner: Math.max(1, bounds.threads - 1) })
    this.#tasks = new Shares(bounds.tasks, 'tasks for worker threads')
  }

  /**
   * Runs a task in a thread.
   * @param module of which `run` is called with the task, as `entryPath` takes it; cli/build.mjs has it in its list
   * @throws TaskStopped; ShareError when too many tasks wait; Error for what the task throws
   */
  async run<Answer> (module: string, task: unknown, { owner, time }: RunOptions): Promise<Answer> {
    const leave = this.#tasks.take(owner)
    const release = await this.#places.take(owner, false)
    const thread = this.#idle.pop() ?? new PoolThread(this.#bounds)
    try {
      const message = await thread.run({ module, task }, time)
      this.#keep(thread)
      if ('failure' in message) throw new Error(message.failure)
      return message.answer as Answer
    } finally {
      release()
      leave()
    }
  }

  #keep (thread: PoolThread): void {
    this.#idle.push(thread)
    thread.rest(() => { this.#idle.splice(this.#idle.indexOf(thread), 1) })
  }
}

type Outcome = Exclude<PoolMessage, { isLoaded: true }>

class PoolThread {
  readonly #bounds: PoolBounds
  readonly #worker: Worker
  #idleTimer: NodeJS.Timeout | undefined
  #onError: () => void = () => {}
  #onEnd: () => void = () => {}

  constructor (bounds: PoolBounds) {
    this.#bounds = bounds
    this.#worker =
      startWorker('plugins/base/threads/worker', { resourceLimits: { maxOldGenerationSizeMb: bounds.heap } })
    // An error while no task runs must not end the process.
    this.#worker.on('error', () => { this.#onError() }).on('exit', () => { this.#onEnd() })
  }

  /** @throws TaskStopped, after which the thread has ended */
  async run (task: PoolTask, time: number): Promise<Outcome> {
    const worker = this.#worker
    clearTimeout(this.#idleTimer)
    worker.ref()
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<Outcome>((resolve, reject) => {
        const stop = (reason: string) => (): void => { reject(new TaskStopped(reason)) }
        this.#onError = stop(`it takes more than ${this.#bounds.heap} MB of memory`)
        this.#onEnd = stop('the thread has ended')
        timer = setTimeout(stop('its module is not loaded in time'), this.#bounds.loading)
        worker.on('message', (message: PoolMessage) => {
          if (!('isLoaded' in message)) {
            resolve(message)
            return
          }
          clearTimeout(timer)
          timer = setTimeout(stop(`it takes longer than ${time / 1_000} s`), time)
        })
        worker.postMessage(task)
      })
    } catch (error) {
      void worker.terminate()
      throw error
    } finally {
      clearTimeout(timer)
      this.#onError = this.#onEnd = () => {}
      worker.removeAllListeners('message')
    }
  }

  /** Waits for the next task, and ends after some time. @param onEnd called when the thread has ended meanwhile */
  rest (onEnd: () => void): void {
    this.#onEnd = onEnd
    this.#worker.unref()
    this.#idleTimer = setTimeout(() => { void this.#worker.terminate() }, this.#bounds.idle).unref()
  }
}

/** The pool of this process. */
export const workers = new WorkerPool()
