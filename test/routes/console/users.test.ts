// Removing an admin, and taking the rights of one, is confirmed once: the page names the keys, servers and groups that end or pass on.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import { decoded, openConsole, type Opened } from '../../helpers/console.ts'
import { admin, alice, key } from '../../helpers/doors.ts'

const carol = { ...admin, username: 'carol' }
const idOf = (letter: string): string => key.id.slice(0, -1) + letter
const command = { command: 'node', args: ['-e', '0'], owner: 'carol', visibility: 'public' }

async function start (t: Test): Promise<Opened> {
  return await openConsole(t, {
    users: [admin, carol, alice],
    mcpServers: {
      'of carol': { ...command, startOnDemand: true },
      'stored by carol': { ...command, startOnDemand: true, owner: 'admin', storedBy: ['carol'] },
      'address of carol': { url: 'https://mcp.example.com/mcp', owner: 'admin', storedBy: ['carol'], startOnDemand: true },
      'of alice': { url: 'https://alice.example.com/mcp', owner: 'alice', startOnDemand: true }
    },
    groups: [{ id: key.id, name: 'office', owner: 'carol', servers: [] }],
    bearerKeys: [
      { ...key, id: idOf('1'), token: 'a'.repeat(40), name: 'own agent', kind: 'user', owner: 'carol', createdBy: 'carol' },
      { ...key, id: idOf('2'), token: 'b'.repeat(40), name: 'for alice', kind: 'user', owner: 'alice', createdBy: 'carol' },
      { ...key, id: idOf('3'), token: 'c'.repeat(40), name: 'everything', kind: 'system', owner: undefined, createdBy: 'carol' },
      { ...key, id: idOf('4'), token: 'd'.repeat(40), name: 'of admin', kind: 'system', owner: undefined, createdBy: 'admin' }
    ]
  })
}

void test('a search without a match says so', async (t) => {
  const { browser } = await start(t)
  assert.match((await browser.get('/users?q=zzz')).text, /No user matches/)
})

void test('removing a user names what ends and what passes on', async (t) => {
  const { app, browser } = await start(t)
  const page = decoded((await browser.get('/users/carol/remove')).text)
  assert.match(page, /3 keys \("own agent", "for alice", "everything"\): removed/)
  assert.match(page, /One server \("of carol"\): passed to admin, and private/)
  assert.match(page, /One group \("office"\): passed to admin/)
  assert.match(page, /One server \("stored by carol"\): stopped until an admin/)
  assert.match(page, /One server \("address of carol"\): limited/)
  assert.doesNotMatch(page, /of alice|of admin/)
  assert.equal((await browser.post('/users/carol/remove', {}, '/users/carol/remove')).status, 303)
  const { keys, servers, groups } = app.settings.current
  assert.deepEqual([...keys.values()].map(({ name }) => name), ['of admin'])
  assert.equal(servers.get('of carol')?.config.owner, 'admin')
  assert.ok(servers.get('stored by carol')?.problem)
  assert.equal(servers.get('of carol')?.problem, undefined)
  assert.equal(groups.get(key.id)?.owner, 'admin')
})

void test('taking the rights of an admin asks once, and names what ends', async (t) => {
  const { app, browser } = await start(t)
  const asked = await browser.post('/users/carol', { isAdmin: 'false' }, '/users/carol')
  assert.match(asked.location, /\/users\/carol\/demote$/)
  assert.equal(app.users.get('carol')?.isAdmin, true)
  const page = decoded((await browser.get('/users/carol/demote')).text)
  assert.match(page, /2 keys \("for alice", "everything"\): refused/)
  assert.match(page, /2 servers \("of carol", "stored by carol"\): stopped/)
  assert.match(page, /One server \("address of carol"\): limited/)
  assert.doesNotMatch(page, /cannot be undone|office|own agent/)
  await browser.post('/users/carol', { isAdmin: 'false', confirmed: 'true' }, '/users/carol')
  assert.equal(app.users.get('carol')?.isAdmin, false)
  assert.ok(app.settings.current.servers.get('of carol')?.problem)
})

void test('a password that is changed with the rights is saved before the question, and not sent to the page', async (t) => {
  const { app, browser } = await start(t)
  const former = app.users.get('carol')?.password
  await browser.post('/users/carol', { isAdmin: 'false', password: 'Other-5678' }, '/users/carol')
  assert.notEqual(app.users.get('carol')?.password, former)
  assert.doesNotMatch((await browser.get('/users/carol/demote')).text, /Other-5678/)
})
