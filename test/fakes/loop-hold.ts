import { existsSync, readFileSync } from 'node:fs'

/** What the system tells of this thread: how long it ran, and how long it waited for a processor that others had, in ns. */
const file = `/proc/self/task/${process.pid}/schedstat`

/** How long this thread has run, in ms. */
const ran = existsSync(file)
  ? (): number => Number(readFileSync(file, 'utf8').split(' ')[0]) / 1e6
  : () => performance.now()

/**
 * Measures how long the event loop is held at most, as `monitorEventLoopDelay` does, but in time that its thread ran: what other
 * processes and threads had meanwhile says nothing of us.
 * @returns what ends the measurement and gives the longest hold, in ms
 */
export function measureHold (): () => number {
  let longest = 0
  let last = performance.now()
  let lastRan = ran()
  const timer = setInterval(() => {
    const now = performance.now()
    const nowRan = ran()
    longest = Math.max(longest, Math.min(now - last, nowRan - lastRan))
    last = now
    lastRan = nowRan
  }, 2)
  return () => {
    clearInterval(timer)
    return longest
  }
}
