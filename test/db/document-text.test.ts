import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { serializeSettings } from '../../db/document-text.ts'
import { orderedEntries, createOrderedObject } from '../../db/order.ts'
import { rememberTextOrder } from '../../db/text-order.ts'

test('the text of a document is its JSON in lines', async () => {
  const name = fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'mcpServers', 'users', '7', ''))
  const document = fc.dictionary(name, fc.jsonValue({ maxDepth: 4 }))
  fc.assert(fc.property(document, (value) => {
    assert.equal(serializeSettings(value), `${JSON.stringify(value, null, 2)}\n`)
  }), { numRuns: 1_000 })
  for (const section of [[undefined], { left: undefined }, { left: undefined, kept: [] }, undefined]) {
    assert.equal(serializeSettings({ section, other: 1 }), `${JSON.stringify({ section, other: 1 }, null, 2)}\n`)
  }
})

test('and so is that of one with large and with many entries, at every depth', async () => {
  const many = (value: unknown): unknown[] => Array.from({ length: 150 }, () => value)
  let nested: unknown = { long: 'x'.repeat(5_000), empty: [{}, [], ''], 2: 'b', 1: 'a' }
  for (let depth = 0; depth < 12; depth++) nested = depth % 2 === 0 ? [nested, depth, null] : { before: many(depth), nested, [depth]: {} }
  const large = { nested, list: many({ a: [1] }), members: Object.fromEntries(many(0).map((_, at) => [`m${at % 2 === 0 ? at : ''}${at}`, many(at)])) }
  const document = { other: 'y'.repeat(3_000), mcpServers: { a: { command: 'a' }, large, b: {} }, users: many({ username: 'u' }), left: undefined }
  assert.equal(serializeSettings(document), `${JSON.stringify(document, null, 2)}\n`)
})

test('the text of a document has the servers in their order', async () => {
  const mcpServers = createOrderedObject([['b', { command: 'b' }], ['7', { args: ['a\n"b"', {}] }], ['__proto__', {}], ['a', {}]])
  const text = serializeSettings({ users: [], mcpServers })
  assert.deepEqual([...text.matchAll(/^ {4}"(.*)": /gm)].map(([, each]) => each), ['b', '7', '__proto__', 'a'])
  const read = JSON.parse(text) as { mcpServers: Record<string, unknown> }
  assert.deepEqual({ ...read.mcpServers }, { ...mcpServers })
  assert.equal(serializeSettings(rememberTextOrder(text, read, 2)), text)
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
    check(tree, rememberTextOrder(text, JSON.parse(text) as unknown, levels), levels)
  }), { numRuns: 1_000 })
})
