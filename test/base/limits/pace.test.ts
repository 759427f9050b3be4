import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import { mock } from 'node:test'
import { test } from 'tap'
import { Agent, type Dispatcher } from 'undici'
import { EventStreamParser } from '../../../protocol/event-stream.ts'
import { HttpAnswerReader } from '../../../protocol/transports/http-answer.ts'
import { HttpTransport } from '../../../protocol/transports/http.ts'
import { Valve } from '../../../protocol/transports/valve.ts'
import { MemoryBudget } from '../../../plugins/base/limits/memory.ts'
import { UnsolicitedRateLimiter } from '../../../plugins/base/limits/message-pace.ts'
import { TokenBucket } from '../../../plugins/base/limits/token-bucket.ts'
import { Raw, startUpstream, tool } from '../../fakes/fault-http.ts'
import { connected, Session, settings, silence, within } from '../../helpers/client.ts'
import { holdClock, mockTimers } from '../../helpers/clock.ts'
import { bearerKey, startHub, until } from '../../helpers/hub.ts'
import { served } from '../../helpers/served.ts'
import { setLimits } from '../../helpers/patient.ts'
import { gate } from '../../helpers/wire.ts'
import { listen } from '../../helpers/listen.ts'
import { baseLimits } from '../../../plugins/base/limits/limits.ts'
import { gatewayLimits } from '../../../plugins/gateway/limits.ts'

const MiB = 1024 * 1024

test('what a server sends is passed on in order, and held back where it is beyond its pace', async (t) => {
  mockTimers(t, 'setTimeout')
  const clock = holdClock(t)
  const cost = { request: 4, notification: 1, response: 1, noise: 1, crumbs: 1 }
  const bounds = { cost, charactersPerMs: 100, burst: 100, perSecond: 100 }
  const pace = new UnsolicitedRateLimiter(bounds, new TokenBucket(bounds, { now: () => clock.at }))
  let isPaused = false
  const taken: string[] = []
  const valve = new Valve({
    pace,
    take: (bytes) => { taken.push(bytes.toString()); pace.count('notification') },
    pause: () => { isPaused = true },
    resume: () => { isPaused = false }
  })
  for (let n = 0; n < 99; n++) valve.push(Buffer.from(String(n)))
  assert.equal(isPaused, false)
  valve.push(Buffer.from('99'))
  assert.deepEqual([isPaused, taken.length], [true, 100])
  let isOver = false
  valve.push(Buffer.from('100'))
  valve.runAfterPending(() => { isOver = true })
  valve.push(Buffer.from('101'))
  assert.deepEqual([taken.length, isOver], [100, false])
  clock.at += 20
  mock.timers.tick(20)
  assert.deepEqual([taken.slice(100), isOver, isPaused], [['100', '101'], true, true], 'two more, as time has passed')
  clock.at += 980
  mock.timers.tick(1_000)
  assert.deepEqual([taken.length, isPaused], [102, false])

  // A large chunk is taken as far as the pace lets; what comes behind it waits, and nothing is lost or swapped.
  taken.length = 0
  const chunks = ['a'.repeat(4 * 1024 * 1024), 'b'.repeat(5_000), 'c']
  for (const chunk of chunks) valve.push(Buffer.from(chunk))
  assert.ok(isPaused && taken.join('').length < 4 * 1024 * 1024, `${taken.join('').length} bytes are taken at once`)
  while (taken.join('').length < chunks.join('').length) {
    clock.at += 1_000
    mock.timers.tick(1_000)
  }
  assert.equal(taken.join(''), chunks.join(''))
})

test('what carries no message on a stream of events counts as noise', async (t) => {
  const hub = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end({
      '/comments': ': nothing\n\n'.repeat(2_000),
      '/names': 'event: other\ndata: x\n\n'.repeat(2_000),
      '/messages': 'data: {}\n\n'.repeat(2_000),
      '/long': `data: ${'x'.repeat(50_000)}\n\n`
    }[request.url ?? ''])
  })
  const port = await listen(t, hub)
  const agent = new Agent()
  t.after(async () => { await agent.close() })
  const noise = async (path: string): Promise<number> => {
    let counted = 0
    await new Promise<void>((resolve, reject) => {
      const answer = new HttpAnswerReader({
        onHead: () => new EventStreamParser(() => {}, 1_000_000),
        onEnd: () => { resolve() },
        onError: reject
      }, { pace: { count: (what) => { if (what === 'noise') counted++ }, waitTime: () => 0 } })
      agent.dispatch({ origin: `http://127.0.0.1:${port}`, path, method: 'GET' }, answer)
    })
    return counted
  }
  assert.ok(await noise('/comments') > 10)
  assert.ok(await noise('/names') > 20)
  assert.deepEqual([await noise('/messages'), await noise('/long')], [0, 0])
})

for (const isNews of [false, true]) {
  test(`a server that asks without end ${isNews ? 'on its stream of news' : 'during a call'} is dealt with at a pace`, async (t) => {
    // What is used up comes back slowly.
    setLimits(t, baseLimits.unsolicited, { perSecond: 1 })
    const all = 4_000
    const flood = (response: ServerResponse): void => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let n = 0; n < all; n++) response.write(`data: {"jsonrpc":"2.0","id":"q${n}","method":"ping"}\n\n`)
    }
    const server = await startUpstream(t, {
      tools: [tool('flood')],
      raw: (request, response) => {
        if (request.method === 'GET' && isNews) flood(response)
        return request.method === 'GET' && isNews
      },
      on: ({ method, res }) => {
        if (method !== 'tools/call') return undefined
        flood(res)
        return 'taken'
      }
    })
    const answered = (): number => server.received.filter(({ message }) => message.method === undefined).length
    const quick = await startUpstream(t, { tools: [tool('echo')] })
    const hub = await served(t, { flood: { url: server.url }, quick: { url: quick.url } })
    const flooded = await Session.open(`${hub.url}/mcp/flood`)
    if (!isNews) flooded.call('flood').catch(() => {})
    await until(() => answered() > 10)
    const other = await Session.open(`${hub.url}/mcp/quick`)
    for (let n = 0; n < 10; n++) await other.call('echo', { message: 'hello' })
    // Without a pace all are answered in less time.
    await silence(500)
    assert.ok(answered() < 300, `${answered()} questions were answered`)
  })
}

test('answers have shares of the memory: one owner leaves the last quarter to those that hold little', async () => {
  const memory = new MemoryBudget()
  memory.configure(256 * MiB)
  const accounts = Array.from({ length: 5 }, () => memory.openAccount('ann'))
  const fits = accounts.map((account) => account.resize(15 * MiB))
  assert.deepEqual(fits, [true, true, true, false, false])
  const other = memory.openAccount('ben')
  assert.equal(other.resize(6 * MiB), true, 'a small holder is served')
  assert.equal(other.resize(12 * MiB), false)
  for (const account of [...accounts, other]) account.close()
  await new Promise((resolve) => { setImmediate(resolve) })
  assert.equal(memory.held, 0)
})

test('a connecting slot is held until the first request of streamable HTTP has a connection', async () => {
  const sent: Dispatcher.DispatchHandler[] = []
  const dispatcher = { dispatch: (_options: unknown, handler: Dispatcher.DispatchHandler) => { sent.push(handler); return true } }
  const url = new URL('http://127.0.0.1:9/mcp')
  const transport = new HttpTransport({ url, headers: {}, dispatcher: dispatcher as unknown as Dispatcher })
  const receiver = { message: () => true, failed: () => {}, paused: () => {}, closed: () => {} }
  let dialled = 0
  await transport.start(receiver, () => { dialled++ })
  transport.send('{}', { id: 1 })
  assert.equal(dialled, 0, 'nothing is open yet')
  sent[0]?.onRequestStart?.({ abort: () => {} } as unknown as Dispatcher.DispatchController, {})
  assert.equal(dialled, 1)
})

test("a merged list does not wait for a user's server that is being read", async (t) => {
  setLimits(t, gatewayLimits, { firstAnswerBudget: 600_000 })
  const read = gate()
  let isHeld = false
  const on = async ({ method }: { method: string }): Promise<undefined> => {
    if (method === 'tools/list' && isHeld) await read.promise
    return undefined
  }
  const anns = await startUpstream(t, { tools: [tool('echo')], on })
  const hub = await startHub(t, {
    settings: settings(
      { anns: { url: anns.url, owner: 'ann', storedByUser: true, visibility: 'public' } },
      { users: [{ username: 'ann', password: 'x' }] }
    ),
    env: { OUTBOUND_ALLOW: '127.0.0.0/8' }
  })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const names = async (): Promise<string[]> => await session.tools()
  assert.deepEqual(await names(), ['anns-echo'])
  isHeld = true
  const before = anns.count('tools/list')
  await anns.broadcast('notifications/tools/list_changed')
  await until(() => anns.count('tools/list') > before, 'it is not being read')
  assert.deepEqual(await within('the list, while the server is being read', names()), ['anns-echo'])
  read.open()
})

test('a prompt is passed on as the text that it is: parsing it would hold the loop, and change its numbers', async (t) => {
  const result = '{"messages":7,"_meta":{"n":12345678901234567890}}'
  const upstream = await startUpstream(t, {
    prompts: [{ name: 'exact' }, { name: 'odd' }],
    on: ({ method, params }) => method === 'prompts/get' ? new Raw(params.name === 'odd' ? '[]' : result) : undefined
  })
  const hub = await served(t, { up: { url: upstream.url } })
  for (const [name, data] of [['exact', '{"_meta":{"n":12345678901234567890},"messages":[]}'], ['odd', '{"messages":[]}']] as const) {
    const answer = await fetch(`${hub.url}/api/mcp/up/prompts/${name}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearerKey().token}` }
    })
    const text = await answer.text()
    assert.equal(answer.status, 200, text)
    assert.deepEqual(JSON.parse(text), JSON.parse(`{"success":true,"data":${data}}`))
    assert.equal(text.includes('12345678901234567890'), name === 'exact')
  }
})
