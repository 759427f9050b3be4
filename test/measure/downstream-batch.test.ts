// How much of a long batch is handled at once: others have the event loop between its steps.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { measureHold } from '../fakes/loop-hold.ts'
import { connected, Session, settings } from '../helpers/client.ts'
import { startHub } from '../helpers/hub.ts'
import { median } from '../helpers/measured.ts'

test('a long batch is handled in steps', async (t) => {
  const upstream = await startUpstream(t)
  const hub = await startHub(t, { settings: settings({ fake: { url: upstream.url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`, { version: '2025-03-26' })
  for (const [method, params] of [['logging/setLevel', { level: 'info' }], ['resources/subscribe', { uri: 'fake://r' }]] as const) {
    const batch = Array.from({ length: 1_000 }, (_, id) => ({ jsonrpc: '2.0', id, method, params }))
    const part = await median(t, `${method}: the part of its CPU time that it holds the event loop at once`, async () => {
      const longest = measureHold()
      const before = process.cpuUsage()
      await session.post(batch)
      const { user, system } = process.cpuUsage(before)
      return longest() / ((user + system) / 1_000)
    })
    assert.ok(part < 1 / 4, `${method}: ${part} of the time at once`)
  }
})
