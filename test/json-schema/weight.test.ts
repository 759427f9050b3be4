import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Catalogue } from '../../protocol/lists.ts'
import { CpuBudget } from '../../plugins/json-schema/time-budget.ts'
import { sizeOf, weightOf } from '../../plugins/json-schema/weight.ts'
import { inputOf, type ToolInput } from '../../plugins/tools/tool-input.ts'

const tree = { $ref: '#/$defs/tree', $defs: { tree: { properties: { left: { $ref: '#/$defs/tree' } } } } }
const deep = (levels: number): object => levels === 0 ? {} : { items: deep(levels - 1) }
/** Each level applies the next one twice to the same value. */
const doubling = (levels: number): object => levels === 0 ? { type: 'string' } : { allOf: [doubling(levels - 1), doubling(levels - 1)] }
const pattern = (text: string): object => ({ type: 'string', pattern: text })

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
  for (const [schema, weight] of weights) assert.equal(weightOf(schema), weight, JSON.stringify(schema))
})

test('weighing is linear in the size of the schema', async () => {
  const shared = Object.fromEntries(
    Array.from({ length: 25 }, (_, n) => [`d${n}`, { anyOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] }])
  )
  const time = cpuOf(() => {
    assert.equal(weightOf({ $ref: '#/$defs/d0', $defs: { ...shared, d25: { type: 'string' } } }), undefined, 'too deep')
    assert.equal(weightOf({ enum: Array.from({ length: 10_000 }, (_, n) => n) }), 10_001)
    assert.equal(weightOf(doubling(14)), 2 ** 14 + 2 ** 14 - 1)
  })
  assert.ok(time < 500, `${time} ms`)
})

test('the size of a value is counted up to the bound', async () => {
  assert.equal(sizeOf({ a: [1, null, {}] }, 100, 1), 6)
  assert.equal(sizeOf('x'.repeat(640), 100), 11)
  const large = Array.from({ length: 1_000_000 }, () => 1)
  assert.ok(cpuOf(() => { assert.ok(sizeOf(large, 100) <= 102) }) < 50)
})

/** The input of a tool with this schema, of a server of its own. */
function toInput (schema: unknown, cpu = new CpuBudget(), large = new CpuBudget()): ToolInput {
  const tools = [{ key: 'tool', text: JSON.stringify({ name: 'tool', inputSchema: schema }) }]
  const input = inputOf({ lists: { tools } } as unknown as Catalogue, 'tool', (isLarge) => isLarge ? large : cpu)
  assert.ok(input)
  return input
}

/** The CPU time of some work, in ms. */
function cpuOf (work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `property ${n}`)
const manyProperties = Object.fromEntries(names(400).map((name) => [name, { type: 'string' }]))
const long = 'x'.repeat(25_000)
/** Schemas that cost as much as a known weight allows, with parts of which large arguments are made. */
const heavy: Array<[name: string, schema: object, part: unknown]> = [
  ['an error for each element', { items: { type: 'string' } }, 1],
  ['absent properties', { items: { properties: manyProperties } }, {}],
  ['required properties', { items: { required: names(400) } }, {}],
  ['long alternatives', { items: { enum: [long] } }, 1],
  ['a long name', { properties: { [long]: { items: { type: 'string' } } } }, 1],
  ['many alternatives', { items: { enum: names(2_000) } }, 'property'],
  ['unions', { items: doubling(8) }, 1],
  ['a union of objects', { items: { anyOf: names(50).map((name) => ({ required: [name], properties: { [name]: {} } })) } }, {}],
  ['a pattern', { items: pattern('^[a-z0-9]+x{50}$') }, 'x'.repeat(500)],
  ['unknown names', { items: { additionalProperties: false } }, { a: 1, b: 2, c: 3 }],
  ['texts that are no JSON', { items: { type: ['object', 'array'] } }, '{x}'],
  ['texts as lists', { items: { type: 'array', items: { type: ['integer', 'boolean'] } } }, '1,2,3,4,5,6,7,8,9']
]

test('large arguments are validated within 50 ms of CPU by every schema whose cost is known', async (t) => {
  /** In ms, on a slow machine that has other work. */
  const most = 2 * 75
  for (const [name, schema, part] of heavy) {
    const [only] = Object.keys((schema as { properties?: object }).properties ?? {})
    const whole = only === undefined
      ? { type: 'object', properties: { parts: { type: 'array', ...schema } } }
      : schema
    assert.notEqual(weightOf(whole), undefined, name)
    const { check, read } = toInput(whole)
    const argsOf = (count: number): Record<string, unknown> =>
      ({ [only ?? 'parts']: Array.from({ length: count }, () => part) })
    const mostParts = Math.floor(1024 * 1024 / (JSON.stringify(part).length + 1))
    check(argsOf(1))
    /** Arguments that are read and checked, or refused as too large. */
    const use = (args: Record<string, unknown>): void => {
      try {
        check(read(args, true))
      } catch (error) {
        assert.match(String(error), /too large to be checked in time/)
      }
    }
    const largest = Math.max(...[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1].map((share) => {
      const args = argsOf(Math.ceil(mostParts * share))
      // The shortest of several: the machine has other work, too.
      const shortest = (times: number): number => Math.min(...Array.from({ length: times }, () => cpuOf(() => { use(args) })))
      const time = shortest(3)
      return time < most ? time : Math.min(time, shortest(6))
    }))
    t.comment(`${name}: ${largest.toFixed(1)} ms`)
    assert.ok(largest < most, `${name}: ${largest} ms`)
  }
})

test('arguments of any size are checked, or refused, and do not keep those of others from being checked', async () => {
  const simple = { type: 'object', properties: { n: { type: 'number' }, list: { type: 'array', items: { type: 'integer' } } } }
  const wrong = ['n must be number']
  const pads: Array<[what: string, pad: unknown]> = [
    ['a long text', 'x'.repeat(1_000_000)],
    ['many texts', Array.from({ length: 3_000 }, () => 'x')],
    ['very many texts', Array.from({ length: 200_000 }, () => 'x')],
    ['many objects', Array.from({ length: 60_000 }, () => ({ a: [1] }))]
  ]
  for (const cpu of [new CpuBudget(), new CpuBudget({ isPatient: true })]) {
    const { read, check, isLarge } = toInput(simple, cpu)
    for (const [what, pad] of pads) {
      assert.deepEqual(check(read({ n: 'abc', pad }, false)), wrong, what)
      assert.deepEqual(check(read({ n: 1, pad }, false)), [], what)
      assert.equal(isLarge({ n: 1, pad }), true, what)
    }
    assert.deepEqual(check(read({ n: `${'0'.repeat(100_000)}x` }, false)), wrong)
    assert.deepEqual(check({ list: [...Array.from({ length: 100_000 }, () => 1), 'x'] }), ['list.100000 must be integer'])
    assert.equal(isLarge({ n: 1 }), false)
  }
  // Of a schema whose cost is not known, large arguments are checked or refused, whatever has been tried before.
  const { read, check } = toInput({ ...simple, properties: { ...simple.properties, set: { uniqueItems: true } } })
  const set = Array.from({ length: 20_000 }, (_, n) => ({ n }))
  for (let n = 0; n < 12; n++) {
    assert.throws(() => check(read({ n: 1, set }, false)), /too large to be checked in time/)
    try {
      assert.deepEqual(check(read({ n: 'abc', set }, false)), wrong)
    } catch (error) {
      assert.match(String(error), /too large to be checked in time/)
    }
  }
  assert.deepEqual(check(read({ n: 'abc' }, false)), wrong, 'small ones have a budget of their own')
  const { check: trapped } = toInput({ properties: { ...simple.properties, text: pattern('^(a+)+$') } })
  assert.deepEqual(trapped({ n: 'abc', ...{ text: `${'a'.repeat(60)}!` } }), [], 'a hostile schema keeps nobody from calling the tool')
})

test('reading a text as a number takes time in proportion to it', async () => {
  const { read } = toInput({ type: 'object', properties: { n: { type: 'number' }, list: { type: 'array', items: { type: 'number' } } } })
  for (const [name, text] of [['n', '0'], ['n', '1.'], ['n', '9e'], ['list', '0'], ['list', '1,'], ['list', '['], ['list', '"\\']] as const) {
    const cpu = (length: number): number =>
      Math.min(...[1, 2, 3].map(() => cpuOf(() => { read({ [name]: `${text.repeat(length / text.length)}x` }, true) })))
    const [small, large] = [cpu(20_000), cpu(80_000)]
    assert.ok(large < 10 * small + 50, `${name} ${text}: ${small} and ${large} ms`)
  }
})

const hostile = pattern('^(a+)+$')
const trap = { text: `${'a'.repeat(60)}!` }

test('the schemas of one owner take no more CPU than its budget, of one request and of many', async (t) => {
  const cpu = new CpuBudget()
  const inputs = Array.from({ length: 30 }, () => toInput({ properties: { text: hostile } }, cpu))
  const start = performance.now()
  let spent = 0
  let atOnce = 0
  while (performance.now() - start < 1_000) {
    for (const { check } of inputs) spent += cpuOf(() => { assert.deepEqual(check(trap), []) })
    if (atOnce === 0) atOnce = spent
    await new Promise((resolve) => { setTimeout(resolve, 20) })
  }
  t.comment(`${atOnce.toFixed(0)} ms at once, ${spent.toFixed(0)} ms within a second`)
  assert.ok(atOnce < 200, `${atOnce} ms at once`)
  assert.ok(spent < 250, `${spent} ms within a second`)
  // Nobody else notices.
  assert.deepEqual(toInput({ properties: { text: hostile } }).check({ text: 1 }), ['text must be string'])
  assert.deepEqual(toInput({ uniqueItems: true, properties: { text: {} }, required: ['text'] }).check({}), ['text is required'])
})

test('work that was given little time may be done once there is more', async () => {
  const cpu = new CpuBudget({ isPatient: true })
  const { check } = toInput({ properties: { text: { type: 'string', pattern: 'a+b' } } }, cpu)
  const wrong = ['text must be string']
  assert.deepEqual(check({ text: 1 }), wrong)
  cpu.spend(cpu.left)
  assert.deepEqual(check({ text: 1 }), [], 'only the server validates')
  for (let n = 0; n < 100 && cpu.left < 20; n++) await new Promise((resolve) => { setTimeout(resolve, 50) })
  assert.deepEqual(check({ text: 1 }), wrong)
})

test('long work on schemas of users counts more than its time, short work and that of admins does not', async () => {
  const leftAfter = (cpu: CpuBudget, time: number, isStopped = false): number => {
    const before = cpu.left
    cpu.spend(time, isStopped)
    return Math.round(before - cpu.left)
  }
  assert.equal(leftAfter(new CpuBudget(), 10), 10)
  assert.equal(leftAfter(new CpuBudget(), 30), 10 + 20 * 8)
  assert.equal(leftAfter(new CpuBudget(), 5, true), 40)
  const admins = (): CpuBudget => new CpuBudget({ isPatient: true, doubles: true })
  assert.deepEqual([leftAfter(admins(), 30), leftAfter(admins(), 5, true)], [30, 5])
  const hostile = new CpuBudget({ doubles: true })
  const costs = Array.from({ length: 8 }, () => leftAfter(hostile, 5, true))
  assert.deepEqual(costs, [40, 80, 160, 320, 640, 1_280, 1_280, 1_280])
  assert.equal(leftAfter(hostile, 10), 10, 'what is not stopped costs what it did')
})

test('what is stopped is begun again seldom, and for a short time', async (t) => {
  const cpu = new CpuBudget()
  const inputs = Array.from({ length: 200 }, () => toInput({ properties: { text: hostile } }, cpu))
  let spent = 0
  for (const [at, { check }] of inputs.entries()) {
    const one = cpuOf(() => { check(trap) })
    // The first ones take what an owner has at the start.
    if (at > 5) spent += one
    await new Promise((resolve) => { setTimeout(resolve, 5) })
  }
  t.comment(`${spent.toFixed(0)} ms after the first ones`)
  assert.ok(spent < 100, `${spent} ms`)
})
