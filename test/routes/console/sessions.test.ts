// What becomes of sessions: over a restart, with another password, and on the stream of an open page.
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { appFor } from '../../helpers/app.ts'
import { Browser } from '../../helpers/console.ts'
import { admin, alice, start } from '../../helpers/doors.ts'
import { setLimits } from '../../helpers/patient.ts'
import { managementLimits } from '../../../plugins/management/limits.ts'

void test('a session survives a restart; its token is not in the settings file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-console-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const first = await appFor(t, { users: [admin, alice] }, {}, { folder })
  const browser = new Browser(first)
  await browser.signIn('alice')
  await first.close()
  const text = await readFile(join(folder, 'mcp_settings.json'), 'utf8')
  assert.match(text, /"consoleSessions"/)
  assert.ok(!text.includes(browser.cookies.get('tool-hub-console') ?? '?'))
  const again = new Browser(await appFor(t, undefined, {}, { folder }))
  for (const [name, value] of browser.cookies) again.cookies.set(name, value)
  assert.equal((await again.get('/servers')).status, 200)
})

void test('who changes the own password goes on, and all other sessions end', async (t) => {
  const { app } = await start(t)
  const [here, elsewhere] = [new Browser(app), new Browser(app)]
  await here.signIn('alice')
  await elsewhere.signIn('alice')
  const wrong = await here.post('/account', { currentPassword: 'wrong', newPassword: 'Other-1234' }, '/account')
  assert.equal(wrong.status, 401)
  assert.match(wrong.text, /The current password is wrong/)
  assert.doesNotMatch(wrong.text, /Other-1234/)
  const done = await here.post('/account', { currentPassword: 'Same-1234', newPassword: 'Other-1234' }, '/account')
  assert.deepEqual([done.status, done.location], [303, '/console/account'])
  assert.equal((await here.get('/account')).status, 200)
  assert.equal((await elsewhere.get('/account')).status, 303)
})

void test('an open page is told of changes, and of the end of its session', async (t) => {
  const { app, url, port } = await start(t, { settings: { mcpServers: { one: { url: 'http://127.0.0.1:9/mcp', enabled: false } } } })
  const browser = new Browser(app)
  await browser.signIn('admin')
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const stream = await fetch(`${url}/console/live?page=servers`, { headers: { cookie } })
  assert.equal(stream.headers.get('content-type'), 'text/event-stream')
  const reader = stream.body?.getReader()
  let seen = ''
  const read = async (event: string): Promise<void> => {
    while (!seen.includes(`event: ${event}\n`)) {
      const { value, done } = await reader?.read() ?? { done: true }
      if (done) assert.fail(`the stream ended before ${event}: ${seen}`)
      seen += Buffer.from(value ?? []).toString()
    }
  }
  await read('hello')
  const host = { headers: { host: `127.0.0.1:${port}` } }
  await browser.post('/servers/one/toggle', { enabled: 'true' }, '/servers', host)
  await read('changed')
  await browser.post('/sign-out', {}, '/servers', host)
  await read('ended')
  assert.equal((await fetch(`${url}/console/live?page=servers`, { headers: { cookie }, redirect: 'manual' })).status, 303)
})

void test('what changes before a page opens its stream is told, too', async (t) => {
  const { app, url } = await start(t, { settings: { mcpServers: { one: { url: 'http://127.0.0.1:9/mcp', enabled: false } } } })
  const browser = new Browser(app)
  await browser.signIn('admin')
  const page = await browser.get('/servers/one')
  const address = /data-live-stream="([^"]+)"/.exec(page.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
  await browser.post('/servers/one/toggle', { enabled: 'true' }, '/servers/one')
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const reader = (await fetch(`${url}${address}`, { headers: { cookie } })).body?.getReader()
  let seen = ''
  while (!seen.includes('event: changed\n')) seen += Buffer.from((await reader?.read())?.value ?? []).toString()
  await reader?.cancel()
})

void test('an open page whose server is removed is told of it, and the gateway goes on', async (t) => {
  const { app, url } = await start(t, { settings: { mcpServers: { one: { url: 'http://127.0.0.1:9/mcp', enabled: false } } } })
  const browser = new Browser(app)
  await browser.signIn('admin')
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const reader = (await fetch(`${url}/console/live?page=server&name=one`, { headers: { cookie } })).body?.getReader()
  let seen = ''
  const read = async (event: string): Promise<void> => {
    while (!seen.includes(`event: ${event}\n`)) seen += Buffer.from((await reader?.read())?.value ?? []).toString()
  }
  await read('hello')
  await app.settings.change(() => [{ entity: 'mcpServers', key: 'one', value: undefined }])
  await read('changed')
  await reader?.cancel()
  assert.equal((await browser.get('/servers/one')).status, 404)
})

void test('the oldest stream beyond the limit ends, and comes back after a minute', async (t) => {
  setLimits(t, managementLimits.console, { streamsPerUser: 1 })
  const { app, url } = await start(t, {})
  const browser = new Browser(app)
  await browser.signIn('admin')
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const newer = new AbortController()
  const first = await fetch(`${url}/console/live?page=servers`, { headers: { cookie } })
  await fetch(`${url}/console/live?page=servers`, { headers: { cookie }, signal: newer.signal })
  assert.match(await first.text(), /^retry: 3000\nevent: hello\ndata: {}\n\nretry: 60000\n\n$/)
  newer.abort()
})

void test('the stream of a page that one may not open, or that is not there, is refused', async (t) => {
  const { url, app } = await start(t, { settings: { mcpServers: { his: { url: 'http://127.0.0.1:9/mcp', enabled: false } } } })
  const statusFor = async (username: string, query: string): Promise<number> => {
    const browser = new Browser(app)
    await browser.signIn(username)
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const { status, body } = await fetch(`${url}/console/live?${query}`, { headers: { cookie } })
    await body?.cancel()
    return status
  }
  for (const query of ['page=users', 'page=logs', `page=users&seen=${'0'.repeat(64)}`, 'page=server&name=his']) {
    assert.equal(await statusFor('alice', query), 404, query)
    assert.equal(await statusFor('admin', query), 200, query)
  }
  for (const query of ['page=server&name=none', 'page=server&name=none&seen=x', 'page=none', '']) {
    assert.equal(await statusFor('admin', query), 404, query)
  }
})

void test('what servers, and people, write is shown as text', async (t) => {
  const nasty = '<script>alert(1)</script>"\'><img src=x onerror=alert(1)>'
  const { app } = await start(t, {
    settings: {
      mcpServers: { one: { url: 'javascript:alert(1)', description: nasty, enabled: false, headers: { X: nasty } } },
      groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'team', description: nasty, servers: ['one'] }],
      bearerKeys: [{ id: '44444444-4444-4444-8444-444444444444', name: nasty, token: 'x'.repeat(40), accessType: 'all' }]
    }
  })
  const browser = new Browser(app)
  await browser.signIn('admin')
  for (const path of [
    '/overview', '/servers', `/servers?q=${encodeURIComponent(nasty)}`, '/servers/one?view=configuration', '/keys', '/groups', '/logs',
    `/search-lab?query=${encodeURIComponent(nasty)}&route=`, `/login?next=${encodeURIComponent(nasty)}`, `/${encodeURIComponent(nasty)}`
  ]) {
    const { text } = await browser.get(path)
    assert.doesNotMatch(text, /<script>alert|<img src=x|href="javascript:/i, path)
  }
})
