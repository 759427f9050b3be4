import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Running } from './processes.ts'

/** Memory of a process in KiB: resident as it stands, the same after a garbage collection, and what its JavaScript then holds (V8's heap and what hangs on it). */
export interface Memory { standing: number, collected: number, heap: number }

const rest = 2_000
const afterCollection = 500

/** Reads a process that was started with the memory probe, after 2 s of rest, and again after a garbage collection. */
export async function memoryOf ({ child, pid }: Running): Promise<Memory> {
  await sleep(rest)
  const standing = resident(pid)
  const answered = once(child, 'message', { signal: AbortSignal.timeout(10_000) })
  child.send('collect')
  const [{ heap }] = await answered as [{ heap: number }]
  await sleep(afterCollection)
  return { standing, collected: resident(pid), heap: heap / 1_024 }
}

/** Resident set size in KiB, summed over the pages (the one in /proc/<pid>/status lags behind). */
function resident (pid: number): number {
  return Number(/^Rss: +(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1])
}
