import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { bytesInSteps } from '../../db/json/steps.ts'
import { documentPieces, documentText } from '../../db/document-text.ts'
import { inTextOrder, orderedObject } from '../../db/order.ts'

test('the text of a document is its JSON in lines', async () => {
  const name = fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'mcpServers', 'users', '7', ''))
  const document = fc.dictionary(name, fc.jsonValue({ maxDepth: 4 }))
  await fc.assert(fc.asyncProperty(document, async (value) => {
    const expected = `${JSON.stringify(value, null, 2)}\n`
    assert.equal(documentText(value), expected)
    assert.equal((await bytesInSteps(documentPieces(value))).toString(), expected)
  }), { numRuns: 1_000 })
  for (const section of [[undefined], { left: undefined }, { left: undefined, kept: [] }, undefined]) {
    assert.equal(documentText({ section, other: 1 }), `${JSON.stringify({ section, other: 1 }, null, 2)}\n`)
  }
})

test('and so is that of one with large and with many entries, at every depth', async () => {
  const many = (value: unknown): unknown[] => Array.from({ length: 150 }, () => value)
  let nested: unknown = { long: 'x'.repeat(5_000), empty: [{}, [], ''], 2: 'b', 1: 'a' }
  for (let depth = 0; depth < 12; depth++) nested = depth % 2 === 0 ? [nested, depth, null] : { before: many(depth), nested, [depth]: {} }
  const large = { nested, list: many({ a: [1] }), members: Object.fromEntries(many(0).map((_, at) => [`m${at % 2 === 0 ? at : ''}${at}`, many(at)])) }
  const document = { other: 'y'.repeat(3_000), mcpServers: { a: { command: 'a' }, large, b: {} }, users: many({ username: 'u' }), left: undefined }
  assert.equal((await bytesInSteps(documentPieces(document))).toString(), `${JSON.stringify(document, null, 2)}\n`)
})

test('the text of a document has the servers in their order', async () => {
  const mcpServers = orderedObject([['b', { command: 'b' }], ['7', { args: ['a\n"b"', {}] }], ['__proto__', {}], ['a', {}]])
  const text = documentText({ users: [], mcpServers })
  assert.deepEqual([...text.matchAll(/^ {4}"(.*)": /gm)].map(([, each]) => each), ['b', '7', '__proto__', 'a'])
  const read = JSON.parse(text) as { mcpServers: Record<string, unknown> }
  assert.deepEqual({ ...read.mcpServers }, { ...mcpServers })
  assert.equal(documentText({ users: [], mcpServers: inTextOrder(text, 'mcpServers', read.mcpServers) }), text)
})

test('a document is put together in steps that leave the event loop to others', async () => {
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  const pieces = function * (): Generator<string> {
    for (let n = 0; n < 50; n++) {
      const begun = performance.now()
      while (performance.now() - begun < 1);
      yield 'ä'.repeat(40_000)
    }
  }
  const bytes = await bytesInSteps(pieces())
  isDone = true
  assert.ok(bytes.equals(Buffer.from('ä'.repeat(2_000_000))))
  assert.ok(turns >= 50, `${turns} turns for 50 pieces`)
})
