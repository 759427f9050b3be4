import { readdirSync, readFileSync } from 'node:fs'

/** CPU time of a process and its living threads so far, in ms, from its own accounting: the scheduler's nanoseconds, else clock ticks of 10 ms. */
export function cpuTime (pid: number): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + scheduled(pid, thread), 0)
  return nanoseconds > 0 ? nanoseconds / 1e6 : ticks(pid) * 10
}

/** Nanoseconds on a core; 0 where the kernel does not say, or the thread is gone. */
function scheduled (pid: number, thread: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0])
  } catch {
    return 0
  }
}

/** utime + stime: the 14th and 15th field, counted from the end of the name, which may hold spaces. */
function ticks (pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}
