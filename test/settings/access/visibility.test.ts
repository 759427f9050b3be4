// Who may see which server, by which route.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { makeView, type Principal, type ViewScope } from '../../../plugins/settings/access/view.ts'
import { resolveRouteScope, visibleServers } from '../../../plugins/settings/access/visibility.ts'
import { snapshotOf, type Given } from '../../helpers/snapshot.ts'

const principals = {
  admin: { key: 'key 1', kind: 'system-key', user: 'key 1', isAdmin: true },
  root: { key: 'key 2', kind: 'user-key', user: 'root', username: 'root', isAdmin: true },
  ann: { key: 'key 3', kind: 'user-key', user: 'ann', username: 'ann', isAdmin: false },
  bob: { key: 'key 4', kind: 'user-key', user: 'bob', username: 'bob', isAdmin: false },
  nobody: { key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }
} as const satisfies Record<string, Principal>

type Who = keyof typeof principals

test('visibleServers: the servers behind a view', async (t) => {
  const snapshot = snapshotOf({
    servers: {
      z: { visibility: 'public' },
      off: { enabled: false, visibility: 'public' },
      broken: { visibility: 'public', problem: 'no command' },
      a: { visibility: 'private', owner: 'ann' },
      10: { visibility: 'public' }
    },
    groups: [
      { id: 'g', name: 'team', members: [{ name: 'a', alias: 'mine', tools: ['x'] }, 'gone', 'off', 'z'] },
      { id: 'e', name: 'empty', members: [] }
    ]
  })
  const names = (who: Who, scope: ViewScope): string[] =>
    visibleServers(snapshot, makeView(principals[who], scope), 'public').map(({ label }) => label)
  const group = (id: string): ViewScope => ({ kind: 'group', id, name: 'any' })

  await t.test('in the order of configuration, neither disabled nor unusable', async () => {
    assert.deepEqual(names('admin', { kind: 'global' }), [...snapshot.servers.keys()].filter((name) => !['off', 'broken'].includes(name)))
    assert.deepEqual(names('bob', { kind: 'global' }), names('admin', { kind: 'global' }).filter((name) => name !== 'a'))
  })
  await t.test('admins\' servers first, whatever stands where, within each the order of configuration', async () => {
    const mixed = snapshotOf({
      admins: ['root'],
      servers: {
        u1: { owner: 'ann' }, r: { owner: 'root' }, u2: { owner: 'gone' }, none: {}, admin: { owner: 'admin' }
      },
      groups: [{ id: 'g', name: 'g', members: ['u2', 'none', 'u1', 'r'] }]
    })
    const shown = (scope: ViewScope): string[] =>
      visibleServers(mixed, makeView(principals.admin, scope), 'public').map(({ label, isOwnedByAdmin: ofAdmin }) => `${label}${ofAdmin ? '' : ' of a user'}`)
    assert.deepEqual(shown({ kind: 'global' }), ['r', 'none', 'admin', 'u1 of a user', 'u2 of a user'])
    assert.deepEqual(shown(group('g')), ['none', 'r', 'u2 of a user', 'u1 of a user'])
  })
  await t.test('a group in its own order, under its aliases, without what is gone or not to be seen', async () => {
    assert.deepEqual(names('admin', group('g')), ['z', 'mine'])
    assert.deepEqual(names('bob', group('g')), ['z'])
    assert.deepEqual(names('admin', group('e')), [])
    assert.deepEqual(names('admin', group('no such')), [])
    assert.deepEqual(visibleServers(snapshot, makeView(principals.admin, group('g')), 'public')[1]?.member.tools, ['x'])
  })
  await t.test('a single server', async () => {
    assert.deepEqual(names('ann', { kind: 'server', name: 'a' }), ['a'])
    for (const [who, name] of [
      ['bob', 'a'], ['admin', 'off'], ['admin', 'broken'], ['admin', 'gone']
    ] as const) { assert.deepEqual(names(who, { kind: 'server', name }), [], `${who}, ${name}`) }
  })
})

test('toScope: a group by id, then by name, then a server', async () => {
  const given: Given = {
    servers: { s: {}, both: {}, g1: {} },
    groups: [
      { id: 'g1', name: 'team', members: [] }, { id: 'g2', name: 'g1', members: [] },
      { id: 'g3', name: 'both', members: [] }
    ]
  }
  const table: Array<[string, ViewScope | undefined, ViewScope | undefined]> = [
    // word, names allowed, ids only
    ['g1', { kind: 'group', id: 'g1', name: 'team' }, { kind: 'group', id: 'g1', name: 'team' }],
    ['g2', { kind: 'group', id: 'g2', name: 'g1' }, { kind: 'group', id: 'g2', name: 'g1' }],
    ['team', { kind: 'group', id: 'g1', name: 'team', byName: true }, undefined],
    ['both', { kind: 'group', id: 'g3', name: 'both', byName: true }, { kind: 'server', name: 'both' }],
    ['s', { kind: 'server', name: 's' }, { kind: 'server', name: 's' }],
    ['S', undefined, undefined], ['', undefined, undefined], ['__proto__', undefined, undefined], ['constructor', undefined, undefined]
  ]
  for (const [word, byName, byId] of table) {
    assert.deepEqual(resolveRouteScope(snapshotOf(given), word, true), byName, word)
    assert.deepEqual(resolveRouteScope(snapshotOf(given), word, false), byId, word)
  }
})

test('toScope: of a group and a server of one name the server, where the group is of somebody else who is no admin', async () => {
  const table: Array<[ofGroup: string | undefined, ofServer: string | undefined, kind: string]> = [
    ['bob', undefined, 'server'], ['bob', 'admin', 'server'], ['bob', 'root', 'server'], ['bob', 'ann', 'server'],
    ['gone', 'ann', 'server'], ['bob', 'bob', 'group'], ['root', 'ann', 'group'], ['admin', 'ann', 'group'],
    [undefined, 'ann', 'group']
  ]
  for (const [ofGroup, ofServer, kind] of table) {
    const snapshot = snapshotOf({
      servers: { both: { owner: ofServer }, s: {} },
      groups: [{ id: 'g1', name: 'both', owner: ofGroup, members: ['s'] }],
      admins: ['root'],
      users: ['ann', 'bob']
    })
    assert.equal(resolveRouteScope(snapshot, 'both', true)?.kind, kind, `group of ${ofGroup}, server of ${ofServer}`)
    assert.equal(resolveRouteScope(snapshot, 'g1', true)?.kind, 'group', 'by its id in any case')
  }
})

test('makeView: equal keys see the same, others need not', async () => {
  const scopes: ViewScope[] = [
    { kind: 'global' }, { kind: 'server', name: 'a' }, { kind: 'server', name: 'global' },
    { kind: 'group', id: 'a', name: 'a' }, { kind: 'group', id: 'global', name: 'b' }
  ]
  const keys = (who: Principal): string[] => scopes.map((scope) => makeView(who, scope).key)
  const all = [
    ...keys(principals.admin),
    ...keys(principals.ann),
    ...keys(principals.bob),
    ...keys(principals.nobody),
    ...keys({ ...principals.ann, username: 'anyone' }),
    ...keys({ ...principals.ann, username: 'all' }),
    ...keys({ ...principals.ann, username: undefined, team: 'ann' })
  ]
  assert.equal(new Set(all).size, all.length)
  assert.deepEqual(keys(principals.root), keys(principals.admin), 'admins see the same')
  assert.deepEqual(keys({ ...principals.ann, key: 'another key of hers' }), keys(principals.ann))
})
