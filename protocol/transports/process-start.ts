import { readFileSync, writeFileSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'

/** How long one turn of the event loop starts processes, in ms: each start holds it for some, and for more while others start. */
const longest = 20
/** How long this turn has done so, in ms. */
const turn = { time: 0 }

/** Resolves when this turn of the event loop has time to start a process. */
export async function mayStart (): Promise<void> {
  while (turn.time >= longest) await new Promise((resolve) => { setImmediate(resolve) })
}

/** Counts a start. @param took in ms */
export function noteStart (took: number): void {
  if (turn.time === 0) setImmediate(() => { turn.time = 0 })
  turn.time += took
}

/** How much lower the priority is of a process that yields, as `nice` counts. */
const lowered = 10
/**
 * The same for its group, which competes with all that runs on the machine: with two busy programs beside it for each core, one lowered by
 * 5 still gets a seventh of a core; one lowered by 10 gets a twentieth, and a Node server takes longer to start than clients wait.
 */
const groupLowered = 5
/** The lowest priority that there is. */
const lowest = constants.priority.PRIORITY_LOW

/** Lowers the CPU priority of a process that has just been started, and with it that of what it starts. */
export function lowerPriority (pid: number): void {
  try {
    setPriority(pid, lowerBy(lowered))
  } catch {
    // It has ended already, or the system does not allow it: it runs as any other.
  }
  lowerGroup(pid, lowerBy(groupLowered))
}

/** A priority that is lower than the gateway's. */
function lowerBy (by: number): number {
  return Math.min(lowest, getPriority() + by)
}

/** How often a system that is busy with another group is asked, and the time between, in ms: it allows one change in 100 ms. */
const attempts = 20
const attemptInterval = 110

/**
 * Lowers the priority of a process's group as well. Linux shares CPU time between sessions of processes (`setsid`; man 7 sched, "The
 * autogroup feature"): the `nice` of a process counts within its own only, and each of our children has one of its own. Where there are
 * control groups for CPU time, as in containers, there are no such groups, and `nice` is enough.
 */
function lowerGroup (pid: number, priority: number, left = attempts): void {
  try {
    const of = (process: number | 'self'): string => readFileSync(`/proc/${process}/autogroup`, 'utf8')
    const isOwn = of(pid).split(' ')[0] === of('self').split(' ')[0]
    if (!isOwn) writeFileSync(`/proc/${pid}/autogroup`, String(priority))
  } catch (error) {
    // Any other error: there is no such group, or the process has ended already.
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || left === 0) return
    setTimeout(() => { lowerGroup(pid, priority, left - 1) }, attemptInterval).unref()
  }
}

/** Why a command cannot be started, in a sentence. */
export function startFailure (command: string, cwd: string | undefined, error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT') {
    const orFolder = cwd === undefined ? '' : `, or no folder ${JSON.stringify(cwd)}`
    if (/\S\s+\S/.test(command) && !command.includes('/')) {
      return `cannot start ${JSON.stringify(command)}: no such command${orFolder}. "command" names the program alone: ` +
        'put its arguments into "args"'
    }
    return `cannot start ${JSON.stringify(command)}: no such command${orFolder}; is it installed and on the PATH?`
  }
  if (error.code === 'EACCES') return `cannot start ${JSON.stringify(command)}: it is not executable`
  return `cannot start ${JSON.stringify(command)}: ${error.code ?? error.message}`
}
