// Searching by an embeddings API: what is sent to it and when, both rankings fused, outages, changed settings, bounds.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import type { FastifyInstance } from 'fastify'
import type { Storage } from '../../../db/store.ts'
import { MemoryCounters } from '../../../db/memory/counters.ts'
import { MemoryVectors } from '../../../db/memory/vectors.ts'
import { ApiEmbeddings } from '../../../plugins/extensions/smart-routing/embeddings/index.ts'
import { Embedder } from '../../../plugins/extensions/smart-routing/embeddings/embedder.ts'
import { vectorIdOf } from '../../../plugins/extensions/smart-routing/embeddings/texts.ts'
import { ShownTool } from '../../../plugins/extensions/smart-routing/shown-tools.ts'
import { BackOff } from '../../../plugins/extensions/smart-routing/embeddings/back-off.ts'
import { QueryComparer } from '../../../plugins/extensions/smart-routing/embeddings/query-comparer.ts'
import { embeddingOptionsOf } from '../../../plugins/extensions/smart-routing/embeddings/options.ts'
import { EmbeddingQuota } from '../../../plugins/extensions/smart-routing/embeddings/quota.ts'
import { EmbeddingsApi } from '../../fakes/embeddings-api.ts'
import { startUpstream, tool, type Upstream } from '../../fakes/fault-http.ts'
import { appFor } from '../../helpers/app.ts'
import { OutageLog } from '../../../plugins/base/limits/outage.ts'
import { at, KEY, names, settings, type Json } from '../../helpers/client.ts'
import { until } from '../../helpers/hub.ts'
import { openSession, type InjectedSession } from '../../helpers/inject.ts'
import { extensionsLimits } from '../../../plugins/extensions/limits.ts'

const apiKey = 'sk-never-to-be-seen-0123456789'
const described = (name: string, description: string): Json => tool(name, { description })
const tools = [
  described('forecast', 'Tells the weather of the next days'),
  described('send', 'Sends a letter'),
  described('ship', 'Ships a parcel')
]

interface World { app: FastifyInstance, api: EmbeddingsApi, upstream: Upstream, session: InjectedSession, log: string[] }
interface Given { env?: { EMBEDDING_DIMENSIONS_API_PASSTHROUGH?: boolean }, count?: number, refused?: RegExp }

/** @param more settings @param count further tools */
async function start (t: Test, more: Json = {}, { env = {}, count = 0, refused }: Given = {}): Promise<World> {
  const api = await new EmbeddingsApi().listen(t)
  api.refused = refused
  const many = Array.from({ length: count }, (_, n) => described(`thing_${n}`, `Does thing number ${n}`))
  const upstream = await startUpstream(t, { tools: [...tools, ...many] })
  const log: string[] = []
  const app = await appFor(t, settings({ up: { type: 'streamable-http', url: upstream.url, visibility: 'public' } }, {
    systemConfig: { smartRouting: { llmProviderBaseUrl: `${api.url}/`, llmProviderApiKey: apiKey, embeddingModel: 'small', ...more } }
  }), env, { logger: { level: 'trace', stream: { write: (line: string) => { log.push(line) } } } })
  await until(() => app.upstreams.get('up')?.status === 'connected')
  return { app, api, upstream, session: await openSession(app, '/mcp/$smart', KEY), log }
}

interface Answer { names: string[], scores: number[], mode: unknown, reason: unknown }

async function search (session: InjectedSession, query: string): Promise<Answer> {
  const { result, error } = await session.request('tools/call', { name: 'search_tools', arguments: { query } })
  assert.equal(error, undefined, JSON.stringify(error))
  const metadata = at(result, 'structuredContent', 'metadata')
  const tools = at(result, 'structuredContent', 'tools')
  const scores = (tools as Json[]).map(({ score }) => Number(score))
  return { names: names(tools), scores, mode: at(metadata, 'mode'), reason: at(metadata, 'reason') }
}
const fused = async (session: InjectedSession): Promise<void> => {
  await until(async () => (await search(session, 'weather')).mode === 'fused')
}

void test('tools are embedded once, in batches, and found by what they mean', async (t) => {
  const { api, session, upstream, app, log } = await start(t, {}, { count: 70 })
  await fused(session)
  const before = await search(session, 'umbrella')
  assert.equal(before.names[0], 'up-forecast', 'no word of it is in the tool')
  assert.equal(before.mode, 'fused')
  for (const query of ['umbrella', 'weather letter', 'flurb']) {
    const { scores } = await search(session, query)
    assert.equal(scores[0], 1, `${query}: the best one has 1, also where no word is found`)
    assert.deepEqual(scores, scores.toSorted((a, b) => b - a))
  }
  const ofTools = api.asked.filter(({ input }) => input[0]?.includes('(up)'))
  assert.deepEqual(ofTools.map(({ input }) => input.length), [32, 32, 9])
  assert.ok(api.asked.every(({ headers, model, dimensions }) =>
    headers.authorization === `Bearer ${apiKey}` && model === 'small' && dimensions === undefined))
  assert.equal(api.texts.filter((text) => text === 'umbrella').length, 1)
  await search(session, 'umbrella')
  assert.equal(api.texts.filter((text) => text === 'umbrella').length, 1, 'a question is embedded once')

  const asked = api.asked.length
  upstream.options.tools = [...upstream.options.tools ?? [], described('invoice', 'Writes an invoice')]
  await upstream.broadcast('notifications/tools/list_changed')
  await until(() => api.texts.some((text) => text.startsWith('invoice (up)')))
  assert.deepEqual(api.asked.slice(asked).map(({ input }) => input.length), [1], 'only what changed is embedded')
  const other = await openSession(app, '/mcp/$smart/up', KEY)
  await until(async () => (await search(other, 'umbrella')).mode === 'fused')
  assert.equal(api.texts.filter((text) => text.startsWith('send (up)')).length, 1, 'another view embeds nothing again')
  assert.ok(!log.join('').includes(apiKey))
})

void test('an API that is away or slow: by words within its time, and it says so', async (t) => {
  const { api, session, log } = await start(t)
  await fused(session)
  api.mode = 500
  const failed = await search(session, 'letter please')
  assert.deepEqual([failed.mode, failed.reason, failed.names[0]], ['words', 'the embeddings API is not available', 'up-send'])
  assert.equal((await search(session, 'weather')).mode, 'fused', 'what was embedded before is known')
  api.mode = 'slow'
  await until(async () => (await search(session, 'something slow')).reason === 'the embeddings API is slow')
  api.mode = 'good'
  api.release()
  await until(async () => (await search(session, 'something slow')).mode === 'fused')
  assert.equal(api.texts.filter((text) => text === 'something slow').length, 1, 'its late answer is used')
  assert.ok(log.some((line) => line.includes('it answered HTTP 500')))
  assert.ok(!log.join('').includes(apiKey))
})

void test('an API that failed is asked again when its time has come', async () => {
  let [now, asks, isAway] = [0, 0, true]
  const item = { key: 'send', text: JSON.stringify({ name: 'send', description: 'Sends' }) }
  const shown = new ShownTool('send', { provider: 'up', key: 'send', item }, { text: item.text })
  const id = vectorIdOf(shown)
  const vectors = new MemoryVectors()
  await vectors.put('c', [{ id, hash: id, embedding: [1, 0] }])
  const meaning = new QueryComparer({
    api: { embed: async (texts) => { asks++; if (isAway) throw new Error('away'); return texts.map(() => [1, 0]) } },
    backOff: new BackOff(() => now),
    vectors: async () => vectors,
    collection: 'c',
    isStored: () => true,
    isQueued: () => false,
    warn: (error) => { throw error }
  })
  const ask = async (question: string): Promise<unknown> => {
    const { reason, scores } = await meaning.compare(question, new Map([['send', shown]])) as { reason?: string, scores?: Map<ShownTool, number> }
    return reason ?? scores?.get(shown)
  }
  const away = 'the embeddings API is not available'
  assert.deepEqual([await ask('one'), await ask('two'), asks], [away, away, 1], 'it is not asked again at once')
  isAway = false
  now = 2_000
  assert.deepEqual([await ask('two'), await ask('one'), asks], [1, 1, 3])
  isAway = true
  assert.deepEqual([await ask('three'), await ask('two')], [away, 1], 'what was embedded before is known')
})

void test('an API that is away from the beginning, and comes', async (t) => {
  const { api, session } = await start(t)
  api.mode = 503
  const answer = await search(session, 'weather')
  assert.deepEqual([answer.mode, answer.names], ['words', ['up-forecast']])
  api.mode = 'good'
  await fused(session)
})

void test('settings that change: another model or other dimensions embed anew, none is words alone', async (t) => {
  const { app, api, session } = await start(t, { embeddingDimensions: 32 })
  await fused(session)
  assert.ok(api.asked.every(({ dimensions }) => dimensions === undefined), 'this model is not known to take dimensions')
  const set = async (more: Json): Promise<void> => {
    await app.settings.change(({ system }) => {
      const smartRouting = { ...system.smartRouting, ...more }
      return [{ entity: 'systemConfig', value: { ...system, smartRouting } }]
    })
  }
  const embedded = (): number => api.texts.filter((text) => text.startsWith('forecast (up)')).length
  await set({ embeddingModel: 'text-embedding-3-large' })
  await until(() => embedded() === 2)
  assert.equal(api.asked.at(-1)?.dimensions, 32)
  await set({ embeddingDimensions: 48 })
  await until(() => embedded() === 3)
  await until(() => api.asked.at(-1)?.dimensions === 48)
  await set({ embeddingModel: 'small', embeddingDimensionsApiPassthrough: true })
  await until(() => embedded() === 4)
  assert.equal(api.asked.at(-1)?.dimensions, 48)
  await fused(session)
  await set({ llmProviderBaseUrl: '' })
  const answer = await search(session, 'weather')
  assert.deepEqual([answer.mode, answer.reason], ['words', undefined])
  // Today's names and former ones are one.
  await app.settings.change(({ system }) => {
    const smartRouting = { openaiApiBaseUrl: api.url, openaiApiKey: apiKey, openaiApiEmbeddingModel: 'former' }
    return [{ entity: 'systemConfig', value: { ...system, smartRouting } }]
  })
  await fused(session)
  assert.equal(api.asked.at(-1)?.model, 'former')
})

void test('a text that the API refuses keeps no other from being embedded', async (t) => {
  const { session } = await start(t, {}, { refused: /^ship / })
  await fused(session)
  assert.equal((await search(session, 'umbrella')).names[0], 'up-forecast')
  assert.equal((await search(session, 'parcel')).names[0], 'up-ship', 'by words')
})

void test('views embed and compare what they see, and no more', async (t) => {
  const { app, api } = await start(t)
  const id = '33333333-3333-4333-8333-333333333333'
  const team = { id, name: 'team', owner: 'admin', servers: [{ name: 'up', tools: ['send', 'forecast'] }] }
  const hidden = await startUpstream(t, { tools: [described('umbrella', 'Opens an umbrella against the weather')] })
  await app.settings.change(() => [
    { entity: 'mcpServers', key: 'hidden', value: { type: 'streamable-http', url: hidden.url, visibility: 'public' } },
    { entity: 'groups', key: team.id, value: team }
  ])
  await until(() => app.upstreams.get('hidden')?.status === 'connected')
  const everything = await openSession(app, '/mcp/$smart', KEY)
  await fused(everything)
  await until(async () => (await search(everything, 'umbrella')).names[0] === 'hidden-umbrella')
  const group = await openSession(app, '/mcp/$smart/team', KEY)
  await until(async () => (await search(group, 'umbrella')).mode === 'fused')
  assert.deepEqual((await search(group, 'umbrella')).names.sort(), ['up-forecast', 'up-send'])
  assert.equal(api.texts.filter((text) => text.includes('(hidden)')).length, 1)
})

void test('the environment decides about dimensions before the setting', async (t) => {
  const base = { llmProviderBaseUrl: 'https://api.example/v1', embeddingDimensions: 8 }
  const sent = (more: object, passthrough?: boolean): number | undefined =>
    embeddingOptionsOf({ ...base, ...more }, passthrough)?.dimensions
  assert.deepEqual(
    [sent({}), sent({ embeddingModel: 'm' }), sent({ embeddingModel: 'm' }, true), sent({ embeddingModel: 'm', embeddingDimensionsApiPassthrough: true })],
    [8, undefined, 8, 8]
  )
  assert.equal(sent({ embeddingModel: 'm', embeddingDimensionsApiPassthrough: true }, false), undefined)
  assert.equal(sent({ embeddingModel: 'openai/text-embedding-3-large' }), 8)
  assert.equal(embeddingOptionsOf(base, undefined)?.url, 'https://api.example/v1/embeddings')
  assert.equal(embeddingOptionsOf({ llmProviderApiKey: 'k' }, undefined), undefined, 'without an address, nothing is sent anywhere')
  const { api, session } = await start(t, { embeddingDimensions: 16 }, { env: { EMBEDDING_DIMENSIONS_API_PASSTHROUGH: true } })
  await fused(session)
  assert.equal(api.asked[0]?.dimensions, 16)
})

void test('two gateways on one store of vectors embed each tool once', async (t) => {
  const vectors = new MemoryVectors()
  const counters = new MemoryCounters()
  const api = await new EmbeddingsApi().listen(t)
  const upstream = await startUpstream(t, { tools: Array.from({ length: 100 }, (_, n) => described(`thing_${n}`, `Thing ${n} of the weather`)) })
  const given = settings({ up: { type: 'streamable-http', url: upstream.url, visibility: 'public' } }, {
    systemConfig: { smartRouting: { llmProviderBaseUrl: api.url } }
  })
  const wrap = (storage: Storage): Storage => ({ ...storage, vectors, counters })
  const apps = await Promise.all([1, 2].map(async () => await appFor(t, given, {}, { wrap })))
  for (const app of apps) await until(() => app.upstreams.get('up')?.status === 'connected')
  const sessions = await Promise.all(apps.map(async (app) => await openSession(app, '/mcp/$smart', KEY)))
  await Promise.all(sessions.map(async (session) => { await until(async () => (await search(session, 'weather')).mode === 'fused') }))
  const ofTools = api.texts.filter((text) => text.includes('(up)'))
  assert.equal(ofTools.length, 100)
})

class WatchedVectors extends MemoryVectors {
  readonly used: string[][] = []
  override async markUsed (collection: string, ids: readonly string[]): Promise<void> {
    if (ids.length > 0) this.used.push([...ids])
    await super.markUsed(collection, ids)
  }
}

void test('vectors of tools that are there are marked as in use each day, and embedded again if they are gone', async () => {
  const hour = 60 * 60_000
  let now = 0
  const asked: string[] = []
  const vectors = new WatchedVectors()
  const tools = new Map(['send', 'ship'].map((name) => {
    const item = { key: name, text: JSON.stringify({ name, description: `Does ${name}` }) }
    return [name, new ShownTool(name, { provider: 'up', key: name, item }, { text: item.text })]
  }))
  const ids = [...tools.values()].map(vectorIdOf)
  const embedder = new Embedder({
    api: { embed: async (texts) => { asked.push(...texts); return texts.map(() => [1, 0]) } },
    backOff: new BackOff(),
    vectors: async () => vectors,
    collection: 'c',
    counters: new MemoryCounters(),
    ownerOf: () => undefined,
    warn: (error) => { throw error }
  }, () => now)
  const follow = async (): Promise<void> => {
    embedder.enqueueMissing(tools)
    await until(() => ids.every((id) => embedder.isStored(id) && !embedder.isQueued(id)))
  }
  await follow()
  assert.equal(asked.length, 2)
  now += 23 * hour
  await follow()
  assert.deepEqual(vectors.used, [], 'marked less than a day ago')
  now += 2 * hour
  await follow()
  assert.deepEqual(vectors.used, [ids])
  assert.equal(asked.length, 2)
  assert.equal(await vectors.removeUnused(-1, 10), 2)
  now += 25 * hour
  await follow()
  assert.equal((await vectors.findHashes('c', ids)).size, 2)
  assert.equal(asked.length, 4)
  await embedder.close()
})

void test('after a failure, and after the end of a gateway, embedding goes on before the lease is over', async () => {
  class Failing extends MemoryVectors {
    left = 1
    override async put (...given: Parameters<MemoryVectors['put']>): Promise<void> {
      if (this.left-- > 0) throw new Error('no connection')
      await super.put(...given)
    }
  }
  const item = { key: 'send', text: JSON.stringify({ name: 'send', description: 'Sends' }) }
  const shown = new ShownTool('send', { provider: 'up', key: 'send', item }, { text: item.text })
  const counters = new MemoryCounters()
  const make = (embed: (texts: readonly string[], signal: AbortSignal) => Promise<number[][]>): Embedder => {
    const vectors = new Failing()
    return new Embedder({
      api: { embed },
      backOff: new BackOff(),
      vectors: async () => vectors,
      collection: 'c',
      counters,
      ownerOf: () => undefined,
      warn: (error) => { throw error }
    })
  }
  // Its pauses keep no process alive.
  const alive = setInterval(() => {}, 1_000)
  let asks = 0
  const ended = make(async (_texts, signal) => await new Promise((_resolve, reject) => {
    asks++
    signal.addEventListener('abort', () => { reject(new Error('aborted')) })
  }))
  ended.enqueueMissing(new Map([['send', shown]]))
  await until(() => asks === 1)
  await ended.close()
  const other = make(async (texts) => texts.map(() => [1, 0]))
  other.enqueueMissing(new Map([['send', shown]]))
  await until(() => other.isStored(vectorIdOf(shown)), 'it waits for the lease')
  await other.close()
  clearInterval(alive)
})

void test('vectors that nobody uses are removed in small steps, also where embeddings are switched off', async () => {
  const steps: number[][] = []
  const vectors = Object.assign(new MemoryVectors(), {
    removeUnused: async (age: number, count: number) => steps.push([age, count]) < 2 ? count : 0
  })
  const embeddings = new ApiEmbeddings({
    options: () => undefined,
    outbound: { fetch: async () => { throw new Error('asks nobody') } },
    counters: new MemoryCounters(),
    vectors,
    separateVectors: { at: async () => vectors, close: async () => {} } as never,
    ownerOf: () => undefined,
    warn: () => {}
  })
  // Its pauses keep no process alive.
  const alive = setInterval(() => {}, 1_000)
  await embeddings.removeUnused()
  clearInterval(alive)
  const { unusedLifetime: unused, removalBatchSize: removed } = extensionsLimits.smartRouting.embeddings
  assert.deepEqual(steps, [[unused, removed], [unused, removed]])
  await embeddings.close()
  await embeddings.removeUnused()
  assert.equal(steps.length, 2, 'not after the end')
})

void test('back-off and quota', async () => {
  let now = 0
  const backOff = new BackOff(() => now)
  assert.equal(backOff.waitTime, 0)
  const waits = Array.from({ length: 9 }, () => { backOff.recordFailure(); return backOff.waitTime })
  assert.ok(waits.every((wait) => wait >= 750 && wait <= 75_000) && (waits[8] ?? 0) > 40_000)
  backOff.recordFailure(300_000)
  assert.equal(backOff.waitTime, 300_000)
  backOff.recordSuccess()
  assert.equal(backOff.waitTime, 0)
  const told: string[] = []
  const telling = new BackOff(() => now, new OutageLog((_level, sentence) => { told.push(sentence) }, { failing: 'ill', working: 'well' }, () => now))
  for (let n = 0; n < 5; n++) telling.recordFailure(0, new Error('HTTP 500'))
  for (let n = 0; n < 5; n++) telling.recordSuccess()
  assert.deepEqual(told.map((line) => line.slice(0, 13)), ['ill: HTTP 500', 'well again si'], 'the log hears of the first failure, and of the end')
  const quota = new EmbeddingQuota({ textsPerOwner: 2, textsInTotal: 4, quotaPeriod: 1_000 }, () => now)
  assert.deepEqual(['a', 'a', 'a', 'b', undefined, undefined].map((owner) => quota.take(owner)), [true, true, false, true, true, false])
  quota.refund('a')
  assert.equal(quota.take('a'), true)
  now += 1_000
  assert.equal(quota.take('a'), true)
})
