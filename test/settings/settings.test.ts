import assert from 'node:assert/strict'
import { test } from 'tap'
import { StorageError, type Server, type Snapshot, type Store } from '../../db/store.ts'
import { limits } from '../../plugins/limits/index.ts'
import { describeEdit } from '../../plugins/settings/edited.ts'
import { FreshLookUps } from '../../plugins/settings/fresh-look-ups.ts'
import { Settings } from '../../plugins/settings/settings.ts'

const snapshot: Snapshot = {
  version: 1,
  servers: new Map(),
  groups: new Map(),
  keys: new Map(),
  users: new Map(),
  prompts: new Map(),
  resources: new Map(),
  system: {},
  problems: []
}

test('what the log tells of an edit: names, and no values', async () => {
  const server = (name: string, command: string): [string, Server] => [name, { name, config: { command } }]
  const key = { id: '1', name: 'laptop', token: 'plain-secret' }
  const former: Snapshot = { ...snapshot, servers: new Map([server('a', 'x'), server('b', 'x'), server('c', 'x')]), keys: new Map([['1', key]]) }
  assert.equal(describeEdit(former, former), undefined)
  assert.equal(describeEdit(former, { ...former, keys: new Map([['1', { ...key, lastUsedAt: '2026-01-01T00:00:00Z' }]]) }), undefined)
  assert.equal(describeEdit(former, { ...former, servers: new Map([server('a', 'x'), server('b', 'y'), server('d', 'x')]), keys: new Map() }),
    'servers "b" (changed), "d" (added), "c" (removed); keys "laptop" (removed)')
  const many = new Map(Array.from({ length: 13 }, (_, n) => server(`s${n}`, 'x')))
  assert.match(describeEdit(snapshot, { ...snapshot, servers: many, system: { nameSeparator: '_' } }) ?? '', /"s9" \(added\) and 3 more; the system configuration$/)
})

test('a write that the disk does not take: the HTTP status that it is answered with', async () => {
  for (const [error, status] of [
    [new StorageError('full', true), 507],
    [new StorageError('EIO', false, true), 507],
    [new StorageError('read-only', false), 503]
  ] as const) {
    const store: Store = {
      load: async () => snapshot,
      commit: async () => {
        throw error
      },
      onChange: () => () => {},
      health: () => undefined,
      close: async () => {}
    }
    const settings = await Settings.open(store)
    await assert.rejects(
      settings.change(() => [{ entity: 'systemConfig', value: {} }]),
      { statusCode: status }
    )
    assert.equal(settings.current, snapshot)
  }
})

test('look-ups for unknown credentials: one at a time for all who wait, and few per second', async () => {
  let started = 0
  let running = 0
  const lookUps = new FreshLookUps({
    refresh: async () => {
      started++
      assert.equal(++running, 1, 'two at once')
      await new Promise((resolve) => { setTimeout(resolve, 5) })
      running--
    }
  })
  const first = lookUps.request()
  const next = lookUps.request()
  assert.ok(first !== undefined && next !== undefined && first !== next, 'the running one may have read before the change')
  assert.equal(lookUps.request(), next)
  await next
  assert.equal(started, 2)
  const until = performance.now() + 1_000
  while (performance.now() < until) {
    await lookUps.request()
    await new Promise((resolve) => { setTimeout(resolve, 1) })
  }
  // Two seconds of the clock may have a part.
  assert.ok(started <= 2 * limits.freshLookUps.perSecond, `${started} look-ups`)
  assert.equal(new FreshLookUps({}).request(), undefined, 'there is no other replica')
})

test('a look-up that fails or hangs refuses nobody for long', async () => {
  await new FreshLookUps({ refresh: async () => { throw new Error('away') } }).request()
  const start = Date.now()
  const alive = setInterval(() => {}, 100)
  await new FreshLookUps({ refresh: async () => await new Promise(() => {}) }).request()
  clearInterval(alive)
  assert.ok(Date.now() - start < limits.freshLookUps.timeout + 1_000)
})
