// Clients that others wrote log in at the authorization server, knowing nothing but an address of the gateway.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { UnauthorizedError, type OAuthClientProvider, type OAuthDiscoveryState } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { OAuthClientInformationMixed, OAuthClientMetadata, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import * as openid from 'openid-client'
import { test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { initialize, names, open, send, Session, text, within } from '../helpers/client.ts'
import { movingClock } from '../helpers/clock.ts'
import { freePort, path, until, type Cleanup } from '../helpers/hub.ts'
import { allow, Browser, form, tokensFor, type Tokens } from '../helpers/oauth.ts'
import { admin, startWithOAuth } from '../helpers/oauth-hub.ts'

const redirectUri = 'http://127.0.0.1:8123/callback'
/** Of access tokens, in ms. */
const lifetime = 3_600_000

/** What an application keeps for the SDKs. Its browser is ours: it comes back with a code at once. */
class Login implements OAuthClientProvider {
  readonly redirectUrl = redirectUri
  readonly clientMetadata: OAuthClientMetadata = {
    client_name: 'An agent',
    redirect_uris: [redirectUri],
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code']
  }

  /** Where the browser was sent to, each time. */
  readonly opened: URL[] = []
  /** Where it came back to. */
  returned = new URL(redirectUri)
  readonly stored: OAuthTokens[] = []
  #client: OAuthClientInformationMixed | undefined
  #verifier = ''
  #discovery: OAuthDiscoveryState | undefined

  state (): string { return 'a state' }
  clientInformation (): OAuthClientInformationMixed | undefined { return this.#client }
  saveClientInformation (client: OAuthClientInformationMixed): void { this.#client = client }
  tokens (): OAuthTokens | undefined { return this.stored.at(-1) }
  saveTokens (tokens: OAuthTokens): void { this.stored.push(tokens) }
  saveCodeVerifier (verifier: string): void { this.#verifier = verifier }
  codeVerifier (): string { return this.#verifier }
  saveDiscoveryState (state: OAuthDiscoveryState): void { this.#discovery = state }
  discoveryState (): OAuthDiscoveryState | undefined { return this.#discovery }

  async redirectToAuthorization (url: URL): Promise<void> {
    this.opened.push(url)
    this.returned = await allow(new Browser(url.origin), url.href, admin)
    assert.equal(`${this.returned.origin}${this.returned.pathname}`, redirectUri)
    assert.equal(this.returned.searchParams.get('state'), 'a state')
  }
}

/** What the clients of both SDKs have in common. */
interface Agent {
  listTools: () => Promise<{ tools: Array<{ name: string }> }>
  callTool: (call: { name: string, arguments: Record<string, unknown> }) => Promise<unknown>
}

const sdks: Readonly<Record<string, (t: Cleanup, url: string, login: Login) => Promise<Agent>>> = {
  '@modelcontextprotocol/sdk': async (t, url, login) => {
    const client = new Client({ name: 'test', version: '1.0.0' })
    const first = new StreamableHTTPClientTransport(new URL(url), { authProvider: login })
    await assert.rejects(client.connect(first), UnauthorizedError)
    await first.finishAuth(login.returned.searchParams.get('code') ?? '')
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider: login }))
    t.after(async () => { await client.close() })
    return client
  },
  '@modelcontextprotocol/client': async (t, url, login) => {
    const client = new ModernClient({ name: 'test', version: '1.0.0' })
    const first = new ModernTransport(new URL(url), { authProvider: login })
    await assert.rejects(client.connect(first), /[Uu]nauthorized/)
    // It compares `iss` with the issuer that it has discovered (RFC 9207).
    await first.finishAuth(login.returned.searchParams)
    await client.connect(new ModernTransport(new URL(url), { authProvider: login }))
    t.after(async () => { await client.close() })
    return client
  }
}

for (const [sdk, connect] of Object.entries(sdks)) {
  test(`${sdk} logs in from an MCP address alone`, async (t) => {
    const hub = await startWithOAuth(t)
    const below = await startWithOAuth(t, { BASE_PATH: '/gate/way' })
    for (const [what, url, prefix] of [
      ['/mcp', `${hub.url}/mcp`, 'fake-'], ['/mcp/<server>', `${hub.url}/mcp/fake`, ''],
      ['/<user>/mcp', `${hub.url}/admin/mcp`, 'fake-'], ['below a base path', `${below.url}/mcp`, 'fake-'],
      ['a server below a base path', `${below.url}/mcp/fake`, '']
    ] as const) {
      await t.test(what, async (t) => {
        const login = new Login()
        const agent = await connect(t, url, login)
        assert.equal(login.opened.length, 1)
        assert.equal(login.opened[0]?.searchParams.get('resource'), url)
        assert.ok(names((await agent.listTools()).tools).includes(`${prefix}echo`))
        assert.equal(text(await agent.callTool({ name: `${prefix}echo`, arguments: { message: what } })), what)
        assert.equal(login.stored.length, 1)
      })
    }
  })

  test(`${sdk} refreshes its token when it expires, and goes on`, async (t) => {
    const hub = await startWithOAuth(t)
    const pass = movingClock(t)
    const login = new Login()
    const agent = await connect(t, `${hub.url}/mcp`, login)
    const [first] = login.stored
    pass(lifetime)
    assert.equal((await send(`${hub.url}/mcp`, { key: first?.access_token, body: initialize() })).status, 401)
    // Its stream ends with the token, and the client opens it again with a new one. A call meanwhile would refresh as well: the second one
    // of both presents a refresh token that is spent, which ends the login (RFC 9700, section 4.14.2), and the SDKs do nothing about that.
    await until(() => login.stored.length === 2, 'the token was not refreshed')
    assert.equal(text(await agent.callTool({ name: 'fake-echo', arguments: { message: 'still here' } })), 'still here')
    const last = login.stored.at(-1)
    assert.equal(login.stored.length, 2)
    assert.notEqual(last?.access_token, first?.access_token)
    assert.notEqual(last?.refresh_token, first?.refresh_token)
    assert.equal(login.opened.length, 1, 'the user was asked again')
  })
}

test('a stream ends with its access token, and the session is there for the next one', async (t) => {
  const hub = await startWithOAuth(t)
  const pass = movingClock(t)
  const { access_token: key, refresh_token: refreshToken = '', clientId } = await tokensFor(hub.url, admin)
  const session = await Session.open(`${hub.url}/mcp`, { key })
  const stream = await session.listen()
  assert.equal(stream.status, 200)
  pass(lifetime)
  await within('the end of the stream', stream.done)
  const fields = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: clientId }
  const next = await (await form(`${hub.url}/oauth/token`, fields)).json() as Tokens
  const again = { key: next.access_token, headers: session.headers }
  const events = await open(`${hub.url}/mcp`, { ...again, method: 'GET', headers: { ...session.headers, accept: 'text/event-stream' } })
  assert.equal(events.status, 200, events.body)
  assert.equal((await send(`${hub.url}/mcp`, { ...again, body: { jsonrpc: '2.0', id: 1, method: 'ping' } })).status, 200)
  // What was given up does not come back.
  await form(`${hub.url}/oauth/revoke`, { token: next.refresh_token ?? '', client_id: clientId })
  await within('the end of the stream', events.done)
  const other = await tokensFor(hub.url, admin, {}, clientId)
  const late = { key: other.access_token, headers: session.headers, body: { jsonrpc: '2.0', id: 2, method: 'ping' } }
  assert.equal((await send(`${hub.url}/mcp`, late)).status, 404)
})

test('openid-client 6 does all that the metadata say', async (t) => {
  for (const [what, env] of [['at the root', {}], ['below a base path', { BASE_PATH: '/gate' }]] as const) {
    await t.test(what, async (t) => {
      const hub = await startWithOAuth(t, env)
      const insecure: openid.DiscoveryRequestOptions = { algorithm: 'oauth2', execute: [openid.allowInsecureRequests] }
      const config = await openid.dynamicClientRegistration(
        new URL(hub.url),
        { client_name: 'A web application', redirect_uris: [redirectUri], token_endpoint_auth_method: 'client_secret_basic' },
        undefined,
        insecure
      )
      const { client_id: clientId, client_secret: secret } = config.clientMetadata()
      assert.equal(typeof secret, 'string')
      const verifier = openid.randomPKCECodeVerifier()
      const url = openid.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: 'mcp profile',
        resource: `${hub.url}/mcp`,
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state: 'some state'
      })
      const returned = await allow(new Browser(new URL(hub.url).origin), url.href, admin)
      // It insists on `state`, and on `iss`, which the metadata promise.
      const tokens = await openid.authorizationCodeGrant(config, returned, { pkceCodeVerifier: verifier, expectedState: 'some state' })
      assert.equal(tokens.scope, 'mcp profile')

      const user = await openid.fetchUserInfo(config, tokens.access_token, openid.skipSubjectCheck)
      assert.deepEqual({ ...user, sub: '' }, { sub: '', username: 'admin', preferred_username: 'admin', isAdmin: true })

      const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '')
      assert.notEqual(refreshed.refresh_token, tokens.refresh_token)
      assert.equal((await openid.fetchUserInfo(config, refreshed.access_token, user.sub)).sub, user.sub)

      await openid.tokenRevocation(config, refreshed.refresh_token ?? '', { token_type_hint: 'refresh_token' })
      await assert.rejects(openid.refreshTokenGrant(config, refreshed.refresh_token ?? ''), { error: 'invalid_grant' })
      await assert.rejects(openid.fetchUserInfo(config, refreshed.access_token, user.sub), { status: 401 })

      // The same client, discovered by its id.
      const found = await openid.discovery(new URL(hub.url), clientId, secret, openid.ClientSecretPost(secret), insecure)
      assert.equal(found.serverMetadata().issuer, hub.url)
    })
  }
})

test('mcp-remote logs in by a browser, and passes calls on', async (t) => {
  const hub = await startWithOAuth(t)
  const folder = await temporaryFolder(t)
  // The browser of this machine notes what it is to open.
  const [browser, note] = [join(folder, 'browser'), join(folder, 'opened')]
  writeFileSync(browser, `#!/bin/sh\nprintf %s "$1" > ${note}.new && mv ${note}.new ${note}\n`)
  chmodSync(browser, 0o755)
  const transport = new StdioClientTransport({
    command: process.execPath,
    // By itself it may choose a port that fetch does not go to.
    args: [path('node_modules/mcp-remote/dist/proxy.js'), `${hub.url}/mcp`, String(await freePort()), '--transport', 'http-only', '--host', '127.0.0.1'],
    env: { PATH: process.env.PATH ?? '', HOME: folder, MCP_REMOTE_CONFIG_DIR: folder, BROWSER: browser },
    stderr: 'pipe'
  })
  let said = ''
  transport.stderr?.on('data', (chunk) => { said += String(chunk) })
  const client = new Client({ name: 'test', version: '1.0.0' })
  const connecting = client.connect(transport)
  t.after(async () => { await client.close() })
  connecting.catch(() => {})
  await until(() => existsSync(note), () => `no browser was opened: ${said}`)
  const person = new Browser(hub.url)
  const returned = await allow(person, readFileSync(note, 'utf8'), admin)
  assert.equal((await person.get(returned.href)).status, 200)
  await within(`the login of mcp-remote: ${said}`, connecting)
  assert.ok(names((await client.listTools()).tools).includes('fake-echo'))
  assert.equal(text(await client.callTool({ name: 'fake-echo', arguments: { message: 'over stdio' } })), 'over stdio')
})
