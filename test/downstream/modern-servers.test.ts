// Servers of the modern era (MCP 2026-07-28) that do what the official SDK would not, and what clients of both eras are shown of them.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startBareModern } from '../fakes/bare-modern.ts'
import { agent, at, connected, KEY, settings, type Json, type Message } from '../helpers/client.ts'
import { startHub } from '../helpers/hub.ts'

const version = '2026-07-28'
const prefix = 'io.modelcontextprotocol/'
const plain = { name: 'plain', inputSchema: { type: 'object' } }

interface Answer { readonly status: number, readonly message: Message }

/** One request of a modern client. */
async function ask (url: string, method: string, params: Json = {}, capabilities: Json = {}): Promise<Answer> {
  const name = params.name ?? params.uri
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      authorization: `Bearer ${KEY}`,
      'mcp-protocol-version': version,
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': name } : {})
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: { ...params, _meta: { [`${prefix}protocolVersion`]: version, [`${prefix}clientCapabilities`]: capabilities } }
    })
  })
  return { status: response.status, message: await response.json() as Message }
}

test('a server that does not say who it is', async (t) => {
  const server = await startBareModern(t, [plain])
  const hub = await startHub(t, { settings: settings({ nameless: { url: server.url } }) })
  await connected(hub, 1)
  const url = `${hub.url}/mcp/nameless`
  const client = await agent(t, url)
  assert.deepEqual(client.getServerVersion(), { name: 'nameless', version: 'unknown' })
  assert.equal((await client.listTools()).tools.length, 1)
  for (const [method, params] of [['server/discover', {}], ['tools/list', {}], ['tools/call', { name: 'plain' }]] as const) {
    const { message } = await ask(url, method, params)
    assert.equal(at(message, 'result', 'resultType'), 'complete', method)
    assert.equal(at(message, 'result', '_meta'), undefined, method)
  }
  assert.equal(at((await ask(`${hub.url}/mcp`, 'tools/list')).message, 'result', '_meta', `${prefix}serverInfo`, 'name'), 'tool-hub')
})
