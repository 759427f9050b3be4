import { createContext, Script } from 'node:vm'

/** What took too long is not begun again for so many ms. */
const restTime = 60_000
/** While so many things of the same hands rest, nothing of theirs is begun. */
const mostResting = 10

/** Work that was stopped before it had its time is begun again, so many times in all. */
const mostTimes = 5

const context = createContext({ work: () => {} })
const run = new Script('work()')

/**
 * Runs what somebody else wrote (schemas, and the patterns in them), so long and no longer: what a piece of it costs cannot be told
 * by looking at it.
 */
class TimeBudget {
  /** Until when, by name. */
  readonly #resting = new Map<string, number>()

  /**
   * @param longest in ms, of CPU
   * @returns undefined where it would take longer, or more stack than there is, or did not long ago
   * @throws what the work throws
   */
  run <Result> (name: string, longest: number, work: () => Result): Result | undefined {
    if (this.#rests(name)) return undefined
    const before = process.cpuUsage()
    let result: Result | undefined
    context.work = () => { result = work() }
    for (let time = 1; ; time++) {
      try {
        run.runInContext(context, { timeout: longest })
        return result
      } catch (error) {
        // Schemas that lead to themselves, or far away, may also be too deep.
        const { code, name: kind } = error as NodeJS.ErrnoException
        if (code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT' && kind !== 'RangeError') throw error
        // Its time was perhaps taken by other processes.
        const { user, system } = process.cpuUsage(before)
        if (kind !== 'RangeError' && user + system < longest * 1_000 && time < mostTimes) continue
        this.#resting.set(name, Date.now() + restTime)
        return undefined
      }
    }
  }

  #rests (name: string): boolean {
    if (this.#resting.size === 0) return false
    for (const [each, until] of this.#resting) if (until <= Date.now()) this.#resting.delete(each)
    return this.#resting.has(name) || this.#resting.size >= mostResting
  }
}

const budgets = new WeakMap<object, TimeBudget>()

/** One budget for all that comes from the same hands. @param owner what it came in, such as a server's list */
export function timeBudgetOf (owner: object): TimeBudget {
  let budget = budgets.get(owner)
  if (!budget) budgets.set(owner, budget = new TimeBudget())
  return budget
}
