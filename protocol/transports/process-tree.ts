import { setTimeout as sleep } from 'node:timers/promises'
import { allProcesses, groupRuns, runs, type ProcessEntry, type ProcessId } from './process-table.ts'

/** Time between two checks whether a group has ended, at first and at most, in ms: it doubles. */
const interval = { first: 20, max: 100 }
/** Max searches for processes that were started during the search before. */
const maxSearches = 20

/** The groups that are alive. They are killed when the program exits, for whatever reason. */
const groups = new Set<number>()
process.on('exit', () => { for (const pgid of groups) signalGroup(pgid, 'SIGKILL') })

/** Registers a group, to be killed if the program exits before the group has ended. */
export const guardGroup = (pgid: number): void => { groups.add(pgid) }

/** Sends a signal to a process group. @returns false when the group has no processes any more */
function signalGroup (pgid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pgid, signal)
    return true
  } catch {
    return false
  }
}

/**
 * Ends a process group: TERM at once, and KILL after `grace` ms for the processes that are left, the leader's children
 * included. Resolves when none of the group runs, or a second after KILL.
 * @param gone resolves when the leader has exited
 * @param beforeKill runs between the grace and KILL
 */
export async function killGroup (
  pgid: number,
  gone: Promise<void>,
  grace: number,
  beforeKill: () => Promise<void> = async () => {}
): Promise<void> {
  signalGroup(pgid, 'SIGTERM')
  const end = Date.now() + grace
  await Promise.race([gone, sleep(grace, undefined, { ref: false })])
  let wait = interval.first
  while (signalGroup(pgid, 0) && await groupRuns(pgid) && Date.now() < end) {
    await sleep(wait)
    wait = Math.min(2 * wait, interval.max)
  }
  await beforeKill()
  const hasRest = signalGroup(pgid, 'SIGKILL')
  groups.delete(pgid)
  if (hasRest) await Promise.race([gone, sleep(1_000, undefined, { ref: false })])
}

/**
 * A child that leads a process group, and all that it started: its group and session, every process with its mark in
 * the environment (daemons call setsid and keep it), and the descendants of all of these. A process that has left the
 * group and emptied its environment is found by its parent alone, so `look` must run before any of them ends. Without
 * /proc, the tree is the group.
 */
export class ProcessTree {
  /** Undefined: the leader is gone, and its id may be another process's. */
  readonly #pgid: number | undefined
  readonly #mark: string
  /** The processes found so far, by id and start. */
  readonly #found = new Map<string, ProcessId>()

  /** @param mark the child's `TOOL_HUB_CHILD` */
  constructor (pgid: number | undefined, mark: string) {
    this.#pgid = pgid
    this.#mark = mark
  }

  /** How many processes have been found so far. */
  get size (): number { return this.#found.size }

  /** Takes note of the processes of now. @returns those that were not known */
  async look (): Promise<ProcessId[]> {
    const fresh: ProcessId[] = []
    for (const each of this.#select(await allProcesses())) {
      if (this.#found.has(keyOf(each))) continue
      this.#found.set(keyOf(each), each)
      fresh.push(each)
    }
    return fresh
  }

  /**
   * Ends them: TERM for the group at once, KILL after `grace` ms for all that is left. Resolves when none of them runs,
   * or some seconds after KILL.
   * @param gone resolves when the child has exited
   */
  async end (gone: Promise<void>, grace: number): Promise<void> {
    if (this.#pgid === undefined) await this.#stop()
    else await killGroup(this.#pgid, gone, grace, async () => { await this.#stop() })
    const processes = [...this.#found.values()]
    signalEach(processes, 'SIGKILL')
    const end = Date.now() + 1_000
    for (const each of processes) while (runs(each) && Date.now() < end) await sleep(10)
  }

  /** Ends what a child that has exited left behind. */
  async endRest (): Promise<void> {
    await this.look()
    await this.end(Promise.resolve(), 500)
  }

  /**
   * Stops them until none is left that could start another one: a process that is started while others are killed has
   * no parent.
   */
  async #stop (): Promise<void> {
    await this.look()
    let fresh = [...this.#found.values()]
    for (let n = 0; n < maxSearches && signalEach(fresh, 'SIGSTOP') > 0; n++) fresh = await this.look()
  }

  /** The processes that belong to the tree. */
  #select (all: readonly ProcessEntry[]): ProcessEntry[] {
    const children = new Map<number, ProcessEntry[]>()
    for (const each of all) {
      const siblings = children.get(each.parent)
      if (siblings) siblings.push(each)
      else children.set(each.parent, [each])
    }
    const selected = new Set(all.filter((each) => this.#isRoot(each)))
    for (const { pid } of selected) for (const child of children.get(pid) ?? []) selected.add(child)
    return [...selected]
  }

  #isRoot (each: ProcessEntry): boolean {
    const { group, session, mark } = each
    return group === this.#pgid || session === this.#pgid || mark === this.#mark || this.#found.has(keyOf(each))
  }
}

const keyOf = ({ pid, started }: ProcessId): string => `${pid} ${started}`

/** Sends a signal to those of the processes that run. @returns how many they are */
function signalEach (processes: readonly ProcessId[], name: NodeJS.Signals): number {
  let sent = 0
  for (const each of processes) {
    if (!runs(each)) continue
    try {
      process.kill(each.pid, name)
      sent++
    } catch {}
  }
  return sent
}
