import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { Agent, type Dispatcher } from 'undici'
import { HttpAnswer } from '../../protocol/transports/http-answer.ts'
import { largeTextOf } from '../../protocol/transports/large-bytes.ts'
import { listen } from '../helpers/listen.ts'

const MiB = 1024 * 1024
const pause = async (): Promise<void> => { await new Promise((resolve) => { setImmediate(resolve) }) }
const chunked = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => Buffer.from(bytes.subarray(at * size, (at + 1) * size)))

test('the text of large bytes, in any chunks, whose own bytes stay as they are', async () => {
  for (const text of ['x'.repeat(300_000), `${'x'.repeat(3 * MiB)}end`, 'é€😀'.repeat(200_000)]) {
    const bytes = Buffer.from(text)
    for (const size of [bytes.length, 65_536, 65_537]) {
      const chunks = chunked(bytes, size)
      for (let n = 0; n < 3; n++) {
        const taken = [...chunks]
        assert.ok(await largeTextOf(taken, pause) === text)
        assert.deepEqual(taken, [])
      }
      assert.ok(Buffer.concat(chunks).equals(bytes))
    }
  }
})

test('texts that are made at the same time do not get the memory of each other', async () => {
  const texts = Array.from({ length: 8 }, (_, n) => String(n).repeat(2 * MiB))
  const read = await Promise.all(texts.map(async (text) => await largeTextOf(chunked(Buffer.from(text), 65_536), pause)))
  assert.ok(read.every((text, n) => text === texts[n]))
})

test('what is not UTF-8 is no text; what pause rejects with is told', async () => {
  const bytes = Buffer.concat([Buffer.alloc(MiB, 'x'), Buffer.from([0xff])])
  await assert.rejects(largeTextOf(chunked(bytes, 65_536), pause), SyntaxError)
  let steps = 0
  const refuse = async (): Promise<void> => { if (++steps === 3) throw new Error('no more') }
  await assert.rejects(largeTextOf(chunked(Buffer.alloc(MiB, 'x'), 65_536), refuse), /no more/)
})

test('a large answer is read with pauses, also one that is compressed', async (t) => {
  const body = JSON.stringify({ text: 'x'.repeat(4 * MiB) })
  const server = createServer((request, response) => {
    const isCompressed = request.url === '/gzip'
    response.writeHead(200, { 'content-type': 'application/json', ...(isCompressed ? { 'content-encoding': 'gzip' } : {}) })
    response.end(isCompressed ? gzipSync(body) : body)
  })
  const port = await listen(t, server)
  const agent = new Agent()
  t.after(async () => { await agent.close() })
  for (const path of ['/', '/gzip']) {
    let pauses = 0
    const text = await new Promise<string | undefined>((resolve, reject) => {
      const answer = new HttpAnswer({ onHead: () => 'collect', onEnd: resolve, onError: reject })
      const counted = answer.pause.bind(answer)
      answer.pause = () => { pauses++; counted() }
      agent.dispatch({ origin: `http://127.0.0.1:${port}`, path, method: 'GET' } satisfies Dispatcher.DispatchOptions, answer)
    })
    assert.ok(text === body)
    assert.ok(pauses > 10, `${pauses} pauses`)
  }
})
