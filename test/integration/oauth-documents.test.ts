// Clients that are described by a document of their own (Client ID Metadata Documents).
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { test } from 'tap'
import { certificate, key } from '../fakes/tls-postgres.ts'
import { spawnHub, type Cleanup } from '../helpers/hub.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { listen } from '../helpers/listen.ts'
import { allow, Browser, form, request, type Visit } from '../helpers/oauth.ts'
import { answerOf, callback, startWorld, type Json } from '../helpers/oauth-world.ts'
import { identityLimits } from '../../plugins/identity/limits.ts'

interface Reply { readonly status?: number, readonly headers?: Record<string, string>, readonly body?: string }
interface Site { readonly url: string, readonly asked: string[], readonly replies: Map<string, Reply> }

const json = (document: unknown, type = 'application/json'): Reply => ({ headers: { 'content-type': type }, body: JSON.stringify(document) })
const movedTo = (location: string): Reply => ({ status: 302, headers: { location } })

/** A site with documents, by their paths. */
async function startSite (t: Cleanup): Promise<Site> {
  const asked: string[] = []
  const replies: Site['replies'] = new Map()
  const server = createServer({ cert: certificate, key }, ({ url = '' }, reply) => {
    asked.push(url)
    const { status = 200, headers, body } = replies.get(url) ?? { status: 404 }
    reply.writeHead(status, headers).end(body)
  })
  return { url: `https://127.0.0.1:${await listen(t, server)}`, asked, replies }
}

test('a document at a private address is never fetched', async (t) => {
  const site = await startSite(t)
  const world = await startWorld(t)
  for (const id of [`${site.url}/client`, 'https://169.254.169.254/latest', 'https://localhost/client', 'https://[::1]/client', 'https://10.0.0.1/']) {
    const { status, location } = await world.authorize(request(id).params)
    assert.deepEqual([status, location], [400, undefined], id)
  }
  assert.deepEqual(site.asked, [])
})

test('what may not be a client id, or not now, is not fetched', async (t) => {
  const world = await startWorld(t, { env: { OUTBOUND_ALLOW: '127.0.0.1' } })
  const site = await startSite(t)
  for (const id of [
    site.url.replace('https:', 'http:'), `${site.url}/client#fragment`, `${site.url.replace('//', '//user:pw@')}/client`, `${site.url}/a/../client`
  ]) assert.deepEqual([(await world.authorize(request(id).params)).status], [400], id)
  for (const oauthServer of [{ requireClientSecret: true }, { dynamicRegistration: { enabled: false } }]) {
    await world.configure({ requireClientSecret: false, dynamicRegistration: { enabled: true }, ...oauthServer })
    assert.equal((await world.authorize(request(`${site.url}/client`).params)).status, 400)
  }
  assert.deepEqual(site.asked, [])
})

test('fetching documents counts as registering clients', async (t) => {
  const world = await startWorld(t)
  const seen = new Set<number>()
  for (let count = 0; count <= identityLimits.oauth.registrations; count++) {
    const { status } = await world.authorize(request(`https://127.0.0.1:1/${count}`).params)
    seen.add(status)
  }
  assert.deepEqual([...seen], [400, 429])
})

test('a client by its document', async (t) => {
  const site = await startSite(t)
  const id = `${site.url}/client`
  /** A document that is right, at this path. */
  const good = (name = 'client', more: Json = {}): Json =>
    ({ client_id: `${site.url}/${name}`, client_name: 'A document', redirect_uris: [callback], token_endpoint_auth_method: 'none', ...more })
  const password = 'Same-1234'
  const file = join(await temporaryFolder(t), 'ca.pem')
  await writeFile(file, certificate)
  // Node reads the certificates of its own authorities when it starts.
  const hub = await spawnHub(t, {
    settings: { mcpServers: {}, systemConfig: { oauthServer: { enabled: true } } },
    env: { NODE_EXTRA_CA_CERTS: file, OUTBOUND_ALLOW: '127.0.0.1', ADMIN_PASSWORD: password }
  })
  const urlOf = (params: Record<string, string>): string => `${hub.url}/oauth/authorize?${new URLSearchParams(params).toString()}`
  const asked = async (name: string, more: Record<string, string> = {}): Promise<Visit> => {
    site.asked.length = 0
    return await new Browser(hub.url).get(urlOf(request(`${site.url}/${name}`, more).params))
  }
  site.replies.set('/client', json(good()))

  await t.test('gets a token, and never "manage"', async () => {
    const { params, verifier } = request(id, { scope: 'mcp manage' })
    const browser = new Browser(hub.url)
    const end = await allow(browser, urlOf(params), { username: 'admin', password })
    const code = end.searchParams.get('code') ?? ''
    assert.ok(code !== '', end.href)
    const fields = { grant_type: 'authorization_code', code, client_id: id, redirect_uri: callback, code_verifier: verifier }
    const { status, body } = await answerOf(await form(`${hub.url}/oauth/token`, fields))
    assert.deepEqual([status, body.scope], [200, 'mcp'], JSON.stringify(body))
    const refreshed = await form(`${hub.url}/oauth/token`, { grant_type: 'refresh_token', refresh_token: String(body.refresh_token), client_id: id })
    assert.equal(refreshed.status, 200)
    assert.deepEqual(site.asked, ['/client'], 'it is fetched again for each request')
    // It is asked for each time: anybody can have its id.
    const again = await browser.get(urlOf(request(id).params))
    assert.match((await browser.get(again.location ?? '')).text, /name="decision"/)
  })

  await t.test('another redirect URI than those in it', async () => {
    const { status, location } = await asked('client', { redirect_uri: 'https://evil.example/' })
    assert.deepEqual([status, location], [400, undefined])
  })

  await t.test('documents that are none are refused, and no redirect is followed; each is asked for once', async () => {
    const cases: Record<string, Reply | undefined> = {
      other: json(good()),
      javascript: json(good('javascript', { redirect_uris: ['javascript:alert(1)'] })),
      mixed: json(good('mixed', { redirect_uris: [callback, 'http://a.example/'] })),
      none: json({ client_id: `${site.url}/none` }),
      secret: json(good('secret', { client_secret: 'secret' })),
      method: json(good('method', { token_endpoint_auth_method: 'client_secret_post' })),
      large: json(good('large', { padding: 'x'.repeat(identityLimits.oauth.document) })),
      list: json([]),
      text: json('hello'),
      empty: { headers: { 'content-type': 'application/json' } },
      html: json(good('html'), 'text/html'),
      plain: json(good('plain'), 'text/plain; charset=application/json'),
      elsewhere: movedTo('https://evil.example/'),
      here: movedTo(id),
      moved: movedTo(`${site.url}/target`),
      'no-uris': json(good('no-uris', { redirect_uris: null })),
      unknown: json(good('unknown', { scope: 'read:stuff' })),
      absent: undefined
    }
    site.replies.set('/target', json(good('moved')))
    for (const [name, reply] of Object.entries(cases)) {
      if (reply) site.replies.set(`/${name}`, reply)
      const { status, location, text } = await asked(name)
      assert.deepEqual([status, location, site.asked], [400, undefined, [`/${name}`]], name)
      assert.doesNotMatch(text, /<script|href="javascript/, name)
    }
  })

  await t.test('is read as a registration is, with members that stand for nothing, and as JSON under its other names', async () => {
    const absent = { client_uri: null, logo_uri: '', tos_uri: null, jwks_uri: '', jwks: null, scope: '', contacts: null, grant_types: null }
    for (const [name, more, type] of [
      ['nulls', absent], ['no-method', { token_endpoint_auth_method: '' }], ['no-secret', { client_secret: null, client_secret_expires_at: null }],
      ['scopes', { scope: 'profile manage offline_access' }], ['signed', { id_token_signed_response_alg: 'RS256', require_auth_time: 'no' }],
      ['utf8', {}, 'application/json; charset=utf-8'], ['named', {}, 'application/client-metadata+json']
    ] as Array<[string, Json, string?]>) {
      site.replies.set(`/${name}`, json(good(name, more), type))
      assert.match((await asked(name, { scope: 'mcp' })).location ?? '', /interaction/, name)
    }
  })
})
