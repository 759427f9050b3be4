import { existsSync, readFileSync } from 'node:fs'

/** How long this thread has waited for a processor that others had, in ms; 0 where the system does not tell. */
const file = `/proc/self/task/${process.pid}/schedstat`
const waited = existsSync(file) ? (): number => Number(readFileSync(file, 'utf8').split(' ')[1]) / 1e6 : () => 0

/**
 * Measures how long the event loop is held at most, as `monitorEventLoopDelay` does, less the time that the machine gave to other
 * processes meanwhile: that says nothing of us.
 * @returns what ends the measurement and gives the longest hold, in ms
 */
export function measureHold (): () => number {
  let longest = 0
  let last = performance.now()
  let lastWaited = waited()
  const timer = setInterval(() => {
    const now = performance.now()
    const nowWaited = waited()
    longest = Math.max(longest, now - last - (nowWaited - lastWaited))
    last = now
    lastWaited = nowWaited
  }, 2)
  return () => {
    clearInterval(timer)
    return longest
  }
}
