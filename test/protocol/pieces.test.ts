// What comes in small pieces takes no more memory than its size says, and stays what it was.
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { EventStreamParser } from '../../protocol/event-stream.ts'
import { Chunks, TextPieces, LineReader } from '../../protocol/pieces.ts'
import type { UnsolicitedKind } from '../../protocol/transports/valve.ts'

const KiB = 1024
const memoryOf = (buffers: readonly Buffer[]): number =>
  [...new Set(buffers.map(({ buffer }) => buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0)

test('the bytes are the same, in their order, however they came', async () => {
  const size = fc.oneof(fc.nat(3), fc.nat(2_000), fc.nat(40_000))
  fc.assert(fc.property(fc.array(size, { maxLength: 40 }), fc.nat(20), (sizes, before) => {
    const held = new Chunks()
    let next = 0
    const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, () => next++ % 251))
    const sent = sizes.map((each) => Buffer.concat([Buffer.alloc(before), bytes(each)]).subarray(before))
    for (const chunk of sent) held.push(chunk)
    const all = Buffer.concat(sent)
    assert.equal(held.length, all.length)
    assert.deepEqual(Buffer.concat(held.take()), all)
    assert.equal(held.length, 0)
    held.push(Buffer.from('x'))
    assert.equal(String(held.takeWhole()), 'x')
  }))
})

test('many small chunks are few buffers', async () => {
  const held = new Chunks()
  for (let n = 0; n < 200_000; n++) held.push(Buffer.from('x'))
  const buffers = held.take()
  assert.ok(buffers.length < 20, `${buffers.length} buffers`)
  assert.ok(memoryOf(buffers.slice(1)) <= 200_000 + 16 * KiB)
})

test('chunks that are small parts of large buffers do not keep these, large ones are not copied', async () => {
  const held = new Chunks()
  for (let n = 0; n < 100; n++) held.push(Buffer.alloc(64 * KiB, n).subarray(0, 4 * KiB))
  const memory = memoryOf(held.take().slice(1))
  assert.ok(memory <= 416 * KiB, `${memory} bytes`)
  const large = [1, 2, 3].map((n) => Buffer.alloc(64 * KiB, n))
  for (const chunk of large) held.push(chunk)
  assert.deepEqual(held.take().map(({ buffer }) => buffer), large.map(({ buffer }) => buffer))
})

test('a text is the same, however its parts came', async () => {
  const part = fc.oneof(fc.string({ maxLength: 3 }), fc.nat(3_000).map((length) => 'é'.repeat(length)))
  fc.assert(fc.property(fc.array(part, { maxLength: 600 }), fc.string(), (parts, end) => {
    const text = new TextPieces()
    for (const each of parts) text.push(each)
    assert.equal(text.length, parts.join('').length)
    assert.equal(text.take(end), parts.join('') + end)
    assert.equal(text.take(''), '')
  }))
})

test('lines that come byte by byte are what they are at once', async () => {
  const lines: string[] = []
  const reader = new LineReader(1_000, (line) => { lines.push(line) })
  for (const character of `${'a'.repeat(1_500)}\nb\n\n${'c'.repeat(999)}\n`) reader.push(character)
  assert.deepEqual(lines, ['a'.repeat(1_000), 'b', '', 'c'.repeat(999)])
})

test('a server that sends a few bytes at a time goes beyond its pace, one that ends messages does not', async () => {
  const { HttpAnswerReader } = await import('../../protocol/transports/http-answer.ts')
  const counted: UnsolicitedKind[] = []
  const answerOf = (): InstanceType<typeof HttpAnswerReader> => {
    const parser = new EventStreamParser(() => {}, 1_000_000)
    const handlers = { onHead: () => parser, onEnd: () => {}, onError: (error: Error) => { throw error } }
    const answer = new HttpAnswerReader(handlers, { pace: { count: (what) => { counted.push(what) }, waitTime: () => 0 } })
    const controller = { pause: () => {}, resume: () => {}, abort: () => {} } as never
    answer.onRequestStart(controller)
    answer.onResponseStart(controller, 200, {})
    return answer
  }
  const send = async (text: string, length: number): Promise<void> => {
    const answer = answerOf()
    for (let at = 0; at < text.length; at += length) {
      answer.onResponseData({} as never, Buffer.from(text.slice(at, at + length)))
      await new Promise(setImmediate)
    }
  }
  await send(`: ${'x'.repeat(400)}`, 1)
  assert.deepEqual(counted.splice(0), Array(6).fill('crumbs'))
  await send(`data: ${'x'.repeat(400_000)}`, 1_000)
  await send('data: {"a":1}\n\n'.repeat(200), 15)
  assert.deepEqual(counted, [])
})
