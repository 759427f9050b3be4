// Why a server is not connected, in words for who manages it.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { limits } from '../../plugins/limits/index.ts'
import { appFor } from '../helpers/app.ts'
import { settings } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'

const waiting = 'echo "LICENCE is not set: waiting for it" >&2; exec sleep 60'

test('programs that are no MCP servers, or wait for something, are told apart', async (t) => {
  const app = await appFor(t, settings({
    echo: { command: 'cat' },
    silent: { command: 'sleep', args: ['60'] },
    waiting: { command: 'sh', args: ['-c', waiting] },
    babbling: { command: 'sh', args: ['-c', 'echo "Welcome to the shop"; exec sleep 60'] }
  }), {}, { initTimeout: 3_000 })
  const reasonOf = async (name: string): Promise<string> => {
    let error: string | null | undefined
    await until(() => {
      error = app.upstreams.get(name)?.error
      return typeof error === 'string'
    }, `${name} has no reason`)
    return error ?? ''
  }
  const [echo, silent, waited, babbled] = await Promise.all(['echo', 'silent', 'waiting', 'babbling'].map(reasonOf))
  assert.match(String(echo), /sends back what it is sent: it is no MCP server/)
  assert.doesNotMatch(String(echo), /isolation/)
  assert.match(String(silent), /^no answer to initialize within 3 s$/)
  assert.match(String(waited), /^no answer to initialize within 3 s; its last lines:\nLICENCE is not set: waiting for it$/)
  assert.match(String(babbled), /^no answer to initialize within 3 s; its last lines:\nWelcome to the shop$/)
})

test('a program that sends back what it is sent is told at once', async (t) => {
  const app = await appFor(t, settings({ echo: { command: 'cat' } }), {}, { initTimeout: 60_000 })
  await until(() => typeof app.upstreams.get('echo')?.error === 'string', 'it is still waited for')
  assert.match(app.upstreams.get('echo')?.error ?? '', /^It sends back what it is sent: it is no MCP server$/)
})

test('a server that takes long is told once, with what it printed last and without its secrets', async (t) => {
  const { connectionWait } = limits
  t.after(() => { Object.assign(limits, { connectionWait }) })
  Object.assign(limits, { connectionWait: 500 })
  const lines: string[] = []
  const script = 'echo "waiting for a licence for $API_KEY" >&2; exec sleep 60'
  const servers = { waiting: { command: 'sh', args: ['-c', script], env: { API_KEY: 'k-5aT1xo77Qz' } } }
  const logger = { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } }
  const app = await appFor(t, settings(servers), {}, { initTimeout: 1_500, logger })
  await until(() => lines.filter((line) => line.includes('waiting: not connected')).length > 0, 'it does not fail')
  // It has been started again by then.
  await until(() => app.upstreams.get('waiting')?.status === 'connecting', 'it is not tried again')
  await until(() => app.upstreams.get('waiting')?.status === 'disconnected', 'it does not fail again')
  const told = lines.map((line) => (JSON.parse(line) as { msg: string }).msg).filter((sentence) => sentence.includes('no answer for'))
  assert.deepEqual(told, [
    'waiting: no answer for 0.5 s; it may take 1.5 s in all (INIT_TIMEOUT); its last lines:\nwaiting for a licence for ••••77Qz'
  ])
})

test('an event that never ends is told as one that is too large', async (t) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const piece = `data: ${'x'.repeat(1024 * 1024)}\n`
    const write = (): void => { while (response.write(piece)); response.once('drain', write) }
    write()
  }).listen(0, '127.0.0.1')
  t.after(() => { server.closeAllConnections(); server.close() })
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`
  const app = await appFor(t, settings({ endless: { type: 'sse', url } }))
  await until(() => typeof app.upstreams.get('endless')?.error === 'string', 'it does not fail')
  const { error } = app.upstreams.get('endless') ?? {}
  assert.match(error ?? '', /^the answer of 127\.0\.0\.1:\d+ is too large: an event is longer than \d+ characters$/)
})
