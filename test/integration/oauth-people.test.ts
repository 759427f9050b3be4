// What people see of the authorization server: its pages, what they refuse, and the consents that they give.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { at } from '../helpers/client.ts'
import { Browser, register, request, type Visit } from '../helpers/oauth.ts'
import { admin, alice, bob, callback, password, scopeOf, startWorld, type Json, type World } from '../helpers/oauth-world.ts'
import { identityLimits } from '../../plugins/identity/limits.ts'

/** Nothing leads on from an answer. */
const refused = ({ status, location }: Visit, wanted: number, what = ''): void => { assert.deepEqual([status, location], [wanted, undefined], what) }

test('the pages: whose they are, what they say, and whom they refuse', async (t) => {
  const world = await startWorld(t)
  const { base } = world
  const { client_id: clientId = '' } = await register(base, { client_name: '<b>Evil</b> "client"', client_uri: 'https://client.example/' })
  const { params } = request(clientId, { resource: `${base}/mcp/some`, scope: 'mcp profile' })
  const begin = async (browser: Browser): Promise<string> => (await browser.get(world.authorizeUrl(params))).location ?? ''
  const browser = world.browser()
  const at = await begin(browser)
  const login = await browser.get(at)
  assert.equal(login.status, 200)
  assert.match(login.headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/)
  assert.doesNotMatch(login.text, /<script|<b>Evil/)
  const good = { username: 'alice', password, csrf: login.forms[0]?.fields.csrf ?? '' }

  await t.test('a form without its token, or with another one', async () => {
    const other = world.browser()
    const foreign = (await other.get(await begin(other))).forms[0]?.fields.csrf ?? ''
    for (const csrf of ['', 'x', 'x'.repeat(43), 'ä'.repeat(43), '😀'.repeat(43), foreign]) {
      const visit = await browser.post(`${at}/login`, { ...good, csrf })
      refused(visit, 400, csrf)
      assert.match(visit.headers.get('content-type') ?? '', /html/)
    }
    const twice = await fetch(`${base}${at}/login`, {
      method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: `csrf=${good.csrf}&csrf=${good.csrf}`
    })
    assert.equal(twice.status, 400)
  })

  await t.test('pages of elsewhere', async () => {
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1']) {
      refused(await browser.post(`${at}/login`, good, { origin }), 403, origin)
    }
  })

  await t.test('another browser with the address of the page', async () => {
    for (const other of [world.browser(), await withSession(world)]) {
      refused(await other.get(at), 400)
      refused(await other.post(`${at}/login`, good), 400)
      refused(await other.post(`${at}/consent`, { csrf: good.csrf, decision: 'allow' }), 400)
      refused(await other.get(at.replace('/interaction/', '/authorize/')), 400)
    }
  })

  await t.test('a consent before a login', async () => {
    const visit = await browser.post(`${at}/consent`, { csrf: good.csrf, decision: 'allow' })
    assert.equal(visit.location, undefined)
    assert.match(visit.text, /name="password"/)
  })

  await t.test('a wrong password', async () => {
    const visit = await browser.post(`${at}/login`, { ...good, password: 'wrong' })
    refused(visit, 401)
    assert.doesNotMatch(visit.text, /wrong"|value="wrong/)
    refused(await browser.post(`${at}/login`, { ...good, username: 'nobody', password: 'wrong' }), 401)
  })

  await t.test('the consent page says who asks for what', async () => {
    const next = await browser.post(`${at}/login`, good)
    const resumed = await browser.get(next.location ?? '')
    const page = await browser.get(resumed.location ?? '')
    assert.equal(page.status, 200, page.text.slice(-500))
    for (const fact of ['&lt;b&gt;Evil', 'alice', '127.0.0.1', `${base}/mcp/some`]) assert.ok(page.text.includes(fact), fact)
    assert.doesNotMatch(page.text, /<script|<b>Evil/)
    assert.match(page.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/)
    const consentAt = page.forms.find(({ action }) => action.endsWith('/consent'))?.action ?? ''
    const csrf = page.forms[0]?.fields.csrf ?? ''
    // No token, no decision; an unknown decision is a denial.
    assert.equal((await browser.post(consentAt, { csrf: good.csrf, decision: 'allow' })).status, 400)
    const other = await browser.post(consentAt, { csrf, decision: 'yes' })
    const end = await browser.get(other.location ?? '')
    assert.equal(new URL(end.location ?? '', base).searchParams.get('error'), 'access_denied')
    assert.equal((await world.as(alice, 'DELETE', `/api/oauth/consents/${clientId}`)).status, 404)
  })

  await t.test('a client that registered itself asks each time, one of an admin\'s once for a resource and scopes', async () => {
    const known = await withSession(world)
    // Who serves another port of this host gets nothing of a login: browsers do not tell ports apart.
    const cookies = known.visits.flatMap(({ headers }) => headers.getSetCookie())
    for (const line of cookies) assert.match(line, /; *path=\/oauth/i)
    assert.ok(cookies.length > 0)
    const first = await known.get(await begin(known))
    assert.match(first.text, /name="decision"/)
    const client = await world.client({ requireSecret: false })
    const ask = async (more: Record<string, string>): Promise<string> =>
      (await known.get(world.authorizeUrl({ ...request(client.id, more).params }))).location ?? ''
    const resource = `${base}/mcp/some`
    await world.code(alice, { resource, scope: 'mcp' }, client.id, known)
    assert.ok(new URL(await ask({ resource, scope: 'mcp' }), base).searchParams.has('code'))
    assert.match(await ask({ resource, scope: 'mcp profile' }), /interaction/, 'more scopes')
    assert.match(await ask({ resource: `${base}/mcp`, scope: 'mcp' }), /interaction/, 'another resource')
    assert.match(await ask({ scope: 'mcp' }), /interaction/, 'all of the gateway')
  })
})

/** The page on which alice is asked whether a client may have what it wants. */
async function consentPage (world: World, params: Record<string, string>, base = world.base): Promise<{ browser: Browser, page: Visit }> {
  const browser = new Browser(world.origin)
  let page = await browser.get(`${base}/oauth/authorize?${new URLSearchParams(params).toString()}`)
  for (let step = 0; step < 6 && !page.text.includes('name="decision"'); step++) {
    page = page.location === undefined ? await browser.submit(page, { username: 'alice', password }, '/login') : await browser.get(page.location)
  }
  assert.match(page.text, /name="decision"/)
  return { browser, page }
}

const isOutdated = (visit: Visit): void => {
  refused(visit, 400)
  assert.match(visit.text, /The request has changed/)
}

test('what is allowed is what the page has shown, whatever the client makes of itself meanwhile', async (t) => {
  const world = await startWorld(t)
  const stated = { client_name: 'A client', redirect_uris: [callback], token_endpoint_auth_method: 'none', scope: 'mcp' }
  const changes: Readonly<Record<string, Json>> = {
    'a wider scope': { scope: 'mcp profile' },
    'another name': { client_name: 'Another client' },
    'another redirect URI beside its own': { redirect_uris: [callback, 'https://evil.example/callback'] },
    'another scope': { scope: 'openid' }
  }
  for (const [what, change] of Object.entries(changes)) {
    await t.test(what, async () => {
      const { client_id: clientId = '', registration_access_token: token } = await register(world.base, stated)
      const { params } = request(clientId, { scope: 'mcp profile' })
      const { browser, page } = await consentPage(world, params)
      const body = { client_id: clientId, ...stated, ...change }
      const put = async (body: Json): Promise<void> => {
        const { status } = await world.ask('PUT', `/oauth/register/${clientId}`, body, { authorization: `Bearer ${token}` })
        assert.equal(status, 200)
      }
      await put(body)
      isOutdated(await browser.submit(page, { decision: 'allow' }, '/consent'))
      // It is over, also where the client takes everything back.
      await put({ client_id: clientId, ...stated })
      refused(await browser.submit(page, { decision: 'allow' }, '/consent'), 400)
      assert.deepEqual((await world.as(alice, 'GET', '/api/oauth/consents')).body.data, [])
    })
  }
  await t.test('without the redirect URI, at the login page or after the consent', async () => {
    const { client_id: clientId = '', registration_access_token: token } = await register(world.base, stated)
    const { params } = request(clientId, { scope: 'mcp' })
    const put = async (uri: string): Promise<unknown> => await world.ask(
      'PUT', `/oauth/register/${clientId}`, { client_id: clientId, ...stated, redirect_uris: [uri] }, { authorization: `Bearer ${token}` }
    )
    const browser = new Browser(world.origin)
    const first = await browser.get(`${world.base}/oauth/authorize?${new URLSearchParams(params).toString()}`)
    const login = await browser.get(first.location ?? '')
    await put('https://other.example/callback')
    isOutdated(await browser.submit(login, { username: 'alice', password }, '/login'))
    await put(callback)
    const consent = await consentPage(world, params)
    const allowed = await consent.browser.submit(consent.page, { decision: 'allow' }, '/consent')
    await put('https://other.example/callback')
    isOutdated(await consent.browser.get(allowed.location ?? ''))
  })
  await t.test('the same again', async () => {
    const { client_id: clientId = '', registration_access_token: token } = await register(world.base, stated)
    const { verifier, params } = request(clientId, { scope: 'mcp profile' })
    const { browser, page } = await consentPage(world, params)
    await world.ask('PUT', `/oauth/register/${clientId}`, { client_id: clientId, ...stated }, { authorization: `Bearer ${token}` })
    const next = await browser.submit(page, { decision: 'allow' }, '/consent')
    const to = new URL((await browser.get(next.location ?? '')).location ?? '')
    // A scope that comes later widens nothing that was granted.
    await world.ask('PUT', `/oauth/register/${clientId}`, { client_id: clientId, ...stated, scope: 'mcp profile' }, { authorization: `Bearer ${token}` })
    const code = to.searchParams.get('code') ?? ''
    const fields = { grant_type: 'authorization_code', code, redirect_uri: callback, client_id: clientId, code_verifier: verifier }
    const { body } = await world.token(fields)
    assert.equal(body.scope, 'mcp')
    assert.equal((await world.refresh(String(body.refresh_token), clientId, { scope: 'mcp profile' })).status, 400)
  })
})

test('what is allowed is what was shown and can still be had', async (t) => {
  const world = await startWorld(t)
  const client = await world.client({ requireSecret: false, scopes: ['mcp', 'manage', 'profile'] })
  const begin = async (): Promise<{ browser: Browser, page: Visit, verifier: string }> => {
    const { verifier, params } = request(client.id, { scope: 'mcp manage profile' })
    return { verifier, ...await consentPage(world, params) }
  }
  await t.test('an admin takes a scope from all clients', async () => {
    const { browser, page, verifier } = await begin()
    await world.configure({ allowedScopes: ['mcp', 'profile'] })
    const next = await browser.submit(page, { decision: 'allow' }, '/consent')
    await world.configure({ allowedScopes: ['mcp', 'manage', 'profile', 'openid'] })
    const code = new URL((await browser.get(next.location ?? '')).location ?? '').searchParams.get('code') ?? ''
    const fields = { grant_type: 'authorization_code', code, redirect_uri: callback, client_id: client.id, code_verifier: verifier }
    assert.deepEqual(scopeOf(await world.token(fields)), ['mcp', 'profile'])
    const [consent] = (await world.as(alice, 'GET', '/api/oauth/consents')).body.data as Json[]
    assert.deepEqual(consent?.scopes, ['mcp', 'profile'])
  })
  await t.test('nothing of it can be had', async () => {
    const { browser, page } = await begin()
    await world.configure({ allowedScopes: ['openid'] })
    isOutdated(await browser.submit(page, { decision: 'allow' }, '/consent'))
    await world.configure({ allowedScopes: ['mcp', 'manage', 'profile', 'openid'] })
  })
  await t.test('a form with other scopes than those of the page', async () => {
    const { browser, page } = await begin()
    const { action = '', fields } = page.forms.find((form) => form.action.endsWith('/consent')) ?? {}
    const [shown = '', mac = ''] = String(fields?.csrf).split('.')
    const more = JSON.parse(Buffer.from(shown, 'base64url').toString()) as Json
    const forged = Buffer.from(JSON.stringify({ ...more, scopes: ['mcp', 'manage', 'profile', 'openid'] })).toString('base64url')
    for (const csrf of [`${forged}.${mac}`, mac, `.${mac}`, `${shown}.`, shown]) {
      refused(await browser.post(action, { csrf, decision: 'allow' }), 400, csrf)
    }
  })
  await t.test('the page of another user', async () => {
    const { browser, page } = await begin()
    // In another tab, somebody else logs in.
    const other = await browser.get(world.authorizeUrl(request(client.id, { scope: 'mcp manage', prompt: 'login' }).params))
    const login = await browser.get(other.location ?? '')
    await browser.submit(login, { username: 'bob', password }, '/login')
    const end = await browser.submit(page, { decision: 'allow' }, '/consent')
    const grants = (await world.as(bob, 'GET', '/api/oauth/consents')).body.data
    assert.deepEqual(grants, [], `${end.status} ${end.location}`)
  })
})

/** A browser in which alice has logged in. */
async function withSession (world: World): Promise<Browser> {
  const browser = world.browser()
  await world.code(alice, {}, undefined, browser)
  return browser
}

test('failed logins count as those of the API do, and together with them', async (t) => {
  const world = await startWorld(t)
  const { client_id: clientId = '' } = await register(world.base)
  const browser = world.browser()
  const { location: at = '' } = await browser.get(world.authorizeUrl(request(clientId).params))
  const csrf = (await browser.get(at)).forms[0]?.fields.csrf ?? ''
  const half = identityLimits.loginFailures / 2
  for (let count = 0; count < half; count++) {
    assert.equal((await browser.post(`${at}/login`, { csrf, username: 'alice', password: 'wrong' })).status, 401)
    assert.equal((await world.ask('POST', '/api/auth/login', { username: 'alice', password: 'wrong' })).status, 401)
  }
  const page = await browser.post(`${at}/login`, { csrf, username: 'alice', password })
  refused(page, 429)
  assert.match(page.headers.get('content-type') ?? '', /html/)
  assert.ok(Number(page.headers.get('retry-after')) > 0)
  assert.equal((await world.ask('POST', '/api/auth/login', { username: 'alice', password })).status, 429)
  assert.equal((await browser.post(`${at}/login`, { csrf, username: 'bob', password })).status, 303)
})

test('READONLY leaves logins open, and closes what changes settings', async (t) => {
  const clientId = 'known'
  const world = await startWorld(t, {
    env: { READONLY: 'true' }, clients: [{ clientId, name: 'A client', redirectUris: [callback], grants: ['authorization_code'], scopes: ['mcp'] }]
  })
  for (const [method, path] of [['POST', ''], ['PUT', '/known'], ['DELETE', '/known']] as const) {
    assert.equal((await world.ask(method, `/oauth/register${path}`, { redirect_uris: [callback] })).status, 403, method)
  }
  assert.equal((await world.as(admin, 'POST', '/api/oauth/clients', { name: 'x', redirectUris: [callback] })).status, 403)
  assert.equal((await world.as(admin, 'DELETE', '/api/oauth/consents/x')).status, 403)
  const { access } = await world.tokens(alice, {}, clientId)
  for (const method of ['GET', 'POST']) assert.equal((await world.by(access, method, '/oauth/userinfo')).status, 200)
  // Read-only mode has a closed list: what was allowed is not taken back while nothing can be changed.
  const revoked = await world.revoke({ token: access, client_id: clientId })
  assert.deepEqual([revoked.status, revoked.body.error], [403, 'access_denied'])
  assert.ok(await world.isValid(access))
})

test('consents are their user\'s', async (t) => {
  const world = await startWorld(t)
  const { access, clientId } = await world.tokens(alice, { scope: 'mcp profile' })
  const { body } = await world.as(alice, 'GET', '/api/oauth/consents')
  const [consent] = body.data as Json[]
  assert.deepEqual({ ...consent, grantedAt: '' }, {
    clientId, clientName: 'A client', scopes: ['mcp', 'profile'], resource: world.base, grantedAt: ''
  })
  // A consent to less takes nothing back: the tokens of the former one are valid still.
  await world.code(alice, { scope: 'profile' }, clientId)
  const [both] = (await world.as(alice, 'GET', '/api/oauth/consents')).body.data as Json[]
  assert.deepEqual(both?.scopes, ['mcp', 'profile'])
  assert.deepEqual((await world.as(bob, 'GET', '/api/oauth/consents')).body.data, [])
  assert.deepEqual((await world.as(admin, 'GET', '/api/oauth/consents')).body.data, [])
  assert.equal((await world.as(bob, 'DELETE', `/api/oauth/consents/${clientId}`)).status, 404)
  assert.ok(await world.isValid(access))
  assert.equal((await world.as(alice, 'DELETE', `/api/oauth/consents/${clientId}`)).status, 200)
  assert.equal((await world.as(alice, 'DELETE', `/api/oauth/consents/${clientId}`)).status, 404)
  const noted = (await world.as(admin, 'GET', '/api/audit?entity=consent')).body.data as Json[]
  assert.deepEqual(
    noted.map(({ username, action, name, before, after }) => [username, action, name, at(before, 'scope'), at(after, 'scope')]),
    [
      ['alice', 'delete', clientId, 'mcp profile', undefined],
      ['alice', 'update', clientId, 'mcp profile', 'mcp profile'],
      ['alice', 'create', clientId, undefined, 'mcp profile']
    ]
  )
})
