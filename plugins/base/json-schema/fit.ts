import { TaskAborted, workers } from '../threads/index.ts'
import type { FitAnswer, FitTask } from './worker.ts'
import { baseLimits } from '../limits/index.ts'

/**
 * Converts and validates arguments in a worker thread, since an upstream's schema may take unlimited time.
 * @param owner the caller whose share the task counts against
 * @returns undefined if it takes too long, or too much memory
 * @throws ShareError
 */
export async function fitArguments (task: FitTask, owner: string): Promise<FitAnswer | undefined> {
  try {
    return await workers.run<FitAnswer>('plugins/base/json-schema/worker', task, {
      owner, time: baseLimits.argumentChecks.time, parsed: [task.schema, task.args]
    })
  } catch (error) {
    if (error instanceof TaskAborted) return undefined
    throw error
  }
}
