// What searching by words costs: an index of many tools, and odd questions.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { readTools } from '../../bench/search/questions.ts'
import { rankedBy } from '../../bench/search/ranked.ts'
import { syntheticTools } from '../../bench/search/synthetic.ts'
import { ToolIndex } from '../../plugins/extensions/smart-routing/words/index.ts'
import { cpuTime, median } from '../helpers/measured.ts'

test('10,000 tools are indexed in less than 10 s of CPU, and an odd question costs less than 200 ms', async (t) => {
  const tools = syntheticTools(readTools().tools, 10_000)
  let index = new ToolIndex()
  const built = await median(t, 'indexed', async () => {
    index = new ToolIndex()
    const fresh = tools.map((tool) => ({ ...tool }))
    return await cpuTime(async () => { await index.update(fresh) })
  })
  assert.ok(built < 10_000, `${built} ms`)
  const search = rankedBy(index, tools)
  for (const text of [
    'x'.repeat(65_536), 'aB'.repeat(32_768), 'ﷺ'.repeat(20_000), '中'.repeat(65_536), '{"a":'.repeat(10_000), '/a'.repeat(30_000), '😀'.repeat(20_000)
  ]) {
    const asked = await median(t, text.slice(0, 5), async () => await cpuTime(async () => { await search(text, 10) }))
    assert.ok(asked < 200, `${text.slice(0, 5)}: ${asked} ms`)
  }
})
