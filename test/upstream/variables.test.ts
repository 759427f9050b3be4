/* eslint no-template-curly-in-string: off -- they are what this is about */
// Variables that are filled in, and what a process that is started for a server is given.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { UpstreamError } from '../../protocol/errors.ts'
import { Outbound } from '../../plugins/base/outbound/outbound.ts'
import {
  childEnvironment, expandVariables, isGatewaySecretName, withheldVariableNames
} from '../../plugins/upstream/links/environment.ts'
import { SharedApi } from '../../plugins/upstream/openapi/api.ts'
import { makeTransport } from '../../plugins/upstream/links/transport.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { Session, connected, settings, text, type Json } from '../helpers/client.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { startHub, until } from '../helpers/hub.ts'
import { served } from '../helpers/served.ts'

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

test('expand: in env, headers, url and args, and nowhere else', async () => {
  const all = {
    command: '${FOO}',
    cwd: '${FOO}',
    description: '${FOO}',
    url: 'http://h/${FOO}',
    args: ['--a=${FOO}', '${FOO}${FOO}'],
    env: { A: '${FOO}', '${FOO}': 'x' },
    headers: { 'x-a': 'Bearer ${FOO}' }
  }
  const { config, warnings } = expandVariables(all, environment)
  assert.deepEqual(config, {
    ...all,
    url: 'http://h/foo-value',
    args: ['--a=foo-value', 'foo-valuefoo-value'],
    env: { A: 'foo-value', '${FOO}': 'x' },
    headers: { 'x-a': 'Bearer foo-value' }
  })
  assert.deepEqual(warnings, [])
  assert.equal(all.url, 'http://h/${FOO}', 'what is written down stays as it is')
})

test('expand: once, and only what is written so', async () => {
  const written = ['${BAR}', '${EMPTY}', '$FOO', '${ FOO }', '${FOO:-x}', '${}', '$${FOO}', '${FOO', '${constructor}', '${__proto__}']
  assert.deepEqual(expandVariables({ args: written }, environment).config.args, [
    '${FOO}', '', '$FOO', '${ FOO }', 'foo-value', '${}', '$foo-value', '${FOO', '${constructor}', '${__proto__}'
  ])
  assert.equal(
    expandVariables({ headers: { a: '${LINE}' } }, environment).config.headers?.a, 'with a break',
    'a line break at the end of a secret is no part of a header'
  )
})

test('expand: a default where a variable is unset, empty, or must not be read', async () => {
  const texts = ['${NONE:-x}', '${EMPTY:-x}', '${FOO:-x}', '${NONE:-}', 'a ${NONE:-${FOO}} b', '${JWT_SECRET:-x}', '${user.FOO:-x}']
  const { config, warnings } = expandVariables({ args: texts }, environment)
  assert.deepEqual(config.args, ['x', 'x', 'foo-value', '', 'a ${NONE:-foo-value} b', 'x', '${user.FOO:-x}'])
  assert.deepEqual(warnings, ['${JWT_SECRET} in args is not expanded: it is a secret of the gateway'])
  const users = expandVariables({ storedByUser: true, url: '${FOO:-http://h}/mcp' }, environment)
  assert.equal(users.config.url, 'http://h/mcp')
  assert.equal(expandVariables({ args: ['${FOO:-a-secret-default}'] }, environment).hide('it is foo-value'), 'it is ${FOO}')
})

test('expand: never our own secrets; what is not filled in is told by name', async () => {
  for (const name of [
    'JWT_SECRET', 'DB_URL', 'ADMIN_PASSWORD', 'ENCRYPTION_KEY', 'IDP_CLIENT_SECRET', 'SOCIAL_AUTH_URL', 'PGPASSWORD',
    'pgpassword', 'Jwt_Secret', 'OIDC_CLIENT_SECRET', 'PGHOST', 'OTEL_EXPORTER_OTLP_HEADERS',
    'OTEL_EXPORTER_OTLP_TRACES_HEADERS'
  ]) {
    assert.ok(isGatewaySecretName(name), name)
    const { config, warnings } = expandVariables(
      { headers: { a: `\${${name}}` }, url: `http://h/\${${name}}`, args: [`\${${name}}`], env: { A: `\${${name}}` } },
      environment
    )
    assert.doesNotMatch(JSON.stringify([config, warnings]), /canary/, name)
    assert.deepEqual(
      warnings,
      ['env', 'headers', 'url', 'args'].map((place) => `\${${name}} in ${place} is not expanded: it is a secret of the gateway`)
    )
  }
  for (const name of ['FOO', 'IDP_CLIENT_ID', 'MY_JWT_SECRET', 'DATABASE_URL']) assert.ok(!isGatewaySecretName(name), name)
  const { config, warnings } = expandVariables({ headers: { a: '${NOT_SET} ${NOT_SET} ${FOO}' } }, environment)
  assert.equal(config.headers?.a, '${NOT_SET} ${NOT_SET} foo-value')
  assert.deepEqual(warnings, ['${NOT_SET} in headers is not set'])
})

test('expand: never where somebody stored it who is no admin', async () => {
  const { config, warnings } = expandVariables(
    { storedByUser: true, owner: 'admin', url: 'http://h/${FOO}', headers: { a: '${FOO}' } }, environment
  )
  assert.deepEqual([config.url, config.headers], ['http://h/${FOO}', { a: '${FOO}' }])
  assert.deepEqual(
    warnings,
    ['headers', 'url'].map((place) => `\${FOO} in ${place} is not expanded: only an admin can set this value with a variable`)
  )
})

test('expand: value by value: what an admin wrote beside it is filled in', async () => {
  const { config, warnings } = expandVariables(
    { storedByUser: ['/url', '/headers/a~1b', '/args/1'], url: '${BASE}', headers: { 'a/b': '${FOO}', c: '${FOO}' }, args: ['${FOO}', '${FOO}'] },
    environment
  )
  assert.deepEqual([config.url, config.headers, config.args], ['${BASE}', { 'a/b': '${FOO}', c: 'foo-value' }, ['foo-value', '${FOO}']])
  assert.equal(warnings.length, 3)
})

test('expand: values are taken out of what is shown again', async () => {
  for (const [config, said, shown] of [
    [{ args: ['${FOO}'], env: { A: '${EMPTY}' } }, 'it said foo-value, then foo-value', 'it said ${FOO}, then ${FOO}'],
    [{ url: '${BASE}/mcp' }, 'cannot reach internal.example:8443: refused', 'cannot reach ${BASE}: refused'],
    [{ url: 'https://${HOST_NAME}/mcp' }, 'cannot reach inner.example: refused', 'cannot reach ${HOST_NAME}: refused'],
    [{ url: 'https://h/${FOO}' }, 'cannot reach h: refused', 'cannot reach h: refused']
  ] as const) assert.equal(expandVariables(config as ServerConfig, environment).hide(said), shown)
})

test('expand: what cannot be connected to once it is filled in: an error without values', async (t) => {
  const outbound = new Outbound({ allow: '' })
  t.after(async () => { await outbound.close() })
  const make = async (config: Json): Promise<unknown> =>
    await makeTransport('streamable-http', {
      config: expandVariables(config, environment).config,
      deps: { outbound, environment, onLine: () => {}, warn: () => {}, sharedApi: new SharedApi() }
    })
  await make({ url: '${BASE}/mcp' })
  for (const config of [{ url: '${FOO}' }, { url: '${NOT_SET}/mcp' }, { url: 'http://h/', headers: { a: '${LINE}x' } }]) {
    await assert.rejects(
      make(config),
      (error) => error instanceof UpstreamError && error.fault === 'refused' && !/foo-value|with a break/.test(error.message),
      JSON.stringify(config)
    )
  }
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
    const [ofNpm, ofPython] = [to(npm, install.npmRegistry), to(python, install.pythonIndexUrl)]
    for (const [env, indexes, expected] of [
      [{}, install, { ...ofNpm, ...ofPython }],
      [{}, { ...install, pythonIndexUrl: '' }, ofNpm],
      [{ NPM_CONFIG_REGISTRY: 'https://own/' }, install, { NPM_CONFIG_REGISTRY: 'https://own/', ...ofPython }],
      [{ UV_INDEX_URL: 'https://own/' }, install, { UV_INDEX_URL: 'https://own/', ...ofNpm }]
    ] as const) assert.deepEqual(childEnvironment({ env }, given, indexes), { ...minimal, ...expected })
  })
  await t.test('nothing that makes it run something else, where a user stored it who is no admin', async () => {
    const hijacks = [
      'LD_PRELOAD', 'LD_LIBRARY_PATH', 'DYLD_INSERT_LIBRARIES', 'NODE_OPTIONS', 'node_options', 'PYTHONSTARTUP',
      'BASH_ENV', 'GIT_SSH_COMMAND'
    ]
    const env = { ...to(hijacks, 'x'), A: '1', LDAP: '2' }
    assert.deepEqual(childEnvironment({ env, storedByUser: true }, given, {}), { ...minimal, A: '1', LDAP: '2' })
    assert.deepEqual(withheldVariableNames({ env, storedByUser: true }), hijacks)
    assert.deepEqual(withheldVariableNames({ env, storedByUser: ['/env/A', '/env/BASH_ENV'] }), ['BASH_ENV'])
    assert.deepEqual(childEnvironment({ env }, given, {}), { ...minimal, ...env })
  })
  await t.test('other addresses count from the next connection on', async (t) => {
    const install = (address: string): Json => ({ install: { npmRegistry: address } })
    const hub = await served(t, { s: { ...tells(), env: { A: '${NOT_SET}' } } }, { systemConfig: install('https://one.example/') })
    const registry = async (): Promise<unknown> => {
      const told = JSON.parse(text(await (await Session.open(`${hub.url}/mcp/s`)).call('tell'))) as { env: Json }
      return told.env.npm_config_registry
    }
    assert.equal(await registry(), 'https://one.example/')
    await managed(hub, 'PUT', '/system-config', install('https://two.example/'))
    assert.equal(await registry(), 'https://one.example/')
    await managed(hub, 'POST', '/servers/s/reload')
    await until(async () => await registry() === 'https://two.example/')
    const warning = '${NOT_SET} in env is not set'
    assert.deepEqual((await managed(hub, 'GET', '/servers/s')).warnings, [warning])
    assert.equal(hub.output().split(`s: ${warning}`).length, 3, 'told at each start')
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
      dies: { command: process.execPath, args: ['-e', 'console.error("dying of " + process.argv[1]); process.exit(1)', '${FOO}'] }
    })
  })
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

  // What a server says of a value names its variable. integration/canary.test.ts has that nobody is shown secrets of configs.
  const dies = async (): Promise<string> => JSON.stringify(await managed(hub, 'GET', '/servers/dies'))
  await until(async () => (await dies()).includes('dying of ${FOO}'), 'its last words never came')
  for (const canary of [...Object.values(canaries), secret]) assert.ok(!`${await dies()}${hub.output()}`.includes(canary), canary)
  for (const sentence of [
    'http: ${NOT_SET} in headers is not set', 'http: ${JWT_SECRET} in url is not expanded',
    'child: ${PGPASSWORD} in env is not expanded'
  ]) { assert.ok(hub.output().includes(sentence), sentence) }
})
