// Ten minutes in which servers crash and go away, servers are reloaded, and clients hang up in the middle of calls and streams: a gateway
// of its own process grows by nothing. `npm run soak -- churn`; SOAK_MINUTES takes another number.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { manage } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { connected, open, Session, settings } from '../helpers/client.ts'
import { path, spawnHub, until } from '../helpers/hub.ts'
import { modernRequest } from '../helpers/modern-request.ts'

const minutes = Number(process.env.SOAK_MINUTES ?? 10)
const sampleTime = minutes * 60_000 / 10

interface Sample { readonly heap: number, readonly files: number, readonly children: number }

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN

test(`${minutes} minutes of crashes, reloads and disconnects`, async (t) => {
  const heapFile = join(await temporaryFolder(t), 'heap')
  const upstream = await startUpstream(t, {
    tools: [tool('echo'), tool('hang')],
    on: ({ method, params }) => method === 'tools/call' && params?.name === 'hang' ? 'never' : undefined
  })
  const stdio = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
  const hub = await spawnHub(t, {
    settings: settings({
      http: { url: upstream.url },
      apart: { url: upstream.url, isolation: 'session' },
      child: stdio,
      mortal: stdio
    }),
    env: { NODE_OPTIONS: `--import ${path('test/fakes/heap-probe.mjs')}`, HEAP_FILE: heapFile }
  })
  await connected(hub, 4)

  const heaps = (): number[] => existsSync(heapFile) ? readFileSync(heapFile, 'utf8').split('\n').slice(0, -1).map(Number) : []
  const openFiles = (): number => readdirSync(`/proc/${hub.pid}/fd`).length
  const children = (): number =>
    readFileSync(`/proc/${hub.pid}/task/${hub.pid}/children`, 'utf8').split(' ').filter((each) => each !== '').length
  const sample = async (): Promise<Sample> => {
    const known = heaps().length
    process.kill(hub.pid, 'SIGWINCH')
    await until(() => heaps().length > known, 'the heap was not measured')
    return { heap: heaps().at(-1) ?? NaN, files: openFiles(), children: children() }
  }

  const reload = async (): Promise<void> => {
    for (const name of ['http', 'child', 'apart', 'mortal']) await manage(hub, 'POST', `/servers/${name}/reload`)
  }
  /** A client that uses everything, and hangs up in the middle of a call and of its stream. */
  const use = async (): Promise<void> => {
    const session = await Session.open(`${hub.url}/mcp`)
    const stream = await session.listen()
    await session.request('tools/list')
    for (const name of ['http-echo', 'apart-echo', 'child-echo', 'mortal-echo']) {
      await session.request('tools/call', { name, arguments: {} })
    }
    const calls = await Promise.all(['http-hang', 'apart-hang', 'child-hang'].map(async (name, id) => {
      const params = { name, arguments: {}, _meta: { progressToken: id } }
      return await session.start({ jsonrpc: '2.0', id: `h${id}`, method: 'tools/call', params }).catch(() => undefined)
    }))
    const hanging = modernRequest('tools/call', { params: { name: 'http-hang', arguments: {} } })
    const modern = await open(`${hub.url}/mcp`, hanging).catch(() => undefined)
    for (const each of [...calls, modern, stream]) each?.close()
    await session.end()
  }
  /** Ends a process, sessions, connections and a whole server under the clients. */
  const disturb = async (round: number): Promise<void> => {
    const session = await Session.open(`${hub.url}/mcp`)
    await session.request('tools/call', { name: 'mortal-exit', arguments: {} })
    if (round % 3 === 0) upstream.expire()
    if (round % 5 === 0) await reload()
    if (round % 7 === 0) {
      await upstream.close()
      await session.request('tools/call', { name: 'http-echo', arguments: {} })
      await upstream.listen()
    }
    await session.end()
    upstream.received.length = 0
  }

  /** An idle connection that the gateway closes while the client takes it again fails the request. */
  const mustBeAlive = (error: unknown): void => {
    if (!(error instanceof TypeError) || hub.child.exitCode !== null || hub.child.signalCode !== null) throw error
  }
  const samples: Sample[] = []
  const settle = async (): Promise<void> => {
    await reload()
    await connected(hub, 4)
    // Connections of the last round close a little later.
    const most = (key: keyof Sample): number => samples.length < 3 ? Infinity : Math.max(...samples.slice(0, 3).map((each) => each[key]))
    const isNoMore = (): boolean => openFiles() <= most('files') && children() <= most('children')
    await until(isNoMore, () => `${openFiles()} open files, ${children()} processes`)
    samples.push(await sample())
  }
  const began = Date.now()
  let rounds = 0
  for (let next = began + sampleTime; samples.length < 10;) {
    const users = Array.from({ length: 8 }, use)
    await Promise.all([...users, disturb(++rounds)].map(async (work) => { await work.catch(mustBeAlive) }))
    if (Date.now() < next) continue
    await settle()
    next = Date.now() + sampleTime
    const { heap = NaN, files, children } = samples.at(-1) ?? {}
    t.comment(`${rounds} rounds: ${(heap / 2 ** 20).toFixed(1)} MiB, ${files} open files, ${children} processes`)
  }
  const heapsOf = (from: number, to: number): number => median(samples.slice(from, to).map(({ heap }) => heap))
  const [early, late] = [heapsOf(1, 4), heapsOf(7, 10)]
  assert.ok(late < early * 1.1, `${early} bytes in use at first, ${late} at last`)
})
