import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { shareRuns } from '../sharing.ts'

/** A process. Its start time distinguishes it from a later process with the same id. */
export interface ProcessIdentity { readonly pid: number, readonly started: string }

export interface ProcessEntry extends ProcessIdentity {
  readonly parent: number
  readonly group: number
  readonly session: number
  /** `TOOL_HUB_CHILD` in its initial environment; undefined if not set or not readable. */
  readonly mark: string | undefined
}

type Stat = Omit<ProcessEntry, 'mark'> & { readonly state: string }

/** Max time that reading may block the event loop at a stretch, in ms. */
const maxTurn = 1
/** Max environments read at the same time. */
const maxFiles = 16

/** Reads the state of a process from /proc (proc(5)); undefined if it has ended, or there is no /proc. */
function readStat (pid: number): Stat | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // The command name is in parentheses, and may itself contain parentheses and spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, parent, group, session] = fields
  const started = fields[19]
  if (state === undefined || started === undefined) return undefined
  return { pid, state, parent: Number(parent), group: Number(group), session: Number(session), started }
}

/** Reads a process's mark. Asynchronous, since the kernel reads the memory of that process, which may take long. */
async function readMark (pid: number): Promise<string | undefined> {
  const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
  return /(?:^|\0)TOOL_HUB_CHILD=([^\0]*)/.exec(environ)?.[1]
}

/** Returns the process that has an id now; undefined if there is none, or if there is no /proc. */
export const findProcess = (pid: number): ProcessIdentity | undefined => readStat(pid)

/** Whether a process has ended but its parent has not read its exit code (a zombie). */
const hasEnded = ({ state }: Stat): boolean => /^[ZX]$/.test(state)

/** Whether a process is running; a zombie is not. */
export function isRunning ({ pid, started }: ProcessIdentity): boolean {
  const stat = readStat(pid)
  return stat?.started === started && !hasEnded(stat)
}

/** Reads the states of all processes. Yields to the event loop, since there may be thousands. */
async function readAllStats (): Promise<Stat[]> {
  const names = await readdir('/proc').catch(() => [])
  const stats: Stat[] = []
  let begun = performance.now()
  for (const pid of names.filter((name) => /^\d+$/.test(name)).map(Number)) {
    const stat = readStat(pid)
    if (stat) stats.push(stat)
    if (performance.now() - begun < maxTurn) continue
    await nextTurn()
    begun = performance.now()
  }
  return stats
}

const sharedStats = shareRuns(readAllStats)

/**
 * Whether any process of a group is running. Zombies do not count: in a container, process 1 often does not reap them.
 * Without /proc, every group is treated as running.
 */
export async function isGroupRunning (pgid: number): Promise<boolean> {
  const stats = await sharedStats()
  return stats.length === 0 || stats.some((stat) => stat.group === pgid && !hasEnded(stat))
}

/** Lists all processes; empty on systems without /proc. Concurrent callers share one read. */
export const listProcesses = shareRuns(async () => {
  const stats = await readAllStats()
  const found: ProcessEntry[] = []
  for (let from = 0; from < stats.length; from += maxFiles) {
    const some = stats.slice(from, from + maxFiles)
    found.push(...await Promise.all(some.map(async (stat) => ({ ...stat, mark: await readMark(stat.pid) }))))
  }
  return found
})
