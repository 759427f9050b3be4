// examples/rolling-restart.sh: two replicas behind nginx are restarted while clients call, and no call is lost or run twice.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request, type IncomingHttpHeaders } from 'node:http'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { spawnReplica } from '../fakes/replica.ts'
import { at, connected, Session, settings, within } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { bearerKey, freePort, path, until, type Cleanup, type ProcessHub } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { behindNginx, startNginx } from '../helpers/nginx.ts'

const metricsToken = 'a-token-of-this-test-that-opens-metrics'
const token = (n: number): string => `thk_${String(n).padStart(64, '0')}`
const keys = [0, 1, 2, 3, 4, 5]

/** A POST on a connection of its own, and the text of the answer. */
async function post (url: string, headers: IncomingHttpHeaders, body: unknown): Promise<{ status: number, text: string }> {
  const sent = request(url, { method: 'POST', agent: false, headers: { 'content-type': 'application/json', ...headers } })
  sent.end(JSON.stringify(body))
  const [response] = await once(sent, 'response') as [AsyncIterable<Buffer> & { statusCode: number }]
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode, text }
}

/** A server that runs a function for each request to a path, and answers when it has. @returns the command that asks it */
async function onCommand (t: Cleanup, run: (word: string) => Promise<void>): Promise<(word: string) => string> {
  const port = await listen(t, createServer((asked, reply) => {
    run(String(asked.url?.slice(1))).then(() => reply.end(), () => reply.writeHead(500).end())
  }))
  return (word) => `curl -fsS http://127.0.0.1:${port}/${word}`
}

test('a rolling restart behind nginx loses no call and runs none twice', async (t) => {
  const { url: dbUrl } = await database(t)
  const ran = new Map<string, number>()
  let release = (): void => {}
  const gate = new Promise<void>((resolve) => { release = resolve })
  t.after(() => { release() })
  const upstream = await startUpstream(t, {
    tools: [tool('echo')],
    on: async ({ method, params }) => {
      if (method !== 'tools/call') return undefined
      const message = String(at(params, 'arguments', 'message'))
      ran.set(message, (ran.get(message) ?? 0) + 1)
      if (message.startsWith('long')) await gate
      return { content: [{ type: 'text', text: message }] }
    }
  })
  const content = settings({ fake: { type: 'streamable-http', url: upstream.url } }, {
    bearerKeys: [bearerKey(), ...keys.map((n) => bearerKey({ id: `key-${n}`, name: `key ${n}`, token: token(n) }))],
    systemConfig: { routing: { enableBearerAuth: true }, enableSessionRebuild: true }
  })
  const ports = [await freePort(), await freePort()] as const
  const start = async (port: number): Promise<ProcessHub> => await spawnReplica(t, dbUrl, {
    settings: content,
    env: { ...behindNginx, PORT: String(port), METRICS_TOKEN: metricsToken }
  })
  const replicas = [await start(ports[0]), await start(ports[1])]
  for (const replica of replicas) await connected(replica, 1)
  const { url, site, pid } = await startNginx(t, ports)

  const restarted: number[] = []
  const restart = await onCommand(t, async (word) => {
    const index = Number(word)
    assert.equal(await replicas[index]?.stop(), 0)
    replicas[index] = await start(ports[index] ?? 0)
    restarted.push(index)
  })

  const sessions = await Promise.all(keys.map(async (n) => (await Session.open(`${url}/mcp`, { key: token(n) })).headers))
  const call = async (n: number, message: string): Promise<void> => {
    const headers = { authorization: `Bearer ${token(n)}`, accept: 'application/json, text/event-stream', ...sessions[n] }
    const params = { name: 'fake-echo', arguments: { message } }
    const { status, text } = await post(`${url}/mcp`, headers, { jsonrpc: '2.0', id: message, method: 'tools/call', params })
    assert.equal(status, 200, text)
    assert.ok(text.includes(`"text":"${message}"`), text)
  }
  const long = Promise.all(keys.map(async (n) => { await call(n, `long ${n}`) }))
  await until(() => ran.size === keys.length, 'the long calls never came')
  const line = ports.flatMap((port, index) => [`127.0.0.1:${port}`, restart(String(index))])
  const script = spawn(path('examples/rolling-restart.sh'), line, {
    env: { PATH: process.env.PATH, METRICS_TOKEN: metricsToken, SITE: site, RELOAD: `kill -HUP ${pid}` }
  })
  let said = ''
  for (const output of [script.stdout, script.stderr]) output.on('data', (chunk) => { said += String(chunk) })
  const ended = once(script, 'exit')
  const short = (async () => { for (let i = 0; script.exitCode === null; i++) await call(i % keys.length, `short ${i}`) })()
  await until(() => said.includes('no new requests'), () => said)
  assert.deepEqual(restarted, [], 'a replica with calls was restarted')
  release()
  for (const count of [1, 2]) await until(() => restarted.length === count || script.exitCode !== null, () => said)
  await within('the end of the script', ended)
  assert.equal(script.exitCode, 0, said)
  await within('the calls', Promise.all([long, short]))
  assert.deepEqual(restarted, [0, 1])
  assert.deepEqual([...ran].filter(([, times]) => times !== 1), [])
  t.comment(`${ran.size} calls`)
})
