// own process: it reads the heap and the file descriptors of the process.
// 300 sessions with open streams leave nothing behind when they are closed.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { connected, KEY, Session, settings } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

test('300 sessions with open streams, then closed', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('t')] })
  const hub = await startHub(t, { settings: settings({ s: { url: upstream.url, isolation: 'session' }, shared: { url: upstream.url } }) })
  await connected(hub, 2)
  const round = async (): Promise<void> => {
    const sessions: Session[] = []
    const streams: IncomingMessage[] = []
    for (let n = 0; n < 300; n++) {
      const session = await Session.open(`${hub.url}/mcp`)
      if (n % 10 === 0) await session.call('shared-t')
      const headers = { ...session.headers, authorization: `Bearer ${KEY}`, accept: 'text/event-stream' }
      const [response] = await once(get(session.url, { agent: false, headers }), 'response') as [IncomingMessage]
      response.on('error', () => {}).resume()
      sessions.push(session)
      streams.push(response)
    }
    for (const session of sessions) await session.end()
    for (const stream of streams) { if (!stream.closed) { stream.destroy(); await once(stream, 'close') } }
  }
  const openFiles = (): number => readdirSync('/proc/self/fd').length
  const heap = (): number => {
    for (let n = 0; n < 4; n++) collect()
    return process.memoryUsage().heapUsed
  }
  await round()
  // Idle connections of the test's own client are closed after some seconds.
  const [files, used] = [openFiles(), heap()]
  await round()
  await until(() => openFiles() <= files, () => `${openFiles()} open files, ${files} before`)
  const after = heap()
  t.comment(`heap ${(used / 2 ** 20).toFixed(1)} MiB before, ${(after / 2 ** 20).toFixed(1)} MiB after; ${files} and ${openFiles()} open files`)
  assert.ok(after < used * 1.1)
})
