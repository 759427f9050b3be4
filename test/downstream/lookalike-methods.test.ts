// Methods that servers with other parsers take for those of MCP: they are refused, since the checks of those would not be made.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { lookalikeMethod } from '../../protocol/lookalikes.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { at, Session, type Json, type Message } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'
import { askModern, modernRequest } from '../helpers/modern-request.ts'
import { served } from '../helpers/served.ts'

const lookalikes: ReadonlyArray<readonly [written: string, meant: string]> = [
  ['Tools/Call', 'tools/call'], ['TOOLS/CALL', 'tools/call'], ['tools/call ', 'tools/call'], ['tools/call\0', 'tools/call'],
  ['tool\u017f/call', 'tools/call'], ['\uff54ools/call', 'tools/call'], ['tools//call', 'tools/call'], ['/tools/call', 'tools/call'],
  ['tools/call/', 'tools/call'], ['to\u200bols/call', 'tools/call'], [`${'\u200b'.repeat(300)}tools/call`, 'tools/call'],
  ['Prompts/Get', 'prompts/get'], ['Resources/Subscribe', 'resources/subscribe'], ['logging/set_level', 'logging/setLevel'],
  ['Tasks/Get', 'tasks/get'], ['Initialize', 'initialize'], ['Events/Poll', 'events/poll'],
  ['Events/later', 'events/later']
]

test('a method that may be taken for one of MCP is told from the others', async () => {
  for (const [written, meant] of lookalikes) assert.equal(lookalikeMethod(written), meant, JSON.stringify(written))
  assert.equal(lookalikeMethod('Tasks/later'), 'tasks/later')
  assert.equal(lookalikeMethod('Notifications/later'), 'notifications/later')
  assert.equal(lookalikeMethod('notifications/Events/event'), 'notifications/events/event')
  for (const method of ['tools/call', 'notifications/tools/list_changed', 'x/Y', 'tools/callAll', 'tasks/later', 'events/later', 'notifications/events/event', 'notifications/x', '', '\0']) {
    assert.equal(lookalikeMethod(method), undefined, method)
  }
})

test('requests that may be taken for a method of MCP reach no server, those of extensions do', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('good'), tool('bad')], on: ({ method }) => method === 'x/Own' ? { own: true } : undefined })
  const hub = await served(t, { s: { url: upstream.url, tools: { bad: { enabled: false } } } })
  const session = await Session.open(`${hub.url}/mcp/s`, { version: '2025-03-26' })
  const known = new Set(upstream.received.map(({ message }) => message.method))
  const bodies = lookalikes.map(([method], id) => ({ jsonrpc: '2.0', id, method, params: { name: 'bad', taskId: 'other', uri: 'x://off', arguments: {} } }))
  const answers = new Map<unknown, Message>()
  for (const body of bodies) for (const message of (await session.post(body)).messages) answers.set(message.id, message)
  // Others are refused, since no header repeats them.
  const sendable = bodies.filter(({ method }) => /^[!-~]+$/.test(method))
  for (const { id, method, params } of sendable) answers.set(`modern ${id}`, (await askModern(`${hub.url}/mcp/s`, method, { params })).message)
  for (const message of (await session.post(bodies.map(({ id, ...rest }) => ({ ...rest, id: `batch ${id}` })))).messages) answers.set(message.id, message)
  for (const [at, [written, meant]] of lookalikes.entries()) {
    for (const id of [at, ...sendable.some(({ id }) => id === at) ? [`modern ${at}`] : [], `batch ${at}`]) {
      const error = answers.get(id)?.error
      assert.equal(error?.code, -32601, `${id}: ${JSON.stringify(written)} ${JSON.stringify(answers.get(id))}`)
      assert.ok(String(error?.message).includes(`Did you mean ${meant}?`), String(error?.message))
    }
  }
  assert.deepEqual((await session.post({ jsonrpc: '2.0', id: 'own', method: 'x/Own', params: {} })).messages[0]?.result, { own: true })
  assert.deepEqual(at(await askModern(`${hub.url}/mcp/s`, 'x/Own'), 'message', 'result', 'own'), true)
  for (const { message: { method = '' } } of upstream.received) assert.ok(known.has(method) || method === 'x/Own' || method === 'notifications/initialized', method)
})

test('notifications that may be taken for one of MCP reach no server, those of extensions do', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('good')] })
  const hub = await served(t, { s: { url: upstream.url } })
  const session = await Session.open(`${hub.url}/mcp/s`)
  for (const method of ['notifications/Cancelled', 'notifications/CANCELLED', 'notifications/cancelled ', 'Notifications/cancelled', 'notifications/x']) {
    await session.post({ jsonrpc: '2.0', method, params: { requestId: 4 } })
  }
  await until(() => upstream.count('notifications/x') > 0)
  assert.deepEqual(upstream.received.filter(({ message }) => /cancel/i.test(message.method ?? '')), [])
})

test('a modern client\'s notification of an extension reaches the server of its route without the envelope', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('good')] })
  const hub = await served(t, { s: { url: upstream.url } })
  const notify = async (method: string, route: string, meta?: Json): Promise<void> => {
    const { headers, body } = modernRequest(method, { params: { a: 1 }, meta })
    const { id: _, ...message } = JSON.parse(body) as Json
    assert.equal((await fetch(hub.url + route, { method: 'POST', headers, body: JSON.stringify(message) })).status, 202, method)
  }
  for (const method of ['notifications/cancelled', 'notifications/roots/list_changed', 'tools/call']) await notify(method, '/mcp/s')
  await notify('notifications/x', '/mcp')
  await notify('notifications/x', '/mcp/s', {})
  await notify('notifications/own', '/mcp/s')
  await until(() => upstream.count('notifications/own') > 0)
  const told = upstream.received.filter(({ message: { method = '' } }) => /^(notifications\/(?!initialized)|tools\/call)/.test(method))
  assert.deepEqual(told.map(({ message }) => message), [{ jsonrpc: '2.0', method: 'notifications/own', params: { a: 1 } }])
})

test('a server that asks or tells in such a method is refused, and nobody is asked or told', async (t) => {
  const asked: Message[] = []
  const upstream = await startUpstream(t, {
    tools: [tool('asks')],
    on: async ({ method, ask, notify }) => {
      if (method !== 'tools/call') return undefined
      notify('notifications/Message', { level: 'info', data: 'hidden' })
      notify('notifications/x', { data: 'seen' })
      asked.push(await ask('Sampling/CreateMessage', { messages: [], maxTokens: 1 }))
      return { content: [] }
    }
  })
  const hub = await served(t, { s: { url: upstream.url } })
  const session = await Session.open(`${hub.url}/mcp/s`, { capabilities: { sampling: {} } })
  const { messages } = await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'asks', arguments: {} } })
  assert.deepEqual(messages.map(({ method }) => method), ['notifications/x', undefined])
  assert.equal(asked[0]?.error?.code, -32601)
  assert.match(String(asked[0]?.error?.message), /Did you mean sampling\/createMessage\?/)
})
