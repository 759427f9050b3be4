// own process: it reads the memory that the whole process has reserved
import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'tap'
import { memoryOfJson } from '../../../plugins/base/body/values.ts'
import { pacedReply } from '../../../plugins/base/limits/paced-reply.ts'
import { memoryBudget } from '../../../plugins/base/limits/memory.ts'
import { detachedCopy, largeTextLength, memoryOf, detachedSlice } from '../../../protocol/text.ts'

const reply = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()))
const close = (raw: ServerResponse): void => { raw.emit('close') }

test('a reply in chunks counts in its owner\'s share from the beginning, until its connection is gone', async () => {
  const { held } = memoryBudget
  const raw = reply()
  const body = pacedReply(raw, [Buffer.alloc(1_000_000), Buffer.alloc(500_000)], 1_500_000, { owner: 'reader', cost: 1 })
  assert.equal(memoryBudget.held - held, 1_500_000)
  body.destroy()
  close(raw)
  assert.equal(memoryBudget.held, held)
})

test('the memory of a text is two bytes a character where one of them is beyond Latin-1', async () => {
  for (const [text, bytes] of [['', 0], ['abc', 3], ['äöü\u00ff', 4], ['\u0100', 2], ['abж', 6], ['€', 2], ['😀', 4], ['a\ud800', 4]] as const) {
    assert.equal(memoryOf(text), bytes, text)
    assert.equal(detachedCopy(text), text)
    assert.equal(detachedSlice(`${'x'.repeat(5_000)}${text}`, 5_000, 5_000 + text.length), text)
  }
})

test('that of a JSON text that is kept with its values counts these as well, but of large texts, whose values are not made', async () => {
  assert.equal(memoryOfJson('{"a":[{},{}]}'), 13 + 112 + 192 + 112 + 2 * 112 + 48)
  assert.equal(memoryOfJson('"жж"'), 8)
  const large = `["${'x'.repeat(largeTextLength)}"]`
  assert.equal(memoryOfJson(large), large.length)
})
