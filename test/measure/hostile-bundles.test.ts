// What hostile and large archives cost a gateway in memory. It needs Linux (/proc). integration/bundles has what is refused.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { bundlesBeside, filesBelow, sendBundle } from '../helpers/bundles.ts'
import { settings } from '../helpers/client.ts'
import { median } from '../helpers/measured.ts'
import { spawnHub } from '../helpers/hub.ts'
import { bundleEntries, hostile, zip, type ZipEntry } from '../fakes/zip.ts'

/** The memory of a process, in MiB. */
const memoryOf = (pid: number): number => Number(/^VmRSS:\s+([0-9]+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

/** 48 MiB that cannot be compressed. */
function noise (seed: number): Buffer {
  const bytes = Buffer.alloc(48 * 1024 * 1024)
  for (let at = 0, state = seed; at < bytes.length; at += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes.writeUInt32LE(state, at)
  }
  return bytes
}
const stored = (name: string, data: Buffer): ZipEntry => ({ name, data, raw: data, both: { method: 0 } })

test('hostile and large archives cost a process less than 64 MiB', async (t) => {
  const large = zip([...bundleEntries({ name: 'large' }), stored('a', noise(1)), stored('b', noise(2))])
  const tooLarge = Buffer.concat([large, Buffer.alloc(16 * 1024 * 1024)])
  const cost = await median(t, 'MiB above an idle gateway', async () => {
    const hub = await spawnHub(t, { settings: settings({}) })
    const root = bundlesBeside(hub.settingsPath)
    // The first upload loads what uploads need.
    assert.equal((await sendBundle(hub, zip(bundleEntries()))).status, 200)
    const idle = memoryOf(hub.pid)
    let peak = idle
    const watch = setInterval(() => { peak = Math.max(peak, memoryOf(hub.pid)) }, 20)
    t.after(() => { clearInterval(watch) })
    for (const [what, [archive]] of Object.entries(hostile())) assert.equal((await sendBundle(hub, archive)).status, 400, what)
    assert.equal((await sendBundle(hub, large)).status, 200)
    assert.equal((await sendBundle(hub, tooLarge)).status, 413)
    clearInterval(watch)
    assert.equal((await filesBelow(root)).some((name) => name.startsWith('.tmp')), false)
    await hub.stop()
    return peak - idle
  })
  assert.ok(cost < 64, `${cost} MiB`)
})
