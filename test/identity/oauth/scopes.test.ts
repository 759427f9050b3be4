// What the scopes of an access token keep it from, on every way to the management API, and when a scope is taken away.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { oauthSettingsProblems } from '../../../plugins/identity/oauth/settings.ts'
import { register, request } from '../../helpers/oauth.ts'
import { admin, callback, startWorld } from '../../helpers/oauth-world.ts'

const account = (username: string): object => ({ username, password: 'Passw0rd!9', isAdmin: true })

test('a token of an admin changes nothing without the scope for it, on the open routes of the management API either', async (t) => {
  const world = await startWorld(t)
  for (const scope of ['profile', 'mcp profile']) {
    const { access } = await world.tokens(admin, { scope })
    for (const [method, path, body] of [
      ['POST', '/api/auth/register', account('mallory')],
      ['POST', '/api/users', account('mallory')],
      ['POST', '/api/auth/change-password', { currentPassword: 'Same-1234', newPassword: 'Passw0rd!9' }],
      ['POST', '/api/auth/keys', { name: 'mine' }],
      ['POST', '/api/policies/test', { principal: {}, server: 'x', tool: 'y' }],
      ['GET', '/metrics', undefined]
    ] as const) {
      const { status, headers } = await world.by(access, method, path, body)
      assert.equal(status, 403, `${scope}: ${method} ${path}`)
      assert.match(headers.get('www-authenticate') ?? '', /error="insufficient_scope".*scope="manage"/)
    }
    assert.equal(world.app.users.get('mallory'), undefined)
  }
})

test('manage ends at once where it is taken away: from the client, and from the settings', async (t) => {
  const world = await startWorld(t)
  const { id } = await world.client({ requireSecret: false, scopes: ['mcp', 'manage'] })
  const ask = async (access: string): Promise<number> =>
    (await world.by(access, 'POST', '/api/groups', { name: `g${Math.random()}`, servers: [] })).status
  const ofClient = await world.tokens(admin, { scope: 'mcp manage' }, id)
  assert.equal(await ask(ofClient.access), 201)
  assert.equal((await world.by(ofClient.access, 'GET', '/metrics')).status, 200)
  assert.equal((await world.as(admin, 'PUT', `/api/oauth/clients/${id}`, { scopes: ['mcp'] })).status, 200)
  assert.equal(await ask(ofClient.access), 401, 'its tokens have ended')
  assert.equal((await world.refresh(ofClient.refresh, id)).status, 400)

  const other = await world.client({ requireSecret: false, scopes: ['mcp', 'manage'] })
  const { access } = await world.tokens(admin, { scope: 'mcp manage' }, other.id)
  assert.equal(await ask(access), 201)
  await world.configure({ allowedScopes: ['mcp', 'profile'] })
  assert.equal(await ask(access), 403)
  assert.equal(await world.isValid(access), true, 'what is left counts on')
})

test('where clients register with an admin\'s credential, documents of strangers are no way around it', async (t) => {
  const world = await startWorld(t)
  await world.configure({ dynamicRegistration: { requiresAuthentication: true } })
  await assert.rejects(register(world.base))
  const visit = await world.authorize(request('https://client.example/metadata.json', { redirect_uri: callback }).params)
  assert.equal(visit.status, 400, visit.location)
  const { body } = await world.ask('GET', '/.well-known/oauth-authorization-server')
  assert.notEqual(body.client_id_metadata_document_supported, true)
})

test('settings that another program wrote wrong are told of, since their defaults count', async () => {
  const at = { env: { HOST: '127.0.0.1' }, listenAddress: '127.0.0.1' }
  const told = oauthSettingsProblems({
    install: { baseUrl: 'http://hub.example.com' },
    oauthServer: {
      enabled: true,
      requireClientSecret: 'true',
      accessTokenLifetime: 0,
      authorizationCodeLifetime: 3_600,
      dynamicRegistration: { enabled: 'no' }
    }
  }, at)
  assert.deepEqual(
    told.map((sentence) => sentence.split(' is ')[0]?.replace('oauthServer.', '')),
    ['accessTokenLifetime', 'authorizationCodeLifetime', 'requireClientSecret', 'dynamicRegistration.enabled', 'install.baseUrl']
  )
  assert.deepEqual(oauthSettingsProblems({ oauthServer: { enabled: true, odd: 1 } }, at), [])
  assert.deepEqual(oauthSettingsProblems({}, at), [])
})

test('addresses that clients cannot use, or others can read, are warned of', async () => {
  const on = { oauthServer: { enabled: true } }
  const warning = (baseUrl: string | undefined, HOST: string, more: object = {}, listenAddress = HOST): string =>
    oauthSettingsProblems({ ...on, install: { baseUrl } }, { env: { HOST, ...more }, listenAddress }).join()
  for (const [sentence, expected] of [
    [warning(undefined, '0.0.0.0'), /get addresses at localhost/],
    [warning(undefined, '0.0.0.0', { TRUST_PROXY: 'false' }), /get addresses at localhost/],
    [warning(undefined, '::', { TRUST_PROXY: '' }), /get addresses at localhost/],
    [warning(undefined, '192.0.2.1'), /http addresses at 192\.0\.2\.1/],
    [warning('http://192.0.2.1', '0.0.0.0'), /^install\.baseUrl is an http address/],
    [warning('https://a.example', '0.0.0.0', { BASE_URL: 'http://a.example' }), /^BASE_URL is an http address/]
  ] as const) assert.match(sentence, expected)
  for (const sentence of [
    warning(undefined, '127.0.0.1'), warning(undefined, 'own-name', {}, '127.0.1.1'), warning(undefined, '0.0.0.0', { TRUST_PROXY: 'loopback' }), warning('https://a.example/hub', '0.0.0.0'),
    warning('http://localhost:3000', '127.0.0.1'), warning(undefined, '0.0.0.0', { BASE_URL: 'https://a.example' })
  ]) assert.equal(sentence, '')
})

test('a client finds the resource under the name by which it calls this computer', async (t) => {
  const world = await startWorld(t)
  const own = new URL(world.base)
  const described = async (host: string): Promise<unknown> => {
    const { payload } = await world.app.inject({ url: '/.well-known/oauth-protected-resource/mcp', headers: { host } })
    return (JSON.parse(payload) as { resource?: string }).resource
  }
  for (const name of ['localhost', '127.0.0.1', '[::1]']) assert.equal(await described(`${name}:${own.port}`), `http://${name}:${own.port}/mcp`)
  // Nothing else that a caller can say counts.
  assert.equal(await described('localhost:1'), `${world.base}/mcp`)
  // A token that was asked for under one name is good under the other.
  const named = `http://localhost:${own.port}`
  const { access } = await world.tokens(admin)
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const refused = await world.app.inject({ method: 'POST', url: '/mcp', headers: { host: `localhost:${own.port}` }, payload: body })
  assert.ok(String(refused.headers['www-authenticate']).includes(`resource_metadata="${named}/`))
  assert.equal((await world.app.inject({ url: '/oauth/userinfo', headers: { host: `localhost:${own.port}`, authorization: `Bearer ${access}` } })).statusCode, 200)
})

test('a token is sent in one way, and a bad one is told so, on every route', async (t) => {
  const world = await startWorld(t)
  const { access } = await world.tokens(admin, { scope: 'mcp profile' })
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  for (const [method, path, sent] of [
    ['GET', '/api/servers', undefined], ['POST', '/api/tools/call/x', {}], ['POST', '/mcp', body], ['GET', '/mcp', undefined], ['GET', '/oauth/userinfo', undefined]
  ] as const) {
    const twice = await world.by(access, method, `${path}?access_token=${access}`, sent)
    assert.equal(twice.status, 400, path)
    if (path !== '/oauth/userinfo') assert.match(twice.headers.get('www-authenticate') ?? '', /error="invalid_request"/, path)
    const wrong = await world.by('x'.repeat(43), method, path, sent)
    assert.equal(wrong.status, 401, path)
    assert.match(wrong.headers.get('www-authenticate') ?? '', /error="invalid_token"/, path)
    const none = await world.ask(method, path, sent)
    assert.doesNotMatch(none.headers.get('www-authenticate') ?? '', /error=/, path)
  }
  // Words fit what was sent.
  const said = async (headers: Record<string, string>): Promise<string> => String((await world.ask('POST', '/mcp', body, headers)).body.error_description)
  assert.match(await said({ authorization: `Bearer ${'x'.repeat(43)}` }), /access token or bearer key is not valid/)
  assert.match(await said({ authorization: `Bearer thk_${'0'.repeat(64)}` }), /^The bearer key is not valid/)
  assert.match(await said({}), /access token or a bearer key is required/)
  assert.match(String((await world.by('x'.repeat(43), 'GET', '/oauth/userinfo')).body.error_description), /access token is not valid/)
  assert.match(String((await world.ask('GET', '/oauth/userinfo')).body.error_description), /access token is required/)
})

test('paths that nobody serves, and a server that is off, answer in the words of OAuth; browsers get pages', async (t) => {
  const world = await startWorld(t)
  for (const path of ['/oauth/none', '/oauth/token/x', '/oauth/authorize/x/y', '/oauth/']) {
    const { status, body } = await world.ask('GET', path)
    assert.deepEqual([status, body.error], [404, 'not_found'], path)
  }
  await world.configure({ enabled: false })
  const off = await world.ask('POST', '/oauth/token')
  assert.deepEqual([off.status, off.body.error], [404, 'not_found'])
  for (const path of ['/oauth/authorize', '/oauth/authorize/x', '/oauth/interaction/x']) {
    const { status, body, headers } = await world.ask('GET', path)
    assert.equal(status, 404, path)
    assert.match(headers.get('content-type') ?? '', /^text\/html/, path)
    assert.match(String(body.text), /of this gateway is off/, path)
  }
})
