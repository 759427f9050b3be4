// What a server writes, whatever it is, arrives as it was written: 1,000 results of each route, and 1,000 items of its lists.
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { Raw, Refusal, startUpstream } from '../fakes/fault-http.ts'
import { connected, send, Session, settings, type Json } from '../helpers/client.ts'
import { startHub } from '../helpers/hub.ts'
import { jsonText, objectText, padded, seed, space } from '../helpers/json-texts.ts'
import { modernRequest } from '../helpers/modern-request.ts'

const cases = 1_000
const block = fc.oneof(
  fc.tuple(fc.string({ unit: 'binary', maxLength: 20 }), jsonText).map(([text, vendor]) => `{"type":"text","text":${JSON.stringify(text)},"vendor":${vendor.text}}`),
  fc.tuple(padded(jsonText), jsonText).map(([x, y]) => `{"x":${x.text},"type":"vendor/any","y":${y.text}}`)
)
/** The text of a tool's result, with members that no revision knows. */
const resultText = fc.record({
  blocks: fc.array(block, { maxLength: 3 }),
  structured: fc.option(objectText, { nil: undefined }),
  isError: fc.option(fc.boolean(), { nil: undefined }),
  vendor: padded(jsonText),
  meta: jsonText,
  between: space
}).map(({ blocks, structured, isError, vendor, meta, between }) => [
  `{${between}"content":[${blocks.join(`${between},`)}]`,
  ...structured === undefined ? [] : [`"structuredContent":${structured.text}`],
  ...isError === undefined ? [] : [`"isError":${isError}`],
  `"vendor":${vendor.text}`,
  `"_meta":{"vendor/x":${meta.text}}}`
].join(','))
const errorData = fc.tuple(fc.integer({ min: 1, max: 30_000 }), fc.string(), fc.jsonValue({ maxDepth: 3 }))

test('results and errors', async (t) => {
  let answer: Raw | Refusal = new Raw('{}')
  const upstream = await startUpstream(t, {
    tools: [{ name: 'any', inputSchema: { type: 'object' } }],
    on: ({ method }) => method === 'tools/call' ? answer : undefined
  })
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url } }) })
  await connected(hub, 1)
  const [single, merged] = [await Session.open(`${hub.url}/mcp/up`), await Session.open(`${hub.url}/mcp`)]
  const call = async (session: Session, name: string): Promise<string> =>
    (await session.post({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name, arguments: {} } })).body

  await fc.assert(fc.asyncProperty(resultText, async (text) => {
    answer = new Raw(text)
    for (const [session, name] of [[single, 'any'], [merged, 'up-any']] as const) {
      const body = await call(session, name)
      assert.ok(body.includes(`"result":${text}}`), `${text}\n${body}`)
    }
    const { headers, body: request } = modernRequest('tools/call', { params: { name: 'any', arguments: {} }, capabilities: {} })
    const { body } = await send(`${hub.url}/mcp/up`, { method: 'POST', headers, body: request })
    const { resultType, _meta: meta, ...rest } = (JSON.parse(/\{.*\}/s.exec(body)?.[0] ?? '') as { result: Json }).result
    const { _meta: sent, ...expected } = JSON.parse(text) as Json
    assert.deepEqual([resultType, rest], ['complete', expected])
    assert.deepEqual((meta as Json)['vendor/x'], (sent as Json)['vendor/x'])
  }), { seed, numRuns: cases, endOnFailure: true })

  await fc.assert(fc.asyncProperty(errorData, async ([code, message, data]) => {
    answer = new Refusal(code, message, data)
    for (const [session, name] of [[single, 'any'], [merged, 'up-any']] as const) {
      const { error } = JSON.parse(/\{.*\}/s.exec(await call(session, name))?.[0] ?? '') as { error: Json }
      assert.deepEqual(error, JSON.parse(JSON.stringify({ code, message, data })))
    }
  }), { seed, numRuns: cases / 10, endOnFailure: true })
})

test('items of lists', async (t) => {
  const vendors = fc.sample(fc.tuple(padded(jsonText), jsonText), { seed, numRuns: cases })
  const vendor = (at: number): string => {
    const [one, other] = vendors[at] ?? []
    return `"vendor":${one?.text},"_meta":{"vendor/x":${other?.text}}`
  }
  const quarter = cases / 4
  const list = (from: number, head: (at: number) => string): string[] =>
    Array.from({ length: quarter }, (_, at) => `{${head(at)},${vendor(from + at)}}`)
  const lists: Readonly<Record<string, readonly [member: string, items: readonly string[]]>> = {
    'tools/list': ['tools', list(0, (at) => `"name":"t${at}","inputSchema":{"type":"object"}`)],
    'prompts/list': ['prompts', list(quarter, (at) => `"name":"p${at}"`)],
    'resources/list': ['resources', list(2 * quarter, (at) => `"uri":"r://${at}","name":"r"`)],
    'resources/templates/list': ['resourceTemplates', list(3 * quarter, (at) => `"uriTemplate":"r://${at}/{x}","name":"r"`)]
  }
  const upstream = await startUpstream(t, {
    capabilities: { tools: {}, prompts: {}, resources: {} },
    on: ({ method }) => {
      const [member, items] = lists[method] ?? []
      return member === undefined ? undefined : new Raw(`{"${member}":[${items?.join()}]}`)
    }
  })
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/up`)
  for (const [method, [, items]] of Object.entries(lists)) {
    const { body } = await session.post({ jsonrpc: '2.0', id: 7, method, params: {} })
    for (const item of items) assert.ok(body.includes(item), `${method}: ${item}`)
  }
})
