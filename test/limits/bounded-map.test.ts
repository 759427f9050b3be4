import assert from 'node:assert/strict'
import { test } from 'tap'
import { BoundedMap } from '../../plugins/limits/bounded-map.ts'

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
