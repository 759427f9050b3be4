import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

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

/**
 * Kills descendants that have left the group (daemons call setsid) but kept the environment of the child. Linux only, since it reads
 * /proc; on other systems they cannot be found.
 */
export async function killMarked (mark: string): Promise<void> {
  const pids = await readdir('/proc').catch(() => [])
  // One after the other: there may be more processes than files that this process may open.
  for (const pid of pids.filter((name) => /^\d+$/.test(name))) {
    const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    if (!environ.includes(`TOOL_HUB_CHILD=${mark}\0`)) continue
    try { process.kill(Number(pid), 'SIGKILL') } catch {}
  }
}
