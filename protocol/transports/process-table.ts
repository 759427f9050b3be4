import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sharing } from '../sharing.ts'

/** A process, told apart from a later one with its id by the time of its start. */
export interface ProcessId { readonly pid: number, readonly started: string }

export interface ProcessEntry extends ProcessId {
  readonly parent: number
  readonly group: number
  readonly session: number
  /** The value of `TOOL_HUB_CHILD` in the environment that it was started with; undefined: there is none, or it may not be read. */
  readonly mark: string | undefined
}

type Stat = Omit<ProcessEntry, 'mark'> & { readonly state: string }

/** Max time of a turn of the event loop in which states of processes are read, in ms. */
const longestTurn = 1
/** Max environments that are read at the same time: a few of the files that this process may open. */
const mostFiles = 16

/**
 * The state of a process and where it belongs, by /proc (proc(5)); undefined: it is gone, or this is another system. The kernel answers
 * from its memory, in some 0.05 ms; in a busy process each of the five steps of a read that does not block would wait for a turn.
 */
function statOf (pid: number): Stat | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // The name of the command stands in parentheses, and may hold some, and spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, parent, group, session] = fields
  const started = fields[19]
  if (state === undefined || started === undefined) return undefined
  return { pid, state, parent: Number(parent), group: Number(group), session: Number(session), started }
}

/** @returns the mark that a process was started with. This may block: the kernel reads it from the memory of that process. */
async function markOf (pid: number): Promise<string | undefined> {
  const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
  return /(?:^|\0)TOOL_HUB_CHILD=([^\0]*)/.exec(environ)?.[1]
}

/** The process that has an id now; undefined: none has. */
export const processOf = (pid: number): ProcessId | undefined => statOf(pid)

/** Whether it has ended, and only waits for its parent to notice (a zombie). */
const hasEnded = ({ state }: Stat): boolean => /^[ZX]$/.test(state)

/** Whether a process runs: it may have ended, and wait for its parent to notice. */
export function runs ({ pid, started }: ProcessId): boolean {
  const stat = statOf(pid)
  return stat?.started === started && !hasEnded(stat)
}

async function allStats (): Promise<Stat[]> {
  const names = await readdir('/proc').catch(() => [])
  const stats: Stat[] = []
  let begun = performance.now()
  for (const pid of names.filter((name) => /^\d+$/.test(name)).map(Number)) {
    const stat = statOf(pid)
    if (stat) stats.push(stat)
    if (performance.now() - begun < longestTurn) continue
    await nextTurn()
    begun = performance.now()
  }
  return stats
}

const sharedStats = sharing(allStats)

/**
 * Whether a process of a group runs. A zombie belongs to its group until its parent reads its exit code, which init may do much later, or
 * never: in a container, process 1 is often no init. Without /proc, as on other systems than Linux, every group counts as running.
 */
export async function groupRuns (pgid: number): Promise<boolean> {
  const stats = await sharedStats()
  return stats.length === 0 || stats.some((stat) => stat.group === pgid && !hasEnded(stat))
}

/**
 * All processes. Linux only, since it reads /proc; on other systems there are none. Many may ask at the same time, and this takes two files
 * for each process that there is, so they share one look.
 */
export const allProcesses = sharing(async () => {
  const stats = await allStats()
  const found: ProcessEntry[] = []
  for (let from = 0; from < stats.length; from += mostFiles) {
    found.push(...await Promise.all(stats.slice(from, from + mostFiles).map(async (stat) => ({ ...stat, mark: await markOf(stat.pid) }))))
  }
  return found
})
