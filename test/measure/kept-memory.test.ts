// own process: it reads the heap
// What stays in memory of a large text of which a small part is kept.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { readList } from '../../plugins/upstream/catalogues/read-list.ts'
import { parseMessage } from '../../protocol/parse-message.ts'
import { median } from '../helpers/measured.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const filling = 'x'.repeat(1024 * 1024)

/** The memory that stays with the result of some work, in MiB. */
async function kept (work: () => Promise<unknown>): Promise<number> {
  const used = (): number => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return (heapUsed + external) / 1024 / 1024
  }
  const before = used()
  const result = await work()
  const more = used() - before
  assert.ok(result)
  return more
}

test('what is kept of a message, or of a page of a list, does not keep the rest of it in memory', async (t) => {
  const text = (n: number): string => `{"jsonrpc":"2.0","id":${n},"method":"m","rest":"${filling}","params":{"text":"of the question"}}`
  const page = (n: number): string =>
    `{"tools":[{"name":"tool number ${n}","inputSchema":{"type":"object"}}],"rest":"${filling}"${n < 40 ? `,"nextCursor":"${n + 1}"` : ''}}`
  const ofMessages = await median(t, 'MiB of 40 messages', async () => await kept(async () => Array.from({ length: 40 }, (_, n) => {
    const message = parseMessage(Buffer.from(text(n)).toString(), 10)
    assert.ok(!Array.isArray(message) && message.kind === 'request')
    return message.paramsText
  })))
  assert.ok(ofMessages < 10, `${Math.round(ofMessages)} MiB of messages`)
  const ofPages = await median(t, 'MiB of 40 pages', async () => {
    let n = 0
    return await kept(async () => await readList('tools', async () => Buffer.from(page(++n)).toString(), () => {}))
  })
  assert.ok(ofPages < 10, `${Math.round(ofPages)} MiB of pages`)
})
