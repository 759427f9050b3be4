import assert from 'node:assert/strict'
import { test } from 'tap'
import { CallMetrics } from '../../plugins/extensions/metrics/call-metrics.ts'
import type { Env } from '../../schemas/env.ts'
import { Refusal, startUpstream, tool } from '../fakes/fault-http.ts'
import { appFor } from '../helpers/app.ts'
import { KEY, OTHER, otherKey, settings } from '../helpers/client.ts'
import { bearerKey, until, type Cleanup } from '../helpers/hub.ts'
import { openSession } from '../helpers/inject.ts'

/** A gateway whose servers `open` and `closed` were each called once. */
async function started (t: Cleanup, mode: Env['METRICS'] | undefined) {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const servers = { open: { url: upstream.url, visibility: 'public' }, closed: { url: upstream.url, visibility: 'private' } }
  const app = await appFor(
    t,
    { ...settings(servers), bearerKeys: [bearerKey(), otherKey({ accessType: 'servers', allowedServers: ['open'] })] },
    mode === undefined ? {} : { METRICS: mode }
  )
  await until(() => app.upstreams.countByStatus().connected === 2)
  const session = await openSession(app, '/mcp', KEY)
  for (const server of ['open', 'closed']) await session.request('tools/call', { name: `${server}-echo`, arguments: { message: 'x' } })
  const read = async (token?: string): Promise<{ status: number, servers: string[], text: string }> => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const { statusCode: status, body: text } = await app.inject({ url: '/metrics', headers })
    return { status, servers: ['open', 'closed'].filter((name) => text.includes(`server="${name}"`)), text }
  }
  return { app, read }
}

test('metrics: by default', async (t) => {
  const { app, read } = await started(t, undefined)

  await t.test('they are for admins', async () => {
    const { status, servers } = await read(KEY)
    assert.deepEqual([status, servers], [200, ['open', 'closed']])
    for (const token of [undefined, OTHER, 'nobody']) assert.deepEqual([(await read(token)).status, (await read(token)).servers], [401, []])
  })

  await t.test('they have the names that dashboards know, the build, and which server is up', async () => {
    const { text } = await read(KEY)
    for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds', 'nodejs_heap_size_used_bytes']) {
      assert.match(text, new RegExp(`^${name}\\b`, 'm'))
    }
    assert.match(text, new RegExp(`^toolhub_build_info\\{version="${app.config.version}",node="${process.version}"\\} 1$`, 'm'))
    assert.match(text, /^toolhub_upstream_up\{server="open"\} 1$/m)
    await app.settings.change(({ servers }) => {
      const server = servers.get('open')
      assert.ok(server)
      return [{ entity: 'mcpServers', key: 'open', value: { ...server.config, url: 'http://127.0.0.1:9/mcp' } }]
    })
    await until(async () => (await read(KEY)).text.includes('toolhub_upstream_up{server="open"} 0'))
    assert.match((await read(KEY)).text, /^toolhub_upstream_up\{server="closed"\} 1$/m)
  })
})

test('metrics: only a key in Authorization or a login in x-auth-token counts, also where nobody has to log in', async (t) => {
  const password = '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234'
  const app = await appFor(t, {
    users: [{ username: 'admin', password, isAdmin: true }],
    bearerKeys: [bearerKey()],
    systemConfig: { routing: { skipAuth: true, bearerAuthHeaderName: 'X-Key' } }
  })
  const admin = app.settings.current.users.get('admin')
  assert.ok(admin)
  const login = app.auth.createLoginToken(admin)
  for (const [url, headers, status] of [
    ['/metrics', {}, 401],
    [`/metrics?token=${login}`, {}, 401],
    ['/metrics', { 'x-key': KEY }, 401],
    ['/metrics', { authorization: `Bearer ${login}` }, 401],
    ['/metrics', { authorization: `Bearer ${KEY}` }, 200],
    ['/metrics', { 'x-auth-token': login }, 200],
    // The management API has a guest.
    ['/api/servers', {}, 200]
  ] as const) assert.equal((await app.inject({ url, headers })).statusCode, status, `${url} ${JSON.stringify(headers)}`)
})

test('metrics: METRICS=public opens them, and names servers to who may see them', async (t) => {
  const { read } = await started(t, 'public')
  assert.deepEqual((await read(KEY)).servers, ['open', 'closed'])
  for (const token of [undefined, OTHER, 'nobody']) {
    const { status, servers, text } = await read(token)
    assert.deepEqual([status, servers], [200, ['open']], token)
    assert.match(text, /^toolhub_sessions 1$/m)
    assert.match(text, /^toolhub_upstreams\{status="connected"\} 2$/m)
  }
})

test('metrics: a registry that could not be created is created at the next request', async (t) => {
  const app = await appFor(t, settings({}))
  const failing = t.intercept(CallMetrics.prototype, 'register', { value: () => { throw new Error('too many open files') } })
  const read = async (): Promise<number> =>
    (await app.inject({ url: '/metrics', headers: { authorization: `Bearer ${KEY}` } })).statusCode
  assert.equal(await read(), 500)
  failing.restore()
  assert.equal(await read(), 200)
})

test('metrics: what activities count as an error is none of the calls that are ok', async (t) => {
  const upstream = await startUpstream(t, {
    tools: [tool('echo'), tool('fails'), tool('breaks')],
    on: ({ method, params }) =>
      method !== 'tools/call'
        ? undefined
        : params.name === 'fails'
          ? { content: [], isError: true }
          : params.name === 'breaks' ? new Refusal(-32000, 'broken') : { content: [{ type: 'text', text: '"isError":true' }], isError: false }
  })
  const app = await appFor(t, settings({ one: { url: upstream.url } }))
  await until(() => app.upstreams.countByStatus().connected === 1)
  const session = await openSession(app, '/mcp', KEY)
  for (const name of ['echo', 'fails', 'fails', 'breaks']) await session.request('tools/call', { name: `one-${name}`, arguments: { message: 'x' } })
  const { body } = await app.inject({ url: '/metrics', headers: { authorization: `Bearer ${KEY}` } })
  const counts = [...body.matchAll(/^toolhub_calls_total\{server="one",method="tools\/call",outcome="(\w+)"\} (\d+)$/gm)]
  assert.deepEqual(counts.map(([, outcome, count]) => [outcome, count]), [['ok', '1'], ['tool_error', '2'], ['error', '1']])
  assert.match(body, /^toolhub_call_seconds_count\{server="one"\} 4$/m)
  for (const line of body.split('\n').filter((each) => each !== '' && !each.startsWith('#'))) {
    assert.match(line, /^[a-zA-Z_:][\w:]*(?:\{[^}]*\})? (?:-?[\d.e+-]+|nan|[+-]Inf)(?: \d+)?$/i)
  }
})

test('metrics: what a caller makes up is no label', async (t) => {
  const { app, read } = await started(t, undefined)
  const session = await openSession(app, '/mcp', KEY)
  const headers = { authorization: `Bearer ${KEY}` }
  // What Node reports of itself has a line for each kind of open handle.
  const count = async (): Promise<number> => (await read(KEY)).text.split('\n').filter((line) => !/^(nodejs|process)_/.test(line)).length
  for (let n = 0, former = 0; n < 30; n++) {
    const name = `nobody-knows-${n}`
    for (const [server, toolName] of [[name, 'echo'], ['open', name]]) {
      await app.inject({ method: 'POST', url: `/api/tools/call/${server}`, headers, payload: { toolName, arguments: {} } })
    }
    await session.request('tools/call', { name, arguments: {} })
    for (const url of [`/api/${name}`, `/${name}`]) await app.inject({ url, headers })
    if (n === 0) former = await count()
    if (n === 29) assert.equal(await count(), former)
  }
  assert.ok(!(await read(KEY)).text.includes('nobody-knows'))
})

test('metrics: a removed server frees its name and its place', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const app = await appFor(t, settings({ one: { url: upstream.url }, two: { url: upstream.url } }))
  await until(() => app.upstreams.countByStatus().connected === 2)
  const session = await openSession(app, '/mcp', KEY)
  for (const name of ['one', 'two']) await session.request('tools/call', { name: `${name}-echo`, arguments: { message: 'x' } })
  const headers = { authorization: `Bearer ${KEY}` }
  assert.equal((await app.inject({ method: 'DELETE', url: '/api/servers/one', headers })).statusCode, 200)
  const { body } = await app.inject({ url: '/metrics', headers })
  const counted = [...body.matchAll(/^toolhub_calls_total\{server="(\w+)"/gm)].map(([, server]) => server)
  assert.deepEqual(counted, ['two'])

  const servers = new Set<string>(['last'])
  const calls = new CallMetrics((server) => servers.has(server))
  for (let at = 0; at < 300; at++) {
    servers.add(`s${at}`)
    assert.equal(calls.labelOf(`s${at}`), `s${at}`)
    servers.delete(`s${at}`)
    calls.remove(`s${at}`)
    assert.equal(calls.labelOf(`s${at}`), 'other')
  }
  assert.equal(calls.labelOf('last'), 'last')
})

test('metrics: METRICS_TOKEN opens them, and nothing else', async (t) => {
  const METRICS_TOKEN = 'a token for the metrics alone'
  const variable = '$' + '{METRICS_TOKEN}'
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const stored = { ...settings({ closed: { url: upstream.url, visibility: 'private', headers: { 'x-t': variable } } }) }
  const app = await appFor(t, stored, { METRICS_TOKEN }, { environment: { PATH: process.env.PATH, METRICS_TOKEN } })
  await until(() => app.upstreams.countByStatus().connected === 1)
  assert.ok(upstream.received.every(({ headers }) => headers['x-t'] === variable), 'no server\'s config gets it')
  const ask = async (url: string, authorization: string, method: 'GET' | 'POST' = 'GET'): Promise<number> =>
    (await app.inject({ url, method, headers: { authorization, accept: 'application/json, text/event-stream' } })).statusCode
  for (const [authorization, status] of [
    [`Bearer ${METRICS_TOKEN}`, 200], [`bearer  ${METRICS_TOKEN} `, 200],
    [METRICS_TOKEN, 401], [`Basic ${METRICS_TOKEN}`, 401], [`Bearer ${METRICS_TOKEN}x`, 401], ['Bearer ', 401], ['', 401]
  ] as const) assert.equal(await ask('/metrics', authorization), status, authorization)
  const { body } = await app.inject({ url: '/metrics', headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
  assert.match(body, /server="closed"/, 'of all servers')
  for (const url of ['/api/servers', '/api/settings', '/api/logs', '/api/auth/keys', '/mcp']) {
    assert.equal(await ask(url, `Bearer ${METRICS_TOKEN}`), 401, url)
  }
  for (const url of [`/metrics?token=${METRICS_TOKEN}`, `/metrics?access_token=${METRICS_TOKEN}`]) assert.equal(await ask(url, ''), 401, url)
  const none = await appFor(t, stored)
  assert.equal((await none.inject({ url: '/metrics', headers: { authorization: 'Bearer undefined' } })).statusCode, 401)
  const off = await appFor(t, stored, { METRICS_TOKEN, METRICS: 'off' })
  for (const token of [METRICS_TOKEN, KEY]) {
    assert.equal((await off.inject({ url: '/metrics', headers: { authorization: `Bearer ${token}` } })).statusCode, 404)
  }
})
