// The address of a gateway elsewhere, and the time at which a key expires: what is taken, and what is said otherwise.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { expiryOf } from '../../cli/commands/keys.ts'
import { exits, Failure } from '../../cli/failure.ts'

const fails = (exit: number, pattern: RegExp) => (error: unknown): boolean => {
  assert.ok(error instanceof Failure)
  assert.deepEqual([error.exit, pattern.test(error.message), /pw/.test(error.message)], [exit, true, false], error.message)
  return true
}

test('--expires', async () => {
  for (const wrong of ['2026-11-31', '2027-02-29', '2027-13-01', 'soon', '2027', '0d', '5', '']) {
    assert.throws(() => expiryOf(wrong), fails(exits.usage, /a date of the calendar/), wrong)
  }
  assert.equal(expiryOf('2996-02-29'), '2996-02-29T00:00:00.000Z')
  assert.equal(expiryOf('2997-01-31T12:00:00+02:00'), '2997-01-31T10:00:00.000Z')
  assert.ok(Math.abs(Date.parse(expiryOf('90s')) - Date.now() - 90_000) < 1_000)
})
