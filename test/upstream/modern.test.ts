// Servers of the modern era (2026-07-28) behind the gateway, and clients of earlier revisions in front of it.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startModern } from '../fakes/modern-server.ts'
import { connected, Session, settings, text } from '../helpers/client.ts'
import { startHub, tsServer } from '../helpers/hub.ts'

test('try', async (t) => {
  const http = await startModern(t)
  const strict = await startModern(t, { modern: true })
  const hub = await startHub(t, { settings: settings({
    http: { url: http.url }, strict: { url: strict.url },
    pipe: tsServer('test/fakes/modern-server.ts'), narrow: tsServer('test/fakes/modern-server.ts', 'modern')
  }) })
  await connected(hub, 4)
  for (const name of ['http', 'strict', 'pipe', 'narrow']) {
    const session = await Session.open(`${hub.url}/mcp/${name}`)
    console.log(name, await session.tools(), JSON.stringify(await session.call('echo', { message: 'hi' })))
    console.log(text(await session.call('meta', { _meta: { x: 1 } })))
    console.log(JSON.stringify(await session.call('where', { region: 'Zürich', at: { zone: 7 } })))
  }
  console.log(http.seen.map((s) => [s.method, s.body?.method, s.headers['mcp-name'], s.headers['mcp-param-region']].join(' ')), http.open())
  console.log(hub.output())
})
