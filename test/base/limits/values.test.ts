// own process: it reads the memory that the whole process has reserved
import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'tap'
import { parseLargeJson } from '../../../plugins/base/body/body.ts'
import { reserveUntilClosed } from '../../../plugins/base/body/memory.ts'
import { memoryOfValues, memoryOfJson } from '../../../plugins/base/body/values.ts'
import { chunkedReply } from '../../../plugins/base/limits/large-body.ts'
import { memory } from '../../../plugins/base/limits/memory.ts'
import { scanJson } from '../../../protocol/json-scanner.ts'
import { detachedCopy, largeText, memoryOf, detachedSlice } from '../../../protocol/text.ts'

const reply = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()))
const close = (raw: ServerResponse): void => { raw.emit('close') }

test('the cost of values is that of what is made of a text', async () => {
  const cost = (text: string): number => memoryOfValues(scanJson(text, { maxDepth: 9 }))
  assert.equal(cost('"text"'), 48)
  assert.equal(cost('[]'), 112)
  assert.equal(cost('[1,2]'), 208)
  assert.equal(cost('{"a":1}'), 352)
  assert.equal(cost('[{},{}]'), 3 * 112)
})

test('memory is taken in the name of the sender before values are made, until the request is answered', async () => {
  const before = memory.held
  const empty = `{"a":[${Array(200_000).fill('[]').join()}]}`
  const raw = reply()
  const value = parseLargeJson(empty, reserveUntilClosed(raw, 'values of one')) as { a: unknown[] }
  assert.equal(value.a.length, 200_000)
  assert.ok(memory.held - before > 20 * 1024 * 1024, String(memory.held - before))
  close(raw)
  assert.equal(memory.held, before)
})

test('a body whose values do not fit is refused before they are made', async () => {
  const { held } = memory
  const release = memory.take('another one', Math.floor(memory.max * 3 / 4) - held - 1024 * 1024)
  const more = memory.take('a third one', Math.floor(memory.max / 10))
  const last = memory.take('a fourth one', Math.floor(memory.max / 10))
  const empty = `{"a":[${Array(240_000).fill('{}').join()}]}`
  const raw = reply()
  assert.throws(() => parseLargeJson(empty, reserveUntilClosed(raw, 'values of one')), { name: 'ShareError' })
  const words = JSON.stringify({ a: 'word '.repeat(100_000) })
  assert.ok(parseLargeJson(words, reserveUntilClosed(raw, 'values of one')))
  for (const each of [release, more, last]) each()
  close(raw)
  assert.equal(memory.held, held)
})

test('a reply in chunks counts in its owner\'s share from the beginning, until its connection is gone', async () => {
  const { held } = memory
  const raw = reply()
  const body = chunkedReply(raw, [Buffer.alloc(1_000_000), Buffer.alloc(500_000)], 1_500_000, { owner: 'reader', cost: 1 })
  assert.equal(memory.held - held, 1_500_000)
  body.destroy()
  close(raw)
  assert.equal(memory.held, held)
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
  const large = `["${'x'.repeat(largeText)}"]`
  assert.equal(memoryOfJson(large), large.length)
})
