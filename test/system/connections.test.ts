// A gateway that may open few files, and an address that opens connections without end.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { Agent, fetch } from 'undici'
import { test } from 'tap'
import { KEY, settings } from '../helpers/client.ts'
import { spawnHub } from '../helpers/hub.ts'

const skip = process.platform === 'linux' ? false : 'it needs many loopback addresses'

test('silent connections of one address leave the gateway to the others', { skip }, async (t) => {
  const hub = await spawnHub(t, { settings: settings({}), openFiles: 300 })
  const sockets: Socket[] = []
  t.after(() => { for (const each of sockets) each.destroy() })
  await Promise.all(Array.from({ length: 400 }, async () => {
    const socket = connect({ port: hub.port, host: '127.0.0.1', localAddress: '127.0.0.2' })
    sockets.push(socket)
    await new Promise<void>((resolve) => { socket.once('connect', resolve).once('error', () => { resolve() }) })
  }))
  const dispatcher = new Agent({ connect: { localAddress: '127.0.0.1' } })
  t.after(async () => { await dispatcher.close() })
  for (const username of ['one', 'two', 'three']) {
    const answer = await fetch(`${hub.url}/api/users`, {
      dispatcher,
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ username, password: 'A-Word-of-20-Letters' })
    })
    const text = await answer.text()
    assert.ok(answer.ok, `${answer.status} ${text}\n${hub.output()}`)
  }
  assert.match(hub.output(), /127\.0\.0\.2 has \d+ connections of \d+, which is its share/)
  assert.doesNotMatch(hub.output(), /EMFILE/)
})
