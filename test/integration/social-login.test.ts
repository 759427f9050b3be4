// A person in Chromium logs in by an OpenID provider, uses the documentation with the cookie, and signs out; and logins on an embedded
// database, behind https and a path, read-only, and by a provider that comes late. Run by `npm run test:system`; it needs Chromium.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import { openTab, startBrowser } from '../helpers/chromium.ts'
import { pglite } from '../helpers/database.ts'
import { logIn, mount, socialHub, throughProvider } from '../helpers/identity-provider.ts'
import { freePort } from '../helpers/hub.ts'
import { Browser } from '../helpers/oauth.ts'

test('a person logs in, tries a route in /docs, and signs out', async (t) => {
  const { hub, idp } = await socialHub(t)
  idp.isInteractive = true
  idp.people.set('root-1', { email: 'root@example.com', email_verified: true })
  idp.current = 'root-1'
  const { tab } = await openTab(t, await startBrowser(t), { viewport: { width: 1200, height: 900 } })
  // All but one route would take Chromium minutes to draw on a slow machine.
  await tab.route('**/docs/json', async (route) => {
    const description = await (await route.fetch()).json() as { paths: Record<string, unknown> }
    await route.fulfill({ json: { ...description, paths: { '/api/auth/keys': description.paths['/api/auth/keys'] } } })
  })
  await tab.goto(`${hub.url}${mount}/signIn/social?provider=oidc`)
  await tab.getByRole('button', { name: 'Continue as Ada' }).click()
  await tab.waitForURL(`${hub.url}/docs**`)
  const [cookie] = (await tab.context().cookies(hub.url)).filter(({ name }) => name === 'tool-hub-social')
  assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.secure], [true, 'Lax', false])
  assert.equal(await tab.evaluate('document.cookie'), '')

  // Swagger UI sends a request of its own, with the cookie and its Origin.
  const key = tab.locator('.opblock-post', { has: tab.locator('[data-path="/api/auth/keys"]') })
  await key.locator('.opblock-summary').click()
  await key.getByRole('button', { name: 'Try it out' }).click()
  const answered = tab.waitForResponse((reply) => reply.url().endsWith('/api/auth/keys') && reply.request().method() === 'POST')
  await key.getByRole('button', { name: 'Execute' }).click()
  const reply = await answered
  assert.ok([200, 201].includes(reply.status()), await reply.text())

  const inPage = async (path: string, method = 'GET'): Promise<[number, string]> =>
    await tab.evaluate(`fetch('${path}', { method: '${method}' }).then(async (reply) => [reply.status, await reply.text()])`)
  const [status, text] = await inPage('/api/users')
  assert.equal(status, 200)
  assert.match(text, /root@example\.com/)
  assert.deepEqual(await inPage(`${mount}/signOut`, 'POST'), [200, '{"success":true}'])
  assert.equal((await inPage('/api/users'))[0], 401)
  assert.deepEqual((await tab.context().cookies(hub.url)).filter(({ name }) => name === 'tool-hub-social'), [])
})

test('on PGlite, behind https and a path', async (t) => {
  const { url: dbUrl } = await pglite(t)
  const public_ = 'https://hub.example.com'
  const { hub, idp } = await socialHub(t, {
    dbUrl,
    env: { SOCIAL_AUTH_URL: public_, SOCIAL_AUTH_OIDC_PROVIDER_ID: 'work', TRUST_PROXY: 'true', ALLOWED_HOSTS: 'hub.example.com' }
  })
  const browser = new Browser(new URL(hub.url).origin)
  const here = (address = ''): string => address.replace(public_, hub.url)
  const begun = await browser.get(`${mount}/signIn/social?provider=work`)
  const state = begun.headers.getSetCookie().join()
  for (const attribute of ['__Host-tool-hub-social-state=', 'Secure', 'HttpOnly', 'SameSite=Lax', 'Path=/;']) assert.ok(state.includes(attribute), state)
  const callback = await throughProvider(idp, begun.location ?? '')
  assert.equal(callback.origin, public_)
  const end = await browser.get(here(callback.href))
  const line = end.headers.getSetCookie().find((each) => each.startsWith('__Host-tool-hub-social=')) ?? ''
  for (const attribute of ['Secure', 'HttpOnly', 'SameSite=Lax', 'Path=/;']) assert.ok(line.includes(attribute), line)
  assert.ok(!/domain/i.test(line))
  assert.equal(end.location, `${public_}/docs`)
  assert.match((await browser.get('/api/social-auth/user')).text, /ada@example\.com/)
  const keys = async (origin: string): Promise<number> => (await fetch(`${hub.url}/api/auth/keys`, {
    method: 'POST',
    headers: { cookie: line.split(';')[0] ?? '', origin, 'content-type': 'application/json' },
    body: '{"name":"mine"}'
  })).status
  assert.deepEqual([await keys(public_), await keys('https://other.example.com')], [201, 403])
})

const away = async (t: Test, env: Record<string, string>): Promise<void> => {
  const { hub, idp } = await socialHub(t, { env: { BASE_PATH: '/hub', READONLY: 'true', ...env } })
  const browser = new Browser(new URL(hub.url).origin)
  const begin = `${hub.url}${mount}/signIn/social?provider=oidc`
  idp.broken = (request) => { request.socket.destroy() }
  const failed = await browser.get(begin)
  assert.equal(failed.status, 502)
  assert.match(failed.text, /The login provider oidc cannot be reached/)
  assert.ok(!failed.text.includes('127.0.0.1'))
  idp.broken = undefined
  idp.people.set('root-1', { email: 'root@example.com', email_verified: true })
  idp.current = 'root-1'
  const { end } = await logIn(hub, idp, browser)
  assert.equal(end.location, `${hub.url}/docs`)
  assert.match(end.headers.getSetCookie().join(), /tool-hub-social=[^;]+;.*Path=\/hub;/)
  assert.match((await browser.get('/hub/api/social-auth/user')).text, /"isAdmin":true/)
  idp.current = 'ada-1'
  const stranger = await logIn(hub, idp)
  assert.equal(stranger.end.status, 403)
  assert.match(stranger.end.text, /read-only/)
  const reply = await fetch(`${hub.url}${mount}/signOut`, {
    method: 'POST',
    headers: { cookie: (end.headers.getSetCookie().find((each) => /social=./.test(each)) ?? '').split(';')[0] ?? '', origin: new URL(hub.url).origin }
  })
  assert.equal(reply.status, 200)
}

test('a provider that is away at the start, a path, and READONLY', async (t) => {
  await t.test('at the listening address', async (t) => { await away(t, {}) })
  const port = String(await freePort())
  await t.test('at an address that ends with the path', async (t) => {
    await away(t, { PORT: port, SOCIAL_AUTH_URL: `http://127.0.0.1:${port}/hub` })
  })
})
