import { mock } from 'node:test'
import type { Cleanup } from './hub.ts'

/** Mocks these timers until the test ends; `mock.timers` of node:test moves them. */
export function mockTimers (t: Cleanup, ...apis: Array<'setTimeout' | 'setInterval' | 'Date'>): void {
  mock.timers.enable({ apis })
  t.after(() => { mock.timers.reset() })
}

/** Waits for a condition while timers stand still. */
export async function turnsUntil (holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => { setImmediate(resolve) })
}
