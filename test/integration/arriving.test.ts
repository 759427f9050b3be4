// What arrives on one connection: requests that nobody waits for, chunks of a byte, bodies of requests that are answered already.
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import Fastify, { type FastifyInstance } from 'fastify'
import { test } from 'tap'
import { limitUnreadBody } from '../../plugins/base/body/unread.ts'
import connections from '../../plugins/base/limits/connections.ts'
import { memoryBudget } from '../../plugins/base/limits/memory.ts'
import { appFor } from '../helpers/app.ts'
import { silence } from '../helpers/client.ts'
import { turnsOfLoop } from '../helpers/clock.ts'
import { until, type Cleanup } from '../helpers/hub.ts'
import { dial, type Client } from '../helpers/sockets.ts'
import { setLimits } from '../helpers/patient.ts'
import { baseLimits } from '../../plugins/base/limits/limits.ts'

const { requests: most, chunks, chunk, unread, unreadChunks, linger } = baseLimits.arriving

const isOver = ({ socket }: Client): boolean => socket.destroyed || socket.readableEnded

/** The gateway, listening, with the number of pieces of bodies that it was handed. */
async function gateway (
  t: Cleanup,
  env: { TRUST_PROXY?: string } = {},
  settings: object = {}
): Promise<{ app: FastifyInstance, log: () => string, pieces: () => number }> {
  let log = ''
  const app = await appFor(t, settings, env, { logger: { level: 'warn', stream: { write: (text: string) => { log += text } } } })
  await app.listen({ host: '127.0.0.1', port: 0 })
  let pieces = 0
  app.server.on('request', (request: IncomingMessage) => {
    const push = request.push.bind(request)
    request.push = (piece, encoding) => {
      if (piece !== null) pieces++
      return push(piece, encoding)
    }
  })
  return { app, log: () => log, pieces: () => pieces }
}

const chunked = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`
const pieceOf = (size: number): string => `${size.toString(16)}\r\n${' '.repeat(size)}\r\n`
const login = JSON.stringify({ username: 'ann', password: 'none-of-these' })
const get = (path: string, more = 'host: 127.0.0.1\r\n'): string => `GET ${path} HTTP/1.1\r\n${more}\r\n`

test('a body in chunks of a byte is refused, and the rest of it is not read', async (t) => {
  const { app } = await gateway(t)
  await t.test('before its request is answered: 400', async () => {
    const client = await dial(t, app)
    client.socket.write(chunked('/api/auth/login') + pieceOf(1).repeat(10_000))
    await until(() => isOver(client), 'it is open')
    assert.match(client.read(), /^HTTP\/1\.1 400 .*TH_TINY_CHUNKS/s)
    assert.equal(client.answers(), 1)
  })
  for (const path of ['/mcp', '/api/servers', '/api/tools/call/none']) {
    await t.test(`after it was answered: ${path}`, async () => {
      const client = await dial(t, app)
      client.socket.write(chunked(path))
      await until(() => client.answers() === 1, 'no answer')
      client.socket.write(pieceOf(1).repeat(10_000))
      await until(() => isOver(client), 'it is open')
      assert.equal(client.answers(), 1)
    })
  }
})

test('chunks of some size, or few small ones, are taken', async (t) => {
  const { app, pieces: handed } = await gateway(t)
  const client = await dial(t, app)
  const taken = async (pieces: readonly string[], isOneByOne = false): Promise<void> => {
    const before = client.answers()
    client.socket.write(chunked('/api/auth/login'))
    for (const piece of pieces) {
      const before = handed()
      client.socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`)
      if (isOneByOne) while (handed() === before) await turnsOfLoop(1)
    }
    client.socket.write('0\r\n\r\n')
    await until(() => client.answers() > before, client.read)
    assert.doesNotMatch(client.read(), /HTTP\/1\.1 400/)
  }
  await taken([...Array.from({ length: 100 }, () => ' '.repeat(4_096)), login])
  // A chunk that arrives in two parts counts twice.
  await taken([...Array.from({ length: 2 * chunks }, () => ' '.repeat(chunk + 16)), login])
  await taken([...' '.repeat(chunks - login.length), ...login])
  await taken([...login], true)
  assert.equal(isOver(client), false)
})

test('the rest of a body whose request was answered is read up to a bound, then the connection is closed', async (t) => {
  const { app, pieces } = await gateway(t)
  await t.test('a small rest is read, and the connection stays', async () => {
    const client = await dial(t, app)
    client.socket.write('POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n')
    await until(() => client.answers() === 1, 'no answer')
    client.socket.write(' '.repeat(100_000) + get('/health/live'))
    await until(() => client.answers() === 2, 'no second answer')
    await silence(linger + 200)
    assert.equal(isOver(client), false)
  })
  await t.test('nothing that arrives', async () => {
    const client = await dial(t, app)
    client.socket.write('POST /api/servers HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n')
    await until(() => client.answers() === 1, 'no answer')
    await until(() => isOver(client), 'it is open')
  })
  for (const [what, head, piece] of [
    ['many bytes', chunked('/mcp').replace('transfer-encoding: chunked', 'content-length: 1000000000'), ' '.repeat(64 * 1024)],
    ['many chunks', chunked('/mcp'), pieceOf(100).repeat(600)]
  ] as const) {
    await t.test(what, async () => {
      const client = await dial(t, app)
      const before = pieces()
      client.socket.write(head)
      await until(() => client.answers() === 1, 'no answer')
      const sent = setInterval(() => { if (!client.socket.writableNeedDrain) client.socket.write(piece) }, 1)
      t.after(() => { clearInterval(sent) })
      await until(() => isOver(client), 'it is open')
      // Buffers take some more.
      assert.ok(client.socket.bytesWritten < unread + 32 * 1024 * 1024, String(client.socket.bytesWritten))
      assert.ok(pieces() - before <= unreadChunks + 1_700, `${pieces() - before} pieces were handed over`)
    })
  }
})

/** A server whose answers wait, with the connections of the gateway. */
async function waiting (t: Cleanup, trustProxy = ''): Promise<{ app: FastifyInstance, begun: () => number, answer: () => void }> {
  const app = Fastify({ forceCloseConnections: true })
  t.after(async () => { await app.close() })
  await app.register(connections, { trustProxy, onRequest: limitUnreadBody })
  let begun = 0
  let answer = (): void => {}
  const isAsked = new Promise<void>((resolve) => { answer = resolve })
  app.get('/', async () => {
    begun++
    await isAsked
    return ''
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  return { app, begun: () => begun, answer: () => { answer() } }
}

test('requests that come at once on one connection are answered up to a bound, then it is closed', async (t) => {
  for (const env of [{}, { TRUST_PROXY: '127.0.0.1' }]) {
    await t.test(JSON.stringify(env), async () => {
      const { app, log } = await gateway(t, env)
      const client = await dial(t, app)
      client.socket.write(get('/health/live').repeat(1_000))
      await until(() => isOver(client), 'it is open')
      assert.ok(client.answers() <= most, `${client.answers()} answers`)
      await until(() => log().includes('127.0.0.1 was closed'), 'the log says nothing')
    })
  }
  const { app } = await gateway(t)
  await t.test('up to the bound they are answered', async () => {
    const client = await dial(t, app)
    for (let round = 1; round <= 3; round++) {
      client.socket.write(get('/health/live').repeat(most))
      await until(() => client.answers() === round * most, () => String(client.answers()))
    }
  })
  await t.test('one after the other as many as one likes', async () => {
    const client = await dial(t, app)
    for (let count = 1; count <= 10 * most; count++) {
      client.socket.write(get('/health/live'))
      await until(() => client.answers() === count, () => String(client.answers()))
    }
  })
  for (const [what, more] of [['without a host', ''], ['with an expectation', 'host: 127.0.0.1\r\nexpect: x\r\n']] as const) {
    await t.test(`also those that Node answers itself: ${what}`, async () => {
      const client = await dial(t, app)
      client.socket.write(get('/health/live', more).repeat(1_000))
      await until(() => isOver(client), 'it is open')
      assert.ok(client.answers() <= 1, `${client.answers()} answers`)
    })
  }
})

test('requests of one connection that are not answered have a bound, also those of a proxy', async (t) => {
  for (const trustProxy of ['', '127.0.0.1']) {
    const { app, begun, answer } = await waiting(t, trustProxy)
    const patient = await dial(t, app)
    const client = await dial(t, app)
    for (let count = 1; count <= most; count++) {
      for (const each of [patient, client]) each.socket.write(get('/'))
      await until(() => begun() === 2 * count, () => String(begun()))
    }
    assert.equal(isOver(client), false)
    client.socket.write(get('/'))
    await until(() => isOver(client), 'it is open')
    answer()
    await until(() => patient.answers() === most, () => String(patient.answers()))
    assert.equal(isOver(patient), false)
  }
})

test('who sends a body that is too large gets to see the answer', async (t) => {
  // The client, in this process, may take long to send what the gateway does not read any more.
  setLimits(t, baseLimits.arriving, { linger: 60_000 })
  const { app } = await gateway(t)
  const { port } = app.server.address() as AddressInfo
  for (const size of [2, 8, 16]) {
    const body = JSON.stringify({ username: 'x'.repeat(size * 1024 * 1024), password: 'y' })
    const options = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
    assert.equal((await fetch(`http://127.0.0.1:${port}/api/auth/login`, options)).status, 413, `${size} MiB`)
  }
})

test('a body for a path without a route is neither waited for nor parsed', async (t) => {
  const { app } = await gateway(t)
  for (const path of ['/nothing', '/sse', '/health', '/docs/nothing', '/api/nothing', '/api/servers/a/nothing']) {
    for (const body of ['{"a":', '{}']) {
      const client = await dial(t, app)
      const length = body === '{}' ? 1_000_000 : body.length
      const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${length}`
      client.socket.write(`${head}\r\n\r\n${body}`)
      await until(() => client.answers() === 1, () => `${path} waits for its body`)
      assert.match(client.read(), path === '/sse' || path === '/health' ? /^HTTP\/1\.1 405 / : /^HTTP\/1\.1 404 /, path)
    }
  }
})

test('forms for the authorization server count in the memory of bodies', async (t) => {
  const { app } = await gateway(t, {}, { systemConfig: { oauthServer: { enabled: true } } })
  const form = 'content-type: application/x-www-form-urlencoded'
  const sizes = { '/oauth/token': 50_000, '/oauth/revoke': 50_000, '/oauth/authorize': 50_000, '/oauth/interaction/a/login': 7_000 }
  for (const [path, size] of Object.entries(sizes)) {
    for (const head of [`content-length: ${size}`, 'transfer-encoding: chunked']) {
      const before = memoryBudget.held
      const client = await dial(t, app)
      const half = `client_id=${'x'.repeat(size / 2)}`
      const body = head.startsWith('content') ? half : `${half.length.toString(16)}\r\n${half}\r\n`
      client.socket.write(`POST ${path} HTTP/1.1\r\nhost: localhost\r\n${form}\r\n${head}\r\n\r\n${body}`)
      await until(() => memoryBudget.held - before >= size * baseLimits.bodyCost, () => `${path}, ${head}: ${memoryBudget.held - before} bytes`)
      client.socket.destroy()
      await until(() => memoryBudget.held === before, () => `${path}, ${head}: ${memoryBudget.held - before} bytes are left`)
    }
  }
  // Nothing is left for whoever comes next.
  const taken = memoryBudget.max - 100_000
  memoryBudget.add(taken)
  t.after(() => { memoryBudget.add(-taken) })
  const refused = await fetch(`http://localhost:${(app.server.address() as AddressInfo).port}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: 'x'.repeat(50_000) })
  })
  assert.match(String(refused.status), /^(?:429|503)$/, await refused.text())
})

test('a body of many values counts for what they take when it is parsed for a call over plain HTTP', async (t) => {
  const { app } = await gateway(t, {}, { systemConfig: { routing: { enableBearerAuth: false } } })
  const size = 300_000
  const { port } = app.server.address() as AddressInfo
  const statusOf = async (value: string): Promise<number> => {
    const body = `{"a":[${Array(Math.floor(size / (value.length + 1))).fill(value).join()}]}`
    const headers = { 'content-type': 'application/json' }
    return (await fetch(`http://localhost:${port}/api/tools/none/x`, { method: 'POST', headers, body })).status
  }
  const taken = memoryBudget.max - size * (baseLimits.bodyCost + 2)
  memoryBudget.add(taken)
  t.after(() => { memoryBudget.add(-taken) })
  assert.equal(await statusOf(`"${'x'.repeat(100)}"`), 404)
  assert.match(String(await statusOf('{}')), /^(?:429|503)$/)
})
