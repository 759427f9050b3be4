// What a gateway process withstands (docs/withstands.md). Linux only: memory and children are read from /proc.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { test } from 'tap'
import { connected, Session, settings, type Json } from '../helpers/client.ts'
import { Raw, startUpstream, tool } from '../fakes/fault-http.ts'
import { path, spawnHub, type ProcessHub } from '../helpers/hub.ts'

const MiB = 1024 * 1024

/** The memory of a process now, in MiB. */
const rssOf = ({ pid }: ProcessHub): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

/** How many children a process has. */
const childrenOf = ({ pid }: ProcessHub): number => readdirSync('/proc').filter((name) => {
  if (!/^\d+$/.test(name)) return false
  try { return readFileSync(`/proc/${name}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')[1] === String(pid) } catch { return false }
}).length

/** The status of a call without credentials, once its answer is read; 0: the connection was closed. */
const call = async (hub: ProcessHub, name: string, reads = true): Promise<number> => await new Promise((resolve) => {
  const sent = request({
    host: '127.0.0.1',
    port: hub.port,
    path: `/api/tools/big/${name}`,
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
  assert.ok(statuses.every((status) => status === 200 || status === 503), statuses.join())
  await Promise.all(Array.from({ length: 30 }, async () => await call(hub, 'big', false)))
  assert.equal(await call(hub, 'small'), 200)
  t.comment(`${statuses.filter((status) => status === 200).length} of 60 served, at most ${Math.round(peak)} MiB`)
  assert.ok(peak < 600, `${Math.round(peak)} MiB`)
})

test('clients that declare what nobody declared before', async (t) => {
  const count = 6
  const stdio = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
  const hub = await spawnHub(t, { settings: settings(Object.fromEntries(Array.from({ length: count }, (_, n) => [`s${n}`, stdio]))) })
  await connected(hub, count)
  assert.equal(childrenOf(hub), count)

  await t.test('are answered at once, and start no process with a list', async () => {
    const session = await Session.open(`${hub.url}/mcp`, { capabilities: { elicitation: {}, roots: { listChanged: true } } })
    const before = performance.now()
    const tools = await session.tools()
    const took = performance.now() - before
    assert.equal(tools.length, 11 * count)
    assert.ok(took < 1_000, `${Math.round(took)} ms`)
    assert.equal(childrenOf(hub), count)
    await session.call('s0-echo', { message: 'hi' })
    assert.equal(childrenOf(hub), count + 1, 'a call starts the one that it needs')
  })

  await t.test('start no more processes than one principal may have', async () => {
    const sets = Array.from({ length: 25 }, (_, n): Json => ({ sampling: { tools: { n } }, elicitation: { form: { n } } }))
    for (const capabilities of sets) {
      const session = await Session.open(`${hub.url}/mcp`, { capabilities })
      for (let n = 0; n < 3; n++) await session.call(`s${n}-echo`, { message: 'hi' }).catch(() => {})
    }
    const children = childrenOf(hub)
    t.comment(`${children} processes for ${count} servers`)
    assert.ok(children <= count + 16 + 1, `${children} processes`)
    const other = await Session.open(`${hub.url}/mcp`, {})
    assert.match(JSON.stringify(await other.call('s0-echo', { message: 'hi' })), /hi/)
  })
})
