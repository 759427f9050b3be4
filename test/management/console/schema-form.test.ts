import assert from 'node:assert/strict'
import { test } from 'tap'
import { SchemaForm, type FormField } from '../../../plugins/management/console/forms/schema-form.ts'
import { readArgumentsForm } from '../../../routes/console/arguments.ts'

const schema = {
  type: 'object',
  required: ['owner', 'count', 'place'],
  properties: {
    owner: { type: 'string', description: 'Whose it is' },
    body: { type: ['string', 'null'] },
    count: { type: 'integer', default: 3 },
    draft: { type: 'boolean' },
    state: { enum: ['open', 7, null] },
    labels: { type: 'array', items: { type: 'string' } },
    place: { $ref: '#/$defs/place' },
    due: { oneOf: [{ type: 'object', title: 'a date', properties: { date: { type: 'string' } } }, { type: 'integer', title: 'in days' }] },
    'a/b~c': { anyOf: [{ type: 'number' }, { type: 'null' }] },
    free: {}
  },
  $defs: {
    place: {
      allOf: [{ type: 'object', properties: { x: { type: 'number' } }, required: ['x'] }, { properties: { inner: { $ref: '#/$defs/place' } } }]
    }
  }
}
const form = new SchemaForm(schema)
const read = (draft: Record<string, string>): unknown => {
  const result = form.read(draft)
  return 'json' in result ? JSON.parse(result.json) : result.errors
}
const fieldOf = (fields: readonly FormField[], name: string): FormField | undefined =>
  fields.flatMap((each) => [each, ...each.fields ?? [], ...each.items ?? []]).find((each) => each.name === name)
const needed = { 'arg/owner': 'octo', 'arg/count': '1', 'arg/place/x': '1.5' }

void test('a field for each kind of value, with what the schema says of it', async () => {
  const fields = form.fields({})
  assert.deepEqual(fields.map(({ name, kind, isRequired }) => `${name} ${kind}${isRequired ? '!' : ''}`), [
    'arg/owner text!', 'arg/body long', 'arg/count number!', 'arg/draft boolean', 'arg/state choice', 'arg/labels list',
    'arg/place object!', 'arg/due either', 'arg/a~1b~0c number', 'arg/free json'
  ])
  assert.equal(fieldOf(fields, 'arg/owner')?.hint, 'Whose it is')
  assert.equal(fieldOf(fields, 'arg/count')?.value, '3')
  assert.deepEqual(fieldOf(fields, 'arg/state')?.options?.map(({ text }) => text), ['not set', 'open', '7', 'null'])
  assert.deepEqual(fieldOf(fields, 'arg/due')?.options?.map(({ text }) => text), ['a date', 'in days'])
  assert.equal(fieldOf(fields, 'arg/place/x')?.isRequired, true)
})

void test('what is left empty is left out', async () => {
  assert.deepEqual(read(needed), { owner: 'octo', count: 1, place: { x: 1.5 } })
})

void test('values have the types of the schema', async () => {
  assert.deepEqual(read({
    ...needed,
    'arg/body': 'a\nb',
    'arg/draft': 'false',
    'arg/state': '1',
    'arg/labels/0': 'x',
    'arg/labels/1': '',
    'arg/due': '1',
    'arg/due~or1': '7',
    'arg/a~1b~0c': '-1e3',
    'arg/free': '[{"a": null}]'
  }), {
    owner: 'octo',
    body: 'a\nb',
    count: 1,
    draft: false,
    state: 7,
    labels: ['x', ''],
    place: { x: 1.5 },
    due: 7,
    'a/b~c': -1000,
    free: [{ a: null }]
  })
})

void test('numbers keep the digits that were typed', async () => {
  const result = form.read({ ...needed, 'arg/count': '12345678901234567890', 'arg/place/x': '0.10' })
  assert.deepEqual(result, { json: '{"owner":"octo","count":12345678901234567890,"place":{"x":0.10}}' })
})

void test('what is wrong is named by the field', async () => {
  assert.deepEqual(Object.keys(read({ 'arg/count': '1.5', 'arg/free': '{', 'arg/a~1b~0c': 'x' }) as object), [
    'arg/count', 'arg/place/x', 'arg/a~1b~0c', 'arg/free'
  ])
})

void test('items are added and taken away, and the others keep what was typed', async () => {
  const two = form.applyButton(form.applyButton(needed, 'add:arg/labels'), 'add:arg/labels')
  assert.deepEqual(Object.keys(two).filter((name) => name.startsWith('arg/labels')), ['arg/labels/0', 'arg/labels/1'])
  const typed = { ...two, 'arg/labels/0': 'a', 'arg/labels/1': 'b', 'arg/labels2/0': 'other' }
  const one = form.applyButton(typed, 'remove:arg/labels/0')
  assert.deepEqual([one['arg/labels/0'], one['arg/labels/1'], one['arg/labels2/0']], ['b', undefined, 'other'])
  assert.deepEqual(fieldOf(form.fields(one), 'arg/labels')?.items?.map(({ value, remove }) => [value, remove]), [['b', 'remove:arg/labels/0']])
  assert.deepEqual(form.applyButton(one, 'remove:'), one)
  assert.deepEqual(form.applyButton(one, 'choose:arg/due'), one)
})

void test('arguments that were typed as JSON come into the form', async () => {
  const args = {
    owner: 'octo', body: 'x', count: 2, draft: true, state: 'open', labels: ['a', 'b'], place: { x: 1, inner: { x: 2 } }, due: { date: 'y' }, free: { z: 1 }
  }
  assert.deepEqual(read(form.toDraft(args)), args)
})

void test('arguments that the form would change stay JSON', async () => {
  const switched = (json: string, of = form): unknown =>
    readArgumentsForm({ kit: { formOf: () => of } } as never, { mode: 'json', do: 'form', json }, schema).mode
  const [none, builtIn] = [{}, { constructor: { type: 'string' } }].map((properties) => new SchemaForm({ type: 'object', properties }))
  assert.deepEqual([switched('{}', none), switched('{"a":1}', none), switched('{}', builtIn)], ['form', 'json', 'form'])
  for (const same of ['{}', '{"body":"a\\nb","place":{"x":0.10}}', '{"free":{"z":[1]}}']) {
    assert.equal(switched(same), 'form', same)
  }
  for (const other of [
    '{"extra":true}', '{"place":{"x":1,"more":[1]}}', '{"state":"none"}', '{"labels":"a"}', '{"labels":["a\\r\\nb"]}', '{"owner":null}',
    '{"owner":5}', '{"count":"3"}', '{"count":12345678901234567890}', '{"free":1,"free":2}'
  ]) assert.equal(switched(other), 'json', other)
})

void test('schemas that make no form become JSON, and none is followed for ever', async () => {
  for (const odd of [undefined, true, 7, { type: 'object' }, { type: 'object', properties: { a: { $ref: '#/properties/a' } } }, { $ref: '#' }]) {
    const of = new SchemaForm(odd)
    assert.ok(JSON.stringify(of.fields({})).length < 100_000)
    assert.deepEqual(of.read({}), { json: '{}' })
  }
})

const sizeOf = (fields: readonly FormField[]): number =>
  fields.reduce((sum, { fields: inner = [], items = [] }) => sum + 1 + sizeOf(inner) + sizeOf(items), 0)

void test('a schema that multiplies gets a form of less depth, or a JSON field', async () => {
  const wide = (to: string): object => Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`p${at}`, { $ref: to }]))
  const node = new SchemaForm({ type: 'object', properties: wide('#/$defs/node'), $defs: { node: { type: 'object', properties: wide('#/$defs/node') } } })
  assert.ok(sizeOf(node.fields({})) < 2_500)
  const args = { p0: { p1: { p2: { p3: 1 } } } }
  const back = node.read(node.toDraft(args))
  assert.deepEqual('json' in back && JSON.parse(back.json), args)
  const hint = new SchemaForm({ properties: wide('#/$defs/x'), $defs: { x: { type: 'string', description: 'x'.repeat(1_000_000) } } })
  const all = new SchemaForm({ type: 'object', properties: { a: { allOf: Array(12).fill({ $ref: '#/properties/a' }) } } })
  for (const form of [hint, all]) {
    const [field, ...others] = form.fields({})
    assert.deepEqual([field?.kind, field?.name, others], ['json', 'arg', []])
    assert.match(field?.hint ?? '', /too large for a form/)
    assert.deepEqual(form.read({}), { json: '{}' })
    assert.deepEqual(form.read(form.toDraft({ a: 1 })), { json: '{\n  "a": 1\n}' })
    assert.match(JSON.stringify([form.read({ arg: '[' }), form.read({ arg: '[]' })]), /not JSON.*a JSON object/)
  }
})

void test('the items of a draft do not make a form too large', async () => {
  const item = { type: 'object', properties: Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`p${at}`, { type: 'string' }])) }
  const list = new SchemaForm({ type: 'object', properties: { l: { type: 'array', items: item } } })
  assert.equal(sizeOf(list.fields({ 'arg/l/9': '' })), 1 + 10 * 201)
  for (const make of ['fields', 'read'] as const) assert.throws(() => list[make]({ 'arg/l/199': '' }), /too many fields: edit the arguments as JSON/)
})

void test('a reference that cannot be decoded is unknown', async () => {
  for (const $ref of ['#/%', '#/%ff', `#/${'a'.repeat(2_000)}`]) {
    assert.deepEqual(new SchemaForm({ properties: { a: { $ref } } }).fields({}).map(({ kind }) => kind), ['json'])
  }
})

void test('texts under any names: entries are added, and a name that is missing or doubled stands at its field', async () => {
  const map = new SchemaForm({ type: 'object', properties: { env: { type: 'object', additionalProperties: { type: 'string' } }, any: { type: 'object', additionalProperties: {} } } })
  assert.deepEqual(map.fields({}).map(({ kind }) => kind), ['map', 'json'])
  const draft = map.toDraft({ env: { A: '1', __proto: '2' } })
  assert.deepEqual(map.read(draft), { json: '{"env":{"A":"1","__proto":"2"}}' })
  const more = map.applyButton(draft, 'add:arg/env')
  assert.equal(fieldOf(map.fields(more), 'arg/env/2')?.kind, 'pair')
  assert.deepEqual(map.read(more), map.read(draft))
  assert.deepEqual(map.read({ ...more, 'arg/env/1/name': 'A', 'arg/env/2/value': 'x' }), {
    errors: { 'arg/env/1/name': 'An entry with this name already exists.', 'arg/env/2/name': 'Enter a name.' }
  })
  assert.deepEqual(map.read(map.applyButton(draft, 'remove:arg/env/0')), { json: '{"env":{"__proto":"2"}}' })
})
