import assert from 'node:assert/strict'
import { test } from 'tap'
import fc from 'fast-check'
import { BoundedMap, OwnedMap } from '../../../plugins/base/limits/bounded-map.ts'

const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31)
console.log(`fast-check: FC_SEED=${seed}`)

test('beyond its bound the oldest entry is evicted', async () => {
  const evicted: Array<[string, number]> = []
  const map = new BoundedMap<string, number>(2, { onEvict: (key, value) => { evicted.push([key, value]) } })
  map.set('a', 1).set('b', 2)
  assert.deepEqual([...map], [['a', 1], ['b', 2]])
  map.set('c', 3)
  assert.deepEqual([...map], [['b', 2], ['c', 3]])
  assert.deepEqual(evicted, [['a', 1]])
  map.delete('b')
  map.clear()
  assert.deepEqual(evicted, [['a', 1]], 'removing an entry is no eviction')
})

test('set leaves the age of a known key as it is, setNewest does not', async () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1).set('b', 2).set('a', 3)
  assert.deepEqual([...map], [['a', 3], ['b', 2]])
  map.setNewest('a', 4)
  assert.deepEqual([...map], [['b', 2], ['a', 4]])
  map.set('c', 5)
  assert.deepEqual([...map.keys()], ['a', 'c'])
})

test('entries that are not evictable stay, and so does the one just set', async () => {
  const busy = new Set(['a', 'b', 'd'])
  const map = new BoundedMap<string, true>(2, { isEvictable: (key) => !busy.has(key) })
  for (const key of ['a', 'b', 'c']) map.set(key, true)
  assert.deepEqual([...map.keys()], ['a', 'b', 'c'], 'the new entry is not evicted in place of a busy one')
  map.set('d', true)
  assert.deepEqual([...map.keys()], ['a', 'b', 'd'])
  busy.clear()
  map.set('e', true)
  assert.deepEqual([...map.keys()], ['d', 'e'], 'it shrinks to its bound as soon as it can')
})

test('of entries with owners, the oldest of the owner that holds most is evicted', async () => {
  const evicted: string[] = []
  const map = new OwnedMap<number>(10, { sizeOf: (_key, value) => value, onEvict: (key) => { evicted.push(key) } })
  map.set('eve', 'e1', 4)
  map.set('ann', 'a1', 3)
  map.set('eve', 'e2', 2)
  map.set('ann', 'a2', 1)
  assert.deepEqual(evicted, [])
  map.set('bob', 'b1', 1)
  assert.deepEqual(evicted, ['e1'], 'of 6, 4 and 1')
  map.set('bob', 'b2', 5)
  assert.deepEqual(evicted, ['e1', 'b1', 'b2'], 'an owner that holds most loses what it has just set')
  map.set('ann', 'a1', 2)
  map.set('ann', 'a3', 6)
  assert.deepEqual([evicted.slice(3), map.get('ann', 'a1'), map.get('ann', 'a3')], [['a2'], 2, 6], 'an entry is as old as its last set')
  map.delete('ann', 'a3')
  map.delete('ann', 'a3')
  map.set('bob', 'b3', 6)
  assert.deepEqual([evicted.slice(4), map.get('eve', 'e2'), map.get('eve', 'a1')], [[], 2, undefined], 'what was deleted counts no more')
})

test('owners that hold one entry each lose the oldest of all, and spent entries of an owner go before its others', async () => {
  const evicted: string[] = []
  const map = new OwnedMap<true>(3, { onEvict: (key) => { evicted.push(key) } })
  for (const name of ['a', 'b', 'c', 'd', 'e']) map.set(name, name, true)
  assert.deepEqual(evicted, ['a', 'b'])
  for (const name of ['c', 'd', 'e']) map.delete(name, name)
  for (const key of ['1', '2', '3']) map.set('ann', key, true, key === '2')
  for (const key of ['4', '5']) map.set('ann', key, true)
  assert.deepEqual(evicted.slice(2), ['2', '1'])
})

test('whatever owners set and delete, who loses an entry holds most', async () => {
  const step = fc.record({ owner: fc.nat(6), key: fc.nat(9), size: fc.integer({ min: 1, max: 9 }), isDeleted: fc.boolean() })
  fc.assert(fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
    const held = new Map<string, { owner: string, size: number }>()
    const heldBy = (owner: string): number => [...held.values()].reduce((sum, each) => sum + (each.owner === owner ? each.size : 0), 0)
    const total = (): number => [...held.values()].reduce((sum, { size }) => sum + size, 0)
    const map = new OwnedMap<number>(40, {
      sizeOf: (_key, size) => size,
      onEvict: (key) => {
        const { owner = '' } = held.get(key) ?? {}
        assert.equal(heldBy(owner), Math.max(...[...held.values()].map((each) => heldBy(each.owner))))
        assert.equal(key, [...held].find(([, each]) => each.owner === owner)?.[0], 'its oldest')
        held.delete(key)
      }
    })
    for (const { owner: number, key: name, size, isDeleted } of steps) {
      const [owner, key] = [`o${number}`, `o${number} ${name}`]
      held.delete(key)
      if (isDeleted) map.delete(owner, key)
      else {
        held.set(key, { owner, size })
        map.set(owner, key, size)
      }
      assert.ok(total() <= 40)
      for (const [each, { owner, size }] of held) assert.equal(map.get(owner, each), size)
    }
  }), { seed })
})
