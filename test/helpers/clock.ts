import { mock } from 'node:test'
import type { Cleanup } from './hub.ts'

/** Mocks these timers until the test ends; `mock.timers` of node:test moves them. */
export function mockTimers (t: Cleanup, ...apis: Array<'setTimeout' | 'setInterval' | 'Date'>): void {
  mock.timers.enable({ apis })
  t.after(() => { mock.timers.reset() })
}

/** Holds `performance.now()` until the test ends: the time is what the test sets `at` to, in ms. */
export function holdClock (t: Cleanup): { at: number } {
  const clock = { at: performance.now() }
  const held = mock.method(performance, 'now', () => clock.at)
  t.after(() => { held.mock.restore() })
  return clock
}

/**
 * Puts the clock of this process, and of the gateways in it, forward; timers go on as before. It is right again after the test.
 * @returns puts it forward by so many ms
 */
export function movingClock (t: Cleanup): (by: number) => void {
  const { now } = Date
  let ahead = 0
  Date.now = () => now() + ahead
  t.after(() => { Date.now = now })
  return (by) => { ahead += by }
}

/** So many turns of the event loop. */
export async function turnsOfLoop (count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => { setImmediate(resolve) })
}

/** Waits for a condition while timers stand still. */
export async function turnsUntil (holds: () => boolean): Promise<void> {
  while (!holds()) await turnsOfLoop(1)
}
