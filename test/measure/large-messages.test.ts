// own process: it measures CPU time
// The CPU time that the main thread takes for the largest message of a server, whatever is in it.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { transportLimits, parseMessages } from '../../protocol/transports/transport.ts'
import { cpuTime } from '../helpers/measured.ts'

const filled = (part: string): string => part.repeat((transportLimits.message - 200) / part.length)
const results: Record<string, () => string> = {
  'empty arrays': () => `[${filled('[],')}0]`,
  'empty objects': () => `[${filled('{},')}0]`,
  digits: () => `[${filled('1,')}0]`,
  numbers: () => `[${filled('1.5e1,')}0]`,
  'short texts': () => `[${filled('"",')}0]`,
  'a long text': () => `"${filled('x')}"`,
  'a long text beyond ASCII': () => `"${filled('é').slice(0, transportLimits.message / 2 - 200)}"`,
  escapes: () => `"${filled('\\u0041')}"`,
  'nested arrays': () => `[${filled(`${'['.repeat(15)}${']'.repeat(15)},`)}0]`,
  'blocks of content': () => `[${filled('{"type":"text","text":"a line","annotations":{"priority":0.5}},')}0]`
}

for (const [name, make] of Object.entries(results)) {
  test(`a message of 16 MiB takes less than 250 ms of CPU: ${name}`, async (t) => {
    const bytes = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{"x":${make()}}}`)
    const times: number[] = []
    for (let round = 0; round < 5; round++) {
      times.push(await cpuTime(() => { assert.equal(parseMessages(bytes.toString()).length, 1) }))
    }
    const median = times.sort((a, b) => a - b)[2] ?? Infinity
    t.comment(`${name}: ${median.toFixed(0)} ms`)
    assert.ok(median < 250, `${median} ms`)
  })
}
