import { TaskStopped, workers } from '../threads/index.ts'
import type { FitAnswer, FitTask } from './worker.ts'
import { baseLimits } from '../limits/index.ts'

/**
 * Converts and validates arguments in a worker thread, since a stranger's schema may take without end.
 * @param owner the caller, in whose name that is done
 * @returns undefined where it takes too long
 * @throws ShareError
 */
export async function fitArguments (task: FitTask, owner: string): Promise<FitAnswer | undefined> {
  try {
    return await workers.run<FitAnswer>(
      'plugins/base/json-schema/worker', task, { owner, time: baseLimits.argumentChecks.time }
    )
  } catch (error) {
    if (error instanceof TaskStopped) return undefined
    throw error
  }
}
