import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Surface } from '../../../plugins/gateway/surface.ts'
import { ViewIndexes } from '../../../plugins/extensions/smart-routing/indexes.ts'
import { findSkills } from '../../../plugins/extensions/smart-routing/skill-search.ts'
import { setLimits } from '../../helpers/patient.ts'
import { extensionsLimits } from '../../../plugins/extensions/limits.ts'

/** A surface with tools only. */
function surfaceOf (view: number, count: number): Surface {
  const names = Array.from({ length: count }, (_, n) => `v${view}_tool_${n}`)
  const targets = new Map(names.map((name) => [name, { provider: 'one', key: name }]))
  const entries = names.map((name, n) => ({ text: JSON.stringify({ name, description: `tells of ${view}x${n}y` }) }))
  return { parts: { tools: { targets, list: { entries } } } } as unknown as Surface
}

test('the indexes of many views have a bound, and those that nobody searches do not follow their views', async (t) => {
  setLimits(t, extensionsLimits.smartRouting, { tools: 600 })
  const errors: unknown[] = []
  const indexes = new ViewIndexes((error) => { errors.push(error) })
  const each = Math.ceil(extensionsLimits.smartRouting.tools / 6)
  assert.ok(indexes.shouldUpdateEarly('view 0'), 'there is room')
  for (let view = 0; view < 12; view++) {
    const { index, updated } = indexes.update(`view ${view}`, surfaceOf(view, each))
    await updated
    assert.equal(index.search(`v${view} tool 7`, 1)[0]?.tool.name, `v${view}_tool_7`)
    const all = [...indexes.all].reduce((sum, { size }) => sum + size, 0)
    assert.ok(all <= extensionsLimits.smartRouting.tools + each, `${all} tools after ${view + 1} views`)
  }
  assert.deepEqual(errors, [])
  assert.ok(indexes.shouldUpdateEarly('view 11'), 'it was searched just now')
  assert.ok(!indexes.shouldUpdateEarly('view 0'), 'it was dropped, and is built again by the next search')
  assert.ok(!indexes.shouldUpdateEarly('another'), 'there is no room')
  const later = performance.now() + extensionsLimits.smartRouting.inUsePeriod + 1
  t.intercept(performance, 'now', { value: () => later })
  assert.ok(!indexes.shouldUpdateEarly('view 11'), 'nobody searches it any more')
})

test('a view whose tools get other names keeps its index, and views with equal tools share it', async (t) => {
  const items = ['send_parcel', 'open_shop'].map((key) => ({ key, text: JSON.stringify({ name: key }) }))
  const withAlias = (alias: string): Surface => {
    const targets = new Map(items.map((item) => [`${alias}-${item.key}`, { provider: 'post', key: item.key, item }]))
    return { parts: { tools: { targets, list: { entries: items } } } } as unknown as Surface
  }
  const indexes = new ViewIndexes((error) => { assert.fail(String(error)) })
  await indexes.update('view', withAlias('a')).updated
  const parsed = t.capture(JSON, 'parse', JSON.parse)
  for (const [view, alias] of [['view', 'b'], ['other', 'c']] as const) {
    const { index, updated } = indexes.update(view, withAlias(alias))
    await updated
    assert.equal(index.search('send a parcel', 5)[0]?.tool.name, `${alias}-send_parcel`)
  }
  assert.equal(parsed().length, 0, 'the tools were analysed once')
})

test('views of the same tools take the memory of one, and an owner of many views drops its own', async (t) => {
  const indexes = new ViewIndexes((error) => { assert.fail(String(error)) })
  const some = (view: number, omitted = -1): Surface => {
    const { parts: { tools: { targets, list } } } = surfaceOf(view, 100)
    const isKept = (_: unknown, at: number): boolean => at !== omitted
    const kept = [...targets].map(([name, target], at) => [name, { ...target, item: items[view]?.[at] }] as const).filter(isKept)
    const tools = { targets: new Map(kept), list: { entries: list.entries.filter(isKept) } }
    return { parts: { tools } } as unknown as Surface
  }
  const items = Array.from({ length: 8 }, (_, view) => Array.from({ length: 100 }, (_, n) => ({ key: `v${view}_tool_${n}`, text: '' })))
  await indexes.update('bob', some(0), 'bob').updated
  const one = indexes.memory
  for (let omitted = 0; omitted < 20; omitted++) await indexes.update(`ada ${omitted}`, some(0, omitted), 'ada').updated
  assert.equal(indexes.memory, one, 'the memory of the tools, once')

  setLimits(t, extensionsLimits.smartRouting, { size: 3.5 * one })
  const bob = indexes.update('bob', some(0), 'bob').index
  const last = Array.from({ length: 7 }, (_, at) => indexes.update(`ada's ${at}`, some(at + 1), 'ada'))
  for (const { updated } of last) await updated
  assert.ok(indexes.memory <= 3.5 * one + 5_000, `${indexes.memory} bytes, where 100 tools take ${one}`)
  assert.ok(!bob.isClosed, 'the others keep theirs')
  assert.ok(!last.at(-1)?.index.isClosed && last[0]?.index.isClosed)
  assert.equal(last[0].index.search('v1 tool 7', 1).length, 0)
  assert.equal(last.at(-1)?.index.search('v7 tool 7', 1)[0]?.tool.name, 'v7_tool_7')
})

test('a view beyond the bound has an index of a part of its tools', async (t) => {
  setLimits(t, extensionsLimits.smartRouting, { size: 50_000 })
  const indexes = new ViewIndexes((error) => { assert.fail(String(error)) })
  const { index, updated } = indexes.update('view', surfaceOf(0, 1_000))
  await updated
  assert.ok(indexes.memory > 40_000 && indexes.memory < 55_000, `${indexes.memory} bytes`)
  assert.equal(index.search('v0 tool 7', 1)[0]?.tool.name, 'v0_tool_7')
  assert.equal(index.search('v0_tool_999', 10).filter(({ isNamed }) => isNamed).length, 0)
})

test('an index of skills that could not be created is created by the next search', async () => {
  let failures = 1
  const skills = {
    list: { entries: [{ text: JSON.stringify({ frontmatter: { name: 'parcels', description: 'Sends parcels' } }) }] },
    get targets () {
      if (failures-- > 0) throw new Error('too many open files')
      return new Map([['skill://parcels/SKILL.md', { provider: 'post' }]])
    }
  }
  const surface = { parts: { skills } } as unknown as Surface
  await assert.rejects(findSkills(surface, 'send parcels', 5), /too many open files/)
  assert.equal((await findSkills(surface, 'send parcels', 5))[0]?.uri, 'skill://parcels/SKILL.md')
})
