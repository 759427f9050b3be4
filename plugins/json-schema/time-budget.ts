import { createContext, Script } from 'node:vm'

/** Time for which work that exceeded its timeout is not started again, in ms. */
const backoff = 60_000

/** Max entries of one budget in backoff; while there are as many, no work of that budget is started. */
const maxInBackoff = 10

/** Max attempts at work that was stopped before it had used up its CPU time. */
const maxAttempts = 5

const context = createContext({ work: () => {} })
const script = new Script('work()')

/**
 * Runs work on input from elsewhere (schemas, and the regular expressions in them) with a timeout, since the cost of such input cannot
 * be told by looking at it.
 */
class TimeBudget {
  /** The end of each entry's backoff, in ms since the epoch, by name. */
  readonly #backoffs = new Map<string, number>()

  /**
   * Runs work synchronously.
   * @param timeout in ms of CPU time
   * @returns undefined where the work exceeds the timeout or the stack, or did so within the last minute
   * @throws the error that the work throws
   */
  run <Result> (name: string, timeout: number, work: () => Result): Result | undefined {
    if (this.#isInBackoff(name)) return undefined
    const before = process.cpuUsage()
    let result: Result | undefined
    context.work = () => { result = work() }
    for (let attempt = 1; ; attempt++) {
      try {
        script.runInContext(context, { timeout })
        return result
      } catch (error) {
        const { code, name: errorName } = error as NodeJS.ErrnoException
        // Schemas that refer to themselves, or are nested deeply, may exceed the stack.
        const isTooDeep = errorName === 'RangeError'
        if (code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT' && !isTooDeep) throw error
        // The timeout is in wall-clock time, of which other processes may have had a part.
        const { user, system } = process.cpuUsage(before)
        const isCut = user + system < timeout * 1_000
        if (!isTooDeep && isCut && attempt < maxAttempts) continue
        this.#backoffs.set(name, Date.now() + backoff)
        return undefined
      }
    }
  }

  #isInBackoff (name: string): boolean {
    if (this.#backoffs.size === 0) return false
    for (const [each, until] of this.#backoffs) if (until <= Date.now()) this.#backoffs.delete(each)
    return this.#backoffs.has(name) || this.#backoffs.size >= maxInBackoff
  }
}

const budgets = new WeakMap<object, TimeBudget>()

/** The time budget shared by all input from one source. @param owner the source, such as the list of tools of one server */
export function timeBudgetOf (owner: object): TimeBudget {
  let budget = budgets.get(owner)
  if (!budget) budgets.set(owner, budget = new TimeBudget())
  return budget
}
