// Arguments and strangers' schemas, in a worker thread.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { run } from '../../../plugins/base/json-schema/worker.ts'
import { ToolInputSchema } from '../../../plugins/downstream/tools/tool-input.ts'
import { setLimits } from '../../helpers/patient.ts'
import { baseLimits } from '../../../plugins/base/limits/limits.ts'

const hostile = { type: 'string', pattern: '^(a+)+$' }
const trap = { text: `${'a'.repeat(60)}!` }
const inputOf = (schema: unknown, now?: () => number): ToolInputSchema =>
  new ToolInputSchema({ key: 'tool', text: JSON.stringify({ name: 'tool', inputSchema: schema }) }, now)
const problemsOf = (schema: object, args: object): readonly string[] =>
  run({ schema: JSON.stringify(schema), args: JSON.stringify(args) }).problems

test('arguments of any size are converted and checked', async () => {
  const schema = { type: 'object', properties: { n: { type: 'number' }, list: { type: 'array', items: { type: 'integer' } } } }
  for (const pad of ['x'.repeat(1_000_000), Array.from({ length: 200_000 }, () => 'x'), Array.from({ length: 60_000 }, () => ({ a: [1] }))]) {
    assert.deepEqual(problemsOf(schema, { n: 'abc', pad }), ['n must be number'])
    const { args, problems } = run({ schema: JSON.stringify(schema), args: JSON.stringify({ n: '1', pad }) })
    assert.deepEqual([args, problems], [JSON.stringify({ n: 1, pad }), []])
  }
  assert.deepEqual(problemsOf(schema, { n: `${'0'.repeat(100_000)}x` }), ['n must be number'])
  assert.deepEqual(problemsOf(schema, { list: [...Array.from({ length: 100_000 }, () => 1), 'x'] }), ['list.100000 must be integer'])
  assert.deepEqual(problemsOf({ properties: { text: hostile } }, { text: 1 }), ['text must be string'])
})

test('multiples of a decimal fraction are told from others as decimals', async () => {
  for (const $schema of ['https://json-schema.org/draft/2020-12/schema', 'http://json-schema.org/draft-07/schema#']) {
    const priceOf = (multipleOf: number): object => ({ $schema, properties: { price: { type: 'number', multipleOf } } })
    for (const price of [0.07, 0.29, 4.35, -19.99, 1e7 + 0.37]) assert.deepEqual(problemsOf(priceOf(0.01), { price }), [])
    assert.deepEqual(problemsOf(priceOf(1e-8), { price: 45.12345678 }), [])
    assert.deepEqual(problemsOf(priceOf(0.01), { price: 4.355 }), ['price must be multiple of 0.01'])
    assert.deepEqual(problemsOf(priceOf(1), { price: 3.0000001 }), ['price must be multiple of 1'])
    assert.deepEqual(problemsOf(priceOf(0.123456789), { price: 1e308 }), ['price must be multiple of 0.123456789'])
  }
})

test('keywords beside a reference count from 2019-09 on', async () => {
  const schema = { properties: { a: { $ref: '#/definitions/s', maxLength: 1 } }, definitions: { s: { type: 'string' } } }
  const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#', ...schema }
  assert.deepEqual(problemsOf(draft7, { a: 'long' }), [])
  assert.deepEqual(problemsOf(draft7, { a: 5 }), ['a must be string'])
  assert.deepEqual(problemsOf(schema, { a: 'long' }), ['a must NOT have more than 1 characters'])
  const named = { $schema: draft7.$schema, $ref: '#/definitions/all', definitions: { all: { required: ['a'] } } }
  assert.deepEqual(problemsOf(named, {}), ['a is required'])
})

test('a schema that takes for ever keeps nobody from calling the tool, and is not tried again for a while', async (t) => {
  setLimits(t, baseLimits.argumentChecks, { time: 200 })
  let now = 0
  const input = inputOf({ properties: { n: { type: 'number' }, text: hostile } }, () => now)
  await assert.rejects(input.convert({ n: 'abc' }, 'ann'), /n must be number/)
  const given = { ...trap, n: 'abc' }
  assert.deepEqual(await input.convert(given, 'ann'), { args: given, text: JSON.stringify(given) })
  assert.deepEqual((await input.convert({ n: 'abc' }, 'ben')).args, { n: 'abc' }, 'only the server validates')
  assert.deepEqual((await input.convert({ n: '5' }, 'ben')).args, { n: 5 }, 'types are converted all the same')
  await assert.rejects(inputOf({ required: ['x'] }).convert({}, 'ann'), /x is required/, 'other schemas are tried')
  now += baseLimits.argumentChecks.backoff
  await assert.rejects(input.convert({ n: 'abc' }, 'ann'), /n must be number/)
})

test('large arguments that are not checked in time are refused, and say nothing of those of the next call', async (t) => {
  setLimits(t, baseLimits.argumentChecks, { time: 200, large: 10 })
  const input = inputOf({ properties: { n: { type: 'number' }, text: hostile } })
  await assert.rejects(input.convert(trap, 'ann'), /too large to be validated against the tool's schema/)
  await assert.rejects(input.convert({ n: 'abc' }, 'ann'), /n must be number/)
})

test('an argument is known by name, however the schema states it', async (t) => {
  const schema = { properties: { a: {} }, allOf: [{ properties: { b: {} } }] }
  assert.deepEqual(['a', 'b', 'toString'].map((name) => inputOf(schema).hasParameter(name)), [true, true, false])
  setLimits(t, baseLimits, { checkedSchema: 10 })
  assert.deepEqual(['a', 'b', 'toString'].map((name) => inputOf(schema).hasParameter(name)), [true, false, false])
})
