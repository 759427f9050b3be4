// What becomes of sessions: over a restart, with another password, and on the stream of an open page.
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { appFor } from '../../helpers/app.ts'
import { within } from '../../helpers/client.ts'
import { Browser, follow, signedIn, streamOf } from '../../helpers/console.ts'
import { admin, alice, start } from '../../helpers/doors.ts'
import { setLimits } from '../../helpers/patient.ts'
import { managementLimits } from '../../../plugins/management/limits.ts'

void test('a session survives a restart; its token is not in the settings file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-console-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const first = await appFor(t, { users: [admin, alice] }, {}, { folder })
  const browser = await signedIn(first, 'alice')
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
  const [here, elsewhere] = [await signedIn(app, 'alice'), await signedIn(app, 'alice')]
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
  const browser = await signedIn(app)
  const { cookie } = browser
  const { stream, told } = await follow(t, browser, `${url}/console/live?page=servers`)
  assert.equal(stream.headers.get('content-type'), 'text/event-stream')
  await told('hello')
  const host = { headers: { host: `127.0.0.1:${port}` } }
  await browser.post('/servers/one/toggle', { enabled: 'true' }, '/servers', host)
  await told('changed')
  await browser.post('/sign-out', {}, '/servers', host)
  await told('ended')
  assert.equal((await fetch(`${url}/console/live?page=servers`, { headers: { cookie }, redirect: 'manual' })).status, 303)
})

void test('what changes before a page opens its stream is told, too', async (t) => {
  const { app, url } = await start(t, { settings: { mcpServers: { one: { url: 'http://127.0.0.1:9/mcp', enabled: false } } } })
  const browser = await signedIn(app)
  const page = await browser.get('/servers/one')
  await browser.post('/servers/one/toggle', { enabled: 'true' }, '/servers/one')
  await (await follow(t, browser, `${url}${streamOf(page)}`)).told('changed')
})

void test('an open page whose server is removed is told of it, and the gateway goes on', async (t) => {
  const { app, url } = await start(t, { settings: { mcpServers: { one: { url: 'http://127.0.0.1:9/mcp', enabled: false } } } })
  const browser = await signedIn(app)
  const { told } = await follow(t, browser, `${url}/console/live?page=server&name=one`)
  await told('hello')
  await app.settings.change(() => [{ entity: 'mcpServers', key: 'one', value: undefined }])
  await told('changed')
  assert.equal((await browser.get('/servers/one')).status, 404)
})

void test('the oldest stream beyond the limit ends, and comes back after a minute', async (t) => {
  setLimits(t, managementLimits.console, { streamsPerUser: 1 })
  const { app, url } = await start(t, {})
  const browser = await signedIn(app)
  const { stream } = await follow(t, browser, `${url}/console/live?page=servers`)
  await follow(t, browser, `${url}/console/live?page=servers`)
  await within('the end of the first', stream.done)
  assert.equal(stream.body, 'retry: 3000\nevent: hello\ndata: {}\n\nretry: 60000\n\n')
})

void test('the stream of a page that one may not open, or that is not there, is refused', async (t) => {
  const { url, app } = await start(t, { settings: { mcpServers: { his: { url: 'http://127.0.0.1:9/mcp', enabled: false } } } })
  const statusFor = async (username: string, query: string): Promise<number> => {
    return (await follow(t, await signedIn(app, username), `${url}/console/live?${query}`)).stream.status
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
  const browser = await signedIn(app)
  for (const path of [
    '/overview', '/servers', `/servers?q=${encodeURIComponent(nasty)}`, '/servers/one?view=configuration', '/keys', '/groups', '/logs',
    `/search-lab?query=${encodeURIComponent(nasty)}&route=`, `/login?next=${encodeURIComponent(nasty)}`, `/${encodeURIComponent(nasty)}`
  ]) {
    const { text } = await browser.get(path)
    assert.doesNotMatch(text, /<script>alert|<img src=x|href="javascript:/i, path)
  }
})
