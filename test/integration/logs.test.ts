// The log that admins read: the ring, what children print, the stream, and that no secret is in it.
import assert from 'node:assert/strict'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { mock } from 'node:test'
import { test } from 'tap'
import { prepareLog } from '../../plugins/extensions/logs/logger.ts'
import { LogRing, type LogEntry } from '../../plugins/extensions/logs/ring.ts'
import { maskLikelyCredentials } from '../../plugins/base/secrets/own-credentials.ts'
import { assertNoCanary, canary } from '../fakes/canaries.ts'
import { loggedIn, manage, managed } from '../fakes/replica.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { connected, KEY, Session, settings, type Json } from '../helpers/client.ts'
import { appFor } from '../helpers/app.ts'
import { mockTimers } from '../helpers/clock.ts'
import { startHub, until, type Hub } from '../helpers/hub.ts'

const PASSWORD = 'Open-Sesame-1'

/** A server that says lines on stderr and lives on without speaking MCP. */
const talks = (...lines: string[]): Json => ({
  command: process.execPath,
  args: ['-e', `for (const line of ${JSON.stringify(lines)}) console.error(line); setInterval(() => {}, 1e6)`]
})

const logs = async (hub: Pick<Hub, 'url'>): Promise<LogEntry[]> => await managed(hub, 'GET', '/logs') as unknown as LogEntry[]

test('the ring keeps the newest lines, as plain text, in bounds', async () => {
  const ring = new LogRing({ entries: 5, message: 20 }, (text) => text.replaceAll('secret', '••••'))
  const heard: Array<string | undefined> = []
  const stop = ring.listen((entry) => { heard.push(entry?.message) })
  for (let n = 0; n < 12; n++) ring.addGatewayLine('info', String(n))
  assert.deepEqual(ring.list().map(({ message }) => message), ['7', '8', '9', '10', '11'])
  for (const [given, wanted] of [
    ['a\r\nb\0c', 'a b c'], ['\u001b[31mred\u001b[0m \u001b]0;title\u0007x', 'red x'],
    ['\u202etext\u2028next', '\u202etext next'], ['x'.repeat(30), 'x'.repeat(20)],
    ['x'.repeat(17) + 'secret', `${'x'.repeat(17)}•••`]
  ] as const) {
    ring.addGatewayLine('warn', given)
    assert.equal(ring.list().at(-1)?.message, wanted)
  }
  ring.addGatewayLine('fatal', 'end')
  ring.addChildLine('files', 'hello')
  const [main, child] = ring.list().slice(-2).map(({ id, timestamp, ...rest }) => rest)
  assert.deepEqual(main, { level: 'fatal', type: 'error', source: 'main', message: 'end' })
  assert.deepEqual(child, { level: 'info', type: 'info', source: 'child', message: 'hello', processId: 'files' })
  ring.clear()
  assert.deepEqual([ring.list(), heard.length, heard.at(-1)], [[], 20, undefined])
  stop()
  ring.addGatewayLine('info', 'again')
  assert.equal(heard.length, 20)
})

test('a line says what it is about: the quota, the guard, the server and the tool of its object', async () => {
  const { logger, ring } = prepareLog({ level: 'info' })
  type LogMethod = (args: unknown[], method: () => void, level: number) => void
  const { hooks: { logMethod } } = logger as unknown as { hooks: { logMethod: LogMethod } }
  for (const [object, sentence, message] of [
    [{ quota: { id: 'q', name: 'Fair' }, freeAt: new Date(0) }, 'a quota is used up', 'a quota is used up (quota "Fair", freeAt "1970-01-01T00:00:00.000Z")'],
    [{ guard: { id: 'g', name: 'Cards' }, action: 'mask', found: ['card', 'iban'], in: 'results', server: 'crm', tool: undefined }, 'a guard found content',
      'a guard found content (guard "Cards", action "mask", found "card, iban", in "results", server "crm")'],
    [{ server: 'crm', reqId: 7, token: 'x' }, 'crm: it printed', 'crm: it printed'],
    [{ event: 'quota', err: new Error('too late') }, 'not sent', 'not sent (event "quota"): too late']
  ] as const) {
    logMethod([object, sentence], () => {}, 40)
    assert.equal(ring.list().at(-1)?.message, message)
  }
})

test('a server that prints much displaces its own lines alone; half of the ring is the gateway\'s', async () => {
  const ring = new LogRing({ entries: 100, message: 20 }, (text) => text)
  const printed = (server: string): string[] => ring.list(server).map(({ message }) => message)
  for (let n = 0; n < 10; n++) ring.addGatewayLine('info', `own ${n}`)
  for (let n = 0; n < 5; n++) ring.addChildLine('quiet', `quiet ${n}`)
  for (let n = 0; n < 1_000; n++) ring.addChildLine('chatty', `chatty ${n}`)
  assert.equal(ring.list().length, 100)
  assert.deepEqual(printed('quiet'), ['quiet 0', 'quiet 1', 'quiet 2', 'quiet 3', 'quiet 4'])
  assert.equal(ring.list().filter(({ source }) => source === 'main').length, 10)
  assert.deepEqual([printed('chatty').length, printed('chatty').at(-1)], [85, 'chatty 999'])
  assert.equal(ring.newest?.message, 'chatty 999')
  for (let n = 0; n < 1_000; n++) ring.addGatewayLine('info', `own ${n}`)
  assert.deepEqual([printed('quiet').length, printed('chatty').length], [5, 23], 'beside the half, as many lines of the gateway')
  for (let n = 0; n < 500; n++) for (let server = 0; server < 200; server++) ring.addChildLine(`server-${server}`, 'x')
  assert.equal(ring.list().length, 100)
  assert.deepEqual(ring.list().map(({ id }) => id), ring.list().map(({ id }) => id).sort((one, other) => one - other))
  assert.equal(ring.list().filter(({ source }) => source === 'main').length, 50)
  ring.clear()
  assert.deepEqual([ring.list(), ring.newest], [[], undefined])
})

test('what looks like a credential is masked', async () => {
  for (const [given, wanted] of [
    [`key ${KEY}.`, 'key thk_••••.'],
    ['Authorization: Bearer abcdefghijklmnop', 'Authorization: Bearer ••••mnop'],
    ['at https://ann:pass@host/x', 'at https://••••@host/x'],
    ['GET /cb?code=abc&x=1&access_token=zzz', 'GET /cb?code=••••&x=1&access_token=••••'],
    ['jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.abc_def-1', 'jwt ••••'],
    ['nothing at all, at http://h.example/a?page=2', 'nothing at all, at http://h.example/a?page=2']
  ] as const) assert.equal(maskLikelyCredentials(given), wanted)
})

test('admins list, clear and follow the log', async (t) => {
  const hub = await startHub(t, { settings: settings({ chatty: talks('I am up', 'and \u001b[1mbold') }), env: { ADMIN_PASSWORD: PASSWORD } })
  await until(async () => (await logs(hub)).some(({ message }) => message === 'and bold'))
  assert.ok(!hub.output().includes('I am up'), 'the log of the process has it at level debug only')
  const all = await logs(hub)
  assert.deepEqual(all.filter(({ source }) => source === 'child').map(({ message, processId, type }) => [message, processId, type]), [
    ['I am up', 'chatty', 'info'], ['and bold', 'chatty', 'info']
  ])
  assert.ok(all.some(({ source, processId }) => source === 'main' && processId === undefined))
  assert.deepEqual(all.map(({ timestamp }) => timestamp), all.map(({ timestamp }) => timestamp).sort((a, b) => a - b))

  await managed(hub, 'POST', '/users', { username: 'ann', password: 'Ann-has-1-too' })
  const ann = await loggedIn(hub, 'ann', 'Ann-has-1-too')
  for (const [method, path] of [['GET', '/logs'], ['DELETE', '/logs'], ['GET', '/logs/stream']] as const) {
    const statuses = await Promise.all([ann, {}].map(async (headers) => (await manage(hub, method, path, undefined, headers)).status))
    assert.deepEqual(statuses, [403, 401], path)
  }

  await managed(hub, 'POST', '/users', { username: 'other', password: 'Other-has-1-too', isAdmin: true })
  const admin = await loggedIn(hub, 'other', 'Other-has-1-too')
  const known = await logs(hub)
  const events: Json[] = []
  let head: IncomingMessage | undefined
  let ended = false
  const request = get(`${hub.url}/api/logs/stream?token=${String(admin['x-auth-token'])}`, (response) => {
    head = response
    let text = ''
    response.on('data', (chunk) => {
      text += String(chunk)
      const parts = text.split('\n\n')
      text = parts.pop() ?? ''
      for (const part of parts) if (part.startsWith('data: ')) events.push(JSON.parse(part.slice(6)) as Json)
    })
    response.on('close', () => { ended = true })
  })
  t.after(() => { request.destroy() })
  await until(() => events.length > 0)
  assert.equal(head?.headers['x-frame-options'], 'DENY', 'a stream has the security headers, too')
  assert.equal(head?.headers['content-type'], 'text/event-stream')
  assert.equal(head?.headers['x-content-type-options'], 'nosniff')
  assert.deepEqual([events[0]?.type, events[0]?.logs], ['initial', known])
  await managed(hub, 'POST', '/groups', { name: 'news', servers: [] })
  await until(() => events.some(({ type, log }) => type === 'log' && String((log as Json).message).includes('create group "news"')))
  assert.equal((await manage(hub, 'DELETE', '/logs')).status, 200)
  assert.deepEqual(await logs(hub), [])
  await until(() => events.at(-1)?.type === 'clear')

  // Who is no admin any more does not follow it any longer.
  assert.equal(ended, false)
  await managed(hub, 'PUT', '/users/other', { isAdmin: false })
  await until(() => ended, 'the stream goes on')
})

test('a stream ends with its login', async (t) => {
  mockTimers(t, 'setTimeout', 'setInterval', 'Date')
  const app = await appFor(t, { users: [{ username: 'admin', password: 'x', isAdmin: true }] }, { JWT_EXPIRES_IN: '1s' })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const user = app.settings.current.users.get('admin')
  assert.ok(user)
  const stream = await fetch(`${url}/api/logs/stream`, { headers: { 'x-auth-token': app.auth.createLoginToken(user) } })
  assert.equal(stream.status, 200)
  // Long before the check at intervals.
  mock.timers.tick(1_000)
  assert.match(await stream.text(), /"initial"/)
})

test('a reader that stops is dropped; at most so many read at once; all end with the process', async (t) => {
  const hub = await startHub(t, { settings: settings({}), env: { MEMORY_BUDGET: String(64 * 1024 * 1024) } })
  const head = `GET /api/logs/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${KEY}\r\n\r\n`
  const statuses: string[] = []
  const sockets = Array.from({ length: 22 }, () => {
    const socket = connect(hub.port, '127.0.0.1', () => { socket.write(head) })
    socket.on('error', () => {})
    socket.once('data', (chunk) => { statuses.push(String(chunk).split(' ')[1] ?? '') })
    return socket
  })
  t.after(() => { for (const socket of sockets) socket.destroy() })
  await until(() => statuses.length === 22)
  const refused = statuses.filter((status) => status !== '200')
  assert.ok(refused.length >= 2 && refused.every((status) => status === '503' || status === '429'), statuses.join())
  for (const socket of sockets) socket.destroy()
  await until(async () => {
    const { status } = await manage(hub, 'GET', '/logs')
    return status === 200
  })
  let ended = false
  const last = get(`${hub.url}/api/logs/stream`, { headers: { authorization: `Bearer ${KEY}` } }, (response) => {
    response.resume()
    response.on('close', () => { ended = true })
  })
  last.on('error', () => { ended = true })
  await new Promise((resolve) => { last.once('response', resolve) })
  await hub.stop()
  await until(() => ended)
})

test('a reader that stops reading is dropped, and costs no memory', async (t) => {
  const app = await appFor(t, settings({}))
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const socket = connect(Number(port), '127.0.0.1', () => {
    socket.write(`GET /api/logs/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${KEY}\r\n\r\n`)
  })
  let closed = false
  socket.on('error', () => {})
  socket.once('close', () => { closed = true })
  await new Promise((resolve) => { socket.once('data', resolve) })
  socket.pause()
  const line = 'x'.repeat(2_000)
  // 32 MiB of unread bytes end it at once (docs/limits.md), without a delay for others.
  for (let n = 0; n < 40_000 && app.server.connections !== 0; n++) {
    app.logs.addGatewayLine('info', line)
    if (n % 500 === 0) await new Promise((resolve) => { setImmediate(resolve) })
  }
  socket.resume()
  await until(() => closed, 'it is not dropped')
})

test('at level debug each call is a line: who, server, tool, outcome, time; no payload', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('fails')], on: ({ method, params }) => method === 'tools/call' && params.name === 'fails' ? { content: [], isError: true } : undefined })
  const config = settings({ fake: { url: upstream.url } })
  const line = /"call":\{[^}]*\}/g
  for (const level of ['debug', 'info']) {
    const hub = await startHub(t, { settings: config, env: { LOG_LEVEL: level } })
    await connected(hub, 1)
    const session = await Session.open(`${hub.url}/mcp/fake`)
    for (const name of ['echo', 'fails']) await session.call(name, { message: canary('payload') })
    await manage(hub, 'POST', '/tools/call/fake', { toolName: 'echo', arguments: { message: canary('payload') } }, { authorization: `Bearer ${KEY}` })
    const calls = (hub.output().match(line) ?? []).map((text) => JSON.parse(text.slice('"call":'.length)) as Json)
    if (level === 'info') {
      assert.deepEqual(calls, [])
      continue
    }
    assert.deepEqual(calls.map(({ user, key, server, method, item, outcome }) => [user, key, server, method, item, outcome]), [
      ['system', 'test', 'fake', 'tools/call', 'echo', 'ok'],
      ['system', 'test', 'fake', 'tools/call', 'fails', 'tool-error'],
      ['system', 'test', 'fake', 'tools/call', 'echo', 'ok']
    ])
    for (const { duration, address } of calls) assert.ok(typeof duration === 'number' && address === '127.0.0.1')
    assert.match(hub.output(), /system \(key \\"test\\"\): fake tools\/call \\"fails\\": tool-error in [\d.]+ ms/)
    assertNoCanary([hub.output()], 'the log')
  }
})

test('no secret that a process prints is in the log', async (t) => {
  const [env, header, arg] = [canary('env'), canary('header'), canary('arg')]
  const script =
    'const { TOKEN, OTHER } = process.env; console.error(TOKEN, process.argv.join()); console.error("line", OTHER); setInterval(() => {}, 1e6)'
  const hub = await startHub(t, {
    settings: settings({
      says: { ...talks(), args: ['-e', script, '--', '--api-key', arg], env: { TOKEN: env, OTHER: header } },
      // It repeats the secret of another server, which only the masks of all servers find.
      quotes: talks(`their header is ${header}`, `Bearer ${canary('bearer')}`, `thk_${canary('key')}`)
    }),
    env: { LOG_LEVEL: 'debug' }
  })
  await until(async () => (await logs(hub)).filter(({ source }) => source === 'child').length >= 5)
  const all = await logs(hub)
  assert.ok(all.some(({ message }) => message.startsWith('their header is ••••')), JSON.stringify(all))
  // A key that stands in `args` is a secret of the config, masked whole.
  const isPrinted = ({ message }: LogEntry): boolean => /their header|Bearer|^••••|line|--api-key/.test(message)
  assert.deepEqual(all.filter(({ source }) => source === 'child'), all.filter(isPrinted), 'each line once, though the level is debug')
  assertNoCanary(all.map((entry) => JSON.stringify(entry)), 'the log')
  assertNoCanary([(await manage(hub, 'GET', '/logs')).text], 'the answer')
})
