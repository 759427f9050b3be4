/* eslint no-template-curly-in-string: off -- they are what this is about */
// What goes out with a connection: variables that are filled in, what a child is given, and headers of the caller that go on.
import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { RpcError, UpstreamError } from '../../protocol/errors.ts'
import { limits } from '../../plugins/limits/index.ts'
import { Outbound } from '../../plugins/outbound/outbound.ts'
import { childEnvironment, withheldNames, type Install } from '../../plugins/upstream/links/environment.ts'
import { digestOf, isForwardable, passedOn, passthroughOf, type Passed } from '../../plugins/upstream/links/passthrough.ts'
import { SharedApi } from '../../plugins/upstream/openapi/api.ts'
import { Semaphore } from '../../plugins/limits/semaphore.ts'
import { makeTransport } from '../../plugins/upstream/links/transport.ts'
import { Upstreams } from '../../plugins/upstream/upstreams.ts'
import { expand, isOurs } from '../../plugins/upstream/links/variables.ts'
import {
  KEY, OTHER, Session, connected, initialize, otherKey, plain, send, settings, text, type Json, type Message
} from '../helpers/client.ts'
import { FakeExchange } from '../fakes/exchange.ts'
import { startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { bearerKey, startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'

/** A stdio server whose one tool tells its arguments and environment. */
const teller = `
process.stdin.setEncoding('utf8')
let rest = ''
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\\n')
  rest = lines.pop()
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) continue
    const result = method === 'initialize'
      ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'teller', version: '1' } }
      : method === 'tools/list' ? { tools: [{ name: 'tell', inputSchema: { type: 'object' } }] }
        : { content: [{ type: 'text', text: JSON.stringify({ args: process.argv.slice(1), env: process.env }) }] }
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
  }
})
process.stderr.write('started with ' + process.env.TOKEN + '\\n')
`
const tells = (...args: string[]): Json => ({ command: process.execPath, args: ['-e', teller, '--', ...args] })

// ── variables ──

const environment = {
  FOO: 'foo-value',
  BAR: '${FOO}',
  EMPTY: '',
  LINE: 'with a break\n',
  BASE: 'https://internal.example:8443',
  HOST_NAME: 'inner.example',
  JWT_SECRET: 'canary',
  DB_URL: 'canary',
  ADMIN_PASSWORD: 'canary',
  ENCRYPTION_KEY: 'canary',
  IDP_CLIENT_SECRET: 'canary',
  SOCIAL_AUTH_URL: 'canary',
  PGPASSWORD: 'canary',
  pgpassword: 'canary',
  Jwt_Secret: 'canary'
}

test('expand: ${NAME} from the environment', async (t) => {
  await t.test('in env, headers, url and args, and nowhere else', async () => {
    const all = {
      command: '${FOO}',
      cwd: '${FOO}',
      description: '${FOO}',
      url: 'http://h/${FOO}',
      args: ['--a=${FOO}', '${FOO}${FOO}'],
      env: { A: '${FOO}', '${FOO}': 'x' },
      headers: { 'x-a': 'Bearer ${FOO}' }
    }
    const { config, warnings } = expand(all, environment)
    assert.deepEqual(config, {
      command: '${FOO}',
      cwd: '${FOO}',
      description: '${FOO}',
      url: 'http://h/foo-value',
      args: ['--a=foo-value', 'foo-valuefoo-value'],
      env: { A: 'foo-value', '${FOO}': 'x' },
      headers: { 'x-a': 'Bearer foo-value' }
    })
    assert.deepEqual(warnings, [])
    assert.equal(all.url, 'http://h/${FOO}', 'what is written down stays as it is')
  })
  await t.test('once, and only what is written so', async () => {
    const written = ['${BAR}', '${EMPTY}', '$FOO', '${ FOO }', '${FOO:-x}', '${}', '$${FOO}', '${FOO', '${constructor}', '${__proto__}']
    assert.deepEqual(expand({ args: written }, environment).config.args, [
      '${FOO}', '', '$FOO', '${ FOO }', '${FOO:-x}', '${}', '$foo-value', '${FOO', '${constructor}', '${__proto__}'
    ])
    assert.equal(
      expand({ headers: { a: '${LINE}' } }, environment).config.headers?.a, 'with a break',
      'a line break at the end of a secret is no part of a header'
    )
  })
  await t.test('never our own secrets; what is not filled in is told by name', async () => {
    for (const name of [
      'JWT_SECRET', 'DB_URL', 'ADMIN_PASSWORD', 'ENCRYPTION_KEY', 'IDP_CLIENT_SECRET', 'SOCIAL_AUTH_URL', 'PGPASSWORD',
      'pgpassword', 'Jwt_Secret', 'OIDC_CLIENT_SECRET', 'PGHOST', 'OTEL_EXPORTER_OTLP_HEADERS',
      'OTEL_EXPORTER_OTLP_TRACES_HEADERS'
    ]) {
      assert.ok(isOurs(name), name)
      const { config, warnings } = expand(
        { headers: { a: `\${${name}}` }, url: `http://h/\${${name}}`, args: [`\${${name}}`], env: { A: `\${${name}}` } },
        environment
      )
      assert.doesNotMatch(JSON.stringify([config, warnings]), /canary/, name)
      assert.deepEqual(
        warnings,
        ['env', 'headers', 'url', 'args'].map((place) => `\${${name}} in ${place} is not filled in: it is a secret of the gateway's own`)
      )
    }
    for (const name of ['FOO', 'IDP_CLIENT_ID', 'MY_JWT_SECRET', 'DATABASE_URL']) assert.ok(!isOurs(name), name)
    const { config, warnings } = expand({ headers: { a: '${NOT_SET} ${NOT_SET} ${FOO}' } }, environment)
    assert.equal(config.headers?.a, '${NOT_SET} ${NOT_SET} foo-value')
    assert.deepEqual(warnings, ['${NOT_SET} in headers is not set'])
  })
  await t.test('never where somebody stored it who is no admin', async () => {
    const { config, warnings } = expand(
      { storedByUser: true, owner: 'admin', url: 'http://h/${FOO}', headers: { a: '${FOO}' } }, environment
    )
    assert.deepEqual([config.url, config.headers], ['http://h/${FOO}', { a: '${FOO}' }])
    assert.deepEqual(
      warnings,
      ['headers', 'url'].map((place) => `\${FOO} in ${place} is not filled in: an admin has to write this value for that`)
    )
  })
  await t.test('value by value: what an admin wrote beside it is filled in', async () => {
    const { config, warnings } = expand(
      { storedByUser: ['/url', '/headers/a~1b', '/args/1'], url: '${BASE}', headers: { 'a/b': '${FOO}', c: '${FOO}' }, args: ['${FOO}', '${FOO}'] },
      environment
    )
    assert.deepEqual([config.url, config.headers, config.args], ['${BASE}', { 'a/b': '${FOO}', c: 'foo-value' }, ['foo-value', '${FOO}']])
    assert.equal(warnings.length, 3)
  })
  await t.test('values are taken out of what is shown again', async () => {
    assert.equal(
      expand({ args: ['${FOO}'], env: { A: '${EMPTY}' } }, environment).hide('it said foo-value, then foo-value'),
      'it said ${FOO}, then ${FOO}'
    )
    assert.equal(
      expand({ url: '${BASE}/mcp' }, environment).hide('cannot reach internal.example:8443: refused'),
      'cannot reach ${BASE}: refused'
    )
    assert.equal(
      expand({ url: 'https://${HOST_NAME}/mcp' }, environment).hide('cannot reach inner.example: refused'),
      'cannot reach ${HOST_NAME}: refused'
    )
    assert.equal(expand({ url: 'https://h/${FOO}' }, environment).hide('cannot reach h: refused'), 'cannot reach h: refused')
  })
  await t.test('what cannot be connected to once it is filled in: an error without values', async (t) => {
    const outbound = new Outbound({ allow: '' })
    t.after(async () => { await outbound.close() })
    const make = (config: Json): unknown =>
      makeTransport('streamable-http', expand(config, environment).config, {
        outbound, environment, onLine: () => {}, warn: () => {}, sharedApi: new SharedApi()
      })
    make({ url: '${BASE}/mcp' })
    for (const config of [{ url: '${FOO}' }, { url: '${NOT_SET}/mcp' }, { url: 'http://h/', headers: { a: '${LINE}x' } }]) {
      assert.throws(
        () => make(config),
        (error) => error instanceof UpstreamError && error.fault === 'refused' && !/foo-value|with a break/.test(error.message),
        JSON.stringify(config)
      )
    }
  })
})

test('childEnvironment: what a child is given', async (t) => {
  const given = {
    PATH: '/bin',
    HOME: '/home/x',
    TZ: 'UTC',
    LANG: 'C',
    ...environment,
    NODE_OPTIONS: '--ours',
    AWS_SECRET_ACCESS_KEY: 'canary',
    TOOL_HUB_X: 'canary'
  }
  const npm = [
    'npm_config_registry', 'pnpm_config_registry', 'YARN_REGISTRY', 'YARN_NPM_REGISTRY_SERVER', 'BUN_CONFIG_REGISTRY',
    'COREPACK_NPM_REGISTRY'
  ]
  const python = ['UV_DEFAULT_INDEX', 'UV_INDEX_URL', 'PIP_INDEX_URL']
  const minimal = { PATH: '/bin', HOME: '/home/x', TZ: 'UTC', LANG: 'C' }
  const to = (names: string[], address: string): Record<string, string> => Object.fromEntries(names.map((name) => [name, address]))

  await t.test('little of ours, and its own', async () => {
    assert.deepEqual(childEnvironment({ env: { A: '1', PATH: '/opt' } }, given, {}), { ...minimal, A: '1', PATH: '/opt' })
  })
  await t.test('where packages come from, unless its own environment says so', async () => {
    const install = { npmRegistry: 'https://npm.example/', pythonIndexUrl: 'https://py.example/simple' }
    assert.deepEqual(childEnvironment({}, given, install), {
      ...minimal, ...to(npm, install.npmRegistry), ...to(python, install.pythonIndexUrl)
    })
    assert.deepEqual(childEnvironment({}, given, { npmRegistry: install.npmRegistry, pythonIndexUrl: '' }), {
      ...minimal,
      ...to(npm, install.npmRegistry)
    })
    assert.deepEqual(childEnvironment({ env: { NPM_CONFIG_REGISTRY: 'https://own/' } }, given, install), {
      ...minimal, NPM_CONFIG_REGISTRY: 'https://own/', ...to(python, install.pythonIndexUrl)
    })
    assert.deepEqual(childEnvironment({ env: { UV_INDEX_URL: 'https://own/' } }, given, install), {
      ...minimal, UV_INDEX_URL: 'https://own/', ...to(npm, install.npmRegistry)
    })
  })
  await t.test('nothing that makes it run something else, where a user stored it who is no admin', async () => {
    const hijacks = [
      'LD_PRELOAD', 'LD_LIBRARY_PATH', 'DYLD_INSERT_LIBRARIES', 'NODE_OPTIONS', 'node_options', 'PYTHONSTARTUP',
      'BASH_ENV', 'GIT_SSH_COMMAND'
    ]
    const env = { ...to(hijacks, 'x'), A: '1', LDAP: '2' }
    assert.deepEqual(childEnvironment({ env, storedByUser: true }, given, {}), { ...minimal, A: '1', LDAP: '2' })
    assert.deepEqual(withheldNames({ env, storedByUser: true }), hijacks)
    assert.deepEqual(withheldNames({ env, storedByUser: ['/env/A', '/env/BASH_ENV'] }), ['BASH_ENV'])
    assert.deepEqual(childEnvironment({ env }, given, {}), { ...minimal, ...env })
  })
  await t.test('other addresses count from the next connection on', async (t) => {
    let install: Install = { npmRegistry: 'https://one.example/' }
    const outbound = new Outbound({ allow: '' })
    const warned: string[] = []
    const upstreams = new Upstreams({
      clientInfo: { name: 'test', version: '1' },
      transport: { outbound, environment: { PATH: process.env.PATH ?? '' }, install: () => install },
      userOf: () => undefined,
      dialling: new Semaphore({ places: 1 }),
      cache: { read: async function * () {}, write: async () => {}, remove: async () => {}, settled: async () => {} },
      logins: { open: () => undefined, openForTest: () => undefined, close: () => {} },
      initTimeout: 10_000,
      requestTimeout: 10_000,
      onLine: () => {},
      log: (_server, level, sentence) => { if (level === 'warn') warned.push(sentence) }
    })
    t.after(async () => { await upstreams.close(); await outbound.close() })
    await upstreams.apply(new Map([['s', { name: 's', config: { ...tells(), env: { A: '${NOT_SET}' } } }]]))
    const registry = async (): Promise<unknown> => {
      await until(() => upstreams.get('s')?.status === 'connected')
      const answer = await upstreams.get('s')?.call(new FakeExchange('{"name":"tell"}'), {})
      return (JSON.parse(text(JSON.parse(answer?.resultText ?? '{}'))) as { env: Json }).env.npm_config_registry
    }
    assert.equal(await registry(), 'https://one.example/')
    install = { npmRegistry: 'https://two.example/' }
    assert.equal(await registry(), 'https://one.example/')
    await upstreams.restart('s')
    assert.equal(await registry(), 'https://two.example/')
    assert.deepEqual(upstreams.get('s')?.warnings, ['${NOT_SET} in env is not set'])
    assert.equal(warned.filter((sentence) => sentence === '${NOT_SET} in env is not set').length, 2, 'told at each start')
  })
})

test('our secrets and the values of variables go nowhere that they should not', async (t) => {
  const canaries = {
    JWT_SECRET: 'canary-jwt-0123456789abcdef0123456789',
    ADMIN_PASSWORD: 'Canary-admin-1!',
    IDP_CLIENT_SECRET: 'canary-idp',
    SOCIAL_AUTH_EXTRA: 'canary-social',
    PGPASSWORD: 'canary-pg',
    UNRELATED: 'canary-unrelated'
  }
  const secret = 'swordfish-of-the-operator'
  const http = await startUpstream(t)
  const gone = await startUpstream(t)
  const all = [...Object.keys(canaries).filter((name) => name !== 'UNRELATED'), 'NOT_SET', 'FOO'].map((name) => `\${${name}}`).join(' ')
  const hub = await startHub(t, {
    env: { ...canaries, FOO: secret, LOG_LEVEL: 'debug' },
    settings: settings({
      child: { ...tells(all), env: { TOKEN: '${FOO}', ALL: all } },
      http: {
        type: 'streamable-http',
        url: `${http.url}?q=\${FOO}&ours=\${JWT_SECRET}`,
        headers: { authorization: 'Bearer ${FOO}', 'x-all': all }
      },
      gone: { type: 'streamable-http', url: `http://127.0.0.1:${gone.port}/\${FOO}`, headers: { a: '${FOO}' } },
      dies: {
        command: process.execPath,
        args: ['-e', 'console.error("dying of " + process.env.TOKEN); process.exit(1)'],
        env: { TOKEN: '${FOO}' }
      }
    })
  })
  await gone.close()
  await connected(hub, 2)
  const left = Object.keys(canaries).filter((name) => name !== 'UNRELATED').map((name) => `\${${name}}`).join(' ')
  const session = await Session.open(`${hub.url}/mcp`)
  const told = JSON.parse(text(await session.call('child-tell'))) as { args: string[], env: Json }
  assert.equal(told.env.TOKEN, secret)
  assert.deepEqual([told.args.at(-1), told.env.ALL], [`${left} \${NOT_SET} ${secret}`, `${left} \${NOT_SET} ${secret}`])
  assert.ok(
    Object.keys(told.env).every((name) =>
      name === 'TOKEN' || name === 'ALL' || name === 'TOOL_HUB_CHILD' ||
      [
        'PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR', 'TERM',
        'SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS'
      ].includes(name)),
    JSON.stringify(Object.keys(told.env))
  )
  await session.call('http-echo')
  for (const { headers } of http.received) {
    assert.deepEqual([headers.authorization, headers['x-all']], [`Bearer ${secret}`, `${left} \${NOT_SET} ${secret}`])
  }
  const received = JSON.stringify([told, http.received.map(({ headers }) => headers)])
  for (const canary of Object.values(canaries)) assert.ok(!received.includes(canary), canary)

  await until(
    async () => /dying of \$\{FOO\}/.test(await (await fetch(`${hub.url}/api/servers/dies`, { headers: { authorization: `Bearer ${KEY}` } })).text())
  )
  const auth = { authorization: `Bearer ${KEY}` }
  const answers = await Promise.all(
    ['/api/servers', '/api/servers/http', '/api/servers/gone', '/api/servers/dies', '/metrics'].map(
      async (path) => await (await fetch(hub.url + path, { headers: auth })).text()
    )
  )
  answers.push(
    JSON.stringify(await session.request('tools/call', { name: 'gone-echo' })),
    JSON.stringify(await session.request('tools/list'))
  )
  assert.match(answers.join(), /dying of \$\{FOO\}/)
  for (const canary of [...Object.values(canaries), secret]) assert.ok(!`${answers.join()}${hub.output()}`.includes(canary), canary)
  for (const sentence of [
    'http: ${NOT_SET} in headers is not set', 'http: ${JWT_SECRET} in url is not filled in',
    'child: ${PGPASSWORD} in env is not filled in'
  ]) { assert.ok(hub.output().includes(sentence), sentence) }
})

// ── passthroughHeaders ──

const ours =
  `${Buffer.from('{"alg":"HS256"}').toString('base64url')}.${Buffer.from('{"iss":"tool-hub","sub":"admin"}').toString('base64url')}.c` +
  '2lnbmF0dXJl'
const theirs =
  `${Buffer.from('{"alg":"HS256"}').toString('base64url')}.${Buffer.from('{"iss":"elsewhere"}').toString('base64url')}.c2lnbmF0dXJl`

test('passedOn: what of a request goes on', async (t) => {
  await t.test('what never does, whatever is configured', async () => {
    for (const name of [
      'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'proxy-authorization',
      'proxy-authenticate', 'proxy-connection', 'host', 'content-length', 'content-type', 'content-encoding', 'accept',
      'accept-encoding', 'expect', 'cookie', 'mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'last-event-id',
      'x-auth-token', 'x-session-id', 'x-forwarded-for', 'x-forwarded-host', 'forwarded', 'x-real-ip', 'http2-settings',
      '', 'two words', 'a:b', 'ä'
    ]) { assert.ok(!isForwardable(name), name) }
    for (const name of [
      'authorization', 'x-tenant', 'x-api-key', 'accept-language', 'user-agent', 'traceparent', 'x-forward',
      'my_header', 'x-mcp-thing'
    ]) { assert.ok(isForwardable(name), name) }
  })
  await t.test('what is configured in vain is told', async () => {
    assert.deepEqual(
      passthroughOf({ passthroughHeaders: ['X-A', 'x-a', 'Cookie', 'X-Set', 'Mcp-Name'], headers: { 'x-SET': '1' } }, true),
      {
        names: ['x-a'],
        warnings: [
          'passthroughHeaders: "cookie" is never forwarded',
          'passthroughHeaders: "x-set" is not forwarded, since "headers" sets it',
          'passthroughHeaders: "mcp-name" is never forwarded'
        ]
      }
    )
    assert.deepEqual(passthroughOf({ passthroughHeaders: ['X-A'] }, false).names, [])
    assert.equal(passthroughOf({ passthroughHeaders: ['X-A'] }, false).warnings.length, 1)
    assert.deepEqual(passthroughOf({ passthroughHeaders: [] }, false), { names: [], warnings: [] })
  })
  await t.test('the values', async () => {
    const table: Array<[string, IncomingHttpHeaders, Record<string, string> | undefined]> = [
      ['as they came', { 'x-a': '1', 'x-b': '', 'x-c': '3' }, { 'x-a': '1', 'x-b': '' }],
      ['nothing', { 'x-c': '3' }, undefined],
      ['lists are joined', { 'x-a': ['1', '2'] }, { 'x-a': '1, 2' }],
      ['for the next hop only', { connection: 'close, X-A', 'x-a': '1', 'x-b': '2' }, { 'x-b': '2' }],
      ['Authorization of somebody else\'s', { authorization: 'Bearer secret' }, { authorization: 'Bearer secret' }],
      ['a token of somebody else\'s', { authorization: `Bearer ${theirs}` }, { authorization: `Bearer ${theirs}` }],
      ['a key of ours', { authorization: `Bearer ${KEY}`, 'x-a': '1' }, { 'x-a': '1' }],
      ['a key of ours, whatever stands around it', { authorization: 'thk_x', 'x-a': 'a, thk_b', 'x-b': 'key=thk_1' }, undefined],
      ['a login token of ours', { authorization: `Bearer ${ours}`, 'x-a': ours }, undefined],
      ['what only looks a little like one', { 'x-a': 'athk_b', 'x-b': '1.2.3' }, { 'x-a': 'athk_b', 'x-b': '1.2.3' }],
      ['Latin-1', { 'x-a': 'caf\u00e9' }, { 'x-a': 'caf\u00e9' }],
      ['as long as may be', { 'x-a': 'y'.repeat(limits.passthroughHeader) }, { 'x-a': 'y'.repeat(limits.passthroughHeader) }]
    ]
    for (const [says, headers, passed] of table) {
      assert.deepEqual(passedOn('s', ['x-a', 'x-b', 'authorization', 'constructor', '__proto__'], headers), passed, says)
    }
    for (const value of ['canary\r\nx-evil: 1', 'canary\n', 'canary\0', 'canary\u0100', `canary${'y'.repeat(limits.passthroughHeader)}`]) {
      assert.throws(() => passedOn('s', ['x-a'], { 'x-a': value }), (error) =>
        error instanceof RpcError && error.code === -32602 && error.message.includes('"x-a"') && !error.message.includes('canary'))
    }
  })
  await t.test('a digest tells values apart, and does not tell them', async () => {
    assert.equal(digestOf({ a: '1' }), digestOf({ a: '1' }))
    const digests = [{ a: '1' }, { a: '2' }, { b: '1' }, { a: '1', b: '' }, { a: '1","b":"' }].map((passed) => digestOf(passed as Passed))
    assert.equal(new Set(digests).size, digests.length)
    for (const digest of digests) assert.match(digest, /^[\w-]{43}$/)
  })
})

/** A key as a person may write it into the file. */
const plainKey = 'canary-key-that-a-person-made-up'

/** An upstream of the older transport: one event stream, and an address to POST to. */
interface SseUpstream { url: string, received: Array<{ stream: number, method: string, headers: IncomingHttpHeaders }> }

async function startSse (t: Cleanup): Promise<SseUpstream> {
  const received: SseUpstream['received'] = []
  const streams: ServerResponse[] = []
  const server = createServer((req, res) => {
    if (req.method === 'GET') {
      received.push({ stream: streams.length, method: 'GET', headers: req.headers })
      res.writeHead(200, { 'content-type': 'text/event-stream' })
        .write(`event: endpoint\ndata: /messages?stream=${streams.push(res) - 1}\n\n`)
      return
    }
    let body = ''
    req.on('data', (chunk) => { body += String(chunk) })
    req.on('end', () => {
      const { id, method = '', params } = JSON.parse(body) as Message
      const stream = Number(new URL(req.url ?? '', 'http://h').searchParams.get('stream'))
      received.push({ stream, method, headers: req.headers })
      res.writeHead(202).end()
      if (id === undefined) return
      const result =
        method === 'initialize'
          ? { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'sse', version: '1' } }
          : method === 'tools/list' ? { tools: [tool('echo')] } : { content: [] }
      streams[stream]?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
    })
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.after(async () => { server.closeAllConnections(); await new Promise((resolve) => { server.close(resolve) }) })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`, received }
}

const listing = new Set(['ping', 'tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'])

/** One call of a session with headers of its own. */
async function call (
  session: Session,
  name: string,
  headers: Record<string, string>,
  id: number | string = Math.random().toString(36)
): Promise<Message> {
  const reply = await session.post({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {} } }, headers)
  const message = reply.messages.find((each) => each.id === id)
  assert.ok(message, reply.body)
  return message
}

const valuesOf = (upstream: Upstream, name: string, method = 'tools/call'): unknown[] =>
  upstream.received.filter(({ message }) => message.method === method).map(({ headers }) => headers[name])

test('passthroughHeaders: from the caller to the server, and to nobody else', async (t) => {
  const options = { resources: [{ uri: 'r://1', name: 'one' }] }
  const shared = await startUpstream(t, {
    ...options,
    on: async ({ method, params }) => (method === 'tools/call' && params.name === 'slow' ? ('never' as const) : undefined),
    tools: [tool('echo'), tool('slow')]
  })
  const own = await startUpstream(t, {
    ...options,
    on: async ({ method, params }) => (method === 'tools/call' && params.name === 'slow' ? ('never' as const) : undefined),
    tools: [tool('echo'), tool('slow')]
  })
  const none = await startUpstream(t)
  const sse = await startSse(t)
  const passthroughHeaders = ['X-Tenant', 'Authorization', 'Cookie', 'X-Set', 'X-Forwarded-For', 'Mcp-Session-Id']
  const hub = await startHub(t, {
    env: { LOG_LEVEL: 'debug', ADMIN_PASSWORD: 'Adm1n-password!' },
    settings: settings(
      {
        shared: {
          type: 'streamable-http',
          url: shared.url,
          passthroughHeaders,
          headers: { 'X-Set': 'configured' },
          keepAliveInterval: 1_000
        },
        own: { type: 'streamable-http', url: own.url, passthroughHeaders, isolation: 'session' },
        none: { type: 'streamable-http', url: none.url },
        events: { type: 'sse', url: sse.url, passthroughHeaders }
      },
      {
        bearerKeys: [
          ...(settings({}).bearerKeys as Json[]),
          otherKey(),
          bearerKey({ id: '33333333-3333-4333-8333-333333333333', name: 'plain', token: plainKey })
        ]
      }
    )
  })
  await connected(hub, 4)
  const ann = await Session.open(`${hub.url}/mcp`)
  const bob = await Session.open(`${hub.url}/mcp`, { key: OTHER })

  await t.test('the values of one principal never meet another\'s', async () => {
    const from = async (session: Session, who: string): Promise<void> => {
      await Promise.all(Array.from({ length: 20 }, async (_, at) => {
        for (const server of ['shared', 'own', 'events']) {
          assert.ok(
            (
              await call(
                session, `${server}-echo`,
                { 'x-tenant': `canary-${who}`, cookie: 'canary-cookie', 'x-set': 'canary-set', 'x-forwarded-for': '192.0.2.1' },
                `${who}${server}${at}`
              )
            ).result
          )
        }
      }))
    }
    await Promise.all([from(ann, 'ann'), from(bob, 'bob')])
    // What is the gateway's own, and the connection that it uses, knows nobody's.
    for (const upstream of [shared, own]) {
      const bySession = new Map<string, Set<unknown>>()
      for (const { message, headers, session } of upstream.received) {
        assert.equal(headers.authorization, undefined, 'what authenticated the caller here')
        assert.equal(headers.cookie, undefined)
        assert.equal(headers['x-forwarded-for'], undefined)
        if (listing.has(message.method ?? '')) assert.equal(headers['x-tenant'], undefined, message.method)
        if (session !== undefined) bySession.set(session, (bySession.get(session) ?? new Set()).add(headers['x-tenant']))
      }
      const kinds = [...bySession.values()].map((values) => [...values])
      assert.deepEqual(kinds.map((values) => values.map(String).sort().join()).sort(), ['canary-ann', 'canary-bob', 'undefined'])
      assert.deepEqual([...new Set(valuesOf(upstream, 'x-tenant'))].sort(), ['canary-ann', 'canary-bob'])
    }
    for (const { headers } of shared.received) assert.equal(headers['x-set'], 'configured')
    const byStream = new Map<number, Set<unknown>>()
    for (const { stream, headers } of sse.received) {
      assert.deepEqual([headers.authorization, headers.cookie], [undefined, undefined])
      byStream.set(stream, (byStream.get(stream) ?? new Set()).add(headers['x-tenant']))
    }
    assert.deepEqual([...byStream.values()].map((values) => [...values].map(String).join()).sort(), [
      'canary-ann', 'canary-bob', 'undefined'
    ])
    for (const { stream, method } of sse.received.filter(({ method }) => listing.has(method))) {
      assert.equal([...(byStream.get(stream) ?? [])].join(), '', method)
    }
    await until(() => shared.count('ping') > 0)
    assert.ok(valuesOf(shared, 'x-tenant', 'ping').every((value) => value === undefined))
    const plainSession = await Session.open(`${hub.url}/mcp`, { key: plainKey })
    for (const server of ['shared', 'own', 'events']) assert.ok((await call(plainSession, `${server}-echo`, {})).result)
    for (const { headers } of [...shared.received, ...own.received, ...sse.received]) {
      assert.equal(headers.authorization, undefined, 'a key that looks like nothing of ours')
    }
    assert.ok(none.received.every(({ headers }) => headers['x-tenant'] === undefined), 'a server that is passed none on')
  })

  await t.test('a value that changes within a session: another shared connection; on its own one, that of each request', async () => {
    const count = (): number => shared.sessions.size
    const before = count()
    await call(ann, 'shared-echo', { 'x-tenant': 'canary-second' })
    assert.equal(count(), before + 1)
    await call(ann, 'shared-echo', { 'x-tenant': 'canary-second' })
    assert.equal(count(), before + 1)
    const again = await Session.open(`${hub.url}/mcp`)
    await call(again, 'shared-echo', { 'x-tenant': 'canary-second' })
    assert.equal(count(), before + 1, 'another session of this principal, with the same values')
    assert.equal((await again.end()).status, 200)

    const sessions = (): Set<unknown> =>
      new Set(own.received.filter(({ message }) => message.method === 'tools/call').map(({ session }) => session))
    const known = sessions().size
    for (const value of ['canary-1', 'canary-2', '']) {
      await call(ann, 'own-echo', value === '' ? {} : { 'x-tenant': value })
      assert.equal(valuesOf(own, 'x-tenant').at(-1), value === '' ? undefined : value)
    }
    assert.equal(sessions().size, known)

    // While its connection opens, each keeps its own.
    const early = await Session.open(`${hub.url}/mcp`)
    const heard = own.received.length
    await Promise.all(['canary-x', 'canary-y'].map(async (value) => { await call(early, 'own-echo', { 'x-tenant': value }) }))
    assert.deepEqual(
      own.received.slice(heard).filter(({ message }) => message.method === 'tools/call')
        .map(({ headers }) => headers['x-tenant'])
        .sort(),
      ['canary-x', 'canary-y']
    )
    await early.end()

    const streams = (): number => new Set(sse.received.map(({ stream }) => stream)).size
    const open = streams()
    await call(ann, 'events-echo', { 'x-tenant': 'canary-second' })
    assert.equal(streams(), open + 1)
    assert.deepEqual(sse.received.slice(-4).map(({ headers }) => headers['x-tenant']), Array(4).fill('canary-second'))
  })

  await t.test('cancelling and subscribing go with them, too', async () => {
    const request = ann.post(
      { jsonrpc: '2.0', id: 'slow', method: 'tools/call', params: { name: 'own-slow', arguments: {} } },
      { 'x-tenant': 'canary-slow' }
    )
    await until(() => own.received.some(({ message }) => message.params?.name === 'slow'))
    await call(ann, 'own-echo', { 'x-tenant': 'canary-meanwhile' })
    await ann.notify('notifications/cancelled', { requestId: 'slow' })
    await until(() => own.count('notifications/cancelled') > 0)
    assert.deepEqual(valuesOf(own, 'x-tenant', 'notifications/cancelled'), ['canary-slow'])
    await request
    const subscribed = await ann.post(
      { jsonrpc: '2.0', id: 'sub', method: 'resources/subscribe', params: { uri: 'r://1' } },
      { 'x-tenant': 'canary-sub' }
    )
    assert.equal(subscribed.status, 200)
    assert.ok(subscribed.messages.some(({ result }) => result), subscribed.body)
    assert.deepEqual(
      [...valuesOf(shared, 'x-tenant', 'resources/subscribe'), ...valuesOf(own, 'x-tenant', 'resources/subscribe')],
      ['canary-sub']
    )
    const unsubscribed = await ann.post(
      { jsonrpc: '2.0', id: 'unsub', method: 'resources/unsubscribe', params: { uri: 'r://1' } },
      { 'x-tenant': 'canary-other' }
    )
    assert.ok(unsubscribed.messages.some(({ result }) => result), unsubscribed.body)
    await until(() => shared.count('resources/unsubscribe') + own.count('resources/unsubscribe') === 1)
  })

  await t.test('a value that cannot be sent: a refusal that names the header', async () => {
    const long = 'canary'.repeat(2_000)
    const { error } = await call(ann, 'shared-echo', { 'x-tenant': long })
    assert.equal(error?.code, -32602)
    assert.match(error.message, /"x-tenant".*"shared".*longer than 8192 bytes/)
    assert.ok((await call(ann, 'none-echo', { 'x-tenant': long })).result, 'it is nothing to other servers')
    const reply = await fetch(`${hub.url}/api/tools/call/shared`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'x-tenant': long },
      body: '{"toolName":"echo"}'
    })
    assert.equal(reply.status, 400)
    assert.ok(!(await reply.text()).includes('canary'))
    assert.ok((await ann.post({ jsonrpc: '2.0', id: 'list', method: 'tools/list' }, { 'x-tenant': long })).messages[0]?.result)
  })

  await t.test('REST calls', async () => {
    const rest = async (headers: Record<string, string>): Promise<IncomingHttpHeaders> => {
      const before = shared.received.length
      const reply = await fetch(`${hub.url}/api/tools/call/shared`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: '{"toolName":"echo"}'
      })
      assert.equal(reply.status, 200, await reply.text())
      const seen = shared.received.slice(before).find(({ message }) => message.method === 'tools/call')
      assert.ok(seen)
      return seen.headers
    }
    const login = await fetch(`${hub.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"username":"admin","password":"Adm1n-password!"}'
    })
    const { token } = await login.json() as { token: string }
    const key = await rest({ authorization: `Bearer ${KEY}`, 'x-tenant': 'canary-rest' })
    assert.deepEqual([key['x-tenant'], key.authorization], ['canary-rest', undefined])
    const user = await rest({ 'x-auth-token': token, authorization: 'Bearer canary-upstream', 'x-tenant': 'canary-rest' })
    assert.deepEqual([user['x-tenant'], user.authorization, user['x-auth-token']], ['canary-rest', 'Bearer canary-upstream', undefined])
    assert.equal((await rest({ authorization: `Bearer ${plainKey}` })).authorization, undefined)
    for (const foreign of [`Bearer ${plainKey}`, `Bearer ${token}`, `Bearer ${OTHER}`, 'Bearer thk_revoked']) {
      assert.equal((await rest({ 'x-auth-token': token, authorization: foreign })).authorization, undefined)
    }
  })

  await t.test('a session\'s end closes what carried its values', async () => {
    const session = await Session.open(`${hub.url}/mcp`)
    await call(session, 'shared-echo', { 'x-tenant': 'canary-last' })
    const upstream =
      shared.received.find(({ message, headers }) => message.method === 'tools/call' && headers['x-tenant'] === 'canary-last')?.session ??
      ''
    assert.ok(shared.sessions.has(upstream))
    await session.end()
    await until(() => !shared.sessions.has(upstream))
  })

  await t.test('what is listed is read for nobody, also for clients that can be asked, and when a list changes', async () => {
    const asked = await Session.open(`${hub.url}/mcp`, { capabilities: { sampling: {} }, headers: { 'x-tenant': 'canary-asked' } })
    assert.ok((await asked.tools()).includes('shared-echo'))
    assert.ok((await call(asked, 'shared-echo', {})).result)
    const opened = shared.received.filter(
      ({ message }) => message.method === 'initialize' && (message.params?.capabilities as Json).sampling !== undefined
    )
    assert.deepEqual(opened.map(({ headers }) => headers['x-tenant']), [undefined, 'canary-asked'])
    const lists = own.count('tools/list')
    const mine =
      own.received.find(({ message, headers }) => message.method === 'tools/call' && headers['x-tenant'] === 'canary-ann')?.session ?? ''
    await own.sessions.get(mine)?.notify('notifications/tools/list_changed')
    await until(() => own.count('tools/list') > lists)
    for (const upstream of [shared, own]) {
      for (const { message, headers } of upstream.received) {
        if (listing.has(message.method ?? '')) assert.equal(headers['x-tenant'], undefined, message.method)
      }
    }
    await asked.end()
  })

  await t.test('as many values as there are, connections stay bounded', async () => {
    for (let at = 0; at < limits.linksPerServer + 6; at++) {
      assert.ok((await call(bob, 'shared-echo', { 'x-tenant': `canary-many-${at}` })).result)
    }
    await until(() => shared.sessions.size <= limits.linksPerServer)
    assert.ok((await call(ann, 'shared-echo', { 'x-tenant': 'canary-ann' })).result)
  })

  await t.test('what is configured in vain is told, and no value is told anywhere', async () => {
    for (const name of ['cookie', 'x-forwarded-for', 'mcp-session-id']) {
      assert.ok(hub.output().includes(`shared: passthroughHeaders: \\"${name}\\" is never forwarded`), name)
    }
    assert.ok(hub.output().includes('shared: passthroughHeaders: \\"x-set\\" is not forwarded, since \\"headers\\" sets it'))
    const metrics = await (await fetch(`${hub.url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })).text()
    const servers = await (await fetch(`${hub.url}/api/servers`, { headers: { authorization: `Bearer ${KEY}` } })).text()
    assert.doesNotMatch(`${hub.output()}${metrics}${servers}`, /canary/)
  })
})

test('passthroughHeaders: Authorization', async (t) => {
  const upstream = await startUpstream(t)
  const server = { type: 'streamable-http', url: upstream.url, passthroughHeaders: ['Authorization', 'X-Hub-Key', 'X-Other'] }
  const start = async (routing: Json): Promise<Hub> => {
    const hub = await startHub(t, { settings: settings({ up: { ...server, visibility: 'public' } }, { systemConfig: { routing } }) })
    await connected(hub, 1)
    return hub
  }
  const seen = async (url: string, headers: Record<string, string>): Promise<IncomingHttpHeaders> => {
    const init = await send(url, { key: null, headers, body: initialize() })
    assert.equal(init.status, 200, init.body)
    const reply = await send(url, {
      key: null,
      headers: { ...headers, 'mcp-session-id': init.headers.get('mcp-session-id') ?? '' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'up-echo' } }
    })
    assert.equal(reply.status, 200, reply.body)
    return upstream.received.filter(({ message }) => message.method === 'tools/call').at(-1)?.headers ?? {}
  }

  await t.test('goes on where keys come in another header, which does not', async () => {
    const hub = await start({ bearerAuthHeaderName: 'X-Hub-Key' })
    const {
      authorization,
      'x-hub-key': key,
      'x-other': other
    } = await seen(`${hub.url}/mcp`, { 'x-hub-key': KEY, authorization: 'Bearer upstream', 'x-other': '1' })
    assert.deepEqual([authorization, key, other], ['Bearer upstream', undefined, '1'])
    for (const value of [`Bearer ${KEY}`, `Bearer ${OTHER}`, ours]) {
      assert.equal((await seen(`${hub.url}/mcp`, { 'x-hub-key': KEY, authorization: value })).authorization, undefined, value)
    }
    const rest = await fetch(`${hub.url}/api/tools/call/up`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-hub-key': KEY, authorization: 'Bearer upstream-2' },
      body: '{"toolName":"echo"}'
    })
    assert.equal(rest.status, 200)
    const last = upstream.received.filter(({ message }) => message.method === 'tools/call').at(-1)?.headers
    assert.deepEqual([last?.authorization, last?.['x-hub-key']], ['Bearer upstream-2', undefined])
    await hub.stop()
  })

  await t.test('of somebody whom nothing authenticates goes on, unless it looks like ours', async () => {
    const hub = await start({ enableBearerAuth: false })
    assert.equal((await seen(`${hub.url}/mcp`, { authorization: 'Bearer upstream' })).authorization, 'Bearer upstream')
    assert.equal((await seen(`${hub.url}/mcp`, { authorization: 'Bearer thk_old' })).authorization, undefined)
    assert.equal((await seen(`${hub.url}/mcp`, { authorization: `Bearer ${KEY}` })).authorization, undefined, 'a key counts all the same')
    // Nobody is somebody else than nobody: their values do not meet either.
    const one = await plain(`${hub.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: 'Bearer first' },
      body: JSON.stringify(initialize())
    })
    assert.equal(one.status, 200)
    const bySession = new Map<string, Set<unknown>>()
    await Promise.all(['a', 'b', 'c'].map(async (who) => { await seen(`${hub.url}/mcp`, { authorization: `Bearer ${who}` }) }))
    for (const { headers, session, message } of upstream.received) {
      if (session !== undefined && message.method === 'tools/call') {
        bySession.set(session, (bySession.get(session) ?? new Set()).add(headers.authorization))
      }
    }
    assert.ok([...bySession.values()].every((values) => values.size === 1))
  })
})
