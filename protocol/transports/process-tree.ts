import { setTimeout as sleep } from 'node:timers/promises'
import { pushTo } from '../grouping.ts'
import { listProcesses, isGroupRunning, isRunning, type ProcessEntry, type ProcessIdentity } from './process-table.ts'

/** The interval between checks whether a group has ended, in ms. It doubles from `first` up to `max`. */
const interval = { first: 20, max: 100 }
/** Max further scans for processes that were started during the previous scan. */
const maxRescans = 20

/** The process groups to kill when this program exits, for whatever reason. */
const groups = new Set<number>()
process.on('exit', () => { for (const pgid of groups) signalGroup(pgid, 'SIGKILL') })

/** Registers a process group that is killed when this program exits. */
export const killGroupOnExit = (pgid: number): void => { groups.add(pgid) }

/** Sends a signal to a process group. @returns false if the group has no processes */
function signalGroup (pgid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pgid, signal)
    return true
  } catch {
    return false
  }
}

/**
 * Ends a process group: sends TERM immediately, waits until no process of the group is running, for at most `grace` ms,
 * and sends KILL to the rest. After KILL, waits only for the leader to exit, for at most a second.
 * @param leaderExited resolves when the leader has exited
 * @param beforeKill runs between the grace period and KILL
 */
export async function killGroup (
  pgid: number,
  leaderExited: Promise<void>,
  grace: number,
  beforeKill: () => Promise<void> = async () => {}
): Promise<void> {
  signalGroup(pgid, 'SIGTERM')
  const end = Date.now() + grace
  await Promise.race([leaderExited, sleep(grace, undefined, { ref: false })])
  let wait = interval.first
  while (signalGroup(pgid, 0) && await isGroupRunning(pgid) && Date.now() < end) {
    await sleep(wait)
    wait = Math.min(2 * wait, interval.max)
  }
  await beforeKill()
  const hasRemaining = signalGroup(pgid, 'SIGKILL')
  groups.delete(pgid)
  if (hasRemaining) await Promise.race([leaderExited, sleep(1_000, undefined, { ref: false })])
}

/**
 * A child that leads a process group, and all processes that it started: processes in its group or session, processes
 * with the child's mark in their environment (even daemons that have called setsid), and all descendants. A process
 * that has left the group and cleared its environment can be found only through its parent, so call `scan` before any
 * process of the tree ends. Without /proc, only the group is ended.
 */
export class ProcessTree {
  /** Undefined if the leader had already ended when the tree was created, since another process may have its id now. */
  readonly #pgid: number | undefined
  readonly #mark: string
  /** The processes found so far, by id and start time. */
  readonly #found = new Map<string, ProcessIdentity>()

  /** @param pgid the group's id, which is the leader's process id @param mark the child's `TOOL_HUB_CHILD` */
  constructor (pgid: number | undefined, mark: string) {
    this.#pgid = pgid
    this.#mark = mark
  }

  /** The number of processes found so far. */
  get size (): number { return this.#found.size }

  /** Records the current processes. @returns the newly found ones */
  async scan (): Promise<ProcessIdentity[]> {
    const fresh: ProcessIdentity[] = []
    for (const each of this.#select(await listProcesses())) {
      if (this.#found.has(keyOf(each))) continue
      this.#found.set(keyOf(each), each)
      fresh.push(each)
    }
    return fresh
  }

  /**
   * Ends all processes of the tree: sends TERM to the group immediately, and KILL to the rest after `grace` ms. If the
   * group is not known, sends only KILL. Resolves when no process is running, at the latest two seconds after KILL.
   * @param leaderExited resolves when the child has exited
   */
  async end (leaderExited: Promise<void>, grace: number): Promise<void> {
    if (this.#pgid === undefined) await this.#stop()
    else await killGroup(this.#pgid, leaderExited, grace, async () => { await this.#stop() })
    const processes = [...this.#found.values()]
    signalEach(processes, 'SIGKILL')
    const end = Date.now() + 1_000
    for (const each of processes) while (isRunning(each) && Date.now() < end) await sleep(10)
  }

  /** Ends the processes that a child left behind when it exited. */
  async endRest (): Promise<void> {
    await this.scan()
    await this.end(Promise.resolve(), 500)
  }

  /**
   * Sends STOP to all processes of the tree, and repeats this for processes that new scans find, at most `maxRescans`
   * times. Otherwise a process could start children that are not found, since they lose their parent when it is killed.
   */
  async #stop (): Promise<void> {
    await this.scan()
    let fresh = [...this.#found.values()]
    for (let n = 0; n < maxRescans && signalEach(fresh, 'SIGSTOP') > 0; n++) fresh = await this.scan()
  }

  /** Selects the processes that belong to the tree. */
  #select (all: readonly ProcessEntry[]): ProcessEntry[] {
    const children = new Map<number, ProcessEntry[]>()
    for (const each of all) pushTo(children, each.parent, each)
    const selected = new Set(all.filter((each) => this.#isRoot(each)))
    for (const { pid } of selected) for (const child of children.get(pid) ?? []) selected.add(child)
    return [...selected]
  }

  #isRoot (each: ProcessEntry): boolean {
    const { group, session, mark } = each
    return group === this.#pgid || session === this.#pgid || mark === this.#mark || this.#found.has(keyOf(each))
  }
}

const keyOf = ({ pid, started }: ProcessIdentity): string => `${pid} ${started}`

/** Sends a signal to the given processes that are still running. @returns the number of signals sent */
function signalEach (processes: readonly ProcessIdentity[], name: NodeJS.Signals): number {
  let sent = 0
  for (const each of processes) {
    if (!isRunning(each)) continue
    try {
      process.kill(each.pid, name)
      sent++
    } catch {}
  }
  return sent
}
