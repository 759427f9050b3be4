// The time at which a quota is free again, as its refusals tell it.
import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Counters } from '../../../db/store.ts'
import { Quotas } from '../../../plugins/extensions/quotas/quotas.ts'
import type { GatewayCall } from '../../../plugins/gateway/index.ts'
import { RuleRefusalError } from '../../../protocol/errors.ts'
import type { Quota } from '../../../schemas/quotas.ts'

/** Counters that begin with the first use, on a clock that the test holds. */
function heldCounters (now: () => number): Counters {
  const all = new Map<string, { count: number, ends: number }>()
  const find = (key: string): { count: number, ends: number } | undefined => {
    const known = all.get(key)
    return known !== undefined && known.ends > now() ? known : undefined
  }
  return {
    reset: async (key) => { all.delete(key) },
    take: async (key, amount, window, max = Infinity) => {
      const { count, ends } = find(key) ?? { count: 0, ends: now() + window }
      if (count >= max) return { isTaken: false, count, left: ends - now() }
      all.set(key, { count: count + amount, ends })
      return { isTaken: true, count: count + amount, left: ends - now() }
    },
    giveBack: async (key, amount) => {
      const known = find(key)
      if (known) known.count -= amount
    },
    read: async (key) => {
      const known = find(key)
      return known === undefined ? { count: 0, left: 0 } : { count: known.count, left: known.ends - now() }
    }
  }
}

interface World {
  /** Calls, and adds the tokens of a result that takes some seconds. @returns the refusal, if it is refused */
  call: (tokens?: number, seconds?: number) => Promise<RuleRefusalError | undefined>
  wait: (seconds: number) => void
  readonly told: string[]
}

/** @param replicas how many take the calls in turn, with the same counters */
function world (quota: Omit<Quota, 'id' | 'name' | 'per'>, replicas = 1): World {
  let time = Date.parse('2026-11-30T12:00:00Z')
  const now = (): number => time
  const told: string[] = []
  const counters = heldCounters(now)
  const turns = Array.from({ length: replicas }, () => new Quotas({
    counters,
    snapshot: () => ({
      quotas: new Map([['q', { id: 'q', name: 'Minute', per: 'minute', ...quota }]]),
      teams: new Map(),
      users: new Map()
    }),
    reportExhausted: (_quota, freeAt) => { told.push(freeAt.toISOString()) },
    now
  }))
  const principal = { key: 'ada', kind: 'user', user: 'ada', username: 'ada', isAdmin: false }
  return {
    call: async (tokens = 0, seconds = 0) => {
      const quotas = turns.shift() as Quotas
      turns.push(quotas)
      const exchange = { method: 'tools/call', view: { principal } }
      const call = { exchange, provider: 'up', item: 'say' } as unknown as GatewayCall
      try {
        await quotas.take(call)
      } catch (error) {
        assert.ok(error instanceof RuleRefusalError)
        return error
      }
      time += seconds * 1_000
      await quotas.addTokens(call, tokens)
      return undefined
    },
    wait: (seconds) => { time += seconds * 1_000 },
    told
  }
}

test('a quota is free when the last of its counters is', async () => {
  const { call, wait, told } = world({ target: {}, calls: 1, resultTokens: 5 })
  // The tokens begin their minute with the result, and the calls a new one while that lasts.
  assert.equal(await call(1, 30), undefined)
  wait(31)
  assert.equal(await call(4), undefined)
  wait(4)
  const refusal = await call()
  assert.equal(refusal?.retryAfter, 56)
  assert.match(refusal.message, /\(1 call and 5 tokens of results a minute\)/)
  assert.deepEqual(told, ['2026-11-30T12:02:01.000Z'])
  wait(55)
  assert.equal((await call())?.retryAfter, 1)
  wait(1)
  assert.equal(await call(), undefined, 'as it said')
})

test('replicas report together that a quota is used up, once in each period', async () => {
  const { call, wait, told } = world({ target: {}, calls: 1 }, 2)
  for (const count of [1, 2]) {
    assert.equal(await call(), undefined)
    for (let n = 0; n < 4; n++) assert.equal((await call())?.retryAfter, 60)
    assert.equal(told.length, count)
    wait(60)
  }
})

test('a quota that allows no calls may be asked again after its period', async () => {
  for (const never of [{ calls: 0 }, { resultTokens: 0 }]) {
    const { call, told } = world({ target: {}, ...never })
    const refusal = await call()
    assert.equal(refusal?.message, 'The quota "Minute" allows no calls')
    assert.deepEqual([refusal.reason, refusal.retryAfter, told], ['quota', 60, []])
  }
})
