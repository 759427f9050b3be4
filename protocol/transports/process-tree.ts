import { setTimeout as sleep } from 'node:timers/promises'
import { killGroup } from './process-group.ts'
import { allProcesses, runs, type ProcessEntry, type ProcessId } from './process-table.ts'

/** Max looks for processes that were started during the look before. Beyond: they are killed, and what they start meanwhile is missed. */
const mostLooks = 20

/**
 * A child that leads a process group, and all that it started: its group and its session, what has its mark in the environment (daemons
 * call setsid, and keep it), and the descendants of all of these. A process that has left the group and emptied its environment is found
 * by its parent alone, so the parents are looked at before any of them ends. Linux only; on other systems it is the group.
 */
export class ProcessTree {
  readonly #pgid: number
  readonly #mark: string
  /** The processes found so far, by id and start. */
  readonly #found = new Map<string, ProcessId>()

  /** @param mark the child's `TOOL_HUB_CHILD` */
  constructor (pgid: number, mark: string) {
    this.#pgid = pgid
    this.#mark = mark
  }

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
   * Ends them: TERM for the group at once, KILL after `grace` ms for all that is left. Resolves when none of them runs, or some seconds
   * after KILL.
   * @param gone resolves when the child has exited
   */
  async end (gone: Promise<void>, grace: number): Promise<void> {
    await killGroup(this.#pgid, gone, grace, async () => { await this.#stop() })
    const processes = [...this.#found.values()]
    signal(processes, 'SIGKILL')
    const end = Date.now() + 1_000
    for (const each of processes) while (runs(each) && Date.now() < end) await sleep(10)
  }

  /** Stops them until none is left that could start another one: what is started while others are killed would have no parent then. */
  async #stop (): Promise<void> {
    await this.look()
    let fresh = [...this.#found.values()]
    for (let looks = 0; looks < mostLooks && signal(fresh, 'SIGSTOP') > 0; looks++) fresh = await this.look()
  }

  /** @returns those of all processes that belong to the tree */
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
function signal (processes: readonly ProcessId[], name: NodeJS.Signals): number {
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
