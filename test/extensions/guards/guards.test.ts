// Guards on content: what they find, mask and refuse reaches neither side, and no place that keeps something of calls.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { at, Session, text, type Json } from '../../helpers/client.ts'
import { assertClean, card, email, guard, leaks, long, upstreamOptions } from '../../helpers/guards.ts'
import { until, type Cleanup, type Hub } from '../../helpers/hub.ts'
import { modernRequest } from '../../helpers/modern-request.ts'
import { served } from '../../helpers/served.ts'

interface World { hub: Hub, received: () => string }

async function world (t: Cleanup, guards: Json[]): Promise<World> {
  const upstream = await startUpstream(t, upstreamOptions)
  const hub = await served(t, { up: { url: upstream.url } }, { guards }, { env: { LOG_LEVEL: 'debug' } })
  const isCall = /^(tools|prompts|resources|completion)\/(call|get|read|complete)/
  const calls = (): typeof upstream.received => upstream.received.filter(({ message }) => isCall.test(message.method ?? ''))
  return { hub, received: () => calls().map(({ body, headers }) => body + JSON.stringify(headers)).join('\n') }
}

test('a guard flags without changing anything, and its log has no content', async (t) => {
  const { hub, received } = await world(t, [guard({ action: 'flag' })])
  const session = await Session.open(`${hub.url}/mcp`)
  assert.equal(at((await session.request('tools/call', { name: 'up-echo', arguments: { to: email } })).result, 'content', 0, 'text'), leaks)
  assert.ok(received().includes(email))
  assert.match(hub.output(), /a guard found content/)
  assertClean(hub.output(), 'the log')
})

test('a guard refuses: a tool error, a JSON-RPC error, 403; the server is not asked', async (t) => {
  const { hub, received } = await world(t, [guard({ on: 'arguments', action: 'refuse', detect: ['email'] })])
  const session = await Session.open(`${hub.url}/mcp`)
  const refused = await session.request('tools/call', { name: 'up-echo', arguments: { to: email } })
  assert.deepEqual(refused.result, {
    content: [{ type: 'text', text: 'The guard "Private" refuses this call: the arguments contain an e-mail address' }], isError: true
  })
  const prompt = await session.request('prompts/get', { name: 'up-greet', arguments: { who: email } })
  assert.equal(prompt.error?.code, -32000)
  const rest = await fetch(`${hub.url}/api/tools/up/echo?to=${encodeURIComponent(email)}`, { headers: modernRequest('ping', {}).headers })
  assert.equal(rest.status, 403)
  assert.equal(received(), '')
  assertClean(hub.output(), 'the log')
  assert.equal((await session.request('tools/call', { name: 'up-echo', arguments: { to: 'nobody' } })).result?.isError, undefined)
})

test('a refused result is refused as a whole, errors and notifications too', async (t) => {
  const { hub } = await world(t, [guard({ on: 'results', action: 'refuse', detect: ['email'] })])
  const session = await Session.open(`${hub.url}/mcp`)
  for (const name of ['echo', 'breaks', 'fails', 'long']) {
    const { result } = await session.request('tools/call', { name: `up-${name}` })
    assert.deepEqual([result?.isError, text(result)], [true, 'The guard "Private" refuses this call: the results contain an e-mail address'])
  }
  const noisy = { jsonrpc: '2.0', id: 90, method: 'tools/call', params: { name: 'up-noisy', _meta: { progressToken: 'p' } } }
  const { messages } = await session.post(noisy)
  assert.deepEqual(messages.map(({ method, id }) => method ?? id), [90])
  assertClean(hub.output(), 'the log')
})

test('servers and tools narrow a guard; one for tools leaves prompts and resources alone', async (t) => {
  const { hub } = await world(t, [guard({ servers: ['up'], tools: ['fails'] }), guard({ id: 'g2', servers: ['other'] })])
  const session = await Session.open(`${hub.url}/mcp`)
  const said = async (name: string): Promise<string> => String(at((await session.request('tools/call', { name: `up-${name}` })).result, 'content', 0, 'text'))
  assert.equal(await said('fails'), 'failed for [email]')
  assert.equal(await said('echo'), leaks)
  const { result } = await session.request('prompts/get', { name: 'up-greet' })
  assert.equal(at(result, 'messages', 0, 'content', 'text'), leaks)
})

test('messages that belong to no request are searched, too', async (t) => {
  const upstream = await startUpstream(t, upstreamOptions)
  const hub = await served(t, { up: { url: upstream.url, isolation: 'session' } }, { guards: [guard()] })
  const session = await Session.open(`${hub.url}/mcp/up`)
  await session.request('tools/call', { name: 'echo' })
  const stream = await session.listen()
  await upstream.broadcast('notifications/message', { level: 'error', data: leaks })
  const message = await stream.wait(({ method }) => method === 'notifications/message')
  assert.equal(message.params?.data, '[email] [card] [secret]')
})

test('notifications that are searched in a thread come in their order, before the result', async (t) => {
  const upstream = await startUpstream(t, {
    ...upstreamOptions,
    on: ({ method, params, notify }) => {
      if (method !== 'tools/call') return undefined
      const { progressToken } = params._meta as Json
      for (const [index, message] of [long, 'short', long, 'last'].entries()) {
        notify('notifications/progress', { progressToken, progress: index + 1, message })
      }
      return { content: [{ type: 'text', text: 'done' }] }
    }
  })
  const hub = await served(t, { up: { url: upstream.url } }, { guards: [guard()] })
  const session = await Session.open(`${hub.url}/mcp`)
  const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'up-echo', _meta: { progressToken: 'p' } } }
  const { messages } = await session.post(call)
  assert.deepEqual(messages.map(({ id, params }) => id ?? params?.progress), [1, 2, 3, 4, 7])
  assertClean(JSON.stringify(messages), 'the stream')
})

test('what is sent beside the arguments is searched: other members of params, _meta, ref, a subscription', async (t) => {
  const capabilities = { ...upstreamOptions.capabilities, resources: { subscribe: true } }
  const upstream = await startUpstream(t, { ...upstreamOptions, capabilities })
  const hub = await served(t, { up: { url: upstream.url } }, { guards: [guard({ on: 'arguments' })] })
  const session = await Session.open(`${hub.url}/mcp`)
  const params = { name: 'up-noisy', arguments: {}, extra: { note: leaks }, _meta: { progressToken: card, 'x/note': [leaks] } }
  const { messages } = await session.post({ jsonrpc: '2.0', id: 90, method: 'tools/call', params })
  assert.ok(messages.some((each) => each.params?.progressToken === card), 'the progress token is the client\'s own')
  await session.request('prompts/get', { name: 'up-greet', extra: leaks, _meta: { note: leaks } })
  await session.request('resources/read', { uri: 'test://one', extra: leaks, _meta: { note: leaks } })
  const argument = { name: 'who', value: 'bo' }
  await session.request('completion/complete', { ref: { type: 'ref/prompt', name: 'up-greet' }, argument, _meta: { note: leaks } })
  const sent = upstream.received.map(({ body }) => body)
  for (const method of ['tools/call', 'prompts/get', 'resources/read', 'completion/complete']) {
    assert.ok(sent.some((body) => body.includes(`"${method}"`) && body.includes('[email] [card] [secret]')), method)
  }
  const refused = [
    await session.request('completion/complete', { ref: { type: 'ref/prompt', name: 'up-greet', title: email }, argument }),
    await session.request('resources/subscribe', { uri: `test://${email}` }),
    await session.request('resources/subscribe', { uri: 'test://one', _meta: { note: email } })
  ]
  assert.deepEqual(refused.map(({ error }) => error?.message), [
    'The guard "Private" refuses this call: "ref" contains what it masks',
    'The guard "Private" refuses this call: the params contain what it masks',
    'The guard "Private" refuses this call: the params contain what it masks'
  ])
  await session.request('resources/subscribe', { uri: 'test://one', _meta: { progressToken: card } })
  const own = await Session.open(`${hub.url}/mcp/up`)
  await own.request('x/search', { name: leaks })
  const all = upstream.received.map(({ body }) => body).join('\n')
  assertClean(all, 'what the server got')
  assert.match(all, /"resources\/subscribe"/)
  assert.match(all, /"x\/search","params":\{"name":"\[email\] \[card\] \[secret\]"/)
})

test('many members of params are searched as one text, their names too', async (t) => {
  const upstream = await startUpstream(t, upstreamOptions)
  const hub = await served(t, { up: { url: upstream.url } }, { guards: [guard({ on: 'arguments' })] })
  const session = await Session.open(`${hub.url}/mcp`)
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`m${n}`, { data: [...'A'.repeat(2_000), email] }]))
  const params = JSON.stringify({ name: 'up-echo', ...many, [email]: 1 }).replace(/\}$/, `,"__proto__":"${email}"}`)
  await session.post({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: JSON.parse(params) as Json })
  const sent = upstream.received.findLast(({ message }) => message.method === 'tools/call')?.body ?? ''
  assert.equal(sent.split('[email]').length, 23)
  assertClean(sent, 'what the server got')
})

test('what a client says when it cancels is searched', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('waits')], on: ({ method }) => method === 'tools/call' ? 'never' : undefined })
  const hub = await served(t, { up: { url: upstream.url } }, { guards: [guard({ on: 'arguments' })] })
  const session = await Session.open(`${hub.url}/mcp`)
  const has = (method: string): string | undefined => upstream.received.find(({ message }) => message.method === method)?.body
  const cancel = async (params: Json): Promise<void> => {
    const open = session.start({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'up-waits', arguments: {} } })
    await until(() => has('tools/call') !== undefined, 'no call')
    await session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9, ...params } })
    await open
  }
  await cancel({ reason: `stop ${email}`, _meta: { 'x/note': leaks } })
  await until(() => has('notifications/cancelled') !== undefined, 'no cancellation')
  assert.match(has('notifications/cancelled') ?? '', /"reason":"stop \[email\]".*\[email\] \[card\] \[secret\]/)
  assertClean(JSON.stringify(upstream.received.map(({ body }) => body)) + hub.output(), 'what the server got, and the log')
})
