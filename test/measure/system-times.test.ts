// How long a user waits while others attack a gateway process, and how long one with much stored takes.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { nameServer } from '../fakes/name-server.ts'
import { at, KEY, Session, settings, type Json } from '../helpers/client.ts'
import { path, spawnHub, until } from '../helpers/hub.ts'
import { median } from '../helpers/measured.ts'

const users = ['admin', 'ann', 'ben'].map((username) => ({ username, isAdmin: username === 'admin', password: 'none' }))
/** Servers that ann stored, who is no admin. */
const anns = (count: number, urlOf: (n: number) => string, more: Json = {}): Json =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`anns-${n}`, { url: urlOf(n), owner: 'ann', storedByUser: true, ...more }]))

test('servers of one user that are slow delay those of others by less than 2 s', async (t) => {
  const upstream = await startUpstream(t)
  const pit = createServer((socket) => { socket.on('error', () => {}) })
  await new Promise<void>((resolve) => { pit.listen(0, '127.0.0.1', resolve) })
  t.after(() => { pit.close() })
  const { port } = pit.address() as AddressInfo
  const names = await nameServer(t)
  for (const [what, hers, host, env] of [
    ['60 names without an answer', anns(60, (n) => `http://n${n}.slow.test:9/mcp`), 'ben.quick.test', names.env],
    ['100 connections without an answer', anns(100, (n) => `http://127.0.0.1:${port}/${n}`, { type: 'sse' }), '127.0.0.1', {}]
  ] as const) {
    const time = await median(t, what, async () => {
      const bens = { url: `http://${host}:${upstream.port}/mcp`, owner: 'ben', storedByUser: true }
      const servers = { ...hers, bens, admins: { url: upstream.url } }
      const hub = await spawnHub(t, { settings: settings(servers, { users }), env: { OUTBOUND_ALLOW: '127.0.0.0/8', ...env } })
      const begun = performance.now()
      await until(() => ['bens', 'admins'].every((name) => hub.output().includes(`"msg":"${name}: connected, speaks MCP `)))
      const took = performance.now() - begun
      await hub.stop()
      return took
    })
    assert.ok(time < 2_000, `${what}: ${Math.round(time)} ms`)
  }
})

test('140 logins from one address delay an admin at another one by less than 2 s', async (t) => {
  const password = 'the-admin-1'
  const time = await median(t, 'a login', async () => {
    const env = { TRUST_PROXY: 'loopback', ADMIN_PASSWORD: password, TEST_REAL_HASHES: '1' }
    const hub = await spawnHub(t, { settings: settings({}), env })
    const logIn = async (username: string, address: string): Promise<number> => (await fetch(`${hub.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
      body: JSON.stringify({ username, password })
    })).status
    await until(async () => await logIn('admin', '198.51.100.3') === 200, 'there is no admin')
    const guesses = Array.from({ length: 140 }, async (_, n) => await logIn(`nobody-${n}`, '203.0.113.7').catch(() => 0))
    // The last of those that are refused at once is.
    await Promise.race(guesses)
    const begun = performance.now()
    assert.equal(await logIn('admin', '198.51.100.2'), 200)
    const took = performance.now() - begun
    await hub.stop()
    assert.equal((await Promise.all(guesses)).filter((status) => status === 429).length, 140 - 96, 'the address has its share')
    return took
  })
  assert.ok(time < 2_000, `${Math.round(time)} ms`)
})

const off = { type: 'streamable-http', url: 'http://127.0.0.1:9/mcp', enabled: false }

test('10,000 servers and 1,000 groups: a start in 8 s, a page and a write in 200 ms', async (t) => {
  const stdio = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')], enabled: false }
  const many: Json = {}
  for (let n = 0; n < 10_000; n++) many[`server-${n}`] = n % 2 === 0 ? { ...off, description: `number ${n}` } : { ...stdio, env: { TOKEN: `secret-${n}` } }
  const groups = Array.from({ length: 1_000 }, (_, n) => ({
    id: `33333333-3333-4333-8333-${String(n).padStart(12, '0')}`,
    name: `group-${n}`,
    servers: Array.from({ length: 5 }, (_, m) => `server-${(n * 5 + m) % 10_000}`)
  }))
  const start = performance.now()
  const hub = await spawnHub(t, { settings: settings(many, { groups }), env: { ADMIN_PASSWORD: 'x' } })
  const api = async (method: string, route: string, body?: Json): Promise<unknown> => {
    const headers = { authorization: `Bearer ${KEY}`, ...(body && { 'content-type': 'application/json' }) }
    const reply = await fetch(`${hub.url}/api${route}`, { method, headers, body: body && JSON.stringify(body) })
    assert.ok(reply.ok, `${method} ${route}: ${reply.status}`)
    return at(await reply.json(), 'data')
  }
  assert.equal(at(await api('GET', '/servers?limit=1'), 0, 'name'), 'server-0')
  const started = performance.now() - start
  t.comment(`start: ${Math.round(started)} ms`)
  const timed = async (what: string, work: () => Promise<void>): Promise<void> => {
    const time = await median(t, what, async () => {
      const begun = performance.now()
      await work()
      return performance.now() - begun
    })
    assert.ok(time < 200, `${what}: ${Math.round(time)} ms`)
  }
  for (const route of ['/servers', '/groups']) {
    await timed(`a page of ${route}`, async () => { assert.equal((await api('GET', `${route}?limit=100`) as Json[]).length, 100) })
  }
  let made = 0
  await timed('a write', async () => { await api('POST', '/servers', { name: `made-${made++}`, config: off }) })
  assert.ok(started < 8_000, `start: ${Math.round(started)} ms`)
  assert.deepEqual(await (await Session.open(`${hub.url}/mcp`)).tools(), [])
  const stored = JSON.parse(readFileSync(hub.settingsPath, 'utf8')) as Json
  assert.equal(Object.keys(stored.mcpServers as Json).length, 10_000 + made)
  assert.equal(await hub.stop(), 0)
})
