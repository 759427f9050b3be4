import assert from 'node:assert/strict'
import { test } from 'tap'
import { ItemTexts, recordsJson, type LargeAnswers } from '../../plugins/servers/item-texts.ts'
import type { Item } from '../../protocol/lists.ts'

const item = (key: string, description: string): Item =>
  ({ key, text: JSON.stringify({ name: key, description, big: 12345678901234567890n.toString() }) }) as Item
const server = { config: { tools: { b: { enabled: false, description: 'Ours "€"' } } }, prefix: undefined }

/** Where a large answer is written without waiting, and what it took. */
function largeAnswers (): LargeAnswers & { held: number, steps: number } {
  const large = {
    held: 0,
    steps: 0,
    hold: (bytes: number) => { large.held += bytes },
    run: async <Result> (work: (pause: () => Promise<void>) => Promise<Result>) => await work(async () => { large.steps++ })
  }
  return large
}

test('a small answer is text', async () => {
  const large = largeAnswers()
  const tools = new ItemTexts([item('a', 'A'), item('b', 'B')], server, 'tools')
  const answer = { name: 's', tools, prompts: new ItemTexts([], server, 'prompts') }
  assert.deepEqual(JSON.parse(String(await recordsJson(answer, large))), {
    name: 's',
    tools: [
      { name: 'a', description: 'A', big: '12345678901234567890', enabled: true },
      { name: 'b', description: 'Ours "€"', big: '12345678901234567890', overridden: true, enabled: false }
    ],
    prompts: []
  })
  assert.equal(large.held, 0)
})

test('a large answer is the same JSON in parts: what was listed is no copy, all else is bytes', async () => {
  const large = largeAnswers()
  const texts = ['x'.repeat(1_000_000), '€😀'.repeat(100_000), ...Array.from({ length: 2_000 }, (_, n) => `tool ${n} é`)]
  const items = texts.map((description, n) => item(`t${n}`, description))
  const answer = await recordsJson([{ name: 's', tools: new ItemTexts(items, server, 'tools') }], large)
  assert.ok(typeof answer === 'object')
  const bytes = Buffer.concat(answer.parts.map((part) => Buffer.from(part)))
  assert.equal(bytes.length, answer.length)
  assert.equal(large.held, answer.length)
  const [record] = JSON.parse(bytes.toString()) as [{ tools: Array<{ name: string, description: string, enabled: boolean }> }]
  assert.deepEqual(record.tools.map(({ description }) => description), texts)
  assert.ok(record.tools.every(({ name, enabled }, n) => name === `t${n}` && enabled))
  const shared = answer.parts.filter((part) => typeof part === 'string')
  assert.deepEqual(shared, texts.slice(0, 2).map((text) => `"description":${JSON.stringify(text)}`))
  assert.ok(answer.parts.every((part) => typeof part === 'string' || part.length < 3 * 128 * 1024))
  assert.ok(large.steps >= answer.parts.length - 1)
})
