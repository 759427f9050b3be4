import assert from 'node:assert/strict'
import { generateKeyPairSync, verify } from 'node:crypto'
import { test } from 'tap'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { Outbound, OutboundAccess } from '../../plugins/base/outbound/outbound.ts'
import { chooseScopes, parseChallenge } from '../../plugins/upstream/login/challenge.ts'
import { discoverAuthorization } from '../../plugins/upstream/login/discovery.ts'
import { LoginCache } from '../../plugins/upstream/login/login-cache.ts'
import { LoginFlows, type ServerLoginDeps } from '../../plugins/upstream/login/flows.ts'
import { registerGateway } from '../../plugins/upstream/login/registration.ts'
import { Logins } from '../../plugins/upstream/login/logins.ts'
import { ServerLogin } from '../../plugins/upstream/login/server-login.ts'
import { withBrowserTag } from '../../plugins/upstream/login/starts.ts'
import { createLogin } from '../../plugins/upstream/login/stored.ts'
import { authenticateAsClient, authMethodOf } from '../../plugins/upstream/login/token-requests.ts'
import { outboundFetch } from '../../plugins/upstream/login/sdk.ts'
import { StorageError } from '../../db/errors.ts'
import { UpstreamError } from '../../protocol/errors.ts'
import type { ServerConfig } from '../../schemas/server.ts'

const none = { configured: undefined, challenged: undefined, ofResource: undefined, ofServer: undefined, former: undefined }

void test('the challenge of a server', async () => {
  const rows: Array<[string | undefined, string | undefined, readonly string[] | undefined]> = [
    [undefined, undefined, undefined],
    ['Basic realm="x"', undefined, undefined],
    ['Bearer', undefined, undefined],
    ['Bearer scope="a b a"', undefined, ['a', 'b']],
    // An empty scope is none: those of the resource are asked for then.
    ['Bearer scope=""', undefined, undefined],
    ['Bearer scope="  ", error="invalid_token"', undefined, undefined],
    ['bearer resource_metadata="https://m.example/x", scope=a', 'https://m.example/x', ['a']],
    ['Basic realm="x", Bearer realm="r \\" scope=z", resource_metadata="nowhere", scope="b"', undefined, ['b']]
  ]
  for (const [header, address, scopes] of rows) {
    const { resourceMetadata, scopes: found } = parseChallenge(header)
    assert.deepEqual([resourceMetadata?.href, found], [address, scopes], header)
  }
})

/** An answer of an authorization server. */
const answerOf = (document: object | string, status = 200, type = 'application/json'): object => ({
  status, headers: { 'content-type': type }, body: Buffer.from(typeof document === 'string' ? document : JSON.stringify(document))
})

interface Sent { url: string, trusted: boolean, proxy: unknown }

/** A fetch for one answer, and what it asked for. */
function fetchOf (
  answer: { status?: number, type?: string, body: string },
  reach: OutboundAccess = { trusted: true },
  fault?: Error
): { fetch: FetchLike, sent: Sent[] } {
  const sent: Sent[] = []
  const outbound = {
    fetch: async (url: string | URL, { trusted, proxy }: OutboundAccess) => {
      sent.push({ url: String(url), trusted, proxy })
      if (fault) throw fault
      return answerOf(answer.body, answer.status, answer.type)
    }
  }
  const origins = (): Set<string> => new Set(['https://mcp.example', 'https://as.example'])
  return { fetch: outboundFetch(outbound as unknown as Outbound, { reach, origins }), sent }
}

void test('documents of authorization servers: what stands for nothing is absent, and forms are read by their media type', async () => {
  const form = 'application/x-www-form-urlencoded'
  const table: ReadonlyArray<readonly [answer: Parameters<typeof fetchOf>[0], status: number, document: unknown]> = [
    [{ body: '{"a":null,"b":"","c":[],"d":false,"e":0,"f":" "}' }, 200, { c: [], d: false, e: 0, f: ' ' }],
    // A token without a type is a bearer token.
    [{ body: '\ufeff{"scope":null,"access_token":"t"}' }, 200, { access_token: 't', token_type: 'Bearer' }],
    [
      { type: `${form}; charset=utf-8`, body: 'access_token=a%20b&scope=&expires_in=3600' }, 200,
      { access_token: 'a b', token_type: 'Bearer', expires_in: '3600' }
    ],
    [{ type: form.toUpperCase(), body: 'error=bad_code&error_description=no' }, 400, { error: 'bad_code', error_description: 'no' }],
    [{ type: 'text/plain', body: 'access_token=t' }, 200, 'access_token=t'],
    [{ body: '{"error":"bad_verification_code","error_uri":null}' }, 400, { error: 'bad_verification_code' }],
    [{ body: '{"error":"x","access_token":"t","token_type":"DPoP"}' }, 200, { error: 'x', access_token: 't', token_type: 'DPoP' }],
    [{ status: 401, body: '{"error":"invalid_client","error_description":null}' }, 401, { error: 'invalid_client' }],
    [{ status: 502, type: 'text/html', body: '<html>' }, 502, '<html>'],
    [{ body: '[null]' }, 200, '[null]'],
    [{ status: 204, body: '' }, 204, '']
  ]
  for (const [answer, status, document] of table) {
    const reply = await fetchOf(answer).fetch('https://as.example/token', { method: 'POST', body: new URLSearchParams() })
    const text = await reply.text()
    assert.deepEqual([reply.status, typeof document === 'string' ? text : JSON.parse(text)], [status, document], String(answer.body))
  }
  const { status } = await fetchOf({ body: '{"error":"x"}' }).fetch('https://as.example/metadata')
  assert.equal(status, 200, 'only a token endpoint answers errors so')
})

void test('where metadata is found: plain metadata of RFC 8414 at the path of OpenID Connect, and a challenge that leads nowhere', async () => {
  const origin = 'https://mcp.example'
  const documents: Record<string, object> = {
    '/.well-known/oauth-protected-resource/mcp': { resource: `${origin}/mcp`, authorization_servers: [origin] },
    '/.well-known/openid-configuration': {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256']
    }
  }
  const outbound = {
    fetch: async (url: string | URL) => {
      const document = documents[new URL(url).pathname]
      return document ? answerOf(document) : answerOf('<p>No', 403, 'text/html')
    }
  }
  const access = { reach: { trusted: true }, origins: () => new Set([origin]) }
  const { server, resource, isGuess } = await discoverAuthorization({
    serverUrl: new URL(`${origin}/mcp`), metadataUrl: new URL(`${origin}/nothing`), oauth: {}, isAdminStored: true
  }, (onStatus) => outboundFetch(outbound as unknown as Outbound, access, onStatus))
  assert.deepEqual([server.metadata?.token_endpoint, resource, isGuess], [`${origin}/token`, `${origin}/mcp`, false])
})

void test('what a server names is reached as a stranger\'s address', async () => {
  const proxy = { url: 'http://proxy.example' }
  const asked = async (url: string, reach: OutboundAccess): Promise<Sent | undefined> => {
    const { fetch, sent } = fetchOf({ body: '{}' }, reach)
    await fetch(url)
    return sent[0]
  }
  for (const url of ['https://mcp.example/x', 'https://as.example:443/token', 'https://AS.example/']) {
    assert.deepEqual(await asked(url, { trusted: true, proxy }), { url, trusted: true, proxy })
  }
  for (const url of ['http://as.example/', 'https://as.example:8443/', 'https://sub.as.example/', 'https://as.example.evil.example/', 'http://10.0.0.1/']) {
    assert.deepEqual(await asked(url, { trusted: true, proxy }), { url, trusted: false, proxy: undefined })
  }
  assert.equal((await asked('https://as.example/', { trusted: false }))?.trusted, false)
  const away = new UpstreamError('unreachable', 'x is a private address')
  const named = await fetchOf({ body: '' }, { trusted: true }, away).fetch('http://x/').catch((error: unknown) => error)
  assert.match((named as UpstreamError).detail, /The server itself provides this address.*"oauth\.issuer"/)
  const own = await fetchOf({ body: '' }, { trusted: true }, away).fetch('https://mcp.example/').catch((error: unknown) => error)
  assert.equal((own as UpstreamError).detail, '')
})

void test('the scopes to ask for', async () => {
  assert.deepEqual(chooseScopes(none), [])
  assert.deepEqual(chooseScopes({ ...none, ofServer: ['offline_access'] }), [])
  assert.deepEqual(chooseScopes({ ...none, ofResource: ['a'], ofServer: ['offline_access'] }), ['a', 'offline_access'])
  assert.deepEqual(chooseScopes({ ...none, challenged: ['c'], ofResource: ['a'] }), ['c'])
  assert.deepEqual(chooseScopes({ ...none, configured: ['d'], challenged: ['c'] }), ['d'])
  assert.deepEqual(chooseScopes({ ...none, configured: ['d'], challenged: ['c'], former: ['d', 'e'] }), ['d', 'e', 'c'])
})

void test('how the gateway authenticates', async () => {
  const client = { id: 'c', secret: 's' }
  assert.equal(authMethodOf({ id: 'c' }, undefined), 'none')
  assert.equal(authMethodOf(client, undefined), 'client_secret_basic')
  assert.equal(authMethodOf(client, ['client_secret_post']), 'client_secret_post')
  assert.equal(authMethodOf({ ...client, method: 'client_secret_post' }, ['client_secret_basic', 'client_secret_post']), 'client_secret_post')
  assert.equal(authMethodOf(client, undefined, { tokenEndpointAuthMethod: 'client_secret_post' }), 'client_secret_post')
  const server = { url: 'https://as.example', metadata: undefined }
  const headers = new Headers()
  authenticateAsClient(headers, new URLSearchParams(), { id: 'a b', secret: 'p:q' }, server)
  assert.equal(headers.get('authorization'), `Basic ${Buffer.from('a+b:p%3Aq').toString('base64')}`)
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  for (const text of [privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), JSON.stringify(privateKey.export({ format: 'jwk' }))]) {
    const params = new URLSearchParams()
    authenticateAsClient(new Headers(), params, { id: 'c' }, server, { clientId: 'c', privateKey: text, keyId: 'k' })
    const [header = '', claims = '', signature = ''] = params.get('client_assertion')?.split('.') ?? []
    const key = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
    assert.ok(verify('sha256', Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url')))
    assert.equal((JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: string }).kid, 'k')
    assert.equal((JSON.parse(Buffer.from(claims, 'base64url').toString()) as { aud: string }).aud, 'https://as.example')
  }
  assert.throws(() => { authenticateAsClient(new Headers(), new URLSearchParams(), { id: 'c' }, server, { clientId: 'c', privateKey: 'x' }) }, /privateKey/)
})

const server = {
  url: 'https://as.example',
  metadata: {
    issuer: 'https://as.example',
    authorization_endpoint: 'https://as.example/authorize',
    token_endpoint: 'https://as.example/token',
    registration_endpoint: 'https://as.example/register',
    response_types_supported: ['code']
  }
}

void test('a refused refresh token ends the login, whatever the refusal is called; other failures do not', async () => {
  const refusals: Array<[status: number, body: string]> = [
    [400, '{"error":"invalid_grant"}'], [403, '{"error":"invalid_grant"}'], [400, '{"error":"invalid_request"}'],
    [400, '{"code":400,"error_code":"refresh_token_not_found"}'], [200, '{"error":"bad_refresh_token"}'], [401, '{"error":"x"}']
  ]
  const failures: Array<[status: number, body: string]> = [
    [400, '{"error":"temporarily_unavailable"}'], [429, '{"error":"x"}'], [403, '<html>'], [404, '{}'], [500, '{}'], [200, '{}'],
    // No answer.
    [0, 'the connection was lost']
  ]
  for (const [status, body] of [...refusals, ...failures]) {
    const frame = { binding: 'b', scopes: [], server, client: { id: 'c' } }
    const login = createLogin(frame, { access_token: 'a', refresh_token: 'r', token_type: 'Bearer' })
    let stored: { version: string, value: unknown } | undefined = { version: '1', value: login }
    let isFree = true
    const tokens = {
      find: async () => stored,
      claim: async () => {
        isFree = false
        return true
      },
      releaseClaim: async () => { isFree = true },
      remove: async () => {
        stored = undefined
        return true
      }
    }
    const outbound = {
      fetch: async () => {
        if (status === 0) throw new UpstreamError('broken', body)
        return answerOf(body, status)
      }
    } as unknown as Outbound
    const deps = {
      target: { server: 's', oauth: {} },
      stores: { tokens },
      makeFetch: (onStatus: (status: number) => void) =>
        outboundFetch(outbound, { reach: { trusted: true }, origins: () => new Set() }, onStatus),
      binding: () => 'b'
    } as unknown as ServerLoginDeps
    const cache = new LoginCache(deps, new LoginFlows(deps))
    const renewed = await cache.renew('shared', await cache.get('shared'), {}).catch((error: unknown) => error)
    const isEnded = refusals.some((each) => each[0] === status && each[1] === body)
    assert.deepEqual([stored === undefined, renewed === null], [isEnded, isEnded], `${status} ${body}`)
    assert.equal(renewed instanceof UpstreamError, !isEnded, `${status} ${body}`)
    if (renewed instanceof UpstreamError) {
      assert.deepEqual([renewed.messageForClients, renewed.didNotRun], ['its login cannot be refreshed now', true])
      assert.match(renewed.detail, status === 0 ? /^: the connection was lost$/ : /^: refreshing the login failed: /)
      assert.ok(isFree, 'the next call may try again')
    }
  }
})

void test('while the storage is away, a login that must be refreshed says so', async () => {
  const login = createLogin(
    { binding: 'b', scopes: [], server, client: { id: 'c' } }, { access_token: 'a', refresh_token: 'r', token_type: 'Bearer', expires_in: 0 }
  )
  const tokens = {
    find: async () => ({ version: '1', value: login }),
    claim: async () => { throw new StorageError('The database is not available.', false) }
  }
  const deps = { target: { server: 's', oauth: {} }, stores: { tokens }, binding: () => 'b' } as unknown as ServerLoginDeps
  const { header, refused } = new ServerLogin(deps, { onReady: () => {}, onEnded: () => {} }).authorization(undefined)
  const challenge = { status: 401, wwwAuthenticate: undefined, sentAuthorization: 'Bearer a', isRetry: false } as const
  for (const ask of [header, async () => await refused(challenge)]) {
    await assert.rejects(async () => await ask(), ({ messageForClients }: UpstreamError) =>
      messageForClients === 'the storage of the gateway is unavailable, so the login there cannot be refreshed')
  }
})

void test('a registration that is refused for its scopes is sent again without', async () => {
  const self = { baseUrl: 'https://hub.example', redirectUri: 'https://hub.example/oauth/callback', documentUrl: undefined }
  const register = async (scopes: readonly string[], takes: boolean): Promise<[unknown[], string]> => {
    const asked: unknown[] = []
    const fetchFn: FetchLike = async (_url, init) => {
      const body = JSON.parse(String(init?.body)) as { scope?: string }
      asked.push(body.scope)
      return takes && body.scope === undefined
        ? Response.json({ ...body, client_id: 'c' }, { status: 201 })
        : Response.json({ error: 'invalid_client_metadata', error_description: 'no' }, { status: 400 })
    }
    const found = { server, issuer: undefined, resource: undefined, resourceScopes: undefined, isGuess: false }
    const outcome = await registerGateway(found, scopes, self, { binding: 'b', oauth: {}, fetchFn })
      .then(({ client }) => client.id, (error: Error) => error.message)
    return [asked, outcome]
  }
  assert.deepEqual(await register(['a', 'b'], true), [['a b', undefined], 'c'])
  assert.deepEqual(await register([], true), [[undefined], 'c'])
  const [asked, failure] = await register(['a'], false)
  assert.deepEqual(asked, ['a', undefined])
  assert.match(failure, /set "oauth.clientId"\) failed: the authorization server answered invalid_client_metadata: no$/)
})

void test('for scopes that its registration lacks, the gateway registers anew; a login without them keeps the client', async () => {
  const asked: unknown[] = []
  const state = { refuses: false, stored: undefined as { version: string, value: unknown } | undefined, frames: [] as string[] }
  const outbound = {
    fetch: async (url: string | URL, { body }: { body?: string }) => {
      if (String(url) === 'https://as.example/.well-known/oauth-authorization-server') {
        return answerOf({ ...server.metadata, code_challenge_methods_supported: ['S256'] })
      }
      if (!String(url).endsWith('/register')) return answerOf({}, 404)
      const { scope, ...metadata } = JSON.parse(String(body)) as { scope?: string }
      asked.push(scope)
      return state.refuses ? answerOf({ error: 'access_denied' }, 400) : answerOf({ ...metadata, scope, client_id: `c${asked.length}` }, 201)
    }
  } as unknown as Outbound
  const flows = new LoginFlows({
    target: { server: 's', oauth: {}, url: () => new URL('https://as.example/mcp'), isAdminStored: true },
    stores: {
      grants: {
        put: async (_key: string, _id: string, { frame }: { frame: { client: { id: string } } }) => {
          state.frames.push(frame.client.id)
        }
      },
      states: { put: async () => {} },
      tokens: {
        find: async () => state.stored,
        swap: async (_server: string, _holder: string, _version: unknown, value: unknown) => {
          state.stored = { version: String(asked.length), value }
          return state.stored.version
        }
      }
    },
    makeFetch: () => outboundFetch(outbound, { reach: { trusted: true }, origins: () => new Set() }),
    binding: () => 'b',
    self: async () => ({ baseUrl: 'https://hub.example', redirectUri: 'https://hub.example/oauth/callback', documentUrl: undefined })
  } as unknown as ServerLoginDeps)
  const begin = async (holder: string, scopes: string[], former?: string[]): Promise<void> => {
    await flows.begin(holder, { challenge: { scopes }, ...former && { former } })
  }
  await begin('ann', ['a'])
  await begin('ann', ['b'], ['a'])
  await begin('bob', ['a'])
  state.refuses = true
  await begin('bob', ['c'], ['a'])
  assert.deepEqual(asked, ['a', 'a b', 'a b c', undefined])
  assert.deepEqual(state.frames, ['c1', 'c2', 'c2', 'c2'])
})

/** Completes a login that was begun for a holder at a server, and ends in `swap`. */
async function finishLogin (holder: string, config: ServerConfig, swap: () => Promise<string>): ReturnType<Logins['finish']> {
  const state = 's'.repeat(43)
  const taken = { first: true, value: undefined as unknown }
  const logins = new Logins({
    stores: { grants: { take: async () => taken }, tokens: { swap }, states: { remove: async () => {} } },
    outbound: { fetch: async () => answerOf({ access_token: 'a', token_type: 'Bearer' }) },
    environment: {},
    settings: () => ({ users: new Map(), keys: new Map() })
  } as unknown as ConstructorParameters<typeof Logins>[0])
  const login = logins.open('s', config, { onReady: () => {}, onEnded: () => {} })
  const frame = { binding: login?.deps.binding(holder), scopes: [], server, client: { id: 'c' } }
  const redirectUri = 'https://hub.example/oauth/callback'
  taken.value = { kind: 'upstream-login', server: 's', holder, codeVerifier: 'v', redirectUri, frame, start: 'h' }
  const key = 'k'.repeat(43)
  const sent = new URL(withBrowserTag({ server: 's', holder, url: `https://as.example/?state=${state}` }, key))
  return await logins.finish({ code: 'c', state: sent.searchParams.get('state') ?? '' }, key)
}

void test('a login that cannot be stored is the fault of the storage, not of the authorization server', async () => {
  const outage = new StorageError('The database is not available.', false)
  const url = 'https://mcp.example/mcp'
  await assert.rejects(finishLogin('shared', { url }, async () => { throw outage }), outage)
})

void test('a login that ends after the isolation of its server was changed is not stored', async () => {
  const url = 'https://mcp.example/mcp'
  for (const [holder, isolation] of [['shared', 'user'], ['user ann', 'shared']] as const) {
    const { ok, title } = await finishLogin(holder, { url, isolation }, async () => assert.fail('it is stored'))
    assert.deepEqual([ok, title], [false, 'The server has changed'])
  }
})
