import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { createConnection, type AddressInfo } from 'node:net'
import { getPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import {
  at,
  connected,
  failed,
  failure,
  initialize,
  KEY,
  open,
  OTHER,
  otherKey,
  send,
  Session,
  settings,
  sleep,
  text,
  within,
  type Json,
  type Message
} from '../helpers/client.ts'
import { limits } from '../../plugins/limits/index.ts'
import { startUpstream, tool, type Call } from '../fakes/fault-http.ts'
import { bearerKey, path, spawnHub, startHub, until, type Cleanup, type Hub, type HubOptions, type ProcessHub } from '../helpers/hub.ts'

// What a review once found wrong, each defect with the number that it had there. The waits are long and the work is little: the
// gateways run side by side, and so do the tests on one gateway.

const many = 24

interface Entry { pid: number, event: string }

/** A stdio fake with a log of what it saw; the log's entries so far, and its processes that are still there. */
function stdioFake (
  t: Cleanup,
  env: Record<string, string> = {},
  more: Json = {}
): { config: Json; log: () => Entry[]; left: () => number[] } {
  const folder = mkdtempSync(join(tmpdir(), 'tool-hub-regression-'))
  const file = join(folder, 'log')
  const log = (): Entry[] =>
    existsSync(file)
      ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Entry)
      : []
  const left = (): number[] => [...new Set(log().map(({ pid }) => pid))].filter(alive)
  t.after(() => {
    for (const pid of left()) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {}
    }
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    config: {
      type: 'stdio',
      command: process.execPath,
      args: [path('test/fakes/fault-stdio.mjs')],
      env: { FAULT_LOG: file, ...env },
      ...more
    },
    log,
    left
  }
}

/** True for a process that runs this Node; a zombie counts as gone. */
function alive (pid: number): boolean {
  try {
    return (
      !/^[ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '')) &&
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(process.execPath)
    )
  } catch { return false }
}

const starts = (log: Entry[]): number => log.filter(({ event }) => event === 'start').length

const rss = (hub: ProcessHub): number => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${hub.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

const descriptors = (hub: ProcessHub): number => readdirSync(`/proc/${hub.pid}/fd`).length

const call = (name: string, args: Json = {}, id: string | number = 'call'): Json => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args }
})

const event = (message: Json): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`

const log = (data: string): [string, Json] => ['notifications/message', { level: 'info', data }]

const question: [string, Json] = ['elicitation/create', { message: 'may I?', requestedSchema: { type: 'object', properties: {} } }]

const http = (url: string, more: Json = {}): Json => ({ type: 'streamable-http', url, ...more })

/** Answers a call at once, and leaves its stream open. */
function answerAndStay ({ res, id }: Call): 'taken' {
  if (!res.headersSent) res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.write(event({ jsonrpc: '2.0', id, result: { content: [] } }))
  return 'taken'
}

/** A legacy SSE upstream; `endpoint: false`: takes the GET and never says where to post. Its URL. */
async function startSse (
  t: Cleanup,
  { endpoint = true, on = () => undefined }: { endpoint?: boolean; on?: (message: Message, answer: (result: string) => void) => void } = {}
): Promise<string> {
  const streams = new Map<string, ServerResponse>()
  const server = createServer((req, res) => {
    if (req.method === 'GET') {
      const id = String(streams.size + 1)
      streams.set(id, res.writeHead(200, { 'content-type': 'text/event-stream' }))
      res.write(endpoint ? `event: endpoint\ndata: /messages?session=${id}\n\n` : ': hello\n\n')
      return
    }
    let body = ''
    req
      .on('data', (chunk) => {
        body += String(chunk)
      })
      .on('end', () => {
        res.writeHead(202).end()
        const message = JSON.parse(body) as Message
        if (message.id === undefined) return
        const stream = streams.get(new URL(req.url ?? '', 'http://localhost').searchParams.get('session') ?? '')
        const answer = (result: string): void => {
          stream?.write(`event: message\ndata: {"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":${result}}\n\n`)
        }
        if (message.method === 'initialize') {
          answer('{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"sse","version":"1"}}')
        } else if (message.method === 'tools/list') answer(JSON.stringify({ tools: [tool('slow'), tool('deep'), tool('echo')] }))
        else on(message, answer)
      })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`
}

/**
 * A gateway as a process, for what is timed while much else goes on; they start one after the other, for that takes all of a small machine.
 */
async function processOf (t: Cleanup, options: HubOptions): Promise<ProcessHub> {
  const before = starting
  const mine = deferred()
  starting = mine.promise
  await before
  try { return await spawnHub(t, options) } finally { mine.resolve() }
}

let starting = Promise.resolve()

function deferred<T = void> (): { promise: Promise<T>, resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((_resolve) => { resolve = _resolve })
  return { promise, resolve }
}

const PASSWORD = 'Open-Sesame-1'

/** How the management API shows a server. */
async function shown (hub: Hub): Promise<(name: string) => Promise<unknown>> {
  let token = ''
  await until(async () => {
    const login = await fetch(`${hub.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: 'admin', password: PASSWORD })
    })
    token = String(at(await login.json(), 'token'))
    return login.ok
  }, 'the admin cannot log in')
  return async (name) => at(await (await fetch(`${hub.url}/api/servers/${name}`, { headers: { 'x-auth-token': token } })).json(), 'data')
}

/** Sends what is no whole request, and keeps the connection. */
async function halfSend (t: Cleanup, hub: Hub, head: string): Promise<void> {
  const socket = createConnection(hub.port, '127.0.0.1')
  socket.on('error', () => {})
  t.after(() => { socket.destroy() })
  await once(socket, 'connect')
  socket.write(head)
}

const methods = (messages: Message[]): string[] => messages.map(({ method }) => method ?? 'response')

void test('regressions', async (t) => {
  t.jobs = many
  void t.test('a gateway of which much is asked', { buffered: true }, async (t) => {
    t.jobs = many
    // 2
    const late = { shared: deferred<Message>(), auto: deferred<Message>() }
    const release = { shared: deferred(), auto: deferred() }
    const lateOn = (kind: 'shared' | 'auto') => async (one: Call) => {
      if (one.method !== 'tools/call') return undefined
      if (one.params.name === 'a') {
        const taken = answerAndStay(one)
        // At once: the gateway keeps the stream for a second after the answer.
        one.notify(...log('a secret of A'))
        void one.ask(...question).then(late[kind].resolve)
        return taken
      }
      await release[kind].promise
      one.notify(...log('for B'))
      return undefined
    }
    const lateShared = await startUpstream(t, { tools: [tool('a'), tool('b')], on: lateOn('shared') })
    const lateAuto = await startUpstream(t, { tools: [tool('a'), tool('b')], on: lateOn('auto') })
    // 3
    const remembered = new Map<string, string>()
    const rebuilt = await startUpstream(t, {
      tools: [tool('remember'), tool('recall')],
      on: ({ method, params, session }) => {
        if (method !== 'tools/call') return undefined
        if (params.name === 'remember') remembered.set(session.id, String(at(params, 'arguments', 'value')))
        return { content: [{ type: 'text', text: remembered.get(session.id) ?? 'nothing' }] }
      }
    })
    // 4
    const noGet = await startUpstream(t, {
      raw: (req, res) => {
        if (req.method === 'GET') res.writeHead(404, { 'content-type': 'text/html' }).end('Cannot GET /mcp')
        return req.method === 'GET'
      }
    })
    // 5, 6
    const large = await startUpstream(t, {
      tools: [tool('big')],
      on: async (one) => {
        if (one.method !== 'tools/call') return undefined
        await sleep(100)
        one.notify(...log('soon'))
        await sleep(Number(at(one.params, 'arguments', 'wait') ?? 100))
        return { content: [{ type: 'text', text: 'x'.repeat(Number(at(one.params, 'arguments', 'size') ?? 1)) }] }
      }
    })
    // 9, 10, 26
    const mute = stdioFake(t, { FAULT_EXTRA: '1' }, { options: { timeout: 20_000 } })
    const mortal = stdioFake(t, { FAULT_MORTAL: '1' }, { isolation: 'session' })
    const crashing = stdioFake(t, { FAULT_EXTRA: '1' })
    const dead = stdioFake(t, { FAULT_DIE: '1' })
    let polls = 0
    const eager = await startUpstream(t, {
      raw: (req, res) => {
        if (req.method !== 'GET') return false
        polls++
        res.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 0\n\n')
        return true
      }
    })
    // 13
    let initializes = 0
    const hangs = await startUpstream(t, {
      tools: [tool('x')],
      on: ({ method }) => (method === 'initialize' && ++initializes > 1 ? 'never' : undefined)
    })
    const prompt = await startUpstream(t, { tools: [tool('y')] })
    // 14
    const privates = new Map<string, string>()
    const personal = await startUpstream(t, {
      on: ({ method, session }) => {
        if (method === 'initialize') privates.set(session.id, `private-${privates.size}`)
        return method === 'tools/list' ? { tools: [tool('common'), tool(privates.get(session.id) ?? 'none')] } : undefined
      }
    })
    // 15
    const news = await startUpstream(t)
    // 17, 18
    const bodies =
      (owner: string) =>
        ({ method, params }: Call) =>
          method === 'resources/read' ? { contents: [{ uri: params.uri, text: `${owner} ${String(params.uri)}` }] } : undefined
    const papers = await startUpstream(t, {
      tools: [],
      resources: ['secret', 'other', 'open'].map((name) => ({ uri: `file:///${name}`, name })),
      resourceTemplates: [{ uriTemplate: 'file:///{name}', name: 't' }],
      on: bodies('papers')
    })
    const greedy = await startUpstream(t, {
      tools: [],
      resources: [],
      resourceTemplates: [{ uriTemplate: '{x}', name: 't' }],
      on: bodies('greedy')
    })
    // 19
    const refusals: Message[] = []
    const forgetful = await startUpstream(t, {
      tools: [tool('ask')],
      on: async (one) => {
        if (one.method !== 'tools/call') return undefined
        void one.ask(...question).then((message) => { refusals.push(message) })
        await sleep(10)
        return { content: [] }
      }
    })
    // 22
    const sse = await startSse(t, {
      on: ({ params }, answer) => {
        if (params?.name === 'deep') answer(`{"content":[],"x":${'['.repeat(1_500)}${']'.repeat(1_500)}}`)
        else setTimeout(answer, params?.name === 'slow' ? 1_500 : 0, '{"content":[{"type":"text","text":"well"}]}')
      }
    })
    // 23
    let sick = false
    let bad = 0
    const frail = await startUpstream(t, {
      raw: (req, res) => {
        if (req.method !== 'GET' || !sick) return false
        sick = false
        bad++
        res.writeHead(502).end()
        return true
      }
    })
    // 25
    const moved = await startUpstream(t, {
      raw: (req, res) => {
        if (req.url !== '/old') return false
        res.writeHead(307, { location: '/mcp' }).end()
        return true
      }
    })
    // 29
    const subscribed = await startUpstream(t, { tools: [], resources: [] })

    const hub = await processOf(t, {
      env: { ADMIN_PASSWORD: PASSWORD },
      settings: settings(
        {
          lateShared: http(lateShared.url, { isolation: 'shared' }),
          lateAuto: http(lateAuto.url),
          rebuilt: http(rebuilt.url, { isolation: 'session' }),
          noGet: http(noGet.url),
          large: http(large.url),
          mute: mute.config,
          mortal: mortal.config,
          crashing: crashing.config,
          dead: dead.config,
          eager: http(eager.url),
          hangs: http(hangs.url),
          prompt: http(prompt.url),
          personal: http(personal.url, { isolation: 'user' }),
          news: http(news.url),
          greedy: http(greedy.url),
          papers: http(papers.url, { resources: { 'file:///secret': { enabled: false } } }),
          forgetful: http(forgetful.url),
          legacy: { type: 'sse', url: sse },
          frail: http(frail.url),
          moved: http(new URL('/old', moved.url).href),
          subscribed: http(subscribed.url)
        },
        {
          bearerKeys: [bearerKey({ owner: 'alice' }), otherKey({ owner: 'bob' })],
          groups: [
            { id: '00000000-0000-4000-8000-000000000001', name: 'lists', owner: 'admin', servers: ['hangs', 'prompt'] },
            {
              id: '00000000-0000-4000-8000-000000000002',
              name: 'chosen',
              owner: 'admin',
              servers: [{ name: 'papers', resources: ['file:///open', 'file:///{name}'] }]
            },
            { id: '00000000-0000-4000-8000-000000000003', name: 'library', owner: 'admin', servers: ['greedy', 'papers'] }
          ],
          systemConfig: { enableSessionRebuild: true }
        }
      )
    })
    // all but `dead`; `moved`, should it not be followed, says so itself
    await connected(hub, 19)
    const route = (name: string): string => `${hub.url}/mcp/${name}`

    await Promise.all([
      ...(['shared', 'auto'] as const).map(async (kind) => {
        await t.test(`2: what comes after the answer, on its stream, is for nobody else (${kind})`, { buffered: true }, async () => {
          const url = route(kind === 'shared' ? 'lateShared' : 'lateAuto')
          const capabilities = kind === 'shared' ? { elicitation: {} } : {}
          const a = await Session.open(url, { capabilities })
          const b = await Session.open(url, { capabilities, key: OTHER })
          const opened = b.start(call('b'))
          await until(() => (kind === 'shared' ? lateShared : lateAuto).received.some(({ message }) => message.params?.name === 'b'))
          await a.call('a')
          // B, who would be asked instead, never answers
          const refused = within('the end of a question that belongs to no call', late[kind].promise)
          const error = await refused.catch((): undefined => undefined)
          await sleep(200)
          release[kind].resolve()
          const stream = await opened
          await stream.done
          assert.deepEqual(methods(stream.messages), ['notifications/message', 'response'], stream.body)
          assert.doesNotMatch(stream.body, /secret/)
          assert.ok(error?.error !== undefined, `the question was never refused: ${JSON.stringify(error)}`)
        })
      }),

      t.test('3: another key with the same session id gets a session and a link of its own', { buffered: true }, async () => {
        const a = await Session.open(route('rebuilt'))
        await a.call('remember', { value: 'a secret of A' })
        const [upstreamOfA] = [...remembered.keys()]
        const own = upstreamOfA === undefined ? undefined : rebuilt.sessions.get(upstreamOfA)
        assert.ok(own !== undefined)
        const heardByA = await a.listen()
        const stolen = { key: OTHER, headers: a.headers }
        const recalled = await send(a.url, { ...stolen, body: call('recall') })
        assert.equal(recalled.status, 200, recalled.body)
        assert.equal(text(recalled.messages[0]?.result), 'nothing')
        const heardByB = await open(a.url, { ...stolen, method: 'GET', headers: { ...a.headers, accept: 'text/event-stream' } })
        assert.equal(heardByB.status, 200)
        await own.notify(...log('news for A'))
        await heardByA.wait(({ method }) => method === 'notifications/message')
        await sleep(200)
        assert.doesNotMatch(heardByB.body, /news for A/)
        heardByB.close()
        assert.equal((await send(a.url, { ...stolen, method: 'DELETE' })).status, 200)
        await sleep(500)
        assert.ok(rebuilt.sessions.has(own.id), 'the upstream session of A was ended')
        assert.equal(text(await a.call('recall')), 'a secret of A')
        assert.equal(heardByA.ended, false)
        heardByA.close()
      }),

      t.test('4: an upstream with sessions that answers 404 to GET works', { buffered: true }, async () => {
        const session = await Session.open(route('noGet'))
        for (let n = 0; n < 4; n++) {
          assert.equal(text(await session.call('echo', { message: `m${n}` })), `m${n}`)
          await sleep(400)
        }
        assert.equal(noGet.count('initialize'), 1, 'the session was taken for lost')
      }),

      t.test('5: an answer of 9 MiB that follows a message arrives whole', { buffered: true }, async () => {
        const session = await Session.open(route('large'))
        const reply = await session.post(call('big', { size: 9 * 1024 * 1024 }))
        assert.deepEqual(methods(reply.messages), ['notifications/message', 'response'], `${reply.body.length} characters`)
        assert.equal(text(reply.messages[1]?.result).length, 9 * 1024 * 1024)
      }),

      t.test('5: an answer of 2 MiB can be fetched by Last-Event-ID', { buffered: true }, async () => {
        const session = await Session.open(route('large'))
        const broken = await session.start(call('big', { size: 2 * 1024 * 1024, wait: 700 }))
        await broken.wait(({ method }) => method === 'notifications/message')
        const last = broken.events.at(-1)?.id
        assert.ok(last !== undefined, 'events carry no id')
        broken.close()
        await sleep(1_500)
        const resumed = await session.listen(last)
        const answer = await resumed.wait(({ id }) => id === 'call')
        assert.equal(text(answer.result).length, 2 * 1024 * 1024)
        resumed.close()
      }),

      t.test('6: a batch that is answered by a stream is whole messages', { buffered: true }, async () => {
        const session = await Session.open(route('large'), { version: '2025-03-26' })
        const reply = await session.post([
          { jsonrpc: '2.0', id: 'list', method: 'tools/list' },
          { jsonrpc: '2.0', id: 'ping', method: 'ping' },
          call('big')
        ])
        assert.ok(reply.sse, 'a message before the answer makes it a stream')
        for (const { data } of reply.events) {
          if (data !== '') {
            assert.doesNotThrow(
              () => {
                JSON.parse(data)
              },
              `an event that is no JSON: ${data.slice(0, 200)}`
            )
          }
        }
        assert.deepEqual(
          reply.messages
            .filter(({ id }) => id !== undefined)
            .map(({ id }) => String(id))
            .sort(),
          ['call', 'list', 'ping'],
          reply.body
        )
        assert.ok(reply.messages.some(({ method }) => method === 'notifications/message'))
      }),

      t.test('9: a child that closes its output but lives is disconnected, and started anew', { buffered: true }, async () => {
        const status = await shown(hub)
        const session = await Session.open(route('mute'))
        const pid = Number(text(await session.call('pid')))
        const before = await status('mute')
        const lost = session.request('tools/call', { name: 'mute', arguments: {} })
        // it may be back before a busy machine has asked a second time: then it has another moment of connecting
        let seen: unknown
        await until(async () => {
          seen = await status('mute')
          return at(seen, 'status') === 'disconnected' || at(seen, 'connectedAt') !== at(before, 'connectedAt')
        }, () => `it is still said to be ${JSON.stringify(at(seen, 'status'))}`)
        if (at(seen, 'status') === 'disconnected') assert.match(String(at(seen, 'error')), /\w/)
        assert.ok(failed(await within('the end of its call', lost)))
        await until(() => starts(mute.log()) === 2, 'it was never started again')
        const next = Number(text(await within('the next call', session.call('pid'))))
        assert.notEqual(next, pid)
        await until(() => !alive(pid), 'the old process lives on')
        await until(async () => at(await status('mute'), 'status') === 'connected')
      }),

      t.test('10: a child that dies of its subscription is not started again and again', { buffered: true }, async () => {
        const session = await Session.open(route('mortal'))
        await session.ask('resources/subscribe', { uri: 'r://1' })
        const before = starts(mortal.log())
        await sleep(5_000)
        assert.ok(starts(mortal.log()) - before <= 6, `${starts(mortal.log()) - before} children in 5 s`)
        await session.end()
      }),

      t.test('10: an upstream that says `retry: 0` is not polled without a pause', { buffered: true }, async () => {
        const before = polls
        await sleep(3_000)
        assert.ok(polls - before <= 6, `${polls - before} GETs in 3 s`)
        assert.ok(polls > 0, 'it was never asked for news')
      }),

      t.test('13: a merged list does not wait for a server that hangs on a second initialize', { buffered: true }, async () => {
        const session = await Session.open(route('lists'), { capabilities: { roots: {} } })
        for (const which of ['first', 'second', 'third']) {
          const start = Date.now()
          assert.ok((await session.tools()).includes('prompt-y'))
          assert.ok(Date.now() - start < 2_000, `the ${which} list took ${Date.now() - start} ms`)
        }
        await until(() => initializes > 1, 'it was never asked a second time')
      }),

      t.test('14: nobody is listed another user\'s own catalogue', { buffered: true }, async () => {
        const alice = await Session.open(route('personal'))
        const first = await alice.tools()
        await alice.call('common')
        const own = [...personal.sessions.values()].slice(1)
        assert.ok(own.length > 0, 'alice has no connection of her own')
        for (const session of own) await session.notify('notifications/tools/list_changed')
        await sleep(800)
        const hers = [...first, ...(await alice.tools()), ...(await (await Session.open(route('personal'))).tools())].filter((name) =>
          own.some(({ id }) => privates.get(id) === name)
        )
        assert.ok(hers.length > 0, 'alice is not listed her own tool')
        const bobs = await (await Session.open(route('personal'), { key: OTHER })).tools()
        assert.ok(bobs.includes('common'))
        assert.deepEqual(bobs.filter((name) => hers.includes(name)), [])
      }),

      t.test('15: news of a task or a question on an idle shared link reach nobody else', { buffered: true }, async () => {
        const session = await Session.open(route('news'), { key: OTHER })
        const stream = await session.listen()
        await news.broadcast('notifications/tasks/status', { taskId: '1', status: 'completed', statusMessage: 'a secret of A' })
        await news.broadcast('notifications/elicitation/complete', { elicitationId: 'a secret of A' })
        await news.broadcast(...log('for all'))
        await stream.wait(({ method }) => method === 'notifications/message')
        await sleep(200)
        assert.deepEqual(methods(stream.messages), ['notifications/message'], stream.body)
        stream.close()
      }),

      t.test('17: what is disabled or not selected cannot be read through a template', { buffered: true }, async () => {
        for (const [name, hidden] of [['papers', ['secret']], ['chosen', ['secret', 'other']], ['library', ['secret']]] as const) {
          const session = await Session.open(route(name))
          assert.equal(at(await session.ask('resources/read', { uri: 'file:///open' }), 'contents', 0, 'text'), 'papers file:///open', name)
          assert.equal(
            at(await session.ask('resources/read', { uri: 'file:///by-template' }), 'contents', 0, 'text'),
            'papers file:///by-template',
            name
          )
          for (const one of hidden) {
            const message = await session.request('resources/read', { uri: `file:///${one}` })
            assert.ok(message.error !== undefined, `${name}: ${one} was read: ${JSON.stringify(message.result)}`)
          }
        }
        assert.ok(!papers.received.some(({ body }) => body.includes('file:///secret')))
      }),

      t.test('18: a template that fits everything does not catch what is another server\'s', { buffered: true }, async () => {
        const session = await Session.open(route('library'))
        for (const name of ['a', 'b']) {
          assert.equal(at(await session.ask('resources/read', { uri: `file:///${name}` }), 'contents', 0, 'text'), `papers file:///${name}`)
        }
        await session.request('resources/read', { uri: 'file:///secret' })
        assert.equal(greedy.count('resources/read'), 0)
      }),

      t.test('19: what an answered call asked is withdrawn', { buffered: true }, async () => {
        const session = await Session.open(route('forgetful'), { capabilities: { elicitation: {} } })
        const news = await session.listen()
        for (let n = 0; n < 270; n++) {
          const { messages } = await session.post(call('ask', {}, n))
          const asked = messages.find(({ method }) => method === 'elicitation/create')
          assert.ok(asked !== undefined, `call ${n} could not ask: ${JSON.stringify(messages)}`)
          if (n > 0) continue
          const withdrawn = (message: Message): boolean =>
            message.method === 'notifications/cancelled' && message.params?.requestId === asked.id
          await until(
            () => [...messages, ...news.messages].some(withdrawn),
            () => `the question was not withdrawn: ${JSON.stringify(messages)}`
          )
        }
        await until(() => refusals.length === 270, () => `${refusals.length} of 270 questions have ended`)
        assert.ok(refusals.every(({ error }) => error !== undefined))
        news.close()
      }),

      t.test('22: one message that is too deep does not end everybody\'s legacy SSE link', { buffered: true }, async () => {
        const [a, b] = [await Session.open(route('legacy')), await Session.open(route('legacy'), { key: OTHER })]
        const slow = a.request('tools/call', { name: 'slow', arguments: {} })
        await sleep(300)
        assert.ok(
          failed(await within('the failure of what cannot be read', b.request('tools/call', { name: 'deep', arguments: {} })))
        )
        assert.equal(text((await slow).result), 'well')
        assert.equal(text(await b.call('echo')), 'well')
      }),

      t.test('23: one 502 on the GET stream does not end the news', { buffered: true }, async () => {
        const session = await Session.open(route('frail'))
        const stream = await session.listen()
        await until(() => [...frail.sessions.values()].some(({ streams }) => streams.size > 0))
        sick = true
        for (const { streams } of frail.sessions.values()) for (const open of streams) open.end()
        await until(() => bad === 1, 'the stream was not asked for again')
        await until(
          () => [...frail.sessions.values()].some(({ streams }) => streams.size > 0),
          'after the 502 it was never asked for again'
        )
        await frail.broadcast(...log('well again'))
        await stream.wait(({ method }) => method === 'notifications/message')
        stream.close()
      }),

      t.test('25: a redirect within the origin is followed', { buffered: true }, async () => {
        const session = await Session.open(route('moved'))
        assert.equal(text(await session.call('echo', { message: 'here' })), 'here')
      }),

      t.test('26: no error tells a client what a child wrote to stderr', { buffered: true }, async () => {
        const session = await Session.open(route('crashing'))
        const secret = 'password-hunter2'
        const seen = [JSON.stringify(await session.request('tools/call', { name: 'crash', arguments: { secret } }))]
        assert.match(seen[0] ?? '', /"error"/)
        seen.push(JSON.stringify(await session.request('tools/call', { name: 'pid', arguments: {} })))
        for (let n = 0; n < 2; n++) {
          const reply = await send(route('dead'), { body: initialize() })
          seen.push(reply.body)
          const id = reply.headers.get('mcp-session-id')
          if (id !== null) {
            seen.push(
              (await send(route('dead'), { headers: { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' }, body: call('echo') }))
                .body
            )
          }
        }
        assert.ok(seen.slice(2).some((body) => body.includes('"error"')), seen.join('\n'))
        for (const body of seen) assert.doesNotMatch(body, /hunter2|boom|licence/)
        // who runs it is told
        const status = await shown(hub)
        await until(async () => /licence/.test(String(at(await status('dead'), 'error'))), 'the admin is not told why it died')
      }),

      t.test('29: a session has a thousand subscriptions at most', { buffered: true }, async () => {
        const session = await Session.open(route('subscribed'))
        const subscribe = async (n: number): Promise<Message> => await session.request('resources/subscribe', { uri: `r://${n}` })
        for (let n = 0; n < 1_000; n += 50) {
          const answers = await Promise.all(Array.from({ length: 50 }, async (_, more) => await subscribe(n + more)))
          assert.deepEqual(answers.filter(failed), [])
        }
        const refused = await subscribe(1_000)
        assert.ok(refused.error !== undefined, 'the 1,001st was taken')
        assert.match(failure(refused), /\w/)
        await session.ask('resources/unsubscribe', { uri: 'r://0' })
        assert.equal((await subscribe(1_000)).error, undefined, 'there is no room after an unsubscribe')
        await session.end()
      })
    ])
  })

  void t.test('1: servers that accept a connection and say nothing do not keep others from connecting', { buffered: true }, async (t) => {
    const silent = await startSse(t, { endpoint: false })
    const good = await startUpstream(t)
    const quiet = ['one', 'two', 'three', 'four']
    const hub = await startHub(t, {
      env: { INIT_TIMEOUT: '3s', ADMIN_PASSWORD: PASSWORD },
      settings: settings({ ...Object.fromEntries(quiet.map((name) => [name, { type: 'sse', url: silent }])), good: http(good.url) })
    })
    const start = Date.now()
    await connected(hub, 1)
    assert.ok(Date.now() - start < 10_000)
    assert.equal(text(await (await Session.open(`${hub.url}/mcp/good`)).call('echo', { message: 'well' })), 'well')
    const status = await shown(hub)
    for (const name of quiet) {
      let seen: unknown
      await until(
        async () => {
          seen = await status(name)
          return at(seen, 'status') === 'disconnected' && typeof at(seen, 'error') === 'string' && at(seen, 'error') !== ''
        },
        () => `${name}: ${JSON.stringify([at(seen, 'status'), at(seen, 'error')])}`
      )
    }
  })

  void t.test('clients that can be asked keep the tools that ask when the server lists more', { buffered: true }, async (t) => {
    let names = ['a']
    const upstream = await startUpstream(t, {
      on: ({ method, session }) => {
        if (method !== 'tools/list') return undefined
        return { tools: [...names, ...at(session.capabilities, 'sampling') === undefined ? [] : ['ask']].map((name) => tool(name)) }
      }
    })
    const hub = await startHub(t, { settings: settings({ s: { ...http(upstream.url), isolation: 'shared' } }) })
    await connected(hub, 1)
    const session = await Session.open(`${hub.url}/mcp/s`, { capabilities: { sampling: {} } })
    const listed = async (): Promise<unknown[]> => await session.tools()
    await until(async () => (await listed()).includes('ask'), 'what it lists to clients that can be asked is not shown')
    // By then, the time is over in which the first request for this capability class waited for its list.
    await sleep(limits.newClass + 100)
    names = ['a', 'b']
    const [own] = upstream.sessions.values()
    await own?.notify('notifications/tools/list_changed')
    await until(async () => (await listed()).includes('b'), 'news are not shown')
    await until(async () => (await listed()).join() === 'a,b,ask', 'the tools that ask are not shown any more')
  })

  void t.test('a tool is not unknown while what is listed to such clients is being read', { buffered: true }, async (t) => {
    /** Lists a tool to clients that can be asked, after some time; never: not at all. */
    const slow = async (time: number | undefined): Promise<string> => (await startUpstream(t, {
      on: async ({ method, session }) => {
        const isAskable = at(session.capabilities, 'sampling') !== undefined
        if (method === 'tools/list' && isAskable) {
          if (time === undefined) return 'never'
          await sleep(time)
        }
        if (method === 'tools/call') return { content: [{ type: 'text', text: 'asked' }] }
        return method === 'tools/list' ? { tools: isAskable ? [tool('a'), tool('ask')] : [tool('a')] } : undefined
      }
    })).url
    const shared = async (time?: number): Promise<Json> => ({ ...http(await slow(time)), isolation: 'shared' })
    const hub = await startHub(t, {
      settings: settings({ s: await shared(limits.newClass + 1_000), merged: await shared(1_000), silent: await shared() })
    })
    await connected(hub, 3)
    const called = async (route: string, name: string): Promise<Message> => {
      const session = await Session.open(`${hub.url}/mcp${route}`, { capabilities: { sampling: {} } })
      return await session.request('tools/call', { name, arguments: {} })
    }
    const [alone, merged, silent, none] = await Promise.all([
      called('/s', 'ask'), called('', 'merged-ask'), called('/silent', 'ask'), called('/s', 'nothing')
    ])
    assert.equal(text(alone.result), 'asked')
    assert.equal(text(merged.result), 'asked')
    assert.equal(silent.error?.code, -32001, JSON.stringify(silent))
    assert.match(failure(silent), /still being read/)
    assert.equal(none.error?.code, -32602, 'what is known not to be there')
  })

  void t.test('a gateway that is to stop', { buffered: true }, async (t) => {
    t.jobs = many
    const upstream = await startUpstream(t, {
      tools: [tool('ask')],
      on: async (one) => {
        if (one.method !== 'tools/call') return undefined
        return { content: [{ type: 'text', text: JSON.stringify((await one.ask(...question)).result) }] }
      }
    })
    const hub = await processOf(t, { settings: settings({ asks: http(upstream.url) }), env: { DRAIN_TIMEOUT: '5s' } })
    await connected(hub, 1)
    const session = await Session.open(`${hub.url}/mcp/asks`, { capabilities: { elicitation: {} } })
    const asking = await session.start(call('ask'))
    const asked = await asking.wait(({ method }) => method === 'elicitation/create')
    await halfSend(t, hub, 'POST /mcp HTTP/1.1\r\n')
    await halfSend(
      t,
      hub,
      `POST /mcp/asks HTTP/1.1\r\nhost: 127.0.0.1:${hub.port}\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\n` +
      `accept: application/json\r\nmcp-session-id: ${session.id}\r\ncontent-length: 100\r\n\r\n{`
    )
    await sleep(200)
    const start = Date.now()
    const stopped = hub.stop()

    await Promise.all([
      t.test('30: while it drains, a client can still answer a question', { buffered: true }, async () => {
        await sleep(500)
        const reply = await send(session.url, {
          headers: session.headers,
          body: { jsonrpc: '2.0', id: asked.id, result: { action: 'accept', content: {} } }
        })
        assert.equal(reply.status, 202, reply.body)
        const answer = await asking.wait(({ id }) => id === 'call')
        assert.equal(at(JSON.parse(text(answer.result)), 'action'), 'accept')
      }),

      t.test('8: a half-sent request does not keep it from ending well', { buffered: true }, async () => {
        const code = await within('the end', stopped)
        assert.equal(code, 0, hub.output().slice(-1_000))
        assert.ok(Date.now() - start < 10_000, `${Date.now() - start} ms`)
      })
    ])
  })

  void t.test('7: nor is one left after a second SIGTERM', { buffered: true }, async (t) => {
    const shared = stdioFake(t, { FAULT_STUBBORN: '1' })
    const own = stdioFake(t, { FAULT_EXTRA: '1' }, { isolation: 'session' })
    const hub = await processOf(t, { settings: settings({ shared: shared.config, own: own.config }) })
    await connected(hub, 2)
    await (await Session.open(`${hub.url}/mcp/own`)).call('stubborn')
    const exited = once(hub.child, 'exit')
    hub.child.kill('SIGTERM')
    await sleep(300)
    hub.child.kill('SIGTERM')
    await within('the end', exited)
    await until(
      () => shared.left().length + own.left().length === 0,
      () => `left: ${shared.left().join(' ')}, ${own.left().join(' ')}`
    )
  })

  void t.test('a gateway whose size is watched, until it is to stop', { buffered: true }, async (t) => {
    const upstream = await startUpstream(t, {
      tools: [tool('stay'), ...Array.from({ length: 100 }, (_, n) => tool(`t${n}`, { description: 'd'.repeat(1_000) }))],
      on: (one) => one.method === 'tools/call' ? answerAndStay(one) : undefined
    })
    const child = stdioFake(t, { FAULT_EXTRA: '1' }, { isolation: 'session' })
    // a small nursery: what is garbage already says nothing about what is kept
    const hub = await processOf(t, {
      settings: settings({ s: http(upstream.url), child: child.config }),
      env: { NODE_OPTIONS: '--max-semi-space-size=1' }
    })
    await connected(hub, 2)
    const session = await Session.open(`${hub.url}/mcp/s`)
    await session.tools()

    await t.test('12: GET streams that have ended are not kept', async () => {
      const cycle = async (): Promise<void> => {
        const request = get(session.url, {
          agent: false,
          headers: { ...session.headers, authorization: `Bearer ${KEY}`, accept: 'text/event-stream' }
        })
        const [response] = await once(request, 'response') as [IncomingMessage]
        assert.equal(response.statusCode, 200)
        response.on('error', () => {}).destroy()
        await once(response, 'close')
      }
      const cycles = async (count: number): Promise<void> => { for (let n = 0; n < count; n++) await cycle() }
      await cycles(1_000)
      const before = rss(hub)
      await cycles(2_000)
      const after = rss(hub)
      assert.ok(after - before < 10, `${before.toFixed(1)} MiB before, ${after.toFixed(1)} MiB after`)
    })

    await t.test('11: an upstream that leaves streams open does not cost a file descriptor for each call', async () => {
      for (let n = 0; n < 5; n++) await session.call('stay')
      const open = await upstream.connections()
      for (let n = 0; n < 10; n++) await Promise.all(Array.from({ length: 20 }, async () => await session.call('stay')))
      // The pool opens a connection anew for each that was cut off, uses it again, and lets it go when it has been idle for a while.
      // They are counted where they arrive: the gateway's other descriptors are this test's own connections to it, kept for later calls.
      await until(
        async () => (await upstream.connections()) <= open,
        () => `${open} connections before; ${descriptors(hub)} descriptors now`
      )
    })

    await t.test('7: after SIGTERM no child of a session\'s link is left, though it ignores SIGTERM', async () => {
      const pid = Number(text(await (await Session.open(`${hub.url}/mcp/child`)).call('stubborn')))
      assert.equal(child.left().length, 2, 'the session has no child of its own')
      assert.equal(await within('the end', hub.stop()), 0)
      await until(() => !alive(pid), 'the session\'s child lives on')
      assert.deepEqual(child.left(), [])
    })
  })
})

test('of the processes that a client causes beside the gateway\'s own, all but two yield', async (t) => {
  const [own, beside] = [stdioFake(t), stdioFake(t, {}, { isolation: 'session' })]
  const hub = await startHub(t, { settings: settings({ own: own.config, beside: beside.config }) })
  await connected(hub, 2)
  const priorities: number[] = []
  const groups: string[] = []
  /** Linux shares CPU time between sessions of processes, where control groups do not: `/autogroup-123 nice 5`. */
  const groupOf = (pid: number | 'self'): string[] => {
    const file = `/proc/${pid}/autogroup`
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split(' nice ') : []
  }
  for (const name of ['own', 'beside', 'beside', 'beside']) {
    const session = await Session.open(`${hub.url}/mcp/${name}`)
    const pid = Number(text(await session.call('pid')))
    priorities.push(getPriority(pid) - getPriority())
    const [group, nice] = groupOf(pid)
    if (nice !== undefined && group !== groupOf('self')[0]) groups.push(nice)
  }
  assert.deepEqual(priorities, [0, 0, 0, 10])
  if (groups.length > 0) assert.deepEqual(groups, ['0', '0', '0', String(5 + getPriority())])
})
