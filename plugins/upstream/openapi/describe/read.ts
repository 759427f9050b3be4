import { limits, Semaphore } from '../../../base/limits/index.ts'
import type { CompiledDescription } from '../plan.ts'
import type { Reach } from '../../../base/outbound/index.ts'
import { DescriptionReader, type ReadTask } from './reader.ts'

/** Limits the readers that run at once: one is for servers that users have stored, in turns. */
const readers = new Semaphore({ places: limits.openapi.readers, perOwner: 1, reserved: limits.openapi.readers - 1 })
/** Readers without a task, whose threads have started already. */
const idle: DescriptionReader[] = []

/**
 * Reads a description in a worker thread, limited in time and memory, so that the event loop is not blocked.
 * @param reach of the server that it is for
 * @throws DescriptionError with the reason and the place of a problem
 */
export async function readDescription (task: ReadTask, { owner, trusted }: Reach, signal: AbortSignal): Promise<CompiledDescription> {
  const release = await readers.take(owner, trusted)
  try {
    const reader = idle.pop() ?? new DescriptionReader(removeIdle)
    const compiled = await reader.read(task, signal)
    idle.push(reader)
    return compiled
  } finally {
    release()
  }
}

function removeIdle (reader: DescriptionReader): void {
  const index = idle.indexOf(reader)
  if (index !== -1) idle.splice(index, 1)
}
