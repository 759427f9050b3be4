// The gateway's own credentials: known by their prefix, or by their hash; never forwarded, never recorded, masked in logs.
import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import bcrypt from 'bcryptjs'
import { OwnCredentials } from '../../../plugins/base/secrets/own-credentials.ts'
import { maskToken, sha256 } from '../../../plugins/base/secrets/hash.ts'
import { readEnv } from '../../../schemas/read-env.ts'
import type { Env } from '../../../schemas/env.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { startUpstream, tool, type Upstream } from '../../fakes/fault-http.ts'
import { restApi, type RestApi } from '../../fakes/rest-api.ts'
import { appFor } from '../../helpers/app.ts'
import { send, Session, within } from '../../helpers/client.ts'
import { bearerKey, until } from '../../helpers/hub.ts'
import { modernRequest } from '../../helpers/modern-request.ts'
import { admin, password, World } from '../../helpers/oauth-world.ts'

const hex = 'a1b2c3d4'.repeat(8)
const random = 'Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF'
/** Keys of another gateway, which a file brought. */
const imported = { long: 'key-of-another-gateway/with=odd+characters', short: 'tiny-key', plain: 'a-plain-one-of-a-person' }

/** METRICS_TOKEN. */
const metrics = 'what-prometheus/sends.as+its-bearer'

const stored = (token: string, more: Partial<BearerKey> = {}): BearerKey =>
  ({ id: token, name: token, tokenHash: sha256(token), tokenMask: maskToken(token), ...more })
const keys = new Map([
  ['long', stored(imported.long)], ['short', stored(imported.short, { enabled: false })], ['plain', { id: 'p', name: 'p', token: imported.plain }]
])
const loginToken = (issuer: string): string =>
  ['{"alg":"HS256"}', JSON.stringify({ iss: issuer, sub: 'ann' }), 'signature'].map((part) => Buffer.from(part).toString('base64url')).join('.')

/** A value of a header in the forms in which a server could take a credential out of it. */
const forms = (secret: string): string[] => [
  secret,
  `Bearer ${secret}`,
  `bearer   ${secret}`,
  `Token token="${secret}", more`,
  `a=1; key=${secret}`,
  `https://user:${secret}@host/`,
  `Basic ${Buffer.from(`user:${secret}`).toString('base64')}`,
  `Basic ${Buffer.from(`${secret}:`).toString('base64url')}`,
  `=?base64?${Buffer.from(secret).toString('base64')}?=`,
  encodeURIComponent(secret).replaceAll('_', '%5F').replaceAll('-', '%2D')
]

test('credentials are found in a header, wherever they stand and in whatever form', async () => {
  const credentials = new OwnCredentials()
  credentials.setKeySource(() => keys)
  for (const secret of [`thk_${hex}`, `thl_${hex}`, `tht_${random}`, `thr_${random}`, ...Object.values(imported)]) {
    for (const form of forms(secret)) assert.ok(credentials.hasMatchIn(form), form)
  }
  for (const secret of [`thk_${hex}`, `tht_${random}`]) assert.ok(credentials.hasMatchIn(`x${secret}`), 'behind a letter')
  assert.ok(credentials.hasMatchIn(`Bearer ${loginToken('tool-hub')}`))
  for (const other of [
    '', 'Bearer secret', `Bearer ${loginToken('elsewhere')}`, 'athk_b', 'months_to_go', 'path_thing', '1.2.3', 'sk-live-0123456789abcdef',
    'Basic dXNlcjpwYXNz', imported.long.slice(0, -1), `${imported.short}x`, 'tiny', 'caf\u00e9', '%zz', 'y'.repeat(8_000)
  ]) assert.ok(!credentials.hasMatchIn(other), other.slice(0, 100))
})

test('credentials are masked in a text, and nothing else is', async () => {
  const credentials = new OwnCredentials()
  credentials.setKeySource(() => keys)
  const table: Array<[text: string, masked: string]> = [
    [`key thk_${hex}, and more`, 'key thk_••••, and more'],
    [`{"token":"tht_${random}"}`, '{"token":"tht_••••"}'],
    [`a thr_${random} thl_${hex} b`, 'a thr_•••• thl_•••• b'],
    ['thk_x', 'thk_••••'],
    ['the mask thk_12ab...cd34', 'the mask thk_12ab...cd34'],
    [`x=${imported.long}&y`, 'x=••••&y'],
    [`(${imported.short}), ${imported.plain}.`, '(••••), ••••.'],
    [`login ${loginToken('tool-hub')}.`, 'login ••••.'],
    [`login ${loginToken('elsewhere')}`, `login ${loginToken('elsewhere')}`],
    ['months_to_go and path_thing', 'months_to_go and path_thing'],
    ['tiny-keys and key-of-another-gateway', 'tiny-keys and key-of-another-gateway']
  ]
  for (const [text, masked] of table) assert.equal(credentials.mask(text), masked)
})

test('credentials are masked in a text in whatever encoding they stand there', async () => {
  const escaped = (text: string): string => [...text].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
  const odd = 'Zq3+/aB9"\\x/imported-key-0123456789'
  const credentials = new OwnCredentials('metrics-token-abcdef0123456789')
  credentials.setKeySource(() => new Map([...keys, ['odd', stored(odd)]]))
  const secrets = [`thk_${hex}`, `tht_${random}`, loginToken('tool-hub'), odd, imported.long, 'metrics-token-abcdef0123456789']
  for (const secret of secrets) {
    const json = JSON.stringify(secret).slice(1, -1)
    for (const form of [
      json, json.replaceAll('/', '\\/'), escaped(secret),
      escaped(secret.slice(0, 5)) + json.slice(JSON.stringify(secret.slice(0, 5)).length - 2),
      JSON.stringify(escaped(secret)).slice(1, -1), JSON.stringify(JSON.stringify({ a: secret })).slice(1, -1),
      encodeURIComponent(secret),
      [...secret].map((each) => `%${each.charCodeAt(0).toString(16)}`).join(''), escaped(encodeURIComponent(secret)),
      encodeURIComponent(json), JSON.stringify(`x://y?z=${encodeURIComponent(secret)}`).slice(1, -1)
    ]) {
      const text = `{"a":"${form}","b":"c\\u0064\\n%41","n":1.0}`
      const masked = credentials.mask(text)
      assert.match(masked, /^\{"a":".*••••.*","b":"c\\u0064\\n%41","n":1\.0\}$/, form)
      const { a } = JSON.parse(masked) as { a: string }
      for (const read of [a, decodeURIComponent(a)]) assert.ok(!read.includes(secret) && !read.includes(escaped(secret)), form)
    }
  }
  for (const text of ['{"a":"\\u0041\\u005c\\"%25%"}', 'C:\\new\\u00', '\\', '%', '{"a":"\\']) assert.equal(credentials.mask(text), text)
})

test('of many credentials in escapes each is masked, and a large text is no work', async () => {
  const credentials = new OwnCredentials()
  const text = JSON.stringify(Array.from({ length: 1_000 }, () => `thk_${hex}`)).replaceAll('thk', '\\u0074hk')
  assert.equal(credentials.mask(text), JSON.stringify(Array.from({ length: 1_000 }, () => 'thk_••••')))
})

test('a change of the keys counts at once', async () => {
  const credentials = new OwnCredentials()
  let now = new Map<string, BearerKey>()
  credentials.setKeySource(() => now)
  assert.ok(!credentials.hasMatchIn(imported.long))
  now = keys
  assert.ok(credentials.hasMatchIn(imported.long))
})

test('METRICS_TOKEN is one of them, however long it is', async () => {
  for (const token of ['metrics-token-abcdef0123456789', 'a token for the metrics', 'tiny-one', `${'0123456789abcdef'.repeat(50)}-last`]) {
    const credentials = new OwnCredentials(token)
    for (const form of forms(token)) assert.ok(credentials.hasMatchIn(form), form)
    assert.equal(credentials.mask(`it is ${token}, see`), 'it is ••••, see')
    assert.ok(!credentials.hasMatchIn('Bearer something-else'))
  }
})

interface Reached { world: World, upstream: Upstream, api: RestApi, secrets: Record<string, string> }

async function reached (t: Parameters<typeof appFor>[0], lines: string[] = []): Promise<Reached> {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const api = await restApi(t)
  const passthroughHeaders = ['X-A', 'X-Api-Key', 'Authorization']
  const hash = bcrypt.hashSync(password, 4)
  const localToken = `thl_${hex}`
  const app = await appFor(t, {
    users: [{ username: 'admin', password: hash, isAdmin: true, createdAt: '2026-01-01T00:00:00.000Z' }],
    bearerKeys: [bearerKey(), { id: 'i', name: 'imported', token: imported.long, enabled: true }],
    mcpServers: {
      files: { url: upstream.url, passthroughHeaders, visibility: 'public' },
      rest: {
        type: 'openapi',
        url: api.url,
        openapi: { schema: { openapi: '3.0.0', info: { title: 'x', version: '1' }, paths: { '/x': { get: { operationId: 'x' } } } }, passthroughHeaders },
        visibility: 'public'
      }
    },
    systemConfig: { oauthServer: { enabled: true } }
  }, readEnv({ JWT_SECRET: 'a secret of the test that is long enough', PORT: '0', METRICS_TOKEN: metrics }) as Env, {
    localToken,
    logger: { level: 'info', stream: { write: (line: string) => { lines.push(line) } } }
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const world = new World(app, (app.server.address() as AddressInfo).port, '')
  await until(() => ['files', 'rest'].every((name) => app.upstreams.get(name)?.status === 'connected'))
  const { access, refresh } = await world.tokens(admin)
  assert.match(access, /^tht_[\w-]{43}$/)
  assert.match(refresh, /^thr_[\w-]{43}$/)
  const secrets = {
    key: bearerKey().token, imported: imported.long, local: localToken, access, refresh, login: world.login(admin), metrics
  }
  return { world, upstream, api, secrets }
}

test('no header brings one to a server: by MCP of both eras, over plain HTTP, to an API', async (t) => {
  const { world, upstream, api, secrets } = await reached(t)
  const { key } = secrets
  const legacy = await Session.open(`${world.base}/mcp`, { key })
  const asks: Record<string, (headers: Record<string, string>) => Promise<unknown>> = {
    'a legacy client': async (headers) =>
      await legacy.post({ jsonrpc: '2.0', id: Math.random(), method: 'tools/call', params: { name: 'files-echo', arguments: {} } }, headers),
    'a modern client': async (headers) =>
      await send(`${world.base}/mcp`, modernRequest('tools/call', { key, headers, params: { name: 'files-echo', arguments: {} } })),
    'plain HTTP': async (headers) => await world.ask('POST', '/api/tools/files/echo', {}, headers),
    'an API, over plain HTTP': async (headers) => await world.ask('POST', '/api/tools/rest/x', {}, headers),
    'an API, by MCP': async (headers) =>
      await legacy.post({ jsonrpc: '2.0', id: Math.random(), method: 'tools/call', params: { name: 'rest-x', arguments: {} } }, headers)
  }
  for (const [way, ask] of Object.entries(asks)) {
    for (const [name, secret] of Object.entries(secrets)) {
      const [plain = '', inScheme = '', , quoted = '', , , inBasic = ''] = forms(secret)
      await within(`${way}, ${name}`, ask({ 'x-a': quoted, 'x-api-key': plain, 'mcp-param-note': inBasic }))
      if (way.includes('HTTP')) {
        for (const authorization of [inScheme, inBasic]) await within(`${way}, ${name}`, ask({ authorization, 'x-a': 'kept' }))
      }
    }
    await within(way, ask({ 'x-a': 'kept' }))
  }
  const received = [...upstream.received, ...api.seen].map(({ headers }) => JSON.stringify(headers))
  for (const [name, secret] of Object.entries(secrets)) {
    for (const form of [secret, ...forms(secret).slice(6)]) {
      assert.ok(!received.some((headers) => headers.includes(form.replace(/^Basic /, ''))), `${name}: ${form}`)
    }
  }
  for (const seen of [upstream.received, api.seen]) assert.ok(seen.some(({ headers }) => headers['x-a'] === 'kept'), 'others go on')
})

test('neither the log nor the audit has one', async (t) => {
  const lines: string[] = []
  const { world: { app }, secrets } = await reached(t, lines)
  for (const secret of Object.values(secrets)) {
    app.log.warn(`a line with ${secret}`)
    app.log.warn({ err: new Error(`an error with ${secret}`), more: { deep: `Bearer ${secret}` } }, 'failed')
    app.upstreamHooks.onLine('files', `a child prints ${secret}`)
  }
  const by = { username: 'admin' }
  for (const secret of Object.values(secrets)) app.audit.addChange(by, { entity: 'group', name: secret, after: { description: `with ${secret}` } })
  const { data } = await app.audit.list({ limit: 50 })
  const said = { ring: JSON.stringify(app.logs.list()), audit: JSON.stringify(data), written: lines.join('') }
  for (const [name, secret] of Object.entries(secrets)) {
    for (const [where, text] of Object.entries(said)) {
      assert.ok(!text.includes(secret), `${where}: ${name}`)
    }
  }
  assert.match(said.written, /a line with thk_••••/)
})
