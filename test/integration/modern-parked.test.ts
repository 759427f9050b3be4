// Many calls of modern clients that wait for answers at the same time.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startLegacyBridge } from '../fakes/legacy-bridge.ts'
import { connected, KEY, settings, text, within, type Json, type Message } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'

const name = 'form'
const prefix = 'io.modelcontextprotocol/'
const _meta = { [`${prefix}protocolVersion`]: '2026-07-28', [`${prefix}clientCapabilities`]: { elicitation: {} } }
const headers = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  authorization: `Bearer ${KEY}`,
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'tools/call',
  'mcp-name': name
}

async function call (url: string, more: Json = {}): Promise<Message> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, _meta, ...more } })
  return await (await fetch(url, { method: 'POST', headers, body })).json() as Message
}

test('1,000 parked calls: each ends by its answer, or with the gateway; none is left running', async (t) => {
  const count = 1_000
  const { url, world } = await startLegacyBridge(t)
  const hub = await startHub(t, { settings: settings({ s: { url, isolation: 'shared' } }) })
  await connected(hub, 1)
  const route = `${hub.url}/mcp/s`
  const asked: Message[] = []
  let begun = 0
  // Side by side, but not as many sockets at a time.
  await Promise.all(Array.from({ length: 20 }, async () => { while (begun++ < count) asked.push(await call(route)) }))
  assert.ok(asked.every(({ result }) => result?.resultType === 'input_required'), JSON.stringify(asked.at(-1)))
  assert.equal(world.running, count)
  const answered = await Promise.all(asked.slice(0, 100).map(async ({ result = {} }) => {
    const [key = ''] = Object.keys(result.inputRequests as Json)
    const inputResponses = { [key]: { action: 'accept', content: { name: 'Ann' } } }
    return await call(route, { inputResponses, requestState: result.requestState })
  }))
  assert.ok(answered.every(({ result }) => text(result) === 'accept Ann'))
  await until(() => world.running === count - 100, 10_000)
  await within(30_000, 'the end of the gateway', hub.stop())
  await until(() => world.running === 0, 20_000, () => `${world.running} calls still run at the server`)
})
