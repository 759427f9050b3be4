// What a key more costs: the CPU of a call with 10,000 keys stored, relative to one. `npm run bench` prints it, too.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { Processes } from '../../bench/processes.ts'
import { keysBound, measureKeys } from '../../bench/keys.ts'
import { median } from '../helpers/measured.ts'
import { temporaryFolder } from '../fakes/store-file.ts'

test('a call with 10,000 keys stored costs what it costs with one', async (t) => {
  const ratio = await median(t, 'times the CPU', async () => {
    const processes = new Processes()
    t.after(() => { processes.killAll() })
    const measured = await measureKeys({ processes, folder: await temporaryFolder(t), pairs: 9, calls: 200 }).catch((error: unknown) => {
      throw new Error(`what the processes printed:\n${processes.output()}`, { cause: error })
    })
    await processes.stopAll()
    return measured.median
  })
  assert.ok(ratio <= keysBound, `${ratio.toFixed(3)} times the CPU; at most ${keysBound}`)
})
