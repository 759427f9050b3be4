// Servers that fail: calls that are cancelled or late, children that die or do not start, servers that are silent, and bad answers.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { limits } from '../../plugins/limits/index.ts'
import { Raw, Refusal, startUpstream, tool, type Answer, type Call } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import {
  assertPlain, at, connected, failed, failure, initialize, KEY, listed, names, send, Session, settings, silence, text, within,
  type Json, type Message
} from '../helpers/client.ts'
import { startHub, until, type Hub } from '../helpers/hub.ts'
import { alive, stdioFake } from '../helpers/stdio-fake.ts'

const http = (url: string, more: Json = {}): Json => ({ type: 'streamable-http', url, ...more })
const MiB = 1024 * 1024
const toolCall = (name: string, args: Json = {}, id: string | number = 'call'): Json =>
  ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } })

/** The other servers are unaffected: this one answers. */
async function assertHealthy (session: Session, name: string): Promise<void> {
  assert.equal(text(await within(`${name}, which is healthy`, session.call(name, { message: 'fine' }))), 'fine')
}

/** A call that must fail, with words. */
async function failing (session: Session, name: string, args: Json = {}): Promise<Message> {
  const message = await within(name, session.request('tools/call', { name, arguments: args }))
  assert.ok(failed(message), `${name}: ${JSON.stringify(message).slice(0, 500)}`)
  assertPlain(failure(message))
  assert.ok(failure(message) !== '' && failure(message).length < 2_000)
  return message
}

/** Calls until one is answered with its message. */
async function comesBack (session: Session, name: string): Promise<void> {
  await until(async () => text(await session.call(name, { message: 'back' })) === 'back', `${name} never came back`)
}

// ---- cancellation and time ------------------------------------------------------------------------

test('cancellation reaches the upstream', async (t) => {
  const upstream = await startUpstream(t, {
    tools: [tool('hang'), tool('echo')],
    on: ({ method, params }) => (method === 'tools/call' && params.name === 'hang' ? 'never' : undefined)
  })
  const child = stdioFake(t)
  const hub = await startHub(t, { settings: settings({ http: http(upstream.url), stdio: child.config }) })
  await connected(hub, 2)
  /** The ids, as the upstream knows them, of the calls of `hang`, and of those that were cancelled. */
  const sides = {
    http: {
      open: () => upstream.received.filter(({ message }) => message.params?.name === 'hang')
        .map(({ message, session }) => `${session} ${JSON.stringify(message.id)}`),
      cancelled: () => upstream.received.filter(({ message }) => message.method === 'notifications/cancelled')
        .map(({ message, session }) => `${session} ${JSON.stringify(message.params?.requestId)}`)
    },
    stdio: {
      open: () => child.log().filter(({ event }) => event === 'hang').map(({ pid, id }) => `${pid} ${JSON.stringify(id)}`),
      cancelled: () => child.log().filter(({ event }) => event === 'notifications/cancelled')
        .map(({ pid, params }) => `${pid} ${JSON.stringify(params?.requestId)}`)
    }
  }
  for (const [name, { open, cancelled }] of Object.entries(sides)) {
    await t.test(name, async (t) => { await cancel(t, hub, name, open, cancelled) })
  }
})

async function cancel (t: Test, hub: Hub, name: string, open: () => string[], cancelled: () => string[]): Promise<void> {
  const started = async (count: number): Promise<string> => {
    await until(() => open().length === count, 'the call never reached the upstream')
    return open()[count - 1] ?? ''
  }
  const isCancelled = async (id: string): Promise<void> => { await until(() => cancelled().includes(id), 'not cancelled') }

  await t.test('notifications/cancelled, for id 0 and for a text, one of two clients with the same id', async () => {
    for (const [round, id] of [0, 'zero'].entries()) {
      const [one, two] = [await Session.open(`${hub.url}/mcp`), await Session.open(`${hub.url}/mcp/${name}`)]
      const first = one.post(toolCall(`${name}-hang`, {}, id))
      const mine = await started(1 + round * 2)
      const others = two.post(toolCall('hang', {}, id))
      const theirs = await started(2 + round * 2)
      await one.notify('notifications/cancelled', { requestId: 'unknown' })
      await one.notify('notifications/cancelled', { requestId: id, reason: 'changed my mind' })
      await isCancelled(mine)
      await within('the end of the cancelled call\'s HTTP response', first.catch(() => undefined))
      // What is sent later has come back.
      await one.call(`${name}-echo`)
      assert.ok(!cancelled().includes(theirs), 'another client\'s call was cancelled')
      await two.notify('notifications/cancelled', { requestId: id })
      await isCancelled(theirs)
      await within('the end of the other\'s', others.catch(() => undefined))
    }
  })

  await t.test('a client that goes away', async () => {
    const session = await Session.open(`${hub.url}/mcp`)
    const abort = new AbortController()
    const headers = { ...session.headers, authorization: `Bearer ${KEY}`, accept: 'application/json, text/event-stream' }
    const gone = fetch(session.url, {
      method: 'POST', signal: abort.signal, body: JSON.stringify(toolCall(`${name}-hang`)), headers: { ...headers, 'content-type': 'application/json' }
    }).catch(() => undefined)
    const id = await started(5)
    abort.abort()
    await gone
    await isCancelled(id)
  })

  await t.test('each call was cancelled once, under the upstream\'s own id', async () => {
    assert.deepEqual(cancelled().filter((id) => open().includes(id)).sort(), open().sort())
    assert.equal(new Set(open()).size, 5)
  })
}

test('a call that is never answered, or only tells of progress, ends with -32001, and is cancelled upstream', async (t) => {
  const upstream = await startUpstream(t, {
    tools: [tool('never'), tool('forever')],
    on: async ({ method, params, notify }) => {
      if (method !== 'tools/call') return undefined
      for (let progress = 1; params.name === 'forever' && upstream.cancelled.length < 2; progress++) {
        notify('notifications/progress', { progressToken: at(params, '_meta', 'progressToken'), progress })
        await new Promise((resolve) => { setImmediate(resolve) })
      }
      return 'never'
    }
  })
  const hub = await startHub(t, {
    settings: settings({
      brief: http(upstream.url, { options: { timeout: 300 } }),
      capped: http(upstream.url, { options: { timeout: 60_000, maxTotalTimeout: 300 } })
    })
  })
  await connected(hub, 2)
  const session = await Session.open(`${hub.url}/mcp`)
  for (const [n, name] of ['brief-never', 'capped-forever'].entries()) {
    const message = await session.request('tools/call', { name, arguments: {}, _meta: { progressToken: 'p' } })
    assert.equal(message.error?.code, -32001, JSON.stringify(message))
    await until(() => upstream.cancelled.length === n + 1, 'not cancelled upstream')
  }
})

// ---- children that die ----------------------------------------------------------------------------

test('a stdio child that dies', async (t) => {
  const [one, two] = [stdioFake(t), stdioFake(t)]
  const hub = await startHub(t, { settings: settings({ one: one.config, two: two.config }) })
  await connected(hub, 2)
  const session = await Session.open(`${hub.url}/mcp`)
  const starts = (): number => one.log().filter(({ event }) => event === 'start').length

  await t.test('by kill -9: the next call works', async () => {
    const pid = Number(text(await session.call('one-pid')))
    process.kill(pid, 'SIGKILL')
    // A call sent before the gateway knows of the death may have run, and is not repeated.
    await until(async () => starts() > 1 || (await managed(hub, 'GET', '/servers/one')).status !== 'connected', 'it goes unnoticed')
    assert.notEqual(Number(text(await within('the next call', session.call('one-pid')))), pid)
    await assertHealthy(session, 'two-echo')
  })

  await t.test('by kill -9 under a call: it gets an error', async () => {
    const pid = Number(text(await session.call('two-pid')))
    const pending = failing(session, 'two-hang')
    const hanging = (): number => two.log().filter(({ event }) => event === 'hang').length
    await until(() => hanging() > 0, 'never in flight')
    process.kill(pid, 'SIGKILL')
    await pending
    assert.equal(text(await within('the next call', session.call('two-echo', { message: 'back' }))), 'back')
    assert.equal(hanging(), 1, 'a call that may have run was repeated')
  })

  await t.test('by itself', async () => {
    await failing(session, 'two-exit', { code: 7 })
    assert.equal(text(await within('the next call', session.call('two-echo', { message: 'back' }))), 'back')
    await assertHealthy(session, 'one-echo')
  })
})

test('a server that cannot start neither spins nor hurts', async (t) => {
  const [dying, healthy] = [stdioFake(t, { FAULT_DIE: '1' }), stdioFake(t)]
  const hub = await startHub(t, {
    settings: settings({
      dying: dying.config,
      absent: { type: 'stdio', command: '/nowhere/at/all' },
      refused: http('http://127.0.0.1:1/mcp'),
      nonsense: http('nonsense'),
      empty: {},
      healthy: healthy.config
    })
  })
  await listed(hub, ['healthy'])
  const session = await Session.open(`${hub.url}/mcp`)
  for (const name of ['dying', 'absent', 'refused', 'nonsense', 'empty']) {
    await failing(session, `${name}-echo`)
    const reply = await within(`initialize of ${name}`, send(`${hub.url}/mcp/${name}`, { body: initialize() }))
    assert.notEqual(reply.status, 500, reply.body)
    assertPlain(reply.body)
  }
  const starts = (): number => dying.log().filter(({ event }) => event === 'start').length
  const before = starts()
  assert.ok(before > 0)
  // Callers cannot hurry it: those of a second share one start.
  await Promise.all(Array.from({ length: 60 }, async () => { await failing(session, 'dying-echo') }))
  assert.ok(starts() - before < 30, `${starts() - before} starts for 60 calls`)
  await assertHealthy(session, 'healthy-echo')
})

test('a gateway that closes starts no server anew, though its last change of the settings comes then', async (t) => {
  const child = stdioFake(t)
  const hub = await startHub(t, { settings: settings({ child: child.config }) })
  // That the key was used is stored at the end.
  await listed(hub, ['child'])
  assert.equal(await hub.stop(), 0)
  await silence(300)
  assert.deepEqual(child.log().filter(({ event }) => event === 'start').length, 1)
  assert.deepEqual(child.log().map(({ pid }) => pid).filter(alive), [])
})

test('a start among upstreams that never answer', async (t) => {
  const sockets = new Set<Socket>()
  const silent = createServer((socket) => { sockets.add(socket.on('error', () => {}).on('close', () => { sockets.delete(socket) })) })
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.after(() => { for (const socket of sockets) socket.destroy(); silent.close() })
  const { port } = silent.address() as AddressInfo
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('second')], instructions: 'remember' })
  const servers: Json = {}
  for (let index = 0; index < 24; index++) servers[`silent${index}`] = http(`http://127.0.0.1:${port}/${index}`)
  for (let index = 0; index < 3; index++) servers[`sse${index}`] = { type: 'sse', url: `http://127.0.0.1:${port}/sse${index}` }
  for (let index = 0; index < 3; index++) servers[`asleep${index}`] = { type: 'stdio', command: 'sleep', args: ['170'] }
  Object.assign(servers, { http: http(upstream.url), child: stdioFake(t).config })
  const expected = ['http-echo', 'http-second', 'child-echo', 'child-pid']
  // Who waited for one of them would wait for longer than a test does.
  const env = { INIT_TIMEOUT: '1h' }
  const hub = await startHub(t, { settings: settings(servers), env })

  await t.test('the tools of the healthy ones are listed and called', async () => {
    const session = await within('initialize', Session.open(`${hub.url}/mcp`))
    await until(async () => {
      const tools = await within('tools/list', session.tools())
      return expected.every((name) => tools.includes(name))
    }, 'they are not listed')
    for (const name of ['http-echo', 'child-echo']) await assertHealthy(session, name)
    const health: unknown = await (await fetch(`${hub.url}/health`)).json()
    assert.deepEqual(at(health, 'servers'), { total: 32, connected: 2 })
    assert.equal(await within('the end', hub.stop()), 0)
    assert.ok(existsSync(join(hub.folder, '.tool-hub')), 'DATA_DIR is .tool-hub beside the settings')
  })

  await t.test('after a restart the first list has what was known, though an upstream has fallen silent', async (t) => {
    upstream.options.on = () => 'never'
    const later = await startHub(t, { folder: hub.folder, env })
    const session = await within('initialize', Session.open(`${later.url}/mcp`))
    const { result } = await within('tools/list', session.request('tools/list', {}))
    const tools = names(result?.tools)
    for (const name of expected) assert.ok(tools.includes(name), `${name} is not in ${tools.join()}`)
    await assertHealthy(session, 'child-echo')
  })
})

// ---- bad answers ----------------------------------------------------------------------------------

test('a stdio child that babbles, or never ends a line', async (t) => {
  const [noisy, endless, healthy] = [stdioFake(t, { FAULT_NOISE: '1' }), stdioFake(t), stdioFake(t)]
  const hub = await startHub(t, { settings: settings({ noisy: noisy.config, endless: endless.config, healthy: healthy.config }) })
  await connected(hub, 3)
  const session = await Session.open(`${hub.url}/mcp`)
  assert.equal(text(await session.call('noisy-noise')), 'quiet again')
  const pending = failing(session, 'endless-endless', { mib: 512 })
  for (const name of ['noisy', 'healthy']) await assertHealthy(session, `${name}-echo`)
  await pending
  await assertHealthy(session, 'healthy-echo')
  await comesBack(session, 'endless-echo')
})

const head = { 'content-type': 'application/json' }
const events = { 'content-type': 'text/event-stream' }
const secret = 'SECRET-BODY at /srv/app/index.js:1:1'

/** How a call is answered badly. `target`: another origin */
const misdeeds: Record<string, (call: Call, target: string) => void> = {
  status500: ({ res }) => { res.writeHead(500, { 'content-type': 'text/html' }).end(`<h1>${secret}</h1>`) },
  status429: ({ res }) => { res.writeHead(429, head).end(JSON.stringify({ message: secret })) },
  html: ({ res }) => { res.writeHead(200, { 'content-type': 'text/html' }).end(`<h1>${secret}</h1>`) },
  broken: ({ res }) => { res.writeHead(200, head).end(`{"jsonrpc":"2.0","${secret}`) },
  badUtf8: ({ res, id }) => {
    const parts = [`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[],"x":"`, [0xff, 0xfe], '"}']
    res.writeHead(200, head).end(Buffer.concat(parts.map((part) => typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))))
  },
  cut: ({ res }) => { res.writeHead(200, { ...head, 'content-length': '5000' }).write('{"jsonrpc":', () => { res.destroy() }) },
  reset: ({ res }) => { res.destroy() },
  redirect: ({ res }, target) => { res.writeHead(307, { location: target }).end() },
  wrongId: ({ res }) => { res.writeHead(200, head).end('{"jsonrpc":"2.0","id":"somebody else","result":{"content":[]}}') },
  empty: ({ res }) => { res.writeHead(200, head).end() },
  accepted: ({ res }) => { res.writeHead(202).end() },
  number: ({ res }) => { res.writeHead(200, head).end('42') },
  nothing: ({ res, id }) => { res.writeHead(200, head).end(JSON.stringify({ jsonrpc: '2.0', id })) },
  sseCut: ({ res }) => { res.writeHead(200, events).write(': hello\n\n', () => { res.end() }) },
  sseReset: ({ res }) => { res.writeHead(200, events).write('data: {"jsonrpc"', () => { res.destroy() }) },
  sseGarbage: ({ res }) => { res.writeHead(200, events).end(`event: message\ndata: ${secret}\n\n`) }
}

test('an HTTP upstream that answers calls badly', async (t) => {
  let visited = 0
  const elsewhere = createHttpServer((_req, res) => { visited++; res.end('{}') })
  elsewhere.listen(0, '127.0.0.1')
  await once(elsewhere, 'listening')
  t.after(() => { elsewhere.closeAllConnections(); elsewhere.close() })
  const target = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/mcp`
  const on = (call: Call): Answer => {
    if (call.method !== 'tools/call' || call.params.name !== 'misdeed') return undefined
    misdeeds[String(at(call.params, 'arguments', 'name'))]?.(call, target)
    return 'taken'
  }
  const names = Object.keys(misdeeds)
  const upstreams = await Promise.all(names.map(async () => await startUpstream(t, { tools: [tool('misdeed'), tool('echo')], on })))
  const other = await startUpstream(t)
  const bad = names.map((name, index) => [name, http(upstreams[index]?.url ?? '', { options: { timeout: 2_000 } })] as const)
  const hub = await startHub(t, { settings: settings({ other: http(other.url), ...Object.fromEntries(bad) }) })
  await connected(hub, names.length + 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const answers = names.map(async (name) => await failing(session, `${name}-misdeed`, { name }))
  await assertHealthy(session, 'other-echo')
  await Promise.allSettled(answers)
  for (const [index, name] of names.entries()) {
    await t.test(name, async () => {
      assert.ok(!JSON.stringify(await answers[index]).includes('SECRET-BODY'), 'the upstream\'s body went through')
      if (/cut|reset|broken/i.test(name)) assert.equal(upstreams[index]?.count('tools/call'), 1, 'a call that may have run was repeated')
    })
  }
  await t.test('all of them work again', async () => {
    await Promise.all(names.map(async (name) => { await comesBack(session, `${name}-echo`) }))
    await assertHealthy(session, 'other-echo')
  })
  await t.test('a redirect to another origin is not followed', async () => { assert.equal(visited, 0) })
})

test('an HTTP upstream whose results are too deep or too large', async (t) => {
  let sent = 0
  const on = ({ method, params, id, res }: Call): Answer => {
    if (method !== 'tools/call') return undefined
    const levels = Number(at(params, 'arguments', 'levels'))
    if (params.name === 'deep') return new Raw(`{"content":[],"structuredContent":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}`)
    if (params.name !== 'big') return undefined
    const chunk = Buffer.alloc(MiB, 'z')
    const more = (): void => {
      while (sent++ < 512 && !res.destroyed) if (!res.write(chunk)) { res.once('drain', more); return }
      res.end('"}]}}')
    }
    res.writeHead(200, head).write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[{"type":"text","text":"`)
    more()
    return 'taken'
  }
  const large = await startUpstream(t, { tools: ['deep', 'big', 'echo'].map((name) => tool(name)), on })
  const other = await startUpstream(t)
  const hub = await startHub(t, { settings: settings({ large: http(large.url), other: http(other.url) }) })
  await connected(hub, 2)
  const session = await Session.open(`${hub.url}/mcp`)
  for (const levels of [1_500, 20_000, 300_000]) await failing(session, 'large-deep', { levels })
  assert.ok(!failed(await session.request('tools/call', { name: 'large-deep', arguments: { levels: 500 } })))
  const pending = failing(session, 'large-big')
  await assertHealthy(session, 'other-echo')
  await pending
  assert.ok(sent < 256, `${sent} MiB of 512 were read`)
})

test('lists that are bad take nothing else along', async (t) => {
  const bad = [null, 42, { description: 'no name' }, { name: 7 }, { name: '' }, tool('bare', { inputSchema: undefined })]
  const controls = ['line\nbreak', 'escape\u001b[2J', 'c1\u0085'].map((name) => tool(name))
  const odd = await startUpstream(t, {
    tools: [tool('first'), ...bad, ...controls, tool('last')] as unknown as Json[],
    prompts: [{ name: 'nul\u0000' }, { name: 'fine' }]
  })
  const listing = async (answer: (call: Call) => Answer, of = 'tools/list'): Promise<string> =>
    (await startUpstream(t, { on: (call) => call.method === of ? answer(call) : undefined })).url
  let pages = 0
  const urls = {
    odd: odd.url,
    spinning: await listing(() => { pages++; return { tools: [tool('again')], nextCursor: 'again' } }),
    failing: await listing(({ res }) => { res.writeHead(500).end('no'); return 'taken' }),
    scalar: await listing(() => ({ tools: 'none' })),
    uninitialized: await listing(() => new Raw('"hello"'), 'initialize')
  }
  const hub = await startHub(t, { settings: settings(Object.fromEntries(Object.entries(urls).map(([name, url]) => [name, http(url)]))) })
  await listed(hub, ['odd', 'spinning'])
  const session = await Session.open(`${hub.url}/mcp`)
  const tools = await session.tools()
  assert.ok(tools.includes('odd-first') && tools.includes('odd-last'), tools.join(' '))
  for (const name of tools) assert.match(name, /^\w+-\w+$/)
  assert.equal(new Set(tools).size, tools.length)
  await assertHealthy(session, 'odd-last')
  assert.deepEqual((await session.list('prompts/list', 'prompts')).map((one) => one.name), ['odd-fine'])
  assert.match(hub.output(), /tools: \\"line\u{fffd}break\\" has control characters in its name and is left out/u)
  assert.match(hub.output(), /prompts: \\"nul\u{fffd}\\" has control characters/u)
  assert.ok(pages <= limits.listPages, `${pages} pages`)
})

test('an HTTP upstream whose session expires', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('count')], resources: [{ uri: 'fault://r', name: 'r' }] })
  const hub = await startHub(t, { settings: settings({ fake: http(upstream.url) }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const calls = (): number => upstream.count('tools/call')
  const echo = async (message: string): Promise<void> => {
    assert.equal(text(await within('the call', session.call('fake-echo', { message }))), message)
  }

  await t.test('is initialized once more, and the call repeated', async () => {
    await echo('before')
    const [before, sent] = [upstream.count('initialize'), calls()]
    upstream.expire()
    await echo('after')
    assert.equal(upstream.count('initialize'), before + 1)
    assert.ok(calls() - sent <= 2)
  })

  await t.test('many calls at once re-initialize it once', async () => {
    const before = upstream.count('initialize')
    upstream.expire()
    await Promise.all(Array.from({ length: 20 }, async (_, index) => { await echo(`m${index}`) }))
    assert.equal(upstream.count('initialize'), before + 1)
  })

  await t.test('with its subscriptions and its log level', async () => {
    await session.ask('logging/setLevel', { level: 'warning' })
    await session.ask('resources/subscribe', { uri: 'fault://r' })
    const stream = await session.listen()
    upstream.expire()
    await echo('again')
    const fresh = [...upstream.sessions.keys()].at(-1)
    const isTold = (name: string, key: string, value: string): boolean =>
      upstream.received.some(({ session, message: { method, params } }) => session === fresh && method === name && params?.[key] === value)
    await until(() => isTold('resources/subscribe', 'uri', 'fault://r'), 'not subscribed again')
    await until(() => isTold('logging/setLevel', 'level', 'warning'), 'no level')
    await upstream.broadcast('notifications/resources/updated', { uri: 'fault://r' })
    await stream.wait((message) => message.method === 'notifications/resources/updated')
    stream.close()
  })

  await t.test('under a call whose stream broke: it may have run, and is not repeated', async () => {
    upstream.options.on = ({ method, params, res }) => {
      if (method !== 'tools/call' || params.name !== 'count') return undefined
      upstream.expire()
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write('id: x-1\nretry: 500\ndata: \n\n', () => { res.destroy() })
      return 'taken'
    }
    const sent = calls()
    assert.match(failure(await failing(session, 'fake-count')), /may have run/)
    assert.equal(calls(), sent + 1)
    await echo('next')
  })

  await t.test('again and again: an error, not a loop', async () => {
    upstream.options.on = ({ method, session: own, res }) => {
      if (method !== 'tools/call') return undefined
      upstream.sessions.delete(own.id)
      res.writeHead(404, head).end(JSON.stringify({ jsonrpc: '2.0', id: null, error: new Refusal(-32001, 'Session not found').error }))
      return 'taken'
    }
    const [initialized, sent] = [upstream.count('initialize'), calls()]
    await failing(session, 'fake-echo')
    const [more, again] = [calls() - sent, upstream.count('initialize') - initialized]
    assert.ok(more <= 3 && again <= 3, `${more} calls, ${again} times initialized`)
  })
})
