// The gateway as an OAuth client: a real authorization server (oidc-provider) before a real MCP server.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { startLoginServer, type LoginServer } from '../fakes/login-server.ts'
import { manage, startReplica } from '../fakes/replica.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { at, KEY, OTHER, otherKey, Session, settings, text, type Json } from '../helpers/client.ts'
import { movingClock } from '../helpers/clock.ts'
import { database } from '../helpers/database.ts'
import { bearerKey, startHub, until, type Hub } from '../helpers/hub.ts'
import { Browser, confirm } from '../helpers/oauth.ts'

interface Shown { status: string, error: string | null, oauth?: { authorizationUrl: string } }
const record = async (hub: Hub, name = 'guarded'): Promise<Shown> => at((await manage(hub, 'GET', `/servers/${name}`)).body, 'data') as Shown
const waits = async (hub: Hub): Promise<string> => {
  await until(async () => (await record(hub)).oauth !== undefined, hub.output)
  return (await record(hub)).oauth?.authorizationUrl ?? ''
}
const isConnected = async (hub: Hub): Promise<void> => {
  await until(async () => (await record(hub)).status === 'connected', hub.output)
}
const whoami = async (hub: Hub, key = KEY): Promise<string> => {
  const session = await Session.open(`${hub.url}/mcp/guarded`, { key })
  return text(await session.call('whoami'))
}
/** None of these texts holds a token that was issued. */
function assertNoToken ({ issued }: LoginServer, texts: readonly string[], where: string): void {
  assert.ok(issued.length > 0)
  for (const token of issued) assert.ok(!texts.some((each) => each.includes(token)), `${where} holds a token`)
}
async function filesOf (folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return await Promise.all(entries.filter((each) => each.isFile() && !each.name.endsWith('.tmp')).map(async (each) => await readFile(join(each.parentPath, each.name), 'utf8')))
}

/** The login of an address ends in the browser in which somebody went on from its page, and nowhere else. */
async function assertBound (server: LoginServer, hub: Hub, address: string): Promise<void> {
  const [own, other] = [new Browser(hub.url), new Browser(hub.url)]
  const { page, url } = await confirm(own, address)
  assert.match(page.text, /guarded/)
  assert.match(page.text, /the user ann/)
  assert.doesNotMatch(page.text, /<script|<form/)
  assert.match(page.headers.getSetCookie().join(), /^tool-hub-login=[\w-]{43}; Path=\/oauth; HttpOnly; SameSite=Lax$/)
  const elsewhere = await server.authorize(url, 'a victim', other)
  assert.deepEqual([elsewhere.status, /started in another browser/.test(elsewhere.text)], [400, true])
  // With a cookie of its own, too, and where the tag is left out.
  await confirm(other, address)
  assert.match((await server.authorize(url, 'a victim', other)).text, /started in another browser/)
  const bare = new URL(url)
  bare.searchParams.set('state', bare.searchParams.get('state')?.split('.')[0] ?? '')
  for (const browser of [own, other]) assert.match((await server.authorize(bare.href, 'a victim', browser)).text, /started in another browser/)
  // The page cannot be left out, by a link to where it leads.
  const proof = /proof=([\w-]+)/.exec(page.text)?.[1] ?? ''
  for (const link of [`${address}/continue?proof=${proof}`, `${address}/continue`, `${address}/continue?proof=`]) {
    const { status, location } = await new Browser(hub.url).get(link)
    assert.deepEqual([status, location], [400, undefined], link)
  }
  for (const path of [`/oauth/login/${'x'.repeat(43)}`, '/oauth/login/x', `/oauth/login/${'x'.repeat(43)}/continue`]) {
    assert.equal((await own.get(`${hub.url}${path}`)).status, 400, path)
  }
}

test('the life of a login on a settings file', async (t) => {
  const server = await startLoginServer(t)
  const plain = await startUpstream(t, { tools: [tool('echo')] })
  const guarded = { url: server.url, oauth: { issuer: server.issuer }, type: 'streamable-http' }
  const hub = await startHub(t, { settings: settings({ guarded, plain: { url: plain.url } }) })
  const address = await waits(hub)
  const tested = async (body: object): Promise<Json> => (await manage(hub, 'POST', '/servers/test', body)).body as Json

  await t.test('while one waits for its login, the others work', async () => {
    assert.equal((await record(hub)).status, 'oauth_required')
    const merged = await Session.open(`${hub.url}/mcp`)
    assert.deepEqual(await merged.tools(), ['plain-echo'])
    assert.equal(text(await merged.call('plain-echo', { message: 'hi' })), 'hi')
    const parameters = new URL((await confirm(new Browser(hub.url), address)).url).searchParams
    assert.deepEqual(
      ['code_challenge_method', 'resource', 'redirect_uri', 'response_type'].map((name) => parameters.get(name)),
      ['S256', server.url, `${hub.url}/oauth/callback`, 'code']
    )
  })

  await t.test('a test tells what a server wants, and begins no login, nor registers anywhere', async () => {
    const wanted = await tested({ config: { url: server.url, oauth: { issuer: server.issuer } } })
    assert.deepEqual([at(wanted, 'data', 'connected'), at(wanted, 'data', 'status')], [false, 'oauth_required'])
    assert.match(String(at(wanted, 'data', 'error')), /requires a login \(OAuth\) at http/)
    assert.match(String(at(wanted, 'message')), /store it, and open the address in its record \(oauth\.authorizationUrl\)/)
    assert.equal(server.registrations, 1, 'that of the stored server')
    assert.equal(at(await tested({ config: { url: server.url, headers: { authorization: 'Bearer x' } } }), 'data', 'status'), 'disconnected')
  })

  await t.test('its end is a page without script, and its address is good once', async () => {
    const refused = await fetch(`${hub.url}/oauth/callback?state=unknown&error=%3Cscript%3E&code=x`)
    assert.equal(refused.status, 400)
    assert.doesNotMatch(await refused.text(), /<script/)
    const page = await server.login(address, 'ann')
    assert.equal(page.status, 200, page.text)
    assert.match(page.text, /You are logged in/)
    assert.match(page.text, /for everybody who may use the server/)
    await isConnected(hub)
    assert.equal(await whoami(hub), 'ann')
    const anew = new Browser(hub.url)
    const again = new URL((await confirm(anew, address)).url).searchParams.get('state') ?? ''
    assert.match((await anew.get(`${hub.url}/oauth/callback?state=${again}&code=x`)).text, /has already ended/)
    const stored = at((await manage(hub, 'GET', '/servers/guarded')).body, 'data', 'config') as Json
    assert.equal(at(await tested({ name: 'guarded', config: stored }), 'data', 'connected'), true, 'by the login that is there')
    const moved = await tested({ name: 'guarded', config: { ...stored, url: `${server.url}?other` } })
    assert.equal(at(moved, 'data', 'status'), 'oauth_required', 'no login goes to another address')
  })

  await t.test('ten calls at once with a token that the server refuses: one refresh, by a token that is rotated', async () => {
    for (let round = 1; round <= 2; round++) {
      await server.revoke(false)
      const session = await Session.open(`${hub.url}/mcp/guarded`)
      const answers = await Promise.all(Array.from({ length: 10 }, async () => text(await session.call('whoami'))))
      assert.deepEqual(new Set(answers), new Set(['ann']))
      assert.equal(server.grants.refresh_token, round)
    }
  })

  await t.test('a token that is about to expire is refreshed before it is used', async (t) => {
    const before = server.grants.refresh_token ?? 0
    movingClock(t)(server.life * 1_000 - 10_000)
    assert.equal(await whoami(hub), 'ann')
    assert.equal(server.grants.refresh_token, before + 1)
  })

  await hub.stop()
  const restarted = await startHub(t, { folder: hub.folder })
  await t.test('a restart keeps it', async () => {
    await isConnected(restarted)
    assert.equal(await whoami(restarted), 'ann')
    assert.equal(server.grants.authorization_code, 1)
  })

  await t.test('revoked upstream, it is waited for again, and the call says so without the address', async () => {
    await server.revoke(true)
    const session = await Session.open(`${restarted.url}/mcp/guarded`)
    assert.match((await session.request('tools/call', { name: 'whoami', arguments: {} })).error?.message ?? '', /requires a login/)
    await until(async () => (await record(restarted)).status === 'oauth_required', restarted.output)
    await server.login(await waits(restarted), 'bob')
    await isConnected(restarted)
    assert.equal(await whoami(restarted), 'bob')
  })

  await t.test('logging out ends it, and no token was ever shown or stored in plain', async () => {
    const shown = await Promise.all(['/servers', '/settings', '/mcp-settings/export'].map(async (route) => (await manage(restarted, 'GET', route)).text))
    assert.equal((await manage(restarted, 'DELETE', '/servers/guarded/oauth')).status, 200)
    await until(async () => (await record(restarted)).status === 'oauth_required', restarted.output)
    // The audit log of a settings file begins with the process.
    const noted = await manage(restarted, 'GET', '/audit?entity=login')
    assert.deepEqual(
      (at(noted.body, 'data') as Json[]).map(({ username, action, name, before, after }) => [username, action, name, before, after]),
      [
        ['system', 'delete', 'guarded', { server: 'guarded' }, undefined],
        ['system', 'create', 'guarded', undefined, { server: 'guarded', for: 'everybody who may use the server' }]
      ]
    )
    assertNoToken(server, [...shown, noted.text, hub.output(), restarted.output(), ...await filesOf(hub.folder)], 'the gateway')
  })
})

test('a login whose key is gone counts as none: the log says so, and its server asks for another one', async (t) => {
  const server = await startLoginServer(t)
  const config = settings({ guarded: { url: server.url, oauth: { issuer: server.issuer }, type: 'streamable-http' } })
  const hub = await startHub(t, { settings: config, env: { ENCRYPTION_KEY: 'a'.repeat(64) } })
  await server.login(await waits(hub), 'ann')
  await isConnected(hub)
  await hub.stop()
  const without = await startHub(t, { folder: hub.folder, env: { ENCRYPTION_KEY: 'b'.repeat(64) } })
  const address = await waits(without)
  assert.equal((await record(without)).status, 'oauth_required')
  assert.match(without.output(), /not available: 2 logins at servers \(key [0-9a-f]{8}\)/)
  await server.login(address, 'bob')
  await isConnected(without)
  await without.stop()
  const both = await startHub(t, { folder: hub.folder, env: { ENCRYPTION_KEY: `${'c'.repeat(64)},${'b'.repeat(64)}` } })
  await until(() => both.output().includes('key rotation: 2 secrets were re-encrypted'), both.output)
  await both.stop()
  const rotated = await startHub(t, { folder: hub.folder, env: { ENCRYPTION_KEY: 'c'.repeat(64) } })
  await isConnected(rotated)
  assert.equal(await whoami(rotated), 'bob')
})

test('an SSE server that asks for a login', async (t) => {
  const server = await startLoginServer(t, 'sse')
  const hub = await startHub(t, { settings: settings({ guarded: { url: server.url, oauth: { issuer: server.issuer }, type: 'sse' } }) })
  const page = await server.login(await waits(hub), 'ann')
  assert.match(page.text, /You are logged in/)
  await isConnected(hub)
  assert.equal(await whoami(hub), 'ann')
  // The stream stays open with the token that it was opened with; messages carry the one of the time.
  await server.revoke(false)
  assert.equal(await whoami(hub), 'ann')
  assert.equal(server.grants.refresh_token, 1)
  // Refused for good, it waits for a login again.
  await server.revoke(true)
  const session = await Session.open(`${hub.url}/mcp/guarded`)
  assert.match((await session.request('tools/call', { name: 'whoami', arguments: {} })).error?.message ?? '', /requires a login/)
  await server.login(await waits(hub), 'bob')
  await isConnected(hub)
  assert.equal(await whoami(hub), 'bob')
  assertNoToken(server, [hub.output(), ...await filesOf(hub.folder)], 'the gateway')
})

test('two replicas share a login, its refresh and its end', async (t) => {
  const server = await startLoginServer(t)
  const { url, query } = await database(t)
  const config = settings({ guarded: { url: server.url, oauth: { issuer: server.issuer }, type: 'streamable-http' } }, { systemConfig: {} })
  const one = await startReplica(t, url, { settings: config })
  const other = await startReplica(t, url)
  const address = await waits(one)
  await waits(other)
  await server.login(address, 'ann')
  await Promise.all([isConnected(one), isConnected(other)])
  const sessions = await Promise.all([one, other].map(async (hub) => await Session.open(`${hub.url}/mcp/guarded`)))
  await server.revoke(false)
  const answers = await Promise.all(Array.from({ length: 10 }, async (_, n) => text(await sessions[n % 2]?.call('whoami'))))
  assert.deepEqual(new Set(answers), new Set(['ann']))
  assert.equal(server.grants.refresh_token, 1, 'one refresh on both')
  const rows = JSON.stringify(await query('select * from records'))
  assertNoToken(server, [rows, one.output(), other.output()], 'a table or a log')
  assert.equal((await manage(other, 'DELETE', '/servers/guarded/oauth')).status, 200)
  await until(async () => (await record(one)).status === 'oauth_required', one.output)
  await manage(one, 'DELETE', '/servers/guarded')
  await until(async () => {
    const left: unknown = await query("select 1 from records where collection = 'upstreamTokens'")
    return Array.isArray(left) && left.length === 0
  })
})

test('with isolation user, each user logs in for himself', async (t) => {
  const server = await startLoginServer(t)
  const users = ['ann', 'bob'].map((username) => ({ username, password: 'x', createdAt: new Date().toISOString() }))
  const keys = [['ann', KEY], ['bob', OTHER]].map(([owner, token], n) =>
    otherKey({ id: `3333333${n}-3333-4333-8333-333333333333`, name: owner, kind: 'user', owner, token }) as Json)
  const guarded = { url: server.url, oauth: { issuer: server.issuer }, type: 'streamable-http', isolation: 'user', visibility: 'public' }
  const ofAdmin = bearerKey({ id: '44444444-4444-4444-8444-444444444444', name: 'admin', token: `thk_${'e'.repeat(64)}` })
  const hub = await startHub(t, { settings: { users, bearerKeys: [...keys, ofAdmin], mcpServers: { guarded } } })
  interface Asked { code?: number, message: string, session: Session, data: unknown }
  const addressOf = async (key: string, capabilities: Json = {}): Promise<Asked> => {
    const session = await Session.open(`${hub.url}/mcp/guarded`, { key, capabilities })
    const { error } = await session.request('tools/call', { name: 'whoami', arguments: {} })
    return { code: error?.code, message: error?.message ?? '', session, data: error?.data }
  }
  await until(() => hub.output().includes('waiting for a login'), hub.output)
  const asked = await addressOf(KEY)
  const [address = ''] = /http\S+/.exec(asked.message) ?? []
  assert.ok(address.startsWith(`${hub.url}/oauth/login/`), asked.message)
  await assertBound(server, hub, address)
  // A client that can show addresses is sent the elicitation, and hears of its end.
  const elicited = await addressOf(OTHER, { elicitation: { url: {} } })
  assert.equal(elicited.code, -32042)
  const [elicitation] = at(elicited.data, 'elicitations') as Array<{ mode: string, url: string, elicitationId: string }>
  assert.equal(elicitation?.mode, 'url')
  const news = await elicited.session.listen()
  await server.login(elicitation?.url ?? '', 'account of bob')
  await until(() => news.messages.some(({ method, params }) =>
    method === 'notifications/elicitation/complete' && params?.elicitationId === elicitation?.elicitationId), () => news.body)
  let said: unknown
  await until(async () => (said = await whoami(hub, OTHER).catch(String)) === 'account of bob', () => `${String(said)} ${hub.output()}`)
  // The other one still has none, and gets his own.
  assert.match((await addressOf(KEY)).message, /log in/)
  assert.match((await server.login(address, 'account of ann')).text, /for the user ann/)
  await until(async () => await whoami(hub) === 'account of ann')
  assert.equal(await whoami(hub, OTHER), 'account of bob')
  assertNoToken(server, [hub.output(), ...await filesOf(hub.folder)], 'the gateway')

  // A login goes with its user at once, and a later one of the same name has none.
  const holders = async (): Promise<string> => JSON.stringify((JSON.parse(await readFile(hub.settingsPath, 'utf8')) as Json).upstreamTokens)
  assert.match(await holders(), /user ann/)
  const headers = { authorization: `Bearer ${ofAdmin.token}` }
  assert.equal((await manage(hub, 'DELETE', '/users/ann', undefined, headers)).status, 200)
  assert.equal((await manage(hub, 'POST', '/users', { username: 'ann', password: 'Same-12345' }, headers)).status, 201)
  const login = await manage(hub, 'POST', '/auth/login', { username: 'ann', password: 'Same-12345' }, {})
  const later = await manage(hub, 'POST', '/auth/keys', { name: 'later' }, { 'x-auth-token': String(at(login.body, 'token')) })
  const key = String((at(later.body, 'data') as Json).token)
  assert.match((await addressOf(key)).message, /log in/)
  assert.equal(await whoami(hub, OTHER), 'account of bob')
  await until(async () => !(await holders()).includes('user ann'), hub.output)
  assert.match(await holders(), /user bob/)
})

test('the login of an owner who is removed makes no further call; that of the next owner outlives a restart', async (t) => {
  const server = await startLoginServer(t)
  const guarded = { url: server.url, oauth: { issuer: server.issuer }, type: 'streamable-http', owner: 'ann' }
  const users = [{ username: 'ann', password: 'x', createdAt: new Date().toISOString() }]
  const hub = await startHub(t, { settings: settings({ guarded }, { users }) })
  await server.login(await waits(hub), 'account of ann')
  await isConnected(hub)
  const session = await Session.open(`${hub.url}/mcp/guarded`)
  assert.equal(text(await session.call('whoami')), 'account of ann')
  assert.equal((await manage(hub, 'DELETE', '/users/ann')).status, 200)
  assert.ok((await session.request('tools/call', { name: 'whoami', arguments: {} })).error, 'the call ran')
  await server.login(await waits(hub), 'another account')
  await isConnected(hub)
  await hub.stop()
  const restarted = await startHub(t, { folder: hub.folder })
  await isConnected(restarted)
  assert.equal(await whoami(restarted), 'another account')
})

/** Starts a gateway with a server at which each user logs in, and a user. @param more members of the server's config */
async function startForEve (t: Test, more: Json) {
  const server = await startLoginServer(t)
  const guarded = { url: server.url, oauth: { issuer: server.issuer }, type: 'streamable-http', isolation: 'user', ...more }
  const ofAdmin = bearerKey({ id: '44444444-4444-4444-8444-444444444444', name: 'admin', token: `thk_${'e'.repeat(64)}` })
  const hub = await startHub(t, { settings: { bearerKeys: [ofAdmin as unknown as Json], mcpServers: { guarded } } })
  const headers = { authorization: `Bearer ${ofAdmin.token}` }
  const password = 'Same-12345'
  assert.equal((await manage(hub, 'POST', '/users', { username: 'eve', password }, headers)).status, 201)
  const login = await manage(hub, 'POST', '/auth/login', { username: 'eve', password }, {})
  const asEve = { 'x-auth-token': String(at(login.body, 'token')) }
  return { server, guarded, hub, headers, asEve }
}

test('with isolation user, the first user to log in makes the server\'s lists known, on each route', async (t) => {
  const { server, hub, asEve } = await startForEve(t, { visibility: 'public' })
  const key = String(at((await manage(hub, 'POST', '/auth/keys', { name: 'k' }, asEve)).body, 'data', 'token'))
  const record = async (): Promise<unknown> => (await manage(hub, 'GET', '/servers/guarded', undefined, asEve)).body
  const address = async (): Promise<string> => String(at(await record(), 'data', 'oauth', 'authorizationUrl'))
  await until(async () => (await address()).startsWith('http'), hub.output)
  // Nobody has opened a route of the server yet.
  await server.login(await address(), 'account of eve')
  await until(async () => (at(await record(), 'data', 'tools') as unknown[]).length > 0, hub.output)
  assert.deepEqual(await (await Session.open(`${hub.url}/mcp`, { key })).tools(), ['guarded-whoami'])
})

test('who may no longer use a server sees no page of its login; nobody who is gone or may not use it ends one', async (t) => {
  const { server, guarded, hub, headers, asEve } = await startForEve(t, { sharedWithUsers: ['eve'] })
  const share = async (sharedWithUsers: string[]): Promise<void> => {
    assert.equal((await manage(hub, 'PUT', '/servers/guarded', { config: { ...guarded, sharedWithUsers } }, headers)).status, 200)
  }
  for (const end of ['unshare', 'remove']) {
    await share(['eve'])
    let address = ''
    await until(async () => {
      const { body } = await manage(hub, 'GET', '/servers/guarded', undefined, asEve)
      return (address = String(at(body, 'data', 'oauth', 'authorizationUrl'))).startsWith('http')
    }, hub.output)
    const browser = new Browser(hub.url)
    const { url } = await confirm(browser, address)
    if (end === 'unshare') await share([])
    else assert.equal((await manage(hub, 'DELETE', '/users/eve', undefined, headers)).status, 200)
    for (const link of end === 'unshare' ? [address, `${address}/continue`] : []) {
      const page = await browser.get(link)
      assert.deepEqual([page.status, /This login is not known/.test(page.text), page.text.includes('guarded')], [400, true, false], link)
    }
    const page = await server.authorize(url, 'account of eve', browser)
    assert.deepEqual([page.status, /The server or the account has changed/.test(page.text)], [400, true], page.text)
  }
  assert.equal(server.grants.authorization_code, undefined, 'no code was exchanged')
})
