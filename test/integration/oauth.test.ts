// The authorization server on several replicas, and what is left of its secrets. Run by `npm run test:system`; it needs PostgreSQL.
// test/measure/oauth-tokens.test.ts measures what many tokens cost.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { startReplica } from '../fakes/replica.ts'
import { initialize, send, Session, settings, text, within } from '../helpers/client.ts'
import { cluster, database } from '../helpers/database.ts'
import { spawnHub } from '../helpers/hub.ts'
import { admin, assertDead, redeem, redirectUri, startReplicas, statusOf, Visitor } from '../helpers/oauth-replicas.ts'
import { allow, Browser, form, register, request, tokensFor } from '../helpers/oauth.ts'

test('two replicas behind one address', async (t) => {
  const { url, hubs } = await startReplicas(t, startReplica)
  const [a, b] = hubs
  const { client_id: clientId = '' } = await register(url)
  const visitor = new Visitor(url, clientId)

  await t.test('each step of a login may be at another one, and the token counts on both', async () => {
    const tokens = await tokensFor(url, admin, { resource: `${url}/mcp` })
    for (const hub of hubs) {
      const session = await Session.open(`${hub.url}/mcp`, { key: tokens.access_token })
      assert.equal(text(await session.call('fake-echo', { message: 'hi' })), 'hi')
      await session.end()
    }
  })

  await t.test('a revocation on one ends requests and streams on the other', async () => {
    const tokens = (await redeem(a, await visitor.code())).body
    const session = await Session.open(`${b.url}/mcp`, { key: tokens.access_token })
    const stream = await session.listen()
    const call = await session.start({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'fake-slow', arguments: {} } })
    const reply = await form(`${a.url}/oauth/revoke`, { token: tokens.access_token, client_id: clientId })
    assert.equal(reply.status, 200)
    assert.equal(await statusOf(a, tokens.access_token), 401)
    await within('the end of the stream', stream.done)
    await within('the end of the call', call.done)
    await assertDead(hubs, visitor, tokens)
  })

  const times = 20
  for (const [what, fields] of [
    ['redemptions of one code', async () => await visitor.code()],
    ['refreshes with one token', async () => visitor.refresh((await redeem(b, await visitor.code())).body)]
  ] as const) {
    await t.test(`of ${times} ${what} over both one succeeds, and its tokens are of no use then`, async () => {
      const body = await fields()
      const answers = await Promise.all(Array.from({ length: times }, async (_, n) => await redeem(n % 2 === 0 ? a : b, body)))
      const [winner, ...others] = answers.filter(({ status }) => status === 200)
      assert.ok(winner, 'none succeeded')
      assert.deepEqual(others, [])
      for (const { status, body: { error } } of answers) if (status !== 200) assert.deepEqual([status, error], [400, 'invalid_grant'])
      await assertDead(hubs, visitor, winner.body)
    })
  }

  for (const hub of hubs) {
    assert.equal(await hub.stop(), 0)
    // Nothing above is an error of the gateway.
    assert.doesNotMatch(hub.output(), /"level":(50|60)/)
  }
})

// ---- secrets --------------------------------------------------------------------------------------

/** None of these texts holds one of the secrets: as it stands, in hex, or in base64. @param where they stand, for the message */
function assertAbsent (texts: readonly string[], secrets: Readonly<Record<string, string>>, where: string): void {
  for (const [what, secret] of Object.entries(secrets)) {
    assert.ok(secret.length >= 16, `no ${what}`)
    const bytes = Buffer.from(secret)
    const forms = [secret, encodeURIComponent(secret), bytes.toString('hex'), bytes.toString('base64').replace(/=*$/, '').slice(0, -2)]
    for (const one of forms) {
      const found = texts.find((each) => each.includes(one))
      assert.equal(found, undefined, `${where} holds the ${what}: ${found?.slice(0, 1_000)}`)
    }
  }
}

/** The whole flow of a confidential client. @returns its secrets by their names, and what the browser was shown */
async function wholeFlow (url: string): Promise<{ secrets: Record<string, string>, pages: string[] }> {
  const client = await register(url, {
    token_endpoint_auth_method: 'client_secret_post',
    grant_types: ['authorization_code', 'refresh_token']
  })
  const { client_id: clientId = '', client_secret: secret = '', registration_access_token: registration = '' } = client
  const { verifier, params } = request(clientId)
  const browser = new Browser(url)
  const address = `${url}/oauth/authorize?${new URLSearchParams(params).toString()}`
  const asked = await browser.get(address)
  const login = await browser.get(new URL(asked.location ?? '', address).href)
  await browser.submit(login, { username: admin.username, password: 'Wrong-Canary-Password-1' }, '/login')
  const code = (await allow(browser, address, admin)).searchParams.get('code') ?? ''
  const own = { client_id: clientId, client_secret: secret }
  const fields = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier, ...own }
  const first = (await redeem({ url }, fields)).body
  const second = (await redeem({ url }, { grant_type: 'refresh_token', refresh_token: first.refresh_token ?? '', ...own })).body
  await fetch(`${url}/oauth/userinfo`, { headers: { authorization: `Bearer ${second.access_token}` } })
  assert.equal((await send(`${url}/mcp`, { key: second.access_token, body: initialize() })).status, 200)
  await fetch(`${url}/oauth/register/${clientId}`, { headers: { authorization: `Bearer ${registration}` } })
  // Refusals are what gets logged.
  await redeem({ url }, { ...fields, code: `${code}x` })
  await redeem({ url }, { ...fields, client_secret: `${secret}x` })
  await form(`${url}/oauth/token?code=${code}&client_secret=${secret}`, fields)
  await send(`${url}/mcp`, { key: `${second.access_token}x`, body: initialize() })
  const cookies = browser.visits.flatMap(({ headers }) => headers.getSetCookie())
    .flatMap((line) => /^[^=]*session=([^;]{16,})/.exec(line)?.[1] ?? [])
  assert.ok(cookies.length > 0, 'no session cookie was set')
  const sessions = Object.fromEntries(cookies.map((cookie, n) => [`session cookie ${n}`, cookie]))
  return {
    secrets: {
      code,
      'access token': first.access_token,
      'refresh token': first.refresh_token ?? '',
      'second access token': second.access_token,
      'second refresh token': second.refresh_token ?? '',
      'client secret': secret,
      'registration token': registration,
      verifier,
      password: admin.password,
      'wrong password': 'Wrong-Canary-Password-1',
      ...sessions
    },
    // Of a redirect, the body repeats the address, and is not shown.
    pages: browser.visits.flatMap((visit) => visit.location === undefined ? [visit.text] : [])
  }
}

/** Sends secrets to all endpoints, in right places and in wrong ones, while the gateway cannot answer. */
async function provoke (url: string, secrets: Readonly<Record<string, string>>): Promise<void> {
  const values = Object.values(secrets)
  const json = { 'content-type': 'application/json' }
  for (const value of values) {
    const bearer = { authorization: `Bearer ${value}` }
    const basic = { authorization: `Basic ${Buffer.from(`${value}:${value}`).toString('base64')}` }
    const fields = { client_id: value, client_secret: value, redirect_uri: redirectUri, code_verifier: value }
    await form(`${url}/oauth/token`, { ...fields, grant_type: 'authorization_code', code: value })
    await form(`${url}/oauth/token`, { ...fields, grant_type: 'refresh_token', refresh_token: value }, basic)
    await form(`${url}/oauth/revoke`, { token: value }, basic)
    await fetch(`${url}/oauth/userinfo`, { headers: bearer })
    await fetch(`${url}/oauth/register/${value}`, { headers: bearer })
    await fetch(`${url}/oauth/register/x`, { method: 'PUT', headers: { ...bearer, ...json }, body: JSON.stringify({ client_secret: value }) })
    await fetch(`${url}/oauth/register`, { method: 'POST', headers: { ...bearer, ...json }, body: `{"client_secret": "${value}"` })
    const query = new URLSearchParams({ ...request(value).params, state: value, access_token: value, code: value }).toString()
    await fetch(`${url}/oauth/authorize?${query}`, { redirect: 'manual', headers: { cookie: `tool-hub-session=${value}` } })
    await form(`${url}/oauth/interaction/${value}/login`, { username: value, password: value, csrf: value }, { origin: new URL(url).origin })
    await fetch(`${url}/api/servers?token=${value}`, { headers: { ...bearer, 'x-auth-token': value } })
    await fetch(`${url}/api/auth/login`, { method: 'POST', headers: json, body: JSON.stringify({ username: 'admin', password: value }) })
    await send(`${url}/mcp`, { key: value, body: initialize() })
  }
}

test('no secret of a flow stands in plain anywhere', async (t) => {
  const env = { LOG_LEVEL: 'trace' }
  const written = settings({}, { systemConfig: { oauthServer: { enabled: true } } })

  await t.test('in a database, in logs, on pages', async (t) => {
    const server = await cluster(t, { fsync: 'off' })
    const db = await database(t, server)
    const hub = await startReplica(t, db.url, { settings: written, env })
    const { secrets, pages } = await wholeFlow(hub.url)
    await provoke(hub.url, secrets)
    await server.stop('immediate')
    await provoke(hub.url, secrets)
    const errors = hub.output().split('\n').filter((line) => line.includes('"stack"'))
    assert.ok(errors.length > Object.keys(secrets).length, 'next to nothing was logged')
    await server.start()
    const tables = await db.query<{ name: string }>(
      "SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) AS name FROM information_schema.tables " +
      "WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')"
    )
    const dump: string[] = []
    for (const { name } of tables) {
      const rows = await db.query<{ row: string }>(`SELECT each::text AS row FROM ${name} each`)
      dump.push(`${name}: ${rows.map(({ row }) => row).join('\n')}`)
    }
    const hash = createHash('sha256').update(secrets['second access token'] ?? '').digest('hex')
    assert.ok(dump.some((each) => each.includes(hash)), 'the dump does not hold the tokens at all')
    t.comment(`${tables.length} tables, ${dump.join('').length} characters, ${hub.output().length} of the log, ${pages.length} answers`)
    assertAbsent(dump, secrets, 'the database')
    assertAbsent([hub.output()], secrets, 'the log')
    assertAbsent(pages, secrets, 'a page')
  })

  await t.test('in a settings file, in logs, on pages', async () => {
    const hub = await spawnHub(t, { settings: written, env: { ...env, ADMIN_PASSWORD: admin.password } })
    const { secrets, pages } = await wholeFlow(hub.url)
    await provoke(hub.url, secrets)
    const file = await readFile(hub.settingsPath, 'utf8')
    assert.match(file, /"oauthTokens"/)
    assertAbsent([file], secrets, 'the settings file')
    assertAbsent([hub.output()], secrets, 'the log')
    assertAbsent(pages, secrets, 'a page')
  })
})
