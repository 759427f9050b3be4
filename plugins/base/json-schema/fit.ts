import { limits } from '../limits/index.ts'
import { TaskStopped, workers } from '../threads/index.ts'
import type { FitAnswer, FitTask } from './worker.ts'

/**
 * Converts and validates arguments in a worker thread, since a stranger's schema may take without end.
 * @param owner the caller, in whose name that is done
 * @returns undefined where it takes too long
 * @throws ShareError
 */
export async function fitArguments (task: FitTask, owner: string): Promise<FitAnswer | undefined> {
  try {
    return await workers.run<FitAnswer>('plugins/base/json-schema/worker', task, { owner, time: limits.argumentChecks.time })
  } catch (error) {
    if (error instanceof TaskStopped) return undefined
    throw error
  }
}
