// Embedding servers that an operator may run, with their requests and answers as docs/search.md shows them.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { readFileSync } from 'node:fs'
import { test, type Test } from 'tap'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { appFor } from '../../helpers/app.ts'
import { at, KEY, names, settings, type Json } from '../../helpers/client.ts'
import { until } from '../../helpers/hub.ts'
import { openSession } from '../../helpers/inject.ts'
import { listen } from '../../helpers/listen.ts'

/** A vector for a text: about the weather, or not. */
const vectorOf = (input: string): number[] => /weather|umbrella/i.test(input) ? [0.6, 0.8, 0] : [0.8, 0, 0.6]
const usage = { prompt_tokens: 9, total_tokens: 9 }

/** The answer of each server to `{model, input}`. */
const servers: Record<string, { model: string, answer: (model: string, input: string[]) => Json }> = {
  Ollama: {
    model: 'nomic-embed-text',
    answer: (model, input) => (
      { object: 'list', data: input.map((each, index) => ({ object: 'embedding', embedding: vectorOf(each), index })), model, usage }
    )
  },
  'llama.cpp': {
    model: 'nomic-embed-text-v1.5',
    answer: (model, input) => (
      { model, object: 'list', usage, data: input.map((each, index) => ({ embedding: vectorOf(each), index, object: 'embedding' })) }
    )
  },
  'text-embeddings-inference': {
    model: 'BAAI/bge-small-en-v1.5',
    answer: (model, input) => (
      { object: 'list', data: input.map((each, index) => ({ object: 'embedding', embedding: vectorOf(each), index })), model, usage }
    )
  }
}

interface Asked { path: string, key: string | undefined, body: { model: string, input: string[] } & Json }

async function start (t: Test, answer: (model: string, input: string[]) => Json): Promise<{ url: string, asked: Asked[] }> {
  const asked: Asked[] = []
  const server = createServer((req, res) => {
    void text(req).then((json) => {
      const body = JSON.parse(json) as Asked['body']
      asked.push({ path: req.url ?? '', key: req.headers.authorization, body })
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer(body.model, body.input)))
    })
  })
  return { url: `http://127.0.0.1:${await listen(t, server)}/v1`, asked }
}

for (const [name, { model, answer }] of Object.entries(servers)) {
  void test(`${name} is an embeddings API: tools are embedded when their list arrives, before any search`, async (t) => {
    const api = await start(t, answer)
    const upstream = await startUpstream(t, {
      tools: [tool('forecast', { description: 'Tells the weather' }), tool('send', { description: 'Sends a letter' })]
    })
    const app = await appFor(t, settings({ up: { type: 'streamable-http', url: upstream.url, visibility: 'public' } }, {
      systemConfig: { smartRouting: { llmProviderBaseUrl: api.url, embeddingModel: model } }
    }))
    await until(() => api.asked.length > 0)
    const [first] = api.asked
    assert.deepEqual([first?.path, first?.key], ['/v1/embeddings', undefined])
    assert.deepEqual(Object.keys(first?.body ?? {}), ['model', 'input'])
    assert.equal(first?.body.model, model)
    assert.deepEqual(first.body.input.map((each) => each.split('\n')[0]), ['forecast (up)', 'send (up)'])
    const session = await openSession(app, '/mcp/$smart', KEY)
    await until(async () => {
      const { result } = await session.request('tools/call', { name: 'search_tools', arguments: { query: 'umbrella' } })
      if (at(result, 'structuredContent', 'metadata', 'mode') !== 'fused') return false
      assert.equal(names(at(result, 'structuredContent', 'tools') as Json[])[0], 'up-forecast')
      return true
    })
  })
}

void test('docs/search.md shows the model of each server', () => {
  const page = readFileSync(new URL('../../../docs/search.md', import.meta.url), 'utf8')
  for (const [name, { model }] of Object.entries(servers)) {
    assert.ok(page.includes(name), name)
    assert.ok(page.includes(model), model)
  }
  return Promise.resolve()
})
