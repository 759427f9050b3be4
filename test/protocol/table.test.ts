// What is in flight, by id.
import assert from 'node:assert/strict'
import { test } from 'tap'
import fc from 'fast-check'
import type { RequestId } from '../../protocol/message.ts'
import { RequestTable } from '../../protocol/table.ts'
import { holds } from '../helpers/json-texts.ts'

test('table: 1 and "1" are two ids, and so are all others that look alike', async () => {
  const ids: RequestId[] = [
    1,
    '1',
    -1,
    '-1',
    0,
    '0',
    '',
    1.5,
    '1.5',
    1e21,
    '1e+21',
    '__proto__',
    'constructor',
    '"1',
    2 ** 53,
    4_294_967_296
  ]
  const table = new RequestTable<RequestId, number>()
  ids.forEach((id, at) => { table.set(id, at) })
  assert.equal(table.size, ids.length)
  ids.forEach((id, at) => { assert.equal(table.get(id), at, String(id)); assert.equal(table.has(id), true) })
  assert.deepEqual(new Set(table.keys()), new Set(ids))
  assert.deepEqual(table.values().sort((a, b) => a - b), ids.map((_, at) => at))
  for (const id of ['toString', 'valueOf', 2, '2', -0.5]) {
    assert.equal(table.has(id), false)
    assert.equal(table.get(id), undefined)
    assert.equal(table.take(id), undefined)
  }
  ids.forEach((id, at) => {
    assert.equal(table.take(id), at)
    assert.equal(table.take(id), undefined)
    assert.equal(table.has(id), false)
  })
  assert.equal(table.size, 0)
})

test('table: it does what a Map does', async () => {
  const id = fc.oneof(fc.integer({ min: -2, max: 2 }), fc.constantFrom('1', '0', '-1', '', 'a'), fc.constantFrom(0.5, -1.5))
  holds(fc.property(fc.array(fc.tuple(fc.constantFrom('set', 'take', 'get'), id, fc.nat()), { maxLength: 40 }), (steps) => {
    const map = new Map<RequestId, number>()
    const table = new RequestTable<RequestId, number>()
    for (const [step, key, value] of steps) {
      if (step === 'set') {
        map.set(key, value)
        table.set(key, value)
      } else if (step === 'take') {
        assert.equal(table.take(key), map.get(key))
        map.delete(key)
      } else assert.equal(table.get(key), map.get(key))
      assert.equal(table.size, map.size)
    }
    assert.deepEqual(new Map(table.keys().map((key) => [key, table.get(key)])), map)
  }))
})

test('table: calls come oldest first: numbers in their order; and lists are copies', async () => {
  const table = new RequestTable<number, string>()
  for (const id of [3, 1, 2, 10]) table.set(id, `call ${id}`)
  assert.deepEqual(table.values(), ['call 1', 'call 2', 'call 3', 'call 10'])
  for (const key of table.keys()) table.take(key)
  assert.equal(table.size, 0)
})
