import assert from 'node:assert/strict'
import { test } from 'tap'
import { Forwarder } from '../../plugins/gateway/forward.ts'
import { noHooks } from '../../plugins/gateway/hooks.ts'
import { ownerOf } from '../../plugins/access/owner.ts'
import type { Principal } from '../../plugins/access/view.ts'
import { limits } from '../../plugins/limits/index.ts'
import { Semaphore } from '../../plugins/limits/semaphore.ts'
import { ShareError, Shares } from '../../plugins/limits/shares.ts'

const share = { name: 'ShareError', isOwners: true }
const full = { name: 'ShareError', isOwners: false }

test('an owner may take what is free, but the last quarter is for those that hold less than a tenth', async () => {
  const shares = new Shares(100, 'things')
  const releases = Array.from({ length: 75 }, () => shares.take('greedy'))
  assert.throws(() => shares.take('greedy'), share)
  for (let n = 0; n < 10; n++) shares.take('late')
  assert.throws(() => shares.take('late'), share)
  for (let n = 0; n < 15; n++) shares.take(`other ${n}`)
  assert.throws(() => shares.take('last'), full)
  assert.deepEqual([shares.taken, shares.heldBy('greedy'), shares.heldBy('late')], [100, 75, 10])
  for (const release of releases) { release(); release() }
  assert.deepEqual([shares.taken, shares.heldBy('greedy')], [25, 0], 'releasing twice releases once')
  shares.take('greedy')
})

test('places of different size', async () => {
  const shares = new Shares(1_000, 'bytes')
  shares.take('a', 750)
  assert.throws(() => shares.take('a', 1), share)
  assert.throws(() => shares.take('b', 251), full)
  assert.throws(() => shares.take('b', 101), share)
  const release = shares.take('b', 100)
  release()
  assert.equal(shares.heldBy('b'), 0)
})

test('owners: users with all their keys, system keys, addresses', async () => {
  const principal = (kind: Principal['kind'], key: string, username?: string): Principal =>
    ({ kind, key, user: username ?? key, isAdmin: false, ...(username === undefined ? {} : { username }) })
  assert.equal(ownerOf(principal('user-key', 'key 1', 'ann'), '192.0.2.1'), ownerOf(principal('user', 'login', 'ann'), '192.0.2.2'))
  assert.notEqual(ownerOf(principal('system-key', 'key 1'), '192.0.2.1'), ownerOf(principal('system-key', 'key 2'), '192.0.2.1'))
  const anonymous = principal('anonymous', 'anonymous')
  assert.notEqual(ownerOf(anonymous, '192.0.2.1'), ownerOf(anonymous, '192.0.2.2'))
  assert.equal(ownerOf(anonymous, '2001:db8::1'), ownerOf(anonymous, '2001:db8::2:3'), 'a client has 64 bits of IPv6 addresses')
  assert.equal(ownerOf(anonymous, '::ffff:192.0.2.1'), ownerOf(anonymous, '192.0.2.1'))
})

test('one caller who holds calls without end does not shut out the next one', async () => {
  const answers: Array<() => void> = []
  const call = async (): Promise<object> => await new Promise((resolve) => { answers.push(() => { resolve({ resultText: '{}' }) }) })
  const forwarder = new Forwarder({ use: () => ({ call }) } as never, noHooks(), () => {})
  const send = async (owner: string): Promise<string> =>
    await forwarder.send({ client: { id: owner, owner } } as never, 'server', 'item')
  const held = Array.from({ length: limits.calls * 3 / 4 }, async () => await send('greedy'))
  await assert.rejects(send('greedy'), ShareError)
  const late = Array.from({ length: limits.calls / 10 }, async () => await send('late'))
  await assert.rejects(send('late'), share)
  assert.equal(answers.length, held.length + late.length)
  for (const answer of answers) answer()
  assert.equal((await Promise.all([...held, ...late])).length, held.length + late.length)
  const again = send('greedy')
  answers.at(-1)?.()
  assert.equal(await again, '{}')
})

test('waiting owners take turns, those of one owner stay in order', async () => {
  const semaphore = new Semaphore({ places: 1 })
  const release = await semaphore.take('a')
  const order: string[] = []
  const run = async (owner: string, name: string): Promise<void> => {
    const leave = await semaphore.take(owner)
    order.push(name)
    leave()
  }
  const all = [run('a', 'a1'), run('a', 'a2'), run('a', 'a3'), run('b', 'b1'), run('c', 'c1'), run('b', 'b2')]
  release()
  release()
  await Promise.all(all)
  assert.deepEqual(order, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

test('owners without privilege have a bound of their own, and leave the reserved places', async () => {
  const semaphore = new Semaphore({ places: 4, perOwner: 2, reserved: 1 })
  const taken: string[] = []
  const take = (owner: string, isPrivileged: boolean): Promise<() => void> => {
    const taking = semaphore.take(owner, isPrivileged)
    void taking.then(() => { taken.push(owner) })
    return taking
  }
  const [first] = [take('ann', false), take('ann', false), take('ann', false), take('bob', false), take('bob', false)]
  await new Promise((resolve) => { setImmediate(resolve) })
  assert.deepEqual(taken, ['ann', 'ann', 'bob'])
  await take('admin', true)
  void take('admin', true)
  const leave = await first
  leave?.()
  await new Promise((resolve) => { setImmediate(resolve) })
  assert.deepEqual(taken, ['ann', 'ann', 'bob', 'admin', 'ann'], 'the one who has waited longest')
})
