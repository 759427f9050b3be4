// What modern clients bring back: sealed states, and the rounds of parked calls.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mock } from 'node:test'
import { test } from 'tap'
import { MemoryRecords } from '../../db/memory/records.ts'
import { UsedRequestStates } from '../../db/ports/login-states.ts'
import { StorageError } from '../../db/store.ts'
import { makeView, type Principal, type View } from '../../plugins/settings/access/view.ts'
import { createResultTranslator, requireElicitationsAccepted, targetServerFingerprint } from '../../plugins/downstream/modern/result-translator.ts'
import type { ModernExchange } from '../../plugins/downstream/modern/exchange.ts'
import type { RequestOutcome } from '../../plugins/downstream/modern/errors.ts'
import { ParkedCalls } from '../../plugins/downstream/modern/parked-calls.ts'
import { inputResponsesOf, type Parkable, type ParkedCall } from '../../plugins/downstream/modern/parked-call.ts'
import { checkInputRequests, resultRequiresInput } from '../../plugins/downstream/modern/input-request.ts'
import type { ModernRequest } from '../../plugins/downstream/modern/request.ts'
import { RequestStateSealer, type StateBinding, type RequestState } from '../../plugins/downstream/modern/state.ts'
import type { Gateway } from '../../plugins/gateway/gateway.ts'
import { type KeyRing, openKeyRing } from '../../plugins/base/secrets/key-ring.ts'
import { seal, unseal } from '../../plugins/base/secrets/seal.ts'
import { rpcCode, type RpcError } from '../../protocol/errors.ts'
import type { Question } from '../../protocol/exchange.ts'
import type { Response } from '../../protocol/message.ts'
import { modernErrorCode } from '../../protocol/modern/envelope.ts'
import { mockTimers } from '../helpers/clock.ts'
import { path } from '../helpers/hub.ts'
import { downstreamLimits } from '../../plugins/downstream/limits.ts'

const usedStates = (): UsedRequestStates => new UsedRequestStates(new MemoryRecords())

const principal = (key: string): Principal => ({ key, kind: 'user', user: key, username: key, isAdmin: false })
const view = (key: string, server = 's'): View => makeView(principal(key), { kind: 'server', name: server })
const binding: StateBinding = {
  view: view('ann'),
  method: 'tools/call',
  params: { name: 'pay', arguments: { to: 'bob b.', sum: 1 } },
  paramsText: '{"name":"pay","arguments":{"to":"bob b.","sum":1}}'
}
const minute = 60_000
const ring = async (): Promise<KeyRing> => await openKeyRing({ dataDir: '/nowhere', encryptionKey: randomBytes(32).toString('base64') })

/** What was used, as a database knows it. */
const used = (): UsedRequestStates => {
  const memory = usedStates()
  return {
    outlivesProcess: true, recordUse: async (...use) => await memory.recordUse(...use)
  } as Partial<UsedRequestStates> as UsedRequestStates
}

const sealer = (keys: KeyRing): ConstructorParameters<typeof RequestStateSealer>[1] => ({
  seal: (text, place) => seal(keys, text, place),
  unseal: (sealed, place) => unseal(keys, sealed, place)
})

test('a state opens for whom and what it is, and for nothing else', async (t) => {
  const keys = await ring()
  const states = new RequestStateSealer(used(), sealer(keys))
  const kinds: RequestState[] = [{ kind: 'call', id: 'x', round: 1 }, { kind: 'server', server: 's', state: 'its own' }, { kind: 'again' }]
  for (const state of kinds) {
    const sealed = states.seal(state, binding, Date.now() + minute)
    const { params } = binding
    const table: ReadonlyArray<readonly [string, string, StateBinding, RegExp | undefined]> = [
      ['as it was', sealed, binding, undefined],
      ['members in another order', sealed, { ...binding, params: { arguments: { sum: 1, to: 'bob b.' }, name: 'pay' } }, undefined],
      ['with answers', sealed, { ...binding, params: { ...params, inputResponses: {}, requestState: sealed, _meta: {} } }, undefined],
      ['of another principal', sealed, { ...binding, view: view('eve') }, /not valid/],
      ['on another route', sealed, { ...binding, view: view('ann', 'other') }, /not valid/],
      ['for another tool', sealed, { ...binding, params: { ...params, name: 'steal' } }, /not valid/],
      ['for other arguments', sealed, { ...binding, params: { ...params, arguments: { to: 'eve', sum: 1 } } }, /not valid/],
      ['for a member twice', sealed, { ...binding, paramsText: '{"arguments":{"to":"eve","to":"bob b.","sum":1}}' }, /not valid/],
      ['for pairs in place of members', sealed, { ...binding, params: { ...params, arguments: [['sum', 1], ['to', 'bob b.']] } }, /not valid/],
      ['for another method', sealed, { ...binding, method: 'prompts/get' }, /not valid/],
      ['longer', `${sealed}A`, binding, /not valid/],
      ['with a tail', `${sealed}-TAMPERED`, binding, /not valid/],
      ['shorter', sealed.slice(0, -1), binding, /not valid/],
      ['empty', '', binding, /not valid/],
      ['none at all', 'p.x', binding, /not valid|another gateway process/],
      ['of another kind', sealed.replace(/^./, (kind) => kind === 'p' ? 'r' : 'p'), binding, /not valid|another gateway process/],
      ['expired', states.seal(state, binding, Date.now() - 1), binding, /expired/]
    ]
    for (const [what, text, of, error] of table) {
      await t.test(`${state.kind}: ${what}`, async () => {
        if (error === undefined) assert.deepEqual(states.open(text, of), state)
        else assert.throws(() => states.open(text, of), (thrown: RpcError) => thrown.code === -32602 && error.test(thrown.message))
      })
    }
    for (let at = 0; at < sealed.length; at += 7) {
      const changed = `${sealed.slice(0, at)}${sealed[at] === 'x' ? 'y' : 'x'}${sealed.slice(at + 1)}`
      assert.throws(() => states.open(changed, binding), { code: -32602 }, changed)
    }
    assert.ok(!sealed.includes('bob b.') && !Buffer.from(sealed.split('.').at(-1) ?? '', 'base64url').includes('ann'))
  }
  await t.test('a state of a server is good once; the same answers again, for a while', async (t) => {
    mockTimers(t, 'Date')
    const [, server = ''] = kinds.map((state) => states.seal(state, binding, Date.now() + 10 * minute))
    await states.use(server, '{"a":1}')
    await states.use(server, '{"a":1}')
    await assert.rejects(states.use(server, '{"a":2}'), { code: -32602 })
    mock.timers.tick(downstreamLimits.parked.again + 1)
    await assert.rejects(states.use(server, '{"a":1}'), /already answered/)
    await states.use(states.seal({ kind: 'again' }, binding, Date.now() + minute), '{"a":2}')
  })
  await t.test('a state of an earlier round is refused once a later one was answered, also with the same answers', async () => {
    const round = (after?: string): string => states.seal(
      { kind: 'server', server: 's', state: 'its own', ...after === undefined ? {} : { after: states.idOf(after) } }, binding, Date.now() + minute
    )
    const first = round()
    const second = round(first)
    states.open(first, binding)
    states.open(first, binding)
    states.open(second, binding)
    assert.throws(() => states.open(first, binding), { code: -32602, message: /already answered/ })
    states.open(second, binding)
  })
  await t.test('a state is refused while the database that knows whether it was used is away', async () => {
    const away = new RequestStateSealer({
      outlivesProcess: true,
      recordUse: async () => { throw new StorageError('the database is not available', false) }
    } as Partial<UsedRequestStates> as UsedRequestStates, sealer(keys))
    await assert.rejects(away.use('x', '{}'), { code: rpcCode.unavailable, message: 'the database is not available; send the request again' })
  })
  await t.test('another process opens states of servers, and says so of parked calls', async () => {
    const [call, server] = kinds.map((state) => states.seal(state, binding, Date.now() + minute))
    const other = new RequestStateSealer(used(), sealer(keys))
    assert.deepEqual(other.open(server ?? '', binding), kinds[1])
    assert.throws(() => other.open(call ?? '', binding), /belongs to another gateway process/)
    // Whether it is another's or was changed is not told apart.
    assert.throws(() => new RequestStateSealer(used(), sealer(awaited)).open(server ?? '', binding), /not valid/)
  })
  await t.test('where a restart forgets what was used, it ends all states', async () => {
    for (const state of kinds) {
      const sealed = new RequestStateSealer(usedStates(), sealer(keys)).seal(state, binding, Date.now() + minute)
      const again = new RequestStateSealer(usedStates(), sealer(keys))
      assert.throws(() => again.open(sealed, binding), { code: -32602, message: /before a restart; send the request again without/ })
      // Nor one that was sealed while there was a database.
      assert.throws(() => again.open(states.seal(kinds[1] ?? state, binding, Date.now() + minute), binding), /not valid/)
    }
  })
})

const awaited = await ring()

/** An exchange that notes what it is answered with. */
class FakeExchange implements Parkable {
  readonly view = view('ann')
  readonly method = 'tools/call'
  readonly params = { name: 'ask' }
  readonly paramsText = '{"name":"ask"}'
  readonly client: Parkable['client']
  capabilities: Parkable['capabilities']
  readonly serverInfo = '{"name":"s","version":"1"}'
  memory = 0
  isAwaited = true
  isOver = false
  readonly answers: string[] = []
  cancelled: string | undefined
  call: ParkedCall<FakeExchange> | undefined

  constructor (owner = 'ann', capabilities: Parkable['capabilities'] = { elicitation: {}, sampling: {}, roots: {} }) {
    this.client = { owner }
    this.capabilities = capabilities
  }

  suspend (text: string): void { this.isAwaited = false; this.answers.push(text) }
  deliver ({ text }: RequestOutcome): void { this.isAwaited = false; this.answers.push(String(text)) }
  finish (text: string): void {
    this.isOver = true
    const outcome: RequestOutcome = { kind: 'result', text, status: 200 }
    this.call?.onFinished(outcome)
    if (this.isAwaited) this.deliver(outcome)
  }

  cancel (reason: string): void { this.isOver = true; this.cancelled = reason; this.call?.onFinished(undefined) }
  end (error: RpcError): void { this.cancel(error.message) }
  readonly attach = (): void => { this.isAwaited = true }
}

const question = (paramsText = '{"message":"?"}', method = 'elicitation/create', signal = new AbortController().signal): Question => ({
  method, paramsText, params: JSON.parse(paramsText) as Record<string, unknown>, signal, outlivesRequest: false, progress: () => {}
})

interface Parked {
  table: ParkedCalls<FakeExchange>
  exchange: FakeExchange
  call: ParkedCall<FakeExchange>
  /** The state of the last answer. */
  round: () => number
}

function park (table = new ParkedCalls<FakeExchange>(new RequestStateSealer(usedStates())), exchange = new FakeExchange()): Parked {
  const call = exchange.call = table.park(exchange)
  const round = (): number => {
    const { requestState } = JSON.parse(exchange.answers.at(-1) ?? '{}') as { requestState: string }
    const state = table.states.open(requestState, exchange)
    assert.equal(state.kind, 'call')
    return state.kind === 'call' ? state.round : 0
  }
  return { table, exchange, call, round }
}

const answers = (...keys: string[]): string =>
  JSON.stringify(Object.fromEntries(keys.map((key) => [key, { action: 'accept', content: { key } }])))
const inputRequests = (text: string | undefined): string[] =>
  Object.keys((JSON.parse(text ?? '{}') as { inputRequests?: object }).inputRequests ?? {})

test('rounds: questions that come together are asked together, and what is missing is asked again', async (t) => {
  mockTimers(t, 'setTimeout')
  const { exchange, call, round } = park()
  const first = call.ask(question())
  const second = call.ask(question('{"messages":[],"_meta":{"progressToken":7,"x":1}}', 'sampling/createMessage'))
  assert.equal(exchange.answers.length, 0)
  mock.timers.tick(downstreamLimits.parked.gather)
  assert.deepEqual(inputRequests(exchange.answers[0]), ['question-1', 'question-2'])
  assert.ok(exchange.answers[0]?.includes('{"method":"sampling/createMessage","params":{"messages":[],"_meta":{"x":1}}}'))
  call.resume(round(), '{"question-1":{"action":"decline"},"question-2":12,"other":{}}', exchange.attach)
  assert.equal((await first).resultText, '{"action":"decline"}')
  mock.timers.tick(downstreamLimits.parked.gather)
  assert.deepEqual(inputRequests(exchange.answers[1]), ['question-2'])
  assert.equal(round(), 2)
  call.resume(2, answers('question-2'), exchange.attach)
  assert.match((await second).resultText ?? '', /"key":"question-2"/)
  exchange.finish('{"done":1}')
  assert.equal(exchange.answers.at(-1), '{"done":1}')
})

test('a client is asked what its newest request declares, and nothing else', async (t) => {
  mockTimers(t, 'setTimeout')
  const { exchange, call, round } = park()
  const first = call.ask(question())
  const second = call.ask(question('{"messages":[]}', 'sampling/createMessage'))
  const refused = assert.rejects(second, /sampling/)
  mock.timers.tick(downstreamLimits.parked.gather)
  assert.deepEqual(inputRequests(exchange.answers[0]), ['question-1', 'question-2'])
  // The retry declares less: what it leaves unanswered is not asked again, nor anything new of that kind.
  call.resume(round(), answers('question-1'), () => { exchange.attach(); exchange.capabilities = { elicitation: {} } })
  await first
  await assert.rejects(call.ask(question('{"messages":[]}', 'sampling/createMessage')), /sampling/)
  const third = call.ask(question())
  mock.timers.tick(downstreamLimits.parked.gather)
  await refused
  assert.deepEqual(inputRequests(exchange.answers[1]), ['question-3'])
  call.resume(round(), answers('question-3'), exchange.attach)
  await third
  exchange.finish('{}')
})

test('each round is good once; the same answers again recover what was lost', async (t) => {
  mockTimers(t, 'setTimeout', 'Date')
  const { table, exchange, call, round } = park()
  const asked = call.ask(question())
  mock.timers.tick(downstreamLimits.parked.gather)
  const used = /was already answered/
  assert.throws(() => { call.resume(2, '{}', exchange.attach) }, used)
  call.resume(round(), answers('question-1'), exchange.attach)
  await asked
  assert.throws(() => { call.resume(1, answers('question-1', 'more'), exchange.attach) }, used)
  // The same again joins the one that runs, ...
  call.resume(1, answers('question-1'), exchange.attach)
  const next = call.ask(question())
  mock.timers.tick(downstreamLimits.parked.gather)
  // ... and gets the next round, if that was lost.
  call.resume(1, answers('question-1'), exchange.attach)
  assert.equal(exchange.answers.at(-1), exchange.answers.at(-2))
  call.resume(2, answers('question-2'), exchange.attach)
  await next
  assert.throws(() => { call.resume(1, answers('question-1'), exchange.attach) }, used)
  exchange.finish('{"done":1}')
  for (let again = 0; again < 2; again++) {
    const count = exchange.answers.length
    call.resume(2, answers('question-2'), exchange.attach)
    assert.equal(exchange.answers.length, count + 1)
    assert.equal(exchange.answers.at(-1), '{"done":1}')
  }
  assert.equal(table.find(call.id), call)
  mock.timers.tick(downstreamLimits.parked.again + 1)
  assert.throws(() => { call.resume(2, answers('question-2'), exchange.attach) }, used)
  assert.equal(table.find(call.id), undefined)
  assert.equal(table.size, 0)
})

test('an answer that comes while nobody waits is kept for the next request', async (t) => {
  mockTimers(t, 'setTimeout', 'Date')
  const { table, exchange, call, round } = park()
  const asked = call.ask(question())
  mock.timers.tick(downstreamLimits.parked.gather)
  exchange.finish('{"early":1}')
  await assert.rejects(asked, /request has ended/)
  call.resume(round(), answers('question-1'), exchange.attach)
  assert.equal(exchange.answers.at(-1), '{"early":1}')
  mock.timers.tick(downstreamLimits.parked.again + 1)
  assert.equal(table.find(call.id), undefined)
})

test('a client that never answers: its call is cancelled, and nothing of it stays', async (t) => {
  mockTimers(t, 'setTimeout', 'Date')
  const { table, exchange, call } = park()
  const asked = call.ask(question())
  mock.timers.tick(downstreamLimits.parked.gather)
  assert.equal(table.count, 1)
  mock.timers.tick(downstreamLimits.parked.time)
  await assert.rejects(asked)
  assert.match(exchange.cancelled ?? '', /did not answer in time/)
  assert.equal(table.count + table.size, 0)
})

test('a question that the server withdraws is not asked, and one round later not missed', async (t) => {
  mockTimers(t, 'setTimeout', 'Date')
  const { exchange, call, round } = park()
  const controller = new AbortController()
  const asked = call.ask(question('{}', 'roots/list', controller.signal))
  mock.timers.tick(downstreamLimits.parked.gather)
  assert.ok(exchange.answers[0]?.includes('"question-1":{"method":"roots/list"}'))
  controller.abort('no more')
  await assert.rejects(asked, /no more/)
  call.resume(round(), '{}', exchange.attach)
  mock.timers.tick(downstreamLimits.parked.gather)
  assert.equal(exchange.isAwaited, true)
})

test('a question that only timing relates to a call may be answered after that call', async (t) => {
  mockTimers(t, 'setTimeout')
  const related = (isRelated = false): Question => ({ ...question(), outlivesRequest: !isRelated })
  const asked = ({ call }: Parked, ...questions: Question[]): Array<Promise<unknown>> => {
    const answered = questions.map(async (each) =>
      await call.ask(each).then(({ resultText }) => resultText, ({ message }: Error) => message))
    mock.timers.tick(downstreamLimits.parked.gather)
    return answered
  }

  await t.test('with the request that fetches the outcome', async () => {
    const parked = park()
    const { table, exchange, call, round } = parked
    const [one, two, own] = asked(parked, related(), related(), related(true))
    const late = call.ask(related()).catch(({ message }: Error) => message)
    exchange.finish('{"done":1}')
    assert.equal(await own, 'The request has ended')
    assert.equal(await late, 'The request has ended', 'the client has not got it yet')
    call.resume(round(), answers('question-1'), exchange.attach)
    assert.match(String(await one), /"key":"question-1"/)
    assert.equal(await two, 'The request has ended', 'it was left out')
    assert.equal(exchange.answers.at(-1), '{"done":1}')
    mock.timers.tick(downstreamLimits.parked.again)
    assert.deepEqual([table.count, table.size], [0, 0])
  })
  await t.test('or is over with its time, or its access', async () => {
    for (const end of [
      () => { mock.timers.tick(downstreamLimits.parked.time) },
      ({ table }: Parked) => { table.revoke(() => false) }
    ]) {
      const parked = park()
      const [one] = asked(parked, related())
      parked.exchange.finish('{}')
      end(parked)
      assert.match(String(await one), /not answer in time|has ended/)
      assert.deepEqual([parked.table.count, parked.table.size], [0, 0])
    }
  })
})

test('what a client did not declare is not asked', async () => {
  const table: ReadonlyArray<readonly [object, Question, RegExp | undefined]> = [
    [{ sampling: {} }, question(), /does not support elicitation/],
    [{ elicitation: {} }, question('{"mode":"url","url":"http://x"}'), /mode url/],
    [{ elicitation: { form: {}, url: {} } }, question('{"mode":"url","url":"http://x"}'), undefined],
    [{}, question('{}', 'vendor/ask'), /does not support vendor/]
  ]
  for (const [capabilities, asked, error] of table) {
    const { call, exchange } = park(undefined, new FakeExchange('ann', { ...capabilities }))
    const asking: Promise<Response> = call.ask(asked)
    exchange.cancel('end')
    await assert.rejects(asking, error ?? /request has ended/)
  }
})

test('a server of this era that asks what a client did not declare: -32021 says what the client would have to', async () => {
  const table: ReadonlyArray<readonly [object, object, object | undefined]> = [
    [{}, { method: 'elicitation/create', params: { message: 'a' } }, { elicitation: { form: {} } }],
    [{ elicitation: {} }, { method: 'elicitation/create', params: { mode: 'url', url: 'http://x' } }, { elicitation: { url: {} } }],
    [{ sampling: {} }, { method: 'sampling/createMessage', params: { tools: [] } }, { sampling: { tools: {} } }],
    [{ sampling: {} }, { method: 'roots/list' }, { roots: {} }],
    [{ sampling: {} }, { method: 'vendor/ask' }, undefined]
  ]
  for (const [capabilities, asked, requiredCapabilities] of table) {
    const check = (): void => { checkInputRequests({ ...capabilities }, JSON.stringify({ inputRequests: { one: asked } })) }
    assert.throws(check, (error: RpcError) => {
      const { code: number, data } = JSON.parse(error.toText()) as { code: number, data?: object }
      assert.deepEqual([number, data], requiredCapabilities ? [-32021, { requiredCapabilities }] : [rpcCode.internal, undefined])
      return true
    })
  }
  checkInputRequests({ roots: {} }, '{"inputRequests":{"one":{"method":"roots/list"}}}')
})

test('a server of this era that needs input and does not say which, not even by a state: -32603', async () => {
  for (const asked of ['{}', '{"inputRequests":{}}', '{"inputRequests":{},"requestState":null}', '{"requestState":1}']) {
    assert.throws(() => { checkInputRequests({ roots: {} }, asked) }, { code: rpcCode.internal, message: /has no input requests/ }, asked)
  }
  // By a state alone, a server defers its work.
  for (const asked of ['{"requestState":""}', '{"inputRequests":{},"requestState":"s"}']) checkInputRequests({ roots: {} }, asked)
})

test('docs/errors.md says of every error of this era what to do', async () => {
  const text = readFileSync(path('docs/errors.md'), 'utf8')
  const rows = text.split('\n').filter((line) => line.startsWith('| ')).map((line) => line.split('|').map((cell) => cell.trim()).slice(1, -1))
  for (const number of Object.values(modernErrorCode)) assert.ok(rows.some(([first]) => first === String(number)), String(number))

  const states = new RequestStateSealer(usedStates())
  const state: RequestState = { kind: 'call', id: 'x', round: 1 }
  const sealed = states.seal(state, binding, Date.now() + minute)
  const { exchange, call } = park()
  const refusals: Array<() => unknown> = [
    () => states.open(states.seal(state, binding, Date.now() - 1), binding),
    () => states.open(sealed, { ...binding, view: view('bob') }),
    () => new RequestStateSealer(usedStates()).open(sealed, binding),
    () => { call.resume(7, '{}', exchange.attach) },
    () => inputResponsesOf('{"inputResponses":1}'),
    () => { requireElicitationsAccepted('{"a":{"action":"decline"}}') }
  ]
  for (const refusal of refusals) {
    assert.throws(refusal, ({ code: number, message }: RpcError) => {
      assert.ok(rows.some(([first, second]) => first === String(number) && second === message), message)
      return true
    })
  }
})

test('parked calls are bounded in number, by one owner, and in size', async (t) => {
  const table = new ParkedCalls<FakeExchange>(new RequestStateSealer(usedStates()))
  const calls = Array.from({ length: downstreamLimits.parked.calls * 3 / 4 }, () => park(table))
  assert.throws(() => { park(table) }, { reason: 'limit' })
  // Others still have room.
  calls.push(park(table, new FakeExchange('bob')))
  const ask = async (of: ReturnType<typeof park> | undefined, size: number): Promise<unknown> =>
    await of?.call.ask(question(JSON.stringify({ message: 'x'.repeat(size) })))
  const [one, two, bobs] = [calls[0], calls[1], calls.at(-1)]
  ask(one, downstreamLimits.parked.size / 2).catch(() => {})
  await assert.rejects(ask(two, downstreamLimits.parked.size / 2), /Too many requests to clients are unanswered/)
  ask(two, downstreamLimits.parked.size / 4 - 1_000).catch(() => {})
  ask(bobs, downstreamLimits.parked.size / 10 - 1_000).catch(() => {})
  assert.ok(table.size > 0.8 * downstreamLimits.parked.size, 'others still have room in size, too')
  for (const { exchange } of calls) exchange.cancel('end')
  assert.equal(table.count + table.size, 0)
  t.end()
})

test('the request of a parked call counts as long as it is kept, and so do answers, as the memory that they take', (t) => {
  const table = new ParkedCalls<FakeExchange>(new RequestStateSealer(usedStates()))
  const large = new FakeExchange()
  large.memory = downstreamLimits.parked.size
  const { call: refused } = park(table, large)
  t.rejects(refused.ask(question('{}')), /Too many requests to clients are unanswered/)
  large.cancel('end')
  assert.equal(table.size, 0)
  const exchange = new FakeExchange()
  exchange.memory = 10_000
  const { call } = park(table, exchange)
  call.ask(question('{"x":"ж"}')).catch(() => {})
  assert.equal(table.size, 10_000 + 18 + 112 + 192)
  call.ask(question('{}')).catch(() => {})
  assert.equal(table.size, 10_000 + 18 + 112 + 192 + 2 + 112, 'once')
  exchange.cancel('end')
  assert.equal(table.count + table.size, 0)
  t.end()
})

test('a server\'s own state goes out sealed, with its server, and comes back as it was', async () => {
  const states = new RequestStateSealer(used(), sealer(await ring()))
  const config: Record<string, unknown> = { url: 'https://one.example/mcp', createdAt: '2026-01-01' }
  const gateway = { providerOf: async () => 's', sections: () => [{ server: { name: 's', config } }] } as unknown as Gateway
  const { toOutcome: outcome, withState, withoutState: bare } = createResultTranslator(gateway, states)
  const { method } = binding
  const client = { capabilities: { elicitation: {} } }
  const exchange = { ...binding, client, isInputRequired: true, serverInfo: '{"name":"s"}' } as unknown as ModernExchange
  const requests = '{"a":{"method":"elicitation/create","params":{"n":1.0}}}'
  const asked = await outcome(exchange, `{"resultType":"input_required","inputRequests":${requests},"requestState":"its own"}`)
  const text = String(asked.text)
  assert.ok(text.includes(`"inputRequests":${requests}`) && !text.includes('its own'))
  const { requestState } = JSON.parse(text) as { requestState: string }
  const server = await targetServerFingerprint(gateway, exchange)
  assert.deepEqual(states.open(requestState, binding), { kind: 'server', server, state: 'its own' })
  // Another server that has its name by now is not the one that gave it.
  for (const [member, other] of [['url', 'https://two.example/mcp'], ['createdAt', '2026-01-02'], ['owner', 'eve']] as const) {
    const { [member]: former } = config
    config[member] = other
    assert.notEqual(await targetServerFingerprint(gateway, exchange), server, member)
    config[member] = former
  }
  assert.equal(await targetServerFingerprint(gateway, exchange), server)
  // A state is only there where the server gave one.
  assert.ok(!String((await outcome(exchange, '{"resultType":"input_required","inputRequests":{}}')).text).includes('requestState'))
  // Nor is a client asked what it has not declared, or in the middle of something else.
  const refusals: ReadonlyArray<readonly [string, string, RegExp]> = [
    [method, ',"inputRequests":{"a":{"method":"sampling/createMessage","params":{}}}', /does not support sampling/],
    [method, ',"inputRequests":{"a":7}', /input requests are invalid/],
    [method, ',"inputRequests":[]', /input requests are invalid/],
    ['completion/complete', `,"inputRequests":${requests}`, /during completion\/complete/]
  ]
  for (const [during, more, error] of refusals) {
    assert.throws(() => resultRequiresInput(client.capabilities, during, `{"resultType":"input_required"${more}}`), error)
  }
  assert.ok(resultRequiresInput(client.capabilities, method, `{"resultType":"input_required","inputRequests":${requests}}`))
  assert.ok(!resultRequiresInput(client.capabilities, method, '{"resultType":"complete","content":[],"of":"input_required"}'))
  const paramsText = '{"name":"pay","requestState":"x","inputResponses":{"a":{"action":"accept"}}}'
  const request = { paramsText } as ModernRequest
  assert.equal(withState(request, 'its own').paramsText, paramsText.replace('"x"', '"its own"'))
  assert.equal(bare(request).paramsText, '{"name":"pay"}')
  requireElicitationsAccepted('{"a":{"action":"accept"}}')
  for (const declined of ['{}', '{"a":{"action":"decline"}}', '{"a":{"action":"accept"},"b":1}']) {
    assert.throws(() => { requireElicitationsAccepted(declined) }, /declined/)
  }
})
