// own process: it reads the resident memory
import assert from 'node:assert/strict'
import { test } from 'tap'
import { Compressor } from '../../plugins/extensions/compression/compressor.ts'

test('compressing a result of 6 MB takes less than 300 MiB, and no more', async (t) => {
  const options = { strategy: 'auto', minTokens: 2_000, maxOutputTokens: 1_200, structuredContent: false, uriPrefix: 'x://' } as const
  const compressor = new Compressor((reason) => { assert.fail(String(reason)) })
  t.after(() => { compressor.close() })
  for (const unit of ['@@ -1,1 +1,1 @@\n+a\n-b\n', 'a.c:1:b\n']) {
    const result = JSON.stringify({ content: [{ type: 'text', text: unit.repeat(6_000_000 / unit.length) }] })
    const before = process.memoryUsage.rss()
    let most = before
    const timer = setInterval(() => { most = Math.max(most, process.memoryUsage.rss()) }, 10)
    await compressor.compress({ result, options }, 'ann')
    clearInterval(timer)
    t.comment(`${unit}: ${Math.round((most - before) / 1024 / 1024)} MiB`)
    assert.ok(most - before < 300 * 1024 * 1024, `${unit}: ${Math.round((most - before) / 1024 / 1024)} MiB`)
  }
})
