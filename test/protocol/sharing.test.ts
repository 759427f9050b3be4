import assert from 'node:assert/strict'
import { test } from 'tap'
import { shareRuns } from '../../protocol/sharing.ts'

test('who asks while a run is under way shares the next one with all others', async () => {
  const ends: Array<() => void> = []
  let runs = 0
  const ask = shareRuns(async () => {
    const number = ++runs
    await new Promise<void>((resolve) => { ends.push(resolve) })
    return number
  })
  const turn = async (): Promise<void> => { await new Promise((resolve) => { setImmediate(resolve) }) }
  const together = [ask(), ask()]
  await turn()
  const later = [ask(), ask(), ask()]
  await turn()
  assert.equal(runs, 1, 'one at a time')
  ends[0]?.()
  assert.deepEqual(await Promise.all(together), [1, 1])
  await turn()
  ends[1]?.()
  assert.deepEqual(await Promise.all(later), [2, 2, 2], 'what began before they asked is not for them')
  const last = ask()
  await turn()
  ends[2]?.()
  assert.equal(await last, 3)
})

test('a run that fails fails for those who share it, and not for the next ones', async () => {
  let runs = 0
  const ask = shareRuns(async () => {
    if (++runs === 1) throw new Error('the first one')
    return runs
  })
  const [one, other] = await Promise.allSettled([ask(), ask()])
  assert.deepEqual([one.status, other.status], ['rejected', 'rejected'])
  assert.equal(await ask(), 2)
})
