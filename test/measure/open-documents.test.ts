// What OpenAPI documents cost: CPU time, and how long they hold the event loop.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { makeDocument, type DocumentInput } from '../../plugins/downstream/openapi/document.ts'
import { measureHold } from '../fakes/loop-hold.ts'
import { cpuTime, median } from '../helpers/measured.ts'
import { documentsOf, manyTools } from '../helpers/open-documents.ts'

test('a document over 1,000 tools takes less than 150 ms of CPU', async (t) => {
  const head = { title: '', about: '', version: '1', serverUrl: '/api', isAuthenticated: false, isBrief: false }
  const built = await median(t, 'written', async () => {
    const tools = manyTools(1_000).map((tool) => ({ ...tool, description: undefined, operationId: tool.key }))
    const input: DocumentInput = { ...head, format: 'json', servers: [{ name: 'big', description: undefined, tools }] }
    return await cpuTime(() => JSON.stringify(makeDocument(input)))
  })
  assert.ok(built < 150, `${built} ms`)
})

test('a document over 3,000 tools holds the event loop for less than 50 ms', async (t) => {
  const { ask } = documentsOf(t, manyTools(3_000))
  let count = 0
  for (const format of ['json', 'yaml'] as const) {
    const held = await median(t, format, async () => {
      const end = measureHold()
      await Promise.all(Array.from({ length: 5 }, async () => await ask(`title ${count++}`, format)))
      return end()
    })
    assert.ok(held < 50, `${format}: ${held} ms`)
  }
})
