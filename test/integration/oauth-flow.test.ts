// The authorization server as its users have it: who gets a token, what it is good for, what follows from the settings, and when it ends.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { limits } from '../../plugins/limits/index.ts'
import { at } from '../helpers/client.ts'
import type { Browser } from '../helpers/oauth.ts'
import { allow, register, request } from '../helpers/oauth.ts'
import {
  admin, alice, basic, bob, callback, password, startServers, startWorld, until, type Answer, type Json, type World
} from '../helpers/oauth-world.ts'

const scopeOf = ({ body }: Answer): string[] => String(body.scope ?? '').split(' ').sort()

test('a client that knows only the address finds its way to a tool', async (t) => {
  const world = await startWorld(t, { servers: await startServers(t) })
  const { base } = world
  const refused = await world.ask('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' })
  assert.equal(refused.status, 401)
  const challenge = refused.headers.get('www-authenticate') ?? ''
  assert.doesNotMatch(challenge, /error=/, 'no credentials, no error (RFC 6750, section 3.1)')
  assert.match(challenge, /scope="mcp"/)
  const address = /resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? ''
  const { body: resource } = await world.ask('GET', address)
  assert.deepEqual([resource.resource, resource.bearer_methods_supported], [`${base}/mcp`, ['header']])
  const [issuer = ''] = resource.authorization_servers as string[]
  const { body: server } = await world.ask('GET', `${issuer}/.well-known/oauth-authorization-server`)
  assert.equal(server.issuer, issuer)

  const code = await world.code(alice, { resource: `${base}/mcp`, scope: 'mcp profile' })
  const answer = await world.token({ ...code, resource: `${base}/mcp` })
  assert.equal(answer.status, 200)
  assert.deepEqual([answer.body.token_type, answer.body.expires_in, scopeOf(answer)], ['Bearer', 3_600, ['mcp', 'profile']])
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  assert.equal(answer.body.id_token, undefined)
  assert.ok(Buffer.from(String(answer.body.access_token), 'base64url').length >= 16)

  const token = String(answer.body.access_token)
  const tools = async (): Promise<string> => {
    const init = await world.mcp(token)
    assert.equal(init.status, 200, JSON.stringify(init.body))
    const headers = {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'mcp-session-id': init.headers.get('mcp-session-id') ?? '',
      'mcp-protocol-version': '2025-11-25'
    }
    return JSON.stringify((await world.ask('POST', '/mcp', { jsonrpc: '2.0', id: 2, method: 'tools/list' }, headers)).body)
  }
  await until(async () => { const text = await tools(); return text.includes('open-echo') && text.includes('own-mine') }, 'no tools')
  // Another user's token shows other tools.
  const { access } = await world.tokens(bob)
  const seen = JSON.stringify((await world.by(access, 'GET', '/api/servers')).body)
  assert.ok(seen.includes('"open"') && !seen.includes('"own"'), seen)
})

test('where errors of a browser end: denial, and what comes back', async (t) => {
  const world = await startWorld(t)
  const { client_id: clientId = '' } = await register(world.base)
  const state = 'ä &=?#"<script> ü'
  const { params } = request(clientId, { state })
  const denied = await allow(world.browser(), world.authorizeUrl(params), alice, 'deny')
  const got = ({ searchParams }: URL): Array<string | null> => ['error', 'code', 'state', 'iss'].map((name) => searchParams.get(name))
  assert.deepEqual(got(denied), ['access_denied', null, state, world.base])
  const allowed = await allow(world.browser(), world.authorizeUrl(params), alice)
  const [error, code, back, iss] = got(allowed)
  assert.deepEqual([error, back, iss], [null, state, world.base])
  assert.ok((code ?? '').length >= 22)
  const other = await allow(world.browser(), world.authorizeUrl({ ...params, redirect_uri: 'http://127.0.0.1:50123/callback' }), alice)
  assert.equal(other.origin, 'http://127.0.0.1:50123')
  // By POST.
  const visit = await world.browser().post('/oauth/authorize', params)
  assert.match(visit.location ?? '', /\/oauth\/interaction\//)
})

const paths: Array<[string, string]> = [
  ['GET', '/oauth/authorize'],
  ['POST', '/oauth/authorize'],
  ['GET', '/oauth/authorize/some'],
  ['POST', '/oauth/token'],
  ['POST', '/oauth/revoke'],
  ['GET', '/oauth/userinfo'],
  ['POST', '/oauth/userinfo'],
  ['POST', '/oauth/register'],
  ['GET', '/oauth/register/some'],
  ['PUT', '/oauth/register/some'],
  ['DELETE', '/oauth/register/some'],
  ['GET', '/oauth/interaction/some'],
  ['POST', '/oauth/interaction/some/login'],
  ['POST', '/oauth/interaction/some/consent'],
  ['POST', '/oauth/interaction/some/logout'],
  ['GET', '/.well-known/oauth-authorization-server'],
  ['GET', '/.well-known/oauth-protected-resource'],
  ['GET', '/.well-known/oauth-protected-resource/mcp'],
  ['GET', '/api/oauth/clients'],
  ['POST', '/api/oauth/clients'],
  ['GET', '/api/oauth/clients/some'],
  ['PUT', '/api/oauth/clients/some'],
  ['DELETE', '/api/oauth/clients/some'],
  ['POST', '/api/oauth/clients/some/regenerate-secret'],
  ['GET', '/api/oauth/consents'],
  ['DELETE', '/api/oauth/consents/some']
]

test('off, nothing is there; switched on and off while it runs', async (t) => {
  const world = await startWorld(t, { oauthServer: { enabled: false } })
  const check = async (): Promise<void> => {
    for (const [method, path] of paths) {
      const { status, body } = await world.as(admin, method, path, method === 'POST' || method === 'PUT' ? {} : undefined)
      assert.equal(status, 404, `${method} ${path}: ${JSON.stringify(body).slice(0, 300)}`)
    }
    const { headers } = await world.ask('POST', '/mcp', {})
    assert.equal(headers.get('www-authenticate'), 'Bearer')
  }
  await check()
  await world.configure({ enabled: true })
  const { access, refresh, clientId } = await world.tokens(alice)
  assert.ok(await world.isValid(access))
  await world.configure({ enabled: false })
  await check()
  assert.equal(await world.isValid(access), false)
  assert.equal((await world.by(access, 'GET', '/api/servers')).status, 401)
  await world.configure({ enabled: true })
  assert.ok(await world.isValid(access))
  assert.equal((await world.refresh(refresh, clientId)).status, 200)
})

test('the settings take effect at once', async (t) => {
  const world = await startWorld(t)
  const { base } = world
  const metadata = async (): Promise<Json> => (await world.ask('GET', '/.well-known/oauth-authorization-server')).body
  const post = async (more: Json = {}, headers: Record<string, string> = {}): Promise<Answer> =>
    await world.ask('POST', '/oauth/register', { redirect_uris: [callback], token_endpoint_auth_method: 'none', ...more }, headers)

  await t.test('lifetimes', async () => {
    const { client_id: clientId = '' } = await register(base)
    const browser = world.browser()
    const code = await world.code(alice, {}, clientId, browser)
    await world.configure({ accessTokenLifetime: 2, refreshTokenLifetime: 1, authorizationCodeLifetime: 1 })
    const late = await world.code(alice, {}, clientId, browser)
    const { body } = await world.token(code)
    assert.equal(body.expires_in, 2)
    const access = String(body.access_token)
    assert.ok(await world.isValid(access))
    await new Promise((resolve) => setTimeout(resolve, 2_100))
    assert.equal(await world.isValid(access), false)
    assert.equal((await world.refresh(String(body.refresh_token), code.client_id)).body.error, 'invalid_grant')
    assert.equal((await world.token(late)).body.error, 'invalid_grant')
    await world.configure({ accessTokenLifetime: null, refreshTokenLifetime: null, authorizationCodeLifetime: null })
  })

  await t.test('state', async () => {
    const { client_id: clientId = '' } = await register(base)
    const { state: _, ...params } = request(clientId).params
    await world.configure({ requireState: true })
    const { status, text } = await world.authorize(params)
    assert.equal(status, 400)
    assert.match(text, /required parameter &quot;state&quot;|required parameter "state"/)
    assert.match((await world.authorize({ ...params, state: 's' })).location ?? '', /interaction/)
    await world.configure({ requireState: false })
    assert.match((await world.authorize(params)).location ?? '', /interaction/)
  })

  await t.test('scopes', async () => {
    const client = await world.client({ scopes: ['mcp', 'profile', 'manage'] })
    await world.configure({ allowedScopes: ['mcp', 'openid'] })
    assert.deepEqual((await metadata()).scopes_supported, ['mcp', 'openid'])
    const asked = { scope: 'mcp profile manage openid' }
    const one = await world.token(await world.code(alice, asked))
    assert.deepEqual(scopeOf(one), ['mcp', 'openid'])
    const { client_id: _, ...code } = await world.code(admin, asked, client.id)
    assert.deepEqual(scopeOf(await world.token(code, basic(client.id, client.secret))), ['mcp'])
    assert.equal((await post({ scope: 'mcp profile' })).body.scope, 'mcp')
    await world.configure({ allowedScopes: null })
  })

  await t.test('scopes that are taken away leave refreshed tokens', async () => {
    const client = await world.client({ scopes: ['mcp', 'manage'], requireSecret: false })
    const { refresh } = await world.tokens(admin, { scope: 'mcp manage' }, client.id)
    await world.configure({ allowedScopes: ['mcp'] })
    assert.deepEqual(scopeOf(await world.refresh(refresh, client.id)), ['mcp'])
    await world.configure({ allowedScopes: null })
  })

  await t.test('secrets', async () => {
    const { access, refresh, clientId } = await world.tokens(alice)
    await world.configure({ requireClientSecret: true })
    assert.ok(!(JSON.stringify(await metadata()).includes('"none"')))
    assert.equal((await metadata()).client_id_metadata_document_supported, false)
    assert.equal((await post()).body.error, 'invalid_client_metadata')
    assert.equal((await world.refresh(refresh, clientId)).body.error, 'invalid_client')
    const { status, location } = await world.authorize(request(clientId).params)
    assert.deepEqual([status, location], [400, undefined])
    assert.equal((await post({ token_endpoint_auth_method: undefined })).status, 201)
    await world.configure({ requireClientSecret: false })
    assert.ok(await world.isValid(access))
  })

  await t.test('registration', async () => {
    await world.configure({ dynamicRegistration: { enabled: false } })
    assert.equal((await metadata()).registration_endpoint, undefined)
    assert.deepEqual([(await post()).status, (await post()).body.error], [403, 'access_denied'])
    await world.configure({ dynamicRegistration: { enabled: true, allowedGrantTypes: ['authorization_code'] } })
    assert.deepEqual((await metadata()).grant_types_supported, ['authorization_code'])
    // What a client cannot have is left out, and the answer says so (RFC 7591, section 3.2.1).
    const device = 'urn:ietf:params:oauth:grant-type:device_code'
    const { body: { client_id: id, grant_types: grants } } = await post({ grant_types: [device, 'refresh_token', 'authorization_code'] })
    assert.deepEqual(grants, ['authorization_code'])
    assert.deepEqual((await post()).body.grant_types, ['authorization_code'])
    assert.equal((await post({ grant_types: ['refresh_token'] })).body.error, 'invalid_client_metadata')
    // It is a setting for registrations.
    const made = await world.as(admin, 'POST', '/api/oauth/clients', { name: 'x', redirectUris: [callback] })
    assert.deepEqual((made.body.data as Json).grants, ['authorization_code', 'refresh_token'])
    const answer = await world.token(await world.code(alice, {}, String(id)))
    assert.deepEqual([answer.status, answer.body.refresh_token], [200, undefined])
    await world.configure({ dynamicRegistration: { allowedGrantTypes: null } })
  })

  await t.test('an admin\'s credential for registration, in a header, and with the right to change things', async () => {
    await world.configure({ dynamicRegistration: { requiresAuthentication: true } })
    const client = await world.client({ scopes: ['mcp', 'manage', 'profile'], requireSecret: false })
    const { access: reading } = await world.tokens(admin, { scope: 'mcp profile' }, client.id)
    const { access: managing } = await world.tokens(admin, { scope: 'mcp manage' }, client.id)
    const login = (who: typeof admin): string => {
      const user = world.app.users.get(who.username)
      assert.ok(user)
      return world.app.auth.login(user)
    }
    const cases: Array<[string, Record<string, string>, number]> = [
      ['nothing', {}, 401],
      ['rubbish', { authorization: 'Bearer rubbish' }, 401],
      ['a user', { 'x-auth-token': login(alice) }, 403],
      ['an admin\'s client without the scope', { authorization: `Bearer ${reading}` }, 403],
      ['an admin\'s client with the scope', { authorization: `Bearer ${managing}` }, 201],
      ['an admin', { 'x-auth-token': login(admin) }, 201],
      ['a key', { authorization: `Bearer thk_${'a'.repeat(64)}` }, 201]
    ]
    for (const [name, headers, status] of cases) assert.equal((await post({}, headers)).status, status, name)
    const query = await world.ask('POST', `/oauth/register?token=${login(admin)}`, { redirect_uris: [callback] })
    assert.equal(query.status, 401, 'a token in the query')
    await world.configure({ dynamicRegistration: { requiresAuthentication: false } }, { routing: { skipAuth: true } })
    await world.configure({ dynamicRegistration: { requiresAuthentication: true } })
    assert.equal((await post()).status, 401, 'a guest')
  })

  await t.test('settings that mean nothing are refused', async () => {
    for (const oauthServer of [
      { enabled: 'yes' }, { accessTokenLifetime: 0 }, { accessTokenLifetime: -1 }, { accessTokenLifetime: 1.5 }, { accessTokenLifetime: 86_401 },
      { authorizationCodeLifetime: 601 }, { refreshTokenLifetime: 365 * 86_400 + 1 }, { allowedScopes: 'mcp' },
      { allowedScopes: ['a b'] }, { dynamicRegistration: { allowedGrantTypes: ['implicit'] } }, { issuer: 'https://evil.example' }
    ]) {
      const { status } = await world.as(admin, 'PUT', '/api/system-config', { oauthServer })
      assert.equal(status, 400, JSON.stringify(oauthServer))
    }
    assert.equal((await world.as(alice, 'PUT', '/api/system-config', { oauthServer: { enabled: true } })).status, 403)
  })
})

test('metadata follows the configuration, and no header', async (t) => {
  const serverAt = '/.well-known/oauth-authorization-server'
  const resourceAt = '/.well-known/oauth-protected-resource'
  const forged = {
    'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.9', forwarded: 'host=evil.example;proto=https'
  }
  const whole = async (world: World, issuer: string, url: string): Promise<void> => {
    const { status, body, headers } = await world.ask('GET', url, undefined, forged)
    assert.equal(status, 200, url)
    assert.ok(!JSON.stringify(body).includes('evil'), JSON.stringify(body))
    assert.equal(body.issuer, issuer)
    for (const name of ['authorization', 'token', 'registration', 'revocation', 'userinfo']) {
      assert.ok(String(body[`${name}_endpoint`]).startsWith(`${issuer}/oauth/`), name)
    }
    assert.deepEqual(body.response_types_supported, ['code'])
    assert.deepEqual(body.code_challenge_methods_supported, ['S256'])
    assert.deepEqual(body.grant_types_supported, ['authorization_code', 'refresh_token'])
    assert.deepEqual(body.token_endpoint_auth_methods_supported, ['none', 'client_secret_basic', 'client_secret_post'])
    assert.deepEqual(body.scopes_supported, ['mcp', 'manage', 'profile', 'openid'])
    assert.equal(body.authorization_response_iss_parameter_supported, true)
    assert.match(headers.get('content-type') ?? '', /^application\/json/)
  }
  const resource = async (world: World, url: string, wanted: string | undefined, issuer: string): Promise<void> => {
    const { status, body } = await world.ask('GET', url, undefined, forged)
    assert.equal(status, wanted === undefined ? 404 : 200, url)
    if (wanted !== undefined) assert.deepEqual([body.resource, body.authorization_servers], [wanted, [issuer]], url)
  }

  await t.test('without a base path', async (t) => {
    const world = await startWorld(t)
    const { base } = world
    await whole(world, base, serverAt)
    assert.equal((await world.ask('GET', `${serverAt}/other`)).status, 404)
    for (const path of ['', '/mcp', '/mcp/some', '/mcp/$smart', '/mcp/$smart/some', '/alice/mcp', '/alice/mcp/some', '/sse', '/api', '/api/mcp']) {
      await resource(world, `${base}${resourceAt}${path}`, `${base}${path}`, base)
    }
    for (const path of ['/health', '/oauth', '/mcpx', '/a/b/mcp']) await resource(world, `${base}${resourceAt}${path}`, undefined, base)
    const { params } = request((await register(base)).client_id ?? '')
    const { location = '' } = await fetch(world.authorizeUrl(params), { redirect: 'manual', headers: forged })
      .then((reply) => ({ location: reply.headers.get('location') ?? '' }))
    assert.ok(!location.includes('evil'), location)
  })

  await t.test('with a base path', async (t) => {
    const world = await startWorld(t, { env: { BASE_PATH: '/hub' } })
    const { base, origin } = world
    await whole(world, base, `${origin}${serverAt}/hub`)
    await whole(world, base, `${base}${serverAt}`)
    await resource(world, `${origin}${resourceAt}/hub/mcp/some`, `${base}/mcp/some`, base)
    await resource(world, `${base}${resourceAt}/mcp`, `${base}/mcp`, base)
    assert.equal((await world.ask('GET', `${origin}${serverAt}`)).status, 404)
    assert.equal((await world.ask('GET', `${origin}${resourceAt}/mcp`)).status, 404)
    const { access } = await world.tokens(alice, { resource: `${base}/mcp` })
    assert.equal((await world.mcp(access)).status, 200)
    const challenge = (await world.ask('POST', '/mcp', {})).headers.get('www-authenticate') ?? ''
    assert.ok(challenge.includes(`"${base}${resourceAt}/mcp"`), challenge)
  })

  await t.test('with install.baseUrl, of which a proxy takes the path off', async (t) => {
    const world = await startWorld(t, { system: { install: { baseUrl: 'https://hub.example.com/tools/' } }, env: { ALLOWED_ORIGINS: '' } })
    const issuer = 'https://hub.example.com/tools'
    await whole(world, issuer, serverAt)
    await whole(world, issuer, `${serverAt}/tools`)
    await resource(world, `${world.base}${resourceAt}/mcp`, `${issuer}/mcp`, issuer)
    await resource(world, `${world.base}${resourceAt}/tools/mcp`, `${issuer}/mcp`, issuer)
    // The whole flow, with the browser's and the client's requests as the proxy passes them on.
    const { client_id: id = '', registration_client_uri: uri } = await register(world.base)
    assert.ok(uri?.startsWith(`${issuer}/oauth/register/`))
    const { verifier, params } = request(id, { resource: `${issuer}/mcp` })
    const end = await throughProxy(world, '/tools', `/tools/oauth/authorize?${new URLSearchParams(params).toString()}`)
    assert.equal(end.searchParams.get('iss'), issuer)
    const { status, body } = await world.token({
      grant_type: 'authorization_code', code: end.searchParams.get('code') ?? '', client_id: id, redirect_uri: callback, code_verifier: verifier
    })
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal((await world.mcp(String(body.access_token))).status, 200)
    assert.equal((await world.mcp(String(body.access_token), '/alice/mcp')).status, 401)
  })

  await t.test('behind a trusted proxy, the forwarded host', async (t) => {
    const world = await startWorld(t, { env: { TRUST_PROXY: 'true', ALLOWED_HOSTS: 'hub.example.com' } })
    const headers = { 'x-forwarded-host': 'hub.example.com', 'x-forwarded-proto': 'https' }
    assert.equal((await world.ask('GET', serverAt, undefined, headers)).body.issuer, 'https://hub.example.com')
  })
})

/** Walks the pages as alice behind a proxy that takes a path off. @returns where the browser ends */
async function throughProxy (world: World, prefix: string, start: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let [path, form] = [start, undefined as URLSearchParams | undefined]
  for (let step = 0; step < 12; step++) {
    assert.ok(path.startsWith(`${prefix}/`), `the proxy does not pass on ${path}`)
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const reply = await fetch(`${world.origin}${path.slice(prefix.length)}`, {
      method: form ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { cookie, ...(form ? { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://hub.example.com' } : {}) },
      body: form?.toString()
    })
    for (const line of reply.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      const at = /path=([^;]*)/i.exec(line)?.[1] ?? ''
      assert.ok(value === '' || at === '/' || at.startsWith(prefix), `a cookie that the browser does not send back: ${line}`)
      assert.match(line, /secure/i)
      assert.match(line, /httponly/i)
      assert.match(line, /samesite=lax/i)
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const location = reply.headers.get('location')
    const text = await reply.text()
    form = undefined
    if (location !== null) {
      const url = new URL(location, `https://hub.example.com${path}`)
      if (url.origin !== 'https://hub.example.com') return url
      path = `${url.pathname}${url.search}`
      continue
    }
    const action = /<form[^>]*action="([^"]+)"/.exec(text)?.[1]
    const csrf = /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? ''
    assert.ok(action !== undefined, `${reply.status} ${text.slice(-500)}`)
    path = action
    form = new URLSearchParams({ csrf, username: alice.username, password, decision: 'allow' })
  }
  assert.fail('round in circles')
}

test('"manage" is for clients of an admin\'s that ask for it', async (t) => {
  const world = await startWorld(t)
  const own = await register(world.base, { scope: 'mcp manage' })
  assert.equal(own.scope, 'mcp')
  const changed = await world.ask('PUT', `/oauth/register/${own.client_id ?? ''}`, {
    client_id: own.client_id, redirect_uris: [callback], token_endpoint_auth_method: 'none', scope: 'mcp manage profile'
  }, { authorization: `Bearer ${own.registration_access_token ?? ''}` })
  assert.deepEqual([changed.status, changed.body.scope], [200, 'mcp profile'])
  const code = await world.code(admin, { scope: 'mcp manage' }, own.client_id)
  const answer = await world.token(code)
  assert.deepEqual(scopeOf(answer), ['mcp'])
  const again = await world.refresh(String(answer.body.refresh_token), code.client_id)
  assert.deepEqual(scopeOf(again), ['mcp'])
  const third = await world.refresh(String(again.body.refresh_token), code.client_id, { scope: 'mcp manage' })
  assert.ok(third.status === 400 || !scopeOf(third).includes('manage'))

  const client = await world.client({ scopes: ['mcp', 'manage'], requireSecret: false })
  assert.deepEqual(scopeOf(await world.token(await world.code(admin, { scope: 'mcp manage' }, client.id))), ['manage', 'mcp'])
  assert.deepEqual(scopeOf(await world.token(await world.code(bob, {}, client.id))), ['mcp'], 'not asked for')
  const narrow = await world.client({ scopes: ['mcp'], requireSecret: false })
  assert.deepEqual(scopeOf(await world.token(await world.code(admin, { scope: 'mcp manage' }, narrow.id))), ['mcp'])
})

test('what a token may do', async (t) => {
  const world = await startWorld(t, { servers: await startServers(t) })
  const { base } = world
  const client = await world.client({ scopes: ['mcp', 'manage', 'profile', 'openid'], requireSecret: false })
  const scoped = async (scope: string, who = alice, more: Record<string, string> = {}): Promise<string> =>
    (await world.tokens(who, { scope, ...more }, client.id)).access
  const profile = await scoped('profile')
  const mcp = await scoped('mcp')
  const manage = await scoped('manage')
  const make = { name: 'made', url: 'https://203.0.113.1/mcp', enabled: false }
  await until(async () => JSON.stringify((await world.by(mcp, 'GET', '/api/servers')).body).includes('connected'), 'no server')
  const run = ['POST', '/api/tools/call/own', { toolName: 'mine', arguments: {} }] as const

  await t.test('on the management API', async () => {
    for (const token of [profile, mcp, manage]) assert.equal((await world.by(token, 'GET', '/api/servers')).status, 200)
    for (const token of [profile, manage]) await assertScope(await world.by(token, ...run), 'mcp')
    assert.equal((await world.by(mcp, ...run)).status, 200)
    for (const token of [profile, mcp]) {
      await assertScope(await world.by(token, 'POST', '/api/servers', { name: 'made', config: make }), 'manage')
      await assertScope(await world.by(token, 'DELETE', '/api/servers/own'), 'manage')
      await assertScope(await world.by(token, 'POST', '/api/auth/change-password', { currentPassword: password, newPassword: 'Other-1234' }), 'manage')
      await assertScope(await world.by(token, 'DELETE', `/api/oauth/consents/${client.id}`), 'manage')
      await assertScope(await world.by(token, 'POST', '/api/keys', { name: 'k' }).then((answer) => answer.status === 404 ? world.by(token, 'POST', '/api/auth/keys', { name: 'k' }) : answer), 'manage')
    }
    const made = await world.by(manage, 'POST', '/api/servers', { name: 'made', config: { url: make.url, enabled: false } })
    assert.equal(made.status, 200, JSON.stringify(made.body))
    // With its user's rights, and no others.
    assert.equal((await world.by(manage, 'PUT', '/api/system-config', { nameSeparator: '_' })).status, 403)
    assert.equal((await world.by(manage, 'GET', '/api/users')).status, 403)
  })

  await t.test('secrets are exported for those who may change things', async () => {
    const reading = await scoped('mcp profile', admin)
    await assertScope(await world.by(reading, 'GET', '/api/mcp-settings/export?includeSecrets=true'), 'manage')
    assert.equal((await world.by(reading, 'GET', '/api/mcp-settings/export')).status, 200)
    assert.equal((await world.by(await scoped('manage', admin), 'GET', '/api/mcp-settings/export?includeSecrets=true')).status, 200)
  })

  await t.test('on the open routes, a token without the scope runs nothing of its user\'s', async () => {
    assert.equal((await world.by(mcp, 'GET', '/api/tools/own/mine')).status, 200)
    const { status } = await world.by(profile, 'GET', '/api/tools/own/mine')
    assert.ok(status === 403 || status === 404, String(status))
    assert.equal((await world.by(profile, 'GET', '/api/tools/open/echo?message=x')).status, (await world.ask('GET', '/api/tools/open/echo?message=x')).status)
  })

  await t.test('on MCP: the scope, and the resource that it is for', async () => {
    assert.equal((await world.mcp(mcp)).status, 200)
    for (const token of [profile, manage]) {
      const answer = await world.mcp(token)
      assert.equal(answer.status, 403)
      const challenge = answer.headers.get('www-authenticate') ?? ''
      assert.match(challenge, /^Bearer error="insufficient_scope"/)
      assert.match(challenge, /scope="mcp"/)
      assert.match(challenge, /resource_metadata="/)
    }
    const cases: Array<[string, string[], string[]]> = [
      ['', ['/mcp', '/mcp/open', '/alice/mcp', '/api/mcp'], ['/bob/mcp']],
      ['/mcp', ['/mcp', '/mcp/open', '/mcp/', '/api/mcp', '/api/mcp/open'], ['/alice/mcp', '/mcpx/mcp']],
      ['/mcp/open', ['/mcp/open', '/api/mcp/open'], ['/mcp', '/mcp/own', '/mcp/%6fpen2', '/api/mcp/own']],
      ['/api/mcp/open', ['/mcp/open', '/api/mcp/open'], ['/mcp', '/mcp/own']],
      ['/alice/mcp', ['/alice/mcp', '/alice/mcp/own'], ['/mcp', '/bob/mcp']],
      ['/api', [], ['/mcp', '/mcp/open']]
    ]
    for (const [resource, open, closed] of cases) {
      const token = await scoped('mcp', alice, { resource: `${base}${resource}` })
      for (const path of open) assert.equal((await world.mcp(token, path)).status, 200, `${resource} on ${path}`)
      for (const path of closed) assert.ok([401, 403].includes((await world.mcp(token, path)).status), `${resource} on ${path}`)
    }
  })

  await t.test('on the management API and for tools over plain HTTP: for the gateway as a whole', async () => {
    for (const [resource, isOpen] of [
      ['', true], ['/mcp', true], ['/api', true], ['/mcp/open', false], ['/mcp/own', false], ['/api/mcp/own', false], ['/alice/mcp', false], ['/sse', false]
    ] as const) {
      const token = await scoped('mcp', alice, { resource: `${base}${resource}` })
      const listed = await world.by(token, 'GET', '/api/servers')
      assert.equal(listed.status, isOpen ? 200 : 401, resource)
      if (!isOpen) assert.match(listed.headers.get('www-authenticate') ?? '', /error="invalid_token"/)
      const { status } = await world.by(token, 'GET', '/api/tools/own/mine')
      assert.ok(isOpen ? status === 200 : status === 403 || status === 404, `${resource}: ${status}`)
    }
  })

  await t.test('in the header only', async () => {
    const ask = async (path: string, headers: Record<string, string> = {}): Promise<number> => (await world.ask('GET', path, undefined, headers)).status
    for (const name of ['access_token', 'token']) {
      assert.equal(await ask(`/api/servers?${name}=${mcp}`), 401, name)
      assert.equal(await ask(`/oauth/userinfo?${name}=${mcp}`), 401, name)
      assert.equal(await ask(`/mcp?${name}=${mcp}`, { accept: 'text/event-stream' }), 401, name)
    }
    assert.equal(await ask('/api/servers', { 'x-auth-token': mcp }), 401)
    assert.equal(await ask('/oauth/userinfo', { 'x-auth-token': mcp }), 401)
    const cookie = { cookie: `tool-hub-session=${mcp}; token=${mcp}; access_token=${mcp}` }
    assert.equal(await ask('/api/servers', cookie), 401)
    // Two ways at once (RFC 6750, section 2).
    const both = await world.by(mcp, 'GET', `/oauth/userinfo?access_token=${mcp}`)
    assert.deepEqual([both.status, both.body.error], [400, 'invalid_request'])
    // And what is no access token is none.
    const user = world.app.users.get('alice')
    assert.ok(user)
    assert.equal((await world.mcp(world.app.auth.login(user))).status, 401)
    assert.equal((await world.by(world.app.auth.login(user), 'GET', '/api/servers')).status, 401)
    assert.equal((await world.by(world.app.auth.login(user), 'GET', '/oauth/userinfo')).status, 401)
    assert.equal((await world.by(`thk_${'a'.repeat(64)}`, 'GET', '/oauth/userinfo')).status, 401)
  })

  await t.test('beside a renamed header of keys', async () => {
    await world.configure({}, { routing: { bearerAuthHeaderName: 'X-Hub-Key' } })
    assert.equal((await world.mcp(mcp)).status, 200)
    assert.equal((await world.ask('POST', '/mcp', {}, { 'x-hub-key': mcp })).status, 401)
    await world.configure({}, { routing: { bearerAuthHeaderName: null } })
  })

  await t.test('a bad token is told so', async () => {
    for (const answer of [await world.mcp('x'.repeat(43)), await world.by('x'.repeat(43), 'GET', '/oauth/userinfo')]) {
      assert.equal(answer.status, 401)
      assert.match(answer.headers.get('www-authenticate') ?? '', /error="invalid_token"/)
    }
    const none = await world.ask('GET', '/oauth/userinfo')
    assert.deepEqual([none.status, none.headers.get('www-authenticate')], [401, 'Bearer'])
  })
})

async function assertScope ({ status, body, headers }: Answer, scope: string): Promise<void> {
  assert.deepEqual([status, body.code], [403, 'TH_INSUFFICIENT_SCOPE'], JSON.stringify(body))
  const challenge = headers.get('www-authenticate') ?? ''
  assert.match(challenge, /^Bearer error="insufficient_scope"/)
  assert.ok(challenge.includes(`scope="${scope}"`), challenge)
}

test('/oauth/userinfo, and a user of the same name', async (t) => {
  const world = await startWorld(t)
  const { access } = await world.tokens(alice)
  const shown = await world.by(access, 'GET', '/oauth/userinfo')
  assert.deepEqual({ ...shown.body, sub: '' }, { sub: '', username: 'alice', preferred_username: 'alice', isAdmin: false })
  assert.match(shown.headers.get('content-type') ?? '', /^application\/json/)
  assert.equal(shown.headers.get('cache-control'), 'no-store')
  const posted = await fetch(`${world.base}/oauth/userinfo`, { method: 'POST', headers: { authorization: `Bearer ${access}` } })
  assert.deepEqual(await posted.json(), shown.body)
  const { access: second } = await world.tokens(alice)
  assert.equal((await world.by(second, 'GET', '/oauth/userinfo')).body.sub, shown.body.sub)
  const { access: others } = await world.tokens(bob)
  assert.notEqual((await world.by(others, 'GET', '/oauth/userinfo')).body.sub, shown.body.sub)

  assert.equal((await world.as(admin, 'DELETE', '/api/users/alice')).status, 200)
  assert.equal((await world.as(admin, 'POST', '/api/users', { username: 'alice', password })).status, 201)
  assert.equal((await world.by(access, 'GET', '/oauth/userinfo')).status, 401)
  const { access: later } = await world.tokens(alice)
  const { body } = await world.by(later, 'GET', '/oauth/userinfo')
  assert.equal(body.username, 'alice')
  assert.notEqual(body.sub, shown.body.sub)
})

test('what ends a token ends its stream, its refresh token and the logins behind it', async (t) => {
  const world = await startWorld(t)
  const { client_id: clientId = '' } = await register(world.base)

  /** Opens a stream with a token. @returns a promise of its end */
  const stream = async (token: string): Promise<{ ended: () => boolean }> => {
    const init = await world.mcp(token)
    const abort = new AbortController()
    t.after(() => { abort.abort() })
    const reply = await fetch(`${world.base}/mcp`, {
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'text/event-stream',
        'mcp-session-id': init.headers.get('mcp-session-id') ?? '',
        'mcp-protocol-version': '2025-11-25'
      },
      signal: abort.signal
    })
    assert.equal(reply.status, 200)
    let over = false
    reply.text().catch(() => {}).finally(() => { over = true })
    return { ended: () => over }
  }

  const cases: Array<[string, (made: { access: string, refresh: string }) => Promise<Answer>, { login: boolean }]> = [
    ['revocation of the access token', async ({ access }) => await world.revoke({ token: access, client_id: clientId }), { login: true }],
    ['revocation of the refresh token', async ({ refresh }) => await world.revoke({ token: refresh, client_id: clientId }), { login: true }],
    ['the consent is withdrawn', async () => await world.as(alice, 'DELETE', `/api/oauth/consents/${clientId}`), { login: true }],
    ['the password is changed by its user', async () =>
      await world.as(alice, 'POST', '/api/auth/change-password', { currentPassword: password, newPassword: password }), { login: false }],
    ['the password is changed by an admin', async () =>
      await world.as(admin, 'PUT', '/api/users/alice', { newPassword: password }), { login: false }],
    ['the user is removed', async () => {
      const removed = await world.as(admin, 'DELETE', '/api/users/alice')
      await world.as(admin, 'POST', '/api/users', { username: 'alice', password })
      return removed
    }, { login: false }],
    ['the client is removed', async () => await world.as(admin, 'DELETE', `/api/oauth/clients/${clientId}`), { login: true }]
  ]
  for (const [name, end, { login }] of cases) {
    const browser = world.browser()
    const code = await world.code(alice, {}, clientId, browser)
    const pending = await world.code(alice, {}, clientId, browser)
    const { body } = await world.token(code)
    const made = { access: String(body.access_token), refresh: String(body.refresh_token) }
    const other = await world.tokens(bob)
    const live = await stream(made.access)
    const { status, body: told } = await end(made)
    assert.ok(status < 300, `${name}: ${JSON.stringify(told)}`)
    assert.equal(await world.isValid(made.access), false, name)
    assert.equal((await world.by(made.access, 'GET', '/api/servers')).status, 401, name)
    const again = await world.refresh(made.refresh, clientId)
    assert.ok(['invalid_grant', 'invalid_client'].includes(String(again.body.error)), `${name}: ${JSON.stringify(again.body)}`)
    await until(() => live.ended(), `${name}: the stream lives on`)
    assert.ok(await world.isValid(other.access), `${name}: somebody else's token ended`)
    if (!name.startsWith('revocation')) {
      assert.equal((await world.token(pending)).body.access_token, undefined, `${name}: the code that was under way`)
    }
    if (name.includes('client')) continue
    const visit = await browser.get((await browser.get(world.authorizeUrl(request(clientId).params))).location ?? '')
    assert.equal(visit.text.includes('name="password"'), !login, `${name}: the login of the browser`)
  }
})

test('a new secret ends the tokens of its client, and the old one', async (t) => {
  const world = await startWorld(t)
  const { id, secret } = await world.client()
  const { client_id: _, ...code } = await world.code(alice, {}, id)
  const { body } = await world.token(code, basic(id, secret))
  assert.ok(await world.isValid(String(body.access_token)))
  const { status, body: told } = await world.as(admin, 'POST', `/api/oauth/clients/${id}/regenerate-secret`)
  assert.equal(status, 200)
  const fresh = String((told.data as Json).clientSecret)
  assert.notEqual(fresh, secret)
  assert.equal(await world.isValid(String(body.access_token)), false)
  const refresh = { grant_type: 'refresh_token', refresh_token: String(body.refresh_token) }
  assert.equal((await world.token(refresh, basic(id, secret))).body.error, 'invalid_client')
  assert.equal((await world.token(refresh, basic(id, fresh))).body.error, 'invalid_grant')
  const { client_id: __, ...next } = await world.code(alice, {}, id)
  assert.equal((await world.token(next, basic(id, fresh))).status, 200)
})

test('who becomes an admin, or is one no more, logs in anew', async (t) => {
  const world = await startWorld(t)
  const browser = world.browser()
  const { client_id: clientId = '' } = await register(world.base)
  const tokens = async (): Promise<{ access: string, refresh: string }> => {
    const { body } = await world.token(await world.code(bob, {}, clientId, browser))
    return { access: String(body.access_token), refresh: String(body.refresh_token) }
  }
  const user = await tokens()
  const late = await world.code(bob, {}, clientId, browser)
  assert.equal((await world.as(admin, 'PUT', '/api/users/bob', { isAdmin: true })).status, 200)
  // What a client was allowed before does not grow.
  assert.equal((await world.by(user.access, 'GET', '/api/users')).status, 401)
  assert.equal((await world.token(late)).body.error, 'invalid_grant')
  const asAdmin = await tokens()
  assert.equal((await world.by(asAdmin.access, 'GET', '/api/users')).status, 200)
  assert.equal((await world.as(admin, 'PUT', '/api/users/bob', { isAdmin: false })).status, 200)
  assert.equal(await world.isValid(asAdmin.access), false)
  assert.equal((await world.refresh(asAdmin.refresh, clientId)).body.error, 'invalid_grant')
  // The browser's session ended as well, so that the next tokens are those of who bob is now.
  assert.match((await browser.get((await browser.get(world.authorizeUrl(request(clientId).params))).location ?? '')).text, /name="password"/)
  assert.equal((await world.by((await tokens()).access, 'GET', '/api/users')).status, 403)
})

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
      assert.deepEqual([visit.status, visit.location], [400, undefined], csrf)
      assert.match(visit.headers.get('content-type') ?? '', /html/)
    }
    const twice = await fetch(`${base}${at}/login`, {
      method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: `csrf=${good.csrf}&csrf=${good.csrf}`
    })
    assert.equal(twice.status, 400)
  })

  await t.test('pages of elsewhere', async () => {
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1']) {
      const visit = await browser.post(`${at}/login`, good, { origin })
      assert.deepEqual([visit.status, visit.location], [403, undefined], origin)
    }
  })

  await t.test('another browser with the address of the page', async () => {
    for (const other of [world.browser(), await withSession(world)]) {
      const seen = await other.get(at)
      assert.deepEqual([seen.status, seen.location], [400, undefined])
      const posted = await other.post(`${at}/login`, good)
      assert.deepEqual([posted.status, posted.location], [400, undefined])
      const decided = await other.post(`${at}/consent`, { csrf: good.csrf, decision: 'allow' })
      assert.deepEqual([decided.status, decided.location], [400, undefined])
      const resumed = await other.get(at.replace('/interaction/', '/authorize/'))
      assert.deepEqual([resumed.status, resumed.location], [400, undefined])
    }
  })

  await t.test('a consent before a login', async () => {
    const visit = await browser.post(`${at}/consent`, { csrf: good.csrf, decision: 'allow' })
    assert.equal(visit.location, undefined)
    assert.match(visit.text, /name="password"/)
  })

  await t.test('a wrong password', async () => {
    const visit = await browser.post(`${at}/login`, { ...good, password: 'wrong' })
    assert.deepEqual([visit.status, visit.location], [401, undefined])
    assert.doesNotMatch(visit.text, /wrong"|value="wrong/)
    const unknown = await browser.post(`${at}/login`, { ...good, username: 'nobody', password: 'wrong' })
    assert.deepEqual([unknown.status, unknown.location], [401, undefined])
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
  const half = limits.loginFailures / 2
  for (let count = 0; count < half; count++) {
    assert.equal((await browser.post(`${at}/login`, { csrf, username: 'alice', password: 'wrong' })).status, 401)
    assert.equal((await world.ask('POST', '/api/auth/login', { username: 'alice', password: 'wrong' })).status, 401)
  }
  const page = await browser.post(`${at}/login`, { csrf, username: 'alice', password })
  assert.deepEqual([page.status, page.location], [429, undefined])
  assert.match(page.headers.get('content-type') ?? '', /html/)
  assert.ok(Number(page.headers.get('retry-after')) > 0)
  assert.equal((await world.ask('POST', '/api/auth/login', { username: 'alice', password })).status, 429)
  assert.equal((await browser.post(`${at}/login`, { csrf, username: 'bob', password })).status, 303)
})

test('READONLY leaves logins open, and closes what changes settings', async (t) => {
  const world = await startWorld(t)
  const { client_id: clientId = '' } = await register(world.base)
  await t.test('read-only', async (t) => {
    const readonly = await startWorld(t, {
      env: { READONLY: 'true' }, clients: [{ clientId, name: 'A client', redirectUris: [callback], grants: ['authorization_code'], scopes: ['mcp'] }]
    })
    assert.equal((await readonly.ask('POST', '/oauth/register', { redirect_uris: [callback] })).status, 403)
    assert.equal((await readonly.as(admin, 'POST', '/api/oauth/clients', { name: 'x', redirectUris: [callback] })).status, 403)
    assert.equal((await readonly.as(admin, 'DELETE', '/api/oauth/consents/x')).status, 403)
    const { access } = await readonly.tokens(alice, {}, clientId)
    assert.ok(await readonly.isValid(access))
    assert.equal((await readonly.by(access, 'GET', '/oauth/userinfo')).status, 200)
    assert.equal((await readonly.by(access, 'POST', '/oauth/userinfo')).status, 200)
    // DECISIONS §13 closes the list: what was allowed is not taken back while nothing can be changed.
    const revoked = await readonly.revoke({ token: access, client_id: clientId })
    assert.deepEqual([revoked.status, revoked.body.error], [403, 'access_denied'])
    assert.ok(await readonly.isValid(access))
  })
})

test('/api/oauth/clients is for admins, and shows a secret once', async (t) => {
  const world = await startWorld(t)
  const path = '/api/oauth/clients'
  const members = { name: 'Dashboard', redirectUris: [callback] }
  const { status, body } = await world.as(admin, 'POST', path, members)
  assert.equal(status, 201)
  const { clientId, clientSecret, createdAt, ...rest } = body.data as Json
  assert.deepEqual(rest, {
    name: 'Dashboard',
    redirectUris: [callback],
    grants: ['authorization_code', 'refresh_token'],
    scopes: ['mcp', 'manage', 'profile', 'openid'],
    requireSecret: true,
    origin: 'admin'
  })
  assert.ok(typeof clientSecret === 'string' && clientSecret.length >= 43)
  assert.ok(Math.abs(Date.parse(String(createdAt)) - Date.now()) < 60_000)
  for (const reply of [await world.as(admin, 'GET', path), await world.as(admin, 'GET', `${path}/${String(clientId)}`)]) {
    assert.equal(reply.status, 200)
    assert.ok(!JSON.stringify(reply.body).includes(clientSecret))
    assert.ok(!JSON.stringify(reply.body).includes('"clientSecret"'))
  }
  await world.as(admin, 'POST', path, { ...members, name: 'Second' })
  const second = (await world.as(admin, 'GET', `${path}?page=2&limit=1`)).body
  assert.deepEqual((second.data as Json[]).map(({ name }) => name), ['Second'])
  assert.deepEqual(second.pagination, { page: 2, limit: 1, total: 2, totalPages: 2 })
  const { access } = await world.tokens(admin)
  for (const [method, at, sent] of [
    ['GET', '', undefined], ['POST', '', members], ['GET', `/${String(clientId)}`, undefined], ['PUT', `/${String(clientId)}`, { name: 'x' }],
    ['DELETE', `/${String(clientId)}`, undefined], ['POST', `/${String(clientId)}/regenerate-secret`, undefined]
  ] as Array<[string, string, unknown]>) {
    assert.equal((await world.as(alice, method, `${path}${at}`, sent)).status, 403, `${method} ${at}`)
    assert.equal((await world.ask(method, `${path}${at}`, sent)).status, 401, `${method} ${at}`)
    if (method !== 'GET') assert.equal((await world.by(access, method, `${path}${at}`, sent)).body.code, 'TH_INSUFFICIENT_SCOPE', `${method} ${at}`)
  }
  for (const wrong of [
    {}, { name: 'x' }, { ...members, redirectUris: [] }, { ...members, redirectUris: ['javascript:alert(1)'] }, { ...members, scopes: ['nonsense'] },
    { ...members, grants: ['implicit'] }, { ...members, grants: ['refresh_token'] }, { ...members, name: '' }, { ...members, requireSecret: 'no' }
  ]) assert.equal((await world.as(admin, 'POST', path, wrong)).status, 400, JSON.stringify(wrong))
  assert.equal((await world.as(admin, 'GET', `${path}/somebody`)).status, 404)
  assert.equal((await world.as(admin, 'PUT', `${path}/somebody`, { name: '' })).status, 404)
  assert.equal((await world.as(admin, 'DELETE', `${path}/somebody`)).status, 404)
  assert.equal((await world.as(admin, 'POST', `${path}/somebody/regenerate-secret`)).status, 404)

  const changed = await world.as(admin, 'PUT', `${path}/${String(clientId)}`, { name: 'Renamed', scopes: ['mcp'] })
  assert.deepEqual([changed.status, (changed.body.data as Json).name, (changed.body.data as Json).scopes], [200, 'Renamed', ['mcp']])
  assert.deepEqual((changed.body.data as Json).redirectUris, [callback])
  // Either way of sending the secret.
  for (const inBody of [true, false]) {
    const { client_id: id, ...code } = await world.code(alice, {}, String(clientId))
    const answer: Answer = inBody
      ? await world.token({ ...code, client_id: id, client_secret: clientSecret })
      : await world.token(code, basic(id, clientSecret))
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
  }
  // A change that changes nothing, or cannot be, is refused in the words of this route.
  for (const [sent, said] of [
    [{}, /changes nothing.*redirectUris/], [{ clientId: 'other' }, /changes nothing/], [{ redirect_uris: [callback] }, /"redirect_uris" is not known/],
    [{ name: '  ' }, /"name" must not be blank/], [{ name: 'prototype' }, /"name" must not be "prototype"/],
    [{ grants: ['refresh_token'] }, /"grants" must hold/],
    [{ redirectUris: Array(60).fill(callback) }, /"redirectUris" may list/], [{ scopes: ['nonsense'] }, /"scopes".*nonsense/]
  ] as Array<[Json, RegExp]>) {
    const answer = await world.as(admin, 'PUT', `${path}/${String(clientId)}`, sent)
    assert.equal(answer.status, 400, JSON.stringify(sent))
    assert.match(String(answer.body.message), said)
  }
  // A record may be sent back as it was shown.
  const record = (await world.as(admin, 'GET', `${path}/${String(clientId)}`)).body.data as Json
  assert.equal((await world.as(admin, 'PUT', `${path}/${String(clientId)}`, record)).status, 200)
  // What is not stated stays, also where the settings would not allow it any more.
  await world.configure({ allowedScopes: ['profile'], requireClientSecret: true })
  const kept = await world.as(admin, 'PUT', `${path}/${String(clientId)}`, { name: 'Again' })
  assert.deepEqual([kept.status, (kept.body.data as Json).scopes], [200, ['mcp']])
  const open = await world.as(admin, 'PUT', `${path}/${String(clientId)}`, { requireSecret: false })
  assert.match(String(open.body.message), /"requireSecret" cannot be false/)
  await world.configure({ allowedScopes: null, requireClientSecret: false })
  const empty = await world.as(admin, 'POST', path, { ...members, scopes: [] })
  assert.deepEqual([empty.status, (empty.body.data as Json | undefined)?.scopes], [201, []])
  assert.equal((await world.as(admin, 'DELETE', `${path}/${String(clientId)}`)).status, 200)
  assert.equal((await world.as(admin, 'GET', `${path}/${String(clientId)}`)).status, 404)

  // The audit log has all of it, and no secret.
  const other = await world.client({ name: 'Other' })
  assert.equal((await world.as(admin, 'POST', `${path}/${other.id}/regenerate-secret`)).status, 200)
  const { body: audit } = await world.as(admin, 'GET', '/api/audit?entity=oauthClient&limit=100')
  const entries = audit.data as Array<{ username: string, action: string, name: string, before?: Json, after?: Json }>
  assert.deepEqual(entries.slice(0, 3).map(({ action, name }) => [action, name]), [['update', 'Other'], ['create', 'Other'], ['delete', 'Again']])
  assert.equal(entries[0]?.after?.secretChanged, true)
  assert.deepEqual(new Set(entries.map(({ username }) => username)), new Set(['admin']))
  const renamed = entries.find(({ action, before, after }) => action === 'update' && before?.name === 'Dashboard' && after?.name === 'Renamed')
  assert.deepEqual([renamed?.before?.scope, renamed?.after?.scope], ['mcp manage profile openid', 'mcp'])
  for (const secret of [clientSecret, other.secret, 'ecretHash']) assert.ok(!JSON.stringify(entries).includes(secret))
})

test('what an admin changes of a client that registered itself leaves the rest of it', async (t) => {
  const world = await startWorld(t)
  const made = await register(world.base, { client_uri: 'https://client.example/', token_endpoint_auth_method: 'client_secret_post' })
  const id = made.client_id ?? ''
  assert.equal((await world.as(admin, 'PUT', `/api/oauth/clients/${id}`, { name: 'Renamed' })).status, 200)
  const shown = await world.ask('GET', `/oauth/register/${id}`, undefined, { authorization: `Bearer ${made.registration_access_token ?? ''}` })
  assert.deepEqual(
    [shown.status, shown.body.client_name, shown.body.client_uri, shown.body.token_endpoint_auth_method],
    [200, 'Renamed', 'https://client.example/', 'client_secret_post']
  )
  // It is still one that registered itself, whatever an admin adds.
  const { body } = await world.as(admin, 'PUT', `/api/oauth/clients/${id}`, { scopes: ['mcp', 'manage'] })
  const { client_id: _, ...code } = await world.code(admin, { scope: 'mcp manage' }, id)
  const answer = await world.token({ ...code, client_id: id, client_secret: made.client_secret ?? '' })
  assert.ok(!scopeOf(answer).includes('manage'), JSON.stringify(body))
  assert.match(String(body.message), /registered itself cannot have "manage"/)
  // An entry of a settings file says little: a client without a secret stays public.
  const file = await startWorld(t, { clients: [{ clientId: 'old', name: 'Old', redirectUris: [callback], grants: ['authorization_code'], scopes: ['mcp'] }] })
  const changed = await file.as(admin, 'PUT', '/api/oauth/clients/old', { name: 'New' })
  const { clientSecret, requireSecret, grants } = changed.body.data as Json
  assert.deepEqual([changed.status, clientSecret, requireSecret, grants], [200, undefined, false, ['authorization_code']])
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
