import { createContext, Script } from 'node:vm'
import { BoundedMap, limits } from '../limits/index.ts'

/** Time for which work that exceeded its timeout is not started again, in ms. */
const backoff = 60_000

/** Max entries of one budget in backoff; while there are as many, no work of that budget is started. */
const maxInBackoff = 10

/** Max attempts at work that was stopped before it had used up its CPU time. */
const maxAttempts = 5

/** Min CPU time that work is started with, unless its timeout is shorter, in ms. */
const minAllowance = 5

/**
 * What is taken from an owner's budget for work. While work runs, nothing else does, so what is long costs more than its time: what was
 * stopped, as hostile input is, and what exceeds `limits.schemaCpu.slice`.
 * @param spent in ms of CPU time
 */
function costOf (spent: number, isStopped: boolean): number {
  const { slice, longer } = limits.schemaCpu
  return isStopped ? longer * spent : spent + (longer - 1) * Math.max(0, spent - slice)
}

/** The clocks of CPU budgets, and the timeout that stops work. Tests inject one whose clocks they hold. */
export interface Meter {
  /** In ms, from any moment on. */
  readonly now: () => number
  /** The CPU time of this process, in ms. */
  readonly cpuTime: () => number
  /** Runs work synchronously. @param timeout in ms @throws ERR_SCRIPT_EXECUTION_TIMEOUT; what the work throws */
  readonly run: (work: () => void, timeout: number) => void
}

const context = createContext({ work: () => {} })
const script = new Script('work()')

/** The clocks of the machine; the timeout is in wall-clock time. */
export const machine: Meter = {
  now: () => performance.now(),
  cpuTime: () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1_000
  },
  run: (work, timeout) => {
    context.work = work
    script.runInContext(context, { timeout })
  }
}

interface CpuBudgetOptions {
  /** Long work costs no more than its time: schemas of admins' servers are large, and not hostile. */
  readonly isPatient?: boolean
  /** Each timeout within a minute costs twice as much as the one before: an owner of hostile schemas causes many of them. */
  readonly doubles?: boolean
  readonly meter?: Pick<Meter, 'now'>
}

/** The CPU time of all work on one owner's input: a token bucket. */
export class CpuBudget {
  /** In ms of CPU time. */
  #left: number = limits.schemaCpu.burst
  #updated: number
  readonly #isPatient: boolean
  readonly #doubles: boolean
  readonly #now: () => number
  /** How often the cost of what is stopped has doubled, and when something was stopped last. */
  readonly #stops = { count: 0, last: -Infinity }

  constructor ({ isPatient = false, doubles = false, meter = machine }: CpuBudgetOptions = {}) {
    this.#isPatient = isPatient
    this.#doubles = doubles
    this.#now = meter.now
    this.#updated = this.#now()
  }

  /** The longest time that work may take, in ms of CPU time. */
  get longest (): number { return this.#isPatient ? Infinity : limits.schemaCpu.validation }

  /** The CPU time that may be spent now, in ms. */
  get left (): number {
    const now = this.#now()
    this.#left = Math.min(limits.schemaCpu.burst, this.#left + (now - this.#updated) / 1_000 * limits.schemaCpu.perSecond)
    this.#updated = now
    return this.#left
  }

  get isFull (): boolean { return this.left >= limits.schemaCpu.burst }

  /** @param time in ms of CPU time @param isStopped it was not enough for the work */
  spend (time: number, isStopped = false): void {
    const times = isStopped && this.#doubles ? this.#noteStop() : 1
    this.#left -= this.#isPatient ? time : times * costOf(time, isStopped)
  }

  /** @returns by how much what is stopped now costs more than the first */
  #noteStop (): number {
    const now = this.#now()
    const { last, count } = this.#stops
    this.#stops.last = now
    this.#stops.count = now - last > backoff ? 0 : Math.min(count + 1, limits.schemaCpu.doublings)
    return 2 ** this.#stops.count
  }
}

/** The CPU budgets of owners, by name. One that is full is as good as a new one. */
export class CpuBudgets {
  readonly #budgets = new BoundedMap<string, CpuBudget>(limits.schemaCpu.owners, { isEvictable: (_owner, { isFull }) => isFull })
  readonly #doubles: boolean

  /** @param doubles as `CpuBudget` takes it */
  constructor (doubles = false) { this.#doubles = doubles }

  /** @param isPatient as `CpuBudget` takes it */
  of (owner: string, isPatient = false): CpuBudget {
    let budget = this.#budgets.get(owner)
    if (!budget) this.#budgets.set(owner, budget = new CpuBudget({ isPatient, doubles: this.#doubles }))
    return budget
  }
}

/**
 * Runs work on input from elsewhere (schemas, and the regular expressions in them) with a timeout, since the cost of such input cannot
 * be told by looking at it.
 */
class TimeBudget {
  /** The end of each entry's backoff, by name. */
  readonly #backoffs = new Map<string, number>()
  readonly #meter: Meter

  constructor (meter: Meter) { this.#meter = meter }

  /**
   * Runs work synchronously.
   * @param longest a timeout, in ms of CPU time
   * @param cpu the budget of the owner, from which the work's time is taken; the timeout is shorter where less is left, or allowed
   * @returns undefined where the work exceeds the timeout or the stack, or did so within the last minute, or the owner's budget is spent
   * @throws the error that the work throws
   */
  run <Result> (name: string, longest: number, work: () => Result, cpu?: CpuBudget): Result | undefined {
    if (this.#isInBackoff(name)) return undefined
    const timeout = Math.min(longest, cpu?.longest ?? longest)
    const allowance = Math.min(timeout, cpu?.left ?? timeout)
    if (allowance < Math.min(timeout, minAllowance)) return undefined
    const { now, cpuTime, run } = this.#meter
    const before = cpuTime()
    let result: Result | undefined
    // The time that it takes to set the timeout is not the owner's.
    let spent = 0
    let isStopped = false
    const timed = (): void => {
      const start = now()
      try {
        result = work()
      } finally {
        spent = now() - start
      }
    }
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          run(timed, Math.ceil(allowance))
          return result
        } catch (error) {
          const { code, name: errorName } = error as NodeJS.ErrnoException
          // Schemas that refer to themselves, or are nested deeply, may exceed the stack.
          const isTooDeep = errorName === 'RangeError'
          if (code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT' && !isTooDeep) throw error
          // The timeout is in wall-clock time, of which other processes may have had a part.
          spent = cpuTime() - before
          if (!isTooDeep && spent < allowance && attempt < maxAttempts) continue
          // Work that was given much less than its timeout may be started again once more is left.
          isStopped = true
          if (isTooDeep || allowance >= timeout / 2) this.#backoffs.set(name, now() + backoff)
          return undefined
        }
      }
    } finally {
      // Other processes may have had a part of a long time.
      if (spent > limits.schemaCpu.slice) spent = Math.min(spent, cpuTime() - before)
      cpu?.spend(spent, isStopped)
    }
  }

  #isInBackoff (name: string): boolean {
    if (this.#backoffs.size === 0) return false
    for (const [each, until] of this.#backoffs) if (until <= this.#meter.now()) this.#backoffs.delete(each)
    return this.#backoffs.has(name) || this.#backoffs.size >= maxInBackoff
  }
}

const budgets = new WeakMap<object, TimeBudget>()

/**
 * The time budget shared by all input from one source.
 * @param owner the source, such as the list of tools of one server
 * @param meter for the first call for this owner
 */
export function timeBudgetOf (owner: object, meter = machine): TimeBudget {
  let budget = budgets.get(owner)
  if (!budget) budgets.set(owner, budget = new TimeBudget(meter))
  return budget
}
