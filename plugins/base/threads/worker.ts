// A worker thread of the pool. It runs tasks of any module that exports `run`.
import { parentPort } from 'node:worker_threads'
import { pathToFileURL } from 'node:url'
import { entryPath } from '../../../package.ts'

/** @param module as `entryPath` takes it */
export interface PoolTask { module: string, task: unknown }
/** `isLoaded`: the module is loaded, and the task begins. */
export type PoolMessage = { isLoaded: true } | { answer: unknown } | { failure: string }

const port = parentPort

async function answerTo ({ module, task }: PoolTask): Promise<PoolMessage> {
  try {
    const { run } = await import(pathToFileURL(entryPath(module)).href) as { run: (task: unknown) => unknown }
    port?.postMessage({ isLoaded: true } satisfies PoolMessage)
    return { answer: await run(task) }
  } catch (error) {
    return { failure: String(error) }
  }
}

port?.on('message', (message: PoolTask) => { void answerTo(message).then((answer) => { port.postMessage(answer) }) })
