/* eslint no-template-curly-in-string: off -- configs hold them */
// A gateway as a process: secrets that were planted everywhere stay within.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { isDeepStrictEqual } from 'node:util'
import { descendants as childrenOf } from '../helpers/stdio-fake.ts'
import { at, connected, initialize, open, send, Session, silence, within, type Json, type Stream } from '../helpers/client.ts'
import { Aviary } from '../fakes/aviary.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { echoes, openapi, plantedEnvironment, plantedServers, plantedSettings } from '../fakes/planted.ts'
import { json, restApi } from '../fakes/rest-api.ts'
import { freePort, spawnHub, until, type Hub, type ProcessHub } from '../helpers/hub.ts'

/** Everything that came out of a gateway, with where it came from. */
class Ear {
  readonly heard: Array<{ from: string; text: string }> = []
  readonly #hub: Hub

  constructor (hub: Hub) {
    this.#hub = hub
  }

  take (from: string, text: string): void {
    this.heard.push({ from, text })
  }

  /** A request whose whole answer is heard; a stream of events is cut after its beginning. */
  async ask (
    from: string,
    method: string,
    route: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {}
  ): Promise<{ status: number; text: string; body: unknown }> {
    const reply = await open(`${this.#hub.url}${route}`, {
      method,
      key: null,
      body,
      headers: { accept: '*/*', ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers }
    })
    await (reply.sse ? Promise.race([reply.done, silence(300)]) : within(from, reply.done))
    reply.close()
    this.stream(from, reply)
    let value: unknown
    try {
      value = JSON.parse(reply.body)
    } catch {}
    return { status: reply.status, text: reply.body, body: value }
  }

  stream (from: string, reply: Stream): void {
    this.take(`${from}: ${reply.status}`, `${JSON.stringify([...reply.headers])}\n${reply.body}`)
  }

  /** Bytes that no client would send; what comes back until the gateway hangs up. @param isCut no more of them comes */
  async raw (from: string, text: string, isCut = false): Promise<void> {
    let answer = ''
    const socket = connect(this.#hub.port, '127.0.0.1')
    const closed = new Promise((resolve) => { socket.on('data', (chunk) => { answer += String(chunk) }).on('error', () => {}).once('close', resolve) })
    if (isCut) socket.end(text)
    else socket.write(text)
    await within(from, closed)
    this.take(from, answer)
  }
}

/** The processes that a gateway has started: what ps shows of each. */
function processesOf (gateway: number): Array<{ pid: number, cmdline: string, environ: Record<string, string> }> {
  const read = (file: string): string => { try { return readFileSync(file, 'latin1') } catch { return '' } }
  return childrenOf(gateway).flatMap((pid) => {
    const cmdline = read(`/proc/${pid}/cmdline`)
    // The loader that runs TypeScript in these tests has a helper of its own.
    if (/\/esbuild\0/.test(cmdline)) return []
    const variables = read(`/proc/${pid}/environ`).split('\0').filter(Boolean)
    const environ = Object.fromEntries(variables.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
    return [{ pid, cmdline, environ }]
  })
}

/**
 * Where a canary may be seen. What a child printed before it ended is shown to who manages it, but its lines are no way
 * around the masks: values of `env` and secret arguments are masked for managers, too (SECURITY T24, T47; issue: "in no response, log
 * line, error"), and the gateway knows them. So they count.
 */
const exceptions: Array<{ from: RegExp; canary: RegExp; why: string }> = [
  {
    from: /^cmdline of (child|calm|dies|dead)/,
    canary: /^(child|calm|dies|dead): argument/,
    why: 'a command has its arguments, for everybody on the machine: env is the place for secrets'
  },
  {
    from: /^environ of (child|calm|dies|dead)/,
    canary: /^((child|calm|dies|dead): env|environment: OPERATORS_KEY|system: npm registry)/,
    why: 'what a server is configured to be given, it is given'
  },
  {
    from: /\(manager/,
    canary: /^\w+: path/,
    why: 'a path is an address, and who manages a server sees it (SECURITY T24 hides it from the others)'
  }
]

interface Tokens { valid: string, disabled: string, wrong: string }

/** A gateway that is full of canaries, and who asks it. */
interface World {
  canaries: Aviary
  plant: (name: string) => string
  tokens: Tokens
  servers: Record<string, Json>
  upstream: Awaited<ReturnType<typeof startUpstream>>
  echo: Awaited<ReturnType<typeof echoes>>
  hub: ProcessHub
  ear: Ear
  /** Headers of an admin, of a user, and of a system key. */
  admin: Record<string, string>
  alice: Record<string, string>
  system: Record<string, string>
  /** A key of alice's. */
  hers: string
}

/** Servers that never connect. */
const failing = [
  'dies', 'dead', 'userinfo', 'tls', 'closed', 'nowhere', 'unauthorized', 'broken', 'redirects', 'garbled', 'html',
  'refusing', 'events', 'proxied', 'barred', 'undocumented'
]

const statusOf = async ({ ear, admin }: World, name: string): Promise<{ status: unknown, error: unknown }> => {
  const { body } = await ear.ask(`GET ${name} (manager)`, 'GET', `/api/servers/${name}`, { headers: admin })
  return { status: at(body, 'data', 'status'), error: at(body, 'data', 'error') }
}

// At `trace` a log holds what it holds at any other level.
async function start (t: Test): Promise<World> {
  const canaries = new Aviary()
  const plant = (name: string): string => canaries.plant(name)
  const environment = plantedEnvironment(plant)
  const tokens = { valid: `thk_${plant('key: valid')}`, disabled: `thk_${plant('key: disabled')}`, wrong: `thk_${plant('key: wrong')}` }
  const upstream = await startUpstream(t, {
    tools: [tool('echo')], prompts: [{ name: 'greet' }], resources: [{ uri: 'test://one', name: 'one' }]
  })
  const echo = await echoes(t)
  const api = await restApi(t)
  api.at('/openapi.json', (_request, response) => { json(response, openapi) })
  const servers = plantedServers(plant, { upstream, echo, api, closed: await freePort() })
  const hub = await spawnHub(t, {
    wait: false,
    env: { ...environment, LOG_LEVEL: 'trace', INIT_TIMEOUT: '5s', REQUEST_TIMEOUT: '5s', DRAIN_TIMEOUT: '500ms' },
    settings: plantedSettings(plant, tokens, upstream.url)
  })
  const ear = new Ear(hub)
  await until(async () => (await fetch(`${hub.url}/health/ready`)).ok, () => `never ready: ${hub.output()}`)
  // Every answer that gives a credential out gives it to who it belongs to, and is not searched for it.
  const login = async (username: string, password: string): Promise<Record<string, string>> => {
    const reply = await fetch(`${hub.url}/api/auth/login`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ username, password })
    })
    const text = await reply.text()
    const token = String(at(JSON.parse(text), 'token'))
    assert.equal(reply.status, 200, text)
    ear.take(`login of ${username}`, text.replaceAll(token, ''))
    return { 'x-auth-token': canaries.watch(`login token of ${username}`, token) }
  }
  const admin = await login('admin', String(environment.ADMIN_PASSWORD))
  const password = `Aa1!${plant('password: alice')}`
  await ear.ask('a new user', 'POST', '/api/users', { headers: admin, body: { username: 'alice', password } })
  const alice = await login('alice', password)
  const made = await fetch(`${hub.url}/api/auth/keys`, {
    method: 'POST', headers: { ...alice, 'content-type': 'application/json' }, body: '{"name":"hers"}'
  })
  const hers = canaries.watch('key: made', String(at(await made.json(), 'data', 'token')))
  const system = { authorization: `Bearer ${tokens.valid}` }
  return { canaries, plant, tokens, servers, upstream, echo, hub, ear, admin, alice, hers, system }
}

async function wrongPasswords ({ ear, plant, admin, alice }: World): Promise<void> {
  const wrong = plant('password: wrong')
  for (const [username, guess] of [
    ['admin', wrong], ['nobody', wrong], ['alice', { wrong }], [wrong, wrong]
  ]) { await ear.ask('a wrong login', 'POST', '/api/auth/login', { body: { username, password: guess } }) }
  for (const weak of [plant('password: weak'), `${plant('password: long')}${'x'.repeat(300)}`]) {
    await ear.ask('a weak password', 'POST', '/api/users', { headers: admin, body: { username: 'bob', password: weak } })
    await ear.ask('a weak password', 'PUT', '/api/users/alice', { headers: admin, body: { newPassword: `x${weak}`.slice(0, 5) } })
    await ear.ask('a password for a number', 'POST', '/api/users', { headers: admin, body: { username: 'bob', password: [weak] } })
    await ear.ask('a wrong password', 'POST', '/api/auth/change-password', {
      headers: alice,
      body: { currentPassword: weak, newPassword: weak }
    })
    await ear.ask('nobody registers', 'POST', '/api/auth/register', { body: { username: 'bob', password: weak } })
  }
}

/** Every way in stores what connects, and what does not. */
async function storeServers (t: Test, world: World): Promise<void> {
  const { ear, servers, hub, admin, system } = world
  for (const [name, config] of Object.entries(servers)) {
    const { status, text } =
      name === 'calm'
        ? await ear.ask('a batch', 'POST', '/api/servers/batch', {
          headers: system,
          body: { servers: [{ name, config }, { name, config: { ...config, args: 7 } }] }
        })
        : await ear.ask(`creates ${name} (manager)`, 'POST', '/api/servers', { headers: admin, body: { name, config } })
    assert.ok(status === 200 || status === 207, `${name}: ${text}`)
  }
  await ear.ask('a group', 'POST', '/api/groups', { headers: admin, body: { name: 'team', servers: ['child', 'remote', 'rest'] } })
  await connected(hub, 9)
  for (const name of failing) await until(async () => typeof (await statusOf(world, name)).error === 'string', `${name} has no error`)
  for (const name of ['userinfo', 'closed', 'unauthorized', 'dies']) t.comment(`${name}: ${JSON.stringify((await statusOf(world, name)).error)}`)
}

/** Nothing was planted in vain. */
async function arrived (world: World): Promise<void> {
  const { canaries, upstream, echo, hub } = world
  const received = JSON.stringify([upstream.received.map(({ headers }) => headers)])
  for (const name of ['remote: header', 'remote: header x-api-key', 'environment: OPERATORS_KEY']) {
    assert.ok(canaries.isIn(name, received), name)
  }
  for (const name of ['unauthorized: query', 'broken: header', 'refusing: header']) assert.ok(canaries.isIn(name, echo.seen.join()), name)
  const children = processesOf(hub.pid)
  for (const name of ['child: env', 'child: argument after --token', 'calm: env']) {
    assert.ok(canaries.isIn(name, JSON.stringify(children)), name)
  }
}

async function sessions (world: World): Promise<void> {
  const { canaries, plant, tokens, upstream, hub, ear, admin, hers } = world
  for (const [who, key] of [['system', tokens.valid], ['user', hers]] as const) {
    const session = await Session.open(`${hub.url}/mcp`, { key, headers: { 'x-tenant': plant(`passed header of ${who}`) } })
    const post = async (method: string, params: Json = {}): Promise<void> => {
      ear.stream(`${who}: ${method} ${JSON.stringify(params)}`, await session.post({ jsonrpc: '2.0', id: 1, method, params }))
    }
    const news = await session.listen()
    await post('logging/setLevel', { level: 'debug' })
    for (const list of ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']) await post(list)
    for (const name of [
      'child-fine', 'child-fails', 'child-logs', 'calm-fine', 'remote-echo', 'filed-echo', 'rest-things',
      'astray-things', 'bearer-things', 'basic-things', 'grant-things', 'nothing',
      ...failing.map((each) => `${each}-echo`)
    ]) { await post('tools/call', { name, arguments: {} }) }
    await post('prompts/get', { name: 'remote-greet' })
    await post('resources/read', { uri: 'test://one' })
    await post('resources/subscribe', { uri: 'test://one' })
    await post('completion/complete', { ref: { type: 'ref/prompt', name: 'remote-greet' }, argument: { name: 'a', value: '' } })
    await post('no/such')
    await upstream.broadcast('notifications/message', { level: 'error', data: 'a line' })
    if (who === 'system') await post('tools/call', { name: 'child-crashes', arguments: {} })
    // What the last call causes comes within.
    await silence(300)
    news.close()
    ear.stream(`${who}: the stream`, news)
    for (const name of ['child', 'dies', 'closed', 'grant', 'team']) {
      ear.stream(`${who}: initialize at ${name}`, await send(`${hub.url}/mcp/${name}`, { key, body: initialize() }))
    }
  }
  assert.ok(
    canaries.isIn('passed header of system', JSON.stringify(upstream.received.map(({ headers }) => headers))),
    'passthroughHeaders go on'
  )
  for (const [name, key] of Object.entries({ disabled: tokens.disabled, wrong: tokens.wrong, login: admin['x-auth-token'] ?? '' })) {
    ear.stream(`a key that is ${name}`, await send(`${hub.url}/mcp`, { key, body: initialize() }))
    for (const query of ['token', 'access_token', 'key']) {
      ear.stream(`a key in the query that is ${name}`, await send(`${hub.url}/mcp?${query}=${key}`, { key: null, body: initialize() }))
    }
    await ear.ask(`a key that is ${name}`, 'GET', '/api/servers', { headers: { authorization: `Bearer ${key}` } })
  }
  ear.stream('a key in the query', await send(`${hub.url}/mcp?token=${tokens.valid}`, { key: null, body: initialize() }))
  await until(async () => (await statusOf(world, 'child')).status === 'connected')
}

/** Bodies that hold a secret, and are none. */
const nonsense = (junk: string): string[] => [
    `{"password":"${junk}`,
    junk,
    JSON.stringify([junk]),
    JSON.stringify({ nothing: junk }),
    JSON.stringify({
      name: [junk],
      config: junk,
      username: { junk },
      password: [junk],
      enabled: junk,
      token: junk,
      servers: junk,
      routing: junk,
      mcpRouter: { apiKey: [junk] },
      toolName: [junk]
    }),
    `"${junk}`,
    `{"a":${'['.repeat(300)}"${junk}"`
]

/** Every documented route, by everybody. */
async function routes (world: World): Promise<void> {
  const { plant, tokens, ear, admin, alice, system } = world
  const bodies = nonsense(plant('malformed body'))
  const document = JSON.parse((await ear.ask('the documentation', 'GET', '/docs/json')).text) as {
    paths: Record<string, Record<string, unknown>>
  }
  const words: Record<string, string[]> = {
    '{name}': ['child', 'dies', 'team'],
    '{serverName}': ['child', 'remote'],
    '{server}': ['child', 'closed'],
    '{id}': ['team'],
    '{username}': ['alice'],
    '{tool}': ['fine'],
    '{toolName}': ['fine'],
    '{group}': ['team']
  }
  const callers: Record<string, Record<string, string>> = {
    manager: admin,
    'manager, system key': system,
    'manager, query': {},
    alice,
    nobody: {},
    'wrong key': { authorization: `Bearer ${tokens.wrong}` },
    'disabled key': { authorization: `Bearer ${tokens.disabled}` }
  }
  const questions: Array<() => Promise<unknown>> = []
  for (const [route, methods] of Object.entries(document.paths)) {
    for (let n = 0; n < 3; n++) {
      const filled = route.replace(/\{\w+\}/g, (word) => words[word]?.[n % (words[word]?.length ?? 1)] ?? 'nothing')
      if (n > 0 && filled === route) break
      // Other objects of a route are asked for by two of them.
      for (const [who, headers] of Object.entries(callers).filter(([who]) => n === 0 || who === 'manager' || who === 'alice')) {
        const query = who === 'manager, query' ? `?token=${admin['x-auth-token']}` : ''
        const sent = n > 0 ? [] : who === 'manager' ? bodies : bodies.slice(0, 1)
        if ('get' in methods) questions.push(async () => await ear.ask(`GET ${filled} (${who})`, 'GET', filled + query, { headers }))
        for (const method of ['post', 'put', 'patch']) {
          if (method in methods) {
            questions.push(
              ...sent.map(
                (body) => async () =>
                  await ear.ask(`${method} ${filled} with nonsense (${who})`, method.toUpperCase(), filled + query, { headers, body })
              )
            )
          }
        }
      }
    }
  }
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let next = questions.pop(); next; next = questions.pop()) await next()
    })
  )
}

async function messages (world: World): Promise<void> {
  const { plant, tokens, hub, ear, admin } = world
  const junk = plant('malformed message')
  const bodies = nonsense(junk)
  for (const route of ['/health', '/metrics', '/docs/', '/config', '/public-config', '/api/nothing', '/']) {
    await ear.ask(`GET ${route}`, 'GET', route, { headers: admin })
  }
  for (const body of bodies) ear.stream('a message of nonsense', await send(`${hub.url}/mcp`, { key: tokens.valid, body }))
  const session = await Session.open(`${hub.url}/mcp`, { key: tokens.valid })
  for (const body of bodies) ear.stream('nonsense in a session', await session.post(body))
  for (const params of [
    { name: [junk] }, { name: 'child-fine', arguments: junk },
    { name: 'child-fine', _meta: { progressToken: [junk] } }, [junk]
  ]) { ear.stream('a call of nonsense', await session.post({ jsonrpc: '2.0', id: 3, method: 'tools/call', params })) }
}

/** Paths, queries, bytes and headers of nonsense. */
async function requests (world: World): Promise<void> {
  const { plant, tokens, hub, ear, admin } = world
  const junk = plant('malformed request')
  const token = admin['x-auth-token'] ?? ''
  const long = `${junk}${'x'.repeat(17_000)}`
  for (const route of [
    `/api/servers?token=${token}`, `/api/servers?token=${token}&token=${token}`, `/api/nothing?token=${token}`,
    `/api/servers/child?token=${token}.`, `/api/tools/filed/echo?token=${token}`, `/mcp?token=${token}`,
    `/docs/?token=${token}`, `/%?token=${token}`, `//api/users?token=${token}`, `/api/servers?limit=${junk}`,
    `/api/servers?token=${junk}`, `/api/servers?token[]=${junk}`, `/api/servers?${junk}=1`, `/api/servers?x=${long}`,
    `/api/openapi.json?serverUrl=http://user:${junk}@x/`, `/api/openapi.json?servers=${junk}`
  ]) {
    for (const method of ['GET', 'POST', 'HEAD', 'DELETE', 'PROPFIND']) {
      await ear.raw(
        `${method} ${route.slice(0, 30)} (manager)`,
        `${method} ${route} HTTP/1.1\r\nHost: 127.0.0.1:${hub.port}\r\nConnection: close\r\n\r\n`
      )
    }
  }
  for (const text of [
    `GET / HTTP/1.1\r\nHost: 127.0.0.1:${hub.port}\r\nX-${junk}\u0001: 1\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: ${junk}\r\nConnection: close\r\n\r\n`,
    `${junk}\r\n\r\n`,
    `GET / HTTP/9.${junk}\r\n\r\n`,
    `GET / HTTP/1.1\r\nAuthorization: ${long}\r\n\r\n`
  ]) {
    await ear.raw('bytes of nonsense', text)
  }
  await ear.raw('half a login', `POST /api/auth/login HTTP/1.1\r\nHost: 127.0.0.1:${hub.port}\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"password":"${junk}"`, true)
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', `application/${junk}`, 'application/json; charset=utf-16']) {
    await ear.ask(`a login as ${type.slice(0, 12)}`, 'POST', '/api/auth/login', {
      headers: { 'content-type': type },
      body: `password=${junk}`
    })
  }
  for (const [name, value] of [
    ['origin', `https://${junk}.example`], ['x-forwarded-for', junk], ['cookie', `session=${junk}`],
    ['accept', `text/${junk}`], ['mcp-session-id', junk], ['mcp-protocol-version', junk], ['last-event-id', junk]
  ] as const) {
    ear.stream(
      `a header of nonsense: ${name}`,
      await send(`${hub.url}/mcp`, { key: tokens.valid, headers: { [name]: value }, body: initialize() })
    )
    await ear.ask(`GET servers with ${name} of nonsense (manager)`, 'GET', '/api/servers', { headers: { ...admin, [name]: value } })
  }
}

/** What is shown and put back stays as it was, and is carried nowhere else. */
async function roundTrips (world: World): Promise<void> {
  const { servers, echo, hub, ear, admin } = world
  const wrong: string[] = []
  for (const name of Object.keys(servers)) {
    const { body } = await ear.ask(`GET ${name} (manager)`, 'GET', `/api/servers/${name}`, { headers: admin })
    const shown = at(body, 'data', 'config') as Json
    const again = await ear.ask(`GET ${name}, put back (manager)`, 'PUT', `/api/servers/${name}`, {
      headers: admin,
      body: { config: shown }
    })
    assert.equal(again.status, 200, `${name}: ${again.text}`)
    const elsewhere = shown.command === undefined ? { ...shown, url: `${echo.url}/garbled` } : { ...shown, command: '/bin/cat' }
    const { status } = await ear.ask(`GET ${name}, sent elsewhere (manager)`, 'PUT', `/api/servers/${name}`, {
      headers: admin,
      body: { config: elsewhere }
    })
    if (status !== 400) wrong.push(`${name}: its secrets were carried to another target: ${status}`)
    for (const enabled of [false, true]) {
      await ear.ask(`GET ${name}, toggled (manager)`, 'POST', `/api/servers/${name}/toggle`, { headers: admin, body: { enabled } })
    }
  }
  const stored = at(JSON.parse(readFileSync(hub.settingsPath, 'utf8')), 'mcpServers') as Record<string, Json>
  for (const [name, config] of Object.entries(servers)) {
    for (const [member, value] of Object.entries(config)) {
      if (!isDeepStrictEqual(stored[name]?.[member], value)) wrong.push(`${name}.${member} came back as another value`)
    }
  }
  assert.deepEqual(wrong, [])
}

async function changes (world: World): Promise<void> {
  const { plant, servers, ear, admin, alice } = world
  for (const query of ['', '?download=1']) {
    await ear.ask('GET export (manager)', 'GET', `/api/mcp-settings/export${query}`, { headers: admin })
    await ear.ask('the export of alice', 'GET', `/api/mcp-settings/export${query}`, { headers: alice })
    assert.equal(
      (await ear.ask('secrets for alice', 'GET', '/api/mcp-settings/export?includeSecrets=true', { headers: alice })).status,
      403
    )
  }
  const settingsOf = await ear.ask('GET settings (manager)', 'GET', '/api/settings', { headers: admin })
  const { routing, install, mcpRouter, smartRouting } = at(settingsOf.body, 'data', 'systemConfig') as Json
  for (const body of [
    { mcpRouter, smartRouting, install },
    { routing },
    { mcpRouter: { apiKey: plant('system: a new mcpRouter.apiKey') } },
    { routing: { bearerAuthKey: plant('system: a new bearerAuthKey') } },
    {
      smartRouting: {
        llmProviderApiKey: plant('system: a new llmProviderApiKey'),
        dbUrl: `postgres://user:${plant('system: a new dbUrl')}@db.invalid/x`
      }
    }
  ]) { await ear.ask('GET system-config (manager)', 'PUT', '/api/system-config', { headers: admin, body }) }
  await ear.ask('GET keys', 'GET', '/api/auth/keys', { headers: admin })
  for (const name of ['child', 'remote', 'rest']) {
    await ear.ask(`GET ${name}, reloaded (manager)`, 'POST', `/api/servers/${name}/reload`, { headers: admin })
    for (const headers of [admin, alice]) {
      await ear.ask(`calls ${name}`, 'POST', `/api/tools/call/${name}`, {
        headers: { ...headers, 'x-tenant': plant(`passed header at ${name}`) },
        body: { toolName: name === 'child' ? 'fine' : name === 'rest' ? 'things' : 'echo', arguments: {} }
      })
    }
  }
  for (const name of ['dies', 'refusing', 'garbled', 'astray', 'grant', 'barred']) {
    await ear.ask(`calls ${name}`, 'POST', `/api/tools/call/${name}`, { headers: admin, body: { toolName: 'things' } })
  }
  for (const name of ['remote', 'dies', 'tls', 'closed']) {
    await ear.ask(`publishes ${name} (manager)`, 'PUT', `/api/servers/${name}`, {
      headers: admin,
      body: { config: { ...servers[name], visibility: 'public' } }
    })
  }
  for (const headers of [alice, {}]) {
    for (const name of ['remote', 'dies', 'tls', 'closed', 'child']) {
      await ear.ask(`${name} for others`, 'GET', `/api/servers/${name}`, { headers })
      await ear.ask(`${name} is run by others`, 'GET', `/api/tools/${name}/echo?message=hi`, { headers })
    }
    for (const route of [
      '/api/servers', '/api/settings', '/api/openapi.json?includeDisabled=true', '/api/openapi.yaml',
      '/api/openapi/stats', '/api/audit'
    ]) { await ear.ask(`${route} for others`, 'GET', route, { headers }) }
  }
  await ear.ask('GET audit (manager)', 'GET', '/api/audit?limit=100', { headers: admin })
}

/** The gateway ends within a call; then its processes, its log and its files are heard. */
async function theEnd ({ canaries, tokens, hub, ear }: World): Promise<void> {
  const children = processesOf(hub.pid)
  assert.ok(children.length >= 2, `${children.length} children`)
  for (const { cmdline, environ } of children) {
    const name = ['child', 'calm', 'dies', 'dead'].find((each) => canaries.isIn(`${each}: env`, environ.API_TOKEN ?? '')) ?? 'another'
    ear.take(`cmdline of ${name}`, cmdline)
    ear.take(`environ of ${name}`, JSON.stringify(environ))
  }
  ear.take('cmdline of the gateway', readFileSync(`/proc/${hub.pid}/cmdline`, 'latin1'))

  const session = await Session.open(`${hub.url}/mcp/child`, { key: tokens.valid })
  const told = (): number => hub.output().split('argv ').length
  const before = told()
  const hanging = await session.start({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'hangs', arguments: {} } })
  await until(() => told() > before, 'the call never came to the server')
  assert.equal(await hub.stop(), 0)
  await hanging.done
  ear.stream('a call that the end cut', hanging)
  ear.take('the log', hub.output())
  const files = readdirSync(hub.folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  for (const { parentPath, name } of files) {
    if (!name.startsWith('mcp_settings.json')) ear.take(`the file ${name}`, readFileSync(join(parentPath, name), 'latin1'))
  }
  const written = readFileSync(hub.settingsPath, 'utf8')
  // What is sent on is kept as it is (0600); keys and passwords are hashes.
  ear.take('the users and keys of the settings file', JSON.stringify({ ...JSON.parse(written) as Json, mcpServers: {}, systemConfig: {} }))
}

function unseen (t: Test, { canaries, ear }: World): void {
  const used = new Set<object>()
  const leaks = new Map<string, string>()
  for (const { from, text } of ear.heard) {
    for (const { name, form, around } of canaries.find(text)) {
      const exception = exceptions.find((each) => each.from.test(from) && each.canary.test(name))
      if (exception) used.add(exception)
      else leaks.set(`${name} (${form}) in ${from.replace(/[0-9a-f-]{36}/g, '…')}`, around)
    }
  }
  t.comment(`${ear.heard.length} answers and files, ${ear.heard.reduce((sum, { text }) => sum + text.length, 0)} characters`)
  if (process.env.CANARY_LEAKS) for (const [what, around] of leaks) console.log(`LEAK ${what}\n     ${JSON.stringify(around)}`)
  assert.deepEqual([...leaks.keys()], [])
  for (const exception of exceptions) assert.ok(used.has(exception), `an exception that nothing needs: ${exception.why}`)
}

test('canaries: what is secret stays so', async (t) => {
  const world = await start(t)
  for (const form of [
    (text: string) => text,
    (text: string) => Buffer.from(`Bearer ${text}!`).toString('base64'),
    (text: string) => Buffer.from(text).toString('hex'),
    (text: string) => JSON.stringify(`"${text}"`),
    (text: string) => `x${text.slice(0, 20)}`
  ]) { assert.ok(world.canaries.find(form(world.plant('probe'))).length > 0, 'the search finds nothing') }
  await wrongPasswords(world)
  await storeServers(t, world)
  await t.test('nothing was planted in vain', async () => { await arrived(world) })
  await t.test('sessions, calls and news', async () => { await sessions(world) })
  await t.test('every documented route, by everybody', async () => { await routes(world) })
  await t.test('messages of nonsense', async () => { await messages(world) })
  await t.test('paths, queries and bytes of nonsense', async () => { await requests(world) })
  await t.test('round trips', async () => { await roundTrips(world) })
  await t.test('changes', async () => { await changes(world) })
  await theEnd(world)
  await t.test('and none of it was seen', async (t) => { unseen(t, world) })
})
