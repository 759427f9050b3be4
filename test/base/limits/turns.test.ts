import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import { mock } from 'node:test'
import { test } from 'tap'
import { Agent, type Dispatcher } from 'undici'
import { EventStreamParser } from '../../../protocol/event-stream.ts'
import { membersOf } from '../../../protocol/json.ts'
import { JsonScanner, TooDeep } from '../../../protocol/json-scanner.ts'
import { inSteps, readLargeMessage } from '../../../protocol/large-message.ts'
import { parseMessage, type Message } from '../../../protocol/message.ts'
import { HttpAnswer } from '../../../protocol/transports/http-answer.ts'
import { HttpTransport } from '../../../protocol/transports/http.ts'
import { MessageReader } from '../../../protocol/transports/message-reader.ts'
import { counting, noPace, Valve } from '../../../protocol/transports/valve.ts'
import { CpuBudget } from '../../../plugins/base/json-schema/time-budget.ts'
import { limits } from '../../../plugins/base/limits/limits.ts'
import { MemoryBudget } from '../../../plugins/base/limits/memory.ts'
import { ShareError } from '../../../plugins/base/limits/shares.ts'
import { paceOf } from '../../../plugins/base/limits/message-pace.ts'
import { Turns } from '../../../plugins/base/limits/turns.ts'
import { writeBody } from '../../../plugins/downstream/openapi/write.ts'
import { Raw, startUpstream, tool } from '../../fakes/fault-http.ts'
import { connected, Session, settings, silence, within } from '../../helpers/client.ts'
import { holdClock, mockTimers, turnsOfLoop } from '../../helpers/clock.ts'
import { bearerKey, startHub, until } from '../../helpers/hub.ts'
import { served } from '../../helpers/served.ts'
import { setLimits } from '../../helpers/patient.ts'
import { gate } from '../../helpers/wire.ts'
import { listen } from '../../helpers/listen.ts'

const bounds = { pieces: 100, perSecond: 1_000, burst: 1_000, longestWait: 50, owners: 10 }
const MiB = 1024 * 1024
const none = async (): Promise<void> => {}

test('the scanner accepts what JSON.parse accepts, and finds the same members', async () => {
  const parts = [
    '{', '}', '[', ']', ',', ':', '"a"', '"\\u00e9"', '"\\x"', '"', '1', '-', '0', '01', '1.5e3', '1e', 'true', 'nul', 'null', ' ', '\n',
    '\t', '\\', 'é', '"\u0001"', '""', '\ufeff', '\u00a0'
  ]
  let seed = 1
  const random = (below: number): number => (seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff) % below
  let valid = 0
  for (let n = 0; n < 30_000; n++) {
    const inner = Array.from({ length: 1 + random(9) }, () => parts[random(parts.length)] ?? '').join('')
    const text = [`{"k":${inner}}`, `[${inner}]`, inner][n % 3] ?? ''
    let isValid = true
    try { JSON.parse(text) } catch { isValid = false }
    const scanner = new JsonScanner(text, 50, new Set(['a', 'k', 'é', '']))
    let isAccepted = true
    try {
      while (!scanner.step(1 + random(4))) { /* the next step */ }
    } catch (error) {
      assert.ok(error instanceof SyntaxError)
      isAccepted = false
    }
    assert.equal(isAccepted, isValid, JSON.stringify(text))
    if (!isValid) continue
    valid++
    if (scanner.isObject) assert.deepEqual(scanner.members, membersOf(text), text)
  }
  assert.ok(valid > 500, 'the texts are hardly ever valid')
  assert.throws(() => new JsonScanner('[[[]]]', 2, new Set()).step(), TooDeep)
})

test('a large message is read as a small one is', async () => {
  const filler = JSON.stringify('é'.repeat(300_000))
  const texts = [
    `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"a":${filler}},"_meta":{"progressToken":1}}}`,
    `{"jsonrpc":"2.0","id":"7","result":{"content":[${filler}]}}`,
    `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":${filler}}}`,
    `{"jsonrpc":"2.0","method":"notifications/x","params":{"name":${filler}}}`,
    `{"jsonrpc":"2.0","id":7,"method":"x","params":{"name":"x","arguments":${filler},"name":"y","ref":{"uri":"a","uri":"b"}}}`,
    `[{"jsonrpc":"2.0","id":1,"result":${filler}},{"jsonrpc":"2.0","id":1},{"jsonrpc":"2.0","id":2,"result":{}}]`
  ]
  for (const text of texts) {
    const read = JSON.stringify(await readLargeMessage(text, 200, 10, none))
    assert.equal(read, JSON.stringify(parseMessage(text, 200, 10)), text.slice(0, 100))
  }
  for (const text of [`[${filler}`, `[${'1,'.repeat(20)}${filler}]`, filler, '[]', `{"params":${'['.repeat(300)}${']'.repeat(300)},"x":${filler}}`]) {
    const expected = ((): unknown => { try { parseMessage(text, 200, 10); return undefined } catch (error) { return error } })()
    await assert.rejects(readLargeMessage(text, 200, 10, none), expected as Error)
  }
})

test('other work runs between the steps of a large message', async () => {
  let turnsOfLoop = 0
  let isOver = false
  const count = (): void => { turnsOfLoop++; if (!isOver) setImmediate(count) }
  setImmediate(count)
  const text = `{"jsonrpc":"2.0","id":1,"result":[${'[],'.repeat(MiB)}[]]}`
  await new Turns(bounds).run('ann', async (pause) => await readLargeMessage(text, 200, 10, pause))
  isOver = true
  assert.ok(turnsOfLoop >= 12, `${turnsOfLoop} turns of the event loop during 3 MiB`)
})

test('owners take turns, a step each', async () => {
  const turns = new Turns(bounds)
  const order: string[] = []
  const work = async (owner: string, steps: number): Promise<void> => await turns.run(owner, async (pause) => {
    for (let step = 0; step < steps; step++) { order.push(owner); await pause() }
  })
  await Promise.all([work('ann', 6), work('ann', 6), work('ann', 6), work('ben', 3)])
  assert.ok(order.lastIndexOf('ben') < 9, order.join())
})

test('who has used up the CPU time waits, and is refused when that takes too long; others are not', async () => {
  let now = 0
  const turns = new Turns({ ...bounds, perSecond: 1, burst: 100 }, () => now)
  await turns.run('ann', async () => { now += 500 })
  const late = assert.rejects(turns.run('ann', none), (error) => error instanceof ShareError && error.isOwners)
  await turns.run('ben', none)
  now += 100
  await late
  now += 1_000_000
  await turns.run('ann', none)
})

test('as many pieces wait as may, with a share for each owner', async () => {
  const turns = new Turns({ ...bounds, pieces: 4 })
  let end = (): void => {}
  const held = new Promise<void>((resolve) => { end = resolve })
  const running = [1, 2, 3].map(async () => { await turns.run('ann', async () => { await held }) })
  await assert.rejects(turns.run('ann', none), ShareError)
  end()
  await Promise.all(running)
  await turns.run('ann', none)
})

test('messages of one stream stay in their order, small ones behind a large one too', async () => {
  const seen: unknown[] = []
  let isPaused = false
  const reader = new MessageReader({
    work: inSteps,
    owner: '',
    onMessages: (messages) => { for (const each of messages) seen.push(each.kind === 'notification' ? each.method : each.kind) },
    onError: () => { seen.push('error') },
    pause: () => { isPaused = true },
    resume: () => { isPaused = false }
  })
  const notification = (method: string, size = 0): string => `{"jsonrpc":"2.0","method":"${method}","params":{"x":"${'x'.repeat(size)}"}}`
  reader.push(notification('a'))
  assert.deepEqual(seen, ['a'], 'a small one is read at once')
  reader.push(notification('b', MiB))
  reader.push(notification('c'))
  reader.push(`{"x":"${'x'.repeat(MiB)}"`)
  reader.push(notification('d'))
  assert.ok(isPaused)
  await new Promise<void>((resolve) => { reader.then(resolve) })
  assert.deepEqual(seen, ['a', 'b', 'c', 'error', 'd'])

  // The same by their bytes, as a process prints them; what is not UTF-8 is no message, and can be told by its id.
  seen.length = 0
  const chunked = (text: string): Buffer[] => {
    const bytes = Buffer.from(text)
    return Array.from({ length: Math.ceil(bytes.length / 60_000) }, (_, at) => bytes.subarray(at * 60_000, (at + 1) * 60_000))
  }
  reader.pushBytes(chunked(notification('é', MiB)))
  reader.pushBytes(chunked(notification('f')))
  reader.pushBytes([...chunked(notification('g', MiB)), Buffer.of(0xff)])
  reader.pushBytes([Buffer.of(0xff)])
  reader.push(notification('h'))
  await new Promise<void>((resolve) => { reader.then(resolve) })
  assert.deepEqual(seen, ['é', 'f', 'error', 'error', 'h'])
})

test('what a server sends is passed on in order, and held back where it takes long or is beyond its pace', async (t) => {
  mockTimers(t, 'setTimeout')
  const clock = holdClock(t)
  const cost = { request: 4, notification: 1, response: 1, noise: 1, crumbs: 1 }
  setLimits(t, limits.unasked, { cost, burst: 100, perSecond: 100 })
  const pace = paceOf(undefined)
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
  valve.then(() => { isOver = true })
  valve.push(Buffer.from('101'))
  assert.deepEqual([taken.length, isOver], [100, false])
  clock.at += 20
  mock.timers.tick(20)
  assert.deepEqual([taken.slice(100), isOver, isPaused], [['100', '101'], true, true], 'two more, as time has passed')
  clock.at += 980
  mock.timers.tick(1_000)
  assert.deepEqual([taken.length, isPaused], [102, false])

  // A large chunk is taken in pieces; what comes behind it waits, and nothing is lost or swapped.
  const free = new Valve({
    take: (bytes) => { taken.push(bytes.toString('latin1')); clock.at++ },
    pause: () => { isPaused = true },
    resume: () => { isPaused = false }
  })
  taken.length = 0
  const chunks = ['a'.repeat(64 * 1024), 'b'.repeat(5_000), 'c']
  for (const chunk of chunks) free.push(Buffer.from(chunk))
  assert.ok(isPaused && taken.join('').length < 64 * 1024, `${taken.join('').length} bytes are taken in one turn`)
  const isHeld = (): boolean => isPaused
  while (isHeld()) await new Promise((resolve) => { setImmediate(resolve) })
  assert.equal(taken.join(''), chunks.join(''))
})

test('of messages that nobody waits for, some are taken in one turn of the event loop, as passing them on takes longer', async (t) => {
  holdClock(t)
  const seen: string[] = []
  const receiver = counting({
    message: (message) => {
      const { method } = message as { method: string }
      seen.push(method)
      return method === 'awaited'
    },
    failed: () => {},
    paused: () => {},
    closed: () => {}
  }, noPace)
  const message = (method: string): Message => ({ kind: 'notification', method }) as unknown as Message
  const valve = new Valve({
    take: (bytes) => { for (const method of bytes.toString().trim().split('\n')) receiver.message(message(method), undefined) },
    pause: () => {},
    resume: () => {}
  })
  // Awaited messages are taken until the time of a turn is over.
  await turnsOfLoop(2)
  valve.push(Buffer.from('awaited\n'.repeat(1_000)))
  assert.equal(seen.length, 1_000)
  for (let n = 0; n < 100; n++) valve.push(Buffer.from(`${n}\n`))
  assert.ok(seen.length < 1_020, `${seen.length - 1_000} at once`)
  await turnsOfLoop(40)
  assert.deepEqual(seen.slice(1_000), Array.from({ length: 100 }, (_, n) => String(n)))
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
      const answer = new HttpAnswer({
        onHead: () => new EventStreamParser(() => {}, 1_000_000),
        onEnd: () => { resolve() },
        onError: reject
      }, { pace: { count: (what) => { if (what === 'noise') counted++ }, wait: () => 0 } })
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
    setLimits(t, limits.unasked, { perSecond: 1 })
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
  const accounts = Array.from({ length: 5 }, () => memory.open('ann'))
  const fits = accounts.map((account) => account.resize(15 * MiB))
  assert.deepEqual(fits, [true, true, true, false, false])
  const other = memory.open('ben')
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

test("large tools of a user's servers are described within the user's CPU time", async () => {
  const properties = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`p${n}`, { type: 'string', description: 'd'.repeat(20) }]))
  const text = JSON.stringify({ name: 'big', inputSchema: { type: 'object', properties } })
  const item = { key: 'big', text }
  const cpu = new CpuBudget()
  const share = { cpu, isSpent: false }
  const server = {
    name: 'anns',
    description: undefined,
    status: 'connected',
    catalogue: 1,
    items: [item],
    share,
    toTool: () => ({ item, description: undefined, enabled: true })
  }
  const body = (): string => [...writeBody({ servers: [server], disabled: false, inGroup: false, secured: false }, 'json')]
    .map((piece) => piece.text).join('')
  cpu.spend(cpu.left)
  assert.ok(!body().includes('p299'), 'it takes any object while there is no time left')
  assert.ok(share.isSpent)
  cpu.spend(-1_000)
  assert.ok(body().includes('p299'), 'and is described in full later')
})

test("a merged list does not wait for a user's server that is being read", async (t) => {
  setLimits(t, limits, { firstAnswerBudget: 600_000 })
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
