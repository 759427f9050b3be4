// What an answer costs that would be large once it is decompressed.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { gzipSync } from 'node:zlib'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { at, connected, failure, Session, settings } from '../helpers/client.ts'
import { spawnHub } from '../helpers/hub.ts'
import { median } from '../helpers/measured.ts'

test('a bomb does not fill the memory', async (t) => {
  const bomb = gzipSync(Buffer.concat([Buffer.from(': a comment\n\ndata: '), Buffer.alloc(128 * 1024 * 1024, ' ')]))
  const upstream = await startUpstream(t, {
    tools: [tool('bomb')],
    on: ({ method, params, res }) => {
      if (method !== 'tools/call') return undefined
      res.writeHead(200, { 'content-type': String(at(params, 'arguments', 'type')), 'content-encoding': 'gzip' }).end(bomb)
      return 'taken'
    }
  })
  const hub = await spawnHub(t, { settings: settings({ packed: { url: upstream.url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const rss = async (): Promise<number> => Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${hub.pid}/status`, 'utf8'))?.[1]) / 1024
  const before = await rss()
  const grown = await median(t, 'MiB more than before', async () => {
    for (const type of ['application/json', 'text/event-stream']) {
      assert.match(failure(await session.request('tools/call', { name: 'packed-bomb', arguments: { type } })), /too large/, type)
    }
    return await rss() - before
  })
  assert.ok(grown < 150, `grew by ${grown} MiB`)
})
