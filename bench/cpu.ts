import { readdirSync, readFileSync } from 'node:fs'

/** CPU time of a process and its live threads so far, in ms: from the scheduler's nanoseconds, else from clock ticks of 10 ms. */
export function cpuTime (pid: number): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + scheduled(pid, thread), 0)
  return nanoseconds > 0 ? nanoseconds / 1e6 : ticks(pid) * 10
}

/** CPU time of a thread in nanoseconds; 0 where the kernel has no such figure, or the thread has ended. */
function scheduled (pid: number, thread: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0])
  } catch {
    return 0
  }
}

/** utime + stime in clock ticks: the 14th and 15th field. Fields are counted from the end of the name, which may contain spaces. */
function ticks (pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}
