// What OpenAPI documents cost: CPU time, and how long they hold the event loop.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { stringify } from 'yaml'
import type { BodyInput } from '../../plugins/downstream/openapi/document.ts'
import { writeBody } from '../../plugins/downstream/openapi/write.ts'
import { measureHold } from '../fakes/loop-hold.ts'
import { cpuTime, median } from '../helpers/measured.ts'
import { documentsOf, listing, manyTools } from '../helpers/open-documents.ts'

test('a document over 1,000 tools takes less than 150 ms of CPU, and then next to nothing', async (t) => {
  const flags = { includesDisabled: false, isForGroup: false, isAuthenticated: false }
  const fresh = (): BodyInput => ({ servers: [listing(manyTools(1_000))], ...flags })
  const build = (input: BodyInput): string => `{${[...writeBody(input, 'json')].map(({ text }) => text).join('')}`
  assert.ok(build(fresh()).length > 1_000_000)
  const built = await median(t, 'written', async () => {
    const input = fresh()
    return await cpuTime(() => build(input))
  })
  assert.ok(built < 150, `${built} ms`)

  const { world, ask } = documentsOf(manyTools(1_000))
  await ask('first')
  await ask('first', 'yaml')
  const kept = await median(t, 'kept', async () => await cpuTime(async () => {
    for (let n = 0; n < 20; n++) { await ask(`other ${n}`); await ask(`other ${n}`, 'yaml') }
  }) / 40)
  assert.ok(kept < 3, `${kept} ms for one that is kept`)
  const again = await median(t, 'as YAML', async () => { world.version++; return await cpuTime(async () => { await ask('first', 'yaml') }) })
  const folded: unknown = JSON.parse(build(fresh()))
  const library = await cpuTime(() => stringify(folded, { aliasDuplicateObjects: false }))
  assert.ok(again < library / 4, `${again} ms for YAML, ${library} ms by the library`)
})

test('a document over 3,000 tools holds the event loop for less than 50 ms', async (t) => {
  const { world, ask } = documentsOf(manyTools(3_000))
  for (const format of ['json', 'yaml'] as const) {
    const held = await median(t, format, async () => {
      world.version++
      const end = measureHold()
      await Promise.all(Array.from({ length: 20 }, async (_, n) => await ask(`title ${n}`, format)))
      return end()
    })
    assert.ok(held < 50, `${format}: ${held} ms`)
  }
})
