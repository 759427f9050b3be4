import { limits } from '../../../limits/index.ts'
import { Semaphore } from '../../../limits/semaphore.ts'
import type { CompiledDescription } from '../plan.ts'
import { DescriptionReader } from './reader.ts'
import type { ReadTask } from './worker.ts'

const places = new Semaphore(limits.openapi.readers)
/** Threads without a task: the next description finds one that has started. */
const idle: DescriptionReader[] = []

/**
 * Reads a description in a worker thread, bounded in time and memory, so that the event loop goes on meanwhile.
 * @throws DescriptionError in a sentence that says what is wrong with it, and where
 */
export async function readDescription (task: ReadTask, signal: AbortSignal): Promise<CompiledDescription> {
  const leave = await places.take()
  try {
    const reader = idle.pop() ?? new DescriptionReader((each) => { if (idle.includes(each)) idle.splice(idle.indexOf(each), 1) })
    const compiled = await reader.read(task, signal)
    idle.push(reader)
    return compiled
  } finally {
    leave()
  }
}
