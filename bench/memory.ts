import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Running } from './processes.ts'

/** Memory of a process, in KiB. */
export interface Memory {
  /** Resident set size before a garbage collection. */
  standing: number
  /** Resident set size after a garbage collection. */
  collected: number
  /** Used by JavaScript after a garbage collection, inside and outside V8's heap. */
  heap: number
}

/** Idle time before the first reading, and after the garbage collection, in ms. */
const settleTime = 2_000
const collectionTime = 500

/** The memory of a process with the memory probe, after 2 s without work, and again after a garbage collection. */
export async function memoryOf ({ child, pid }: Running): Promise<Memory> {
  await sleep(settleTime)
  const standing = resident(pid)
  const answered = once(child, 'message', { signal: AbortSignal.timeout(10_000) })
  child.send('collect')
  const [{ heap }] = await answered as [{ heap: number }]
  await sleep(collectionTime)
  return { standing, collected: resident(pid), heap: heap / 1_024 }
}

/** Resident set size in KiB, summed over the pages; that in /proc/<pid>/status lags behind. */
function resident (pid: number): number {
  return Number(/^Rss: +(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1])
}
