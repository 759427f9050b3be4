import assert from 'node:assert/strict'
import { test } from 'tap'
import { valueSize, schemaWeight } from '../../../plugins/base/json-schema/weight.ts'
import { limits } from '../../../plugins/base/limits/limits.ts'
import { doubling, heavySchemas, HeldMeter, pattern, toInput, use } from '../../helpers/tool-input.ts'

const tree = { $ref: '#/$defs/tree', $defs: { tree: { properties: { left: { $ref: '#/$defs/tree' } } } } }
const deep = (levels: number): object => levels === 0 ? {} : { items: deep(levels - 1) }

/** Schemas with their weights; undefined: a timeout is needed. */
const weights: Array<[schema: unknown, weight: number | undefined]> = [
  [true, 1],
  [{}, 1],
  [{ type: 'string', title: 'any', format: 'date', 'x-order': 1 }, 4],
  [{ type: 'object', properties: { a: { type: 'string' }, b: {} }, required: ['a'] }, 6],
  [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, 3],
  [{ items: { enum: ['a', 'b', 'c'] } }, 4],
  [{ additionalProperties: { items: { properties: { a: {}, b: {}, c: {} } } } }, 4],
  [{ $defs: { a: { type: 'string' } }, properties: { x: { $ref: '#/$defs/a' }, y: { $ref: '#/$defs/a' } } }, 4],
  [doubling(5), 32 + 31],
  [pattern('^[a-z]+$'), 10],
  [pattern('^\\d{4}-\\d{2}$'), 2 + 13 + 6],
  [pattern('^[a+*?]*$'), 2 + 9],

  [undefined, undefined],
  [tree, undefined],
  [{ $ref: '#' }, undefined],
  [{ $ref: '#/$defs/none' }, undefined],
  [{ $ref: 'https://schemas.example/a.json' }, undefined],
  [{ $id: 'https://schemas.example/a.json' }, undefined],
  [{ properties: { a: { $anchor: 'a' } } }, undefined],
  [{ properties: { a: { $schema: 'http://json-schema.org/draft-07/schema#' } } }, undefined],
  [{ $defs: { a: { $id: 'b', $defs: { c: {} } } }, $ref: '#/$defs/a/$defs/c' }, undefined],
  [{ $dynamicRef: '#a' }, undefined],
  [{ uniqueItems: true }, undefined],
  [{ contains: { type: 'string' } }, undefined],
  [{ patternProperties: { a: {} } }, undefined],
  [{ propertyNames: { maxLength: 3 } }, undefined],
  [{ dependentSchemas: { a: {} } }, undefined],
  [{ unevaluatedProperties: false }, undefined],
  [{ if: {}, then: {} }, undefined],
  [{ not: {} }, undefined],
  [{ $data: '1/a' }, undefined],
  [{ unheardOf: true }, undefined],
  [{ enum: [[1], [2]] }, undefined],
  [{ const: { a: 1 } }, undefined],
  [{ anyOf: { type: 'string' } }, undefined],
  [{ properties: { a: 1 } }, undefined],
  [deep(40), undefined],
  ...['^(a+)+$', 'a+b', '^a*a*$', '^a|b+', '^\\p{L}+$', '^[a-z', '^a{1,9}a{1,9}$', '^\\1', '^a**', `^${'a'.repeat(300)}`]
    .map((text): [unknown, undefined] => [pattern(text), undefined])
]

test('a schema has a weight only where its cost is linear in the size of the value', async () => {
  for (const [schema, weight] of weights) assert.equal(schemaWeight(schema), weight, JSON.stringify(schema))
})

test('weighing looks at each part of a schema once, however often it is referred to', async () => {
  let visits = 0
  const schemas = Array.from({ length: 25 }, (_, n) => [`d${n}`, {
    get anyOf () { visits++; return [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] }
  }])
  const $defs = { ...Object.fromEntries(schemas) as object, d25: { type: 'string' } }
  const accessors = Object.defineProperties({}, Object.getOwnPropertyDescriptors($defs))
  assert.equal(schemaWeight({ $ref: '#/$defs/d0', $defs: accessors }), undefined, 'too deep')
  assert.ok(visits > 0 && visits <= 25, `${visits} visits`)
  assert.equal(schemaWeight({ enum: Array.from({ length: 10_000 }, (_, n) => n) }), 10_001)
  assert.equal(schemaWeight(doubling(14)), 2 ** 14 + 2 ** 14 - 1)
})

test('the size of a value is counted up to the bound', async () => {
  assert.equal(valueSize({ a: [1, null, {}] }, 100, 1), 6)
  assert.equal(valueSize('x'.repeat(640), 100), 11)
  let visits = 0
  const large = new Proxy(Array.from({ length: 10_000 }, () => 1), {
    get: (target, key) => { visits++; return Reflect.get(target, key) as unknown }
  })
  assert.ok(valueSize(large, 100) <= 102)
  assert.ok(visits < 300, `${visits} visits`)
})

test('what may take more steps than the bound is read and checked with a timeout only', async (t) => {
  for (const { name, schema, argsOf } of heavySchemas) {
    await t.test(name, async () => {
      const weight = schemaWeight(schema)
      assert.ok(weight !== undefined)
      for (const share of [0.0001, 0.001, 0.01, 0.1, 1]) {
        const args = argsOf(share)
        const meter = new HeldMeter()
        const input = toInput(schema, { meter })
        // Compiled before, which has a timeout of its own: for small arguments, and for large ones.
        for (const each of [{}, argsOf(0.01)]) use(input, each)
        Object.assign(meter, { runs: 0, patience: 1 })
        use(input, args)
        const steps: number = weight * valueSize(args, Infinity, 1)
        assert.equal(meter.runs > 0, steps > limits.untimedChecks.largeWork, `${share}: ${steps} steps, ${meter.runs} runs`)
      }
    })
  }
})
