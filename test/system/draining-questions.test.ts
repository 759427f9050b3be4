// A gateway that is to stop while a client is being asked, and other clients have sent half of a request.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createConnection } from 'node:net'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { at, connected, KEY, send, Session, settings, text, within } from '../helpers/client.ts'
import { spawnHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { call, question } from '../helpers/wire.ts'

/** Sends what is no whole request, and keeps the connection. */
async function halfSend (t: Cleanup, hub: Hub, head: string): Promise<void> {
  const socket = createConnection(hub.port, '127.0.0.1')
  socket.on('error', () => {})
  t.after(() => { socket.destroy() })
  await once(socket, 'connect')
  socket.write(head)
}

test('while it drains, a client can still answer a question; a request of which half came keeps it from ending no longer', async (t) => {
  const upstream = await startUpstream(t, {
    tools: [tool('ask')],
    on: async (one) => one.method === 'tools/call'
      ? { content: [{ type: 'text', text: JSON.stringify((await one.ask(...question)).result) }] }
      : undefined
  })
  const hub = await spawnHub(t, { settings: settings({ asks: { url: upstream.url } }), env: { DRAIN_TIMEOUT: '9s' } })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/asks`, { capabilities: { elicitation: {} } })
  const asking = await session.start(call('ask'))
  const asked = await asking.wait(({ method }) => method === 'elicitation/create')
  await halfSend(t, hub, 'POST /mcp HTTP/1.1\r\n')
  await halfSend(
    t, hub,
    `POST /mcp/asks HTTP/1.1\r\nhost: 127.0.0.1:${hub.port}\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\n` +
    `accept: application/json\r\nmcp-session-id: ${session.id}\r\ncontent-length: 100\r\n\r\n{`
  )
  await fetch(`${hub.url}/health`)
  const stopped = hub.stop()
  await until(async () => (await fetch(`${hub.url}/health/ready`)).status === 503, 'it does not drain')
  const body = { jsonrpc: '2.0', id: asked.id, result: { action: 'accept', content: {} } }
  const reply = await send(session.url, { headers: session.headers, body })
  assert.equal(reply.status, 202, reply.body)
  const answer = await asking.wait(({ id }) => id === 'call')
  assert.equal(at(JSON.parse(text(answer.result)), 'action'), 'accept')
  assert.equal(await within('the end', stopped), 0, hub.output().slice(-1_000))
})
