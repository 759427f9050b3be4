// Whom the questions of a server reach, where several calls share its connection.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { RpcError } from '../../protocol/errors.ts'
import type { Client, Question } from '../../protocol/exchange.ts'
import type { Response } from '../../protocol/message.ts'
import { dispatchQuestion, type DispatchDeps } from '../../plugins/upstream/inbound/dispatch.ts'
import type { Link } from '../../plugins/upstream/links/link.ts'
import type { Slot } from '../../plugins/upstream/links/slot.ts'
import { turnsOfLoop } from '../helpers/clock.ts'

interface Asked { readonly question: Question, readonly answer: (text: string) => void, readonly fail: (error: Error) => void }

/** A call that is open on a connection, and notes what its client is asked. */
class FakeCall {
  readonly client: Client
  readonly exchange: { readonly canSuspend: boolean, readonly address: string, readonly client: Client }
  readonly method = 'tools/call'
  readonly params = {}
  readonly asked: Asked[] = []
  isOver = false

  constructor (client: Client, canSuspend: boolean) {
    this.client = client
    this.exchange = { canSuspend, address: '192.0.2.1', client }
  }

  async ask (question: Question): Promise<Response> {
    return await new Promise((resolve, reject) => {
      const answer = (resultText: string): void => { resolve({ kind: 'response', id: null, resultText }) }
      this.asked.push({ question, answer, fail: reject })
    })
  }
}

let last = 0
const client = (principal: string, capabilities: Client['capabilities'] = { elicitation: {} }, owner = `user ${principal}`): Client => ({
  id: `client ${++last}`, user: principal, principalKey: principal, owner, capabilities, listener: undefined, ask: async () => { throw new Error('asked') }
})

const modern = (...of: Parameters<typeof client>): FakeCall => new FakeCall(client(...of), true)

interface World { link: { openCalls: FakeCall[] }, contested: () => number, ask: (withdrawn?: AbortSignal) => Promise<Response> }

/** A connection with these calls, which nobody owns. */
function begin (...openCalls: FakeCall[]): World {
  const link = { openCalls }
  let contested = 0
  const deps: DispatchDeps = {
    name: 's',
    refresh: () => {},
    onContested: () => { contested++ },
    onQuestion: async () => {},
    onNotification: () => {},
    broadcast: () => {},
    taskHandle: () => undefined,
    onDropped: () => {}
  }
  const slot = { owner: undefined, tasks: { taskClientsOn: () => [], recordElicitation: () => {} } } as unknown as Slot
  const ask = async (signal = new AbortController().signal): Promise<Response> => await dispatchQuestion(deps, slot,
    link as unknown as Link,
    { method: 'elicitation/create', params: {}, paramsText: '{}', signal, outlivesRequest: false, progress: () => {} },
    undefined)
  return { link, contested: () => contested, ask }
}

test('a question of a connection that several calls share', async (t) => {
  await t.test('is put to a modern client whose calls they all are, by its newest one that waits for no answer', async () => {
    const calls = [modern('ann'), modern('ann'), modern('ann')]
    const { ask, contested } = begin(...calls)
    const answers = [ask(), ask(), ask(), ask()]
    await turnsOfLoop(1)
    assert.deepEqual(calls.map(({ asked }) => asked.length), [1, 1, 2])
    for (const { asked } of calls) for (const { answer } of asked) answer('{"action":"accept"}')
    for (const answer of answers) assert.equal((await answer).resultText, '{"action":"accept"}')
    assert.equal(contested(), 0)
    // Whoever has answered can be asked again.
    void ask()
    await turnsOfLoop(1)
    assert.equal(calls.at(-1)?.asked.length, 3)
  })

  const table: ReadonlyArray<readonly [string, FakeCall[]]> = [
    ['two principals', [modern('ann'), modern('bob')]],
    ['one principal that declares different things', [modern('ann'), modern('ann', { elicitation: {}, sampling: {} })]],
    ['one principal with two owners', [modern('ann'), modern('ann', undefined, 'other')]],
    ['callers without credentials at one address', [
      modern('anonymous', undefined, 'address 192.0.2.1'), modern('anonymous', undefined, 'address 192.0.2.1')
    ]],
    ['two sessions of one principal', [new FakeCall(client('ann'), false), new FakeCall(client('ann'), false)]],
    ['a session and a modern client of one principal', [new FakeCall(client('ann'), false), modern('ann')]]
  ]
  for (const [says, calls] of table) {
    await t.test(`is put to nobody where they are of ${says}`, async () => {
      const { ask, contested } = begin(...calls)
      await assert.rejects(ask(), (error) => error instanceof RpcError && error.code === -32600 && /"isolation": "session"/.test(error.message))
      assert.equal(contested(), 1)
      assert.deepEqual(calls.flatMap(({ asked }) => asked), [])
    })
  }

  const end = (call: FakeCall, { link }: World): void => {
    call.isOver = true
    link.openCalls.splice(link.openCalls.indexOf(call), 1)
    for (const { fail } of call.asked) fail(new RpcError(-32603, 'The request has ended'))
  }

  await t.test('is put to the client once more where the call is over that it was put to', async () => {
    const [older, newer] = [modern('ann'), modern('ann')]
    const world = begin(older, newer)
    const answer = world.ask()
    await turnsOfLoop(1)
    // It is about another call, perhaps: what the client has of it may still be answered.
    assert.equal(newer.asked[0]?.question.outlivesRequest, true)
    end(newer, world)
    await turnsOfLoop(1)
    older.asked[0]?.answer('{"action":"decline"}')
    assert.equal((await answer).resultText, '{"action":"decline"}')
    assert.equal(world.contested(), 0)
  })
  await t.test('fails where no other call is left, or only one of somebody else, or where it was withdrawn', async () => {
    const alone = modern('ann')
    const first = begin(alone)
    const [failed, others] = [first.ask(), modern('bob')]
    await turnsOfLoop(1)
    first.link.openCalls.push(others)
    end(alone, first)
    await assert.rejects(failed, /request has ended/)
    const [older, newer] = [modern('ann'), modern('ann')]
    const second = begin(older, newer)
    const withdrawn = new AbortController()
    const given = second.ask(withdrawn.signal)
    await turnsOfLoop(1)
    withdrawn.abort('enough')
    end(newer, second)
    await assert.rejects(given, /request has ended/)
    assert.deepEqual([...older.asked, ...others.asked], [])
  })
})
