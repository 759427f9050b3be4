// The recorded answers of 41 servers from npm (test/recordings: first answers to a client without capabilities, no credentials) arrive as
// they were written.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { test } from 'tap'
import { memberOf } from '../../protocol/json.ts'
import { Raw, Refusal, startUpstream } from '../fakes/fault-http.ts'
import { connected, Session, settings, type Json } from '../helpers/client.ts'
import { path, startHub } from '../helpers/hub.ts'

/** One server: the messages with which it answered, by method, as it wrote them. */
interface Recording { readonly package: string, readonly answers: Readonly<Record<string, string>> }

const apps = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } }
const recordings = gunzipSync(readFileSync(path('test/recordings/servers.jsonl.gz'))).toString().trim().split('\n')
  .map((line) => JSON.parse(line) as Recording)

/** MCP requires the type of an input schema; the gateway adds it where a server left it out. */
function withTypes (result: Json): Json {
  for (const tool of (result.tools ?? []) as Array<{ inputSchema: Json }>) tool.inputSchema.type ??= 'object'
  return result
}

test('41 servers', async (t) => {
  assert.ok(recordings.length >= 40, 'servers are missing')
  const servers: Json = {}
  for (const [at, { answers }] of recordings.entries()) {
    const upstream = await startUpstream(t, {
      on: ({ method }) => {
        const answer = answers[method]
        if (answer === undefined) return undefined
        const error = memberOf(answer, 'error')
        if (error === undefined) return new Raw(memberOf(answer, 'result') ?? '{}')
        const { code, message, data } = JSON.parse(error) as { code: number, message: string, data?: unknown }
        return new Refusal(code, message, data)
      }
    })
    servers[`s${at}`] = { url: upstream.url }
  }
  const hub = await startHub(t, { settings: settings(servers) })
  await connected(hub, recordings.length)
  for (const [at, { package: name, answers }] of recordings.entries()) {
    await t.test(name, async () => {
      // Apps are shown to clients that know them.
      const session = await Session.open(`${hub.url}/mcp/s${at}`, { capabilities: apps })
      const { initialize = '' } = answers
      const { capabilities, ...identity } = JSON.parse(memberOf(initialize, 'result') ?? '{}') as Json
      const { capabilities: shown, ...told } = session.init
      // Client and server each speak the revision of their own connection.
      assert.deepEqual({ ...told, protocolVersion: undefined }, { ...identity, protocolVersion: undefined })
      assert.deepEqual(Object.keys(shown as Json).sort(), Object.keys(capabilities as Json).sort())
      const tools = JSON.parse(memberOf(answers['tools/list'] ?? '{}', 'result') ?? '{"tools":[]}') as { tools: Array<{ name: string }> }
      for (const [method, answer] of Object.entries(answers)) {
        if (method === 'initialize') continue
        const params = method === 'tools/call' ? { name: tools.tools[0]?.name, arguments: {} } : {}
        const { body } = await session.post({ jsonrpc: '2.0', id: 7, method, params })
        const member = memberOf(answer, 'error') === undefined ? 'result' : 'error'
        const got = memberOf(/\{.*\}/s.exec(body)?.[0] ?? '', member)
        const written = memberOf(answer, member)
        // A list that a server does not know is an empty one.
        if (member === 'error' && method.endsWith('/list')) continue
        if (got !== written) assert.deepEqual(JSON.parse(got ?? 'null'), withTypes(JSON.parse(written ?? 'null') as Json), method)
      }
    })
  }
})
