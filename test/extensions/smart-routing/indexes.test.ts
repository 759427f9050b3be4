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
  const entries = names.map((name) => ({ text: JSON.stringify({ name }) }))
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
