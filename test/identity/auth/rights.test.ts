// Rights are asked when they are used: of keys, open streams, running servers.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { createRestrictedServerMarker, withCurrentRights } from '../../../plugins/settings/access/restricted.ts'
import { isActiveKey, widensRights } from '../../../plugins/identity/keys/rights.ts'
import { at, settings } from '../../helpers/client.ts'
import { HeldRights, settingsOfAnn } from '../../helpers/held-rights.ts'
import { startHub } from '../../helpers/hub.ts'
import { Api, started } from '../../helpers/management.ts'
import { snapshotOf } from '../../helpers/snapshot.ts'
import type { BearerKey } from '../../../schemas/settings.ts'

const accounts = snapshotOf({ admins: ['root', 'admin'], users: ['ann'] })
const key = (more: Partial<BearerKey>): BearerKey => ({ id: 'k', name: 'k', ...more })

test('a system key counts while its maker and its owner are admins', async () => {
  const table: Array<[says: string, key: Partial<BearerKey>, counts: boolean]> = [
    ['of a file', {}, true],
    ['an admin\'s', { createdBy: 'root' }, true],
    ['of one who is no admin', { createdBy: 'ann' }, false],
    ['of one who is gone', { createdBy: 'gone' }, false],
    ['of one whose name every object has', { createdBy: 'constructor' }, false],
    ['of a file, for an admin', { owner: 'root' }, true],
    ['of a file, for another', { owner: 'ann' }, false],
    ['an admin\'s, for another one', { createdBy: 'root', owner: 'admin' }, true],
    ['an admin\'s, for one who is no admin', { createdBy: 'root', owner: 'ann' }, false],
    ['of one who is no admin, for an admin', { createdBy: 'ann', owner: 'root' }, false],
    ['scoped, of one who is no admin', { createdBy: 'ann', accessType: 'servers', allowedServers: ['a'] }, false],
    ['disabled', { enabled: false }, false],
    ['past its time', { expiresAt: '2020-01-01T00:00:00Z' }, false],
    ['a user\'s', { kind: 'user', owner: 'ann', createdBy: 'ann' }, true],
    ['a user\'s, of a file', { kind: 'user', owner: 'ann' }, true],
    ['a user\'s, by an admin', { kind: 'user', owner: 'ann', createdBy: 'root' }, true],
    ['a user\'s, by one who is gone', { kind: 'user', owner: 'ann', createdBy: 'gone' }, false],
    ['an admin\'s, by one who is no admin', { kind: 'user', owner: 'root', createdBy: 'ann' }, false]
  ]
  for (const [says, more, wanted] of table) assert.equal(isActiveKey(key(more), accounts), wanted, says)
})

test('a change gives a key more where it opens more than before, or for longer', async () => {
  const servers = { accessType: 'servers' as const, allowedServers: ['a', 'b'] }
  const both = { accessType: 'custom' as const, allowedServers: ['a'], allowedGroups: ['g'] }
  const table: Array<[says: string, before: Partial<BearerKey>, after: Partial<BearerKey>, gives: boolean]> = [
    ['another name', servers, { ...servers, name: 'other' }, false],
    ['everything', servers, { accessType: 'all' }, true],
    ['everything, as it was', {}, { accessType: 'all', allowedServers: ['a'] }, false],
    ['less', { accessType: 'all' }, servers, false],
    ['one server less', servers, { ...servers, allowedServers: ['b'] }, false],
    ['another server', servers, { ...servers, allowedServers: ['a', 'c'] }, true],
    ['groups as well', servers, { accessType: 'custom', allowedServers: ['a'], allowedGroups: ['g'] }, true],
    ['a list that does not count', servers, { ...servers, allowedGroups: ['g'] }, false],
    ['groups in place of both', both, { accessType: 'groups', allowedGroups: ['g'] }, false],
    ['a later end', { expiresAt: '2030-01-01T00:00:00Z' }, { expiresAt: '2030-01-01T00:00:01Z' }, true],
    ['no end', { expiresAt: '2030-01-01T00:00:00Z' }, {}, true],
    ['an earlier end', {}, { expiresAt: '2030-01-01T00:00:00Z' }, false],
    ['enabled', { enabled: false }, { enabled: true }, true],
    ['disabled', {}, { enabled: false }, false]
  ]
  for (const [says, before, after, wanted] of table) assert.equal(widensRights(key(before), key(after)), wanted, says)
})

test('a server is marked while its owner may not store it; what is not concerned stays the same object', async () => {
  const read = createRestrictedServerMarker()
  const servers = {
    run: { command: 'x', owner: 'ann' },
    rest: { type: 'openapi' as const, url: 'http://x/', owner: 'ann' },
    typed: { type: 'stdio' as const, owner: 'gone' },
    remote: { url: 'http://x/', owner: 'ann' },
    stored: { command: 'x', owner: 'root', storedBy: ['root', 'ann'] },
    ofAdmin: { command: 'x', owner: 'root', storedBy: ['root'] },
    unsaid: { command: 'x' }
  }
  const stored = snapshotOf({ admins: ['root'], users: ['ann'], servers })
  const seen = read(stored)
  const marked = [...seen.servers.values()].filter(({ problem }) => problem !== undefined).map(({ name }) => name)
  assert.deepEqual(marked, ['run', 'rest', 'typed', 'stored'])
  assert.match(seen.servers.get('stored')?.problem ?? '', /"ann", who stored it, is not an admin/)
  assert.equal(seen.problems.length, 4)
  assert.deepEqual([...seen.servers.keys()], Object.keys(servers), 'the order is that of the configuration')
  assert.equal(seen.servers.get('remote'), stored.servers.get('remote'))
  const later = read({ ...stored, version: stored.version + 1 })
  assert.equal(later.servers, seen.servers, 'a change of something else is none of the servers')
  const promoted = read({ ...stored, users: new Map([...stored.users, ['ann', { username: 'ann', isAdmin: true }]]) })
  assert.equal(promoted.servers.get('run')?.problem, undefined)
  const fine = snapshotOf({ admins: ['root'], servers: { ofAdmin: servers.ofAdmin } })
  assert.equal(read(fine), fine)
})

test('what an admin stored counts as a user\'s while its storer is no admin', async () => {
  const stored = { url: 'http://127.0.0.1/', owner: 'root', storedBy: ['ann'] }
  const now = withCurrentRights(accounts, stored)
  assert.equal(now.storedByUser, true)
  assert.equal(withCurrentRights(accounts, stored), now, 'the object stays the same, so that nothing reconnects')
  const others = [{ url: 'x' }, { url: 'x', owner: 'ann' }, { url: 'x', storedBy: ['root', 'admin'] }]
  for (const config of [...others, { url: 'x', storedBy: ['ann'], storedByUser: true }]) {
    assert.equal(withCurrentRights(accounts, config), config)
  }
})

test('what hangs on an admin\'s rights ends with them, and goes on with another password', async (t) => {
  const files = await settingsOfAnn(t)
  const hub = await startHub(t, { settings: files.content })
  await new HeldRights(hub, hub, files).tell(t)
})

test('a server that was stopped stays so when its owner is removed; ALLOW_USER_STDIO lifts the rule', async (t) => {
  const parked = { command: 'cat', owner: 'bob' }
  const { admin } = await started(t, { parked })
  assert.match(String((await admin.server('parked')).error), /owner "bob" is not an admin/)
  await admin.ok('PUT', '/servers/parked', { config: { command: 'cat', owner: 'admin' } })
  assert.equal((await admin.server('parked')).status !== 'disabled', true)
  const given = await admin.ask('PUT', '/servers/parked', { config: { command: 'cat', owner: 'bob' } })
  assert.match(String(at(given.body, 'warnings', 0)), /^It will not be connected: its owner "bob" is not an admin/)
  assert.match(String((await admin.server('parked')).error), /owner "bob" is not an admin/)
  assert.equal((await admin.ask('DELETE', '/users/bob')).status, 200)
  const { config, status } = await admin.server('parked')
  assert.deepEqual([at(config, 'owner'), at(config, 'enabled'), status], ['admin', false, 'disabled'])

  const lifted = await startHub(t, {
    env: { ALLOW_USER_STDIO: 'true', ADMIN_PASSWORD: 'Open-Sesame-1' },
    settings: settings({ run: { command: process.execPath, args: ['-e', ''], owner: 'bob' } }, {})
  })
  assert.doesNotMatch(String((await (await Api.login(lifted)).server('run')).error), /no admin/)
})
