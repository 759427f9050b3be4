// Large arguments of plain HTTP callers are written in pieces; the text is the one that JSON.stringify makes.
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { jsonPieces } from '../../../plugins/base/json-schema/json-pieces.ts'

const written = (value: unknown): string => [...jsonPieces(value)].join('')

test('the pieces together are the text of the value', async () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => { assert.equal(written(value), JSON.stringify(value)) }))
  const many = Array.from({ length: 9_000 }, (_, n) => n)
  for (const value of [
    many, { many }, { a: 1, many, b: [] }, [many, 1, many, {}, many], [[many], { many: [many, { many }] }, 'x'],
    { text: 'é"\n'.repeat(400_000) },
    ['y'.repeat(400_000), 1, 2, 'y'.repeat(400_000)], Array.from({ length: 5_000 }, () => ({ a: { b: [1] } })), { gone: undefined, many },
    Object.fromEntries(many.map((n) => [`m${n}`, n])), JSON.parse(`{"__proto__":${JSON.stringify(many)}}`)
  ]) assert.equal(written(value), JSON.stringify(value))
})

test('no piece of many small values is large', async () => {
  const longest = Math.max(...[...jsonPieces({ message: Array.from({ length: 300_000 }, () => []) })].map((piece) => piece.length))
  assert.ok(longest < 64 * 1024, `${longest} characters`)
})
