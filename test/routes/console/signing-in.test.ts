// How people get into the console, and how they are let out: sessions, forms of other sites, and the link of the first start.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import type { FastifyInstance } from 'fastify'
import { appFor } from '../../helpers/app.ts'
import { type Answer, Browser, decoded, signedIn } from '../../helpers/console.ts'
import { admin, alice, key } from '../../helpers/doors.ts'
import { initialize } from '../../helpers/client.ts'
import type { Env } from '../../../schemas/env.ts'

const settings = { users: [admin, alice], bearerKeys: [key] }
const start = async (t: Test, env: Partial<Env> = {}, more: object = {}): Promise<FastifyInstance> =>
  await appFor(t, { ...settings, ...more }, env)
const sessionCookie = 'tool-hub-console'
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; connect-src 'self'; " +
  "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

void test('who has not signed in is asked to, and then comes to the page that was asked for', async (t) => {
  const browser = new Browser(await start(t))
  const asked = await browser.get('/servers?q=x')
  assert.deepEqual([asked.status, asked.location], [303, '/console/login?next=%2Fconsole%2Fservers%3Fq%3Dx'])
  const page = await browser.ask({ method: 'GET', url: asked.location })
  assert.match(page.text, /name="next" value="\/console\/servers\?q=x"/)
  const wrong = await browser.post('/login', { username: 'admin', password: 'wrong' }, '/login')
  assert.equal(wrong.status, 401)
  assert.match(wrong.text, /The username or the password is wrong/)
  assert.match(wrong.text, /name="username"[^>]* value="admin"/, 'what was typed stays')
  assert.ok(!wrong.text.includes('"wrong"'), 'but the password')
  assert.equal(browser.cookies.has(sessionCookie), false)
  const right = await browser.post('/login', { username: 'admin', password: 'Same-1234', next: '/console/servers?q=x' }, '/login')
  assert.deepEqual([right.status, right.location], [303, '/console/servers?q=x'])
  const [cookie = ''] = [right.headers['set-cookie'] ?? []].flat().filter((each) => each.startsWith(`${sessionCookie}=`))
  assert.match(cookie, /^tool-hub-console=[\w-]{43}; Path=\/console; HttpOnly; SameSite=Lax$/)
  assert.equal((await browser.get('/overview')).status, 200)
  assert.equal((await browser.get('/login')).location, '/console/overview')
})

void test('after sign-in, nobody is sent to another site', async (t) => {
  const app = await start(t)
  for (const next of [
    'https://evil.example/', '//evil.example/console/', '/\\evil.example', '/console/../../evil', '/console//evil.example',
    'javascript:alert(1)', '/console/login?next=x', '/console/sign-out', '/console/live?page=overview', '/api/servers',
    '/consolex/overview', '/console/%2e%2e/api', ' /console/overview', '/console/\tservers', '\nhttps://evil.example',
    '/console/%6cive?page=servers', '/console/sign%2Dout', '/console/lo%67in?next=x', '/console/live%2f', '/console/servers/%', '/console/%ff'
  ]) {
    const browser = new Browser(app)
    const { location } = await browser.post('/login', { username: 'admin', password: 'Same-1234', next }, '/login')
    assert.match(location, /^\/console\/(overview|servers)$/, next)
  }
  // By the rules that browsers read addresses by.
  for (const next of [
    '/\\evil.example/console/', '\\\\evil.example', 'https:evil.example', '/console/..//evil.example', '/console/%2e%2e//evil.example',
    '/console/%5cevil.example', '/%09/evil.example', 'data:text/html,x', '/console/login?next=https://evil.example', '%2f%2fevil.example',
    '/console/overview@evil.example', 'http://127.0.0.1@evil.example', '//evil.example/console/', 'javascript:alert(1)'
  ]) {
    const browser = new Browser(app)
    for (const [path, from] of [['/login', '/login'], ['/theme', '/overview']] as const) {
      const { status, location } = await browser.post(path, { username: 'admin', password: 'Same-1234', theme: 'dark', next }, from)
      assert.equal(status, 303)
      const { origin, pathname } = new URL(location, 'http://127.0.0.1:3000/console/login')
      assert.ok(origin === 'http://127.0.0.1:3000' && pathname.startsWith('/console/'), `${path}: ${next} leads to ${location}`)
    }
  }
  const next = `/console/servers/a%20b/resources/${encodeURIComponent('file:///x')}?view=y`
  const { location } = await new Browser(app).post('/login', { username: 'admin', password: 'Same-1234', next }, '/login')
  assert.equal(location, next, 'an address in a path is none of another site')
})

void test('a session is good for the console alone, and nothing else for it', async (t) => {
  const app = await start(t, {}, { systemConfig: { routing: { skipAuth: false } } })
  const browser = await signedIn(app)
  const cookie = `${sessionCookie}=${browser.cookies.get(sessionCookie) ?? ''}`
  const api = await app.inject({ url: '/api/servers', headers: { cookie } })
  assert.equal(api.statusCode, 401)
  const made = await app.inject({ method: 'POST', url: '/api/auth/keys', headers: { cookie }, payload: { name: 'k' } })
  assert.equal(made.statusCode, 401)
  const mcp = await app.inject({
    method: 'POST',
    url: '/mcp',
    headers: { cookie, accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    payload: JSON.stringify(initialize)
  })
  assert.equal(mcp.statusCode, 401)
  for (const headers of [
    { 'x-auth-token': app.auth.createLoginToken(admin) }, { authorization: `Bearer ${key.token}` }, { cookie: `${sessionCookie}=${'x'.repeat(43)}` }
  ]) {
    assert.equal((await app.inject({ url: '/console/overview', headers })).statusCode, 303)
  }
})

void test('skipAuth opens the API, and not the console', async (t) => {
  const app = await start(t, {}, { systemConfig: { routing: { skipAuth: true } } })
  assert.equal((await app.inject({ url: '/api/servers' })).statusCode, 200)
  assert.equal((await app.inject({ url: '/console/overview' })).statusCode, 303)
})

void test('signing in makes another session than the one that a browser brings, and ends that one', async (t) => {
  const app = await start(t)
  const planted = new Browser(app)
  planted.cookies.set(sessionCookie, 'a-session-that-an-attacker-knows-0123456789')
  await planted.signIn('alice')
  assert.notEqual(planted.cookies.get(sessionCookie), 'a-session-that-an-attacker-knows-0123456789')
  const former = planted.cookies.get(sessionCookie) ?? ''
  // The login page leads on who is signed in, so the form is sent with the token of another page.
  await planted.post('/login', { username: 'admin', password: 'Same-1234' })
  assert.notEqual(planted.cookies.get(sessionCookie), former)
  const other = new Browser(app)
  other.cookies.set(sessionCookie, former)
  assert.equal((await other.get('/overview')).status, 303)
})

void test('a session ends with sign-out, another password, demotion and deletion', async (t) => {
  const second = { ...admin, username: 'second' }
  const app = await appFor(t, { users: [admin, alice, second] })
  const by = { key: 'test', kind: 'user', user: 'admin', username: 'admin', isAdmin: true } as const
  const ends: ReadonlyArray<[string, (browser: Browser) => Promise<unknown>]> = [
    ['alice', async (browser) => await browser.post('/sign-out', {})],
    ['alice', async () => await app.users.update(by, 'alice', { newPassword: 'Other-1234' })],
    ['second', async () => await app.users.update(by, 'second', { isAdmin: false })],
    ['second', async () => { await app.users.remove(by, 'second') }]
  ]
  for (const [at, [username, end]] of ends.entries()) {
    const browser = await signedIn(app, username)
    const token = browser.cookies.get(sessionCookie) ?? ''
    assert.equal((await browser.get('/overview')).status, 200, `before end ${at}`)
    await end(browser)
    browser.cookies.set(sessionCookie, token)
    assert.equal((await browser.get('/overview')).status, 303, `after end ${at}`)
    assert.equal((await browser.get('/overview', { headers: { 'x-console-refresh': '1' } })).status, 401)
  }
})

void test('what was typed is kept when the session has ended meanwhile', async (t) => {
  const app = await start(t)
  const browser = await signedIn(app)
  const rule = { name: 'one', when: 'tool.name == "x" ||\n  false', then: 'deny', mode: 'enforce' }
  const sent = { _csrf: await browser.csrf('/rules/new'), ...rule }
  await browser.post('/sign-out', {})
  const ended = await browser.send('/rules', sent)
  assert.equal(ended.status, 401)
  assert.match(ended.text, /Your session has ended, and nothing was changed[\s\S]*href="\/console\/login" target="_blank"/)
  assert.equal((await browser.post('/login', { username: '"'.repeat(70_000), password: 'x' }, '/login')).status, 413)
  const secret = await browser.send('/rules', { ...sent, password: 'Same-1234' })
  assert.equal(secret.status, 401)
  assert.doesNotMatch(secret.text, /Same-1234|kept on this page/)
  for (const [name, value] of [['webhook.secret', 'x'], ['values.TOKEN', 'x'], ['value-0-1', 'x'], ['arg/env/0/value', 'x'], ['when', '"'.repeat(70_000)]] as const) {
    const { status, text } = await browser.send('/rules', { ...sent, [name]: value })
    assert.deepEqual([status, text.length < 20_000, text.includes('kept on this page')], [401, true, false], name)
  }
  await browser.signIn('admin')
  const expired = await browser.send('/rules', fieldsToSendAgain(ended))
  assert.equal(expired.status, 403)
  assert.match(expired.text, /Send it as admin/)
  assert.equal(app.policies.entries.list().length, 0)
  assert.equal((await browser.send('/rules', fieldsToSendAgain(expired))).status, 303)
  assert.equal(app.policies.entries.list()[0]?.when, rule.when)
  const other = await signedIn(app, 'alice')
  assert.equal((await other.send('/rules', fieldsToSendAgain(expired))).status, 404)
})

/** The hidden fields of the error page that keeps a form. */
const fieldsToSendAgain = ({ text }: Answer): Record<string, string> => Object.fromEntries(
  [...text.slice(text.indexOf('kept on this page')).matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)]
    .map(([, name = '', value = '']) => [name, decoded(value)]))

void test('a form needs the token of a page of the same session', async (t) => {
  const app = await start(t, {}, { mcpServers: { one: { url: 'http://127.0.0.1:9/mcp', enabled: false } } })
  const [browser, other] = [await signedIn(app), await signedIn(app)]
  const foreign = await other.csrf('/overview')
  const open = await new Browser(app).csrf('/login')
  for (const _csrf of ['', 'x', foreign, open]) {
    const answer = await browser.send('/servers/one/toggle', { enabled: 'true', ..._csrf !== '' && { _csrf } })
    assert.equal(answer.status, 403, _csrf)
    assert.match(answer.text, /This page has expired, and nothing was changed/)
  }
  const own = await browser.csrf('/overview')
  const twice = await browser.ask({
    method: 'POST',
    url: '/console/servers/one/toggle',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: `_csrf=${own}&_csrf=${own}&enabled=true`
  })
  assert.equal(twice.status, 403)
  for (const type of ['application/json', 'text/plain']) {
    const answer = await browser.ask({
      method: 'POST', url: '/console/servers/one/toggle', headers: { 'content-type': type }, payload: JSON.stringify({ _csrf: own })
    })
    assert.equal(answer.status, 415)
  }
  for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:4000']) {
    const answer = await browser.send('/servers/one/toggle', { enabled: 'true', _csrf: own }, { headers: { origin } })
    assert.equal(answer.status, 403, origin)
  }
  assert.equal(app.servers.get({ key: 'k', kind: 'user', user: 'admin', username: 'admin', isAdmin: true }, 'one').enabled, false)
  const good = await browser.send('/servers/one/toggle', { enabled: 'true', _csrf: own }, { headers: { origin: 'http://127.0.0.1:3000' } })
  assert.deepEqual([good.status, good.location], [303, '/console/servers/one'])
  assert.match((await browser.get('/servers/one')).text, /The server was enabled\./)
  const login = await new Browser(app).send('/login', { username: 'admin', password: 'Same-1234' })
  assert.equal(login.status, 403, 'nor does another page sign somebody in')
})

void test('pages have one policy, are kept by no cache, and are in no frame', async (t) => {
  const app = await start(t)
  const browser = new Browser(app)
  const pages = [await browser.get('/login'), await browser.get('/none')]
  await browser.signIn('admin')
  pages.push(await browser.get('/overview'), await browser.get('/none'), await browser.send('/sign-out', {}))
  for (const { headers } of pages) {
    assert.equal(headers['content-security-policy'], policy)
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['x-frame-options'], 'DENY')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['referrer-policy'], 'same-origin')
  }
  const { text } = await browser.get('/overview')
  assert.doesNotMatch(text, /<script(?![^>]* src="\/console\/assets\/)|<style| style="| on[a-z]+="|(?:src|href)="(?:https?:)?\/\//)
  for (const [, asset = ''] of text.matchAll(/(?:src|href)="(\/console\/assets\/[^"#]+)/g)) {
    const { status, headers } = await new Browser(app).ask({ method: 'GET', url: asset })
    assert.deepEqual([status, headers['cache-control']], [200, 'public, max-age=31536000, immutable'], asset)
  }
})

void test('the link of the first start is good once, from this machine alone, and sets a password', async (t) => {
  const app = await start(t)
  const code = app.console.welcome.createCode(admin)
  const path = `/welcome?code=${code}`
  for (const options of [
    { remoteAddress: '192.0.2.7' }, { headers: { 'x-forwarded-for': '127.0.0.1' } }, { headers: { forwarded: 'for=127.0.0.1' } },
    { headers: { 'x-real-ip': '127.0.0.1' } }, { headers: { via: '1.1 proxy' } }, { headers: { 'x-forwarded-host': 'hub.example' } }
  ]) {
    const refused = await new Browser(app).get(path, options)
    assert.equal(refused.status, 403)
    assert.match(refused.text, /works once, for 15 minutes, on the machine/)
  }
  assert.equal((await new Browser(app).get('/welcome?code=wrong')).status, 403)
  const browser = new Browser(app)
  const fields = { code, password: 'My-own-1', repeated: 'My-own-1' }
  const form = async (more: object, options?: object) => await browser.post('/welcome', { ...fields, ...more }, path, options)
  assert.match((await form({ repeated: 'another' })).text, /The passwords do not match/)
  assert.match((await form({ password: 'short', repeated: 'short' })).text, /at least 6/i)
  assert.equal((await form({}, { remoteAddress: '192.0.2.7' })).status, 403)
  const other = new Browser(app)
  const csrf = /name="_csrf" value="([^"]+)"/.exec((await other.get(path)).text)?.[1] ?? ''
  const done = await form({})
  assert.deepEqual([done.status, done.location], [303, '/console/overview'])
  assert.equal((await browser.get('/overview')).status, 200)
  assert.equal((await new Browser(app).get(path)).status, 403, 'a second time')
  const late = await other.send('/welcome', { ...fields, _csrf: csrf })
  assert.deepEqual([late.status, other.cookies.has(sessionCookie)], [403, false], 'a page that was opened before')
  assert.equal((await new Browser(app).signIn('admin')).status, 401)
  assert.equal((await new Browser(app).signIn('admin', 'My-own-1')).status, 303)
})

void test('the link is void once the admin has another password', async (t) => {
  const app = await start(t)
  const code = app.console.welcome.createCode(admin)
  const user = app.users.get('admin')
  assert.ok(user)
  await app.users.changePassword(user, 'Another-1')
  assert.equal((await new Browser(app).get(`/welcome?code=${code}`)).status, 403)
})

void test('READONLY: people sign in and out, and nothing is changed', async (t) => {
  const app = await start(t, { READONLY: true }, { mcpServers: { one: { url: 'http://127.0.0.1:9/mcp', enabled: false } } })
  const browser = new Browser(app)
  assert.equal((await browser.signIn('admin')).status, 303)
  const page = await browser.get('/servers/one')
  assert.match(page.text, /read-only/i)
  assert.match(page.text, /<button[^>]* disabled[^>]*>(?:(?!<\/button>).)*Turn on/s)
  // Also what stores nothing, where the route does.
  const configuration = (await browser.get('/servers/one/configuration')).text
  assert.match(configuration, /<fieldset class="body" disabled>[\s\S]*value="save"[\s\S]*<\/fieldset>\s*<\/form>/)
  assert.match(configuration, /<button[^>]*value="json"[^>]* disabled>/)
  assert.match((await browser.get('/templates')).text, /<button[^>]*value="preview" disabled>/)
  const refused = await browser.post('/servers/one/toggle', { enabled: 'true' })
  assert.equal(refused.status, 403)
  assert.match(refused.text, /read-only \(READONLY\)/)
  const code = app.console.welcome.createCode(admin)
  assert.equal((await browser.post('/welcome', { code, password: 'My-own-1', repeated: 'My-own-1' })).status, 403)
  assert.equal((await browser.post('/sign-out', {})).location, '/console/login')
})

void test('CONSOLE=off: there is none, and the root says what this is', async (t) => {
  const app = await start(t, { CONSOLE: 'off' })
  for (const url of ['/console', '/console/login', '/console/assets/x.js']) {
    assert.equal((await app.inject({ url, headers: { accept: 'text/html' } })).statusCode, 404)
  }
  assert.equal((await app.inject({ url: '/', headers: { accept: 'text/html' } })).statusCode, 200)
})

void test('browsers that open the root are sent to the console, below the base path; others are not', async (t) => {
  for (const BASE_PATH of ['', '/hub']) {
    const app = await start(t, { BASE_PATH })
    const root = async (accept: string) => await app.inject({ url: `${BASE_PATH}/`, headers: { accept } })
    const sent = await root('text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8')
    assert.deepEqual([sent.statusCode, sent.headers.location], [303, `${BASE_PATH}/console`])
    assert.equal((await root('*/*')).statusCode, 200)
    const browser = new Browser(app)
    assert.equal((await browser.signIn('admin')).location, `${BASE_PATH}/console/overview`)
    assert.match((await browser.get('/overview')).text, new RegExp(`href="${BASE_PATH}/console/servers"`))
  }
})

void test('too many wrong passwords: the page says how long to wait, in the words of the API', async (t) => {
  const browser = new Browser(await start(t))
  const csrf = await browser.csrf('/login')
  const wrong = { username: 'alice', password: 'wrong', _csrf: csrf }
  for (let at = 0; at < 10; at++) assert.equal((await browser.send('/login', wrong)).status, 401)
  const late = await browser.send('/login', { ...wrong, password: 'Same-1234' })
  assert.equal(late.status, 429)
  assert.match(late.text, /Too many failed logins; try again in \d+ s/)
  assert.match(String(late.headers['retry-after']), /^\d+$/)
})
