import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { sharing } from '../sharing.ts'

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
 * Ends a process group: TERM at once, and KILL after `grace` ms for the processes that are left, the leader's children included.
 * Resolves when the group is empty, or a second after KILL.
 * @param gone resolves when the leader has exited
 */
export async function killGroup (pgid: number, gone: Promise<void>, grace: number): Promise<void> {
  signalGroup(pgid, 'SIGTERM')
  const end = Date.now() + grace
  await Promise.race([gone, sleep(grace, undefined, { ref: false })])
  while (signalGroup(pgid, 0) && Date.now() < end) await sleep(20)
  const left = signalGroup(pgid, 'SIGKILL')
  groups.delete(pgid)
  if (!left) return
  await Promise.race([gone, sleep(1_000, undefined, { ref: false })])
}

/** A process, told apart from a later one with its id by the time of its start. */
interface ProcessId { readonly pid: number, readonly started: string }

/** The state, parent and start of a process, by /proc (proc(5)); undefined: it is gone, or this is another system. */
async function statOf (pid: number): Promise<{ state: string, parent: number, started: string } | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
  // The name of the command stands in parentheses, and may hold some, and spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, parent, started] = [fields[0], fields[1], fields[19]]
  if (state === undefined || parent === undefined || started === undefined) return undefined
  return { state, parent: Number(parent), started }
}

/** The ids of all processes. Linux only, since it reads /proc; on other systems there are none. */
async function allProcesses (): Promise<number[]> {
  const names = await readdir('/proc').catch(() => [])
  return names.filter((name) => /^\d+$/.test(name)).map(Number)
}

/** All processes by the process that started them. Many may end at the same time, and this takes a file for each that there is. */
const byParent = sharing(async () => {
  const children = new Map<number, ProcessId[]>()
  // One after the other: there may be more processes than files that this process may open.
  for (const pid of await allProcesses()) {
    const stat = await statOf(pid)
    if (!stat) continue
    const siblings = children.get(stat.parent)
    if (siblings) siblings.push({ pid, started: stat.started })
    else children.set(stat.parent, [{ pid, started: stat.started }])
  }
  return children
})

/** The processes that a process started, and those that these started, whatever group they are in now. */
export async function descendantsOf (root: number): Promise<ProcessId[]> {
  const children = await byParent()
  const found = [...children.get(root) ?? []]
  for (const { pid } of found) found.push(...children.get(pid) ?? [])
  return found
}

/** Whether a process runs: it may have ended, and wait for its parent to notice. */
async function runs ({ pid, started }: ProcessId): Promise<boolean> {
  const stat = await statOf(pid)
  return stat?.started === started && !/^[ZX]$/.test(stat.state)
}

/** Kills those of the processes that still run. Resolves when none of them does, or after a second. */
export async function killAll (processes: readonly ProcessId[]): Promise<void> {
  for (const each of processes) {
    if (!await runs(each)) continue
    try { process.kill(each.pid, 'SIGKILL') } catch {}
  }
  const end = Date.now() + 1_000
  for (const each of processes) while (await runs(each) && Date.now() < end) await sleep(10)
}

/** The marks of processes that are to be killed. */
let doomed = new Set<string>()

const killDoomed = sharing(async () => {
  const marks = doomed
  doomed = new Set()
  for (const pid of await allProcesses()) {
    const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    if (![...environ.matchAll(/TOOL_HUB_CHILD=([^\0]*)\0/g)].some(([, mark = '']) => marks.has(mark))) continue
    try { process.kill(pid, 'SIGKILL') } catch {}
  }
})

/**
 * Kills descendants that have left the group (daemons call setsid) but kept the environment of the child. Linux only. One that has also
 * emptied its environment is found by `descendantsOf` alone, for as long as its parent runs.
 */
export async function killMarked (mark: string): Promise<void> {
  doomed.add(mark)
  await killDoomed()
}
