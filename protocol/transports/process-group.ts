import { setTimeout as sleep } from 'node:timers/promises'
import { groupRuns } from './process-table.ts'

/** Time after which it is looked again whether a group has ended, at first and at most, in ms. A look reads the states of all processes. */
const interval = { first: 20, longest: 100 }

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
 * Resolves when none of the group runs, or a second after KILL.
 * @param gone resolves when the leader has exited
 * @param beforeKill what is done between the grace and KILL
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
    wait = Math.min(2 * wait, interval.longest)
  }
  await beforeKill()
  const left = signalGroup(pgid, 'SIGKILL')
  groups.delete(pgid)
  if (!left) return
  await Promise.race([gone, sleep(1_000, undefined, { ref: false })])
}
