// A compressed answer that comes faster than it is decompressed.
import assert from 'node:assert/strict'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { test } from 'tap'
import type { Dispatcher } from 'undici'
import { decoderOf, HttpAnswerReader } from '../../protocol/transports/http-answer.ts'

const text = JSON.stringify(Array.from({ length: 60_000 }, (_, at) => ({ at, word: `${at * 7919 % 99991}-${at}` })))
const encodings: Array<[string, Buffer]> = [
  ['gzip', gzipSync(text)],
  ['br', brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })]
]

for (const [encoding, bytes] of encodings) {
  for (const size of [512, 16 * 1024, 200_000]) {
    test(`${encoding} in pieces of ${size}, all at once: it is read whole, and waits on one listener`, async (t) => {
      const warnings: Error[] = []
      const warn = (warning: Error): void => { warnings.push(warning) }
      process.on('warning', warn)
      t.after(() => { process.off('warning', warn) })
      let resumed = 0
      const read = await new Promise<string | undefined>((resolve, reject) => {
        const answer = new HttpAnswerReader({ onHead: () => 'collect', onEnd: resolve, onError: reject })
        // The end of the body is read only after that.
        const resume = (): void => { if (resumed++ === 0) answer.onResponseEnd() }
        const controller = { abort: () => {}, pause: () => {}, resume } as unknown as Dispatcher.DispatchController
        answer.onRequestStart(controller)
        answer.onResponseStart(controller, 200, { 'content-type': 'application/json', 'content-encoding': encoding })
        // What was read from the socket already comes although the reader has asked for a pause.
        for (let at = 0; at < bytes.length; at += size) answer.onResponseData(controller, bytes.subarray(at, at + size))
      })
      assert.ok(read === text)
      // Node emits the warning in a later turn.
      await new Promise((resolve) => { setImmediate(resolve) })
      assert.deepEqual(warnings, [])
      assert.equal(resumed, 1)
    })
  }
}

test('reading goes on only when nothing else holds it', async () => {
  const calls: string[] = []
  const controller = { abort: () => {}, pause: () => { calls.push('pause') }, resume: () => { calls.push('resume') } } as unknown as Dispatcher.DispatchController
  const [, [, bytes] = ['', Buffer.alloc(0)]] = encodings
  const answer = new HttpAnswerReader({ onHead: () => 'collect', onEnd: () => {}, onError: () => {} })
  answer.onRequestStart(controller)
  answer.onResponseStart(controller, 200, { 'content-encoding': 'br' })
  answer.pause()
  for (let at = 0; at < bytes.length; at += 50_000) answer.onResponseData(controller, bytes.subarray(at, at + 50_000))
  answer.resume()
  assert.ok(!calls.includes('resume'), 'the decoder is full')
  answer.abort()
})

test('a content encoding that is none: nothing is decoded; an unknown one is refused', async () => {
  for (const encoding of [undefined, '', 'identity', 'UTF-8', ' utf8', 'ISO-8859-1', 'none']) {
    assert.equal(decoderOf(encoding), undefined, encoding)
  }
  for (const encoding of ['zstd', 'compress', 'gzip, gzip', 'utf-8, gzip']) {
    assert.throws(() => decoderOf(encoding), /is not one of gzip, deflate and br/, encoding)
  }
})
