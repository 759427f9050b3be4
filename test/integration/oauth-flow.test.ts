// The authorization server as its users have it: how a client finds it, where the browser ends, and what follows from the settings.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { plain, Session, within } from '../helpers/client.ts'
import { movingClock } from '../helpers/clock.ts'
import { allow, Browser, register, request } from '../helpers/oauth.ts'
import {
  admin, alice, basic, callback, challengeOf, scopeOf, startWorld, type Answer, type Json, type World
} from '../helpers/oauth-world.ts'

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
  // By POST.
  const visit = await world.browser().post('/oauth/authorize', params)
  assert.match(visit.location ?? '', /\/oauth\/interaction\//)
})

test('off, nothing is there; switched on and off while it runs', async (t) => {
  const world = await startWorld(t, { oauthServer: { enabled: false } })
  const check = async (): Promise<void> => {
    // access-matrix.test.ts asks every route.
    for (const [method, path] of [['GET', '/oauth/authorize'], ['POST', '/oauth/token'], ['GET', '/api/oauth/clients']] as const) {
      assert.equal((await world.as(admin, method, path, method === 'POST' ? {} : undefined)).status, 404, path)
    }
    const { headers } = await world.ask('POST', '/mcp', {})
    assert.equal(headers.get('www-authenticate'), 'Bearer')
  }
  await check()
  await world.configure({ enabled: true })
  const { access, refresh, clientId } = await world.tokens(alice)
  assert.ok(await world.isValid(access))
  const stream = await (await Session.open(`${world.base}/mcp`, { key: access })).listen()
  await world.configure({ enabled: false })
  await check()
  await within('the end of the stream', stream.done)
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

  await t.test('lifetimes', async (t) => {
    const { client_id: clientId = '' } = await register(base)
    const browser = world.browser()
    const code = await world.code(alice, {}, clientId, browser)
    await world.configure({ accessTokenLifetime: 200, refreshTokenLifetime: 100, authorizationCodeLifetime: 100 })
    const late = await world.code(alice, {}, clientId, browser)
    const { body, headers } = await world.token(code)
    assert.deepEqual([body.token_type, body.expires_in, body.id_token, headers.get('cache-control')], ['Bearer', 200, undefined, 'no-store'])
    const access = String(body.access_token)
    assert.ok(await world.isValid(access))
    movingClock(t)(201_000)
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
    assert.deepEqual(scopeOf(await world.token(await world.code(alice))), ['mcp', 'profile'], 'where none are asked for')
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
    const closed = await metadata()
    assert.deepEqual([closed.registration_endpoint, closed.client_id_metadata_document_supported], [undefined, false])
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
    const cases: Array<[string, Record<string, string>, number]> = [
      ['nothing', {}, 401],
      ['rubbish', { authorization: 'Bearer rubbish' }, 401],
      ['a user', { 'x-auth-token': world.login(alice) }, 403],
      ['an admin\'s client without the scope', { authorization: `Bearer ${reading}` }, 403],
      ['an admin\'s client with the scope', { authorization: `Bearer ${managing}` }, 201],
      ['an admin', { 'x-auth-token': world.login(admin) }, 201],
      ['a key', { authorization: `Bearer thk_${'a'.repeat(64)}` }, 201]
    ]
    for (const [name, headers, status] of cases) assert.equal((await post({}, headers)).status, status, name)
    const query = await world.ask('POST', `/oauth/register?token=${world.login(admin)}`, { redirect_uris: [callback] })
    assert.equal(query.status, 401, 'a token in the query')
    await world.configure({ dynamicRegistration: { requiresAuthentication: false } }, { routing: { skipAuth: true } })
    await world.configure({ dynamicRegistration: { requiresAuthentication: true } })
    assert.equal((await post()).status, 401, 'a guest')
  })
})

test('metadata follows the configuration, and no header', async (t) => {
  const serverAt = '/.well-known/oauth-authorization-server'
  const resourceAt = '/.well-known/oauth-protected-resource'
  const forged = {
    'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.9', forwarded: 'host=evil.example;proto=https'
  }
  const wanted = {
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
    scopes_supported: ['mcp', 'manage', 'profile', 'openid'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true
  }
  const whole = async (world: World, issuer: string, url: string): Promise<void> => {
    const { status, body, headers } = await world.ask('GET', url, undefined, forged)
    assert.equal(status, 200, url)
    assert.ok(!JSON.stringify(body).includes('evil'), JSON.stringify(body))
    assert.equal(body.issuer, issuer)
    for (const name of ['authorization', 'token', 'registration', 'revocation', 'userinfo']) {
      assert.ok(String(body[`${name}_endpoint`]).startsWith(`${issuer}/oauth/`), name)
    }
    assert.deepEqual({ ...body, ...wanted }, body)
    assert.equal(body.dpop_signing_alg_values_supported, undefined)
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
    // An authorization server for OpenID Connect would issue ID tokens; the endpoints of revision 2025-03-26 were at the root.
    for (const path of [`${serverAt}/other`, '/.well-known/openid-configuration', '/authorize', '/token', '/register']) {
      assert.equal((await world.ask('GET', path)).status, 404, path)
    }
    for (const path of [
      '', '/mcp', '/mcp/some', '/mcp/two%20words', '/mcp/m%C3%BCnchen', '/mcp/$smart', '/mcp/$smart/some', '/alice/mcp', '/alice/mcp/some', '/sse',
      '/api', '/api/mcp'
    ]) await resource(world, `${base}${resourceAt}${path}`, `${base}${path}`, base)
    // A client compares the name with the address that it was given.
    for (const path of [
      '/mcp/', '/mcp/some/', '/mcp/$smart/', '/mcp/%24smart/', '/alice/mcp/', '/sse/', '/api/mcp/', '/api/mcp/some/', '/api/mcp/group/some/'
    ]) {
      await resource(world, `${base}${resourceAt}${path}`, `${base}${path}`, base)
      const asked = await world.ask(path === '/sse/' ? 'GET' : 'POST', path, path === '/sse/' ? undefined : {})
      assert.equal(challengeOf(asked).resource_metadata, `${base}${resourceAt}${path}`)
      const { access } = await world.tokens(alice, { resource: `${base}${path}` })
      for (const same of [path, path.slice(0, -1)]) {
        const { status } = await world.by(access, path === '/sse/' ? 'POST' : 'GET', same)
        assert.notEqual(status, 401, `${path} at ${same}`)
      }
    }
    await resource(world, `${base}${resourceAt}/`, base, base)
    for (const path of ['/health', '/mcp/../health', '/oauth', '/mcpx', '/a/b/mcp', '/.well-known']) {
      await resource(world, `${base}${resourceAt}${path}`, undefined, base)
    }
    const { params } = request((await register(base)).client_id ?? '')
    const { headers } = await fetch(world.authorizeUrl(params), { redirect: 'manual', headers: forged })
    assert.doesNotMatch(headers.get('location') ?? '', /^$|evil/)
  })

  await t.test('with a base path', async (t) => {
    const world = await startWorld(t, { env: { BASE_PATH: '/hub' } })
    const { base, origin } = world
    await whole(world, base, `${origin}${serverAt}/hub`)
    await whole(world, base, `${base}${serverAt}`)
    await resource(world, `${origin}${resourceAt}/hub/mcp/some`, `${base}/mcp/some`, base)
    await resource(world, `${origin}${resourceAt}/hub`, base, base)
    await resource(world, `${base}${resourceAt}/mcp`, `${base}/mcp`, base)
    await resource(world, `${origin}${resourceAt}/hub/mcp/`, `${base}/mcp/`, base)
    await resource(world, `${base}${resourceAt}/mcp/some/`, `${base}/mcp/some/`, base)
    for (const path of [serverAt, `${resourceAt}/mcp`, '/.well-known/openid-configuration/hub', '/hub/.well-known/openid-configuration']) {
      assert.equal((await world.ask('GET', `${origin}${path}`)).status, 404, path)
    }
    const { access } = await world.tokens(alice, { resource: `${base}/mcp` })
    assert.equal((await world.mcp(access)).status, 200)
    assert.equal(challengeOf(await world.ask('POST', '/mcp', {})).resource_metadata, `${base}${resourceAt}/mcp`)
  })

  /** The whole flow at https://hub.example.com/tools, of which a proxy takes `/tools` off. @param basePath what is left of the path */
  const throughProxy = async (world: World, basePath: string): Promise<void> => {
    const issuer = `https://hub.example.com/tools${basePath}`
    await whole(world, issuer, `${world.base}${serverAt}`)
    await whole(world, issuer, `${world.origin}${serverAt}/tools${basePath}`)
    await resource(world, `${world.base}${resourceAt}/mcp`, `${issuer}/mcp`, issuer)
    await resource(world, `${world.origin}${resourceAt}/tools${basePath}/mcp`, `${issuer}/mcp`, issuer)
    // With the browser's and the client's requests as the proxy passes them on.
    const { client_id: id = '', registration_client_uri: uri } = await register(world.base)
    assert.ok(uri?.startsWith(`${issuer}/oauth/register/`))
    const { verifier, params } = request(id, { resource: `${issuer}/mcp` })
    const browser = new Browser('https://hub.example.com', ({ pathname, search }) => {
      assert.ok(pathname.startsWith('/tools/'), `the proxy does not pass on ${pathname}`)
      return new URL(`${world.origin}${pathname.slice('/tools'.length)}${search}`)
    })
    const end = await allow(browser, `${issuer}/oauth/authorize?${new URLSearchParams(params).toString()}`, alice)
    for (const line of browser.visits.flatMap(({ headers }) => headers.getSetCookie())) {
      assert.match(line, /secure/i)
      assert.match(line, /httponly/i)
      assert.match(line, /samesite=lax/i)
      assert.match(line, /^[^=]+=;|path=\/(;|$|tools)/i, `a cookie that the browser does not send back: ${line}`)
    }
    assert.equal(end.searchParams.get('iss'), issuer)
    const { status, body } = await world.token({
      grant_type: 'authorization_code', code: end.searchParams.get('code') ?? '', client_id: id, redirect_uri: callback, code_verifier: verifier
    })
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal((await world.mcp(String(body.access_token))).status, 200)
    assert.equal((await world.mcp(String(body.access_token), '/alice/mcp')).status, 401)
  }

  await t.test('with install.baseUrl, of which a proxy takes the path off', async (t) => {
    const system = { install: { baseUrl: 'https://hub.example.com/tools/' } }
    await throughProxy(await startWorld(t, { system, env: { ALLOWED_ORIGINS: '' } }), '')
  })

  await t.test('with a BASE_URL that ends with the base path, and of which a proxy takes the rest off', async (t) => {
    const env = { BASE_PATH: '/hub', BASE_URL: 'https://hub.example.com/tools/hub', ALLOWED_ORIGINS: '' }
    await throughProxy(await startWorld(t, { env }), '/hub')
  })

  await t.test('of a peer that is no trusted proxy, neither the forwarded host nor its own', async (t) => {
    const forwarded: Array<Record<string, string>> = [
      {}, { 'x-forwarded-host': 'hub.example' }, { 'x-forwarded-host': 'a.example, b.example', 'x-forwarded-proto': 'https' }
    ]
    for (const TRUST_PROXY of ['', 'false', '0', '192.0.2.0/24', 'uniquelocal']) {
      const world = await startWorld(t, { env: { TRUST_PROXY, HOST: '0.0.0.0' } })
      const { port } = new URL(world.base)
      for (const more of forwarded) {
        const headers = { host: 'evil.example', ...more }
        const { status, body } = await plain(`${world.base}${serverAt}`, { headers })
        assert.deepEqual([status, (JSON.parse(body) as Json).issuer], [200, `http://localhost:${port}`], `${TRUST_PROXY} ${JSON.stringify(more)}`)
        const refused = await plain(`${world.base}/mcp`, { method: 'POST', headers })
        assert.ok(!JSON.stringify(refused).includes('example'), JSON.stringify(refused.headers))
      }
    }
  })

  await t.test('behind a trusted proxy, the forwarded host', async (t) => {
    const world = await startWorld(t, { env: { TRUST_PROXY: 'true', ALLOWED_HOSTS: 'hub.example.com' } })
    const headers = { 'x-forwarded-host': 'hub.example.com', 'x-forwarded-proto': 'https' }
    assert.equal((await world.ask('GET', serverAt, undefined, headers)).body.issuer, 'https://hub.example.com')
  })
})
