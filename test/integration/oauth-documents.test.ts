// Clients that are described by a document of their own (Client ID Metadata Documents).
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { limits } from '../../plugins/limits/index.ts'
import { certificate, key } from '../fakes/tls-postgres.ts'
import { spawnHub, type Cleanup } from '../helpers/hub.ts'
import { allow, Browser, form, request } from '../helpers/oauth.ts'
import { callback, startWorld, type Json } from '../helpers/oauth-world.ts'

interface Typed { readonly type: string, readonly document: Json }
type Document = Json | string | { location: string } | Typed
interface Site { readonly url: string, readonly asked: string[], readonly documents: Map<string, Document> }

/** A site with documents, by their paths. */
async function startSite (t: Cleanup): Promise<Site> {
  const asked: string[] = []
  const documents: Site['documents'] = new Map()
  const server = createServer({ cert: certificate, key }, (incoming, reply) => {
    asked.push(incoming.url ?? '')
    const found = documents.get(incoming.url ?? '')
    if (found === undefined) { reply.writeHead(404).end(); return }
    if (typeof found === 'object' && 'location' in found) { reply.writeHead(302, { location: String(found.location) }).end(); return }
    if (typeof found === 'object' && 'type' in found) {
      reply.writeHead(200, { 'content-type': String(found.type) }).end(JSON.stringify(found.document))
      return
    }
    reply.writeHead(200, { 'content-type': 'application/json' }).end(typeof found === 'string' ? found : JSON.stringify(found))
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.after(() => { server.closeAllConnections(); server.close() })
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, documents }
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
  for (let count = 0; count <= limits.oauth.registrations; count++) {
    const { status } = await world.authorize(request(`https://127.0.0.1:1/${count}`).params)
    seen.add(status)
  }
  assert.deepEqual([...seen], [400, 429])
})

test('a client by its document', async (t) => {
  const site = await startSite(t)
  const id = `${site.url}/client`
  const good = { client_id: id, client_name: 'A document', redirect_uris: [callback], token_endpoint_auth_method: 'none' }
  const password = 'Same-1234'
  const file = join(t.testdir({}), 'ca.pem')
  await writeFile(file, certificate)
  const hub = await spawnHub(t, {
    settings: { mcpServers: {}, systemConfig: { oauthServer: { enabled: true } } },
    env: { NODE_EXTRA_CA_CERTS: file, OUTBOUND_ALLOW: '127.0.0.1', ADMIN_PASSWORD: password }
  })
  const urlOf = (clientId: string, more: Record<string, string> = {}): { url: string, verifier: string } => {
    const { params, verifier } = request(clientId, more)
    return { url: `${hub.url}/oauth/authorize?${new URLSearchParams(params).toString()}`, verifier }
  }

  await t.test('gets a token, and never "manage"', async () => {
    site.documents.set('/client', good)
    const { url, verifier } = urlOf(id, { scope: 'mcp manage' })
    const browser = new Browser(hub.url)
    const end = await allow(browser, url, { username: 'admin', password })
    const code = end.searchParams.get('code') ?? ''
    assert.ok(code !== '', end.href)
    const fields = { grant_type: 'authorization_code', code, client_id: id, redirect_uri: callback, code_verifier: verifier }
    const reply = await form(`${hub.url}/oauth/token`, fields)
    const body = await reply.json() as Json
    assert.deepEqual([reply.status, body.scope], [200, 'mcp'], JSON.stringify(body))
    const refreshed = await form(`${hub.url}/oauth/token`, { grant_type: 'refresh_token', refresh_token: String(body.refresh_token), client_id: id })
    assert.equal(refreshed.status, 200)
    assert.deepEqual(site.asked, ['/client'], 'it is fetched again for each request')
    // It is asked for each time: anybody can have its id.
    const again = await browser.get(urlOf(id).url)
    assert.match((await browser.get(again.location ?? '')).text, /name="decision"/)
  })

  await t.test('another redirect URI than those in it', async () => {
    const { url } = urlOf(id, { redirect_uri: 'https://evil.example/' })
    const { status, location } = await new Browser(hub.url).get(url)
    assert.deepEqual([status, location], [400, undefined])
  })

  await t.test('documents that are none', async () => {
    const cases: Record<string, Json | string> = {
      other: { ...good },
      javascript: { ...good, client_id: `${site.url}/javascript`, redirect_uris: ['javascript:alert(1)'] },
      mixed: { ...good, client_id: `${site.url}/mixed`, redirect_uris: [callback, 'http://a.example/'] },
      none: { client_id: `${site.url}/none` },
      secret: { ...good, client_id: `${site.url}/secret`, client_secret: 'secret' },
      method: { ...good, client_id: `${site.url}/method`, token_endpoint_auth_method: 'client_secret_post' },
      large: { ...good, client_id: `${site.url}/large`, padding: 'x'.repeat(limits.oauth.document) },
      list: '[]',
      text: 'hello',
      empty: '',
      moved: { location: 'https://evil.example/' },
      'moved-here': { location: `${site.url}/client` }
    }
    for (const [name, document] of Object.entries(cases)) {
      site.documents.set(`/${name}`, document)
      const { status, location, text } = await new Browser(hub.url).get(urlOf(`${site.url}/${name}`).url)
      assert.deepEqual([status, location], [400, undefined], name)
      assert.doesNotMatch(text, /<script|href="javascript/, name)
    }
    assert.equal((await new Browser(hub.url).get(urlOf(`${site.url}/absent`).url)).status, 400)
  })

  await t.test('no redirect is followed, and JSON is called so; what is refused is asked for once', async () => {
    const at = (name: string): Json => ({ ...good, client_id: `${site.url}/${name}` })
    site.documents.set('/target', at('moved-to'))
    site.documents.set('/moved-to', { location: `${site.url}/target` })
    site.documents.set('/html', { type: 'text/html', document: at('html') })
    site.documents.set('/plain', { type: 'text/plain; charset=application/json', document: at('plain') })
    for (const name of ['moved-to', 'html', 'plain', 'gone']) {
      site.asked.length = 0
      const { status, location } = await new Browser(hub.url).get(urlOf(`${site.url}/${name}`).url)
      assert.deepEqual([status, location, site.asked], [400, undefined, [`/${name}`]])
    }
    for (const [name, type] of [['utf8', 'application/json; charset=utf-8'], ['named', 'application/client-metadata+json']] as const) {
      site.documents.set(`/${name}`, { type, document: at(name) })
      assert.match((await new Browser(hub.url).get(urlOf(`${site.url}/${name}`).url)).location ?? '', /interaction/, name)
    }
  })
})
