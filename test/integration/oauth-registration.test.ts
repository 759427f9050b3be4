// The registration of clients (RFC 7591) and its management (RFC 7592): what they refuse, and what a client gets.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { register, request } from '../helpers/oauth.ts'
import { admin, alice, answerOf, assertRefusal, bob, callback, startWorld, until, type Answer, type Json } from '../helpers/oauth-world.ts'

test('registration (RFC 7591)', async (t) => {
  const world = await startWorld(t)
  const good = { client_name: 'A client', redirect_uris: [callback], token_endpoint_auth_method: 'none' }
  const post = async (body: unknown): Promise<Answer> => await world.ask('POST', '/oauth/register', body)
  const raw = async (body: string, type = 'application/json'): Promise<Answer> =>
    await answerOf(await fetch(`${world.base}/oauth/register`, { method: 'POST', headers: { 'content-type': type }, body }))

  await t.test('refuses redirect URIs that lead nowhere good', async () => {
    const long = Array.from({ length: 21 }, (_, at) => `https://a.example/${at}`)
    for (const uris of [
      ...[
        'javascript:alert(1)', 'JavaScript:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd', 'blob:https://a.example/x',
        'about:blank', 'ftp://a.example/', 'ws://a.example/', 'http://a.example/callback', 'http://127.0.0.1.evil.example/',
        'http://localhost.evil.example/', 'http://10.0.0.1/callback', 'http://127.0.0.7/callback', 'https://a.example/#fragment',
        'https://a.example/#', 'https://user:pw@a.example/', 'https://a.example/a b', 'https://a.example/*', '//a.example/', '/callback',
        'callback', '', ' https://a.example/', 'https://', 'app:/callback', `https://a.example/${'x'.repeat(3_000)}`
      ].map((uri) => [callback, uri]),
      undefined, [], 'https://a.example/', [1], [null], {}, long
    ]) assertRefusal(await post({ ...good, redirect_uris: uris }), [400, 'invalid_redirect_uri'], JSON.stringify(uris))
    const { body } = await post({ ...good, redirect_uris: ['https://a.example/*'] })
    assert.match(String(body.error_description), /contains \*: .* wildcards/)
  })

  await t.test('refuses metadata that it cannot keep to', async () => {
    for (const members of [
      { grant_types: ['implicit'] }, { grant_types: ['refresh_token'] }, { grant_types: 'authorization_code' },
      { response_types: ['token'] }, { response_types: ['code', 'token'] }, { response_types: [] },
      { token_endpoint_auth_method: 'private_key_jwt' }, { token_endpoint_auth_method: 1 }, { client_name: {} },
      { client_name: 'prototype' }, { client_uri: 'javascript:alert(1)' }, { logo_uri: 'data:image/png,x' }, { tos_uri: 'x' },
      { policy_uri: 'x'.repeat(5_000) }, { contacts: 'me' }, { scope: ['mcp'] },
      { redirect_uris: Array.from({ length: 20 }, (_, at) => `https://a.example/${at}${'x'.repeat(500)}`) }
    ]) assertRefusal(await post({ ...good, ...members }), [400, 'invalid_client_metadata'], JSON.stringify(members))
  })

  await t.test('refuses scopes with which it could never be used, and says which there are', async () => {
    for (const scope of ['mcp:tools', 'email offline_access', 'MCP', 'mcp,profile']) {
      const answer = await post({ ...good, scope })
      assertRefusal(answer, [400, 'invalid_client_metadata'], scope)
      assert.match(String(answer.body.error_description), /mcp profile openid/)
    }
    assert.deepEqual((await world.as(admin, 'GET', '/api/oauth/clients')).body.data, [], 'what was refused is stored')
  })

  await t.test('refuses what is no object of JSON, or too large', async () => {
    for (const [answer, status] of [
      ...await Promise.all([[], 'text', 1, null].map(async (body) => [await post(body), 400] as const)),
      [await raw('{'), 400], [await raw('{}', 'text/plain'), 415], [await post({ ...good, surplus: 'x'.repeat(70_000) }), 413]
    ] as const) assert.deepEqual([answer.status, typeof answer.body.error], [status, 'string'])
    assert.deepEqual((await world.as(admin, 'GET', '/api/oauth/clients')).body.data, [], 'what was refused is stored')
  })

  await t.test('ignores what it does not know, and what it takes can be used', async () => {
    const kept = await post({
      ...good,
      token_endpoint_auth_method: 'client_secret_post',
      redirect_uris: [callback, 'https://a.example/cb?x=1', 'com.example.app:/callback', 'http://[::1]/cb', 'http://localhost/'],
      client_id: 'mine',
      client_secret: 'mine',
      id_token_signed_response_alg: 'none',
      sector_identifier_uri: 'http://169.254.169.254/',
      jwks_uri: 'http://169.254.169.254/',
      __proto__: { admin: true },
      whatever: [{}]
    })
    assert.equal(kept.status, 201, JSON.stringify(kept.body))
    assert.notEqual(kept.body.client_id, 'mine')
    assert.notEqual(kept.body.client_secret, 'mine')
    assert.equal(kept.body.client_secret_expires_at, 0)
    assert.equal(typeof kept.body.client_id_issued_at, 'number')
    assert.equal(kept.body.whatever, undefined)
    assert.match(String(kept.body.registration_client_uri), /^http:\/\/127\.0\.0\.1:\d+\/oauth\/register\//)
    // What can be registered can be used.
    for (const uri of kept.body.redirect_uris as string[]) {
      const visit = await world.authorize({ ...request(String(kept.body.client_id)).params, redirect_uri: uri })
      assert.match(visit.location ?? '', /\/oauth\/interaction\//, `${uri}: ${visit.text.slice(-300)}`)
    }
  })
})

test('a client that registered itself can be used, whatever it wrote for what it has not', async (t) => {
  const world = await startWorld(t, { oauthServer: { allowedScopes: ['mcp', 'manage', 'profile', 'openid'] } })
  const good = { redirect_uris: [callback], token_endpoint_auth_method: 'none' }
  const absent = { client_name: null, client_uri: null, logo_uri: '', tos_uri: null, policy_uri: '', contacts: null, software_id: '' }
  for (const [what, more, scope] of [
    ['no scope', {}, 'mcp profile openid'],
    ['an empty scope', { scope: '' }, 'mcp profile openid'],
    ['spaces', { scope: '  ' }, 'mcp profile openid'],
    ['null', { scope: null, grant_types: null, response_types: null, ...absent }, 'mcp profile openid'],
    ['those of OpenID Connect', { scope: 'openid email profile' }, 'mcp profile openid'],
    ['one that is known', { scope: 'mcp:tools mcp' }, 'mcp'],
    ['what only admins\' clients can have', { scope: 'manage' }, 'mcp']
  ] as Array<[string, Json, string]>) {
    await t.test(what, async () => {
      const { status, body } = await world.ask('POST', '/oauth/register', { ...good, ...more })
      assert.deepEqual([status, body.scope], [201, scope], JSON.stringify(body))
      // As a client does that was told of the scope by a challenge; and as one that names none, in either way.
      for (const asked of [{ scope: 'mcp' }, {}, { scope: '' }] as Array<Record<string, string>>) {
        const { access } = await world.tokens(alice, asked, String(body.client_id))
        assert.ok(await world.isValid(access), JSON.stringify(asked))
      }
    })
  }
  await t.test('with an empty scope, a refresh takes nothing away', async () => {
    const { refresh, clientId } = await world.tokens(alice, { scope: 'mcp profile' })
    const { status, body } = await world.refresh(refresh, clientId, { scope: '' })
    assert.deepEqual([status, body.scope], [200, 'mcp profile'], JSON.stringify(body))
  })
  await t.test('where the settings leave nothing to it, it is refused', async () => {
    await world.configure({ allowedScopes: ['manage'] })
    const answer = await world.ask('POST', '/oauth/register', good)
    assertRefusal(answer, [400, 'invalid_client_metadata'], 'nothing to grant')
    await world.configure({ allowedScopes: null })
  })
})

test('a client is used when tokens are issued to it, and not when somebody names it', async (t) => {
  const world = await startWorld(t)
  const { client_id: clientId = '', registration_access_token: token = '' } = await register(world.base)
  const lastUsed = async (): Promise<unknown> => (await world.as(admin, 'GET', `/api/oauth/clients/${clientId}`)).body.data as Json
  const isUsed = async (): Promise<boolean> => (await lastUsed() as Json).lastUsedAt !== undefined
  const { params } = request(clientId)
  for (let count = 0; count < 3; count++) assert.equal((await world.authorize(params)).status, 303)
  await world.token({ grant_type: 'authorization_code', code: 'none', client_id: clientId, redirect_uri: callback, code_verifier: 'x'.repeat(43) })
  await world.refresh('none', clientId)
  await world.ask('GET', `/oauth/register/${clientId}`, undefined, { authorization: `Bearer ${token}` })
  const code = await world.code(alice, {}, clientId)
  assert.equal(await isUsed(), false)
  assert.equal((await world.token(code)).status, 200)
  await until(isUsed, 'not noted')
})

test('the management of a registration (RFC 7592)', async (t) => {
  const world = await startWorld(t)
  const { base } = world
  const made = await register(base, { token_endpoint_auth_method: 'client_secret_basic' })
  const other = await register(base)
  const id = made.client_id ?? ''
  const path = `/oauth/register/${id}`
  const bearer = (token = ''): Record<string, string> => ({ authorization: `Bearer ${token}` })
  const own = bearer(made.registration_access_token)
  const whole = { client_id: id, redirect_uris: [callback], client_name: 'Renamed', token_endpoint_auth_method: 'client_secret_basic' }
  const { id: byAdmin } = await world.client()
  const { access } = await world.tokens(alice)
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const body = method === 'PUT' ? whole : undefined
    for (const [name, at, headers] of [
      ['no token', path, {}],
      ['a wrong token', path, bearer('x'.repeat(43))],
      ['an empty token', path, { authorization: 'Bearer ' }],
      ['another client\'s token', path, bearer(other.registration_access_token)],
      ['an access token', path, bearer(access)],
      ['a bearer key', path, bearer(`thk_${'a'.repeat(64)}`)],
      ['an unknown client', '/oauth/register/somebody', own],
      ['a client of an admin\'s', `/oauth/register/${byAdmin}`, own],
      ['the token in the query', `${path}?access_token=${made.registration_access_token ?? ''}`, {}]
    ] as Array<[string, string, Record<string, string>]>) {
      const answer = await world.ask(method, at, body, headers)
      assert.deepEqual([answer.status, answer.body.error], [401, 'invalid_token'], `${method} with ${name}`)
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer/, name)
    }
  }
  const unreadable = await fetch(`${base}${path}`, { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{' })
  assert.equal(unreadable.status, 401, 'the body is read before the token')
  for (const [name, body] of [
    ['another id', { ...whole, client_id: other.client_id }],
    ['no id', { ...whole, client_id: undefined }],
    ['another secret', { ...whole, client_secret: 'mine' }],
    ['a registration token', { ...whole, registration_access_token: made.registration_access_token }],
    ['an issue time', { ...whole, client_id_issued_at: 1 }],
    ['no redirect URIs', { ...whole, redirect_uris: undefined }],
    ['a bad redirect URI', { ...whole, redirect_uris: ['javascript:alert(1)'] }],
    ['no object', []]
  ] as Array<[string, unknown]>) {
    const answer = await world.ask('PUT', path, body, own)
    assert.equal(answer.status, 400, name)
    assert.ok(['invalid_request', 'invalid_redirect_uri', 'invalid_client_metadata'].includes(String(answer.body.error)), name)
  }
  const shown = await world.ask('GET', path, undefined, own)
  assert.deepEqual([shown.status, shown.body.client_name, shown.body.client_id], [200, 'A client', id])
  assert.equal(shown.headers.get('cache-control'), 'no-store')
  const changed = await world.ask('PUT', path, { ...whole, client_secret: made.client_secret }, own)
  assert.deepEqual([changed.status, changed.body.client_name, changed.body.client_id], [200, 'Renamed', id])

  const { access: token } = await world.tokens(bob, {}, String(other.client_id))
  assert.ok(await world.isValid(token))
  const ofOther = async (method: string): Promise<Answer> =>
    await world.ask(method, `/oauth/register/${other.client_id ?? ''}`, undefined, bearer(other.registration_access_token))
  assert.equal((await ofOther('DELETE')).status, 204)
  assert.equal(await world.isValid(token), false)
  assert.equal((await ofOther('GET')).status, 401)
})

test('a client that adds refresh tokens to its grant types after the consent gets none by that consent', async (t) => {
  const world = await startWorld(t)
  const stated = { redirect_uris: [callback], token_endpoint_auth_method: 'none', client_name: 'A client', grant_types: ['authorization_code'] }
  const { body } = await world.ask('POST', '/oauth/register', stated)
  const [clientId, authorization] = [String(body.client_id), `Bearer ${String(body.registration_access_token)}`]
  const code = await world.code(alice, {}, clientId)
  const change = { ...stated, client_id: clientId, grant_types: ['authorization_code', 'refresh_token'] }
  assert.equal((await world.ask('PUT', `/oauth/register/${clientId}`, change, { authorization })).status, 200)
  const redeemed = await world.token(code)
  assert.deepEqual([redeemed.status, redeemed.body.refresh_token], [200, undefined])
  // Its next consent is for what it is registered for now.
  const { refresh } = await world.tokens(alice, {}, clientId)
  assert.equal((await world.refresh(refresh, clientId)).status, 200)
})
