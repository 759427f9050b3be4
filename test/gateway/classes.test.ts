// What a server lists to clients that can be asked, where that is more than it lists to others.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { manage } from '../fakes/replica.ts'
import { at, connected, failure, Session, settings, text, type Message } from '../helpers/client.ts'
import { served } from '../helpers/served.ts'
import { startHub, until, type Cleanup } from '../helpers/hub.ts'
import { setLimits } from '../helpers/patient.ts'
import { gate, type Gate } from '../helpers/wire.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'

const capabilities = { sampling: {} }

test('a merged list does not wait for a server that hangs when it is initialized for such clients', async (t) => {
  let initializes = 0
  const hangs = await startUpstream(t, {
    tools: [tool('x')],
    on: ({ method }) => (method === 'initialize' && ++initializes > 1 ? 'never' : undefined)
  })
  const prompt = await startUpstream(t, { tools: [tool('y')] })
  const hub = await served(t, { hangs: { url: hangs.url }, prompt: { url: prompt.url } })
  const session = await Session.open(`${hub.url}/mcp`, { capabilities: { roots: {} } })
  for (let n = 0; n < 3; n++) assert.ok((await session.tools()).includes('prompt-y'))
  await until(() => initializes > 1, 'it was never asked a second time')
})

test('such clients keep the tools that ask when the server lists more', async (t) => {
  // The time is over at once in which the first request for a class of clients waits for its list.
  setLimits(t, gatewayLimits, { newClass: 1 })
  let names = ['a']
  const server = await startUpstream(t, {
    on: ({ method, session }) => {
      if (method !== 'tools/list') return undefined
      return { tools: [...names, ...at(session.capabilities, 'sampling') === undefined ? [] : ['ask']].map((name) => tool(name)) }
    }
  })
  const hub = await served(t, { s: { url: server.url, isolation: 'shared' } })
  const session = await Session.open(`${hub.url}/mcp/s`, { capabilities })
  await until(async () => (await session.tools()).includes('ask'), 'what it lists to clients that can be asked is not shown')
  names = ['a', 'b']
  const [own] = server.sessions.values()
  await own?.notify('notifications/tools/list_changed')
  await until(async () => (await session.tools()).includes('b'), 'news are not shown')
  await until(async () => (await session.tools()).join() === 'a,b,ask', 'the tools that ask are not shown any more')
})

/** A server that lists a tool to such clients once the gate is open. */
async function startAsker (t: Cleanup, { promise }: Gate): Promise<Upstream> {
  return await startUpstream(t, {
    on: async ({ method, session }) => {
      const isAskable = at(session.capabilities, 'sampling') !== undefined
      if (method === 'tools/list' && isAskable) await promise
      if (method === 'tools/call') return { content: [{ type: 'text', text: 'asked' }] }
      return method === 'tools/list' ? { tools: isAskable ? [tool('a'), tool('ask')] : [tool('a')] } : undefined
    }
  })
}

async function called (url: string, name: string): Promise<Message> {
  return await (await Session.open(url, { capabilities })).request('tools/call', { name, arguments: {} })
}

test('a call of a tool waits while what is listed to such clients is being read, longer than a list does', async (t) => {
  setLimits(t, gatewayLimits, { newClass: 50 })
  const read = gate()
  const servers = { s: { url: (await startAsker(t, read)).url, isolation: 'shared' }, other: { url: (await startAsker(t, read)).url, isolation: 'shared' } }
  const hub = await startHub(t, { settings: settings(servers) })
  await connected(hub, 2)
  const calls = [called(`${hub.url}/mcp/s`, 'ask'), called(`${hub.url}/mcp`, 'other-ask'), called(`${hub.url}/mcp/s`, 'nothing')]
  for (const route of ['/s', '']) {
    assert.ok(!(await (await Session.open(`${hub.url}/mcp${route}`, { capabilities })).tools()).some((name) => name.endsWith('ask')))
  }
  read.open()
  const [alone, merged, none] = await Promise.all(calls)
  assert.deepEqual([text(alone?.result), text(merged?.result)], ['asked', 'asked'])
  assert.equal(none?.error?.code, -32602, 'what is known not to be there')
})

test('a call of a tool fails with -32001, and not as unknown, where that list does not come', async (t) => {
  setLimits(t, gatewayLimits, { newClass: 50, connectionWait: 500 })
  const hub = await served(t, { s: { url: (await startAsker(t, gate())).url, isolation: 'shared' } })
  const refused = await called(`${hub.url}/mcp/s`, 'ask')
  assert.equal(refused.error?.code, -32001, JSON.stringify(refused))
  assert.match(failure(refused), /still being read/)
})

test('what a server lists to such clients is read again after it was connected anew', async (t) => {
  let [name, isReloaded] = ['ask', false]
  const server = await startUpstream(t, {
    on: ({ method, session }) => {
      const isAskable = at(session.capabilities, 'sampling') !== undefined
      if (method === 'tools/list') return { tools: isAskable ? [tool('a'), tool(name)] : [tool('a')] }
      return method === 'tools/call' ? { content: [{ type: 'text', text: isReloaded ? 'anew' : 'asked' }] } : undefined
    }
  })
  const hub = await served(t, { s: { url: server.url, isolation: 'shared' } })
  const session = await Session.open(`${hub.url}/mcp/s`, { capabilities })
  await until(async () => (await session.tools()).includes('ask'), 'what it lists to such clients is not shown')
  name = 'wizard'
  isReloaded = true
  await manage(hub, 'POST', '/servers/s/reload')
  await until(async () => (await session.tools()).join() === 'a,wizard', 'the former list is still shown')
  assert.equal(text(await session.call('wizard')), 'anew')
  name = 'other'
  await manage(hub, 'POST', '/servers/s/reload')
  await connected(hub, 1)
  assert.equal(text((await called(`${hub.url}/mcp/s`, 'other')).result), 'anew', 'a call finds what is new')
})
