// A call that outlives the request that began it: detached from one exchange, and attached to the next.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test } from 'tap'
import { Call } from '../../protocol/call.ts'
import type { UpstreamError } from '../../protocol/errors.ts'
import type { Question } from '../../protocol/exchange.ts'
import type { Notification, Response } from '../../protocol/message.ts'
import { parseMessage } from '../../protocol/parse-message.ts'
import { RpcConnection } from '../../protocol/peer.ts'
import type { Transport } from '../../protocol/transports/transport.ts'
import { FakeExchange } from '../fakes/exchange.ts'
import { mockTimers, turnsOfLoop } from '../helpers/clock.ts'

const responseTo = (id: number): Response => ({ kind: 'response', id, resultText: '{"content":[]}' })

/** An exchange with this progress token. @param token as JSON text */
const under = (token: string): FakeExchange => new FakeExchange(`{"name":"x","_meta":{"progressToken":${token}}}`)

interface World { call: Call, peer: RpcConnection, notifications: () => Notification[], outcome: Promise<Response | UpstreamError> }

async function begin (exchange: FakeExchange): Promise<World> {
  const sent: Notification[] = []
  const transport: Transport = {
    start: async () => {},
    send: (text) => {
      const message = parseMessage(text, 100)
      if (!Array.isArray(message) && message.kind === 'notification') sent.push(message)
    },
    drop: () => {},
    onNegotiated: async () => {},
    close: async () => {}
  }
  const peer = new RpcConnection(transport, { request: () => {}, notification: () => {}, closed: () => {} })
  await peer.start()
  const call = new Call(peer, exchange, {
    changes: {},
    deadlines: { timeout: 60_000, resetTimeoutOnProgress: true, maxTotalTimeout: undefined },
    onEnd: () => {}
  })
  // Whoever awaits the answer has it, whichever exchange the call is attached to by then.
  const outcome = call.answer.catch((error: unknown) => error as UpstreamError)
  return { call, peer, notifications: () => sent, outcome }
}

function ask (call: Call): { question: Question, answered: Promise<Response>, withdraw: (reason: string) => void } {
  const withdrawn = new AbortController()
  const question = {
    method: 'elicitation/create',
    params: { message: 'Sure?' },
    paramsText: '{"message":"Sure?"}',
    signal: withdrawn.signal,
    outlivesRequest: false,
    progress: () => {}
  }
  return { question, answered: call.ask(question), withdraw: (reason) => { withdrawn.abort(reason) } }
}

test('a call that is detached goes on, and is taken up by another exchange', async (t) => {
  await t.test('progress, questions and cancellation follow the exchange that it is attached to', async () => {
    const [a, b] = [under('"of a"'), under('7')]
    const { call, peer, notifications, outcome } = await begin(a)
    call.progress('{"progressToken":1,"progress":1}')
    call.detach()
    assert.deepEqual([call.exchange, call.clientToken], [undefined, undefined])

    call.progress('{"progressToken":1,"progress":2}')
    call.notify('notifications/message', '{"level":"info","data":"lost"}')
    a.cancel('the request has ended')
    const { question, answered } = ask(call)
    await turnsOfLoop(1)
    assert.deepEqual([notifications(), a.asked, b.asked], [[], [], []], 'neither cancelled upstream nor asked at anybody')
    assert.deepEqual(a.notified, [['notifications/progress', '{"progressToken":"of a","progress":1}']])

    b.answer = async () => ({ kind: 'response', id: 3, resultText: '{"action":"accept"}' })
    call.attach(b)
    assert.deepEqual(await answered, { kind: 'response', id: 3, resultText: '{"action":"accept"}' })
    assert.deepEqual([a.asked, b.asked], [[], [question]])
    call.progress('{"progressToken":1,"progress":3}')
    assert.deepEqual(b.notified, [['notifications/progress', '{"progressToken":7,"progress":3}']])
    peer.paused(1, 500)
    assert.deepEqual([a.paused, b.paused], [[], [500]])

    peer.message(responseTo(1), undefined)
    assert.deepEqual(await outcome, responseTo(1))
  })

  await t.test('the exchange that it is attached to cancels it upstream, and none of the former ones', async () => {
    const [a, b] = [under('1'), under('2')]
    const { call, notifications, outcome } = await begin(a)
    call.detach()
    call.attach(b)
    a.cancel('the first one is over')
    await turnsOfLoop(1)
    assert.deepEqual([call.isOver, notifications()], [false, []])
    b.cancel('the person changed their mind')
    assert.equal(((await outcome) as UpstreamError).fault, 'closed')
    assert.deepEqual(
      notifications().map(({ method, params }) => [method, params]),
      [['notifications/cancelled', { requestId: 1, reason: 'the person changed their mind' }]]
    )
  })

  await t.test('all questions that wait are asked, in their order; one that was withdrawn meanwhile is not', async () => {
    const { call } = await begin(under('1'))
    call.detach()
    const [first, withdrawn, last] = [ask(call), ask(call), ask(call)]
    await turnsOfLoop(1)
    withdrawn.withdraw('the upstream knows already')
    await assert.rejects(withdrawn.answered, { fault: 'closed', message: 'the upstream knows already' })
    const b = under('2')
    b.answer = async () => responseTo(b.asked.length)
    call.attach(b)
    await Promise.all([first.answered, last.answered])
    assert.deepEqual(b.asked, [first.question, last.question])
    call.cancel(new Error('done') as UpstreamError)
  })

  await t.test('a question that was withdrawn before it waits is refused', async () => {
    const { call } = await begin(under('1'))
    call.detach()
    const { question, answered, withdraw } = ask(call)
    withdraw('the upstream knows already')
    await assert.rejects(answered, { fault: 'closed' })
    await assert.rejects(call.ask(question), { fault: 'closed', message: 'the upstream knows already' })
    call.cancel(new Error('done') as UpstreamError)
  })

  await t.test('a question that still waits when the call ends is refused', async () => {
    const { call, peer, outcome } = await begin(under('1'))
    call.detach()
    const { answered } = ask(call)
    await turnsOfLoop(1)
    peer.message(responseTo(1), undefined)
    await outcome
    await assert.rejects(answered, { fault: 'closed', message: 'the call has ended' })
    await assert.rejects(ask(call).answered, { fault: 'closed', message: 'the call has ended' }, 'and so is one that comes later')
  })

  await t.test('its deadline passes with nobody attached, and cancels it upstream', async (t) => {
    mockTimers(t, 'setTimeout', 'Date')
    const a = under('1')
    const sent: string[] = []
    const peer = new RpcConnection(
      { start: async () => {}, send: (text) => { sent.push(text) }, drop: () => {}, onNegotiated: async () => {}, close: async () => {} },
      { request: () => {}, notification: () => {}, closed: () => {} }
    )
    const deadlines = { timeout: 20_000, resetTimeoutOnProgress: true, maxTotalTimeout: undefined }
    const call = new Call(peer, a, { changes: {}, deadlines, onEnd: () => {} })
    call.detach()
    mock.timers.tick(20_000)
    await assert.rejects(call.answer, { fault: 'timeout' })
    assert.match(sent.at(-1) ?? '', /"notifications\/cancelled".*"requestId":1/)
  })
})
