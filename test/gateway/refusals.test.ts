// A rule of the operator refuses a call: a tool error over MCP, an HTTP error otherwise. Hooks may change what is sent and answered.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { json as readJson } from 'node:stream/consumers'
import { test } from 'tap'
import type { FinishedCall } from '../../plugins/gateway/hooks.ts'
import { RuleRefusalError } from '../../protocol/errors.ts'
import { withArguments } from '../../protocol/exchange.ts'
import { toy } from '../fakes/toy.ts'
import { appFor } from '../helpers/app.ts'
import { KEY, settings, text, type Json } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { openSession } from '../helpers/inject.ts'
import { modernRequest } from '../helpers/modern-request.ts'

const headers = { authorization: `Bearer ${KEY}` }

test('a refused tool call is a tool error in both eras and through $smart, and an HTTP error on plain routes', async (t) => {
  const app = await appFor(t, settings({}))
  app.gateway.addProvider(toy)
  let rule: 'policy' | 'quota' = 'policy'
  app.gateway.addHook('onCall', () => { throw new RuleRefusalError(rule, 'Ask the admin', { retryAfter: 7 }) })
  const params = { name: 'toy-add', arguments: { a: 1, b: 2 } }
  const expected = { content: [{ type: 'text', text: 'Ask the admin' }], isError: true }

  const legacy = await openSession(app, '/mcp', KEY)
  assert.deepEqual((await legacy.request('tools/call', params)).result, expected)
  const smart = await openSession(app, '/mcp/$smart', KEY)
  const named = { name: 'call_tool', arguments: { toolName: 'toy-add', arguments: params.arguments } }
  assert.deepEqual((await smart.request('tools/call', named)).result, expected)
  const { headers: own, body: payload } = modernRequest('tools/call', { params, capabilities: {} })
  const modern = await app.inject({ method: 'POST', url: '/mcp', headers: own, payload })
  const { content, isError, resultType } = (modern.json() as { result: Json }).result
  assert.deepEqual({ content, isError, resultType }, { ...expected, resultType: 'complete' })

  const prompt = await legacy.request('prompts/get', { name: 'toy-greet' })
  assert.deepEqual(prompt.error, { code: -32000, message: 'Ask the admin' })

  const call = async () => await app.inject({ method: 'POST', url: '/api/tools/toy/add', headers, payload: params.arguments })
  const denied = await call()
  assert.deepEqual([denied.statusCode, (denied.json() as Json).message], [403, 'Ask the admin'])
  rule = 'quota'
  const limited = await call()
  assert.deepEqual([limited.statusCode, limited.headers['retry-after']], [429, '7'])
})

test('onCall may replace the arguments, onOutput the result; records see what replaced them', async (t) => {
  const app = await appFor(t, settings({}))
  app.gateway.addProvider(toy)
  const done: FinishedCall[] = []
  app.gateway.addHook('onCall', (call) => { call.exchange = withArguments(call.exchange, '{"a":40,"b":2}') })
  app.gateway.addHook('onOutput', (_call, result) => result.replace('42', 'forty-two'))
  app.gateway.addHook('onResult', (_call, result) => result.replace('forty-two', 'for the client'))
  app.gateway.addHook('onDone', (call) => { done.push(call) })
  const session = await openSession(app, '/mcp', KEY)
  const { result } = await session.request('tools/call', { name: 'toy-add', arguments: { a: 1, b: 2 } })
  assert.equal(text(result), 'for the client')
  const [call] = done
  assert.match(call?.output ?? '', /forty-two/)
  assert.deepEqual(call?.exchange.params.arguments, { a: 40, b: 2 })
})

test('the webhook of notifications gets only the events that it wants', async (t) => {
  const bodies: Json[] = []
  const server = createServer((request, reply) => {
    void readJson(request).then((body) => { bodies.push(body as Json); reply.writeHead(204).end() })
  })
  const notifications = { url: `http://127.0.0.1:${await listen(t, server)}/hook`, events: ['change'] }
  const app = await appFor(t, { ...settings({}), systemConfig: { notifications } })
  app.notifications.send('quota', { quota: 'daily' })
  app.notifications.send('change', { server: 'up' })
  await until(() => bodies.length > 0)
  assert.deepEqual(bodies.map(({ type, data }) => [type, data]), [['change', { server: 'up' }]])
})
