// Event streams: bytes to events and back.
import assert from 'node:assert/strict'
import { test } from 'tap'
import fc from 'fast-check'
import { EventStreamParser, eventText, primingEventText, type ServerSentEvent } from '../../protocol/event-stream.ts'
import { holds, jsonText, padded } from '../helpers/json-texts.ts'

const parse = (chunks: Iterable<Uint8Array>, limit = 1_000_000): ServerSentEvent[] => {
  const events: ServerSentEvent[] = []
  const parser = new EventStreamParser((event) => { events.push(event) }, limit)
  for (const chunk of chunks) parser.push(chunk)
  return events
}
const parseText = (text: string, limit?: number): ServerSentEvent[] => parse([Buffer.from(text)], limit)
const event = (data: string, more: Partial<ServerSentEvent> = {}): ServerSentEvent => ({
  event: 'message', data, id: undefined, retry: undefined, ...more
})

test('event stream: fields as the standard reads them', async () => {
  const table: Array<[string, ServerSentEvent[]]> = [
    ['data: a\n\n', [event('a')]],
    ['data:a\n\n', [event('a')]],
    ['data:  a \n\n', [event(' a ')]],
    ['data: a\ndata: b\ndata\n\n', [event('a\nb\n')]],
    ['data: a:b: c\n\n', [event('a:b: c')]],
    ['event: endpoint\ndata: /x\n\ndata: y\n\n', [event('/x', { event: 'endpoint' }), event('y')]],
    ['event: lost\n\ndata: y\n\n', [event('y')]],
    [': comment\n\n:\n\ndata: a\n: within\ndata: b\n\n', [event('a\nb')]],
    ['id: 7\nretry: 100\ndata: \n\n', [event('', { id: '7', retry: 100 })]],
    ['id: 7\n\n', [event('', { id: '7' })]],
    ['id\ndata: a\n\n', [event('a', { id: '' })]],
    ['id: a\0b\ndata: a\n\n', [event('a')]],
    ['retry: 1.5\nretry: -1\nretry: x\nretry:\ndata: a\n\n', [event('a')]],
    ['Data: a\nunknown: b\ndata: c\n\n', [event('c')]],
    ['data: a', []], ['data: a\n', []], ['\n\n\n', []],
    ['data: a\r\n\r\ndata: b\r\n\r\n', [event('a'), event('b')]],
    ['data: a\r\n\ndata: b\n\r\n', [event('a'), event('b')]],
    // A lone CR ends a line, too (WHATWG HTML, 9.2.5).
    ['data: a\rdata: b\r\rdata: c\n\n', [event('a\nb'), event('c')]],
    ['\ufeffdata: a\n\n', [event('a')]],
    ['data: é\u2028😀\n\n', [event('é\u2028😀')]]
  ]
  for (const [text, events] of table) assert.deepEqual(parseText(text), events, JSON.stringify(text))
})

test('event stream: whatever ends the lines, and wherever the chunks break between them', async () => {
  const bytewise = (text: string): ServerSentEvent[] => parse(Array.from(Buffer.from(text), (byte) => Uint8Array.of(byte)))
  for (const text of [
    'data: a\r\rdata: b\r\r', 'data: a\r\n\r\ndata: b\n\n', 'data: a\r\n\ndata: b\n\n', 'data: a\n\rdata: b\r\n\r',
    'data: a\r\n\rdata: b\r\r\n'
  ]) {
    assert.deepEqual(parseText(text), [event('a'), event('b')], JSON.stringify(text))
    assert.deepEqual(bytewise(text), [event('a'), event('b')], `${JSON.stringify(text)}, byte by byte`)
  }
})

test('event stream: chunks may break anywhere: in a character, in a line end, in a field', async () => {
  const line = fc.constantFrom('\n', '\r\n')
  const word = fc.string({ unit: fc.constantFrom('a', ':', ' ', '{', '"', 'é', '😀', '中'), maxLength: 8 })
  const one = fc.record({
    name: fc.option(fc.constantFrom('message', 'endpoint')),
    data: fc.array(word, { minLength: 1, maxLength: 3 }),
    id: fc.option(fc.string({ unit: fc.constantFrom('1', '-', 'ü'), maxLength: 4 })),
    retry: fc.option(fc.nat(99_999)),
    comment: fc.boolean(),
    end: line
  })
  holds(fc.property(fc.array(one, { maxLength: 5 }), fc.array(fc.nat(500), { maxLength: 30 }), (list, cuts) => {
    const text = list.map(({ name, data, id, retry, comment, end }) =>
      [
        ...(comment ? [': a comment: data: no'] : []),
        ...(name === null ? [] : [`event: ${name}`]),
        ...(id === null ? [] : [`id: ${id}`]),
        ...(retry === null ? [] : [`retry: ${retry}`]),
        ...data.map((each) => `data: ${each}`),
        '',
        ''
      ].join(end)
    )
      .join('')
    const expected = list.map(({ name, data, id, retry }) =>
      event(data.join('\n'), { event: name ?? 'message', id: id ?? undefined, retry: retry ?? undefined })
    )
    const bytes = Buffer.from(text)
    const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
    assert.deepEqual(parse(at.slice(1).map((end, index) => bytes.subarray(at[index], end))), expected)
    assert.deepEqual(parse(Array.from(bytes, (byte) => Uint8Array.of(byte))), expected)
  }))
})

test('event stream: an event beyond the limit is refused, however it comes; one within it is not', async () => {
  const chunked = (text: string, size: number): Uint8Array[] =>
    Array.from({ length: Math.ceil(text.length / size) }, (_, at) => Buffer.from(text.slice(at * size, (at + 1) * size)))
  assert.equal(parseText(`data: ${'x'.repeat(90)}\n\n`, 100).length, 1)
  assert.equal(parse(chunked(`data: ${'x'.repeat(90)}\n\n`, 7), 100).length, 1)
  assert.equal(parse(chunked(`data: ${'x'.repeat(90)}\n\n`.repeat(50), 7), 100).length, 50)
  const tooLong: Record<string, Uint8Array[]> = {
    'one line at once': [Buffer.from(`data: ${'x'.repeat(101)}\n`)],
    'one line in pieces': chunked(`data: ${'x'.repeat(200)}`, 7),
    'a line that never ends': chunked('x'.repeat(200), 7),
    'many lines': chunked(`data: ${'x'.repeat(30)}\n`.repeat(4), 7),
    'a comment that never ends': chunked(`:${'x'.repeat(200)}`, 7),
    'many empty lines': [Buffer.from('data:\n'.repeat(1_000))]
  }
  for (const [how, chunks] of Object.entries(tooLong)) assert.throws(() => parse(chunks, 100), RangeError, how)
})

test('event stream: what the writers write is read back, on one line', async () => {
  holds(
    fc.property(
      padded(jsonText),
      fc.option(fc.integer({ min: 0, max: 99 }).map((n) => `${n}-${n}`), { nil: undefined }),
      ({ text }, id) => {
        const written = eventText(text, id)
        const [read, ...more] = parseText(written)
        assert.equal(more.length, 0)
        assert.equal(read?.id, id)
        assert.equal(read?.event, 'message')
        // Not by JSON.parse: on Node 24, texts with repeated members that differ in white space only gave different objects.
        const bare = (json: string): string => json.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1')
        assert.equal(bare(read?.data ?? ''), bare(text))
        assert.doesNotMatch(read?.data ?? '', /[\r\n]/)
      }
    )
  )
  assert.deepEqual(parseText(primingEventText('3-0', 1_500)), [event('', { id: '3-0', retry: 1_500 })])
})
