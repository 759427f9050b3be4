// A call has one deadline, and is cancelled once.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test, type Test } from 'tap'
import { mockTimers, turnsOfLoop } from '../helpers/clock.ts'
import { Call, type Deadlines } from '../../protocol/call.ts'
import { UpstreamError } from '../../protocol/errors.ts'
import type { Question } from '../../protocol/exchange.ts'
import type { Response } from '../../protocol/message.ts'
import type { RpcConnection } from '../../protocol/peer.ts'
import { FakeExchange } from '../fakes/exchange.ts'
import type { FakeTransport } from '../helpers/fake-peer.ts'
import { answerTo, startPeer } from '../helpers/fake-peer.ts'

/** A client's request with a progress token. */
const withToken = (): FakeExchange => new FakeExchange('{"name":"x","_meta":{"progressToken":"mine"}}')

/** The upstream reports progress on the call with this id. */
const progress = '{"progressToken":1,"progress":0.5}'

const question = (): Question => ({
  method: 'sampling/createMessage',
  params: {},
  paramsText: '{}',
  signal: new AbortController().signal,
  outlivesRequest: false,
  progress: () => {}
})

interface Started {
  transport: FakeTransport
  peer: RpcConnection
  call: Call
  exchange: FakeExchange
  overs: () => number
  failure: () => UpstreamError | undefined
  answer: () => Response | undefined
}
const start = async (t: Test, deadlines: Partial<Deadlines> = {}, exchange = withToken()): Promise<Started> => {
  mockTimers(t, 'setTimeout', 'Date')
  const { transport, peer } = await startPeer()
  let overs = 0
  let failure: UpstreamError | undefined
  let answer: Response | undefined
  const call = new Call(peer, exchange, {
    changes: {},
    deadlines: { timeout: 1_000, resetTimeoutOnProgress: true, maxTotalTimeout: undefined, ...deadlines },
    onEnd: () => { overs++ }
  })
  call.answer.then((response) => { answer = response }, (error: unknown) => { failure = error as UpstreamError })
  return { transport, peer, call, exchange, overs: () => overs, failure: () => failure, answer: () => answer }
}
const cancelled = (transport: FakeTransport): unknown[] =>
  transport.notifications().filter(({ method }) => method === 'notifications/cancelled')
    .map(({ params }) => params.requestId)

test('call: the request goes out at once, under its own progress token; its answer ends it', async (t) => {
  const { transport, peer, call, overs, answer } = await start(t)
  assert.deepEqual(
    transport.sent.map(({ message }) => message.kind === 'request' && [message.id, message.method, message.paramsText]),
    [[1, 'tools/call', '{"name":"x","_meta":{"progressToken":1}}']]
  )
  assert.equal(call.id, 1)
  assert.equal(call.isOver, false)
  peer.message(answerTo(1), undefined)
  await turnsOfLoop(1)
  assert.equal(answer()?.id, 1)
  mock.timers.tick(100_000)
  call.cancel(new UpstreamError('closed', 'too late'))
  await turnsOfLoop(1)
  assert.deepEqual([call.isOver, overs(), cancelled(transport)], [true, 1, []])
})

test('call: silence ends it at the idle deadline, not before; the upstream is told once', async (t) => {
  const { transport, peer, call, overs, failure } = await start(t)
  mock.timers.tick(999)
  await turnsOfLoop(1)
  assert.equal(failure(), undefined)
  mock.timers.tick(1)
  await turnsOfLoop(1)
  assert.equal(failure()?.fault, 'timeout')
  assert.match(failure()?.message ?? '', /no answer within 1 s/)
  call.cancel(new UpstreamError('closed', 'again'))
  mock.timers.tick(100_000)
  peer.message(answerTo(1), undefined)
  assert.deepEqual([call.isOver, overs(), cancelled(transport), transport.dropped], [true, 1, [1], [1]])
})

const times: Array<[says: string, deadlines: Partial<Deadlines>, progressAt: number[], isAsked: boolean, end: number]> = [
  ['progress re-arms it', {}, [900, 1_800, 2_700, 3_600, 4_500], false, 5_500],
  ['progress does not where resetTimeoutOnProgress is false', { resetTimeoutOnProgress: false }, [900], false, 1_000],
  ['the hard cap holds against any progress', { maxTotalTimeout: 2_500 }, [800, 1_600, 2_400], false, 2_500],
  ['a cap below the idle deadline holds, too', { maxTotalTimeout: 400 }, [], false, 400],
  ['the hard cap goes on while a question is open', { maxTotalTimeout: 5_000 }, [], true, 5_000]
]
for (const [says, deadlines, progressAt, isAsked, end] of times) {
  test(`call: ${says}`, async (t) => {
    const { transport, call, exchange, failure } = await start(t, deadlines)
    exchange.answer = async () => await new Promise(() => {})
    if (isAsked) void call.ask(question())
    let now = 0
    for (const at of [...progressAt, end - 1]) {
      mock.timers.tick(at - now)
      now = at
      await turnsOfLoop(1)
      assert.equal(failure(), undefined, `after ${at} ms`)
      if (at !== end - 1) call.progress(progress)
    }
    mock.timers.tick(1)
    await turnsOfLoop(1)
    assert.deepEqual([failure()?.fault, cancelled(transport)], ['timeout', [1]])
  })
}

test('call: while a question is open the idle deadline rests; afterwards it begins anew', async (t) => {
  const { call, exchange, failure } = await start(t)
  mock.timers.tick(900)
  let answer: (response: Response) => void = () => {}
  exchange.answer = async () => await new Promise((resolve) => { answer = resolve })
  const asked = call.ask(question())
  mock.timers.tick(600_000)
  call.progress(progress)
  mock.timers.tick(600_000)
  await turnsOfLoop(1)
  assert.equal(failure(), undefined)
  answer(answerTo('yes'))
  assert.deepEqual(await asked, answerTo('yes'))
  mock.timers.tick(999)
  await turnsOfLoop(1)
  assert.equal(failure(), undefined)
  mock.timers.tick(1)
  await turnsOfLoop(1)
  assert.equal(failure()?.fault, 'timeout')
})

test('call: of two questions the last one to end ends the rest; one that fails ends, too', async (t) => {
  const { call, exchange, failure } = await start(t)
  const ends: Array<() => void> = []
  exchange.answer = async () => await new Promise((resolve) => { ends.push(() => { resolve(answerTo(1)) }) })
  const first = call.ask(question())
  exchange.answer = async () => await new Promise((_resolve, reject) => { ends.push(() => { reject(new Error('gone')) }) })
  const second = call.ask(question())
  ends[0]?.()
  await first
  mock.timers.tick(600_000)
  await turnsOfLoop(1)
  assert.equal(failure(), undefined)
  ends[1]?.()
  await assert.rejects(second, /gone/)
  mock.timers.tick(1_000)
  await turnsOfLoop(1)
  assert.equal(failure()?.fault, 'timeout')
})

test('call: a client that cancels cancels upstream, once, with its reason', async (t) => {
  const { transport, exchange, failure, overs } = await start(t)
  exchange.cancel('the user pressed "stop"')
  exchange.cancel('twice')
  await turnsOfLoop(1)
  assert.equal(failure()?.fault, 'closed')
  const [notification, ...more] = transport.notifications()
  assert.deepEqual(notification?.params, { requestId: 1, reason: 'the user pressed "stop"' })
  assert.equal(more.length, 0)
  mock.timers.tick(100_000)
  assert.deepEqual([overs(), cancelled(transport)], [1, [1]])
})

test('call: a client that was gone before the call began', async (t) => {
  const exchange = withToken()
  exchange.cancelled = 'gone before'
  const { call, transport, failure, overs } = await start(t, {}, exchange)
  await turnsOfLoop(1)
  mock.timers.tick(100_000)
  call.cancel(new UpstreamError('closed', 'again'))
  assert.deepEqual([call.isOver, failure()?.fault, failure()?.message], [true, 'closed', 'gone before'])
  assert.deepEqual([transport.sent, overs()], [[], 0], 'nothing is sent, and nothing was begun that could end')
})

test('call: a link that is gone already, or goes: an error, and nothing to cancel', async (t) => {
  const { peer, transport, failure, overs } = await start(t)
  peer.closed(new UpstreamError('broken', 'gone'))
  await turnsOfLoop(1)
  assert.deepEqual([failure()?.message, overs(), cancelled(transport)], ['gone', 1, []])
  let over = 0
  const late = new Call(peer, new FakeExchange(), {
    changes: {},
    deadlines: { timeout: 1_000, resetTimeoutOnProgress: true, maxTotalTimeout: undefined },
    onEnd: () => { over++ }
  })
  await assert.rejects(late.answer, { fault: 'unreachable' })
  mock.timers.tick(100_000)
  assert.deepEqual([late.isOver, over, cancelled(transport)], [true, 1, []])
})

test('call: an upstream that wants to be polled: the client is told', async (t) => {
  const { peer, exchange } = await start(t)
  peer.paused(1, 750)
  assert.deepEqual(exchange.paused, [750])
})

test('call: progress is told under the token of the client', async (t) => {
  const { call, exchange } = await start(t)
  call.progress(progress)
  assert.deepEqual(exchange.notified, [['notifications/progress', '{"progressToken":"mine","progress":0.5}']])
})
