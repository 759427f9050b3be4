// The memory of a gateway whose clients open and close GET streams without end.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { connected, KEY, Session, settings } from '../helpers/client.ts'
import { spawnHub } from '../helpers/hub.ts'
import { median } from '../helpers/measured.ts'

test('GET streams that have ended are not kept', async (t) => {
  const server = await startUpstream(t, { tools: Array.from({ length: 100 }, (_, n) => tool(`t${n}`, { description: 'd'.repeat(1_000) })) })
  // A small nursery: what is garbage already says nothing about what is kept.
  const hub = await spawnHub(t, { settings: settings({ s: { url: server.url } }), env: { NODE_OPTIONS: '--max-semi-space-size=1' } })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/s`)
  await session.tools()
  const headers = { ...session.headers, authorization: `Bearer ${KEY}`, accept: 'text/event-stream' }
  const cycles = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      const [response] = await once(get(session.url, { agent: false, headers }), 'response') as [IncomingMessage]
      assert.equal(response.statusCode, 200)
      response.on('error', () => {}).destroy()
      await once(response, 'close')
      // A word now and then: the runner takes a file that is silent for one that hangs.
      if (n % 500 === 0) t.comment(`${n} of ${count} streams`)
    }
  }
  const resident = (): number => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${hub.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  await cycles(1_000)
  const growth = await median(t, 'MiB more after 2,000 streams', async () => {
    const before = resident()
    await cycles(2_000)
    return resident() - before
  })
  assert.ok(growth < 10, `${growth.toFixed(1)} MiB`)
})
