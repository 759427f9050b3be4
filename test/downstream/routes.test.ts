// What opens the routes, and which there are. What keys with a scope open: settings/access/views, and sse.test.ts from outside.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { served } from '../helpers/served.ts'
import { test } from 'tap'
import {
  assertRefused, at, connected, failed, initialize, KEY, plain, send, Session, settings, text, type Json
} from '../helpers/client.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import { bearerKey, path, startHub } from '../helpers/hub.ts'

const TEAM = '0f9d2c2e-52f5-4c5c-9df6-3b8f3f2b9b01'

test('keys and routes', async (t) => {
  const upstreams = await Promise.all([startUpstream(t), startUpstream(t), startUpstream(t)])
  const [one, two, three] = upstreams.map(({ url }) => ({ type: 'streamable-http', url }))
  const token = (letter: string): string => `thk_${letter.repeat(64)}`
  const key = (letter: string, more: Json): Json =>
    bearerKey({ id: `33333333-3333-4333-8333-33333333333${letter}`, name: letter, token: token(letter), ...more })
  const groups = [{ id: TEAM, name: 'team', description: '', owner: 'admin', servers: ['one', 'two'] }]
  const hub = await served(t, { one, two, three }, {
    groups,
    bearerKeys: [
      bearerKey(),
      key('1', { enabled: false }),
      key('9', { kind: 'user', owner: 'nobody' })
    ]
  })
  await t.test('no key, a wrong key, a disabled key: 401, which says how', async () => {
    const body = initialize()
    const malformed = [
      '', 'Bearer', 'Bearer ', `Basic ${KEY}`, `Bearer ${KEY}x`, `Bearer ${KEY.slice(0, -1)}`, 'Bearer thk_',
      `Bearer ${token('1')}`, 'Bearer __proto__'
    ]
    for (const route of ['/mcp', '/mcp/one', '/mcp/team', '/mcp/nowhere', '/api/mcp']) {
      for (const headers of [{}, ...malformed.map((authorization) => ({ authorization }))]) {
        const reply = await send(`${hub.url}${route}`, { key: null, headers, body })
        assertRefused(reply, 401)
        assert.equal(reply.headers.get('www-authenticate'), 'Bearer')
        const parsed: unknown = JSON.parse(reply.body)
        assert.equal(typeof at(parsed, 'error'), 'string', reply.body)
        assert.ok(String(at(parsed, 'error_description') ?? '') !== '', reply.body)
      }
    }
    const orphan = await send(`${hub.url}/mcp`, { key: token('9'), body })
    assert.ok(orphan.status === 401 || orphan.status === 403, String(orphan.status))
    for (const method of ['GET', 'DELETE']) assert.equal((await send(`${hub.url}/mcp`, { key: null, method })).status, 401)
    assert.equal((await send(`${hub.url}/mcp`, { key: null, body: '{"broken' })).status, 401)
    assert.equal((await send(`${hub.url}/mcp?token=${KEY}`, { key: null, body })).status, 401)
    assert.equal((await send(`${hub.url}/mcp`, { key: null, headers: { 'x-auth-token': KEY }, body })).status, 401)
  })
  await t.test('an unknown name is 404', async () => {
    for (const name of [
      'nowhere', '__proto__', 'constructor', 'toString', '..%2f', 'One', 'one%20',
      '99999999-9999-4999-8999-999999999999'
    ]) { assertRefused(await send(`${hub.url}/mcp/${name}`, { body: initialize() }), 404) }
  })
  await t.test('/health, /config and /public-config', async () => {
    const read = async (name: string): Promise<unknown> => {
      const response = await fetch(`${hub.url}${name}`)
      assert.equal(response.status, 200)
      return await response.json()
    }
    const health = await read('/health')
    assert.equal(typeof at(health, 'status'), 'string')
    assert.equal(typeof at(health, 'uptime'), 'number')
    assert.equal(new Date(String(at(health, 'timestamp'))).toISOString(), at(health, 'timestamp'))
    assert.deepEqual(at(health, 'servers'), { total: 3, connected: 3 })
    const { version } = JSON.parse(await readFile(path('package.json'), 'utf8')) as { version: string }
    const config = await read('/config')
    assert.equal(at(config, 'success'), true)
    assert.equal(at(config, 'data', 'basePath'), '')
    assert.equal(at(config, 'data', 'version'), version)
    assert.equal(typeof at(config, 'data', 'name'), 'string')
    const open = await read('/public-config')
    assert.equal(at(open, 'success'), true)
    assert.equal(at(open, 'data', 'skipAuth'), false)
    assert.deepEqual(at(open, 'data', 'permissions'), {})
  })
  await t.test('the root says what this is, to people', async () => {
    const page = await fetch(`${hub.url}/`)
    assert.equal(page.status, 200)
    assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/)
    const text = (await page.text()).replace(/<style>.*?<\/style>/s, '').replace(/\s+/g, ' ')
    assert.match(text, /<strong>ready<\/strong>, with 3 of 3 servers connected/)
    for (const link of ['/docs', '/health']) {
      assert.ok(text.includes(`href="${link}"`), link)
      assert.equal((await fetch(`${hub.url}${link}`)).status, 200, link)
    }
    assert.match(text, /<code>\/mcp<\/code>/)
    const icon = await fetch(`${hub.url}/favicon.ico`)
    assert.deepEqual([icon.status, icon.headers.get('content-type')], [200, 'image/svg+xml'])
  })
  await t.test('BASE_PATH, bearerAuthHeaderName, nameSeparator; enableGlobalRoute and enableGroupNameRoute off', async (t) => {
    const hub = await startHub(t, {
      env: { BASE_PATH: '/gate' },
      settings: settings({ one, two }, {
        groups,
        systemConfig: {
          nameSeparator: '__',
          routing: { bearerAuthHeaderName: 'X-Hub-Key', enableGlobalRoute: false, enableGroupNameRoute: false }
        }
      })
    })
    await connected(hub, 2)
    const keyed = { 'x-hub-key': KEY }
    const session = await Session.open(`${hub.url}/mcp/${TEAM}`, { key: null, headers: keyed })
    assert.deepEqual(await session.tools(), ['one__echo', 'two__echo'])
    assert.equal(text(await session.call('two__echo', { message: 'm' })), 'm')
    assert.ok(failed(await session.request('tools/call', { name: 'two-echo', arguments: {} })))
    const single = await Session.open(`${hub.url}/mcp/one`, { key: null, headers: { 'x-hub-key': `Bearer ${KEY}` } })
    assert.equal(text(await single.call('one__echo', { message: 'q' })), 'q')
    assert.equal((await send(`${hub.url}/mcp/one`, { body: initialize() })).status, 401, 'Authorization is not the header any more')
    assert.equal((await send(`${hub.url}/mcp/one`, { key: null, headers: { 'x-hub-key': 'nonsense' }, body: initialize() })).status, 401)
    assertRefused(await send(`${hub.url}/mcp`, { key: null, headers: keyed, body: initialize() }), 403)
    assertRefused(await send(`${hub.url}/api/mcp`, { key: null, headers: keyed, body: initialize() }), 403)
    assertRefused(await send(`${hub.url}/mcp/team`, { key: null, headers: keyed, body: initialize() }), 404)
    assert.equal(at(await (await fetch(`${hub.url}/config`)).json(), 'data', 'basePath'), '/gate')
    const origin = `http://127.0.0.1:${hub.port}`
    for (const route of ['/health', '/config', '/mcp/one']) {
      const reply = await plain(`${origin}${route}`, { headers: keyed })
      assert.equal(reply.status, 404, route)
    }
  })
})
