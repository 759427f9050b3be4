import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sharing } from '../sharing.ts'

/** A process. The time of its start tells it apart from a later one with the same id. */
export interface ProcessId { readonly pid: number, readonly started: string }

export interface ProcessEntry extends ProcessId {
  readonly parent: number
  readonly group: number
  readonly session: number
  /** `TOOL_HUB_CHILD` of the environment that it was started with; undefined: it is not set, or may not be read. */
  readonly mark: string | undefined
}

type Stat = Omit<ProcessEntry, 'mark'> & { readonly state: string }

/** Max time of a turn of the event loop in which states of processes are read, in ms. */
const maxTurn = 1
/** Max environments that are read at the same time. */
const maxFiles = 16

/** The state of a process, by /proc (proc(5)); undefined: it is gone, or the system has no /proc. */
function statOf (pid: number): Stat | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // The name of the command stands in parentheses, and may itself contain parentheses and spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, parent, group, session] = fields
  const started = fields[19]
  if (state === undefined || started === undefined) return undefined
  return { pid, state, parent: Number(parent), group: Number(group), session: Number(session), started }
}

/** Asynchronous, since the kernel reads the environment from the memory of that process, which may block. */
async function markOf (pid: number): Promise<string | undefined> {
  const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
  return /(?:^|\0)TOOL_HUB_CHILD=([^\0]*)/.exec(environ)?.[1]
}

/** The process that has an id now; undefined: none has. */
export const processOf = (pid: number): ProcessId | undefined => statOf(pid)

/** Whether it has ended, and only waits for its parent to read its exit code (a zombie). */
const hasEnded = ({ state }: Stat): boolean => /^[ZX]$/.test(state)

/** Whether a process runs; a zombie does not. */
export function runs ({ pid, started }: ProcessId): boolean {
  const stat = statOf(pid)
  return stat?.started === started && !hasEnded(stat)
}

/** Reads in turns of the event loop: there may be thousands of processes. */
async function allStats (): Promise<Stat[]> {
  const names = await readdir('/proc').catch(() => [])
  const stats: Stat[] = []
  let begun = performance.now()
  for (const pid of names.filter((name) => /^\d+$/.test(name)).map(Number)) {
    const stat = statOf(pid)
    if (stat) stats.push(stat)
    if (performance.now() - begun < maxTurn) continue
    await nextTurn()
    begun = performance.now()
  }
  return stats
}

const sharedStats = sharing(allStats)

/**
 * Whether a process of a group runs. Zombies do not count: in a container, process 1 is often no init and never reads
 * their exit codes. Without /proc every group counts as running.
 */
export async function groupRuns (pgid: number): Promise<boolean> {
  const stats = await sharedStats()
  return stats.length === 0 || stats.some((stat) => stat.group === pgid && !hasEnded(stat))
}

/** All processes; none on systems without /proc. Simultaneous callers share one reading. */
export const allProcesses = sharing(async () => {
  const stats = await allStats()
  const found: ProcessEntry[] = []
  for (let from = 0; from < stats.length; from += maxFiles) {
    const some = stats.slice(from, from + maxFiles)
    found.push(...await Promise.all(some.map(async (stat) => ({ ...stat, mark: await markOf(stat.pid) }))))
  }
  return found
})
