import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/** The groups that are alive. Whatever ends the program, they do not outlive it. */
const groups = new Set<number>()
process.on('exit', () => { for (const pgid of groups) signalGroup(pgid, 'SIGKILL') })

/** Notes a group, to be killed if the program ends without having ended it. */
export const guardGroup = (pgid: number): void => { groups.add(pgid) }

/** Sends a signal to a process group; false when nothing of it is left. */
function signalGroup (pgid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pgid, signal)
    return true
  } catch {
    return false
  }
}

/**
 * Ends a process group: TERM at once, KILL after `grace` ms for whoever is left, the leader's children included.
 * Resolves when the group is empty (or after a second more, when the kernel still holds it).
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
 * Kills descendants that left the group (a daemon calls setsid) but kept the environment they were given. Linux only: it reads
 * /proc; elsewhere the group is all that can be found.
 */
export async function killMarked (mark: string): Promise<void> {
  const pids = await readdir('/proc').catch(() => [])
  // One by one: a machine may have more processes than we may open files.
  for (const pid of pids.filter((name) => /^\d+$/.test(name))) {
    const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    if (!environ.includes(`TOOL_HUB_CHILD=${mark}\0`)) continue
    try { process.kill(Number(pid), 'SIGKILL') } catch {}
  }
}
