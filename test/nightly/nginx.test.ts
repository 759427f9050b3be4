// A stream through nginx outlives the minute after which a proxy that is not told otherwise cuts it. It needs nginx.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { Session, settings, silence } from '../helpers/client.ts'
import { freePort, startHub } from '../helpers/hub.ts'
import { behindNginx, startNginx } from '../helpers/nginx.ts'

test('a stream that carries nothing but comments is open for longer than a minute', async (t) => {
  const port = await freePort()
  await startHub(t, { settings: settings({}), env: { ...behindNginx, PORT: String(port) } })
  const { url } = await startNginx(t, [port, await freePort()])
  const stream = await (await Session.open(`${url}/mcp`)).listen()
  await silence(66_000)
  assert.ok(!stream.ended)
  assert.ok(stream.comments >= 4, `${stream.comments} comments`)
  stream.close()
})
