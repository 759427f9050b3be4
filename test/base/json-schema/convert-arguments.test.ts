// What becomes of arguments that come as text.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { convertArguments } from '../../../plugins/base/json-schema/arguments.ts'

test('convertArguments: a text is what the schema takes', async (t) => {
  const literal = { anyOf: [{ type: 'integer' }, { type: 'string', enum: ['auto'] }] }
  const table: Array<[says: string, schema: unknown, given: unknown, expected: unknown]> = [
    ['a text among others stays one', { type: ['string', 'integer'] }, '5', '5'],
    ['a text among others stays one, by a choice', { anyOf: [{ type: 'integer' }, { type: 'string' }] }, '5', '5'],
    ['a number beside named texts', literal, '5', 5],
    ['a named text', literal, 'auto', 'auto'],
    ['neither', literal, 'else', 'else'],
    ['beside a constant', { oneOf: [{ type: 'number' }, { const: 'auto' }] }, '1.5', 1.5],
    ['by reference', { anyOf: [{ $ref: '#/$defs/word' }, { type: 'boolean' }] }, 'true', true],
    ['by reference, a named text', { anyOf: [{ $ref: '#/$defs/word' }, { type: 'boolean' }] }, 'on', 'on'],
    ['named values of several types', { enum: [1, 'a', true] }, '1', 1],
    ['named values of several types, another', { enum: [1, 'a', true] }, 'true', true],
    ['named values of several types, a text', { enum: [1, 'a', true] }, 'a', 'a'],
    ['a type, and named values of it', { type: ['boolean', 'string'], enum: [true, 'auto'] }, 'true', true],
    ['what fits counts, not what comes first', { enum: [true, 2] }, '1', true],
    ['a number before the 1 of booleans', { type: ['boolean', 'integer'] }, '1', 1],
    ['null', { enum: [null, 'a'] }, 'null', null],
    ['allOf narrows', { allOf: [{ type: ['string', 'integer'] }, { enum: ['x', 7] }] }, '7', 7],
    ['one of a list', { type: 'array', items: literal }, '1,auto', [1, 'auto']],
    [
      'elements that fit one of two lists',
      { anyOf: [{ type: 'array', items: { type: 'integer' } }, { type: 'array', items: { type: 'string' } }] },
      ['007', '1'],
      ['007', '1']
    ],
    [
      'elements that fit neither of two lists',
      { anyOf: [{ type: 'array', items: { type: 'integer' } }, { type: 'array', items: { type: 'boolean' } }] },
      ['7', 'true'],
      [7, true]
    ],
    [
      'elements by their places', { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'number' } },
      ['5', '6', '7'], ['5', 6, 7]
    ],
    ['elements of which nothing is said', { type: 'array' }, ['5'], ['5']],
    ['what fits nothing is of the right type', { type: 'integer', enum: [1, 2] }, '3', 3],
    ['a circle', { $ref: '#/$defs/circle' }, '5', '5'],
    ['a list of lists of itself', { $ref: '#/$defs/lists' }, '5,6', ['5', '6']]
  ]
  for (const [says, schema, given, expected] of table) {
    await t.test(says, async () => {
      const root = {
        type: 'object',
        properties: { v: schema },
        $defs: {
          word: { type: 'string', enum: ['on', 'off'] },
          circle: { anyOf: [{ $ref: '#/$defs/circle' }] },
          lists: { type: 'array', items: { $ref: '#/$defs/lists' } }
        }
      }
      assert.deepEqual(convertArguments(root, { v: given }), { v: expected })
    })
  }
  const doubling = {
    $defs: Object.fromEntries(
      Array.from({ length: 40 }, (_, n) => [
        `d${n}`,
        n === 39 ? { const: 'x' } : { anyOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] }
      ])
    ),
    properties: { v: { $ref: '#/$defs/d0' } }
  }
  assert.deepEqual(convertArguments(doubling, { v: '5' }), { v: '5' })
})
