// Circuit breaking of servers that keep failing.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { UpstreamError } from '../../protocol/errors.ts'
import { Circuit, Circuits } from '../../plugins/upstream/links/circuits.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { appFor } from '../helpers/app.ts'
import { at, KEY, settings, text } from '../helpers/client.ts'
import { movingClock } from '../helpers/clock.ts'
import { until } from '../helpers/hub.ts'
import { openSession } from '../helpers/inject.ts'

test('a server whose requests fail is left alone, and checked before it gets another one', async (t) => {
  const forward = movingClock(t)
  let [status, calls, pings] = [200, 0, 0]
  const upstream = await startUpstream(t, {
    tools: [tool('echo')],
    on: ({ method, res }) => {
      if (method === 'ping') pings++
      if (method === 'tools/call') calls++
      if (status === 200 || (method !== 'tools/call' && method !== 'ping')) return undefined
      res.writeHead(status).end()
      return 'taken'
    }
  })
  const app = await appFor(t, settings({ up: { url: upstream.url, enableKeepAlive: false } }))
  await until(() => app.upstreams.countByStatus().connected === 1)
  const session = await openSession(app, '/mcp', KEY)
  const call = async () => await session.request('tools/call', { name: 'up-echo', arguments: { message: 'hi' } })
  const read = async (url: string): Promise<string> => (await app.inject({ url, headers: { authorization: `Bearer ${KEY}` } })).body
  const metric = async (): Promise<unknown> => /^toolhub_upstream_circuit_open\{server="up"\} (\d)$/m.exec(await read('/metrics'))?.[1]
  const warnings = async (): Promise<string> => String(at(JSON.parse(await read('/api/servers/up')), 'data', 'warnings') ?? '')

  status = 502
  for (let n = 0; n < 4; n++) await call()
  assert.equal(await metric(), '0')
  assert.match((await call()).error?.message ?? '', /it answered HTTP 502/)
  const refused = (await call()).error
  assert.equal(refused?.code, -32001)
  assert.match(refused?.message ?? '', /"up" is unavailable: it failed 5 times in a row; the next check is in 1 s/)
  assert.equal(calls, 5, 'the sixth call is not sent')
  assert.equal(await metric(), '1')
  assert.match(await warnings(), /it keeps failing/)

  // The check fails: no call is risked, and the next pause begins.
  forward(1_001)
  assert.match((await call()).error?.message ?? '', /is not connected: it answered HTTP 502/)
  assert.match((await call()).error?.message ?? '', /failed 6 times in a row/)
  assert.deepEqual([calls, pings], [5, 1])

  status = 200
  forward(10_001)
  const answers = await Promise.all([call(), call(), call()])
  assert.deepEqual(answers.map(({ result }) => text(result)), ['hi', 'hi', 'hi'])
  assert.equal(await metric(), '0')
  assert.equal(await warnings(), '')
})

test('a call whose connection breaks is told so in one sentence, and has failed', async (t) => {
  const upstream = await startUpstream(t, {
    tools: [tool('echo')],
    on: ({ method, res }) => {
      if (method !== 'tools/call') return undefined
      res.destroy()
      return 'taken'
    }
  })
  const app = await appFor(t, settings({ up: { url: upstream.url } }))
  await until(() => app.upstreams.countByStatus().connected === 1)
  const outcomes: string[] = []
  app.gateway.addHook('onDone', ({ outcome }) => { outcomes.push(outcome) })
  const session = await openSession(app, '/mcp', KEY)
  const { error } = await session.request('tools/call', { name: 'up-echo', arguments: {} })
  assert.equal(error?.code, -32001)
  assert.equal(error.message, 'Server "up" failed: the connection to it was lost. The request may have run')
  assert.deepEqual(outcomes, ['failure'])
})

test('a server that hangs slows no other', async (t) => {
  const hanging = async (name: string): Promise<{ url: string, received: () => number }> => {
    const { url, received } = await startUpstream(t, { tools: [tool('echo')], on: ({ method }) => method === name ? 'never' : undefined })
    return { url, received: () => received.filter(({ message }) => message.method === name).length }
  }
  const [stuck, silent, fine] = [await hanging('tools/call'), await hanging('initialize'), await startUpstream(t, { tools: [tool('echo')] })]
  const servers = { stuck: { url: stuck.url }, silent: { url: silent.url }, fine: { url: fine.url } }
  const app = await appFor(t, settings(servers), { INIT_TIMEOUT: '1h', REQUEST_TIMEOUT: '1h' })
  await until(() => app.upstreams.countByStatus().connected === 2 && silent.received() === 1)
  const session = await openSession(app, '/mcp', KEY)
  const call = async (server: string) => await session.request('tools/call', { name: `${server}-echo`, arguments: { message: 'hi' } })
  let ended = 0
  const waiting = Promise.allSettled(Array.from({ length: 100 }, async () => { await call('stuck').finally(() => { ended++ }) }))
  await until(() => stuck.received() === 100)
  for (let n = 0; n < 20; n++) assert.equal(text((await call('fine')).result), 'hi')
  const { result } = await session.request('tools/list', {})
  assert.deepEqual((result?.tools as Array<{ name: string }>).map(({ name }) => name), ['stuck-echo', 'fine-echo'])
  assert.equal(ended, 0, 'the others were answered while all of these waited')
  await app.close()
  await waiting
})

const broken = new UpstreamError('broken', 'it broke')
const made = () => {
  const clock = { at: 1_000_000 }
  const circuit = new Circuit()
  const said: string[] = []
  const circuits = new Circuits(() => [circuit], (level, sentence) => { said.push(`${level}: ${sentence}`) }, () => clock.at)
  return { clock, circuit, circuits, said }
}

test('a circuit', async (t) => {
  await t.test('counts failures in a row, and the end of a link once', async () => {
    const { circuit, circuits } = made()
    const link = { closed: true }
    for (let n = 0; n < 100; n++) circuits.recordFailure(circuit, broken, link)
    for (let n = 0; n < 3; n++) circuits.recordFailure(circuit, broken, { closed: false })
    assert.equal(circuit.isOpen, false)
    circuits.recordAnswer(circuit)
    for (let n = 0; n < 4; n++) circuits.recordFailure(circuit, broken, { closed: false })
    assert.equal(circuit.isOpen, false)
    circuits.recordFailure(circuit, broken, { closed: false })
    assert.equal(circuit.isOpen, true)
  })

  await t.test('does not count slow tools, refused requests and missing credentials', async () => {
    const { circuit, circuits } = made()
    const faults = [
      new UpstreamError('timeout', ''), new UpstreamError('refused', '', { status: 429 }), new UpstreamError('unauthorized', ''),
      new UpstreamError('closed', ''), new UpstreamError('no-room', ''), new UpstreamError('expired', '')
    ]
    for (let n = 0; n < 3; n++) for (const fault of faults) circuits.recordFailure(circuit, fault, { closed: false })
    assert.equal(circuit.failures, 0)
  })

  await t.test('opens again at the first failure after a check, for longer, and says both ends once', async () => {
    const { clock, circuit, circuits, said } = made()
    for (let n = 0; n < 5; n++) circuits.recordFailure(circuit, broken, { closed: false })
    const pauses: number[] = []
    for (let n = 0; n < 6; n++) {
      pauses.push(circuits.pauseOf(circuit))
      clock.at += circuits.pauseOf(circuit)
      circuits.recordProbe(circuit)
      assert.equal(circuit.isOpen, false)
      circuits.recordFailure(circuit, broken, { closed: false })
      assert.equal(circuit.isOpen, true)
    }
    assert.ok((pauses[0] ?? 0) <= 1_000 && (pauses[5] ?? 0) > 8_000 && pauses.every((pause) => pause <= 10_000), pauses.join())
    circuits.recordProbe(circuit)
    circuits.recordAnswer(circuit)
    assert.deepEqual(said, [
      'warn: it failed 5 times in a row: requests are refused at once until a check succeeds', 'info: it answers again'
    ])
  })

  await t.test('of connections alone closes with a connection', async () => {
    const { circuit, circuits } = made()
    for (let n = 0; n < 5; n++) circuits.recordFailure(circuit, broken)
    assert.equal(circuit.isOpen, true)
    circuits.recordProbe(circuit)
    assert.deepEqual([circuit.isOpen, circuit.failures], [false, 0])
  })
})
