import assert from 'node:assert/strict'
import { test } from 'tap'
import { LogLineLimiter, TokenBucket } from '../../../plugins/base/limits/token-bucket.ts'

test('tokens are spent up to the burst, and come back with time, for each key', async () => {
  let now = 0
  const bucket = new TokenBucket({ burst: 3, perSecond: 2 }, { now: () => now })
  const takes = (key: string): boolean[] => Array.from({ length: 4 }, () => bucket.take(key))
  assert.deepEqual(takes('ann'), [true, true, true, false])
  assert.equal(bucket.take('bob'), true)
  now += 499
  assert.deepEqual([bucket.take('ann'), bucket.waitTime('ann')], [false, 1])
  now += 1
  assert.deepEqual([bucket.waitTime('ann'), bucket.waitTime('ann', 3)], [0, 1_000])
  assert.equal(bucket.take('ann'), true)
  now += 60_000
  assert.deepEqual(takes('ann'), [true, true, true, false], 'no more than the burst is saved up')
})

test('spending may exceed what is left, and is waited for then', async () => {
  let now = 0
  const bucket = new TokenBucket({ burst: 10, perSecond: 5 }, { now: () => now })
  assert.equal(bucket.take('ann', 30), true)
  assert.deepEqual([bucket.waitTime('ann'), bucket.waitTime('ann', 0), bucket.take('ann', 0)], [4_200, 4_000, false])
  now += 4_200
  assert.equal(bucket.take('ann', 30), true)
  bucket.spend('bob', 20)
  assert.equal(bucket.waitTime('bob', 0), 2_000)
})

test('the buckets have a bound: the one used longest ago starts again', async () => {
  const bucket = new TokenBucket({ burst: 1, perSecond: 1 }, { maxKeys: 2, now: () => 0 })
  assert.deepEqual(['a', 'b', 'a'].map((key) => bucket.take(key)), [true, true, false])
  bucket.spend('a', 0)
  assert.deepEqual(['c', 'a', 'b'].map((key) => bucket.take(key)), [true, false, true])
})

test('lines beyond the burst are left out until it is there again, and their number is reported', async () => {
  let now = 0
  const reported: number[] = []
  const lines = new LogLineLimiter({ burst: 2, perSecond: 1 }, (omitted) => { reported.push(omitted) }, () => now)
  const allowed = (count: number): boolean[] => Array.from({ length: count }, () => lines.admit())
  assert.deepEqual(allowed(4), [true, true, false, false])
  now += 1_000
  assert.deepEqual(allowed(1), [false], 'lines that belong together stay together')
  now += 1_000
  assert.deepEqual([allowed(1), reported], [[true], [3]])
  now += 10_000
  assert.deepEqual([allowed(3), reported], [[true, true, false], [3]])
})
