// The memory that attacks on a gateway process cost. Linux only: it is read from /proc.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { createConnection } from 'node:net'
import { test } from 'tap'
import { Raw, startUpstream, tool, type Call } from '../fakes/fault-http.ts'
import { startLegacyBridge } from '../fakes/legacy-bridge.ts'
import { connected, Session, settings } from '../helpers/client.ts'
import { path, spawnHub, type Hub, type ProcessHub } from '../helpers/hub.ts'
import { median } from '../helpers/measured.ts'
import { modernRequest } from '../helpers/modern-request.ts'

const MiB = 1024 * 1024

/** The memory of a process now, in MiB. */
const rssOf = ({ pid }: ProcessHub): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

/** The most that the memory of the gateway grows by some work, in MiB. */
async function growth (hub: ProcessHub, work: () => Promise<unknown>): Promise<number> {
  const before = rssOf(hub)
  let most = before
  const timer = setInterval(() => { most = Math.max(most, rssOf(hub)) }, 10)
  try { await work() } finally { clearInterval(timer) }
  return Math.max(most, rssOf(hub)) - before
}

/** The status of a call without credentials, once its answer is read; 0: the connection was closed. */
const call = async (hub: Hub, name: string, reads = true, server = 'big'): Promise<number> => await new Promise((resolve) => {
  const headers = { 'content-type': 'application/json' }
  const sent = request({ host: '127.0.0.1', port: hub.port, path: `/api/tools/${server}/${name}`, method: 'POST', headers }, (reply) => {
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
  const start = rssOf(hub)
  const grown = await growth(hub, async () => {
    const calls = Array.from({ length: 60 }, async () => await call(hub, 'big'))
    for (let n = 0; n < 20; n++) assert.equal(await call(hub, 'small'), 200)
    const statuses = await Promise.all(calls)
    assert.ok(statuses.includes(200), 'some are served')
    assert.ok(statuses.every((status) => [200, 429, 503].includes(status)), statuses.join())
    await Promise.all(Array.from({ length: 30 }, async () => await call(hub, 'big', false)))
    assert.equal(await call(hub, 'small'), 200)
  })
  t.comment(`at most ${Math.round(start + grown)} MiB`)
  assert.ok(start + grown < 600, `${Math.round(start + grown)} MiB`)
})

/** Answers a call with a large text, in HTTP chunks of one size. */
const inChunks = (size: number, length: number) => ({ method, id, res: { socket } }: Call): 'taken' | undefined => {
  if (method !== 'tools/call' || !socket) return undefined
  const text = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[{"type":"text","text":"${'x'.repeat(length)}"}]}}`
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
  return 'taken'
}

test('what comes in small chunks costs no more memory than what comes in large ones', async (t) => {
  const tools = [tool('big')]
  const { url: big } = await startUpstream(t, { tools, on: inChunks(4_096, 15 * MiB) })
  const { url: bits } = await startUpstream(t, { tools, on: inChunks(1, MiB) })
  const hub = await spawnHub(t, { settings: settings({ big: { url: big, visibility: 'public' }, bits: { url: bits, visibility: 'public' } }) })
  await connected(hub, 2)
  for (const [name, server] of [['an answer of 15 MiB in chunks of 4 KiB', 'big'], ['one of 1 MiB in chunks of one byte', 'bits']] as const) {
    const grown = await median(t, name, async () => await growth(hub, async () => {
      assert.equal(await call(hub, 'big', true, server), 200)
    }))
    assert.ok(grown < 150, `${Math.round(grown)} MiB more`)
  }
  const chunks = '1\r\nx\r\n'.repeat(10_000)
  const send = async (): Promise<void> => await new Promise((resolve) => {
    const socket = createConnection(hub.port, '127.0.0.1')
    socket.on('error', () => {}).on('close', () => { resolve() }).resume()
    socket.write('POST /api/auth/login HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n')
    for (let n = 0; n < 100; n++) socket.write(chunks)
    socket.end('0\r\n\r\n')
  })
  const name = 'four bodies of 1 MB in chunks of one byte'
  const grown = await median(t, name, async () => await growth(hub, async () => await Promise.all([send(), send(), send(), send()])))
  assert.ok(grown < 150, `${Math.round(grown)} MiB more`)
})

test('output of servers without an end costs little memory', async (t) => {
  const stdio = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
  const big = ({ method, params, id, res }: Call): 'taken' | undefined => {
    if (method !== 'tools/call' || params.name !== 'big') return undefined
    const chunk = Buffer.alloc(MiB, 'z')
    let sent = 0
    const more = (): void => {
      while (sent++ < 512 && !res.destroyed) if (!res.write(chunk)) { res.once('drain', more); return }
      res.end('"}]}}')
    }
    res.writeHead(200, { 'content-type': 'application/json' })
      .write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[{"type":"text","text":"`)
    more()
    return 'taken'
  }
  const upstream = await startUpstream(t, { tools: [tool('big')], on: big })
  const hub = await spawnHub(t, { settings: settings({ flood: stdio, endless: stdio, large: { url: upstream.url } }) })
  await connected(hub, 3)
  const session = await Session.open(`${hub.url}/mcp`)
  for (const [name, args, most] of [
    ['flood-stderr', { mib: 64 }, 100],
    ['endless-endless', { mib: 512 }, 200],
    ['large-big', {}, 200]
  ] as const) {
    const grown = await median(t, name, async () => await growth(hub, async () => await session.request('tools/call', { name, arguments: args })))
    assert.ok(grown < most, `${name}: ${Math.round(grown)} MiB`)
  }
})

test('1,000 calls of modern clients that wait for answers take less than 150 MiB', async (t) => {
  const { url } = await startLegacyBridge(t)
  const hub = await spawnHub(t, { settings: settings({ s: { url, isolation: 'shared' } }) })
  await connected(hub, 1)
  const asked = modernRequest('tools/call', { params: { name: 'form' }, capabilities: { elicitation: {} } })
  let begun = 0
  const grown = await growth(hub, async () => await Promise.all(Array.from({ length: 20 }, async () => {
    while (begun++ < 1_000) assert.match(await (await fetch(`${hub.url}/mcp/s`, { method: 'POST', ...asked })).text(), /input_required/)
  })))
  t.comment(`${Math.round(grown)} MiB`)
  assert.ok(grown < 150, `${Math.round(grown)} MiB`)
})
