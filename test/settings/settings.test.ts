import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { parseSnapshot } from '../../db/document.ts'
import { StorageError, type Server, type Snapshot, type Store } from '../../db/store.ts'
import type { Principal } from '../../plugins/settings/access/view.ts'
import { describeEdit } from '../../plugins/settings/describe-edit.ts'
import { OnDemandStoreRefresher } from '../../plugins/settings/store-refresher.ts'
import { Settings } from '../../plugins/settings/settings.ts'
import { mockTimers } from '../helpers/clock.ts'
import { emptySnapshot, fixedStore } from '../helpers/snapshot.ts'
import { settingsLimits } from '../../plugins/settings/limits.ts'
import { baseLimits } from '../../plugins/base/limits/limits.ts'

test('what the log tells of an edit: names, and no values', async () => {
  const server = (name: string, command: string): [string, Server] => [name, { name, config: { command } }]
  const key = { id: '1', name: 'laptop', token: 'plain-secret' }
  const servers = new Map([server('a', 'x'), server('b', 'x'), server('c', 'x')])
  const former: Snapshot = { ...emptySnapshot, servers, keys: new Map([['1', key]]) }
  assert.equal(describeEdit(former, former), undefined)
  assert.equal(describeEdit(former, { ...former, keys: new Map([['1', { ...key, lastUsedAt: '2026-01-01T00:00:00Z' }]]) }), undefined)
  assert.equal(describeEdit(former, { ...former, servers: new Map([server('a', 'x'), server('b', 'y'), server('d', 'x')]), keys: new Map() }),
    'servers "b" (changed), "d" (added), "c" (removed); keys "laptop" (removed)')
  const many = new Map(Array.from({ length: 13 }, (_, n) => server(`s${n}`, 'x')))
  const next = { ...emptySnapshot, servers: many, system: { nameSeparator: '_' } }
  assert.match(describeEdit(emptySnapshot, next) ?? '', /"s9" \(added\) and 3 more; the system configuration$/)
})

test('a write that the disk does not take: the HTTP status that it is answered with', async () => {
  for (const [error, status] of [
    [new StorageError('full', true), 507], [new StorageError('EIO', false, true), 507],
    [new StorageError('read-only', false), 503]
  ] as const) {
    const settings = await Settings.open(fixedStore(emptySnapshot, { commit: async () => { throw error } }))
    await assert.rejects(settings.change(() => [{ entity: 'systemConfig', value: {} }]), { statusCode: status })
    assert.equal(settings.current, emptySnapshot)
  }
})

const principalOf = (username: string, isAdmin = false): Principal => ({ kind: 'user', key: `user ${username}`, user: username, username, isAdmin })

test('who changes the settings without end delays others by one change, and shuts out nobody', async () => {
  const done: string[] = []
  let proceed = (): void => {}
  const settings = await Settings.open(fixedStore(emptySnapshot, {
    commit: async ([change], version) => {
      await new Promise<void>((resolve) => { proceed = resolve })
      done.push(change && 'key' in change ? change.key : '')
      return { ...emptySnapshot, version: version + 1 }
    }
  }))
  const change = async (by: Principal | undefined, key: string): Promise<string> =>
    await settings.change(() => [{ entity: 'groups', key, value: undefined }], by).then(() => key)
  const eve = principalOf('eve', true)
  const hers = Array.from({ length: settingsLimits.changes * 3 / 4 }, async (_, n) => await change(eve, `eve ${n}`))
  await assert.rejects(change(eve, 'one more'), { name: 'ShareError', isOwnerLimit: true })
  const others = [change(principalOf('ann'), 'ann'), change(undefined, 'the gateway')]
  const working = setInterval(() => { proceed() }, 0)
  await Promise.all(others)
  assert.deepEqual(done.slice(0, 4), ['eve 0', 'eve 1', 'ann', 'the gateway'])
  assert.equal((await Promise.all(hers)).length, hers.length)
  await settings.drain(1_000)
  clearInterval(working)
  await settings.close()
  assert.deepEqual(done.filter((key) => key.startsWith('eve')), hers.map((_, n) => `eve ${n}`), 'the order of each owner is kept')
})

test('changes of a user have a pace, by number and by size; those of admins have none', async () => {
  const commit: Store['commit'] = async (_changes, version) => ({ ...emptySnapshot, version: version + 1 })
  const settings = await Settings.open(fixedStore(emptySnapshot, { commit }))
  const change = async (by: Principal): Promise<unknown> => await settings.change(() => [{ entity: 'groups', key: 'a', value: undefined }], by)
  const [ann, bob, admin] = [principalOf('ann'), principalOf('bob'), principalOf('admin', true)]
  const { burst, each } = settingsLimits.userChanges
  const share = { name: 'ShareError', isOwnerLimit: true }
  for (let n = 0; n < burst / each; n++) { await change(ann); await change(admin) }
  // Some come back while the changes are made.
  const more = async (): Promise<void> => { for (let n = 0; n < 100; n++) await change(ann) }
  await assert.rejects(more, share)
  for (let n = 0; n < 100; n++) settings.chargeLargeChange(bob, baseLimits.steppedBody)
  settings.chargeLargeChange(bob, burst + 2 * settingsLimits.userChanges.perSecond)
  assert.throws(() => { settings.chargeLargeChange(bob, burst) }, share)
  await assert.rejects(change(bob), share)
  for (let n = 0; n < 10; n++) settings.chargeLargeChange(admin, burst)
  await change(admin)
})

test('look-ups for unknown credentials: one at a time for all who wait, and few per second', async (t) => {
  let now = 0
  t.intercept(performance, 'now', { value: () => now })
  let started = 0
  let running = 0
  const lookUps = new OnDemandStoreRefresher({
    refresh: async () => {
      started++
      assert.equal(++running, 1, 'two at once')
      await turn()
      running--
    }
  })
  const first = lookUps.refresh()
  const next = lookUps.refresh()
  assert.ok(first !== undefined && next !== undefined && first !== next, 'the running one may have read before the change')
  assert.equal(lookUps.refresh(), next)
  await next
  assert.equal(started, 2)
  const { perSecond } = settingsLimits.freshLookUps
  for (const second of [1, 2]) {
    for (let n = 0; n < 3 * perSecond; n++) await lookUps.refresh()
    assert.equal(started, second * perSecond)
    now += 1_000
  }
  assert.equal(new OnDemandStoreRefresher({}).refresh(), undefined, 'there is no other replica')
})

test('a look-up that fails or hangs refuses nobody for long', async (t) => {
  assert.equal(await new OnDemandStoreRefresher({ refresh: async () => { throw new Error('away') } }).refresh(), false)
  mockTimers(t, 'setTimeout')
  const hanging = new OnDemandStoreRefresher({ refresh: async () => await new Promise(() => {}) }).refresh()
  mock.timers.tick(settingsLimits.freshLookUps.timeout)
  assert.equal(await hanging, false)
})

test('what is wrong in a settings file is said in words, not as a regular expression', async () => {
  for (const [systemConfig, expected] of [
    [{ nameSeparator: 'a b' }, /^"nameSeparator": expected 1 to 8 printable ASCII characters, without spaces/],
    [{ routing: { jsonBodyLimit: '5 megs' } }, /^"routing\.jsonBodyLimit": expected a number of bytes, .* such as `1048576`, `500kb` or `10mb`$/],
    [{ routing: { bearerAuthHeaderName: 'X Key' } }, /^"routing\.bearerAuthHeaderName": expected the name of an HTTP header/]
  ] as const) {
    assert.throws(() => parseSnapshot({ systemConfig }, 1), ({ message }: Error) => {
      assert.match(message.replace('"systemConfig" cannot be used: ', ''), expected)
      return true
    })
  }
})

test('an entry without an id is told what an id is', async () => {
  const { snapshot: { problems } } = parseSnapshot({ groups: [{ name: 'a', servers: [] }], bearerKeys: [{ name: 'b', token: 'plain-secret' }] }, 1)
  assert.deepEqual(problems, ['groups', 'bearerKeys'].map((section) =>
    `"${section}" entry 1 is ignored: "id": expected required property: a UUID, for example from \`uuidgen\``))
})

test('an entry with an unknown member is read as it is, and named once', async () => {
  const key = { id: '1', name: 'agent', token: 'x', accesType: 'groups' }
  const first = parseSnapshot({ bearerKeys: [key], systemConfig: { nameSeperator: '_' } }, 1)
  assert.equal(first.snapshot.keys.get('1'), key)
  assert.deepEqual(first.snapshot.problems, first.snapshot.warnings)
  assert.equal(first.snapshot.problems.length, 2)
  const second = parseSnapshot({ ...first.document, users: [{ username: 'a' }] }, 2, first)
  assert.deepEqual(second.snapshot.problems, first.snapshot.problems, 'the same sentences, which the log has told')
  const mended = parseSnapshot({ ...second.document, systemConfig: {} }, 3, second)
  assert.deepEqual(mended.snapshot.warnings, ['key "agent": "accesType" is not known and has no effect: did you mean "accessType"?'])
})

test('a server whose secret is a mask is told where', async () => {
  const remote = { url: 'https://tools.example/mcp' }
  const { snapshot: { problems } } = parseSnapshot({
    mcpServers: {
      masked: { ...remote, headers: { 'x-team': 'a', authorization: 'Bearer ••••abcd' } },
      local: { command: 'run', args: ['--token', '••••'], env: { LEVEL: 'info' } },
      fine: { ...remote, description: 'shows ••••', headers: { authorization: 'Bearer abc' } },
      rest: { type: 'openapi', openapi: { schema: { openapi: '3.0.3', info: { description: '••••' } } } }
    }
  }, 1)
  const sentence = (name: string, path: string): string =>
    `server "${name}": "${path}" contains a mask (••••), not a secret: write the secret itself`
  assert.deepEqual(problems, [sentence('masked', 'headers.authorization'), sentence('local', 'args.1')])
})

test('an outage of shared storage is told when it has lasted its time, once, though nobody asks', async (t) => {
  mockTimers(t, 'setInterval', 'Date')
  let away: string | undefined
  const told: string[] = []
  const open = async (shared: Partial<Store>): Promise<void> => {
    const settings = await Settings.open(fixedStore(emptySnapshot, { health: () => away, ...shared }))
    t.after(async () => { await settings.close() })
    settings.on('outdated', (reason) => told.push(reason))
  }
  await open({ refresh: async () => {} })
  // Nobody else changes the settings of this one.
  await open({})
  const pass = (ms: number): void => { for (let at = 0; at < ms; at += 1_000) mock.timers.tick(1_000) }
  for (const outage of ['the first', 'the second']) {
    away = outage
    pass(settingsLimits.storageAway - 5_000)
    assert.ok(!told.includes(outage), outage)
    pass(2 * settingsLimits.storageAway)
    assert.equal(told.at(-1), outage)
    away = undefined
    pass(10_000)
  }
  assert.deepEqual(told, ['the first', 'the second'])
})
