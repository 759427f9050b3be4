import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { encodeInSteps } from '../../db/json/steps.ts'
import { documentPieces, documentText } from '../../db/document-text.ts'
import { orderedEntries, orderedObject } from '../../db/order.ts'
import { recordTextOrder, recordTextOrderInSteps } from '../../db/text-order.ts'

test('the text of a document is its JSON in lines', async () => {
  const name = fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'mcpServers', 'users', '7', ''))
  const document = fc.dictionary(name, fc.jsonValue({ maxDepth: 4 }))
  await fc.assert(fc.asyncProperty(document, async (value) => {
    const expected = `${JSON.stringify(value, null, 2)}\n`
    assert.equal(documentText(value), expected)
    assert.equal((await encodeInSteps(documentPieces(value), new WeakMap())).toString(), expected)
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
  assert.equal((await encodeInSteps(documentPieces(document), new WeakMap())).toString(), `${JSON.stringify(document, null, 2)}\n`)
})

test('the bytes of large entries are made once, and stand where the entries do', async () => {
  let reads = 0
  const entry = (name: string, size: number): object => ({ name, text: 'ö'.repeat(size), inner: { toJSON: () => { reads++; return 1 } } })
  const kept = new WeakMap<object, Buffer>()
  const [large, other, small] = [entry('large', 100_000), entry('other', 50_000), entry('small', 10)]
  const documents = [
    { users: [large], mcpServers: { a: large, b: small } },
    { mcpServers: { 7: other, a: large, new: { ...small } }, groups: [small, other] },
    { mcpServers: { a: { ...large }, b: other } },
    { mcpServers: { b: other }, users: [large] }
  ]
  const made: Buffer[] = []
  for (const document of documents) made.push(await encodeInSteps(documentPieces(document), kept))
  for (const [at, document] of documents.entries()) assert.equal(made[at]?.toString(), `${JSON.stringify(document, null, 2)}\n`)
  assert.equal(kept.get(large)?.buffer, made.at(-1)?.buffer, 'a part of former bytes would hold all of them')

  reads = 0
  await encodeInSteps(documentPieces({ mcpServers: { large, new: { ...large } } }), kept)
  assert.equal(reads, 1, 'only of the new entry')
})

test('the text of a document has the servers in their order', async () => {
  const mcpServers = orderedObject([['b', { command: 'b' }], ['7', { args: ['a\n"b"', {}] }], ['__proto__', {}], ['a', {}]])
  const text = documentText({ users: [], mcpServers })
  assert.deepEqual([...text.matchAll(/^ {4}"(.*)": /gm)].map(([, each]) => each), ['b', '7', '__proto__', 'a'])
  const read = JSON.parse(text) as { mcpServers: Record<string, unknown> }
  assert.deepEqual({ ...read.mcpServers }, { ...mcpServers })
  assert.equal(documentText(recordTextOrder(text, read, 2)), text)
})

test('the order of a text is known down to a level, of repeated names as JSON.parse has them', async () => {
  type Tree = string | Tree[] | { members: Array<[name: string, tree: Tree]> }
  const name = fc.constantFrom('b', '7', '0', '10', 'a', '__proto__', '4294967295', 'x"{:', '')
  const { tree } = fc.letrec<{ tree: Tree, object: Tree }>((tie) => ({
    tree: fc.oneof({ depthSize: 'medium' }, fc.constantFrom('1', '"{\\"7\\": ["', 'null'), fc.array(tie('tree'), { maxLength: 3 }), tie('object'), tie('object')),
    object: fc.array(fc.tuple(name, tie('tree')), { maxLength: 6 }).map((members) => ({ members }))
  }))
  const textOf = (tree: Tree): string => {
    if (typeof tree === 'string') return tree
    if (Array.isArray(tree)) return `[${tree.map(textOf).join(' , ')}]`
    return `{${tree.members.map(([each, inner], n) => `${n % 2 === 0 ? JSON.stringify(each) : JSON.stringify(each).replace('7', '\\u0037')} : ${textOf(inner)}`).join(',')}}`
  }
  const check = (tree: Tree, value: unknown, levels: number): void => {
    if (typeof tree === 'string' || Array.isArray(tree)) return
    const object = value as Record<string, unknown>
    const last = new Map(tree.members)
    assert.deepEqual(orderedEntries(object).map(([each]) => each), levels > 0 ? [...last.keys()] : Object.keys(object))
    for (const [each, inner] of last) check(inner, object[each], levels - 1)
  }
  fc.assert(fc.property(tree, fc.nat(4), (tree, levels) => {
    const text = textOf(tree)
    check(tree, recordTextOrder(text, JSON.parse(text) as unknown, levels), levels)
  }), { numRuns: 1_000 })
})

test('the order of a large text is read in steps, and of one without such names not at all', async () => {
  const text = (first: string): string => JSON.stringify({ list: Array(100_000).fill('"7": '), last: 1 }).replace('"last"', `"last":0,"${first}"`)
  const stepsOf = (json: string): number => [...recordTextOrderInSteps(json, JSON.parse(json), 3)].length
  assert.ok(stepsOf(text('7')) > 5)
  assert.equal(stepsOf(text('seven')), 0)
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
      for (const end = performance.now() + 1; performance.now() < end;);
      yield 'ä'.repeat(40_000)
    }
  }
  const bytes = await encodeInSteps(pieces(), new WeakMap())
  isDone = true
  assert.ok(bytes.equals(Buffer.from('ä'.repeat(2_000_000))))
  assert.ok(turns >= 50, `${turns} turns for 50 pieces`)
})
