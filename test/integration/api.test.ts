import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile, rm, stat } from 'node:fs/promises'
import { request as httpRequest, Agent } from 'node:http'
import { test } from 'tap'
import bcrypt from 'bcryptjs'
import {
  assertPlain, at, connected, initialize, KEY, names, open, plain, send, Session, settings, sleep, text, within,
  type Json
} from '../helpers/client.ts'
import { Refusal, startUpstream, tool } from '../fakes/fault-http.ts'
import { bearerKey, path, spawnHub, startHub, until, type Hub } from '../helpers/hub.ts'

const PASSWORD = 'Open-Sesame-1'
const SECRET = 'a-secret-of-more-than-thirty-two-bytes-for-the-tests'
const MASK = '••••'
const STDIO = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }

// ---- the API as its clients see it ----------------------------------------------------------------

interface Answer { status: number, text: string, body: unknown, headers: Headers }

/** Every answer of the API in this file, for the search for secrets at the end. */
const transcript: string[] = []

interface Ask { body?: unknown, headers?: Record<string, string>, raw?: string | Uint8Array<ArrayBuffer> }

async function ask (hub: Hub, method: string, route: string, { body, headers, raw }: Ask = {}): Promise<Answer> {
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const reply = await fetch(`${hub.url}${route}`, {
    method,
    headers: { ...(content === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    body: content
  })
  const answer = await reply.text()
  transcript.push(answer)
  let parsed: unknown
  try { parsed = JSON.parse(answer) } catch {}
  return { status: reply.status, text: answer, body: parsed, headers: reply.headers }
}

/** Somebody at the management API. */
class Api {
  readonly hub: Hub
  readonly headers: Record<string, string>
  readonly token: string
  constructor (hub: Hub, headers: Record<string, string>, token = '') {
    this.hub = hub
    this.headers = headers
    this.token = token
  }

  static async login (hub: Hub, username = 'admin', password = PASSWORD): Promise<Api> {
    let answer = await ask(hub, 'POST', '/api/auth/login', { body: { username, password } })
    // that the first admin is there as soon as anything answers has a test of its own
    for (let n = 0; n < 4 && answer.status === 401; n++) {
      await sleep(250)
      answer = await ask(hub, 'POST', '/api/auth/login', { body: { username, password } })
    }
    assert.equal(answer.status, 200, answer.text)
    const token = String(at(answer.body, 'token'))
    return new Api(hub, { 'x-auth-token': token }, token)
  }

  static key (hub: Hub, token: string): Api {
    return new Api(hub, { authorization: `Bearer ${token}` }, token)
  }

  async ask (method: string, route: string, body?: unknown): Promise<Answer> {
    return await ask(this.hub, method, `/api${route}`, { body, headers: this.headers })
  }

  /** A request that must succeed; its data. */
  async ok (method: string, route: string, body?: unknown, status = 200): Promise<Json> {
    return fine(await this.ask(method, route, body), status)
  }

  async add (name: string, config: Json): Promise<Json> {
    return await this.ok('POST', '/servers', { name, config })
  }

  async server (name: string): Promise<Json> {
    return await this.ok('GET', `/servers/${encodeURIComponent(name)}`)
  }

  /** Waits until the server has this status; its record. */
  async has (name: string, status: string): Promise<Json> {
    let record: Json = {}
    await until(
      async () => {
        record = await this.server(name)
        return record.status === status
      },
      () => `${name} never became ${status}: ${JSON.stringify(record)}`
    )
    return record
  }

  async put (name: string, config: unknown, more: Json = {}): Promise<Answer> {
    return await this.ask('PUT', `/servers/${encodeURIComponent(name)}`, { config, ...more })
  }

  async run (server: string, toolName: string, args?: Json): Promise<Answer> {
    return await this.ask('POST', `/tools/call/${encodeURIComponent(server)}`, { toolName, arguments: args })
  }
}

function fine (answer: Answer, status = 200): Json {
  assert.equal(answer.status, status, answer.text)
  assert.equal(at(answer.body, 'success'), true, answer.text)
  const data = at(answer.body, 'data')
  return (typeof data === 'object' && data !== null ? data : {}) as Json
}

/** The envelope of a failure: words for the caller, nothing of our insides. */
function refused (answer: Answer, status: number, what = ''): void {
  assert.equal(answer.status, status, `${what} ${answer.text.slice(0, 1_000)}`)
  assert.equal(at(answer.body, 'success'), false, `${what} ${answer.text.slice(0, 1_000)}`)
  const message = at(answer.body, 'message')
  assert.ok(typeof message === 'string' && message !== '', `${what} ${answer.text.slice(0, 1_000)}`)
  assert.equal(at(answer.body, 'data'), undefined)
  assertPlain(answer.text)
}

/** 400 with the list of what is wrong. */
function invalid (answer: Answer, what = ''): void {
  refused(answer, 400, what)
  const errors = at(answer.body, 'errors')
  assert.ok(Array.isArray(errors) && errors.length > 0, `${what} ${answer.text}`)
  for (const error of errors) assert.ok(typeof at(error, 'path') === 'string' && typeof at(error, 'message') === 'string', answer.text)
}

const onDisk = async (hub: Hub): Promise<Json> => JSON.parse(await readFile(hub.settingsPath, 'utf8')) as Json
const configOnDisk = async (hub: Hub, name: string): Promise<unknown> => at(await onDisk(hub), 'mcpServers', name)
const records = (answer: Answer): Json[] => { fine(answer); return at(answer.body, 'data') as Json[] }
const later = (answer: Answer): unknown =>
  at(answer.body, 'nextCursor') ?? at(answer.body, 'data', 'nextCursor') ?? at(answer.body, 'pagination', 'nextCursor')

/** A signed token, made here. */
function sign (claims: unknown, { alg = 'HS256', secret = SECRET }: { alg?: string, secret?: string } = {}): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const head = `${part({ alg, typ: 'JWT' })}.${part(claims)}`
  const digest = alg === 'none' ? '' : createHmac(`sha${alg.slice(2)}`, secret).update(head).digest('base64url')
  return `${head}.${digest}`
}

const claimsOf = (token: string): Json => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Json

/** The password that the first start printed. */
const printed = (output: string): string => /password[^"'`\n]*["'`]([^"'`\s]{8,})["'`]/i.exec(output.replaceAll('\\', ''))?.[1] ?? ''

// ---- the first admin ------------------------------------------------------------------------------

test('the first admin', async (t) => {
  await t.test('is there as soon as the gateway says that it is ready', async (t) => {
    const hub = await spawnHub(t, { env: { ADMIN_PASSWORD: PASSWORD }, wait: false })
    await until(async () => (await fetch(`${hub.url}/health/ready`)).status === 200, () => hub.output())
    assert.equal((await ask(hub, 'POST', '/api/auth/login', { body: { username: 'admin', password: PASSWORD } })).status, 200)
  })

  await t.test('ADMIN_PASSWORD is its password, is printed nowhere, and is stored as a hash', async (t) => {
    const hub = await spawnHub(t, { env: { ADMIN_PASSWORD: PASSWORD } })
    const admin = await Api.login(hub)
    assert.equal(at((await admin.ask('GET', '/auth/user')).body, 'user', 'username'), 'admin')
    assert.ok(!hub.output().includes(PASSWORD), hub.output())
    const content = await readFile(hub.settingsPath, 'utf8')
    assert.ok(!content.includes(PASSWORD), content)
    assert.equal(at(JSON.parse(content), 'users', 0, 'username'), 'admin')
    assert.equal((await stat(hub.settingsPath)).mode & 0o777, 0o600)
    assert.equal(await hub.stop(), 0)
  })

  await t.test('without it a random one is printed at the first start only, and is still the one after the second start', async (t) => {
    const first = await spawnHub(t)
    t.after(async () => { await rm(first.folder, { recursive: true, force: true }) })
    await until(() => printed(first.output()) !== '', () => `no password in ${first.output()}`)
    const password = printed(first.output())
    await Api.login(first, 'admin', password)
    const before = at(await onDisk(first), 'users')
    assert.ok(!JSON.stringify(before).includes(password))
    assert.equal(await first.stop(), 0)

    const second = await spawnHub(t, { folder: first.folder })
    await Api.login(second, 'admin', password)
    assert.equal(printed(second.output()), '', second.output())
    assert.ok(!second.output().includes(password))
    assert.equal(await second.stop(), 0)

    const third = await startHub(t, { folder: first.folder, env: { ADMIN_PASSWORD: 'Another-Word-2' } })
    await Api.login(third, 'admin', password)
    refused(await ask(third, 'POST', '/api/auth/login', { body: { username: 'admin', password: 'Another-Word-2' } }), 401)
    assert.deepEqual(at(await onDisk(third), 'users'), before)
  })
})

// ---- who is asking --------------------------------------------------------------------------------

test('login and tokens', async (t) => {
  const hub = await startHub(t, { settings: settings({}), env: { ADMIN_PASSWORD: PASSWORD, JWT_SECRET: SECRET, LOG_LEVEL: 'debug' } })
  const login = async (body: unknown): Promise<Answer> => await ask(hub, 'POST', '/api/auth/login', { body })
  const me = async (headers: Record<string, string>, query = ''): Promise<Answer> =>
    await ask(hub, 'GET', `/api/auth/user${query}`, { headers })

  await Api.login(hub)

  await t.test('login answers a token and the user', async () => {
    const answer = await login({ username: 'admin', password: PASSWORD })
    assert.equal(answer.status, 200, answer.text)
    const { success, message, token, user } = answer.body as { success: unknown, message: unknown, token: unknown, user: Json }
    assert.equal(success, true)
    assert.equal(typeof message, 'string')
    assert.match(String(token), /^[\w-]+\.[\w-]+\.[\w-]+$/)
    assert.deepEqual(user, { username: 'admin', isAdmin: true, permissions: { admin: true, servers: 'all', users: true, system: true } })
  })

  await t.test('a wrong password and an unknown user: the same 401', async () => {
    const wrong = await login({ username: 'admin', password: `${PASSWORD}x` })
    const unknown = await login({ username: 'nobody', password: PASSWORD })
    refused(wrong, 401)
    refused(unknown, 401)
    assert.deepEqual(unknown.body, wrong.body)
    for (const [username, password] of [
      ['admin', ''], ['', PASSWORD], ['admin\u0000', PASSWORD], ['__proto__', PASSWORD], ['constructor', 'x'],
      ['admin', 'x'.repeat(5_000)]
    ]) {
      const answer = await login({ username, password })
      assert.ok(answer.status === 400 || answer.status === 401, `${username}: ${answer.text}`)
      refused(answer, answer.status)
    }
  })

  await t.test('and in about the same time', async () => {
    const median = async (username: string): Promise<number> => {
      const times: number[] = []
      for (let n = 0; n < 5; n++) {
        const start = performance.now()
        refused(await login({ username, password: 'Wrong-Word-3' }), 401)
        times.push(performance.now() - start)
      }
      return times.sort((a, b) => a - b)[2] ?? 0
    }
    const [known, unknown] = [await median('admin'), await median('stranger')]
    assert.ok(unknown > known / 3 && known > unknown / 3, `known ${known} ms, unknown ${unknown} ms`)
  })

  await t.test('missing or wrong fields: 400 with errors', async () => {
    for (const body of [
      {}, { username: 'admin' }, { password: PASSWORD }, { username: 7, password: PASSWORD },
      { username: 'admin', password: null }, { username: ['admin'], password: PASSWORD },
      { username: 'admin', password: { $ne: '' } }, [], null, 'text', 7
    ]) { invalid(await login(body), JSON.stringify(body)) }
    refused(await ask(hub, 'POST', '/api/auth/login'), 400)
  })

  await t.test('the eleventh failure in a row: 429 with Retry-After, for that user only', async () => {
    let last: Answer | undefined
    for (let n = 0; n < 12; n++) {
      last = await login({ username: 'guesser', password: `Guess-${n}` })
      if (n < 10) refused(last, 401, `guess ${n}`)
    }
    assert.ok(last !== undefined)
    refused(last, 429)
    assert.ok(Number(last.headers.get('retry-after')) > 0, String(last.headers.get('retry-after')))
    assert.equal((await login({ username: 'admin', password: PASSWORD })).status, 200)
  })

  const admin = await Api.login(hub)

  await t.test('GET /api/auth/user by x-auth-token and by ?token=', async () => {
    const user = { username: 'admin', isAdmin: true, permissions: { admin: true, servers: 'all', users: true, system: true } }
    for (const answer of [await me({ 'x-auth-token': admin.token }), await me({}, `?token=${admin.token}`)]) {
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(answer.body, { success: true, user })
    }
    const other = await me({ authorization: `Bearer ${KEY}` })
    assert.equal(other.status, 200, other.text)
    assert.equal(at(other.body, 'user', 'username'), 'system')
    assert.equal(at(other.body, 'user', 'isAdmin'), true)
  })

  await t.test('nothing, garbage, or a token in the wrong place: 401', async () => {
    for (const headers of [
      {},
      { 'x-auth-token': '' },
      { 'x-auth-token': 'garbage' },
      { 'x-auth-token': 'a.b.c' },
      { 'x-auth-token': KEY },
      { authorization: 'Bearer' },
      { authorization: 'Bearer garbage' },
      { authorization: `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}` },
      { authorization: `Bearer ${admin.token}` },
      { authorization: admin.token },
      { cookie: `token=${admin.token}` },
      { 'x-auth-token': `Bearer ${admin.token}` },
      { authorization: `Bearer ${KEY}x` },
      { authorization: `Bearer ${KEY.slice(0, -1)}` }
    ] as Record<string, string>[]) { refused(await me(headers), 401, JSON.stringify(headers)) }
    refused(await me({}, `?token=${KEY}`), 401)
    refused(await me({}, '?token='), 401)
    refused(await me({}, `?Token=${admin.token}`), 401)
  })

  await t.test('a login is no credential of MCP', async () => {
    for (const [headers, query] of [
      [{ 'x-auth-token': admin.token }, ''],
      [{ authorization: `Bearer ${admin.token}` }, ''],
      [{}, `?token=${admin.token}`]
    ] as [Record<string, string>, string][]) {
      for (const route of ['/mcp', '/api/mcp']) {
        const reply = await send(`${hub.url}${route}${query}`, { key: null, headers, body: initialize() })
        assert.equal(reply.status, 401, `${route} ${JSON.stringify(headers)}: ${reply.body}`)
        assert.match(String(reply.headers.get('www-authenticate')), /^Bearer/)
      }
    }
  })

  await t.test('what is in a token, and what is not taken', async () => {
    const claims = claimsOf(admin.token)
    const now = Math.floor(Date.now() / 1_000)
    assert.equal(Number(claims.exp) - Number(claims.iat), 24 * 3_600)
    assert.equal(claims.sub, 'admin')
    assert.ok(claims.iss !== undefined && claims.aud !== undefined)
    assert.equal(at(JSON.parse(Buffer.from(admin.token.split('.')[0] ?? '', 'base64url').toString()), 'alg'), 'HS256')
    const as = async (token: string): Promise<number> => (await me({ 'x-auth-token': token })).status
    assert.equal(await as(sign(claims)), 200, 'the test signs as the gateway does')
    for (const [what, token] of Object.entries({
      expired: sign({ ...claims, iat: now - 7_200, exp: now - 3_600 }),
      'without expiry': sign(Object.fromEntries(Object.entries(claims).filter(([key]) => key !== 'exp'))),
      'of another issuer': sign({ ...claims, iss: 'somebody' }),
      'for another audience': sign({ ...claims, aud: 'something' }),
      'of a user who is not there': sign({ ...claims, sub: 'nobody' }),
      'of __proto__': sign({ ...claims, sub: '__proto__' }),
      unsigned: sign(claims, { alg: 'none' }),
      'by another algorithm': sign(claims, { alg: 'HS512' }),
      'by another secret': sign(claims, { secret: 'b'.repeat(40) }),
      'by an empty secret': sign(claims, { secret: '' }),
      'tampered with': `${admin.token.slice(0, -3)}AAA`
    })) assert.equal(await as(token), 401, what)
  })

  await t.test('the token of the query reaches no log line', async () => {
    await ask(hub, 'GET', `/api/servers?token=${admin.token}`)
    await ask(hub, 'GET', `/api/nope?token=${admin.token}`)
    await sleep(200)
    for (const secret of [admin.token, admin.token.split('.')[2] ?? '', PASSWORD, KEY, `${PASSWORD}x`]) {
      assert.ok(
        !hub.output().includes(secret),
        `a secret in the log: ${hub.output().split('\n').find((line) => line.includes(secret))}`
      )
    }
  })

  await t.test('a login outlives a restart with the same JWT_SECRET, and no other', async (t) => {
    assert.equal(await hub.stop(), 0)
    const again = await startHub(t, { folder: hub.folder, env: { JWT_SECRET: SECRET } })
    assert.equal((await ask(again, 'GET', '/api/auth/user', { headers: admin.headers })).status, 200)
    await again.stop()
    const without = await startHub(t, { folder: hub.folder })
    refused(await ask(without, 'GET', '/api/auth/user', { headers: admin.headers }), 401)
    assert.match(without.output(), /"level":40[^\n]*JWT_SECRET is not set[^\n]*several gateways/)
    assert.doesNotMatch(again.output(), /JWT_SECRET/)
  })
})

test('a weak ADMIN_PASSWORD, a short JWT_SECRET: taken, with a warning; JWT_EXPIRES_IN', async (t) => {
  const hub = await startHub(t, { env: { ADMIN_PASSWORD: 'kitten', JWT_EXPIRES_IN: '2s', JWT_SECRET: 'short-one' } })
  const admin = await Api.login(hub, 'admin', 'kitten')
  assert.equal((await admin.ask('GET', '/auth/user')).status, 200)
  await sleep(3_200)
  refused(await admin.ask('GET', '/auth/user'), 401)
  for (const secret of ['kitten', 'short-one', admin.token]) assert.ok(!hub.output().includes(secret), hub.output())
  assert.match(hub.output(), /JWT_SECRET/)
  assert.match(hub.output(), /ADMIN_PASSWORD/)
})

// ---- everything else, on one gateway --------------------------------------------------------------

const lost = [
  ['GET', '/api/auth/user'], ['GET', '/api/auth/keys'], ['POST', '/api/auth/keys'], ['DELETE', '/api/auth/keys/{id}'],
  ['GET', '/api/servers'], ['POST', '/api/servers'], ['GET', '/api/servers/{name}'], ['PUT', '/api/servers/{name}'],
  ['DELETE', '/api/servers/{name}'], ['POST', '/api/servers/{name}/toggle'], ['POST', '/api/servers/{name}/reload'],
  ['GET', '/api/groups'], ['POST', '/api/groups'], ['GET', '/api/groups/{id}'], ['PUT', '/api/groups/{id}'],
  ['DELETE', '/api/groups/{id}'], ['POST', '/api/tools/call/{server}']
] as const

test('the management API', async (t) => {
  const fake = await startUpstream(t, {
    tools: [
      tool('echo', { title: 'Echo', annotations: { readOnlyHint: true }, outputSchema: { type: 'object' } }),
      tool('fail'),
      tool('two-words'),
      tool('typed', {
        inputSchema: {
          type: 'object',
          properties: {
            n: { type: 'integer' },
            x: { type: 'number' },
            b: { type: 'boolean' },
            list: { type: 'array', items: { type: 'string' } },
            o: { type: 'object' },
            s: { type: 'string' }
          }
        }
      })
    ],
    prompts: [{ name: 'greet', description: 'Greets' }],
    resources: [{ name: 'note', uri: 'fault://note' }],
    on ({ method, params }) {
      if (method !== 'tools/call') return undefined
      if (params.name === 'fail') return { content: [{ type: 'text', text: 'it failed' }], isError: true }
      if (params.name === 'typed') {
        return { content: [{ type: 'text', text: JSON.stringify(params.arguments) }], structuredContent: { seen: params.arguments } }
      }
      return undefined
    }
  })
  const hub = await startHub(t, { env: { ADMIN_PASSWORD: PASSWORD, LOG_LEVEL: 'debug' } })
  const admin = await Api.login(hub)
  const url = `${hub.url}/mcp`
  const created = await admin.ok('POST', '/auth/keys', { name: 'main' }, 201)
  const KEYED = String(created.token)
  const secrets = new Set([PASSWORD, admin.token])
  const newKey = async (body: Json): Promise<{ id: string, token: string, record: Json }> => {
    const record = await admin.ok('POST', '/auth/keys', body, 201)
    secrets.add(String(record.token))
    return { id: String(record.id), token: String(record.token), record }
  }
  await admin.add('fake', { type: 'streamable-http', url: fake.url, description: 'the fake one' })
  await admin.has('fake', 'connected')

  // A call that waits as long as a call may for a server that never comes; looked at near the end.
  const never = await startUpstream(t, { on: ({ method }) => method === 'initialize' ? 'never' : undefined })
  await admin.add('never', { url: never.url })
  const timed = async <T>(promise: Promise<T>): Promise<{ answer: T, took: number }> => {
    const start = performance.now()
    return { answer: await promise, took: performance.now() - start }
  }
  const waiting = timed(admin.run('never', 'echo'))
  const waitingMcp = timed((async () => {
    const opened = await send(`${url}/never`, { key: KEYED, body: initialize() })
    const id = opened.headers.get('mcp-session-id')
    const last =
      id === null
        ? opened
        : await send(`${url}/never`, {
          key: KEYED,
          headers: { 'mcp-session-id': id },
          body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo' } }
        })
    return last.messages.at(-1)
  })())

  await t.test('without a credential every route says 401, before anything else', async () => {
    for (const [method, route] of lost) {
      for (const headers of [{}, { 'x-auth-token': 'garbage' }, { authorization: 'Bearer thk_garbage' }] as Record<string, string>[]) {
        const filled = route.replace(/\{\w+\}/, 'fake')
        refused(
          await ask(hub, method, filled, { headers, body: method === 'GET' || method === 'DELETE' ? undefined : {} }),
          401,
          `${method} ${route}`
        )
        if (method !== 'GET' && method !== 'DELETE') {
          refused(await ask(hub, method, filled, { headers, body: { wrong: true, name: 7 } }), 401, `${method} ${route}`)
        }
      }
    }
  })

  await t.test('keys: made, shown once, listed masked', async () => {
    const answer = await admin.ask('POST', '/auth/keys', { name: 'first' })
    const record = fine(answer, 201)
    const token = String(record.token)
    secrets.add(token)
    transcript.pop()
    assert.equal(typeof at(answer.body, 'message'), 'string')
    assert.match(token, /^thk_[0-9a-f]{64}$/)
    assert.match(String(record.id), /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
    assert.deepEqual(
      [record.name, record.kind, record.accessType, record.enabled, record.allowedGroups, record.allowedServers],
      ['first', 'system', 'all', true, [], []]
    )
    assert.ok(!Number.isNaN(new Date(String(record.createdAt)).getTime()), JSON.stringify(record))
    const all = records(await admin.ask('GET', '/auth/keys'))
    const listed = all.find((key) => key.id === record.id)
    assert.equal(listed?.token, `${token.slice(0, 8)}...${token.slice(-4)}`)
    assert.deepEqual([listed?.name, listed?.kind, listed?.accessType, listed?.enabled], ['first', 'system', 'all', true])
    for (const key of all) assert.match(String(key.token), /^thk_[0-9a-f]{4}\.\.\.[0-9a-f]{4}$/)
    assert.equal((await Api.key(hub, token).ask('GET', '/servers')).status, 200)
    const second = await newKey({ name: 'first' })
    assert.notEqual(second.token, token)
    transcript.pop()
  })

  await t.test('keys: what is not taken', async () => {
    for (const body of [
      {}, { name: '' }, { name: 7 }, { name: 'prototype' }, { name: 'x', kind: 'root' },
      { name: 'x', accessType: 'everything' }, { name: 'x', kind: 'user' },
      { name: 'x', kind: 'user', owner: 'nobody' }, { name: 'x', allowedServers: 'fake' },
      { name: 'x', enabled: 'yes' }, [], null, 'text'
    ]) { refused(await admin.ask('POST', '/auth/keys', body), 400, JSON.stringify(body)) }
    const mine = await admin.ask('POST', '/auth/keys', { name: 'x', token: `thk_${'0'.repeat(64)}` })
    assert.ok(mine.status === 400 || at(mine.body, 'data', 'token') !== `thk_${'0'.repeat(64)}`, 'nobody chooses their own token')
    transcript.pop()
  })

  await t.test('keys: who opens what', async () => {
    const scoped = await newKey({ name: 'scoped', accessType: 'servers', allowedServers: ['fake'] })
    transcript.pop()
    const users = await newKey({ name: 'user', kind: 'user', owner: 'admin' })
    transcript.pop()
    assert.deepEqual(
      [scoped.record.accessType, scoped.record.allowedServers, users.record.kind, users.record.owner],
      ['servers', ['fake'], 'user', 'admin']
    )
    for (const { token } of [scoped, users]) {
      refused(await Api.key(hub, token).ask('GET', '/servers'), 401)
      refused(await Api.key(hub, token).ask('GET', '/auth/user'), 401)
    }
    assert.equal((await send(`${url}/fake`, { key: scoped.token, body: initialize() })).status, 200)
    assert.equal((await send(`${url}/never`, { key: scoped.token, body: initialize() })).status, 403)
    assert.equal((await send(url, { key: scoped.token, body: initialize() })).status, 403)
    assert.equal((await send(url, { key: users.token, body: initialize() })).status, 200)
    const system = Api.key(hub, KEYED)
    assert.equal(at((await system.ask('GET', '/auth/user')).body, 'user', 'isAdmin'), true)
    await system.add('by-key', { url: fake.url, enabled: false })
    assert.equal(at(await system.server('by-key'), 'config', 'owner'), 'admin')
    assert.equal(
      (await ask(hub, 'GET', '/api/servers', { headers: { authorization: `bearer ${KEYED}` } })).status,
      200,
      'the scheme has no case'
    )
  })

  await t.test('keys: deleted, they are worth nothing at once, and what they opened ends within 5 s', async () => {
    const key = await newKey({ name: 'short-lived' })
    transcript.pop()
    const session = await Session.open(url, { key: key.token })
    const stream = await session.listen()
    assert.equal(stream.status, 200)
    const answer = await admin.ask('DELETE', `/auth/keys/${key.id}`)
    fine(answer)
    assert.ok(!('data' in (answer.body as Json)), answer.text)
    assert.equal((await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).status, 401)
    assert.equal((await send(url, { key: key.token, body: initialize() })).status, 401)
    refused(await Api.key(hub, key.token).ask('GET', '/servers'), 401)
    await within('the end of the stream', stream.done)
    refused(await admin.ask('DELETE', `/auth/keys/${key.id}`), 404)
    for (const id of ['nope', '__proto__', '00000000-0000-4000-8000-000000000000']) {
      refused(await admin.ask('DELETE', `/auth/keys/${id}`), 404, id)
    }
    assert.ok(!records(await admin.ask('GET', '/auth/keys')).some(({ id }) => id === key.id))
    const other = await Session.open(url, { key: KEYED })
    assert.ok((await other.tools()).includes('fake-echo'), 'other keys still work')
  })

  await t.test('servers: the record', async () => {
    const record = await admin.server('fake')
    assert.equal(record.name, 'fake')
    assert.equal(record.status, 'connected')
    assert.equal(record.error, null)
    assert.ok(!Number.isNaN(new Date(String(record.createdAt)).getTime()), JSON.stringify(record))
    assert.deepEqual(names(record.tools), ['echo', 'fail', 'two-words', 'typed'])
    assert.deepEqual(at(record, 'tools', 0), {
      name: 'echo',
      title: 'Echo',
      description: 'The tool echo',
      inputSchema: { type: 'object' },
      outputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
      enabled: true
    })
    assert.deepEqual([at(record, 'prompts', 0, 'name'), at(record, 'prompts', 0, 'enabled')], ['greet', true])
    assert.deepEqual([at(record, 'resources', 0, 'uri'), at(record, 'resources', 0, 'enabled')], ['fault://note', true])
    const config = record.config as Json
    assert.deepEqual(
      [config.type, config.url, config.description, config.owner, config.visibility, config.visibilityDefaulted],
      ['streamable-http', fake.url, 'the fake one', 'admin', 'private', true]
    )
    assert.notEqual(config.enabled, false)
    const listed = records(await admin.ask('GET', '/servers')).find(({ name }) => name === 'fake')
    assert.deepEqual(
      [listed?.status, names(listed?.tools), at(listed, 'config', 'url')],
      ['connected', ['echo', 'fail', 'two-words', 'typed'], fake.url]
    )
    refused(await admin.ask('GET', '/servers/nope'), 404)
    for (const name of ['__proto__', 'constructor', 'nope%2Fnope', '..%2f..%2fetc']) {
      refused(await admin.ask('GET', `/servers/${name}`), 404, name)
    }
  })

  await t.test('servers: create answers at once with the record, enabled by default', async () => {
    const answer = await admin.ask('POST', '/servers', { name: 'child', config: STDIO })
    const record = fine(answer)
    assert.equal(typeof at(answer.body, 'message'), 'string')
    assert.equal(record.name, 'child')
    assert.ok(['connecting', 'connected'].includes(String(record.status)), answer.text)
    assert.equal(at(record, 'config', 'command'), STDIO.command)
    assert.deepEqual(at(record, 'config', 'args'), STDIO.args)
    const now = await admin.has('child', 'connected')
    assert.ok(names(now.tools).includes('pid'))
    assert.equal(at(await onDisk(hub), 'mcpServers', 'child', 'command'), STDIO.command)
    const off = await admin.add('off', { ...STDIO, enabled: false })
    assert.deepEqual([off.status, off.tools, at(off, 'config', 'enabled')], ['disabled', [], false])
  })

  await t.test('servers: names', async () => {
    const config = { url: fake.url, enabled: false }
    for (const name of [
      '', ' ', 'a/b', 'a\\b', '.hidden', '$smart', '_x', ' lead', 'trail ', 'a\u0000b', 'a\nb', '😀', 'a?b', 'a%b',
      'a#b', 'x'.repeat(129), '<b>', 7, null, ['a'], {}, undefined
    ]) { refused(await admin.ask('POST', '/servers', { name, config }), 400, JSON.stringify(name)) }
    for (const name of [
      'constructor', 'prototype', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', 'isPrototypeOf', 'call',
      'openapi', 'openapi.json', 'servers', 'stats', 'batch', 'group', 'groups', 'mcp', 'sse', 'messages', 'api',
      'oauth', 'tools', 'prompts', 'resources'
    ]) { refused(await admin.ask('POST', '/servers', { name, config }), 400, name) }
    const id = await admin.ask('POST', '/servers', { name: '33333333-3333-4333-8333-33333333333A', config })
    refused(id, 400)
    assert.equal(at(id.body, 'message'), '"name" must not look like an id')
    for (const name of ['a', '10', 'with inner space', 'Größe.1_2-3', '日本語', 'x'.repeat(128), 'é'.normalize('NFC')]) {
      assert.equal((await admin.add(name, config)).name, name)
      assert.equal((await admin.server(name)).name, name)
      const gone = await admin.ask('DELETE', `/servers/${encodeURIComponent(name)}`)
      fine(gone)
      assert.ok(!('data' in (gone.body as Json)), gone.text)
      refused(await admin.ask('GET', `/servers/${encodeURIComponent(name)}`), 404)
    }
    refused(await admin.ask('DELETE', '/servers/nope'), 404)
  })

  await t.test('servers: what is no config', async () => {
    const before = await readFile(hub.settingsPath, 'utf8')
    for (const config of [
      undefined, null, [], 'text', 7, {}, { type: 'carrier-pigeon', url: fake.url }, { type: 'stdio' },
      { type: 'stdio', url: fake.url }, { type: 'sse' }, { type: 'streamable-http', command: 'node' },
      { type: 'stdio', command: 7 }, { type: 'stdio', command: '' }, { command: 'node', args: '--version' },
      { command: 'node', args: [7] }, { command: 'node', env: { A: {} } }, { command: 'node', env: [] }, { url: 7 },
      { url: 'not a url' }, { url: '' }, { url: fake.url, headers: { a: {} } }, { url: fake.url, headers: 'a: b' },
      { url: fake.url, visibility: 'everyone' }, { url: fake.url, enabled: 'yes' },
      { url: fake.url, keepAliveInterval: 'often' }, { url: fake.url, isolation: 'none' },
      { url: fake.url, options: { timeout: 'long' } }
    ]) {
      refused(await admin.ask('POST', '/servers', { name: 'bad', config }), 400, JSON.stringify(config))
      refused(await admin.put('fake', config), 400, JSON.stringify(config))
    }
    assert.equal(await readFile(hub.settingsPath, 'utf8'), before)
    refused(await admin.ask('GET', '/servers/bad'), 404)
    assert.equal((await admin.server('fake')).status, 'connected')
  })

  await t.test('servers: lists that are none', async () => {
    for (const config of [
      { url: fake.url, enabled: false, passthroughHeaders: 'x-a' },
      { url: fake.url, enabled: false, passthroughHeaders: [7] },
      { url: fake.url, enabled: false, sharedWithUsers: 'bob' }, { url: fake.url, enabled: false, description: 7 }
    ]) { refused(await admin.ask('POST', '/servers', { name: 'lists', config }), 400, JSON.stringify(config)) }
  })

  await t.test('servers: a name that is taken', async () => {
    refused(await admin.ask('POST', '/servers', { name: 'fake', config: { url: 'http://127.0.0.1:1/other' } }), 400)
    assert.equal(at(await admin.server('fake'), 'config', 'url'), fake.url)
  })

  await t.test('servers: secrets leave in no answer', async () => {
    const secret = (what: string): string => `canary-${what}-${randomBytes(8).toString('hex')}-${what.slice(0, 2)}9z`
    const canaries = {
      env: secret('env'),
      header: secret('header'),
      key: secret('apikey'),
      user: secret('userinfo'),
      query: secret('query'),
      arg: secret('arg'),
      flag: secret('flag'),
      client: secret('client')
    }
    for (const canary of Object.values(canaries)) secrets.add(canary)
    const local = {
      ...STDIO,
      args: [...STDIO.args, `--api-key=${canaries.arg}`, '--token', canaries.flag],
      env: { API_TOKEN: canaries.env }
    }
    const plainUrl = new URL(fake.url)
    const remote = {
      type: 'streamable-http',
      url: `${plainUrl.protocol}//user:${canaries.user}@${plainUrl.host}${plainUrl.pathname}?api_key=${canaries.query}`,
      headers: { Authorization: `Bearer ${canaries.header}`, 'X-Api-Key': canaries.key },
      oauth: { clientId: 'me', clientSecret: canaries.client },
      enabled: false
    }
    const own = { type: 'streamable-http', url: fake.url, headers: { 'X-Api-Key': canaries.key } }
    const answers: Answer[] = []
    for (const [name, config] of Object.entries({ local, remote, own })) {
      answers.push(await admin.ask('POST', '/servers', { name, config }))
      fine(answers.at(-1) ?? assert.fail())
    }
    await admin.has('local', 'connected')
    await admin.has('own', 'connected')
    assert.ok(fake.received.some(({ headers }) => headers['x-api-key'] === canaries.key), 'the upstream gets the real one')
    for (const name of ['local', 'remote', 'own']) {
      answers.push(
        await admin.ask('GET', `/servers/${name}`),
        await admin.ask('GET', '/servers'),
        await admin.ask('GET', '/servers?limit=1000'),
        await admin.ask('POST', `/servers/${name}/toggle`, { enabled: name !== 'remote' })
      )
    }
    answers.push(await admin.ask('POST', '/servers/local/reload'))
    await admin.has('local', 'connected')
    for (const answer of answers) {
      for (const [what, canary] of Object.entries(canaries)) assert.ok(!answer.text.includes(canary), `${what} in ${answer.text}`)
    }

    const shown = {
      local: (await admin.server('local')).config as Json,
      remote: (await admin.server('remote')).config as Json,
      own: (await admin.server('own')).config as Json
    }
    assert.equal(at(shown.local, 'env', 'API_TOKEN'), MASK + canaries.env.slice(-4))
    assert.equal(at(shown.own, 'headers', 'X-Api-Key'), MASK + canaries.key.slice(-4))
    for (const [what, value] of Object.entries({
      args: shown.local.args,
      url: decodeURIComponent(String(shown.remote.url)),
      Authorization: at(shown.remote, 'headers', 'Authorization'),
      clientSecret: at(shown.remote, 'oauth', 'clientSecret')
    })) { assert.ok(JSON.stringify(value).includes(MASK), `${what}: ${JSON.stringify(value)}`) }
    assert.equal(at(shown.local, 'args', 0), STDIO.args[0], 'what is no secret is shown')

    for (const [name, config] of Object.entries<Json>({ local, remote, own })) {
      const before = await configOnDisk(hub, name)
      fine(await admin.put(name, at(shown, name)))
      const after = await configOnDisk(hub, name)
      assert.deepEqual(after, before, name)
      for (const value of Object.values((config.headers ?? config.env) as Json)) {
        assert.ok(JSON.stringify(after).includes(String(value)), name)
      }
      assert.deepEqual((await admin.server(name)).config, at(shown, name), name)
    }
    await admin.has('own', 'connected')

    for (const [what, answer] of Object.entries({
      'another url': await admin.put('own', { ...shown.own, url: `${fake.url}/elsewhere` }),
      'another host': await admin.put('own', { ...shown.own, url: 'http://127.0.0.1:1/mcp' }),
      'another command': await admin.put('local', { ...shown.local, command: '/bin/cat' }),
      'a command instead of the url': await admin.put('own', { type: 'stdio', command: 'cat', env: at(shown.own, 'headers') }),
      'a mask that is not the one given': await admin.put('own', { ...shown.own, headers: { 'X-Other': `${MASK}abcd` } })
    })) refused(answer, 400, what)
    for (const config of [
      shown.own, { url: fake.url, headers: { a: `${MASK}1234` } }, { ...STDIO, env: { TOKEN: `${MASK}1234` } },
      { ...STDIO, args: ['--token', `${MASK}1234`] }, { url: `http://user:${MASK}1234@127.0.0.1:1/mcp` }
    ]) { refused(await admin.ask('POST', '/servers', { name: 'masked', config }), 400, JSON.stringify(config)) }
    assert.equal(at(await configOnDisk(hub, 'own'), 'headers', 'X-Api-Key'), canaries.key)

    const changed = { ...shown.own, description: 'changed', headers: { ...shown.own.headers as Json, 'X-Second': 'plain-second' } }
    fine(await admin.put('own', changed))
    assert.deepEqual(at(await configOnDisk(hub, 'own'), 'headers'), { 'X-Api-Key': canaries.key, 'X-Second': 'plain-second' })
    fine(await admin.put('own', { ...shown.own, headers: { 'X-Api-Key': 'a-new-key-0000' } }))
    assert.deepEqual(at(await configOnDisk(hub, 'own'), 'headers'), { 'X-Api-Key': 'a-new-key-0000' })
    for (const name of ['local', 'remote', 'own']) fine(await admin.ask('DELETE', `/servers/${name}`))
  })

  await t.test('servers: an update replaces the config; owner, visibility, enabled and overrides stay when absent', async () => {
    await admin.add('changing', { url: fake.url, description: 'one', headers: { 'X-A': 'a' } })
    await admin.has('changing', 'connected')
    const answer = await admin.put('changing', { url: fake.url, description: 'two' })
    const record = fine(answer)
    assert.deepEqual([
      at(record, 'config', 'description'), at(record, 'config', 'owner'), at(record, 'config', 'visibility'),
      at(record, 'config', 'visibilityDefaulted')
    ], ['two', 'admin', 'private', true])
    assert.equal(at(await configOnDisk(hub, 'changing'), 'headers'), undefined)
    await admin.has('changing', 'connected')
    fine(await admin.put('changing', { url: fake.url, enabled: false }))
    assert.equal((await admin.server('changing')).status, 'disabled')
    fine(await admin.put('changing', { url: fake.url, description: 'three' }))
    assert.equal((await admin.server('changing')).status, 'disabled')
    fine(
      await admin.put('changing', {
        url: fake.url,
        enabled: true,
        tools: { fail: { enabled: false }, echo: { enabled: true, description: 'Another word for it' } }
      })
    )
    fine(await admin.put('changing', { url: fake.url, description: 'four' }))
    const now = await admin.has('changing', 'connected')
    const tools = now.tools as Json[]
    assert.equal(tools.find(({ name }) => name === 'fail')?.enabled, false)
    assert.equal(tools.find(({ name }) => name === 'echo')?.description, 'Another word for it')
    const session = await Session.open(url, { key: KEYED })
    const seen = await session.tools()
    assert.ok(seen.includes('changing-echo') && !seen.includes('changing-fail'), seen.join(' '))
    refused(await admin.run('changing', 'fail'), 404)
    fine(await admin.put('changing', { url: fake.url, visibility: 'private' }))
    assert.notEqual(at(await admin.server('changing'), 'config', 'visibilityDefaulted'), true, 'private, and meant so')
    fine(await admin.put('changing', { url: fake.url, visibility: 'public' }))
    fine(await admin.put('changing', { url: fake.url }))
    assert.equal(at(await admin.server('changing'), 'config', 'visibility'), 'public')
  })

  await t.test('servers: a new name, in groups and keys as well', async () => {
    const group = await admin.ok('POST', '/groups', { name: 'renaming', servers: [{ name: 'changing', tools: ['echo'] }, 'fake'] }, 201)
    const key = await newKey({ name: 'renaming', accessType: 'servers', allowedServers: ['changing'] })
    transcript.pop()
    refused(await admin.put('changing', { url: fake.url }, { newName: 'fake' }), 400)
    refused(await admin.put('changing', { url: fake.url }, { newName: 'call' }), 400)
    fine(await admin.put('changing', { url: fake.url }, { newName: 'renamed' }))
    refused(await admin.ask('GET', '/servers/changing'), 404)
    await admin.has('renamed', 'connected')
    assert.equal(at(await admin.ok('GET', `/groups/${String(group.id)}`), 'servers', 0, 'name'), 'renamed')
    assert.deepEqual(records(await admin.ask('GET', '/auth/keys')).find(({ id }) => id === key.id)?.allowedServers, ['renamed'])
    assert.equal((await send(`${url}/renamed`, { key: key.token, body: initialize() })).status, 200)
    fine(await admin.ask('DELETE', '/servers/renamed'))
    const left = JSON.stringify((await admin.ok('GET', `/groups/${String(group.id)}`)).servers)
    assert.ok(left.includes('fake'), left)
    const again = await Session.open(`${url}/renaming`, { key: KEYED })
    assert.deepEqual([...new Set((await again.tools()).map((name) => name.split('-')[0]))], ['fake'])
    fine(await admin.ask('DELETE', '/groups/renaming'))
  })

  await t.test('servers: toggled, its tools go from an open session and come back, with news within a second', async () => {
    const session = await Session.open(url, { key: KEYED })
    const stream = await session.listen()
    assert.ok((await session.tools()).includes('child-echo'))
    await sleep(300)
    const news = async (): Promise<void> => {
      const seen = stream.messages.length
      const fresh = new Promise<void>((resolve, reject) => {
        until(
          () => stream.messages.slice(seen).some(({ method }) => method === 'notifications/tools/list_changed'),
          'no news within a second'
        ).then(resolve, reject)
      })
      await fresh
    }
    const off = await admin.ask('POST', '/servers/child/toggle', { enabled: false })
    const record = fine(off)
    assert.equal(typeof at(off.body, 'message'), 'string')
    assert.deepEqual([record.status, at(record, 'config', 'enabled')], ['disabled', false])
    if (!stream.messages.some(({ method }) => method === 'notifications/tools/list_changed')) await news()
    assert.ok(!(await session.tools()).some((name) => name.startsWith('child-')))
    assert.equal((await admin.server('child')).status, 'disabled')
    const seen = stream.messages.length
    fine(await admin.ask('POST', '/servers/child/toggle', { enabled: true }))
    await admin.has('child', 'connected')
    await until(
      () => stream.messages.slice(seen).some(({ method }) => method === 'notifications/tools/list_changed'),
      'no news within a second of the connection'
    )
    assert.ok((await session.tools()).includes('child-echo'))
    assert.equal(text(await session.call('child-echo', { message: 'back' })), 'back')
    fine(await admin.ask('POST', '/servers/child/toggle', { enabled: true }))
    for (const body of [{}, { enabled: 'false' }, { enabled: 1 }, { enabled: null }, [], null]) {
      refused(await admin.ask('POST', '/servers/child/toggle', body), 400, JSON.stringify(body))
    }
    assert.equal((await admin.server('child')).status, 'connected')
    refused(await admin.ask('POST', '/servers/nope/toggle', { enabled: true }), 404)
    stream.close()
  })

  await t.test('servers: a reload gives a new child', async () => {
    const pid = async (): Promise<string> => text(fine(await admin.run('child', 'pid')))
    const before = await pid()
    const answer = await admin.ask('POST', '/servers/child/reload')
    assert.equal(fine(answer).name, 'child')
    assert.equal(typeof at(answer.body, 'message'), 'string')
    await until(async () => (await pid()) !== before, 'still the old child')
    await until(() => { try { process.kill(Number(before), 0); return false } catch { return true } }, 'the old child lives on')
    refused(await admin.ask('POST', '/servers/nope/reload'), 404)
    const sessions = fake.count('initialize')
    fine(await admin.ask('POST', '/servers/fake/reload'))
    await until(() => fake.count('initialize') > sessions, 'no new connection')
    await admin.has('fake', 'connected')
  })

  await t.test('servers: why one is not connected', async () => {
    await admin.add('dying', { ...STDIO, env: { FAULT_DIE: '1' } })
    await until(async () => {
      const { status, error } = await admin.server('dying')
      return status === 'disconnected' && /3/.test(String(error)) && String(error).includes('cannot read the licence file')
    }, 'neither the exit code nor the last words')
    await admin.add('absent', { command: '/nowhere/at-all' })
    await until(async () => {
      const { status, error } = await admin.server('absent')
      return status === 'disconnected' && typeof error === 'string' && error !== ''
    })
    await admin.add('closed', { url: 'http://127.0.0.1:1/mcp' })
    await until(async () => {
      const { status, error } = await admin.server('closed')
      return status === 'disconnected' && typeof error === 'string' && error !== ''
    })
    refused(await within('the call', admin.run('closed', 'echo')), 502)
    for (const name of ['dying', 'absent', 'closed']) fine(await admin.ask('DELETE', `/servers/${name}`))
  })

  await t.test('servers: a call waits for a server that is still connecting', async (t) => {
    const slow = await startUpstream(t, { on: async ({ method }) => { if (method === 'initialize') await sleep(2_000); return undefined } })
    assert.equal((await admin.add('slow', { url: slow.url })).status, 'connecting')
    const [rest, direct, list] = await Promise.all([
      admin.run('slow', 'echo', { message: 'patience' }),
      Session.open(`${url}/slow`, { key: KEYED }).then(
        async (session) => await session.request('tools/call', { name: 'echo', arguments: { message: 'patience' } })
      ),
      Session.open(`${url}/slow`, { key: KEYED }).then(async (session) => await session.tools())
    ])
    assert.equal(text(fine(rest)), 'patience')
    assert.equal(text(direct.result ?? assert.fail(JSON.stringify(direct))), 'patience')
    assert.deepEqual(list, ['echo'])
    fine(await admin.ask('DELETE', '/servers/slow'))
  })

  await t.test('servers: limit, cursor, fields', async () => {
    const all = names(records(await admin.ask('GET', '/servers')))
    assert.ok(all.length >= 5, all.join())
    const seen: string[] = []
    let cursor: unknown
    for (let page = 0; page < all.length; page++) {
      const answer = await admin.ask(
        'GET',
        `/servers?limit=2${cursor === undefined ? '' : `&cursor=${encodeURIComponent(String(cursor))}`}`
      )
      const some = names(records(answer))
      assert.ok(some.length <= 2)
      seen.push(...some)
      cursor = later(answer)
      if (cursor === undefined || cursor === null) break
      assert.equal(some.length, 2)
    }
    assert.deepEqual(seen, all)
    const few = records(await admin.ask('GET', '/servers?fields=name,status'))
    assert.deepEqual(few.map((record) => Object.keys(record).sort()), all.map(() => ['name', 'status']))
    for (const query of ['limit=0', 'limit=-1', 'limit=x', 'limit=1.5', 'cursor=nonsense', 'fields=__proto__']) {
      const answer = await admin.ask('GET', `/servers?${query}`)
      assert.ok(answer.status === 200 || answer.status === 400, `${query}: ${answer.text}`)
      if (query.startsWith('limit')) refused(answer, 400, query)
    }
  })

  await t.test('groups: create, list, get, update, delete, by id and by name', async () => {
    const answer = await admin.ask('POST', '/groups', {
      name: 'team',
      description: 'ours',
      servers: ['fake', { name: 'child', tools: ['echo'] }]
    })
    const group = fine(answer, 201)
    const id = String(group.id)
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
    const shown = {
      id,
      name: 'team',
      description: 'ours',
      servers: ['fake', { name: 'child', tools: ['echo'], prompts: 'all', resources: 'all' }],
      owner: 'admin'
    }
    assert.deepEqual(group, shown)
    assert.deepEqual(records(await admin.ask('GET', '/groups')).find((one) => one.id === id), { ...shown, servers: ['fake', 'child'] })
    for (const key of [id, 'team']) assert.deepEqual(await admin.ok('GET', `/groups/${key}`), shown)
    assert.deepEqual(await admin.ok('PUT', '/groups/team', { description: 'theirs' }), { ...shown, description: 'theirs' })
    const updated = await admin.ok('PUT', `/groups/${id}`, {
      servers: [
        { name: 'child', tools: 'all', prompts: 'all', resources: 'all' },
        { name: 'fake', alias: 'f', tools: ['echo'], prompts: [], resources: ['fault://note'] }
      ]
    })
    assert.deepEqual(updated.servers, ['child', { name: 'fake', alias: 'f', tools: ['echo'], prompts: [], resources: ['fault://note'] }])
    const session = await Session.open(`${url}/team`, { key: KEYED })
    const seen = await session.tools()
    assert.ok(
      seen.includes('f-echo') && seen.includes('child-pid') && !seen.includes('f-fail') && !seen.includes('fake-echo'),
      seen.join(' ')
    )
    assert.equal(text(await session.call('f-echo', { message: 'by alias' })), 'by alias')
    assert.ok((await session.request('tools/call', { name: 'f-fail' })).error !== undefined, 'what is not selected cannot be called')
    assert.deepEqual(await session.list('prompts/list', 'prompts'), [])
    assert.equal((await session.list('resources/list', 'resources')).length, 1)
    assert.equal((await admin.ok('PUT', '/groups/team', { name: 'squad' })).id, id)
    refused(await admin.ask('GET', '/groups/team'), 404)
    assert.equal((await admin.ok('GET', '/groups/squad')).id, id)
    assert.equal((await send(`${url}/team`, { key: KEYED, body: initialize() })).status, 404)
    assert.equal((await send(`${url}/squad`, { key: KEYED, body: initialize() })).status, 200)
    assert.equal((await send(`${url}/${id}`, { key: KEYED, body: initialize() })).status, 200)

    for (const body of [
      { name: 'squad' }, {}, { name: '' }, { name: 7 }, { name: 'x', servers: ['nope'] },
      { name: 'x', servers: [{ name: 'nope' }] }, { name: 'x', servers: 'fake' }, { name: 'x', servers: [7] },
      { name: 'x', servers: [{}] }, { name: 'x', servers: [{ name: 'fake', tools: 'some' }] },
      { name: 'x', servers: [{ name: 'fake', tools: 7 }] }, { name: 'x', servers: [{ name: 'fake', prompts: [7] }] },
      { name: 'x', description: 7 }, { name: 'x', servers: ['__proto__'] }, [], null
    ]) { refused(await admin.ask('POST', '/groups', body), 400, JSON.stringify(body)) }
    await admin.ok('POST', '/groups', { name: 'empty' }, 201)
    assert.deepEqual((await admin.ok('GET', '/groups/empty')).servers, [])
    for (const body of [{ name: 'squad' }, { servers: ['nope'] }, { servers: [{ name: 'fake', tools: 'none' }] }, { name: '' }]) {
      refused(await admin.ask('PUT', '/groups/empty', body), 400, JSON.stringify(body))
    }
    assert.deepEqual((await admin.ok('GET', '/groups/empty')).servers, [])
    for (const [method, body] of [
      ['GET', undefined],
      ['PUT', { description: 'x' }],
      ['DELETE', undefined]
    ] as const) { refused(await admin.ask(method, '/groups/nope', body), 404, method) }
    const gone = await admin.ask('DELETE', '/groups/squad')
    fine(gone)
    assert.ok(!('data' in (gone.body as Json)), gone.text)
    refused(await admin.ask('GET', `/groups/${id}`), 404)
    refused(await admin.ask('DELETE', `/groups/${id}`), 404)
    assert.equal((await send(`${url}/squad`, { key: KEYED, body: initialize() })).status, 404)
    fine(await admin.ask('DELETE', '/groups/empty'))
  })

  await t.test('groups: an open session follows', async () => {
    await admin.ok('POST', '/groups', { name: 'live', servers: ['fake'] }, 201)
    const session = await Session.open(`${url}/live`, { key: KEYED })
    const stream = await session.listen()
    assert.deepEqual(await session.tools(), ['fake-echo', 'fake-fail', 'fake-two-words', 'fake-typed'])
    await sleep(300)
    for (const [servers, expected] of [
      [
        ['fake', { name: 'child', tools: ['echo', 'pid'] }],
        ['fake-echo', 'fake-fail', 'fake-two-words', 'fake-typed', 'child-echo', 'child-pid']
      ],
      [[{ name: 'child', tools: ['echo'] }], ['child-echo']],
      [[], []]
    ] as const) {
      const seen = stream.messages.length
      await admin.ok('PUT', '/groups/live', { servers })
      await until(
        () => stream.messages.slice(seen).some(({ method }) => method === 'notifications/tools/list_changed'),
        `no news of ${JSON.stringify(servers)}`
      )
      assert.deepEqual((await session.tools()).sort(), [...expected].sort())
    }
    stream.close()
    fine(await admin.ask('DELETE', '/groups/live'))
  })

  await t.test('a group with a server\'s name wins, and the answer warns', async () => {
    const answer = await admin.ask('POST', '/groups', { name: 'fake', servers: ['child'] })
    fine(answer, 201)
    assert.match(String(at(answer.body, 'message')), /fake|server/i)
    const session = await Session.open(`${url}/fake`, { key: KEYED })
    assert.ok((await session.tools()).every((name) => name.startsWith('child-')))
    fine(await admin.ask('DELETE', '/groups/fake'))
  })

  await t.test('tools are called by REST, bare or qualified', async () => {
    for (const [name, bare] of [['echo', 'echo'], ['fake-echo', 'echo'], ['fake-two-words', 'two-words']] as const) {
      const data = fine(await admin.run('fake', name, { message: 'hello' }))
      assert.equal(text(data), 'hello')
      assert.deepEqual(data.arguments, { message: 'hello' })
      assert.ok(data.toolName === name || data.toolName === bare, String(data.toolName))
    }
    const none = fine(await admin.ask('POST', '/tools/call/fake', { toolName: 'echo' }))
    assert.deepEqual(none.arguments, {})
    const failed = fine(await admin.run('fake', 'fail'))
    assert.deepEqual([failed.isError, text(failed)], [true, 'it failed'])
    refused(await admin.run('fake', 'nope'), 404)
    refused(await admin.run('fake', 'child-echo'), 404)
    refused(await admin.run('nope', 'echo'), 404)
    refused(await admin.run('off', 'echo'), 404, 'disabled')
    for (const body of [
      {}, { toolName: 7 }, { toolName: '' }, { toolName: 'echo', arguments: 'text' },
      { toolName: 'echo', arguments: [] }, [], null
    ]) {
      const answer = await admin.ask('POST', '/tools/call/fake', body)
      assert.ok(
        answer.status === 400 || (answer.status === 404 && JSON.stringify(body) === '{"toolName":""}'),
        `${JSON.stringify(body)}: ${answer.text}`
      )
      refused(answer, answer.status)
    }
    fake.options = {
      ...fake.options,
      tools: [...(fake.options.tools ?? []), tool('refuse')],
      on: ((before) => (call) =>
        call.method === 'tools/call' && call.params.name === 'refuse' ? new Refusal(-32000, 'not today') : before?.(call))(fake.options.on)
    }
    await fake.broadcast('notifications/tools/list_changed')
    await until(async () => names((await admin.server('fake')).tools).includes('refuse'), 'the new tool never came')
    refused(await admin.run('fake', 'refuse'), 502)
  })

  await t.test('arguments are converted to the types of the schema', async () => {
    const converted = fine(await admin.run('fake', 'typed', { n: '7', x: '1.5', b: 'true', list: 'a,b', o: '{"k":1}', s: '5' }))
    const expected = { n: 7, x: 1.5, b: true, list: ['a', 'b'], o: { k: 1 }, s: '5' }
    assert.deepEqual(JSON.parse(text(converted)), expected)
    assert.deepEqual(converted.structuredContent, { seen: expected })
  })

  await t.test('what is no request of the API', async () => {
    const headers = admin.headers
    for (const [method, route] of [
      ['GET', '/api/nope'], ['POST', '/api/nope'], ['GET', '/api/servers/fake/nope'], ['GET', '/api'], ['GET', '/api/'],
      ['DELETE', '/api/servers']
    ] as const) { refused(await ask(hub, method, route, { headers }), 404, `${method} ${route}`) }
    for (const raw of ['{', '{"name":}', 'hello', '[', '{"a":1}}', '']) {
      refused(await ask(hub, 'POST', '/api/servers', { headers, raw }), 400, raw)
    }
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml', 'multipart/form-data; boundary=x']) {
      refused(await ask(hub, 'POST', '/api/servers', { headers: { ...headers, 'content-type': type }, raw: '{"name":"x"}' }), 415, type)
    }
    refused(
      await ask(hub, 'POST', '/api/servers', {
        headers,
        body: { name: 'big', config: { url: fake.url, description: 'x'.repeat(1_100_000) } }
      }),
      413
    )
    for (const levels of [250, 5_000]) {
      refused(
        await ask(hub, 'POST', '/api/servers', {
          headers,
          raw: `{"name":"deep","config":{"url":"${fake.url}","x":${'['.repeat(levels)}${']'.repeat(levels)}}}`
        }),
        400,
        `${levels} levels`
      )
    }
    refused(
      await ask(hub, 'POST', '/api/servers', {
        headers,
        raw: new Uint8Array([...Buffer.from('{"name":"'), 0xff, 0xc3, 0x28, ...Buffer.from('","config":{}}')])
      }),
      400
    )
    for (const route of ['/api/servers/%E0%A4%A', '/api/servers/%', '/api/groups/%zz']) {
      const answer = await plain(`http://127.0.0.1:${hub.port}${route}`, { headers })
      assert.equal(answer.status, 400, `${route}: ${answer.body}`)
      assert.equal(at(JSON.parse(answer.body), 'success'), false, `${route}: ${answer.body}`)
    }
    const long = await ask(hub, 'GET', `/api/servers/${'a'.repeat(4_000)}`, { headers })
    assert.ok(long.status >= 400 && long.status < 500, String(long.status))
    refused(long, long.status)
    const polluted = await ask(hub, 'POST', '/api/groups', {
      headers,
      raw: '{"name":"polluted","__proto__":{"isAdmin":true},"constructor":{"prototype":{"polluted":1}}}'
    })
    assert.ok(polluted.status < 500, polluted.text)
    assert.ok(!('data' in (polluted.body as Json)) || at(polluted.body, 'data', 'isAdmin') === undefined)
    if (polluted.status === 201) fine(await admin.ask('DELETE', '/groups/polluted'))
  })

  await t.test('whether a thing exists comes before what the body says', async () => {
    for (const [method, route, body] of [
      ['PUT', '/servers/nope', {}], ['PUT', '/servers/nope', { config: 7 }], ['POST', '/servers/nope/toggle', {}],
      ['PUT', '/groups/nope', { name: 7 }]
    ] as const) { refused(await admin.ask(method, route, body), 404, `${method} ${route} ${JSON.stringify(body)}`) }
  })

  await t.test('odd methods on every route: never a 5xx', async () => {
    for (const route of new Set([
      ...lost.map(([, one]) => one.replace(/\{\w+\}/, 'fake-nope')),
      '/api/auth/login',
      '/health',
      '/health/live',
      '/health/ready',
      '/metrics',
      '/docs/json',
      '/'
    ])) {
      for (const method of ['HEAD', 'PUT', 'PATCH', 'OPTIONS', 'DELETE', 'PROPFIND', 'QUERY']) {
        const answer = await plain(`http://127.0.0.1:${hub.port}${route}`, { method, headers: admin.headers }).catch((error: unknown) => ({
          status: 400,
          body: String(error)
        }))
        assert.ok(answer.status < 500, `${method} ${route}: ${answer.status} ${answer.body}`)
        assertPlain(answer.body)
      }
    }
    const before = fake.count('tools/call')
    await plain(`http://127.0.0.1:${hub.port}/api/tools/call/fake`, { method: 'HEAD', headers: admin.headers })
    assert.equal(fake.count('tools/call'), before)
  })

  await t.test('the API documents itself', async () => {
    const reply = await fetch(`${hub.url}/docs/json`)
    assert.equal(reply.status, 200)
    const document: unknown = await reply.json()
    assert.match(String(at(document, 'openapi')), /^3\./)
    assert.equal(typeof at(document, 'info', 'title'), 'string')
    assert.equal(typeof at(document, 'info', 'version'), 'string')
    const shapes = new Map(Object.entries(at(document, 'paths') as Json).map(([route, item]) => [route.replace(/\{\w+\}/g, '{}'), item]))
    for (const [method, route] of [['POST', '/api/auth/login'], ...lost] as const) {
      const operation = at(shapes.get(route.replace(/\{\w+\}/g, '{}')), method.toLowerCase())
      assert.ok(operation !== undefined, `${method} ${route} is not in ${[...shapes.keys()].join(' ')}`)
      const summary = at(operation, 'summary')
      assert.ok(typeof summary === 'string' && summary !== '', `${method} ${route} has no summary`)
      const responses = Object.entries(at(operation, 'responses') as Json)
      const good = responses.find(([status]) => status.startsWith('2'))
      assert.ok(good !== undefined, `${method} ${route} has no answer`)
      assert.equal(typeof at(good[1], 'content', 'application/json', 'schema'), 'object', `${method} ${route}: ${JSON.stringify(good)}`)
      if (method === 'POST' && !route.endsWith('reload')) {
        assert.equal(
          typeof at(operation, 'requestBody', 'content', 'application/json', 'schema'),
          'object',
          `${method} ${route} has no body`
        )
      }
    }
    const refs = JSON.stringify(document).match(/"\$ref":"[^"]+"/g) ?? []
    for (const ref of new Set(refs)) {
      const target = ref.slice(8, -1)
      assert.ok(target.startsWith('#/'), target)
      assert.ok(
        at(
          document,
          ...target.slice(2).split('/')
            .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'))
        ) !== undefined,
        `${target} leads nowhere`
      )
    }
    const page = await fetch(`${hub.url}/docs`)
    assert.equal(page.status, 200)
    assert.match(String(page.headers.get('content-type')), /^text\/html/)
    assertPlain(JSON.stringify(document))
  })

  await t.test('metrics are for admins', async () => {
    assert.equal((await fetch(`${hub.url}/metrics`)).status, 401)
    assert.equal((await fetch(`${hub.url}/metrics`, { headers: { authorization: 'Bearer nobody' } })).status, 401)
  })

  await t.test('metrics in the format of Prometheus, calls counted by server', async () => {
    const read = async (): Promise<{ text: string, samples: Map<string, number> }> => {
      const reply = await fetch(`${hub.url}/metrics`, { headers: admin.headers })
      assert.equal(reply.status, 200)
      assert.match(String(reply.headers.get('content-type')), /^text\/plain/)
      const body = await reply.text()
      const samples = new Map<string, number>()
      for (const line of body.split('\n')) {
        if (line === '' || line.startsWith('#')) continue
        const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^}]*\})?) (-?[0-9.eE+-]+|nan|[+-]Inf)(?: \d+)?$/i.exec(line)
        assert.ok(match !== null, `no sample: ${line}`)
        samples.set(match[1] ?? '', Number(match[2]))
      }
      return { text: body, samples }
    }
    const before = await read()
    const session = await Session.open(url, { key: KEYED })
    for (let n = 0; n < 3; n++) fine(await admin.run('fake', 'echo'))
    await session.call('fake-echo')
    const grown = (name: RegExp, by: number, now: Map<string, number>): string[] =>
      [...now].filter(([sample, value]) => name.test(sample) && value - (before.samples.get(sample) ?? 0) === by).map(([sample]) => sample)
    let now = await read()
    await until(
      async () => {
        now = await read()
        return grown(/call\w*(total|count)\{.*"fake"/, 4, now.samples).length > 0
      },
      () => `four calls counted nowhere: ${[...now.samples].filter(([sample]) => sample.includes('"fake"')).join('; ')}`
    )
    assert.ok(grown(/(seconds|duration|ms|latency)\w*_count\{.*"fake"/, 4, now.samples).length > 0, 'no latency')
    for (const topic of [/error/i, /session/i, /link|connection/i, /upstream|state|status/i, /lag|eventloop|event_loop/i]) {
      assert.match(now.text, topic)
    }
    for (let n = 0; n < 30; n++) {
      await admin.run(`nobody-knows-${n}`, 'echo')
      await admin.run('fake', `nobody-knows-${n}`)
      await session.request('tools/call', { name: `nobody-knows-${n}` })
      await ask(hub, 'GET', `/api/nobody-knows-${n}`)
      await ask(hub, 'GET', `/nobody-knows-${n}`)
    }
    const after = await read()
    assert.ok(!after.text.includes('nobody-knows'), 'what a caller makes up is no label')
    assert.ok(after.samples.size < now.samples.size + 40, `${now.samples.size} became ${after.samples.size} samples`)
    await admin.ask('POST', '/servers', { name: 'passing', config: { url: fake.url } })
    await admin.has('passing', 'connected')
    fine(await admin.run('passing', 'echo'))
    fine(await admin.ask('DELETE', '/servers/passing'))
  })

  await t.test('health', async () => {
    const health: unknown = await (await fetch(`${hub.url}/health`)).json()
    assert.equal(typeof at(health, 'status'), 'string')
    assert.ok(!Number.isNaN(new Date(String(at(health, 'timestamp'))).getTime()))
    assert.equal(typeof at(health, 'uptime'), 'number')
    assert.ok(Number(at(health, 'servers', 'total')) >= 3 && Number(at(health, 'servers', 'connected')) >= 2, JSON.stringify(health))
    assert.equal((await fetch(`${hub.url}/health/live`)).status, 200)
    assert.equal((await fetch(`${hub.url}/health/ready`)).status, 200)
  })

  await t.test('a call to a server that never comes ends after 10 s', async () => {
    const { answer, took } = await waiting
    refused(answer, 502)
    assert.ok(took > 9_000 && took < 14_000, `${took} ms`)
    const other = await waitingMcp
    assert.equal(other.answer?.error?.code, -32001, JSON.stringify(other.answer))
    assert.ok(other.took > 9_000 && other.took < 24_000, `${other.took} ms`)
  })

  await t.test('no secret was in any answer, log line, metric or, in plain, in the settings file', async () => {
    await sleep(200)
    const file = await readFile(hub.settingsPath, 'utf8')
    const metrics = await (await fetch(`${hub.url}/metrics`, { headers: admin.headers })).text()
    secrets.add(KEYED)
    for (const secret of secrets) {
      assert.ok(
        !hub.output().includes(secret),
        `in the log: ${secret}: ${hub.output().split('\n').find((line) => line.includes(secret))?.slice(0, 1_000)}`
      )
      assert.ok(!file.includes(secret), `in the file: ${secret}`)
      assert.ok(!metrics.includes(secret), `in the metrics: ${secret}`)
    }
    const canaries = [...secrets].filter((secret) => secret !== admin.token && secret !== KEYED)
    for (const answer of transcript) {
      for (const secret of canaries) assert.ok(!answer.includes(secret), `in an answer: ${secret}: ${answer.slice(0, 1_000)}`)
    }
    for (const answer of transcript) assert.doesNotMatch(answer, /\$2[aby]\$\d\d\$|scrypt|argon2/, 'a hash in an answer')
  })
})

// ---- others than admins ---------------------------------------------------------------------------

test('a user who is no admin', async (t) => {
  const fake = await startUpstream(t)
  const secret = `hidden-${randomBytes(8).toString('hex')}`
  const hub = await startHub(t, {
    env: { LOG_LEVEL: 'warn' },
    settings: settings(
      {
        shared: {
          type: 'streamable-http',
          url: fake.url,
          visibility: 'public',
          owner: 'admin',
          description: 'for all',
          headers: { 'X-Token': secret }
        },
        closed: { type: 'streamable-http', url: fake.url, visibility: 'private', owner: 'admin' },
        own: { type: 'streamable-http', url: fake.url, visibility: 'private', owner: 'bob' }
      },
      {
        users: [
          { username: 'admin', password: bcrypt.hashSync(PASSWORD, 4), isAdmin: true },
          { username: 'bob', password: bcrypt.hashSync('Bobs-Word-1', 4), isAdmin: false }
        ],
        groups: [
          { id: '33333333-3333-4333-8333-333333333333', name: 'mixed', servers: ['shared', 'closed'], owner: 'admin' },
          { id: '44444444-4444-4444-8444-444444444444', name: 'hidden', servers: ['closed'], owner: 'admin' }
        ]
      }
    )
  })
  await connected(hub, 3)
  const bob = await Api.login(hub, 'bob', 'Bobs-Word-1')
  const admin = await Api.login(hub)

  await t.test('is told what it may', async () => {
    const { user } = (await bob.ask('GET', '/auth/user')).body as { user: Json }
    assert.deepEqual(
      [user.username, user.isAdmin, at(user, 'permissions', 'admin'), at(user, 'permissions', 'servers')],
      ['bob', false, false, 'visible']
    )
  })

  await t.test('sees public servers without their secrets, and its own', async () => {
    assert.deepEqual(names(records(await bob.ask('GET', '/servers'))).sort(), ['own', 'shared'])
    const answer = await bob.ask('GET', '/servers/shared')
    assert.ok(!answer.text.includes(secret) && !answer.text.includes(fake.url), answer.text)
    const { config } = fine(answer)
    for (const key of Object.keys(config as Json)) {
      assert.ok(['type', 'description', 'visibility', 'visibilityDefaulted', 'owner', 'enabled'].includes(key), key)
    }
    assert.equal(at(await bob.server('own'), 'config', 'url'), fake.url)
    const [hidden, unknown] = [await bob.ask('GET', '/servers/closed'), await bob.ask('GET', '/servers/clothes')]
    refused(hidden, 404)
    assert.equal(hidden.text.replaceAll('closed', '*'), unknown.text.replaceAll('clothes', '*'))
  })

  await t.test('changes only its own', async () => {
    for (const [method, route, body] of [
      ['PUT', '', { config: { url: fake.url } }], ['DELETE', '', undefined], ['POST', '/toggle', { enabled: false }],
      ['POST', '/reload', undefined]
    ] as const) {
      refused(await bob.ask(method, `/servers/shared${route}`, body), 403, `${method} ${route}`)
      refused(await bob.ask(method, `/servers/closed${route}`, body), 404, `${method} ${route}`)
    }
    assert.equal((await admin.server('shared')).status, 'connected')
    fine(await bob.ask('POST', '/servers/own/toggle', { enabled: false }))
    fine(await bob.ask('POST', '/servers/own/toggle', { enabled: true }))
    const taken = await bob.ask('PUT', '/servers/own', { config: { url: 'https://mcp.example.com/mcp', owner: 'admin' } })
    assert.ok(taken.status === 400 || taken.status === 403 || at(await admin.server('own'), 'config', 'owner') === 'bob', taken.text)
    assert.equal(at(await admin.server('own'), 'config', 'owner'), 'bob')
  })

  await t.test('takes no name that is another\'s but for its case, or an id', async () => {
    const config = { url: 'https://mcp.example.com/mcp', enabled: false }
    for (const name of ['SHARED', 'Own']) {
      for (const answer of [
        await bob.ask('POST', '/servers', { name, config }),
        await bob.ask('POST', '/servers/test', { name, config })
      ]) {
        refused(answer, 400, name)
        assert.match(answer.text, /differs from .* only by case; only an admin/)
      }
    }
    refused(await bob.ask('PUT', '/servers/own', { config, newName: 'Shared' }), 400)
    refused(await bob.ask('POST', '/servers', { name: '33333333-3333-4333-8333-333333333333', config }), 400)
    // Its own name may be written anew, and an admin may do what a user may not.
    await admin.add('bobs', { ...config, owner: 'bob' })
    fine(await bob.ask('PUT', '/servers/bobs', { config, newName: 'BOBS' }))
    fine(await bob.ask('DELETE', '/servers/BOBS'))
    await admin.add('SHARED', config)
    fine(await admin.ask('DELETE', '/servers/SHARED'))
  })

  await t.test('stores nothing that runs a command', async () => {
    for (const config of [STDIO, { type: 'stdio', command: 'id' }]) {
      refused(await bob.ask('POST', '/servers', { name: 'mine', config }), 403, JSON.stringify(config))
      refused(await bob.put('own', config), 403, JSON.stringify(config))
    }
    refused(await admin.ask('GET', '/servers/mine'), 404)
    const stored = await bob.ask('POST', '/servers', { name: 'remote', config: { url: 'https://mcp.example.com/mcp', enabled: false } })
    assert.equal(at(fine(stored), 'config', 'owner'), 'bob')
  })

  await t.test('nor anything of type openapi', async () => {
    refused(
      await bob.ask('POST', '/servers', { name: 'mine', config: { type: 'openapi', url: 'https://api.example.com/openapi.json' } }),
      403
    )
  })

  await t.test('sees groups with what it may see of them', async () => {
    const groups = records(await bob.ask('GET', '/groups'))
    assert.deepEqual(groups.map(({ name, servers }) => [name, servers]), [['mixed', ['shared']]])
    refused(await bob.ask('GET', '/groups/hidden'), 404)
    for (const [method, body] of [['PUT', { description: 'x' }], ['DELETE', undefined]] as const) {
      refused(await bob.ask(method, '/groups/mixed', body), 403)
      refused(await bob.ask(method, '/groups/hidden', body), 404)
    }
    assert.equal((await bob.ok('POST', '/groups', { name: 'bobs', servers: ['shared', 'own'] }, 201)).owner, 'bob')
    refused(await bob.ask('POST', '/groups', { name: 'shared', servers: [] }), 400, 'a server\'s name')
    refused(await bob.ask('POST', '/groups', { name: 'sneaky', servers: ['closed'] }), 400)
  })

  await t.test('has keys of its own, for MCP only', async () => {
    const record = await bob.ok('POST', '/auth/keys', { name: 'bobs' }, 201)
    assert.deepEqual([record.kind, record.owner, record.accessType], ['user', 'bob', 'all'])
    const grab = await bob.ask('POST', '/auth/keys', { name: 'more', kind: 'system', accessType: 'all', owner: 'admin' })
    assert.ok(
      grab.status === 403 || grab.status === 400 || (at(grab.body, 'data', 'kind') === 'user' && at(grab.body, 'data', 'owner') === 'bob'),
      grab.text
    )
    assert.ok(records(await bob.ask('GET', '/auth/keys')).every(({ owner }) => owner === 'bob'))
    refused(await Api.key(hub, String(record.token)).ask('GET', '/servers'), 401)
    const foreign = await bob.ask('DELETE', `/auth/keys/${bearerKey().id}`)
    assert.ok(foreign.status === 403 || foreign.status === 404, foreign.text)
    const session = await Session.open(`${hub.url}/mcp`, { key: String(record.token) })
    assert.deepEqual((await session.tools()).sort(), ['own-echo', 'shared-echo'])
    fine(await bob.ask('DELETE', `/auth/keys/${String(record.id)}`))
    assert.equal((await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).status, 401)
  })

  await t.test('calls what it sees', async () => {
    assert.equal(text(fine(await bob.run('shared', 'echo', { message: 'hi' }))), 'hi')
    refused(await bob.run('closed', 'echo'), 404)
  })
})

// ---- in its own place -----------------------------------------------------------------------------

test('BASE_PATH stands in front of everything', async (t) => {
  const fake = await startUpstream(t)
  const hub = await spawnHub(t, { env: { ADMIN_PASSWORD: PASSWORD, BASE_PATH: '/deep/hub' } })
  const root = `http://127.0.0.1:${hub.port}`
  const admin = await Api.login(hub)
  await admin.add('fake', { url: fake.url })
  await admin.has('fake', 'connected')
  assert.equal(text(fine(await admin.run('fake', 'echo', { message: 'under' }))), 'under')
  const { token } = await admin.ok('POST', '/auth/keys', { name: 'k' }, 201)
  assert.ok((await (await Session.open(`${hub.url}/mcp`, { key: String(token) })).tools()).includes('fake-echo'))
  for (const route of ['/health', '/health/live', '/health/ready', '/metrics', '/docs', '/docs/json']) {
    assert.equal((await fetch(`${hub.url}${route}`, { headers: admin.headers })).status, 200, route)
    assert.equal((await fetch(`${root}${route}`)).status, 404, route)
  }
  for (const route of ['/api/servers', '/api/auth/user', '/mcp']) {
    assert.equal((await fetch(`${root}${route}`, { headers: admin.headers })).status, 404, route)
  }
  const document: unknown = await (await fetch(`${hub.url}/docs/json`)).json()
  const route = Object.keys(at(document, 'paths') as Json).find((one) => one.endsWith('/servers')) ?? ''
  const full = new URL(`${String(at(document, 'servers', 0, 'url') ?? '').replace(/\/$/, '')}${route}`, root).pathname
  assert.equal(full, '/deep/hub/api/servers', 'a client of the document finds the API')
  const page = await (await fetch(`${hub.url}/docs`)).text()
  for (const [, link] of page.matchAll(/(?:src|href)="([^"]+\.(?:js|css|png))"/g)) {
    const asset = new URL(link ?? '', `${root}/deep/hub/docs/`)
    assert.equal(asset.origin, root, 'nothing from elsewhere')
    const status = (await fetch(asset)).status
    const other = (await fetch(new URL(link ?? '', `${root}/deep/hub/docs`))).status
    assert.ok(status === 200 || other === 200, `${link}: ${status}`)
  }
  assert.ok(hub.output().includes('/deep/hub/mcp'), 'the endpoint that is printed is the one that works')
})

test('draining: not ready, but still answering what it took on', async (t) => {
  const hub = await spawnHub(t, { env: { ADMIN_PASSWORD: PASSWORD, DRAIN_TIMEOUT: '5s' }, settings: settings({ child: STDIO }) })
  const admin = await Api.login(hub)
  await admin.has('child', 'connected')
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => { agent.destroy() })
  const status = async (path: string, method = 'GET', body = ''): Promise<number> => await new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const request = httpRequest(`${hub.url}${path}`, { agent, method, headers: method === 'GET' ? {} : headers }, (reply) => {
      reply.resume().on('end', () => { resolve(reply.statusCode ?? 0) })
    })
    request.on('error', reject).end(body)
  })
  const ready = async (): Promise<number> => await status('/health/ready')
  const post = async (): Promise<number> => await status('/messages?sessionId=unknown', 'POST', '{"jsonrpc":"2.0","method":"x"}')
  assert.deepEqual([await ready(), await post()], [200, 404])
  const session = await Session.open(`${hub.url}/mcp`)
  const stream = await session.listen()
  const call = admin.run('child', 'echo', { message: 'finished', delay: 2_000 })
  const message = session.request('tools/call', { name: 'child-echo', arguments: { message: 'as well', delay: 2_000 } })
  await sleep(300)
  // not stop(): that would be a second signal, which ends everything at once
  const exit = once(hub.child, 'exit')
  hub.child.kill('SIGTERM')
  const seen: unknown[] = []
  let posted: number | undefined
  const unready = until(async () => {
    const status = await ready().catch((error: unknown) => String(error))
    if (status === 503) posted = await post()
    const live = await fetch(`${hub.url}/health/live`).then((reply) => reply.status, () => 'closed')
    seen.push([status, live])
    return status === 503
  }, () => `never 503 while draining: ${JSON.stringify(seen)}`)
  unready.catch(() => {})
  assert.equal(text(fine(await call)), 'finished')
  assert.equal(text((await message).result), 'as well')
  await within('the end of the stream', stream.done)
  assert.deepEqual(await within('the exit', exit), [0, null])
  await unready
  assert.equal(posted, 503, 'an SSE client whose stream has ended comes back later')
})

test('draining: a call by REST alone is finished as well', async (t) => {
  const hub = await spawnHub(t, { env: { ADMIN_PASSWORD: PASSWORD, DRAIN_TIMEOUT: '5s' }, settings: settings({ child: STDIO }) })
  const admin = await Api.login(hub)
  await admin.has('child', 'connected')
  const call = admin.run('child', 'echo', { message: 'finished', delay: 2_500 })
  await sleep(300)
  const exit = once(hub.child, 'exit')
  hub.child.kill('SIGTERM')
  assert.equal(text(fine(await call)), 'finished')
  assert.deepEqual(await within('the exit', exit), [0, null])
})

test('draining has an end: a call that takes longer gets an error, and the exit is 0 within 10 s', async (t) => {
  const hub = await spawnHub(t, { env: { ADMIN_PASSWORD: PASSWORD, DRAIN_TIMEOUT: '1s' }, settings: settings({ child: STDIO }) })
  const admin = await Api.login(hub)
  await admin.has('child', 'connected')
  const call = admin.run('child', 'hang').catch((error: unknown) => ({ status: 0, text: String(error), body: undefined }))
  await sleep(300)
  const start = performance.now()
  assert.equal(await within('the exit', hub.stop()), 0)
  assert.ok(performance.now() - start < 10_000)
  const answer = await within('the answer', call)
  assert.ok(answer.status >= 500, `${answer.status} ${answer.text}`)
  assertPlain(answer.text)
})

test('keys of a settings file', async (t) => {
  const fake = await startUpstream(t)
  const scopes = { group: `thk_${'c'.repeat(64)}`, disabled: `thk_${'d'.repeat(64)}`, odd: 'an-old-key-of-another-shape' }
  const hub = await startHub(t, {
    env: { ADMIN_PASSWORD: PASSWORD },
    settings: settings({ fake: { url: fake.url }, two: { url: fake.url } }, {
      bearerKeys: [
        bearerKey(),
        bearerKey({
          id: '55555555-5555-4555-8555-555555555555',
          name: 'group',
          token: scopes.group,
          accessType: 'groups',
          allowedGroups: ['team']
        }),
        bearerKey({ id: '66666666-6666-4666-8666-666666666666', name: 'disabled', token: scopes.disabled, enabled: false }),
        bearerKey({ id: '77777777-7777-4777-8777-777777777777', name: 'odd', token: scopes.odd })
      ],
      groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'team', servers: ['fake'] }]
    })
  })
  await connected(hub, 2)
  const url = `${hub.url}/mcp`
  const look = async (): Promise<void> => {
    for (const key of [KEY, scopes.odd]) {
      assert.equal((await Api.key(hub, key).ask('GET', '/servers')).status, 200)
      assert.equal((await send(url, { key, body: initialize() })).status, 200)
    }
    refused(await Api.key(hub, scopes.disabled).ask('GET', '/servers'), 401)
    assert.equal((await send(url, { key: scopes.disabled, body: initialize() })).status, 401)
    refused(await Api.key(hub, scopes.group).ask('GET', '/servers'), 401)
    assert.equal((await send(`${url}/team`, { key: scopes.group, body: initialize() })).status, 200)
    for (const route of ['', '/fake', '/two']) {
      assert.equal((await send(`${url}${route}`, { key: scopes.group, body: initialize() })).status, 403, route)
    }
  }

  await t.test('plain ones work, and are hashed at the next write', async () => {
    await look()
    const admin = await Api.login(hub)
    await admin.add('third', { url: fake.url, enabled: false })
    const file = await readFile(hub.settingsPath, 'utf8')
    for (const token of [KEY, ...Object.values(scopes)]) assert.ok(!file.includes(token), `${token} is still in plain`)
    await look()
    const listed = records(await admin.ask('GET', '/auth/keys'))
    assert.equal(listed.find(({ name }) => name === 'test')?.token, `${KEY.slice(0, 8)}...${KEY.slice(-4)}`)
    const hash = /[0-9a-f]{64}/.exec(JSON.stringify(at(await onDisk(hub), 'bearerKeys')))?.[0]
    if (hash !== undefined) refused(await Api.key(hub, hash).ask('GET', '/servers'), 401, 'the hash is no key')
  })

  await t.test('and after a restart', async (t) => {
    assert.equal(await hub.stop(), 0)
    const again = await startHub(t, { folder: hub.folder })
    assert.equal((await Api.key(again, KEY).ask('GET', '/servers')).status, 200)
    const stream = await open(`${again.url}/mcp`, { key: scopes.odd, body: initialize() })
    assert.equal(stream.status, 200)
    stream.close()
  })
})
