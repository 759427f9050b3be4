// The scenarios by which the conformance suite judges clients, turned round: what each of its servers does for a client, ours has to do.
// Which of them do not fit is at the end. Clients in browsers are one scenario more. Run by `npm run test:system`.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { allow, form, register, request, type Browser, type Person } from '../helpers/oauth.ts'
import { admin, alice, basic, callback, startWorld, type Answer, type Code, type Json, type World } from '../helpers/oauth-world.ts'

const timeout = 120_000

/** The browsers of people who have logged in: a login costs as much as all else together. */
const browsers = new Map<string, Browser>()
function browserOf (world: World, { username }: Person): Browser {
  const known = browsers.get(`${world.origin} ${username}`) ?? world.browser()
  browsers.set(`${world.origin} ${username}`, known)
  return known
}

const codeOf = async (world: World, person: Person, more: Record<string, string> = {}, clientId?: string): Promise<Code> =>
  await world.code(person, more, clientId, browserOf(world, person))

/** The parameters of a Bearer challenge. */
function challengeOf ({ headers }: Answer): Record<string, string> {
  const header = headers.get('www-authenticate') ?? ''
  assert.match(header, /^Bearer /)
  return Object.fromEntries([...header.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]))
}

const listOf = (value: unknown): string[] => Array.isArray(value) ? value.map(String) : []

/** The metadata of a resource, as a client finds it from the address of an MCP route alone, and those of its authorization server. */
async function discover (world: World, path: string): Promise<{ resource: Json, server: Json }> {
  const refused = path === '/sse' ? await world.ask('GET', path) : await world.ask('POST', path, {})
  assert.equal(refused.status, 401)
  const address = challengeOf(refused).resource_metadata ?? ''
  const { status: found, body: resource } = await world.ask('GET', address)
  assert.equal(found, 200, `${path}: ${address}`)
  const [issuer = ''] = listOf(resource.authorization_servers)
  const { origin, pathname } = new URL(issuer)
  const { status, body: server } = await world.ask('GET', `${origin}/.well-known/oauth-authorization-server${pathname.replace(/\/$/, '')}`)
  assert.equal(status, 200)
  return { resource, server }
}

for (const [where, env] of [['at the root', {}], ['below a base path', { BASE_PATH: '/gate/way' }]] as const) {
  test(`discovery, ${where}`, { timeout }, async (t) => {
    const world = await startWorld(t, { env })
    const { base, origin } = world
    const prefix = base.slice(origin.length)

    await t.test('auth/metadata-default, -var1, -var2, -var3; auth/2025-03-26-oauth-metadata-backcompat', async () => {
      for (const path of ['/mcp', '/mcp/files', '/alice/mcp', '/sse']) {
        const { resource, server } = await discover(world, path)
        assert.equal(server.issuer, base)
        for (const name of ['authorization_endpoint', 'token_endpoint', 'registration_endpoint']) {
          assert.ok(String(server[name]).startsWith(`${base}/oauth/`), `${name}: ${String(server[name])}`)
        }
        // With the path of the resource behind the well-known one, and for the whole gateway.
        assert.deepEqual((await world.ask('GET', `${origin}/.well-known/oauth-protected-resource${prefix}${path}`)).body, {
          ...resource,
          resource: `${base}${path}`
        })
        assert.equal((await world.ask('GET', `${origin}/.well-known/oauth-protected-resource${prefix}`)).body.resource, base)
      }
      // An authorization server for OpenID Connect would issue ID tokens.
      for (const path of [`/.well-known/openid-configuration${prefix}`, `${prefix}/.well-known/openid-configuration`]) {
        assert.equal((await world.ask('GET', `${origin}${path}`)).status, 404, path)
      }
    })

    await t.test('auth/resource-mismatch: the resource is the address that the client knows, byte for byte', async () => {
      for (const path of ['/mcp', '/mcp/files', '/mcp/two%20words', '/mcp/m%C3%BCnchen', '/alice/mcp/files']) {
        const { resource } = await discover(world, path)
        assert.equal(resource.resource, `${base}${path}`)
        assert.deepEqual(resource.bearer_methods_supported, ['header'])
      }
      for (const path of ['/health', '/mcp/../health', '/mcpx', '/.well-known']) {
        assert.equal((await world.ask('GET', `${origin}/.well-known/oauth-protected-resource${prefix}${path}`)).status, 404, path)
      }
    })

    await t.test('auth/iss-supported, auth/metadata-issuer-mismatch: one issuer, byte for byte', async () => {
      const { server } = await discover(world, '/mcp')
      assert.equal(server.authorization_response_iss_parameter_supported, true)
      const { client_id: clientId = '' } = await register(base)
      for (const [decision, member] of [['allow', 'code'], ['deny', 'error']] as const) {
        const returned = await allow(browserOf(world, alice), world.authorizeUrl(request(clientId).params), alice, decision)
        assert.ok(returned.searchParams.has(member))
        assert.deepEqual(returned.searchParams.getAll('iss'), [server.issuer])
      }
    })
  })
}

test('scopes', { timeout }, async (t) => {
  const world = await startWorld(t)
  const { base } = world

  await t.test('auth/scope-from-www-authenticate', async () => {
    const { scope = '' } = challengeOf(await world.ask('POST', '/mcp', {}))
    const { body } = await world.token(await codeOf(world, alice, { scope, resource: `${base}/mcp` }))
    assert.ok(await world.isValid(String(body.access_token)))
  })

  await t.test('auth/scope-from-scopes-supported', async () => {
    const { resource } = await discover(world, '/mcp')
    const scope = listOf(resource.scopes_supported).join(' ')
    const code = await codeOf(world, alice, { scope, resource: `${base}/mcp` })
    const { body } = await world.token(code)
    assert.equal(body.scope, scope, 'all that the document says is granted')
    assert.ok(await world.isValid(String(body.access_token)))
  })

  await t.test('auth/scope-omitted-when-undefined', async () => {
    const { body } = await world.token(await codeOf(world, alice))
    assert.equal(body.scope, 'mcp profile')
    assert.ok(await world.isValid(String(body.access_token)))
  })

  await t.test('auth/scope-step-up: the challenge names the scope that lacks, and the union of both is granted', async () => {
    const client = await world.client({ redirectUris: [callback] })
    const secret = { client_secret: client.secret }
    const first = await world.token({ ...await codeOf(world, admin, { scope: 'profile' }, client.id), ...secret })
    const refused = await world.mcp(String(first.body.access_token))
    assert.equal(refused.status, 403)
    assert.deepEqual(challengeOf(refused), {
      error: 'insufficient_scope',
      scope: 'mcp',
      resource_metadata: `${base}/.well-known/oauth-protected-resource/mcp`
    })
    const second = await world.token({ ...await codeOf(world, admin, { scope: 'profile mcp' }, client.id), ...secret })
    assert.equal(second.body.scope, 'mcp profile')
    assert.ok(await world.isValid(String(second.body.access_token)))

    const change = async (token: string): Promise<Answer> =>
      await world.by(token, 'POST', '/api/groups', { name: `group ${Math.random()}`, servers: [] })
    const denied = await change(String(second.body.access_token))
    assert.equal(denied.status, 403)
    assert.deepEqual(challengeOf(denied), { error: 'insufficient_scope', scope: 'manage' })
    const third = await world.token({ ...await codeOf(world, admin, { scope: 'profile mcp manage' }, client.id), ...secret })
    assert.equal(third.body.scope, 'mcp manage profile')
    assert.equal((await change(String(third.body.access_token))).status, 201)
  })

  await t.test('auth/scope-retry-limit: what is never granted is told each time, and no request goes round in circles', async () => {
    const { client_id: clientId = '', scope = '' } = await register(base, { scope: 'mcp manage' })
    assert.equal(scope, 'mcp')
    for (let attempt = 0; attempt < 3; attempt++) {
      const { body } = await world.token(await codeOf(world, admin, { scope: 'mcp manage' }, clientId))
      assert.equal(body.scope, 'mcp')
      const denied = await world.by(String(body.access_token), 'POST', '/api/groups', { name: 'never', servers: [] })
      assert.equal(denied.status, 403)
      assert.equal(challengeOf(denied).scope, 'manage')
    }
  })

  await t.test('auth/offline-access-scope, -not-supported: the scope is not offered; refresh tokens follow the grant types', async () => {
    const { resource, server } = await discover(world, '/mcp')
    for (const { scopes_supported: scopes } of [resource, server]) assert.ok(!listOf(scopes).includes('offline_access'))
    for (const [grants, isRefreshed] of [
      [['authorization_code', 'refresh_token'], true],
      [['authorization_code'], false],
      [undefined, true]
    ] as const) {
      const { client_id: clientId = '' } = await register(base, { grant_types: grants })
      const { body } = await world.token(await codeOf(world, alice, { scope: 'mcp offline_access' }, clientId))
      assert.equal(body.scope, 'mcp')
      assert.equal(body.refresh_token !== undefined, isRefreshed, String(grants))
    }
  })
})

test('clients', { timeout }, async (t) => {
  const world = await startWorld(t)
  const { base } = world

  await t.test('auth/token-endpoint-auth-basic, -post, -none: with the secret, where there is one, in either place', async () => {
    const { server } = await discover(world, '/mcp')
    assert.deepEqual(server.token_endpoint_auth_methods_supported, ['none', 'client_secret_basic', 'client_secret_post'])
    for (const method of [undefined, 'client_secret_basic', 'client_secret_post', 'none']) {
      const client = await register(base, { token_endpoint_auth_method: method })
      const { client_id: id = '', client_secret: secret = '' } = client
      const registered = method ?? 'client_secret_basic'
      assert.equal(client.token_endpoint_auth_method, registered)
      const ways: Record<string, [Record<string, string>, Record<string, string>]> = {
        client_secret_basic: [{}, basic(id, secret || 'guess')],
        client_secret_post: [{ client_id: id, client_secret: secret || 'guess' }, {}],
        none: [{ client_id: id }, {}]
      }
      for (const [way, [fields, headers]] of Object.entries(ways)) {
        const { client_id: _, ...code } = await codeOf(world, alice, {}, id)
        const { status, body } = await world.token({ ...code, ...fields }, headers)
        const said = `${registered} by ${way}: ${status} ${JSON.stringify(body)}`
        if ((way === 'none') === (registered === 'none')) assert.equal(status, 200, said)
        else assert.deepEqual([status, body.error], [401, 'invalid_client'], said)
      }
    }
  })

  await t.test('auth/authorization-server-migration: clients of another authorization server are unknown', async (t) => {
    const other = await startWorld(t)
    const { client_id: clientId = '' } = await register(other.base)
    assert.equal((await world.authorize(request(clientId).params)).status, 400)
    const { status, body } = await world.token({ ...await codeOf(other, alice, {}, clientId) })
    assert.deepEqual([status, body.error], [401, 'invalid_client'])
    const { access } = await other.tokens(alice, {}, clientId)
    assert.equal(await world.isValid(access), false)
  })

  await t.test('auth/basic-cimd: the metadata say that addresses are taken as client ids', async () => {
    assert.equal((await discover(world, '/mcp')).server.client_id_metadata_document_supported, true)
  })

  await t.test('auth/pre-registration: without registration, a client that an admin made works by its secret', async (t) => {
    const closed = await startWorld(t, { oauthServer: { dynamicRegistration: { enabled: false } } })
    const { server } = await discover(closed, '/mcp')
    assert.equal(server.registration_endpoint, undefined)
    assert.equal(server.client_id_metadata_document_supported, false)
    assert.equal((await closed.ask('POST', '/oauth/register', { redirect_uris: [callback] })).status, 403)
    const { id, secret } = await closed.client({ redirectUris: [callback] })
    const { client_id: _, ...code } = await codeOf(closed, alice, { resource: `${closed.base}/mcp` }, id)
    const { status, body } = await closed.token(code, basic(id, secret))
    assert.equal(status, 200, JSON.stringify(body))
    assert.ok(await closed.isValid(String(body.access_token)))
  })

  // auth/client-credentials-jwt and -basic, auth/enterprise-managed-authorization, auth/wif-jwt-bearer and auth/dpop are extensions that
  // the gateway does not have; auth/2025-03-26-oauth-endpoint-fallback means endpoints at the root of the host, and ours are below /oauth.
  // auth/iss-wrong-issuer and its kin are servers that lie, which ours does not.
  await t.test('what is not built is not offered, and refused', async () => {
    const { server } = await discover(world, '/mcp')
    assert.deepEqual(server.grant_types_supported, ['authorization_code', 'refresh_token'])
    assert.equal(server.dpop_signing_alg_values_supported, undefined)
    const { id, secret } = await world.client({ redirectUris: [callback] })
    for (const grant of [
      'client_credentials',
      'urn:ietf:params:oauth:grant-type:jwt-bearer',
      'urn:ietf:params:oauth:grant-type:token-exchange',
      'urn:ietf:params:oauth:grant-type:device_code',
      'password'
    ]) {
      const { status, body } = await world.token({ grant_type: grant, assertion: 'e30.e30.x', client_id: id, client_secret: secret })
      assert.deepEqual([status, body.error], [400, 'unsupported_grant_type'], grant)
    }
    for (const path of ['/authorize', '/token', '/register']) assert.equal((await world.ask('GET', path)).status, 404, path)
  })
})

test('clients in browsers', { timeout }, async (t) => {
  const friend = 'https://inspector.example'
  const stranger = 'https://elsewhere.example'
  const world = await startWorld(t, { env: { ALLOWED_ORIGINS: friend } })
  const { base } = world
  const preflight = async (path: string, origin: string, method: string, headers: string): Promise<Answer> =>
    await world.ask('OPTIONS', path, undefined, {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': headers
    })
  const allows = ({ headers }: Answer | { headers: Headers }, origin: string): boolean =>
    ['*', origin].includes(headers.get('access-control-allow-origin') ?? '')

  const rows: Array<[path: string, method: string, headers: string, forAll: boolean]> = [
    ['/.well-known/oauth-authorization-server', 'GET', 'mcp-protocol-version', true],
    ['/.well-known/oauth-protected-resource', 'GET', 'mcp-protocol-version', true],
    ['/.well-known/oauth-protected-resource/mcp/files', 'GET', 'mcp-protocol-version', true],
    ['/oauth/token', 'POST', 'authorization,content-type', true],
    ['/oauth/revoke', 'POST', 'authorization,content-type', true],
    ['/oauth/userinfo', 'GET', 'authorization', true],
    // As on the MCP routes: pages of elsewhere have nothing to do here.
    ['/oauth/register', 'POST', 'content-type', false],
    ['/mcp', 'POST', 'authorization,content-type,mcp-protocol-version', false]
  ]
  for (const [path, method, headers, forAll] of rows) {
    await t.test(`the preflight of ${method} ${path}`, async () => {
      for (const [origin, isAllowed] of [[friend, true], [stranger, forAll]] as const) {
        const answer = await preflight(path, origin, method, headers)
        assert.equal(answer.status < 300 && allows(answer, origin), isAllowed, `${origin}: ${answer.status}`)
        if (!isAllowed) continue
        assert.ok(answer.headers.get('access-control-allow-methods')?.includes(method))
        for (const header of headers.split(',')) {
          assert.ok(answer.headers.get('access-control-allow-headers')?.toLowerCase().includes(header), `${origin} ${header}`)
        }
        assert.equal(answer.headers.get('access-control-allow-credentials'), null)
      }
    })
  }

  await t.test('answers, and errors, can be read', async () => {
    for (const origin of [friend, stranger]) {
      for (const path of ['/.well-known/oauth-authorization-server', '/.well-known/oauth-protected-resource/mcp', '/oauth/userinfo']) {
        assert.ok(allows(await world.ask('GET', path, undefined, { origin }), origin), path)
      }
      const code = await codeOf(world, alice)
      for (const fields of [code, { ...code, code_verifier: 'x'.repeat(43) }, { grant_type: 'none' }]) {
        const answer = await form(`${base}/oauth/token`, fields, { origin })
        assert.ok(allows(answer, origin), `${origin}: ${answer.status}`)
      }
    }
  })

  await t.test('a page of elsewhere registers no client, one of a trusted origin and a program do', async () => {
    const body = { redirect_uris: [callback], token_endpoint_auth_method: 'none' }
    const count = async (): Promise<number> => (await world.app.oauth.clients.list(1, 1)).total
    const before = await count()
    for (const origin of [stranger, 'null', `${base}.evil.example`]) {
      const { status, body: { error } } = await world.ask('POST', '/oauth/register', body, { origin })
      assert.deepEqual([status, error], [403, 'access_denied'], origin)
    }
    assert.equal(await count(), before)
    for (const headers of [{ origin: friend }, { origin: world.origin }, {}] as Array<Record<string, string>>) {
      const answer = await world.ask('POST', '/oauth/register', body, headers)
      assert.equal(answer.status, 201)
      if (headers.origin === friend) assert.ok(allows(answer, friend))
    }
    assert.equal(await count(), before + 3)
  })

  await t.test('off, there is nothing for pages either', async () => {
    await world.configure({ enabled: false })
    for (const [path, method, headers, forAll] of rows) {
      if (forAll) assert.equal((await preflight(path, stranger, method, headers)).status, 404, path)
    }
  })
})
