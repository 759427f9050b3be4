// What ten policies cost a call. `node --import tsx bench/policies.ts` prints it with more calls.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { measurePolicies, policiesBound } from '../../bench/policies.ts'
import { Processes } from '../../bench/processes.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { median } from '../helpers/measured.ts'

test('a call with ten policies costs little more than one without rules', async (t) => {
  const ratio = await median(t, 'times the CPU', async () => {
    const processes = new Processes()
    t.after(() => { processes.killAll() })
    const options = { processes, folder: await temporaryFolder(t), pairs: 9, calls: 400 }
    const measured = await measurePolicies(options).catch((error: unknown) => {
      throw new Error(`what the processes printed:\n${processes.output()}`, { cause: error })
    })
    await processes.stopAll()
    return measured.ratio.median
  })
  assert.ok(ratio <= policiesBound, `${ratio.toFixed(3)} times the CPU; at most ${policiesBound}`)
})
