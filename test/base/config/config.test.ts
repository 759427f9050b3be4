import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'tap'
import { Value } from '@sinclair/typebox/value'
import Fastify from 'fastify'
import { assetPath, readAsset } from '../../../package.ts'
import { findChildUser, readEnvironment } from '../../../plugins/base/config/environment.ts'
import config from '../../../plugins/base/config/config.ts'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { durationUnitWarnings, misspeltVariableWarnings } from '../../../schemas/read-env.ts'
import { Env } from '../../../schemas/env.ts'
import { childEnvironment, expandVariables, isGatewaySecretName } from '../../../plugins/upstream/links/environment.ts'
import { path } from '../../helpers/hub.ts'

const env = { ...(Value.Default(Env, {}) as Env), BASE_PATH: '/hub/', ENCRYPTION_KEY: 'a key', DB_URL: 'postgres://a:b@c/d' }

test('app.config has what plugins need, and no more of the environment', async (t) => {
  const app = Fastify()
  t.after(async () => { await app.close() })
  await app.register(config, { version: '1.2.3', env })
  assert.deepEqual([app.config.version, app.config.basePath, app.config.env.HOST], ['1.2.3', '/hub', '127.0.0.1'])
  for (const name of ['ENCRYPTION_KEY', 'DB_URL', 'ADMIN_PASSWORD', 'PORT']) assert.equal(name in app.config.env, false, name)
})

test('app.config cannot be changed, and does not follow what it was made from', async (t) => {
  const app = Fastify()
  t.after(async () => { await app.close() })
  const given = { ...env }
  await app.register(config, { version: '1.2.3', env: given })
  given.HOST = '0.0.0.0'
  assert.equal(app.config.env.HOST, '127.0.0.1')
  assert.throws(() => { Object.assign(app.config, { version: '2' }) }, TypeError)
  assert.throws(() => { Object.assign(app.config.env, { READONLY: true }) }, TypeError)
})

test('assets are found from the package, wherever the process runs', async () => {
  assert.equal(assetPath('icons/tool-hub.svg'), path('assets/icons/tool-hub.svg'))
  assert.match(await readAsset('icons/tool-hub.svg'), /^<svg /)
  await assert.rejects(readAsset('icons/none.svg'), { code: 'ENOENT' })
})

test('secrets come from files, too', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-secrets-'))
  t.after(async () => { await rm(folder, { recursive: true }) })
  const file = async (name: string, content: string): Promise<string> => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }
  const pipe = join(folder, 'canary-pipe')
  execFileSync('mkfifo', [pipe])
  const secrets = Object.entries(Env.properties).filter(([, schema]) => 'secret' in schema).map(([name]) => name)
  assert.deepEqual(
    secrets.sort(),
    ['ADMIN_PASSWORD', 'CODEHOST_CLIENT_SECRET', 'DB_URL', 'ENCRYPTION_KEY', 'IDP_CLIENT_SECRET', 'JWT_SECRET', 'METRICS_TOKEN', 'OIDC_CLIENT_SECRET', 'TOOL_HUB_KEY']
  )
  for (const name of secrets as Array<'JWT_SECRET' | 'DB_URL'>) {
    const variable = `${name}_FILE`
    for (const end of ['', '\n', '\r\n']) assert.equal(readEnvironment({ [variable]: await file('one', `canary ${name} ${end}`) })[name], `canary ${name} `)
    assert.equal(readEnvironment({ [variable]: await file('one', 'a\n\n') })[name], 'a\n', 'one line break is cut off')
    assert.equal(readEnvironment({ [variable]: await file('marked', '\uFEFFa secret\n') })[name], 'a secret')
    assert.equal(readEnvironment({ [name]: 'x', [variable]: '' })[name], 'x')
    const path = await file('one', 'canary')
    for (const [environment, said] of [
      [{ [name]: 'canary', [variable]: path }, new RegExp(`^Error: ${name} and ${variable} are both set`)],
      [{ [variable]: join(folder, 'canary') }, new RegExp(`^Error: The file that ${variable} names cannot be read \\(ENOENT\\)`)],
      [{ [variable]: folder }, new RegExp(`${variable} names cannot be read \\(EISDIR\\)`)],
      [{ [variable]: await file('empty', '\n') }, new RegExp(`${variable} names is empty`)],
      [{ [variable]: await file('blank', '\uFEFF \n\r\n\t\n') }, new RegExp(`${variable} names is empty`)],
      [{ [variable]: '/dev/zero' }, new RegExp(`${variable} names a device or a pipe`)],
      [{ [variable]: pipe }, new RegExp(`${variable} names a device or a pipe`)],
      [{ [variable]: await file('large', 'canary'.repeat(20_000)) }, new RegExp(`${variable} names is too large`)]
    ] as const) {
      assert.throws(() => readEnvironment(environment), (error) => {
        assert.match(String(error), said)
        assert.doesNotMatch(String(error), /canary/)
        return true
      })
    }
    assert.ok(isGatewaySecretName(variable) && isGatewaySecretName(variable.toLowerCase()))
    assert.equal(expandVariables({ env: { A: `$${`{${variable}}`}` } }, { [variable]: path }).config.env?.A, `$${`{${variable}}`}`)
    assert.deepEqual(childEnvironment({ command: 'x' }, { [variable]: path }, {}), {})
  }
  assert.ok(isGatewaySecretName('IDP_CLIENT_SECRET_FILE') && !isGatewaySecretName('SSL_CERT_FILE'))
})

test('CHILD_USER is a user of the system, and needs root', async () => {
  const passwd = 'root:x:0:0:root:/:/bin/sh\ntoor:x:0:5::/:/bin/sh\nmcp:x:1000:1001:an agent:/:/bin/sh\nlost:x:7:7::/no/such/folder:/bin/false\n'
  const find = (text: string | undefined, uid: number | undefined = 0) => findChildUser(text, { uid, passwd })
  assert.equal(find(undefined, 1000), undefined)
  assert.deepEqual(find('mcp'), { uid: 1000, gid: 1001, home: '/', name: 'mcp' })
  assert.deepEqual(find('1000'), find('mcp'))
  assert.deepEqual(find('1000:5'), { uid: 1000, gid: 5, home: '/', name: 'mcp' })
  assert.deepEqual(find('4711'), { uid: 4711, gid: 4711, home: '/', name: '4711' })
  assert.equal(find('lost')?.home, '/')
  assert.throws(() => find('nobody-here'), /CHILD_USER: there is no user "nobody-here"/)
  for (const root of ['root', '0', '000', '0:5', 'toor']) assert.throws(() => find(root), /CHILD_USER=.* is root: .*Name another user/, root)
  for (const high of ['4294967295', '99999999999', '1000:4294967295']) assert.throws(() => find(high), /the ids of users and groups are at most 4294967294/)
  assert.equal(find('4294967294')?.uid, 4_294_967_294)
  for (const uid of [1000, undefined]) assert.throws(() => findChildUser('mcp', { uid, passwd }), /requires that root starts/)
  for (const wrong of ['a b', '-1', '1:', 'a:b', '../x']) assert.throws(() => readEnvironment({ CHILD_USER: wrong }), /the name of a user, or its number/)
})

test('switches take the words that people write, and nothing else', async () => {
  for (const [text, value] of Object.entries({ true: true, Yes: true, ON: true, 1: true, false: false, no: false, Off: false, 0: false })) {
    assert.equal(readEnvironment({ READONLY: text }).READONLY, value, text)
  }
  for (const text of ['enabled', '2', 'ja', '__proto__', 'constructor', ' ']) {
    assert.throws(() => readEnvironment({ READONLY: text }), /READONLY cannot be .*: expected true or false \(or yes, no, on, off, 1, 0\)\.$/, text)
  }
})

test('a duration that was probably meant in seconds is doubted', async () => {
  assert.deepEqual(durationUnitWarnings({ DRAIN_TIMEOUT: '5', INIT_TIMEOUT: '60', REQUEST_TIMEOUT: '60000', ACTIVITY_RETENTION: '0', JWT_EXPIRES_IN: '24h', PORT: '80' }), [
    'INIT_TIMEOUT=60 is 60 ms. Write 60s for seconds, or 60ms if that is what you mean',
    'DRAIN_TIMEOUT=5 is 5 ms. Write 5s for seconds, or 5ms if that is what you mean'
  ])
})

test('a server gets more than no time to answer', async () => {
  for (const name of ['INIT_TIMEOUT', 'REQUEST_TIMEOUT'] as const) {
    assert.equal(readEnvironment({ [name]: '1s' })[name], '1s')
    for (const text of ['0', '0s', '000ms']) {
      assert.throws(() => readEnvironment({ [name]: text }), new RegExp(`${name} cannot be .*: expected a duration above zero`))
    }
  }
})

test('DRAIN_TIMEOUT fits into the time in which the gateway ends', async () => {
  for (const text of ['9s', '9000', '500ms']) assert.equal(readEnvironment({ DRAIN_TIMEOUT: text }).DRAIN_TIMEOUT, text)
  for (const text of ['10s', '9001', '1m']) {
    assert.throws(() => readEnvironment({ DRAIN_TIMEOUT: text }), /^Error: .*DRAIN_TIMEOUT cannot be ".*within 10 s of SIGTERM.*Set it to 9s or less\.$/)
  }
})

test('a mistyped name of a variable is told, and names of others are not', async () => {
  const typos = {
    READ_ONLY: 'READONLY',
    JWT_SECERT: 'JWT_SECRET',
    DRAIN_TIMOUT: 'DRAIN_TIMEOUT',
    DB_URL_FIEL: 'DB_URL_FILE',
    ALLOW_HOSTS: 'ALLOWED_HOSTS',
    DBURL: 'DB_URL',
    jwt_secret: 'JWT_SECRET',
    METRIC: 'METRICS'
  }
  for (const [given, meant] of Object.entries(typos)) {
    assert.deepEqual(misspeltVariableWarnings({ [given]: 'canary' }), [`The environment variable ${given} is not known and has no effect: did you mean ${meant}?`])
  }
  assert.deepEqual(misspeltVariableWarnings({ READ_ONLY: '', JWT_SECERT: 'x', JWT_SECRET: 'y' }), [], 'one without a value, and one whose meaning is set')
  assert.equal(misspeltVariableWarnings(Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`ALLOWED_HOSTS${n % 10}${n}`, 'x']))).length, 10)
  const others = [
    'HOME', 'PATH', 'HOSTNAME', 'PORTS', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'TERM', 'PWD', 'OLDPWD', 'TMPDIR', 'EDITOR', 'MAIL', 'SHLVL', 'TZ', 'HOSTTYPE', 'HOSTS', 'host', 'port',
    'XDG_RUNTIME_DIR', 'XDG_DATA_DIRS', 'XDG_CONFIG_HOME', 'SSH_AUTH_SOCK', 'SSH_CLIENT', 'DISPLAY', 'LS_COLORS', 'DBUS_SESSION_BUS_ADDRESS', 'MANPATH', 'INFOPATH', 'CDPATH',
    'NODE_ENV', 'NODE_PATH', 'NODE_OPTIONS', 'NODE_VERSION', 'NODE_EXTRA_CA_CERTS', 'NO_COLOR', 'npm_config_registry', 'npm_package_json', 'npm_lifecycle_event', 'INIT_CWD',
    'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY', 'SSL_CERT_FILE', 'JAVA_HOME', 'PYTHONPATH', 'VIRTUAL_ENV', 'GOPATH', 'BASH_ENV',
    'POSTGRES_USER', 'POSTGRES_DB', 'POSTGRES_PASSWORD', 'PGHOST', 'PGUSER', 'PGPASSWORD', 'PGDATA', 'DATABASE_URL', 'DB_USER', 'DB_HOST', 'DB_PORT', 'DB_NAME', 'DB_PASSWORD', 'REDIS_URL',
    'KUBERNETES_SERVICE_HOST', 'KUBERNETES_PORT', 'KUBERNETES_PORT_443_TCP_ADDR', 'TOOL_HUB_PORT', 'TOOL_HUB_SERVICE_HOST', 'TOOL_HUB_SERVICE_PORT', 'HUB_NAME', 'POD_NAME', 'container',
    'INVOCATION_ID', 'JOURNAL_STREAM', 'SYSTEMD_EXEC_PID', 'NOTIFY_SOCKET', 'LISTEN_FDS', 'STATE_DIRECTORY', 'CREDENTIALS_DIRECTORY', 'AWS_REGION', 'AWS_SECRET_ACCESS_KEY',
    'OTEL_SERVICE_NAME', 'OTEL_METRICS_EXPORTER', 'OTEL_LOGS_EXPORTER', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT', 'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL',
    'APP_CLIENT_ID', 'OAUTH_CLIENT_SECRET', 'GITHUB_TOKEN', 'GITHUB_CLIENT_ID', 'ADMIN_USERNAME', 'CI', 'DEBUG', 'LOG_FORMAT'
  ]
  assert.deepEqual(misspeltVariableWarnings(Object.fromEntries(others.map((name) => [name, 'x']))), [])
})
