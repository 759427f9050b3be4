// How one request is answered: the forms that a client takes, large answers, batches; and which Host and Origin are let in.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import { address, beginSession, messagesIn, response, startSessions, view, type Held } from '../helpers/held.ts'
import { until } from '../helpers/hub.ts'
import { seed } from '../helpers/json-texts.ts'
import { connect, type Socket } from 'node:net'
import fc from 'fast-check'
import Fastify from 'fastify'
import { isServedHost, checkOrigin, readOriginRules } from '../../plugins/identity/auth/origin.ts'
import { isLoopback } from '../../plugins/base/config/listening.ts'
import { parseSize } from '../../plugins/base/body/body.ts'
import { parseAccept, type AcceptedTypes } from '../../plugins/downstream/accept.ts'
import { HttpReply, writeJson } from '../../plugins/downstream/http-reply.ts'
import { LegacyMessageHandler } from '../../plugins/downstream/legacy/message-handler.ts'
import { Annexes } from '../../plugins/base/annexes/index.ts'
import config, { type SharedEnv } from '../../plugins/base/config/config.ts'
import { memoryBudget } from '../../plugins/base/limits/memory.ts'
import largeReplies from '../../plugins/base/limits/large-replies.ts'
import type { Gateway } from '../../plugins/gateway/gateway.ts'
import type { Snapshot } from '../../db/store.ts'
import type { LegacyVersion } from '../../protocol/legacy/versions.ts'
import { baseLimits } from '../../plugins/base/limits/limits.ts'
import { downstreamLimits } from '../../plugins/downstream/limits.ts'

test('acceptedBy: which forms of answer a client takes', async (t) => {
  const [both, eventsFirst, json, events, none]: AcceptedTypes[] = [
    { json: true, events: true, eventsFirst: false },
    { json: true, events: true, eventsFirst: true },
    { json: true, events: false, eventsFirst: false },
    { json: false, events: true, eventsFirst: true },
    { json: false, events: false, eventsFirst: false }
  ]
  const table: Array<[string | undefined, AcceptedTypes | undefined]> = [
    [undefined, both],
    ['', both],
    ['*/*', both],
    ['application/json, text/event-stream', both],
    ['Application/JSON ; charset=utf-8 , TEXT/Event-Stream', both],
    ['text/event-stream, application/json', eventsFirst],
    ['text/*, application/*', eventsFirst],
    ['application/*', json],
    ['application/json', json],
    ['text/event-stream', events],
    ['text/*', events],
    ['text/html', none],
    ['application/jsonx', none],
    [',', none],
    ['application/json;q=0', none],
    ['application/json; q=0.000, text/event-stream', events],
    ['*/*;q=0', none],
    ['application/json;q=0.001', json],
    ['application/json;q=1;x=0', json]
  ]
  for (const [header, expected] of table) assert.deepEqual(parseAccept(header), expected, header)

  await t.test('what is refused by name is not taken by a wildcard (RFC 9110, 12.5.1)', async () => {
    assert.deepEqual([parseAccept('application/json;q=0, */*').json, parseAccept('*/*, text/event-stream;q=0').events], [false, false])
    assert.deepEqual(parseAccept('*/*;q=0, application/json'), json, 'what is named is taken, though a wildcard refuses')
    assert.deepEqual(parseAccept('text/*;q=0, */*, application/json'), json, 'a narrower wildcard before a wider one')
    assert.deepEqual(parseAccept('*/*, text/event-stream, application/json'), eventsFirst, 'the order is that of the ranges that decide')
  })
})

test('bytesOf: sizes of the settings', async () => {
  const table: Array<[string, number]> = [
    ['2048', 2048], ['0', 0], ['1b', 1], ['1kb', 1024], ['512 kb', 524_288], ['1mb', 1_048_576], ['10  mb', 10_485_760],
    ['1gb', 1_073_741_824]
  ]
  for (const [size, bytes] of [...table, ...table]) assert.equal(parseSize(size), bytes, size)
})

test('a long batch is handled in steps: others have the event loop between them', async (t) => {
  const { sessions } = startSessions(t)
  mock.timers.reset()
  const session = beginSession(sessions, view('ann'), '2025-03-26', {})
  let turns = 0
  let isOver = false
  const count = (): void => { turns++; if (!isOver) setImmediate(count) }
  setImmediate(count)
  const handledIn: number[] = []
  /** Handles a message for longer than a step may take. */
  const notify = (): void => {
    handledIn.push(turns)
    for (const end = performance.now() + 1; performance.now() < end;);
  }
  const snapshot = { system: {} } as unknown as Snapshot
  const requests = new LegacyMessageHandler({ notify } as unknown as Gateway, () => snapshot, assert.fail)
  const message = { kind: 'notification', method: 'notifications/vendor', params: {}, paramsText: '{}' } as const
  requests.receive(session, Array.from({ length: 10 }, () => message), { view: session.view, headers: {}, address }, assert.fail)
  assert.equal(handledIn.length, 1, 'the first one is handled at once')
  await until(() => handledIn.length === 10)
  isOver = true
  assert.equal(new Set(handledIn).size, 10, `in turns ${handledIn.join()}`)
})

test('what clients do not read is bounded, whoever answers', async (t) => {
  t.after(() => { memoryBudget.configure(baseLimits.memory) })
  const app = Fastify({ forceCloseConnections: true })
  // What other tests of this process left unread counts, too.
  const budget = memoryBudget.held + 12 * 1024 * 1024 * baseLimits.unreadCost
  await app.register(config, { version: '0', env: { BASE_PATH: '', MEMORY_BUDGET: budget } as SharedEnv })
  app.decorate('annexes', new Annexes(() => app))
  await app.register(largeReplies)
  const large = 'x'.repeat(10 * 1024 * 1024)
  let asked = 0
  app.addHook('onRequest', async () => { asked++ })
  app.get('/rest', async () => large)
  app.get('/mcp', (_request, reply) => { writeJson(reply.raw, [large]); reply.hijack() })
  t.after(async () => { await app.close() })
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const connections = promisify(app.server.getConnections.bind(app.server))
  for (const path of ['/rest', '/mcp']) {
    // What fetch keeps open from the round before.
    const idle = await connections()
    const sockets = Array.from({ length: 4 }, () =>
      connect(Number(port), '127.0.0.1', function (this: Socket) {
        this.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`)
      })
    )
    for (const socket of sockets) { socket.pause(); socket.on('error', () => {}) }
    await until(() => asked === sockets.length, 'they did not all ask')
    await until(async () => await connections() < sockets.length, `${path}: all of them stay open`)
    assert.ok(await connections() >= 1, `${path}: none is open`)
    for (const socket of sockets) socket.destroy()
    // What they have not read counts until the server knows that they are gone.
    await until(async () => await connections() <= idle)
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    assert.equal((await answer.text()).length, large.length, 'who reads, gets it')
    asked = 0
  }
})

test('a large answer is written piece by piece, byte for byte', async (t) => {
  const app = Fastify({ forceCloseConnections: true })
  await app.register(config, { version: '0', env: { BASE_PATH: '', MEMORY_BUDGET: baseLimits.memory } as SharedEnv })
  let parts: Array<string | Buffer> = []
  let unwritten = 0
  app.get('/', (_request, reply) => {
    writeJson(reply.raw, parts)
    unwritten = reply.raw.writableLength
    reply.hijack()
  })
  t.after(async () => { await app.close() })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const text = fc.tuple(fc.constantFrom('a', 'é', '語', '😀', '\ud83d', 'a😀'), fc.integer({ min: 0, max: 90_000 }),
    fc.string({ unit: 'binary', maxLength: 9 })).map(([unit, count, end]) => unit.repeat(count) + end)
  const bytes = fc.tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 0, max: 90_000 }))
    .map(([value, size]) => Buffer.alloc(size, value))
  await fc.assert(fc.asyncProperty(fc.array(fc.oneof(text, bytes), { minLength: 1, maxLength: 6 }), async (made) => {
    parts = ['x'.repeat(70_000), ...made]
    const expected = Buffer.concat(parts.map((part) => Buffer.from(part)))
    const got = Buffer.from(await (await fetch(url)).arrayBuffer())
    assert.ok(got.equals(expected), `${got.length} of ${expected.length} bytes`)
  }), { seed, numRuns: 15 })

  // Who does not read has the text of his answer kept, and no copy of it.
  parts = ['y'.repeat(20 * 1024 * 1024)]
  const held = memoryBudget.held
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () => { socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n') })
  socket.pause()
  socket.on('error', () => {})
  await until(() => memoryBudget.held > held + 10 * 1024 * 1024)
  assert.ok(unwritten < 1024 * 1024, `${unwritten} bytes are encoded`)
  socket.destroy()
  await until(() => memoryBudget.held <= held)
})

test('the answer to one POST', async (t) => {
  const both: AcceptedTypes = { json: true, events: true, eventsFirst: false }
  const parts = (id: number): Array<string | Buffer> => [`{"jsonrpc":"2.0","id":${id},"result":`, Buffer.from('{"text":"é, 1"}'), '}']
  const whole = (id: number): string => `{"jsonrpc":"2.0","id":${id},"result":{"text":"é, 1"}}`
  const progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'
  interface Made extends Held { reply: HttpReply, tick: (ms: number) => void, gone: () => number }
  const begin = (t: Test, { expected = 1, batch = false, accepted = both, version = '2025-03-26' as LegacyVersion } = {}): Made => {
    const { sessions, tick } = startSessions(t)
    const held = response()
    let gone = 0
    const { canPoll: polls, streams } = beginSession(sessions, view('ann'), version, {})
    const options = { accepted, expected, isBatch: batch, canPoll: polls, newStream: () => streams.open() }
    const reply = new HttpReply(held.raw, { ...options, onGone: () => { gone++ } })
    return { ...held, reply, tick, gone: () => gone }
  }

  await t.test('JSON, when the final answers are all it says', async (t) => {
    const one = begin(t)
    one.reply.finish(parts(1))
    assert.deepEqual([one.text(), one.head()?.[1]['content-length'], one.open()], [whole(1), Buffer.byteLength(whole(1)), false])
  })
  await t.test('of a batch: a list, in the order in which they came', async (t) => {
    const batch = begin(t, { expected: 3, batch: true })
    batch.reply.finish(parts(2))
    batch.reply.finish(undefined)
    assert.equal(batch.open(), true)
    batch.reply.finish(['{"jsonrpc":"2.0","id":1,"result":{}}'])
    assert.deepEqual([batch.text(), batch.head()?.[1]['content-length']],
      [`[${whole(2)},{"jsonrpc":"2.0","id":1,"result":{}}]`, Buffer.byteLength(batch.text())])
  })
  await t.test('of a batch of one: still a list', async (t) => {
    const batch = begin(t, { batch: true })
    batch.reply.finish(parts(1))
    assert.equal(batch.text(), `[${whole(1)}]`)
  })
  for (const [says, turn] of [
    ['says more', ({ reply }: Made) => { reply.send(progress) }],
    ['is silent for long', ({ tick }: Made) => { tick(5_000) }]
  ] as const) {
    await t.test(`a batch that ${says} becomes a stream: what is final already comes as whole messages`, async (t) => {
      const batch = begin(t, { expected: 3, batch: true })
      batch.reply.finish(parts(1))
      batch.reply.finish(parts(2))
      turn(batch)
      batch.reply.finish(parts(3))
      assert.equal(batch.head()?.[1]['content-type'], 'text/event-stream')
      assert.deepEqual(messagesIn(batch.text()).filter((text) => text !== progress), [whole(1), whole(2), whole(3)])
      assert.equal(batch.open(), false)
    })
  }

  await t.test('a client that goes is noticed: at once, or after a grace where it can come back', async (t) => {
    const plain = begin(t)
    plain.break()
    assert.equal(plain.gone(), 1)
    mock.timers.reset()
    const resumable = begin(t, { version: '2025-11-25' })
    resumable.reply.send(progress)
    resumable.break()
    resumable.tick(downstreamLimits.resumeGrace - 1)
    assert.equal(resumable.gone(), 0)
    resumable.tick(1)
    assert.equal(resumable.gone(), 1)
  })
})

test('servesHost and checkOrigin: what is let in from a browser', async (t) => {
  const allowed = (listen: string, hosts: string, origins: string, host?: string, origin?: string, baseUrl?: string): string => {
    try {
      const rules = readOriginRules(listen, hosts, origins)
      if (!isServedHost(rules, host, baseUrl)) return 'TH_FOREIGN_HOST'
      checkOrigin(rules, host, origin, baseUrl)
      return 'in'
    } catch (error) { return (error as { code: string }).code }
  }
  const [host, foreign] = ['TH_FOREIGN_HOST', 'TH_FOREIGN_ORIGIN']
  const local = '127.0.0.1'
  const table: Array<[string, Parameters<typeof allowed>, string]> = [
    ['loopback, no Origin', [local, '', '', '127.0.0.1:3000', undefined], 'in'],
    ['loopback by name', [local, '', '', 'localhost:3000', undefined], 'in'],
    ['loopback, IPv6', [local, '', '', '[::1]:3000', undefined], 'in'],
    ['loopback, listening on IPv6', ['::1', '', '', '[::1]:3000', 'http://[::1]:3000'], 'in'],
    ['loopback, another Host (DNS rebinding)', [local, '', '', 'evil.example:3000', undefined], host],
    ['loopback, another Host with its own Origin (DNS rebinding)', [local, '', '', 'evil.example:3000', 'http://evil.example:3000'], host],
    ['loopback, a Host that only begins alike', [local, '', '', 'localhost.evil.example', undefined], host],
    ['loopback, a Host that only ends alike', [local, '', '', 'evil.example#localhost', undefined], host],
    ['loopback, no Host', [local, '', '', undefined, undefined], host],
    ['loopback, a Host that ALLOWED_HOSTS names', [local, 'hub.example', '', 'hub.example:3000', undefined], 'in'],
    ['loopback beside ALLOWED_HOSTS', [local, 'hub.example', '', 'localhost:3000', undefined], 'in'],
    ['every address: any Host', ['0.0.0.0', '', '', 'anything.example', undefined], 'in'],
    ['every address, ALLOWED_HOSTS: those', ['0.0.0.0', 'hub.example, Other.Example:8080', '', 'other.example', undefined], 'in'],
    ['every address, ALLOWED_HOSTS: no others', ['0.0.0.0', 'hub.example', '', 'localhost', undefined], host],
    ['the Host of install.baseUrl', [local, '', '', 'hub.example', undefined, 'https://hub.example/base'], 'in'],
    ['same origin', [local, '', '', 'localhost:3000', 'http://localhost:3000'], 'in'],
    ['same origin, in another case', [local, '', '', 'LOCALHOST:3000', 'http://localhost:3000'], 'in'],
    ['same origin, with the default port', [local, '', '', 'localhost:80', 'http://localhost'], 'in'],
    ['another port', [local, '', '', 'localhost:3000', 'http://localhost:4000'], foreign],
    ['another scheme', [local, '', '', 'localhost:3000', 'https://localhost:3000'], foreign],
    ['another origin', [local, '', '', 'localhost:3000', 'http://evil.example'], foreign],
    ['every address: another origin', ['0.0.0.0', '', '', 'hub.example', 'http://evil.example'], foreign],
    ['an origin that only begins alike', [local, '', '', 'localhost', 'http://localhost.evil.example'], foreign],
    ['an empty origin', [local, '', '', 'localhost:3000', ''], foreign],
    ['an origin that ALLOWED_ORIGINS names', [local, '', 'https://app.example http://b.example', 'localhost', 'https://app.example'], 'in'],
    ['ALLOWED_ORIGINS, the second', [local, '', 'https://app.example,http://b.example', 'localhost', 'http://b.example'], 'in'],
    ['ALLOWED_ORIGINS is no prefix', [local, '', 'https://app.example', 'localhost:3000', 'https://app.example.evil.example'], foreign],
    ['ALLOWED_ORIGINS does not open the Host', [local, '', 'http://evil.example', 'evil.example', 'http://evil.example'], host],
    ['the origin of install.baseUrl', [local, '', '', 'hub.example', 'https://hub.example', 'https://hub.example/base'], 'in'],
    ['install.baseUrl that is no URL', [local, '', '', 'localhost:3000', 'https://hub.example', 'hub.example'], foreign]
  ]
  for (const [says, given, expected] of table) assert.equal(allowed(...given), expected, says)

  await t.test('isLoopback', async () => {
    for (const address of ['localhost', 'LOCALHOST', '127.0.0.1', '127.1.2.3', '::1', '[::1]', '0:0:0:0:0:0:0:1', '[::ffff:7f00:1]']) assert.equal(isLoopback(address), true, address)
    for (const address of ['0.0.0.0', '::', '10.0.0.1', '::ffff:10.0.0.1', '127.evil.example', '127.0.0.1.example', 'localhost.example', '']) {
      assert.equal(isLoopback(address), false, address)
    }
  })
})
