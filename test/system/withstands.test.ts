// What a gateway process withstands (docs/withstands.md). Linux only: memory and children are read from /proc.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, request } from 'node:http'
import { createConnection, createServer, type AddressInfo } from 'node:net'
import { test } from 'tap'
import { Passwords } from '../../plugins/secrets/password.ts'
import { childrenOf } from '../helpers/children.ts'
import { connected, Session, settings, type Json } from '../helpers/client.ts'
import { Raw, startUpstream, tool } from '../fakes/fault-http.ts'
import { nameServer } from '../fakes/name-server.ts'
import { path, spawnHub, until, type Cleanup, type ProcessHub } from '../helpers/hub.ts'

const MiB = 1024 * 1024

/** The memory of a process now, in MiB. */
const rssOf = ({ pid }: ProcessHub): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

/** The status of a call without credentials, once its answer is read; 0: the connection was closed. */
const call = async (hub: ProcessHub, name: string, reads = true, server = 'big'): Promise<number> => await new Promise((resolve) => {
  const sent = request({
    host: '127.0.0.1',
    port: hub.port,
    path: `/api/tools/${server}/${name}`,
    method: 'POST',
    headers: { 'content-type': 'application/json' }
  }, (reply) => {
    if (!reads) { resolve(reply.statusCode ?? 0); return }
    reply.resume().on('end', () => { resolve(reply.statusCode ?? 0) }).on('error', () => { resolve(0) })
  })
  sent.on('error', () => { resolve(0) })
  sent.end('{}')
})

test('60 answers of 15 MiB at once, and 30 clients that read none, stay below 600 MiB; small calls are served', async (t) => {
  const large = JSON.stringify('x'.repeat(15 * MiB))
  const upstream = await startUpstream(t, {
    tools: [tool('big'), tool('small')],
    on: ({ method, params }) => method === 'tools/call' && params.name === 'big'
      ? new Raw(`{"content":[{"type":"text","text":${large}}]}`)
      : undefined
  })
  const hub = await spawnHub(t, { settings: settings({ big: { url: upstream.url, visibility: 'public' } }) })
  await connected(hub, 1)
  let peak = 0
  const watching = setInterval(() => { peak = Math.max(peak, rssOf(hub)) }, 20)
  t.after(() => { clearInterval(watching) })
  const calls = Array.from({ length: 60 }, async () => await call(hub, 'big'))
  for (let n = 0; n < 20; n++) assert.equal(await call(hub, 'small'), 200)
  const statuses = await Promise.all(calls)
  assert.ok(statuses.includes(200), 'some are served')
  assert.ok(statuses.every((status) => [200, 429, 503].includes(status)), statuses.join())
  await Promise.all(Array.from({ length: 30 }, async () => await call(hub, 'big', false)))
  assert.equal(await call(hub, 'small'), 200)
  t.comment(`${statuses.filter((status) => status === 200).length} of 60 served, at most ${Math.round(peak)} MiB`)
  assert.ok(peak < 600, `${Math.round(peak)} MiB`)
})

/** A server that answers each call with a large text, in HTTP chunks of one size. */
async function startInChunks (t: Cleanup, size: number, length: number): Promise<string> {
  const result = `{"content":[{"type":"text","text":"${'x'.repeat(length)}"}]}`
  const server = createHttpServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => { body += String(chunk) }).on('end', () => {
      const { id, method, params } = JSON.parse(body || '{}') as { id?: number, method?: string, params?: { protocolVersion?: string } }
      const answers: Record<string, unknown> = {
        initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'chunks', version: '1' } },
        'tools/list': { tools: [tool('big')] }
      }
      if (id === undefined) { response.writeHead(request.method === 'POST' ? 202 : 405).end(); return }
      response.setHeader('content-type', 'application/json')
      if (method !== 'tools/call') { response.end(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method ?? ''] ?? {} })); return }
      const { socket } = response
      const text = `{"jsonrpc":"2.0","id":${id},"result":${result}}`
      if (socket === null) return
      socket.setNoDelay(true)
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n')
      let at = 0
      const send = (): void => {
        while (at < text.length) {
          const parts: string[] = []
          for (let n = 0; n < 64 * 1024 / size && at < text.length; n++, at += size) {
            const part = text.slice(at, at + size)
            parts.push(`${part.length.toString(16)}\r\n${part}\r\n`)
          }
          if (!socket.write(parts.join(''))) { socket.once('drain', send); return }
        }
        socket.end('0\r\n\r\n')
      }
      send()
    })
  })
  t.after(() => { server.closeAllConnections(); server.close() })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}

test('what comes in small chunks costs no more than what comes in large ones', async (t) => {
  const urls = { k: await startInChunks(t, 4_096, 15 * MiB), b: await startInChunks(t, 1, MiB) }
  const hub = await spawnHub(t, { settings: settings({ big: { url: urls.k, visibility: 'public' }, bits: { url: urls.b, visibility: 'public' } }) })
  await connected(hub, 2)
  const before = rssOf(hub)
  let peak = before
  const watching = setInterval(() => { peak = Math.max(peak, rssOf(hub)) }, 20)
  t.after(() => { clearInterval(watching) })
  for (const [name, server] of [['an answer of 15 MiB in chunks of 4 KiB', 'big'], ['one of 1 MiB in chunks of one byte', 'bits']] as const) {
    await t.test(name, async (t) => {
      peak = before
      assert.equal(await call(hub, 'big', true, server), 200)
      t.comment(`${Math.round(peak - before)} MiB more`)
      assert.ok(peak - before < 150, `${Math.round(peak - before)} MiB more`)
    })
  }
  await t.test('four bodies of 1 MB in chunks of one byte', async (t) => {
    peak = before
    const chunks = '1\r\nx\r\n'.repeat(10_000)
    await Promise.all(Array.from({ length: 4 }, async () => await new Promise<void>((resolve) => {
      const socket = createConnection(hub.port, '127.0.0.1')
      socket.on('error', () => {}).on('close', () => { resolve() }).resume()
      socket.write('POST /api/auth/login HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n')
      for (let n = 0; n < 100; n++) socket.write(chunks)
      socket.end('0\r\n\r\n')
    })))
    t.comment(`${Math.round(peak - before)} MiB more`)
    assert.ok(peak - before < 150, `${Math.round(peak - before)} MiB more`)
  })
})

test('clients that declare what nobody declared before', async (t) => {
  const count = 6
  const stdio = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
  const hub = await spawnHub(t, { settings: settings(Object.fromEntries(Array.from({ length: count }, (_, n) => [`s${n}`, stdio]))) })
  await connected(hub, count)
  assert.equal(childrenOf(hub.pid).length, count)

  await t.test('are answered at once, and start no process with a list', async () => {
    const session = await Session.open(`${hub.url}/mcp`, { capabilities: { elicitation: {}, roots: { listChanged: true } } })
    const before = performance.now()
    const tools = await session.tools()
    const took = performance.now() - before
    assert.equal(tools.length, 11 * count)
    assert.ok(took < 1_000, `${Math.round(took)} ms`)
    assert.equal(childrenOf(hub.pid).length, count)
    await session.call('s0-echo', { message: 'hi' })
    assert.equal(childrenOf(hub.pid).length, count + 1, 'a call starts the one that it needs')
  })

  await t.test('start no more processes than one principal may have', async () => {
    const sets = Array.from({ length: 25 }, (_, n): Json => ({ sampling: { tools: { n } }, elicitation: { form: { n } } }))
    for (const capabilities of sets) {
      const session = await Session.open(`${hub.url}/mcp`, { capabilities })
      for (let n = 0; n < 3; n++) await session.call(`s${n}-echo`, { message: 'hi' }).catch(() => {})
    }
    const children = childrenOf(hub.pid).length
    t.comment(`${children} processes for ${count} servers`)
    assert.ok(children <= count + 16 + 1, `${children} processes`)
    const other = await Session.open(`${hub.url}/mcp`, {})
    assert.match(JSON.stringify(await other.call('s0-echo', { message: 'hi' })), /hi/)
  })
})

const users = ['admin', 'ann', 'ben'].map((username) => ({ username, isAdmin: username === 'admin', password: 'none' }))
/** Servers that ann stored, who is no admin. */
const anns = (count: number, urlOf: (n: number) => string, more: Json = {}): Json =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`anns-${n}`, { url: urlOf(n), owner: 'ann', storedByUser: true, ...more }]))
/** The servers that are connected: their names. */
const connectedTo = ({ output }: ProcessHub, names: readonly string[]): string[] =>
  names.filter((name) => output().includes(`"msg":"${name}: connected, speaks MCP `))
/** A gateway, and the time that these of its servers take to connect, in ms. */
async function timeToConnect (t: Cleanup, servers: Json, names: readonly string[], env: Record<string, string> = {}): Promise<number> {
  const hub = await spawnHub(t, { settings: settings(servers, { users }), env: { OUTBOUND_ALLOW: '127.0.0.0/8', ...env } })
  const begun = performance.now()
  await until(() => connectedTo(hub, names).length === names.length, () => hub.output().slice(-4_000))
  return performance.now() - begun
}

test('60 names of one user that are answered slowly delay no server of others', async (t) => {
  const upstream = await startUpstream(t)
  const { asked, env } = await nameServer(t)
  const took = await timeToConnect(t, {
    ...anns(60, (n) => `http://n${n}.slow.test:9/mcp`),
    bens: { url: `http://ben.quick.test:${upstream.port}/mcp`, owner: 'ben', storedByUser: true },
    admins: { url: `http://localhost:${upstream.port}/mcp` }
  }, ['bens', 'admins'], env)
  t.comment(`${Math.round(took)} ms`)
  assert.ok(took < 2_000, `${Math.round(took)} ms`)
  const slow = new Set(asked.filter((name) => name.endsWith('.slow.test')))
  assert.ok(asked.includes('ben.quick.test'))
  assert.equal(slow.size, 1, `${[...slow].join()} are looked up at the same time`)
})

test('100 servers of one user that accept a connection and say nothing delay no server of others', async (t) => {
  const upstream = await startUpstream(t)
  // A place among those that dial is held until the connection is open, not until there is an answer (DECISIONS §7).
  const pit = createServer((socket) => { socket.on('error', () => {}) })
  await new Promise<void>((resolve) => { pit.listen(0, '127.0.0.1', resolve) })
  t.after(() => { pit.close() })
  const { port } = pit.address() as AddressInfo
  const took = await timeToConnect(t, {
    ...anns(100, (n) => `http://127.0.0.1:${port}/${n}`, { type: 'sse' }),
    bens: { url: upstream.url, owner: 'ben', storedByUser: true },
    admins: { url: upstream.url }
  }, ['bens', 'admins'])
  t.comment(`${Math.round(took)} ms`)
  assert.ok(took < 2_000, `${Math.round(took)} ms`)
})

test('140 logins from one address delay an admin at another one by little', async (t) => {
  const password = 'the-admin-1'
  const admin = { username: 'admin', isAdmin: true, password: await new Passwords().hash(password) }
  const hub = await spawnHub(t, { settings: settings({}, { users: [admin] }), env: { TRUST_PROXY: 'loopback' } })
  const logIn = async (username: string, address: string): Promise<number> => {
    const { status } = await fetch(`${hub.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
      body: JSON.stringify({ username, password })
    })
    return status
  }
  const guesses = Array.from({ length: 140 }, async (_, n) => await logIn(`nobody-${n}`, '203.0.113.7').catch(() => 0))
  await new Promise((resolve) => { setTimeout(resolve, 300) })
  const begun = performance.now()
  assert.equal(await logIn('admin', '198.51.100.2'), 200)
  const took = performance.now() - begun
  t.comment(`${Math.round(took)} ms`)
  assert.ok(took < 2_000, `${Math.round(took)} ms`)
  await hub.stop()
  const statuses = await Promise.all(guesses)
  assert.equal(statuses.filter((status) => status === 429).length, 140 - 96, 'the address has its share')
})
