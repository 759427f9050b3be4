import type { OutboundAccess } from '../../../base/outbound/index.ts'
import { TaskAborted, WorkerPool } from '../../../base/threads/index.ts'
import { DescriptionError, type CompiledDescription } from '../plan.ts'
import type { ReadResult, ReadTask } from './worker.ts'
import { upstreamLimits } from '../../limits.ts'

const { readers, readTime, readHeap, readIdle } = upstreamLimits.openapi

/** Threads for descriptions: one is for servers that users have stored, in turns. */
const pool = new WorkerPool({ threads: readers, reserved: readers - 1, heap: readHeap, idle: readIdle })

/**
 * Reads a description in a worker thread, limited in time and memory, so that the event loop is not blocked.
 * @param reach of the server that it is for
 * @param time max time, in ms
 * @throws DescriptionError with the reason and the place of a problem
 */
export async function readDescription (
  task: ReadTask, { owner = '', trusted }: OutboundAccess, signal: AbortSignal, threads = pool, time: number = readTime
): Promise<CompiledDescription> {
  try {
    const options = { owner, isPrivileged: trusted, time, signal }
    const result = await threads.run<ReadResult>('plugins/upstream/openapi/describe/worker', task, options)
    if ('compiled' in result) return result.compiled
    throw new DescriptionError(result.problem)
  } catch (error) {
    throw error instanceof TaskAborted ? new DescriptionError(`reading it was stopped: ${error.message}`) : error
  }
}
