// Why a server is not connected, in words for who manages it.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { mock } from 'node:test'
import { test } from 'tap'
import { appFor } from '../helpers/app.ts'
import { mockTimers, turnsUntil } from '../helpers/clock.ts'
import { KEY, settings } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'
import { setLimits } from '../helpers/patient.ts'
import { listen } from '../helpers/listen.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'

const waiting = 'echo "LICENCE is not set: waiting for it" >&2; exec sleep 60'

test('why a server is not connected', async (t) => {
  // They wait, one beside the other.
  t.jobs = 4
  const side = { buffered: true }

  await Promise.all([
    t.test('programs that wait for something are told apart by what they print', side, async (t) => {
      const app = await appFor(t, settings({
        silent: { command: 'sleep', args: ['60'] },
        waiting: { command: 'sh', args: ['-c', waiting] },
        babbling: { command: 'sh', args: ['-c', 'echo "Welcome to the shop"; exec sleep 60'] }
      }), { INIT_TIMEOUT: '1500ms' })
      /** It is started again and again: one that was too slow to print anything in time is, sooner or later, quick enough. */
      const has = async (name: string, reason: RegExp): Promise<void> => {
        await until(() => reason.test(app.upstreams.get(name)?.error ?? ''), () => `${name}: ${String(app.upstreams.get(name)?.error)}`)
      }
      await has('silent', /^no answer to initialize within 1\.5 s$/)
      await has('waiting', /^no answer to initialize within 1\.5 s; its last lines:\nLICENCE is not set: waiting for it$/)
      await has('babbling', /^no answer to initialize within 1\.5 s; its last lines:\nWelcome to the shop$/)
    }),

    t.test('a program that sends back what it is sent is told at once', side, async (t) => {
      const app = await appFor(t, settings({ echo: { command: 'cat' } }), { INIT_TIMEOUT: '60s' })
      await until(() => typeof app.upstreams.get('echo')?.error === 'string', 'it is still waited for')
      assert.match(app.upstreams.get('echo')?.error ?? '', /^It echoes its input: it is not an MCP server$/)
    }),

    t.test('where the config states the transport, and nobody speaks it at the address, the type may be wrong', side, async (t) => {
      const server = createServer((_request, response) => { response.writeHead(405).end() })
      const url = `http://127.0.0.1:${await listen(t, server)}/mcp`
      const app = await appFor(t, settings({ http: { type: 'streamable-http', url }, stream: { type: 'sse', url }, any: { url } }))
      const reasons = {
        http: 'the upstream answered HTTP 405: check "url" and "type"',
        stream: 'no event stream at this address (HTTP 405): check "url" and "type"',
        any: 'the upstream answered HTTP 405'
      }
      for (const [name, reason] of Object.entries(reasons)) {
        await until(() => app.upstreams.get(name)?.error === reason, () => `${name}: ${String(app.upstreams.get(name)?.error)}`)
      }
    }),

    t.test('an event that never ends is told as one that is too large', side, async (t) => {
      const server = createServer((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const piece = `data: ${'x'.repeat(1024 * 1024)}\n`
        const write = (): void => { while (response.write(piece)); response.once('drain', write) }
        write()
      })
      const url = `http://127.0.0.1:${await listen(t, server)}/sse`
      const app = await appFor(t, settings({ endless: { type: 'sse', url } }))
      await until(() => typeof app.upstreams.get('endless')?.error === 'string', 'it does not fail')
      const { error } = app.upstreams.get('endless') ?? {}
      assert.match(error ?? '', /^the answer of 127\.0\.0\.1:\d+ is too large: an event is longer than \d+ characters$/)
    })
  ])
})

test('a server that takes long is told once, with what it printed last and without its secrets', async (t) => {
  const lines: string[] = []
  const logger = { level: 'trace', stream: { write: (line: string) => { lines.push(line) } } }
  const app = await appFor(t, settings({}), { INIT_TIMEOUT: '20s' }, { logger })
  setLimits(t, gatewayLimits, { connectionWait: 5_000 })
  mockTimers(t, 'setTimeout')
  const config = { command: 'sh', args: ['-c', 'echo "waiting for a licence for $API_KEY" >&2; exec sleep 60'], env: { API_KEY: 'k-5aT1xo77Qz' } }
  const headers = { authorization: `Bearer ${KEY}` }
  assert.equal((await app.inject({ method: 'POST', url: '/api/servers', headers, payload: { name: 'waiting', config } })).statusCode, 200)
  await turnsUntil(() => lines.some((line) => line.includes('waiting for a licence')))
  const failed = (): boolean => app.upstreams.get('waiting')?.status === 'disconnected'
  for (const holds of [failed, () => !failed(), failed]) await turnsUntil(() => { mock.timers.tick(100); return holds() })
  const told = lines.map((line) => (JSON.parse(line) as { msg: string }).msg).filter((sentence) => sentence.includes('no answer for'))
  assert.deepEqual(told, [
    'waiting: no answer for 5 s; it may take 20 s in all (INIT_TIMEOUT); its last lines:\nwaiting for a licence for ••••77Qz'
  ])
})
