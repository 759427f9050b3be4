// What the system has to provide while a large answer becomes a text.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { largeTextOf } from '../../protocol/transports/large-bytes.ts'
import { median } from '../helpers/measured.ts'

const MiB = 1024 * 1024
const faults = (): number => process.resourceUsage().minorPageFault

test('no step has much memory provided by the system, nor has the text itself', { skip: process.platform !== 'linux' }, async (t) => {
  const most = await median(t, 'page faults in one step', async () => {
    const bytes = Buffer.alloc(12 * MiB, 'x')
    const chunks = Array.from({ length: 192 }, (_, at) => Buffer.from(bytes.subarray(at * 65_536, (at + 1) * 65_536)))
    const steps: number[] = []
    let begun = faults()
    const text = await largeTextOf(chunks, async () => {
      steps.push(faults() - begun)
      await new Promise((resolve) => { setImmediate(resolve) })
      begun = faults()
    })
    steps.push(faults() - begun)
    assert.equal(text.length, 12 * MiB)
    return Math.max(...steps)
  })
  assert.ok(most < 1_000, `${most} pages in one step; the whole text has ${12 * MiB / 4096}`)
})
