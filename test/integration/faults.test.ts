// Servers that fail: calls that are late, children that die or do not start, servers that are silent, and bad answers.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'tap'
import { Refusal, startUpstream, tool, type Answer, type Call } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import {
  assertPlain, at, connected, failed, failure, initialize, KEY, listed, send, Session, settings, silence, text, within, type Json,
  type Message
} from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { alive, stdioFake } from '../helpers/stdio-fake.ts'

const http = (url: string, more: Json = {}): Json => ({ type: 'streamable-http', url, ...more })

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

// ---- time -----------------------------------------------------------------------------------------

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

test('a client that goes away has its call cancelled upstream', async (t) => {
  const upstream = await startUpstream(t, { on: ({ method }) => method === 'tools/call' ? 'never' : undefined })
  const hub = await startHub(t, { settings: settings({ http: http(upstream.url) }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const abort = new AbortController()
  const gone = fetch(session.url, {
    method: 'POST',
    signal: abort.signal,
    headers: {
      ...session.headers, authorization: `Bearer ${KEY}`, accept: 'application/json, text/event-stream', 'content-type': 'application/json'
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'tools/call', params: { name: 'http-echo', arguments: {} } })
  }).catch(() => undefined)
  await until(() => upstream.count('tools/call') === 1, 'the call never reached the upstream')
  abort.abort()
  await gone
  await until(() => upstream.cancelled.length === 1, 'not cancelled')
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
  const target = `http://127.0.0.1:${await listen(t, createServer((_req, res) => { visited++; res.end('{}') }))}/mcp`
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

test('an HTTP upstream whose session expires', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
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
