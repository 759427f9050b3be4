// A byte order mark before a document is nothing, whoever reads it.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { parseJsonc } from '../../../cli/client-file.ts'
import { parseJsonArgument } from '../../../cli/commands/server-config.ts'
import { parseSettings } from '../../../db/json/parse.ts'
import { parseManifest } from '../../../plugins/management/bundles/manifest.ts'
import { CatalogueSource } from '../../../plugins/management/market/source.ts'
import type { FetchedResponse } from '../../../plugins/base/outbound/fetch.ts'
import type { Outbound } from '../../../plugins/base/outbound/outbound.ts'
import { EmbeddingsApi } from '../../../plugins/extensions/smart-routing/embeddings/api.ts'
import { ProviderClient } from '../../../plugins/identity/social/providers/provider.ts'
import { parseDocument } from '../../../plugins/upstream/openapi/describe/document.ts'
import { withoutBom } from '../../../protocol/text.ts'
import { appFor } from '../../helpers/app.ts'
import { upstreamLimits } from '../../../plugins/upstream/limits.ts'
import { baseLimits } from '../../../plugins/base/limits/limits.ts'

const mark = '\ufeff'
/** Whatever is asked for has this body. */
const answering = (text: string): Outbound => ({
  fetch: async (): Promise<FetchedResponse> => ({ status: 200, headers: {}, body: Buffer.from(mark + text) }) as unknown as FetchedResponse
}) as unknown as Outbound

test('of a text: one at its beginning, no other', async () => {
  for (const [written, read] of [
    [`${mark}{}`, '{}'], ['{}', '{}'], ['', ''], [mark, ''], [`${mark}${mark}a`, `${mark}a`], [`{"a":"${mark}"}`, `{"a":"${mark}"}`]
  ] as const) assert.equal(withoutBom(written), read)
})

test('files: settings, configurations of other clients, bundles, OpenAPI descriptions', async () => {
  assert.deepEqual({ ...parseSettings(Buffer.from(`${mark}{"mcpServers":{}}`), 'x.json') }, { mcpServers: {} })
  assert.deepEqual(parseJsonc(`${mark}{"servers":{}}`), { servers: {} })
  assert.deepEqual(parseJsonArgument(`${mark}{"command":"x"}`, 'x'), { command: 'x' })
  const manifest = {
    manifest_version: '0.3',
    name: 'n',
    version: '1.0.0',
    description: 'd',
    author: { name: 'a' },
    server: { type: 'node', entry_point: 'i.js', mcp_config: { command: 'node', args: [] } }
  }
  assert.equal(parseManifest(Buffer.from(mark + JSON.stringify(manifest))).name, 'n')
  for (const text of ['{"openapi":"3.0.0"}', 'openapi: "3.0.0"\n']) {
    assert.deepEqual(parseDocument(mark + text, upstreamLimits.openapi), { openapi: '3.0.0' })
  }
})

test('answers: catalogues, small and large, embeddings, login providers', async () => {
  for (const pad of ['', 'x'.repeat(2 * baseLimits.steppedBody)]) {
    const source = new CatalogueSource({ name: 'x', reportOutage: () => {}, outbound: answering(JSON.stringify({ a: 1, pad })) })
    assert.deepEqual((await source.ask({ key: 'k', url: 'http://x', convert: (value) => value }, 'ada')).value, { a: 1, pad })
  }
  const options = { url: 'http://x', model: 'm' } as ConstructorParameters<typeof EmbeddingsApi>[1]
  const api = new EmbeddingsApi(answering('{"data":[{"index":0,"embedding":[1,2]}]}'), options)
  assert.deepEqual(await api.embed(['a'], new AbortController().signal), [[1, 2]])
  assert.deepEqual(await new ProviderClient(answering('{"issuer":"x"}'), 'x').get('http://x'), { issuer: 'x' })
})

test('bodies of requests to the API', async (t) => {
  const app = await appFor(t, {})
  const payload = `${mark}{"username":"nobody","password":"wrong"}`
  const answer = await app.inject({ method: 'POST', url: '/api/auth/login', headers: { 'content-type': 'application/json' }, payload })
  assert.equal(answer.statusCode, 401, answer.body)
})
