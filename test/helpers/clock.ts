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

/** So many turns of the event loop. */
export async function turnsOfLoop (count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => { setImmediate(resolve) })
}
