import { TaskAborted, workers } from '../threads/index.ts'
import type { ArgumentCheckResult, ArgumentCheckTask } from './worker.ts'
import { baseLimits } from '../limits/index.ts'

/**
 * Converts arguments to the types of a tool's input schema, and validates them as `run` in `worker.ts` does. This
 * happens in a worker thread, since validation against the schema of an upstream may take unlimited time.
 * @param owner the owner whose share of the worker tasks the check uses
 * @returns undefined if the check takes more than `baseLimits.argumentChecks.time`, or too much memory
 * @throws ShareError if too many tasks are waiting
 */
export async function convertAndCheckArguments (
  task: ArgumentCheckTask, owner: string
): Promise<ArgumentCheckResult | undefined> {
  try {
    return await workers.run<ArgumentCheckResult>('plugins/base/json-schema/worker', task, {
      owner, time: baseLimits.argumentChecks.time, parsed: [task.schema, task.args]
    })
  } catch (error) {
    if (error instanceof TaskAborted) return undefined
    throw error
  }
}
