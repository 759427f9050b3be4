// The main module of the threads in a `WorkerPool`. For each task, it calls the export `run` of the task's module.
import { parentPort } from 'node:worker_threads'
import { pathToFileURL } from 'node:url'
import { entryPointPath } from '../../../package.ts'

/** What the pool posts to a thread. `module`: a path for `entryPointPath`, or a file URL. */
export interface PoolTask { module: string, task: unknown }
/** What a thread posts to the pool. `isLoaded`: the module has been loaded, and the task starts. */
export type WorkerMessage = { isLoaded: true } | { answer: unknown } | { failure: string }

const port = parentPort

async function runTask ({ module, task }: PoolTask): Promise<WorkerMessage> {
  try {
    const url = module.startsWith('file:') ? module : pathToFileURL(entryPointPath(module)).href
    const { run } = await import(url) as { run: (task: unknown) => unknown }
    port?.postMessage({ isLoaded: true } satisfies WorkerMessage)
    return { answer: await run(task) }
  } catch (error) {
    return { failure: String(error) }
  }
}

port?.on('message', (message: PoolTask) => { void runTask(message).then((answer) => { port.postMessage(answer) }) })
