import { getPriority, setPriority } from 'node:os'

/** How much lower the priority of a worker thread is, as `nice` counts. */
const lowered = 3

/**
 * Lowers the CPU priority of the thread that calls it: calls are relayed first, where cores are few. On Linux alone a thread has a priority
 * of its own; elsewhere it would be that of the process.
 */
export function giveWay (): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(Math.min(19, getPriority() + lowered))
  } catch {
    // Where a sandbox forbids it, the thread keeps the priority of the process.
  }
}
