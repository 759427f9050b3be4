// What is in flight, by id.
import assert from 'node:assert/strict'
import { test } from 'tap'
import fc from 'fast-check'
import type { RequestId } from '../../protocol/message.ts'
import { RequestTable } from '../../protocol/table.ts'
import { holds } from '../helpers/json-texts.ts'

const lookalikes: RequestId[] = [
  1, '1', -1, '-1', 0, '0', '', 0.5, -1.5, '1.5', 1e21, '1e+21', '__proto__', 'constructor', 'toString', '"1', 2 ** 53, 4_294_967_296
]

test('table: it does what a Map does, with ids that look alike', async () => {
  const step = fc.tuple(fc.constantFrom('set', 'take'), fc.constantFrom(...lookalikes), fc.nat())
  holds(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const map = new Map<RequestId, number>()
    const table = new RequestTable<RequestId, number>()
    for (const [step, key, value] of steps) {
      if (step === 'set') {
        map.set(key, value)
        table.set(key, value)
      } else {
        assert.equal(table.take(key), map.get(key))
        map.delete(key)
      }
      assert.deepEqual([table.get(key), table.has(key), table.size], [map.get(key), map.has(key), map.size])
    }
    assert.deepEqual(new Map(table.keys().map((key) => [key, table.get(key)])), map)
    assert.deepEqual(table.values().sort((a, b) => a - b), [...map.values()].sort((a, b) => a - b))
  }))
})

test('table: calls come oldest first: numbers in their order; and lists are copies', async () => {
  const table = new RequestTable<number, string>()
  for (const id of [3, 1, 2, 10]) table.set(id, `call ${id}`)
  assert.deepEqual(table.values(), ['call 1', 'call 2', 'call 3', 'call 10'])
  for (const key of table.keys()) table.take(key)
  assert.equal(table.size, 0)
})
