import type { OutboundAccess } from '../../../base/outbound/index.ts'
import { TaskAborted, WorkerPool } from '../../../base/threads/index.ts'
import { DescriptionError, type CompiledDescription } from '../plan.ts'
import type { ReadResult, ReadTask } from './worker.ts'
import { upstreamLimits } from '../../limits.ts'

const { readers, readTime, readHeap, readIdle } = upstreamLimits.openapi

/** The worker threads that read descriptions. Only one of them may read for servers of users without admin rights. */
const pool = new WorkerPool({ threads: readers, reserved: readers - 1, heap: readHeap, idle: readIdle })

/**
 * Parses and compiles a description in a worker thread, within limits of time and memory.
 * @param access the outbound access of the server: its owner determines whose turn it is
 * @param time max time, in ms
 * @throws DescriptionError with the reason and the location of the problem
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
    throw error instanceof TaskAborted ? new DescriptionError(`parsing it was stopped: ${error.message}`) : error
  }
}
