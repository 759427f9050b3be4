// What the quick check accepts, the worker accepts without a change; it never accepts what the worker does not.
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { createQuickCheck } from '../../../plugins/base/json-schema/quick-check.ts'
import { run } from '../../../plugins/base/json-schema/worker.ts'
import { holds } from '../../helpers/json-texts.ts'

const name = fc.constantFrom('a', 'b', 'c', '__proto__', 'toString')
const text = fc.constantFrom('', '5', 'true', 'null', 'a', '\ud83d\ude00', 'a,b', '[1]', '{"a":1}')
const scalar = fc.oneof(text, fc.constantFrom<unknown>(0, 1, 1.5, -2, 5, true, false, null))
const own = (entries: Array<[string, unknown]>): unknown => Object.fromEntries(entries)
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(name, tie('value')), { maxLength: 3 }).map(own)
  )
}))
const optional = <T> (arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined })
const typeNames = fc.constantFrom('string', 'integer', 'number', 'boolean', 'null', 'array', 'object')
const bound = optional(fc.constantFrom(0, 1, 2))
const { schema } = fc.letrec<{ schema: Record<string, unknown> }>((tie) => ({
  schema: fc.record({
    type: optional(typeNames),
    properties: optional(fc.array(fc.tuple(name, tie('schema')), { maxLength: 3 }).map(own)),
    required: optional(fc.uniqueArray(name, { maxLength: 1 })),
    additionalProperties: optional(fc.boolean()),
    items: optional(tie('schema')),
    anyOf: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, fc.array(tie('schema'), { minLength: 1, maxLength: 2 })),
    enum: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, fc.array(scalar, { minLength: 1, maxLength: 3 })),
    minimum: bound,
    exclusiveMaximum: bound,
    minLength: bound,
    maxLength: bound,
    minItems: bound,
    format: optional(fc.constant('email'))
  }, { requiredKeys: [] })
}))

test('what fits by the quick check fits as it is', async (t) => {
  let accepted = 0
  holds(fc.property(schema, fc.array(fc.tuple(name, value), { maxLength: 3 }).map(own), (part, given) => {
    const args = JSON.stringify(given)
    const schema = JSON.stringify(part)
    if (createQuickCheck(JSON.parse(schema))?.(JSON.parse(args)) !== true) return
    accepted++
    assert.deepEqual(run({ schema, args }), { args, problems: [] })
  }), 4_000)
  t.comment(`${accepted} accepted`)
  assert.ok(accepted > 50, 'enough of them are accepted')
})

test('the schemas of usual tools are checked quickly', async () => {
  const check = createQuickCheck({
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: {
      path: { type: 'string', minLength: 1, maxLength: 3, description: 'A path' },
      mode: { type: 'string', enum: ['r', 'w'], default: 'r' },
      head: { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }], title: 'Head' },
      names: { type: 'array', items: { type: 'string' }, maxItems: 2 }
    },
    required: ['path'],
    additionalProperties: false
  })
  const fits = (args: object): boolean | undefined => check?.(args)
  for (const args of [{ path: '/' }, { path: '\ud83d\ude00'.repeat(3), mode: 'w', head: null, names: ['a', 'b'] }]) assert.equal(fits(args), true)
  for (const more of [{ mode: 'x' }, { head: 0 }, { head: '1' }, { names: 'a' }, { names: [1] }, { names: ['a', 'b', 'c'] }, { other: 1 }, { path: '' }]) {
    assert.equal(fits({ path: '/', ...more }), false, JSON.stringify(more))
  }
  assert.equal(fits({}), false)
})

test('patterns, references, conditions and unknown keywords are left to the worker', async () => {
  const nested = JSON.parse(`${'{"items":'.repeat(40)}{}${'}'.repeat(40)}`) as object
  for (const part of [
    { pattern: '^a' }, { $ref: '#' }, { if: {} }, { allOf: [{}] }, { oneOf: [{}] }, { not: {} }, { const: 1 }, { uniqueItems: true },
    { patternProperties: {} }, { type: ['string', 'null'] }, { type: 'text' }, { nullable: true }, { enum: [{}] }, { minimum: '1' },
    { additionalProperties: {} }, { required: 'a' }, { required: [1] }, { properties: [] }, { items: true }, nested
  ]) assert.equal(createQuickCheck({ properties: { a: part } }), undefined, JSON.stringify(part))
  for (const schema of [undefined, true, [], 'object']) assert.equal(createQuickCheck(schema), undefined)
})
