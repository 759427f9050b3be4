// Login by a real OpenID provider: who enters which account, and what callbacks, cookies and sessions withstand.
import assert from 'node:assert/strict'
import { t as file, test } from 'tap'
import { Browser, form, register, request as authorization, type Visit } from '../helpers/oauth.ts'
import type { RouteRow } from '../../plugins/base/scopes/index.ts'
import { login, manage, startReplica } from '../fakes/replica.ts'
import { appFor } from '../helpers/app.ts'
import { initialize, settings } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import {
  localUsers, logIn, mount, providerEnv, socialHub, startIdentityProvider, throughProvider, type Claims, type IdentityProvider
} from '../helpers/identity-provider.ts'
import { freePort, until, type Hub } from '../helpers/hub.ts'
import { setLimits } from '../helpers/patient.ts'
import { identityLimits } from '../../plugins/identity/limits.ts'

const password = 'Same-1234'

interface User { username: string, isAdmin: boolean }
const userOf = async (browser: Browser): Promise<User | undefined> => {
  const visit = await browser.get('/api/social-auth/user')
  return visit.status === 200 ? (JSON.parse(visit.text) as { user: User }).user : undefined
}

const trusted = 'https://dash.example.com'
const { hub, idp, query } = await socialHub(file, {
  env: { SOCIAL_AUTH_TRUSTED_ORIGINS: `["${trusted}"]`, ALLOW_REGISTRATION: 'true' },
  systemConfig: { oauthServer: { enabled: true } }
})

/** Changes of a callback's address. */
const having = (name: string, value: string) => (url: URL): URL => {
  url.searchParams.set(name, value)
  return url
}
const without = (name: string) => (url: URL): URL => {
  url.searchParams.delete(name)
  return url
}

/** The cookie of a session, as `name=value`. */
const cookieOf = ({ headers }: Pick<Visit, 'headers'>): string =>
  headers.getSetCookie().map((line) => line.split(';')[0] ?? '').find((pair) => /tool-hub-social=./.test(pair)) ?? ''

/** What an admin does by the management API. */
async function asAdmin (hub: Hub, method: string, route: string, body?: object): Promise<number> {
  const { token } = (await login(hub, 'admin', password)).body as { token: string }
  return (await manage(hub, method, route, body, { 'x-auth-token': token })).status
}

/** A login of a person. @returns the account that it entered, or the status of the refusal */
async function enter (hub: Hub, idp: IdentityProvider, subject: string, claims: Claims): Promise<User | number> {
  idp.people.set(subject, claims)
  idp.current = subject
  const { browser, end } = await logIn(hub, idp)
  const user = await userOf(browser)
  assert.equal(end.status === 302, user !== undefined, end.text)
  return user ?? end.status
}

test('who enters which account', async (t) => {
  const { hub, idp, query } = await socialHub(t)
  const user = (username: string, isAdmin = false): User & Record<string, unknown> => ({
    username, isAdmin, permissions: { admin: isAdmin, servers: isAdmin ? 'all' : 'visible', users: isAdmin, system: isAdmin }
  })
  const verified = (email: string): Claims => ({ email, email_verified: true })
  const rows: Array<[what: string, subject: string, claims: Claims, expected: User | number]> = [
    ['a verified address of nobody makes an account', 'new-1', verified('new@example.com'), user('new@example.com')],
    ['the account is entered again', 'new-1', verified('new@example.com'), user('new@example.com')],
    ['a changed address stays in the account that was made for it', 'new-1', verified('other@example.com'), user('new@example.com')],
    ['a verified address of an admin', 'root-1', verified('root@example.com'), user('root@example.com', true)],
    ['in capital letters', 'root-1', verified('Root@Example.com'), user('root@example.com', true)],
    ['the same person, whose address is another one now', 'root-1', verified('retired@example.com'), user('retired@example.com')],
    ['an address of an admin that is not verified', 'thief-1', { email: 'root@example.com', email_verified: false }, 403],
    ['one of which nothing is said', 'thief-2', { email: 'root@example.com' }, 403],
    ['one whose word is no boolean', 'thief-3', { email: 'root@example.com', email_verified: 1 }, 403],
    ['an address that looks like an admin\'s', 'thief-4', verified('ｒoot@example.com'), 403],
    ['the name of an admin as a verified address', 'thief-7', verified('admin'), 403],
    ['no address, and the name of an admin', 'thief-5', { name: 'admin' }, 403],
    ['no address, and the name of a local user', 'thief-6', { name: 'bob' }, 403],
    ['no address, and the id of a local user', 'bob', {}, 403],
    ['no address, and the name of the guest: the id', 'guest-1', { name: 'guest' }, user('guest-1')],
    ['a name that no account can have: the id', 'name-1', { name: 'Ada Lovelace' }, user('name-1')],
    ['no address, and a name of nobody', 'carl-1', { name: 'carl' }, user('carl')],
    ['somebody else of that name', 'carl-2', { name: 'carl' }, 403],
    ['the first one again', 'carl-1', { name: 'carl' }, user('carl')],
    ['an account recreated at the provider, with the same verified address', 'new-2', verified('new@example.com'), user('new@example.com')],
    ['and without a verified one', 'new-3', { email: 'new@example.com' }, 403],
    ['who waits with an address that is not verified', 'wait-1', { email: 'victim@example.com' }, user('victim@example.com')],
    ['does not share the account with the one whose address it is', 'victim-1', verified('victim@example.com'), 403]
  ]
  for (const [what, subject, claims, expected] of rows) {
    await t.test(what, async () => { assert.deepEqual(await enter(hub, idp, subject, claims), expected) })
  }
  await t.test('__proto__', async () => {
    const entered = await enter(hub, idp, '__proto__', { name: '__proto__' })
    assert.ok(typeof entered === 'object' && /^oidc-[0-9a-f]{16}$/.test(entered.username) && !entered.isAdmin, JSON.stringify(entered))
    assert.deepEqual(await enter(hub, idp, '__proto__', { name: 'constructor' }), entered)
  })
  await t.test('a local account that was made anew belongs to nobody who logged in to the former', async () => {
    assert.equal(await asAdmin(hub, 'DELETE', '/users/carl'), 200)
    assert.equal(await asAdmin(hub, 'POST', '/users', { username: 'carl', password: 'Another-1' }), 201)
    assert.equal(await enter(hub, idp, 'carl-1', { name: 'carl' }), 403)
  })
  await t.test('such accounts have no password', async () => {
    assert.equal((await login(hub, 'new@example.com', password)).status, 401)
  })
  await t.test('no table holds what a provider gave, and none a whole cookie', async () => {
    idp.current = 'new-1'
    const { end } = await logIn(hub, idp)
    const [token = ''] = (cookieOf(end).split('=')[1] ?? '').split('.')
    const all = await Promise.all(
      ['users', 'accounts', 'sessions', 'identities'].map(async (name) => await query?.(`select * from social_${name}`))
    )
    const text = JSON.stringify(all)
    assert.ok(text.includes(token), 'the half that is stored')
    assert.ok(!text.includes(cookieOf(end).slice(-20)), 'the signature is not')
    // A JSON Web Token from its beginning to its first dot: three letters alone are in random text now and then.
    assert.ok(!/\beyJ[\w-]{20,}\./.test(text) && !/access_token|id_token/i.test(text), text)
    for (const cookie of [`tool-hub-social=${token}`, `tool-hub-social=${token}.${'A'.repeat(43)}%3D`]) {
      assert.equal((await fetch(`${hub.url}/api/auth/user`, { headers: { cookie } })).status, 401)
    }
  })
})

const origin = new URL(hub.url).origin
const begin = `${mount}/signIn/social?provider=oidc`

function fails (end: Visit, status: number, words: RegExp): void {
  assert.equal(end.status, status, end.text)
  assert.match(end.text, words)
  assert.match(end.headers.get('content-type') ?? '', /text\/html/)
  assert.equal(cookieOf(end), '')
}

test('callbacks', async (t) => {
  await t.test('a callback of another browser, or without a login that was begun', async () => {
    const { callback } = await logIn(hub, idp, undefined, { at: (url) => new URL(`${url.origin}/health?${url.searchParams.toString()}`) })
    callback.pathname = `${mount}/callback/oidc`
    fails(await new Browser(origin).get(callback.href), 400, /start it again/)
    const other = new Browser(origin)
    await other.get(begin)
    fails(await other.get(callback.href), 400, /start it again/)
  })
  await t.test('a state that was changed, none, and none of all', async () => {
    for (const at of [without('state'), without('code'), having('state', 'x'.repeat(32))]) {
      fails((await logIn(hub, idp, undefined, { at })).end, 400, /start it again/)
    }
  })
  await t.test('a callback works once', async () => {
    const { browser, callback, end } = await logIn(hub, idp)
    assert.equal(end.status, 302)
    fails(await browser.get(callback.href), 400, /start it again/)
  })
  await t.test('a code of another login of the same browser', async () => {
    const browser = new Browser(origin)
    const first = await browser.get(begin)
    const stolen = (await throughProvider(idp, first.location ?? '')).searchParams.get('code') ?? ''
    const { end } = await logIn(hub, idp, browser, { at: having('code', stolen) })
    fails(end, 502, /login provider/)
  })
  await t.test('an answer of another issuer, and one without (RFC 9207)', async () => {
    for (const at of [without('iss'), having('iss', 'https://evil.example')]) {
      fails((await logIn(hub, idp, undefined, { at })).end, 403, /another login provider/)
    }
  })
  await t.test('a refusal by the provider, of which nothing strange is shown', async () => {
    const refuse = (error: string) => (url: URL): URL => having('error_description', 'CANARY')(having('error', error)(without('code')(url)))
    fails((await logIn(hub, idp, undefined, { at: refuse('access_denied') })).end, 403, /did not let you in \(access_denied\)/)
    const { end } = await logIn(hub, idp, undefined, { at: refuse('<b>CANARY</b>') })
    fails(end, 403, /did not let you in\./)
    assert.ok(!end.text.includes('CANARY'))
  })
  await t.test('where a login leads', async () => {
    for (const target of ['https://evil.example/', '//evil.example', '/\\evil.example', 'javascript:alert(1)', '/\t/evil.example', 'docs']) {
      fails((await logIn(hub, idp, undefined, { callbackURL: target })).end, 400, /callbackURL/)
    }
    for (const [target, expected] of [['/docs?a=1#b', `${origin}/docs?a=1#b`], [`${trusted}/app`, `${trusted}/app`]] as const) {
      const { end } = await logIn(hub, idp, undefined, { callbackURL: target })
      assert.deepEqual([end.status, end.location], [302, expected])
    }
    fails((await logIn(hub, idp, undefined, { provider: 'github' })).end, 404, /login provider/)
  })
  await t.test('better-auth\'s other endpoints are not served', async () => {
    for (const path of ['/sign-up/email', '/sign-in/email', '/list-sessions', '/get-access-token', '/error', '/ok', '//get-session']) {
      for (const method of ['GET', 'POST']) {
        assert.equal((await fetch(`${hub.url}${mount}${path}`, { method })).status, 404, `${method} ${path}`)
      }
    }
  })
  await t.test('a script begins a login under better-auth\'s own name', async () => {
    const post = async (from: string): Promise<Response> => await fetch(`${hub.url}${mount}/sign-in/social`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: from },
      body: JSON.stringify({ provider: 'oidc', callbackURL: '/docs', idToken: { token: 'x' } })
    })
    const { url, redirect } = await (await post(origin)).json() as { url: string, redirect: boolean }
    assert.ok(url.startsWith(idp.url) && redirect)
    assert.equal(new URL(url).searchParams.get('code_challenge_method'), 'S256')
    assert.ok(new URL(url).searchParams.has('nonce'))
    assert.equal((await post('https://evil.example')).status, 403)
  })
})

test('cookies and sessions', async (t) => {
  await t.test('the cookie', async () => {
    const { end } = await logIn(hub, idp)
    const line = end.headers.getSetCookie().find((each) => each.startsWith('tool-hub-social=')) ?? ''
    for (const attribute of ['; HttpOnly', '; SameSite=Lax', '; Path=/;']) assert.ok(line.includes(attribute), line)
    const cookie = cookieOf(end)
    const ask = async (method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<number> =>
      (await fetch(`${hub.url}${path}`, { method, headers: { cookie, ...headers }, body })).status
    const json = { 'content-type': 'application/json' }
    const keyBody = JSON.stringify({ name: 'mine' })
    assert.equal(await ask('GET', '/api/auth/user'), 200)
    for (const more of [cookie, `a=${'x'.repeat(9_000)}`]) assert.equal(await ask('GET', '/api/auth/user', { cookie: `${cookie}; ${more}` }), 401)
    for (const [status, ...all] of [
      [403, {}, { origin: 'https://evil.example' }, { origin: 'null' }, { referer: 'https://evil.example/page' }],
      [201, { origin }, { referer: `${origin}/docs` }, { origin: trusted }]
    ] as Array<[number, ...Array<Record<string, string>>]>) {
      for (const headers of all) assert.equal(await ask('POST', '/api/auth/keys', { ...json, ...headers }, keyBody), status, JSON.stringify(headers))
    }
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      assert.equal(await ask('POST', '/api/auth/keys', { 'content-type': type, origin }, keyBody), 415, type)
    }
    assert.equal(await ask('DELETE', '/api/auth/keys/nothing'), 403, 'without a body')
    assert.equal(await ask('POST', '/api/auth/register', json, JSON.stringify({ username: 'eve', password: 'Same-1234' })), 403, 'register')
    assert.equal(await ask('POST', '/mcp', { ...json, accept: 'application/json, text/event-stream', origin }, JSON.stringify(initialize())), 401)
  })
  await t.test('names with @ are for those who log in by a provider', async () => {
    const reply = await manage(hub, 'POST', '/auth/register', { username: 'waiting@example.com', password }, {})
    assert.equal(reply.status, 400)
    assert.match(reply.text, /e-mail addresses/)
    assert.equal(await asAdmin(hub, 'POST', '/users', { username: 'made@example.com', password: 'Same-1234' }), 201)
  })

  await t.test('demotion, another password and deletion reach a living session', async () => {
    idp.people.set('root-1', { email: 'root@example.com', email_verified: true })
    idp.current = 'root-1'
    const { browser } = await logIn(hub, idp)
    assert.equal((await browser.get('/api/users')).status, 200)
    assert.equal(await asAdmin(hub, 'PUT', '/users/root@example.com', { isAdmin: false }), 200)
    assert.equal((await browser.get('/api/users')).status, 403)
    assert.equal((await userOf(browser))?.isAdmin, false)
    assert.equal(await asAdmin(hub, 'PUT', '/users/root@example.com', { newPassword: 'Different-1' }), 200)
    assert.equal((await browser.get('/api/auth/user')).status, 401)
    const again = (await logIn(hub, idp)).browser
    assert.equal((await again.get('/api/auth/user')).status, 200)
    assert.equal(await asAdmin(hub, 'DELETE', '/users/root@example.com'), 200)
    assert.equal((await again.get('/api/auth/user')).status, 401)
    assert.equal((await again.get(`${mount}/session`)).text, 'null')
    await until(async () => (await query?.('select 1 from social_identities where username = \'root@example.com\''))?.length === 0)
    idp.current = 'ada-1'
  })
  await t.test('signing out ends this session, here only', async () => {
    const [one, two] = [(await logIn(hub, idp)).end, (await logIn(hub, idp)).end].map(cookieOf)
    const stands = async (cookie = ''): Promise<boolean> => (await fetch(`${hub.url}/api/auth/user`, { headers: { cookie } })).ok
    const signOut = async (headers: Record<string, string>): Promise<Response> =>
      await fetch(`${hub.url}${mount}/signOut`, { method: 'POST', headers: { cookie: one ?? '', ...headers } })
    assert.equal((await signOut({})).status, 403)
    assert.equal((await signOut({ origin: 'https://evil.example' })).status, 403)
    assert.ok(await stands(one))
    const before = idp.asked.length
    const reply = await signOut({ origin })
    assert.equal(await reply.text(), '{"success":true}')
    assert.equal(reply.headers.get('location'), null)
    assert.match(reply.headers.getSetCookie().join('\n'), /tool-hub-social=; Max-Age=0/)
    assert.deepEqual([await stands(one), await stands(two)], [false, true])
    assert.equal(idp.asked.length, before, 'the provider was not asked')
  })
})

test('the login page of the authorization server, and a provider in trouble', async (t) => {
  await t.test('the login page offers it', async () => {
    const { client_id: clientId = '' } = await register(hub.url)
    const { verifier, params } = authorization(clientId)
    const browser = new Browser(origin)
    let visit = await browser.get(`${hub.url}/oauth/authorize?${new URLSearchParams(params).toString()}`)
    visit = await browser.get(visit.location ?? '')
    const href = /href="([^"]*signIn\/social[^"]*)"/.exec(visit.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    assert.match(visit.text, /Sign in with/)
    const begun = await browser.get(href)
    visit = await browser.get((await throughProvider(idp, begun.location ?? '')).href)
    for (let step = 0; step < 6 && visit.location !== undefined; step++) visit = await browser.get(visit.location)
    assert.match(visit.text, /ada@example\.com/)
    visit = await browser.submit(visit, { decision: 'allow' }, '/consent')
    while (visit.location !== undefined && !visit.location.startsWith('http://127.0.0.1:8123/')) visit = await browser.get(visit.location)
    const code = new URL(visit.location ?? '').searchParams.get('code') ?? ''
    const redirectUri = params.redirect_uri ?? ''
    const fields = { grant_type: 'authorization_code', code, client_id: clientId, redirect_uri: redirectUri, code_verifier: verifier }
    assert.equal((await form(`${hub.url}/oauth/token`, fields)).status, 200)
  })

  await t.test('a provider that fails', async (t) => {
    const printed = t.capture(console, 'error')
    idp.broken = (_request, reply) => { reply.writeHead(500).end('CANARY') }
    const browser = new Browser(origin)
    const begun = await browser.get(begin)
    assert.equal(begun.status, 302, 'its addresses are known')
    idp.broken = undefined
    const callback = await throughProvider(idp, begun.location ?? '')
    idp.broken = (_request, reply) => { reply.writeHead(500).end('CANARY') }
    const end = await browser.get(callback.href)
    fails(end, 502, /answered with status 500/)
    assert.ok(!end.text.includes('CANARY'))
    assert.deepEqual(printed().map(({ args }) => String(args[0])), [], 'the log of the process has a line that is none')
    idp.broken = undefined
    assert.equal((await logIn(hub, idp)).end.status, 302)
  })
  await t.test('a provider that does not answer keeps nobody else waiting', async () => {
    const browser = new Browser(origin)
    const callback = await throughProvider(idp, (await browser.get(begin)).location ?? '')
    let release = (): void => {}
    const held = new Promise<void>((resolve) => { release = resolve })
    idp.broken = (_request, reply) => { void held.then(() => { reply.writeHead(500).end() }) }
    let isOver = false
    const waiting = browser.get(callback.href).finally(() => { isOver = true })
    // Sessions, other logins and the rest of the gateway need nothing of it.
    for (const path of ['/health', '/public-config', `${mount}/session`, `${mount}/signIn/social?provider=oidc`]) {
      const reply = await fetch(`${hub.url}${path}`, { redirect: 'manual' })
      assert.ok(reply.status === 200 || reply.status === 302, path)
    }
    assert.equal((await login(hub, 'bob', password)).status, 200)
    assert.equal(isOver, false)
    release()
    fails(await waiting, 502, /answered with status 500/)
    idp.broken = undefined
  })
  await t.test('a login that another one floods', async () => {
    let status = 0
    for (let n = 0; n < 400 && status !== 429; n++) status = (await fetch(`${hub.url}${mount}/signIn/social?provider=none`)).status
    assert.equal(status, 429)
  })
})

test('no more logins than allowed wait for a provider at once', async (t) => {
  setLimits(t, identityLimits.social, { requests: 1 })
  const { hub, idp } = await socialHub(t)
  const browsers = [new Browser(new URL(hub.url).origin), new Browser(new URL(hub.url).origin)]
  const callbacks: URL[] = []
  for (const browser of browsers) callbacks.push(await throughProvider(idp, (await browser.get(begin)).location ?? ''))
  let [asked, release] = [0, (): void => {}]
  const held = new Promise<void>((resolve) => { release = resolve })
  idp.broken = (_request, reply) => {
    asked++
    void held.then(() => { reply.writeHead(500).end() })
  }
  const ends = browsers.map(async (browser, n) => await browser.get(callbacks[n]?.href ?? ''))
  await until(() => asked === 1)
  for (let n = 0; n < 5; n++) await fetch(`${hub.url}/health`)
  assert.equal(asked, 1, 'the other one waits for its turn')
  release()
  for (const end of await Promise.all(ends)) fails(end, 502, /answered with status 500/)
  assert.equal(asked, 2)
})

test('the cookie of a social login on every route', async (t) => {
  const { hub, idp } = await socialHub(t, { systemConfig: { oauthServer: { enabled: true } } })
  const origin = new URL(hub.url).origin
  // An admin by a verified address, who has a password as well. The first login by it stores another hash, which ends what was before.
  const { token } = (await login(hub, 'root@example.com', password)).body as { token: string }
  idp.people.set('root-1', { email: 'root@example.com', email_verified: true })
  const cookieFor = async (subject: string): Promise<string> => {
    idp.current = subject
    const { end } = await logIn(hub, idp)
    assert.equal(end.status, 302, end.text)
    return cookieOf(end)
  }
  const [admin, ada] = [await cookieFor('root-1'), await cookieFor('ada-1')]
  const all = await appFor(t, {})
  await all.annexes.openAll()
  const { routeTable } = all
  const ask = async ({ method, url }: RouteRow, headers: Record<string, string>): Promise<number> => {
    const isRead = method === 'GET' || method === 'HEAD'
    const reply = await fetch(`${hub.url}${url.replace(/:[A-Za-z]+|\*/g, 'x')}`, {
      method,
      headers: { accept: 'application/json, text/event-stream', ...headers, ...(isRead ? {} : { 'content-type': 'application/json' }) },
      body: isRead ? undefined : '{}',
      redirect: 'manual'
    })
    await reply.body?.cancel()
    return reply.status
  }
  // These end what the others need.
  const left = new Set(['/api/auth/better/signOut', '/api/auth/better/sign-out', '/api/social-auth/user', '/api/auth/login'])
  const wrong: string[] = []
  let count = 0
  for (const row of routeTable.filter(({ url, method }) => !left.has(url) && method !== 'OPTIONS')) {
    const { method, url, scope, effect } = row
    const isSafe = method === 'GET' || method === 'HEAD'
    const expect = async (who: string, headers: Record<string, string>, wanted: number): Promise<void> => {
      const status = await ask(row, headers)
      count++
      if (status !== wanted) wrong.push(`${who}: ${method} ${url}: ${status}, expected ${wanted}`)
    }
    if (scope === 'api' || scope === 'admin') {
      const asUser = await ask(row, { 'x-auth-token': token })
      await expect('an admin, from a page of ours', { cookie: admin, origin }, asUser)
      if (!isSafe || effect !== 'read') await expect('from nowhere', { cookie: admin }, 403)
      if (!isSafe || effect !== 'read') await expect('from a page of others', { cookie: admin, origin: 'https://evil.example' }, 403)
      if (scope === 'admin') await expect('a user', { cookie: ada, origin }, 403)
      await expect('a cookie that is none', { cookie: 'tool-hub-social=x.y', origin }, 401)
    } else if (scope === 'mcp') await expect('on MCP', { cookie: admin, origin }, 401)
    else if (scope === 'open') await expect('as nobody', { cookie: admin }, await ask(row, {}))
  }
  assert.deepEqual(wrong, [])
  assert.ok(count > 300, String(count))
})

test('a login may begin on one replica and end on another, and its session is one', async (t) => {
  const { url } = await database(t)
  const port = await freePort()
  const base = `http://127.0.0.1:${port}`
  const idp = await startIdentityProvider(t, [`${base}${mount}/callback/oidc`])
  const env = { SOCIAL_AUTH_URL: base, ...providerEnv(idp) }
  const one = await startReplica(t, url, { settings: settings({}, { users: localUsers }), env: { ...env, PORT: String(port) } })
  const other = await startReplica(t, url, { env })
  const browser = new Browser(base)
  const begun = await browser.get(begin)
  const state = begun.headers.getSetCookie().map((line) => line.split(';')[0]).join('; ')
  const callback = await throughProvider(idp, begun.location ?? '')
  const ended = await fetch(`${other.url}${callback.pathname}${callback.search}`, { headers: { cookie: state }, redirect: 'manual' })
  assert.equal(ended.status, 302, await ended.text())
  const cookie = cookieOf(ended)
  const who = async (hub: { url: string }): Promise<unknown> => {
    const reply = await fetch(`${hub.url}/api/auth/user`, { headers: { cookie } })
    return reply.ok ? ((await reply.json()) as { user: { username: string } }).user.username : reply.status
  }
  // The account that one has made is known to the other at once.
  assert.deepEqual([await who(other), await who(one)], ['ada@example.com', 'ada@example.com'])
  // A callback works once, wherever it comes.
  const again = await fetch(`${one.url}${callback.pathname}${callback.search}`, { headers: { cookie: state }, redirect: 'manual' })
  assert.ok(again.status >= 400, String(again.status))
  // What ends it on one counts on the other at once.
  const out = await fetch(`${one.url}${mount}/signOut`, { method: 'POST', headers: { cookie, origin: base, 'content-type': 'application/json' }, body: '{}' })
  assert.equal(out.status, 200)
  assert.deepEqual([await who(one), await who(other)], [401, 401])
})
