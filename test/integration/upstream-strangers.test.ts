// Logins at servers whose authorization server, or what is said of it, is a stranger's: codes and tokens reach nobody else, nothing that a
// server names is reached as what an admin names, and a login that was denied is over.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import bcrypt from 'bcryptjs'
import { test } from 'tap'
import { manage, startReplica } from '../fakes/replica.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { at, settings, type Json } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { Browser, confirm, type Visit } from '../helpers/oauth.ts'

/** An MCP server with its authorization server at the same origin. */
interface Guarded { readonly url: string, readonly origin: string, readonly asked: string[] }

interface GuardedOptions {
  /** Members of the authorization server's metadata that are other ones. */
  readonly metadata?: (origin: string) => Json
  /** Members of the resource's metadata that are other ones; null: it publishes none. */
  readonly resource?: ((origin: string) => Json) | null
  readonly challenge?: string
  /** Where the authorization server's metadata have moved to. */
  readonly moved?: string
  /** The answer of the token endpoint. */
  readonly tokens?: Json
  /** The status of that answer; 200 if undefined. */
  readonly tokenStatus?: number
}

const token = 'an-access-token'

async function startGuarded (t: Cleanup, options: GuardedOptions = {}): Promise<Guarded> {
  const { metadata, resource, challenge, moved, tokens, tokenStatus } = options
  const asked: string[] = []
  const made: Guarded = { url: '', origin: '', asked }
  const upstream = await startUpstream(t, {
    tools: [tool('t')],
    raw: (request, reply) => {
      const { origin } = made
      const { pathname } = new URL(request.url ?? '', origin)
      const json = (body: object, status = 200, headers: Record<string, string> = {}): true => {
        reply.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
        return true
      }
      if (pathname !== '/mcp') asked.push(pathname)
      switch (pathname) {
        case '/mcp': {
          if (request.headers.authorization === `Bearer ${token}`) return false
          const address = challenge ?? `${origin}/.well-known/oauth-protected-resource/mcp`
          return json({}, 401, { 'www-authenticate': resource === null ? 'Bearer' : `Bearer resource_metadata="${address}"` })
        }
        case '/.well-known/oauth-protected-resource/mcp':
          return resource === null
            ? json({}, 404)
            : json({ resource: `${origin}/mcp`, authorization_servers: [origin], ...resource?.(origin) })
        case '/.well-known/oauth-authorization-server':
          if (moved !== undefined) return json({}, 302, { location: moved })
          return json({
            issuer: origin,
            authorization_endpoint: `${origin}/authorize`,
            token_endpoint: `${origin}/token`,
            registration_endpoint: `${origin}/register`,
            response_types_supported: ['code'],
            code_challenge_methods_supported: ['S256'],
            ...metadata?.(origin)
          })
        case '/register': return json({ client_id: 'c', redirect_uris: [] }, 201)
        case '/token': return json(tokens ?? { access_token: token, token_type: 'Bearer' }, tokenStatus)
        default:
          reply.writeHead(404).end()
          return true
      }
    }
  })
  return Object.assign(made, { url: upstream.url, origin: new URL(upstream.url).origin })
}

interface Shown { status: string, error: string | null, oauth?: { authorizationUrl: string } }
type Show = (hub: Hub, name?: string) => Promise<Shown>
const record: Show = async (hub, name = 's') => at((await manage(hub, 'GET', `/servers/${name}`)).body, 'data') as Shown

/** A server's record once it is settled. */
async function settled (hub: Hub, show: Show = record, name = 's'): Promise<Shown> {
  let shown = await show(hub, name)
  await until(async () => {
    shown = await show(hub, name)
    return shown.status !== 'connecting'
  }, hub.output)
  return shown
}

const hubFor = async (t: Cleanup, config: Json, env: Record<string, string> = {}): Promise<Hub> =>
  await startHub(t, { settings: settings({ s: { type: 'streamable-http', ...config } }), env })

/** Ends a login with what an authorization server would answer. @returns the page at the end */
async function answer (hub: Hub, address: string, response: Record<string, string>): Promise<Visit> {
  const browser = new Browser(hub.url)
  const { url } = await confirm(browser, address)
  const state = new URL(url).searchParams.get('state') ?? ''
  return await browser.get(`/oauth/callback?${new URLSearchParams({ state, ...response }).toString()}`)
}

const elsewhere = 'https://honest.example'

test('the authorization server of a server that no admin stored has one origin', async (t) => {
  const password = bcrypt.hashSync('Same-1234', 4)
  const hub = await startHub(t, {
    settings: settings({}, { users: [{ username: 'ann', password, createdAt: new Date().toISOString() }] }),
    env: { OUTBOUND_ALLOW: '127.0.0.1' }
  })
  const login = await manage(hub, 'POST', '/auth/login', { username: 'ann', password: 'Same-1234' }, {})
  const ann = { 'x-auth-token': String(at(login.body, 'token')) }
  const asAnn: Show = async (hub, name) => at((await manage(hub, 'GET', `/servers/${name}`, undefined, ann)).body, 'data') as Shown
  const other = await startGuarded(t)
  const cases: Record<string, [GuardedOptions, Json?]> = {
    authorization: [{ metadata: () => ({ authorization_endpoint: `${elsewhere}/authorize` }) }],
    token: [{ metadata: () => ({ token_endpoint: `${elsewhere}/token` }) }],
    both: [{ metadata: () => ({ authorization_endpoint: `${elsewhere}/authorize`, token_endpoint: `${elsewhere}/token` }) }],
    port: [{ metadata: () => ({ authorization_endpoint: `${other.origin}/authorize` }) }],
    issuer: [{ resource: null, metadata: () => ({ issuer: other.origin }) }],
    configured: [{}, { clientId: 'c', authorizationEndpoint: `${elsewhere}/authorize`, tokenEndpoint: `${other.origin}/token` }],
    stated: [{}, { clientId: 'c', issuer: elsewhere, authorizationEndpoint: `${other.origin}/authorize`, tokenEndpoint: `${other.origin}/token` }]
  }
  for (const [name, [options, oauth]] of Object.entries(cases)) {
    await t.test(name, async (t) => {
      const { url } = await startGuarded(t, options)
      const config = { type: 'streamable-http', url, ...(oauth && { oauth }) }
      assert.equal((await manage(hub, 'POST', '/servers', { name, config }, ann)).status, 200)
      const { status, error, oauth: shown } = await settled(hub, asAnn, name)
      assert.deepEqual([status, shown], ['disconnected', undefined])
      assert.match(error ?? '', /must have one origin.*ask an admin to store the server/)
      // Stored by an admin, it is what many have.
      const own = `${name}-of-admin`
      assert.equal((await manage(hub, 'POST', '/servers', { name: own, config })).status, 200)
      assert.equal((await settled(hub, record, own)).status, 'oauth_required')
    })
  }
  await t.test('with one origin, a user logs in', async () => {
    assert.equal((await manage(hub, 'POST', '/servers', { name: 'good', config: { type: 'streamable-http', url: other.url } }, ann)).status, 200)
    const { oauth } = await settled(hub, asAnn, 'good')
    assert.match((await answer(hub, oauth?.authorizationUrl ?? '', { code: 'c', iss: other.origin })).text, /You are logged in/)
  })
})

test('an answer names the issuer whose metadata were fetched', async (t) => {
  const honest = await startGuarded(t)
  const table: Array<[what: string, options: GuardedOptions, iss: string | undefined, isTrusted: boolean]> = [
    ['its own', {}, undefined, true],
    ['none, where it says that it names itself', { metadata: () => ({ authorization_response_iss_parameter_supported: true }) }, '', false],
    ['another one', {}, elsewhere, false],
    ['with a slash that it does not have', {}, '/', false],
    // A server that is its own authorization server in the manner of 2025-03-26.
    ['that of metadata which it made up', { resource: null, metadata: () => ({ issuer: honest.origin }) }, honest.origin, false],
    ['that of metadata in which it changed the token endpoint', {
      resource: null,
      metadata: (origin) => ({ issuer: honest.origin, authorization_endpoint: `${honest.origin}/authorize`, token_endpoint: `${origin}/token` })
    }, honest.origin, false],
    ['that of metadata which it passes on', {
      resource: null,
      metadata: () => ({
        issuer: honest.origin, authorization_endpoint: `${honest.origin}/authorize`, token_endpoint: `${honest.origin}/token`
      })
    }, honest.origin, true]
  ]
  for (const [what, options, iss, isTrusted] of table) {
    await t.test(what, async (t) => {
      const server = await startGuarded(t, options)
      const hub = await hubFor(t, { url: server.url }, { OUTBOUND_ALLOW: '127.0.0.1' })
      const { oauth } = await settled(hub)
      const named = iss === undefined ? server.origin : iss === '/' ? `${server.origin}/` : iss
      const page = await answer(hub, oauth?.authorizationUrl ?? '', { code: 'c', ...(named === '' ? {} : { iss: named }) })
      assert.match(page.text, isTrusted ? /You are logged in/ : /This response is not trusted/)
      assert.equal(server.asked.includes('/token') || honest.asked.includes('/token'), isTrusted)
      honest.asked.length = 0
    })
  }
  await t.test('where none was fetched, it is of the origin that the browser was sent to', async (t) => {
    const server = await startGuarded(t)
    const oauth = { clientId: 'c', authorizationEndpoint: `${server.origin}/authorize`, tokenEndpoint: `${server.origin}/token` }
    const hub = await hubFor(t, { url: server.url, oauth })
    const { oauth: first } = await settled(hub)
    assert.match((await answer(hub, first?.authorizationUrl ?? '', { code: 'c', iss: elsewhere })).text, /This response is not trusted/)
    const { oauth: next } = await settled(hub)
    assert.match((await answer(hub, next?.authorizationUrl ?? '', { code: 'c', iss: `${server.origin}/realms/x` })).text, /You are logged in/)
  })
})

test('what a server names is reached as a stranger\'s address, also where an admin stored the server', async (t) => {
  const reached: string[] = []
  const inner = createServer((request, reply) => { reached.push(request.url ?? ''); reply.end('{}') })
  const privateUrl = `http://127.0.0.2:${await listen(t, inner, '127.0.0.2')}`
  const table: Record<string, GuardedOptions> = {
    resource: { challenge: `${privateUrl}/metadata` },
    server: { resource: () => ({ authorization_servers: [privateUrl] }) },
    registration: { metadata: () => ({ registration_endpoint: `${privateUrl}/register` }) },
    localhost: { resource: (origin) => ({ authorization_servers: [origin.replace('127.0.0.1', 'localhost')] }) }
  }
  for (const [what, options] of Object.entries(table)) {
    await t.test(what, async (t) => {
      const server = await startGuarded(t, options)
      const { status, error } = await settled(await hubFor(t, { url: server.url }))
      assert.equal(status, 'disconnected', error ?? '')
      assert.match(error ?? '', /(?:is a loopback address|this machine itself)[^]*The server itself provides this address[^]*"oauth\.issuer"/)
    })
  }
  await t.test('metadata that have moved', async (t) => {
    const server = await startGuarded(t, { moved: `${privateUrl}/moved` })
    assert.equal((await settled(await hubFor(t, { url: server.url }))).status, 'oauth_required', 'they count as absent')
  })
  await t.test('token endpoint, at the end of a login', async (t) => {
    const server = await startGuarded(t, { metadata: () => ({ token_endpoint: `${privateUrl}/token`, registration_endpoint: undefined }) })
    const hub = await hubFor(t, { url: server.url, oauth: { clientId: 'c', clientSecret: 's' } })
    const { oauth } = await settled(hub)
    assert.match((await answer(hub, oauth?.authorizationUrl ?? '', { code: 'c' })).text, /The login failed/)
  })
  await t.test('revocation endpoint, when it is over', async (t) => {
    const server = await startGuarded(t, { metadata: () => ({ revocation_endpoint: `${privateUrl}/revoke` }) })
    const hub = await hubFor(t, { url: server.url }, { OUTBOUND_ALLOW: '127.0.0.2' })
    const { oauth } = await settled(hub)
    assert.match((await answer(hub, oauth?.authorizationUrl ?? '', { code: 'c' })).text, /You are logged in/)
    assert.equal((await manage(hub, 'DELETE', '/servers/s/oauth')).status, 200)
  })
  assert.deepEqual(reached, [])
  await t.test('what an admin names beside it is reached as the server is', async (t) => {
    const issuer = await startGuarded(t)
    const server = await startGuarded(t, { resource: () => ({ authorization_servers: [issuer.origin] }) })
    assert.equal((await settled(await hubFor(t, { url: server.url }))).status, 'disconnected')
    const hub = await hubFor(t, { url: server.url, oauth: { issuer: issuer.origin } })
    const { oauth } = await settled(hub)
    assert.match((await answer(hub, oauth?.authorizationUrl ?? '', { code: 'c', iss: issuer.origin })).text, /You are logged in/)
    assert.deepEqual([issuer.asked.includes('/token'), server.asked.includes('/token')], [true, false])
  })
})

test('a login that was denied, or that failed, is over; another one begins', async (t) => {
  const server = await startGuarded(t)
  const hub = await hubFor(t, { url: server.url })
  for (const response of [{ error: 'access_denied' }, {}, { code: 'c', iss: elsewhere }] as Array<Record<string, string>>) {
    const { oauth } = await settled(hub)
    const address = oauth?.authorizationUrl ?? ''
    const page = await answer(hub, address, response)
    assert.equal(page.status, 400)
    let next = ''
    await until(async () => (next = (await settled(hub)).oauth?.authorizationUrl ?? address) !== address, hub.output)
    assert.match((await new Browser(hub.url).get(address)).text, /This login is not known/)
    assert.equal((await settled(hub)).oauth?.authorizationUrl, next, 'a look begins no other one')
  }
  assert.match((await answer(hub, (await settled(hub)).oauth?.authorizationUrl ?? '', { code: 'c' })).text, /You are logged in/)
})

test('a page shows the code of a refusal, and no other words of an authorization server', async (t) => {
  const words = { error_description: 'CANARY' }
  const server = await startGuarded(t, { tokens: { error: 'invalid_grant', ...words }, tokenStatus: 400 })
  const hub = await hubFor(t, { url: server.url })
  for (const [response, shown] of [
    [{ error: 'access_denied', ...words }, /answered access_denied\./],
    [{ error: 'Call CANARY', ...words }, /answered without a code\./],
    [{ code: 'c' }, /answered invalid_grant\./]
  ] as const) {
    const before = hub.output().split('CANARY').length
    const page = await answer(hub, (await settled(hub)).oauth?.authorizationUrl ?? '', response)
    assert.match(page.text, shown)
    assert.doesNotMatch(page.text, /CANARY/)
    await until(() => hub.output().split('CANARY').length > before, hub.output)
  }
})

test('what was denied on one replica is over on the other', async (t) => {
  const server = await startGuarded(t)
  const { url } = await database(t)
  const one = await startReplica(t, url, { settings: settings({ s: { type: 'streamable-http', url: server.url } }) })
  const other = await startReplica(t, url)
  const address = (await settled(one)).oauth?.authorizationUrl ?? ''
  await settled(other)
  // The browser that was sent away by one comes back to the other.
  const there = address.replace(one.url, other.url)
  assert.equal((await answer(other, there, { error: 'access_denied' })).status, 400)
  let next = ''
  await until(async () => (next = (await settled(one)).oauth?.authorizationUrl ?? address) !== address, one.output)
  assert.match((await new Browser(one.url).get(address)).text, /This login is not known/)
  assert.match((await answer(one, next, { code: 'c' })).text, /You are logged in/)
})
