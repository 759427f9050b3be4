import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import {
  agent,
  assertPlain,
  at,
  connected,
  failed,
  failure,
  initialize,
  KEY,
  listed,
  send,
  Session,
  settings,
  sleep,
  text,
  within,
  type Json
} from '../helpers/client.ts'
import { Raw, startUpstream, tool, type Answer, type Call } from '../fakes/fault-http.ts'
import { npmServer, path, spawnHub, startHub, until, type Cleanup, type ProcessHub } from '../helpers/hub.ts'

interface Entry { pid: number, event: string, grandchild?: number, id?: unknown, params?: Json }

/** A stdio fake with a log of what it saw; the log's entries so far. */
function stdioFake (t: Cleanup, env: Record<string, string> = {}, more: Json = {}): { config: Json, log: () => Entry[] } {
  const folder = mkdtempSync(join(tmpdir(), 'tool-hub-fault-'))
  const file = join(folder, 'log')
  const log = (): Entry[] =>
    existsSync(file)
      ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Entry)
      : []
  t.after(() => {
    // whatever a gateway left behind, and nothing else
    for (const pid of log().flatMap((entry) => [entry.pid, entry.grandchild ?? entry.pid])) {
      if (alive(pid) && commandOf(pid).includes(process.execPath)) try { process.kill(pid, 'SIGKILL') } catch {}
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
    log
  }
}

const commandOf = (pid: number): string => { try { return readFileSync(`/proc/${pid}/cmdline`, 'utf8') } catch { return '' } }

/** State and parent of a process, from /proc; a zombie counts as gone. */
function stat (pid: number): { state: string, parent: number } | undefined {
  try {
    const [state, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
    return { state: state ?? '', parent: Number(parent) }
  } catch { return undefined }
}

const alive = (pid: number): boolean => !['Z', 'X', undefined].includes(stat(pid)?.state)

/** Every process below this one. */
function descendants (pid: number): number[] {
  const parents = new Map(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((name) => [Number(name), stat(Number(name))?.parent])
  )
  const found: number[] = []
  const walk = (parent: number): void => {
    for (const [child, its] of parents) if (its === parent) { found.push(child); walk(child) }
  }
  walk(pid)
  return found
}

const rss = (hub: ProcessHub): number => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${hub.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

/** Runs something and gives the most that the gateway's memory grew meanwhile, in MiB. */
async function growth (hub: ProcessHub, run: () => Promise<void>): Promise<number> {
  const before = rss(hub)
  let most = before
  const timer = setInterval(() => { most = Math.max(most, rss(hub)) }, 10)
  try { await run() } finally { clearInterval(timer) }
  return Math.max(most, rss(hub)) - before
}

const call = (name: string, args: Json = {}, id: string | number = 'call'): Json => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args }
})

/** The other servers are unaffected: this one answers at once. */
async function assertHealthy (session: Session, name: string): Promise<void> {
  assert.equal(text(await within(`${name}, which is healthy`, session.call(name, { message: 'fine' }))), 'fine')
}

test('cancellation reaches the upstream', async (t) => {
  const upstream = await startUpstream(t, {
    tools: [tool('hang'), tool('echo')],
    on: ({ method, params }) => (method === 'tools/call' && params.name === 'hang' ? 'never' : undefined)
  })
  const child = stdioFake(t)
  const hub = await startHub(t, { settings: settings({ http: { type: 'streamable-http', url: upstream.url }, stdio: child.config }) })
  await connected(hub, 2)

  /** The ids (as the upstream knows them) of the calls of `hang`, and of those that were cancelled. */
  const sides = [
    {
      name: 'http',
      open: () =>
        upstream.received
          .filter(({ message }) => message.params?.name === 'hang')
          .map(({ message, session }) => `${session} ${JSON.stringify(message.id)}`),
      cancelled: () =>
        upstream.received
          .filter(({ message }) => message.method === 'notifications/cancelled')
          .map(({ message, session }) => `${session} ${JSON.stringify(message.params?.requestId)}`)
    },
    {
      name: 'stdio',
      open: () =>
        child
          .log()
          .filter((entry) => entry.event === 'hang')
          .map((entry) => `${entry.pid} ${JSON.stringify(entry.id)}`),
      cancelled: () =>
        child
          .log()
          .filter((entry) => entry.event === 'notifications/cancelled')
          .map((entry) => `${entry.pid} ${JSON.stringify(entry.params?.requestId)}`)
    }
  ]

  for (const { name, open, cancelled } of sides) {
    const started = async (count: number): Promise<string> => {
      await until(() => open().length === count, 'the call never reached the upstream')
      return open()[count - 1] ?? ''
    }

    await t.test(`${name}: an SDK client that aborts`, async (t) => {
      const client = await agent(t, `${hub.url}/mcp`)
      const abort = new AbortController()
      const pending = client.callTool({ name: `${name}-hang`, arguments: {} }, undefined, { signal: abort.signal })
      const id = await started(1)
      abort.abort('enough')
      await assert.rejects(pending)
      await until(() => cancelled().includes(id), 'not cancelled')
    })

    await t.test(`${name}: notifications/cancelled, for id 0 and for a text, one of two clients with the same id`, async () => {
      for (const [round, id] of [0, 'zero'].entries()) {
        const [one, two] = [await Session.open(`${hub.url}/mcp`), await Session.open(`${hub.url}/mcp/${name}`)]
        const first = one.post(call(`${name}-hang`, {}, id))
        const mine = await started(2 + round * 2)
        const second = two.post(call('hang', {}, id))
        const others = await started(3 + round * 2)
        await one.notify('notifications/cancelled', { requestId: 'unknown' })
        await one.notify('notifications/cancelled', { requestId: id, reason: 'changed my mind' })
        await until(() => cancelled().includes(mine), 'not cancelled')
        await within('the end of the cancelled call\'s HTTP response', first.catch(() => undefined))
        await sleep(200)
        assert.ok(!cancelled().includes(others), 'another client\'s call was cancelled')
        assert.ok((await one.tools()).length > 0)
        await two.notify('notifications/cancelled', { requestId: id })
        await until(() => cancelled().includes(others), 'not cancelled')
        await within('the end of the other\'s', second.catch(() => undefined))
      }
    })

    await t.test(`${name}: a client that goes away`, async () => {
      const session = await Session.open(`${hub.url}/mcp`)
      const abort = new AbortController()
      const gone = fetch(session.url, {
        method: 'POST',
        signal: abort.signal,
        body: JSON.stringify(call(`${name}-hang`)),
        headers: {
          ...session.headers,
          authorization: `Bearer ${KEY}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json'
        }
      }).catch(() => undefined)
      const id = await started(6)
      await sleep(100)
      abort.abort()
      await gone
      await until(() => cancelled().includes(id), 'not cancelled')
    })

    await t.test(`${name}: each call was cancelled once, under the upstream's own id`, async () => {
      assert.deepEqual(cancelled().filter((id) => open().includes(id)).sort(), open().sort())
      assert.equal(new Set(open()).size, 6)
    })
  }
})

test('timeouts', async (t) => {
  const tick = async ({ params, notify }: Call, ticks: number, written = (token: unknown): unknown => token): Promise<void> => {
    for (let progress = 1; progress <= ticks; progress++) {
      await sleep(300)
      notify('notifications/progress', { progressToken: written(at(params, '_meta', 'progressToken')), progress, total: ticks })
    }
  }
  const upstream = await startUpstream(t, {
    tools: [tool('never'), tool('ticking'), tool('wording'), tool('forever'), tool('echo')],
    on: async (one) => {
      if (one.params.name === 'never') return 'never'
      if (one.params.name === 'ticking') await tick(one, 8)
      // Our token is a number; this server writes it back as a string.
      if (one.params.name === 'wording') await tick(one, 8, String)
      if (one.params.name === 'forever') await tick(one, 40)
      return undefined
    }
  })
  const remote = { type: 'streamable-http', url: upstream.url }
  const hub = await startHub(t, {
    settings: settings({
      brief: { ...remote, options: { timeout: 1_000 } },
      capped: { ...remote, options: { timeout: 1_000, maxTotalTimeout: 2_000 } }
    })
  })
  await connected(hub, 2)
  const session = await Session.open(`${hub.url}/mcp`)
  const progress = { _meta: { progressToken: 'p' } }

  await t.test('a call that is never answered ends with -32001, and is cancelled upstream', async () => {
    const start = Date.now()
    const message = await session.request('tools/call', { name: 'brief-never', arguments: {} })
    assert.ok(Date.now() - start >= 900 && Date.now() - start < 5_000, `${Date.now() - start} ms`)
    assert.equal(message.error?.code, -32001, JSON.stringify(message))
    await until(() => upstream.cancelled.length === 1, 'not cancelled upstream')
  })

  await t.test('progress re-arms it, up to maxTotalTimeout', async () => {
    const answers = await Promise.all(
      ['ticking', 'wording'].map(async (name) =>
        text(await session.ask('tools/call', { name: `brief-${name}`, arguments: {}, ...progress }))
      )
    )
    assert.deepEqual(answers, ['ticking', 'wording'])
    const start = Date.now()
    const message = await session.request('tools/call', { name: 'capped-forever', arguments: {}, ...progress })
    assert.ok(Date.now() - start < 6_000, `${Date.now() - start} ms`)
    assert.equal(message.error?.code, -32001, JSON.stringify(message))
  })
})

test('kill -9 of a stdio child', async (t) => {
  const [one, two] = [stdioFake(t), stdioFake(t)]
  const hub = await startHub(t, { settings: settings({ one: one.config, two: two.config }) })
  await connected(hub, 2)
  const session = await Session.open(`${hub.url}/mcp`)

  await t.test('the next call works within 5 s', async () => {
    const pid = Number(text(await session.call('one-pid')))
    process.kill(pid, 'SIGKILL')
    // a call sent before anyone can know of the death may have run, and is not repeated
    await until(() => !alive(pid), 'not dead')
    await sleep(50)
    assert.notEqual(Number(text(await within('the next call', session.call('one-pid')))), pid)
    await assertHealthy(session, 'two-echo')
  })

  await t.test('a call in flight gets an error', async () => {
    const pid = Number(text(await session.call('two-pid')))
    const pending = session.request('tools/call', { name: 'two-hang', arguments: {} })
    await until(() => two.log().some((entry) => entry.event === 'hang'), 'never in flight')
    process.kill(pid, 'SIGKILL')
    const message = await within('the error', pending)
    assert.ok(failed(message))
    assertPlain(failure(message))
    assert.equal(two.log().filter((entry) => entry.event === 'hang').length, 1, 'a call that may have run was repeated')
    assert.equal(text(await within('the next call', session.call('two-echo', { message: 'back' }))), 'back')
  })

  await t.test('a child that exits by itself', async () => {
    const message = await within('the error', session.request('tools/call', { name: 'two-exit', arguments: { code: 7 } }))
    assert.ok(failed(message))
    assert.equal(text(await within('the next call', session.call('two-echo', { message: 'back' }))), 'back')
    await assertHealthy(session, 'one-echo')
  })
})

test('kill -9 of the gateway, or of its launcher as well', { skip: process.platform !== 'linux' && 'Linux only' }, async (t) => {
  const script = (name: string): string => `setsid sh -c 'trap "" TERM; sleep 308; : ${name}' & exec sleep 308`
  // Ends with its input, which is before anybody can look at what it started.
  const brief = 'setsid sh -c \'trap "" TERM; sleep 308; : brief\' & exec cat > /dev/null'
  const launchers = (pid: number): number[] => descendants(pid).filter((each) => commandOf(each).includes('launcher'))
  const stubborn = 'trap "" TERM; while :; do sleep 308; done'
  const start = async (name: string, ...more: string[]): Promise<{ hub: ProcessHub, pids: number[] }> => {
    const scripts = [script(name), brief, brief, brief, ...more]
    const hub = await spawnHub(t, {
      settings: settings(Object.fromEntries(scripts.map((each, n) => [`left${n}`, { command: 'sh', args: ['-c', each] }])))
    })
    await until(() => descendants(hub.pid).filter((pid) => commandOf(pid).startsWith('sleep\u0000308')).length === scripts.length + 1)
    const pids = descendants(hub.pid)
    t.after(() => { for (const pid of pids) if (['sleep', 'sh'].some((name) => commandOf(pid).startsWith(`${name}\u0000`))) process.kill(pid, 'SIGKILL') })
    return { hub, pids }
  }

  await t.test('all that it started ends, also what left its group', async () => {
    const { hub, pids } = await start('one')
    process.kill(hub.pid, 'SIGKILL')
    await until(() => !pids.some(alive), () => `left: ${pids.filter(alive).map(commandOf).join()}`)
  })

  await t.test('a Ctrl-C for all processes of the terminal leaves ending them to the gateway', async () => {
    const { hub, pids } = await start('two')
    for (const pid of [hub.pid, ...launchers(hub.pid)]) process.kill(pid, 'SIGINT')
    // Without a further signal: a second one cuts the end short.
    await until(() => hub.child.exitCode !== null)
    assert.equal(hub.child.exitCode, 0, hub.output().slice(-2_000))
    assert.deepEqual(pids.filter(alive).map(commandOf), [])
  })

  await t.test('while servers start', async () => {
    for (const delay of [0, 60, 150]) {
      const many = Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`s${n}`, { command: 'sleep', args: ['309'] }]))
      const hub = await spawnHub(t, { settings: settings(many) })
      const sleeps = (): number[] => readdirSync('/proc').map(Number).filter((pid) => pid > 0 && commandOf(pid).startsWith('sleep\u0000309'))
      t.after(() => { for (const pid of sleeps()) process.kill(pid, 'SIGKILL') })
      await until(() => sleeps().length > 0)
      await sleep(delay)
      process.kill(hub.pid, 'SIGKILL')
      await sleep(500)
      await until(() => sleeps().length === 0, 'some are left')
    }
  })

  await t.test('a second Ctrl-C', async () => {
    const { hub, pids } = await start('four', stubborn)
    process.kill(hub.pid, 'SIGINT')
    await sleep(300)
    process.kill(hub.pid, 'SIGINT')
    await until(() => !pids.some(alive), () => `left: ${pids.filter(alive).map(commandOf).join()}`)
  })

  await t.test('without its launcher the gateway goes on, and ends what that had started', async () => {
    const { hub, pids } = await start('three')
    const [launcher = 0] = launchers(hub.pid)
    process.kill(launcher, 'SIGKILL')
    await until(() => !alive(launcher))
    assert.equal((await fetch(`${hub.url}/health`)).status, 200)
    assert.equal(await within('the exit', hub.stop()), 0, hub.output().slice(-2_000))
    // What was killed last has another parent, and may need a moment.
    await until(() => !pids.some(alive), () => `left: ${pids.filter(alive).map(commandOf).join()}`)
  })
})

test('a server that cannot start neither spins nor hurts', async (t) => {
  const dying = stdioFake(t, { FAULT_DIE: '1' })
  const healthy = stdioFake(t)
  const hub = await startHub(t, {
    settings: settings({
      dying: dying.config,
      absent: { type: 'stdio', command: '/nowhere/at/all' },
      refused: { type: 'streamable-http', url: 'http://127.0.0.1:1/mcp' },
      nonsense: { type: 'streamable-http', url: 'nonsense' },
      empty: {},
      healthy: healthy.config
    })
  })
  await listed(hub, ['healthy'])
  const session = await Session.open(`${hub.url}/mcp`)
  for (const name of ['dying', 'absent', 'refused', 'nonsense', 'empty']) {
    const message = await within(name, session.request('tools/call', { name: `${name}-echo`, arguments: {} }))
    assert.ok(failed(message))
    assertPlain(failure(message))
    const reply = await within(`initialize of ${name}`, send(`${hub.url}/mcp/${name}`, { body: initialize() }))
    assert.notEqual(reply.status, 500, reply.body)
    assertPlain(reply.body)
  }
  await assertHealthy(session, 'healthy-echo')
  await sleep(4_000)
  const starts = dying.log().filter((entry) => entry.event === 'start').length
  assert.ok(starts >= 1 && starts <= 20, `${starts} starts`)
  await sleep(2_000)
  assert.ok(dying.log().filter((entry) => entry.event === 'start').length - starts <= 2, 'it is started again and again')
})

test('SIGTERM: exit 0 within 10 s, and no process of any child tree is left', async (t) => {
  const stubborn = stdioFake(t, { FAULT_STUBBORN: '1' })
  const isolated = stdioFake(t, { FAULT_STUBBORN: '1' }, { isolation: 'session' })
  const upstream = await startUpstream(t, { tools: [tool('hang')], on: ({ method }) => method === 'tools/call' ? 'never' : undefined })
  const hub = await spawnHub(t, {
    settings: settings({
      stubborn: stubborn.config,
      isolated: isolated.config,
      local: { type: 'stdio', ...npmServer('everything', 'stdio') },
      http: { type: 'streamable-http', url: upstream.url }
    })
  })
  await listed(hub, ['stubborn', 'isolated', 'local', 'http'])
  const [one, two] = [await Session.open(`${hub.url}/mcp`), await Session.open(`${hub.url}/mcp`)]
  await one.call('isolated-pid')
  await two.call('isolated-pid')
  const stream = await one.listen()
  const hanging = [
    one.request('tools/call', { name: 'stubborn-hang', arguments: {} }),
    two.request('tools/call', { name: 'http-hang', arguments: {} })
  ]
  await until(() => stubborn.log().some((entry) => entry.event === 'hang') && upstream.count('tools/call') === 1, 'never in flight')
  const finishing = two.request('tools/call', { name: 'stubborn-echo', arguments: { message: 'finished', delay: 1_500 } })
  await sleep(300)
  const logged = [...stubborn.log(), ...isolated.log()].flatMap((entry) =>
    entry.grandchild === undefined ? [entry.pid] : [entry.pid, entry.grandchild]
  )
  const pids = [...new Set([...logged, ...descendants(hub.pid)])]
  assert.ok(pids.length >= 7, `children and grandchildren: ${pids.join(' ')}`)

  const start = Date.now()
  const exited = hub.stop()
  const answers = await within('the answers to calls in flight', Promise.allSettled([...hanging, finishing]))
  const code = await within('the exit', exited)
  const took = Date.now() - start
  assert.equal(code, 0, hub.output().slice(-2_000))
  assert.ok(took < 10_000, `${took} ms`)
  await until(
    () => pids.every((pid) => !alive(pid)),
    () =>
      `left behind: ${pids
        .filter(alive)
        .map((pid) => `${pid} ${commandOf(pid)}`)
        .join(', ')}`
  )
  assert.ok(stream.ended)
  for (const answer of answers.slice(0, 2)) {
    assert.equal(answer.status, 'fulfilled', 'a call in flight got no answer')
    if (answer.status === 'fulfilled') assert.ok(failed(answer.value))
  }
  const [, , last] = answers
  assert.ok(last?.status === 'fulfilled' && text(last.value.result) === 'finished', 'a call that could finish was not let finish')
})

test('a gateway that closes starts no server anew, though its last change of the settings comes then', async (t) => {
  const child = stdioFake(t)
  const hub = await startHub(t, { settings: settings({ child: child.config }) })
  // That the key was used is stored at the end.
  await listed(hub, ['child'])
  assert.equal(await hub.stop(), 0)
  await sleep(500)
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
  const child = stdioFake(t)
  const servers: Json = {}
  for (let index = 0; index < 24; index++) servers[`silent${index}`] = { type: 'streamable-http', url: `http://127.0.0.1:${port}/${index}` }
  for (let index = 0; index < 3; index++) servers[`sse${index}`] = { type: 'sse', url: `http://127.0.0.1:${port}/sse${index}` }
  for (let index = 0; index < 3; index++) servers[`asleep${index}`] = { type: 'stdio', command: 'sleep', args: ['170'] }
  servers.http = { type: 'streamable-http', url: upstream.url }
  servers.child = child.config
  const expected = ['http-echo', 'http-second', 'child-echo', 'child-pid']
  let folder = ''

  await t.test('/health within 2 s, the healthy ones\' tools within 1 s more', async () => {
    const start = Date.now()
    const hub = await spawnHub(t, { settings: settings(servers), wait: false })
    folder = hub.folder
    await until(async () => (await fetch(`${hub.url}/health`)).ok, () => hub.output())
    const up = Date.now()
    // 2 s for the built program alone; the tests beside it take their share
    assert.ok(up - start < 30_000, `/health after ${up - start} ms`)
    const session = await within('initialize', Session.open(`${hub.url}/mcp`))
    let tools: string[] = []
    await until(async () => {
      tools = await within('tools/list', session.tools())
      return expected.every((name) => tools.includes(name))
    }, () => `only ${tools.join(' ')}`)
    assert.ok(Date.now() - up < 30_000, `${Date.now() - up} ms after /health`)
    assert.equal(text(await within('a call', session.call('http-echo', { message: 'm' }))), 'm')
    assert.equal(text(await within('a call', session.call('child-echo', { message: 'm' }))), 'm')
    const health: unknown = await (await fetch(`${hub.url}/health`)).json()
    assert.deepEqual(at(health, 'servers'), { total: 32, connected: 2 })
    const pids = descendants(hub.pid)
    t.after(() => { for (const pid of pids) if (commandOf(pid).startsWith('sleep\u0000')) process.kill(pid, 'SIGKILL') })
    assert.equal(await within('the exit', hub.stop()), 0, hub.output().slice(-2_000))
    assert.deepEqual(pids.filter(alive).map(commandOf), [])
  })

  await t.test('after a restart the list comes at once, from what was known, though an upstream has fallen silent', async () => {
    upstream.options.on = () => 'never'
    const hub = await spawnHub(t, { folder })
    const pids = descendants(hub.pid)
    t.after(() => { for (const pid of pids) if (commandOf(pid).startsWith('sleep\u0000')) process.kill(pid, 'SIGKILL') })
    const session = await within('initialize', Session.open(`${hub.url}/mcp`))
    const start = performance.now()
    const reply = await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} })
    const took = performance.now() - start
    const tools = (reply.messages[0]?.result?.tools ?? []) as { name: string }[]
    for (const name of expected) assert.ok(tools.some((one) => one.name === name), `${name} is not in ${reply.body}`)
    assert.ok(took < 30_000, `${took} ms`)
    assert.ok(existsSync(join(folder, '.tool-hub')), 'DATA_DIR is .tool-hub beside the settings')
    assert.equal(text(await within('a call', session.call('child-echo', { message: 'm' }))), 'm')
  })
})

test('a stdio child that floods, babbles or never ends a line', async (t) => {
  const noisy = stdioFake(t, { FAULT_NOISE: '1' })
  const [flood, endless, healthy] = [stdioFake(t), stdioFake(t), stdioFake(t)]
  const hub = await spawnHub(t, {
    settings: settings({ flood: flood.config, noisy: noisy.config, endless: endless.config, healthy: healthy.config })
  })
  await connected(hub, 4)
  const session = await Session.open(`${hub.url}/mcp`)

  await t.test('64 MiB on stderr', async () => {
    const grown = await growth(hub, async () => {
      const flooding = session.call('flood-stderr', { mib: 64 })
      await assertHealthy(session, 'healthy-echo')
      assert.equal(text(await within('the flood', flooding)), 'flooded')
    })
    assert.ok(grown < 100, `${grown} MiB`)
    await assertHealthy(session, 'flood-echo')
    assert.ok(hub.output().length < 8 * 1024 * 1024, 'the flood went on into our own log')
  })

  await t.test('garbage lines', async () => {
    assert.equal(text(await session.call('noisy-noise')), 'quiet again')
    await assertHealthy(session, 'noisy-echo')
    await assertHealthy(session, 'healthy-echo')
  })

  await t.test('a line without an end', async () => {
    const grown = await growth(hub, async () => {
      const pending = session.request('tools/call', { name: 'endless-endless', arguments: { mib: 512 } })
      await assertHealthy(session, 'healthy-echo')
      const message = await within('the error', pending)
      assert.ok(failed(message), JSON.stringify(message).slice(0, 500))
      assertPlain(failure(message))
      assert.ok(failure(message).length < 2_000)
    })
    assert.ok(grown < 200, `${grown} MiB`)
    await assertHealthy(session, 'healthy-echo')
    await until(
      async () => text(await session.call('endless-echo', { message: 'again' })) === 'again',
      'the server never came back'
    )
  })

  await t.test('a result nested deeper than 1,000 levels is a tool error, one of 500 is passed on', async () => {
    for (const levels of [1_500, 20_000, 300_000]) {
      const message = await within(`${levels} levels`,
        session.request('tools/call', { name: 'healthy-deep', arguments: { levels } })
      )
      assert.ok(failed(message), `${levels} levels: ${JSON.stringify(message).slice(0, 200)}`)
      assertPlain(failure(message))
    }
    assert.ok(!failed(await session.request('tools/call', { name: 'healthy-deep', arguments: { levels: 500 } })))
    await assertHealthy(session, 'healthy-echo')
  })
})

test('an HTTP upstream that answers badly', async (t) => {
  let visited = 0
  const elsewhere = createHttpServer((req, res) => { visited++; res.end('{}') })
  elsewhere.listen(0, '127.0.0.1')
  await once(elsewhere, 'listening')
  t.after(() => { elsewhere.closeAllConnections(); elsewhere.close() })
  const target = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/mcp`
  const head = { 'content-type': 'application/json' }
  const events = { 'content-type': 'text/event-stream' }
  const secret = 'SECRET-BODY at /srv/app/index.js:1:1'

  const misdeeds: Record<string, (one: Call) => void> = {
    status500: ({ res }) => {
      res.writeHead(500, { 'content-type': 'text/html' }).end(`<h1>${secret}</h1>`)
    },
    status429: ({ res }) => {
      res.writeHead(429, head).end(JSON.stringify({ message: secret }))
    },
    html: ({ res }) => {
      res.writeHead(200, { 'content-type': 'text/html' }).end(`<h1>${secret}</h1>`)
    },
    broken: ({ res }) => {
      res.writeHead(200, head).end(`{"jsonrpc":"2.0","${secret}`)
    },
    badUtf8: ({ res, id }) => {
      res
        .writeHead(200, head)
        .end(
          Buffer.concat([
            Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[],"x":"`),
            Buffer.from([0xff, 0xfe]),
            Buffer.from('"}')
          ])
        )
    },
    cut: ({ res }) => {
      res.writeHead(200, { ...head, 'content-length': '5000' }).write('{"jsonrpc":')
      setTimeout(() => {
        res.destroy()
      }, 50)
    },
    reset: ({ res }) => {
      res.destroy()
    },
    redirect: ({ res }) => {
      res.writeHead(307, { location: target }).end()
    },
    wrongId: ({ res }) => {
      res.writeHead(200, head).end('{"jsonrpc":"2.0","id":"somebody else","result":{"content":[]}}')
    },
    empty: ({ res }) => {
      res.writeHead(200, head).end()
    },
    accepted: ({ res }) => {
      res.writeHead(202).end()
    },
    number: ({ res }) => {
      res.writeHead(200, head).end('42')
    },
    nothing: ({ res, id }) => {
      res.writeHead(200, head).end(JSON.stringify({ jsonrpc: '2.0', id }))
    },
    sseCut: ({ res }) => {
      res.writeHead(200, events).write(': hello\n\n')
      setTimeout(() => {
        res.end()
      }, 50)
    },
    sseReset: ({ res }) => {
      res.writeHead(200, events).write('data: {"jsonrpc"')
      setTimeout(() => {
        res.destroy()
      }, 50)
    },
    sseGarbage: ({ res }) => {
      res.writeHead(200, events).end(`event: message\ndata: ${secret}\n\n`)
    }
  }
  const on = (one: Call): Answer => {
    if (one.method !== 'tools/call') return undefined
    const levels = Number(at(one.params, 'arguments', 'levels'))
    switch (one.params.name) {
      case 'misdeed':
        misdeeds[String(at(one.params, 'arguments', 'name'))]?.(one)
        return 'taken'
      case 'deep': return new Raw(`{"content":[],"structuredContent":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}`)
      case 'big': {
        const { res } = one
        const chunk = Buffer.alloc(1024 * 1024, 'z')
        let sent = 0
        const more = (): void => {
          while (sent++ < 512 && !res.destroyed) if (!res.write(chunk)) { res.once('drain', more); return }
          res.end('"}]}}')
        }
        res.writeHead(200, head).write(`{"jsonrpc":"2.0","id":${JSON.stringify(one.id)},"result":{"content":[{"type":"text","text":"`)
        more()
        return 'taken'
      }
      default: return undefined
    }
  }
  const names = Object.keys(misdeeds)
  const upstreams = await Promise.all(
    [...names, 'large'].map(async () => await startUpstream(t, { tools: ['misdeed', 'deep', 'big', 'echo'].map((name) => tool(name)), on }))
  )
  const other = await startUpstream(t)
  const servers: Json = { other: { type: 'streamable-http', url: other.url } }
  for (const [index, name] of [...names, 'large'].entries()) {
    servers[name] = { type: 'streamable-http', url: upstreams[index]?.url, options: { timeout: 3_000 } }
  }
  const hub = await spawnHub(t, { settings: settings(servers) })
  await connected(hub, upstreams.length + 1)
  const session = await Session.open(`${hub.url}/mcp`)

  const answers = names.map(
    async (name) => await within(name, session.request('tools/call', { name: `${name}-misdeed`, arguments: { name } }))
  )
  await assertHealthy(session, 'other-echo')
  await Promise.allSettled(answers)
  for (const [index, name] of names.entries()) {
    await t.test(name, async () => {
      const message = await answers[index] ?? {}
      assert.ok(failed(message), JSON.stringify(message))
      assertPlain(failure(message))
      assert.ok(failure(message) !== '')
      assert.ok(!JSON.stringify(message).includes('SECRET-BODY'), 'the upstream\'s body went through')
      if (/cut|reset|broken/i.test(name)) assert.equal(upstreams[index]?.count('tools/call'), 1, 'a call that may have run was repeated')
    })
  }

  await t.test('all of them work again', async () => {
    await Promise.all(names.map(async (name) => {
      await until(async () => text(await session.call(`${name}-echo`, { message: name })) === name, `${name} never came back`)
    }))
    await assertHealthy(session, 'other-echo')
  })

  await t.test('a redirect to another origin is not followed', async () => { assert.equal(visited, 0) })

  await t.test('a result nested deeper than 1,000 levels', async () => {
    for (const levels of [1_500, 20_000, 300_000]) {
      const message = await within(`${levels} levels`, session.request('tools/call', { name: 'large-deep', arguments: { levels } }))
      assert.ok(failed(message), `${levels} levels: ${JSON.stringify(message).slice(0, 200)}`)
      assertPlain(failure(message))
    }
    assert.ok(!failed(await session.request('tools/call', { name: 'large-deep', arguments: { levels: 500 } })))
    await assertHealthy(session, 'other-echo')
  })

  await t.test('a body of 512 MiB', async () => {
    const grown = await growth(hub, async () => {
      const pending = session.request('tools/call', { name: 'large-big', arguments: {} })
      await assertHealthy(session, 'other-echo')
      const message = await within('the error', pending)
      assert.ok(failed(message))
      assertPlain(failure(message))
    })
    assert.ok(grown < 200, `${grown} MiB`)
  })
})

test('lists that are bad', async (t) => {
  const odd = await startUpstream(t, {
    tools: [
      tool('first'),
      null,
      42,
      { description: 'no name' },
      { name: 7 },
      { name: '' },
      tool('bare', { inputSchema: undefined }),
      tool('line\nbreak'),
      tool('escape\u001b[2J'),
      tool('c1\u0085'),
      tool('last')
    ] as unknown as Json[],
    prompts: [{ name: 'nul\u0000' }, { name: 'fine' }],
    on: ({ method, params }) => (method === 'tools/call' ? { content: [{ type: 'text', text: String(params.name) }] } : undefined)
  })
  const wordy = await startUpstream(t, { tools: [tool('wordy', { description: 'word '.repeat(20_000) })] })
  const spinning = await startUpstream(t, {
    on: ({ method }) => (method === 'tools/list' ? { tools: [tool('again')], nextCursor: 'again' } : undefined)
  })
  const failing = await startUpstream(t, {
    on: ({ method, res }) => {
      if (method !== 'tools/list') return undefined
      res.writeHead(500).end('no')
      return 'taken'
    }
  })
  const scalar = await startUpstream(t, { on: ({ method }) => method === 'tools/list' ? { tools: 'none' } : undefined })
  const uninitialized = await startUpstream(t, { on: ({ method }) => method === 'initialize' ? new Raw('"hello"') : undefined })
  const servers: Json = {}
  for (const [name, { url }] of Object.entries({ odd, wordy, spinning, failing, scalar, uninitialized })) {
    servers[name] = { type: 'streamable-http', url }
  }
  const hub = await startHub(t, { settings: settings(servers) })
  await listed(hub, ['odd', 'wordy'])
  const session = await Session.open(`${hub.url}/mcp`)

  await t.test('an invalid item is left out, the rest is served', async () => {
    const tools = await session.list('tools/list', 'tools')
    const seen = tools.map((one) => one.name)
    assert.ok(seen.includes('odd-first') && seen.includes('odd-last'), seen.join(' '))
    for (const one of tools) assert.match(String(one.name), /^\w+-\w+$/)
    assert.equal(text(await session.call('odd-last')), 'last')
    assert.deepEqual((await session.list('prompts/list', 'prompts')).map((one) => one.name), ['odd-fine'])
    assert.match(hub.output(), /tools: \\"line\u{fffd}break\\" has control characters in its name and is left out/u)
    assert.match(hub.output(), /prompts: \\"nul\u{fffd}\\" has control characters/u)
  })

  await t.test('a description is cut at 16 KiB', async () => {
    const { description } = (await session.list('tools/list', 'tools')).find((one) => one.name === 'wordy-wordy') ?? {}
    assert.ok(
      typeof description === 'string' && description.startsWith('word word') && Buffer.byteLength(description) <= 16 * 1024 + 16,
      String(description).slice(0, 40)
    )
  })

  await t.test('a list whose pages never end is not followed for ever', async () => {
    let before = -1
    await until(async () => {
      if (before === spinning.count('tools/list')) return true
      before = spinning.count('tools/list')
      await sleep(1_000)
      return false
    }, 'it still asks for pages')
    assert.ok(new Set(await session.tools()).size === (await session.tools()).length)
  })
})

test('an HTTP upstream whose session expires', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('count')], resources: [{ uri: 'fault://r', name: 'r' }] })
  const hub = await startHub(t, { settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const calls = (): number => upstream.count('tools/call')

  await t.test('is initialized once more, and the call repeated', async () => {
    assert.equal(text(await session.call('fake-echo', { message: 'before' })), 'before')
    const [before, sent] = [upstream.count('initialize'), calls()]
    upstream.expire()
    assert.equal(text(await within('the call', session.call('fake-echo', { message: 'after' }))), 'after')
    assert.equal(upstream.count('initialize'), before + 1)
    assert.ok(calls() - sent <= 2)
  })

  await t.test('many calls at once re-initialize it once', async () => {
    const before = upstream.count('initialize')
    upstream.expire()
    const results = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => text(await session.call('fake-echo', { message: `m${index}` })))
    )
    assert.deepEqual(results, Array.from({ length: 20 }, (_, index) => `m${index}`))
    assert.equal(upstream.count('initialize'), before + 1)
  })

  await t.test('with its subscriptions and its log level', async () => {
    await session.ask('logging/setLevel', { level: 'warning' })
    await session.ask('resources/subscribe', { uri: 'fault://r' })
    const stream = await session.listen()
    upstream.expire()
    await session.call('fake-echo', { message: 'again' })
    const fresh = [...upstream.sessions.keys()].at(-1)
    const since = () => upstream.received.filter((one) => one.session === fresh).map(({ message }) => message)
    await until(
      () => since().some((one) => one.method === 'resources/subscribe' && one.params?.uri === 'fault://r'),
      'not subscribed again'
    )
    await until(() => since().some((one) => one.method === 'logging/setLevel' && one.params?.level === 'warning'), 'no level')
    await upstream.broadcast('notifications/resources/updated', { uri: 'fault://r' })
    await stream.wait((message) => message.method === 'notifications/resources/updated')
    stream.close()
  })

  await t.test('under a call whose stream broke: it may have run, and is not repeated', async () => {
    upstream.options.on = ({ method, params, res }) => {
      if (method !== 'tools/call' || params.name !== 'count') return undefined
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write('id: x-1\nretry: 500\ndata: \n\n')
      upstream.expire()
      setTimeout(() => { res.destroy() }, 50)
      return 'taken'
    }
    const sent = calls()
    assert.match(
      failure(await within('the error', session.request('tools/call', { name: 'fake-count', arguments: {} }))),
      /may have run/
    )
    assert.equal(calls(), sent + 1)
    assert.equal(text(await within('the next call', session.call('fake-echo', { message: 'next' }))), 'next')
  })

  await t.test('that restarts on its port is found again', async () => {
    await upstream.close()
    upstream.sessions.clear()
    assert.ok(failed(await within('a call to nobody', session.request('tools/call', { name: 'fake-echo', arguments: {} }))))
    await upstream.listen()
    await until(async () => text(await session.call('fake-echo', { message: 'back' })) === 'back', 'never found again')
  })

  await t.test('again and again: an error, not a loop', async () => {
    upstream.options.on = ({ method, session: own, res }) => {
      if (method !== 'tools/call') return undefined
      upstream.sessions.delete(own.id)
      res
        .writeHead(404, { 'content-type': 'application/json' })
        .end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}')
      return 'taken'
    }
    const [initialized, sent] = [upstream.count('initialize'), calls()]
    assert.ok(failed(await within('the error', session.request('tools/call', { name: 'fake-echo', arguments: {} }))))
    assert.ok(
      calls() - sent <= 3 && upstream.count('initialize') - initialized <= 3,
      `${calls() - sent} calls, ${upstream.count('initialize') - initialized} times initialized`
    )
  })
})
