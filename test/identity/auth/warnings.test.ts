// What the gateway says of its environment and of what it opens.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'tap'
import { readOriginRules } from '../../../plugins/identity/auth/origin.ts'
import { exposureSigns } from '../../../plugins/identity/auth/exposure.ts'
import { findBaseUrlSetting } from '../../../plugins/settings/base-url.ts'
import { explainListenError } from '../../../plugins/base/config/listening.ts'
import { OutboundAllowlist } from '../../../plugins/base/outbound/policy.ts'
import { parseTrustProxy } from '../../../plugins/base/config/trust-proxy.ts'
import { readEnv } from '../../../schemas/read-env.ts'
import { startHub } from '../../helpers/hub.ts'

test('variables that cannot be right are named, with what they should be', async () => {
  const wrong: Record<string, [values: string[], said: RegExp]> = {
    PORT: [['1e3', '0x1000', '3000.5', '-1', '65536', ' 3000', 'web'], /a whole number from 0 to 65535/],
    JWT_EXPIRES_IN: [['0', '0h', 'soon', '10', '999', '999ms'], /at least a second/],
    BASE_PATH: [['hub', '/../x', '/a/.', '/./a', '/..'], /a path as "\/hub"/],
    REQUEST_TIMEOUT: [['soon', '1e3'], /a duration/],
    READONLY: [['enabled', '2'], /true or false/],
    PUBLIC_TOOLS: [['some', 'default'], /public, all, off/]
  }
  for (const [name, [values, said]] of Object.entries(wrong)) {
    for (const value of values) {
      assert.throws(
        () => readEnv({ [name]: value }),
        new RegExp(`^Error: The environment variable ${name} cannot be ${JSON.stringify(value).replace(/[.]/g, '\\.')}: expected`),
        value
      )
      assert.throws(() => readEnv({ [name]: value }), said, value)
    }
  }
  for (const [name, value, is] of [
    ['PORT', '08080', 8080], ['JWT_EXPIRES_IN', '1000', '1000'], ['JWT_EXPIRES_IN', '1s', '1s'],
    ['BASE_PATH', '/hub/..a/.b', '/hub/..a/.b'], ['READONLY', 'true', true], ['READONLY', '0', false]
  ] as const) { assert.equal(readEnv({ [name]: value })[name], is) }

  for (const text of [
    'nonsense', '10.0.0.1;10.0.0.2', '-1', 'abc', '10.0.0.0/99', '10.0.0.0/0', '10.0.0.0/255.0.255.0', 'fd00::/129',
    '127.0.0.1,'
  ]) { assert.throws(() => parseTrustProxy(text), /TRUST_PROXY cannot have ".*": expected true, false, a number/, text) }
  for (const text of ['127.0.0.1', '::1', '10.0.0.0/8, fd00::/8', 'loopback,uniquelocal', '10.0.0.0/255.0.0.0']) {
    assert.deepEqual(parseTrustProxy(text), text.split(/, */))
  }
  assert.deepEqual([parseTrustProxy('true'), parseTrustProxy('false'), parseTrustProxy('')], [true, false, false])

  for (const text of ['nonsense', '*', 'https://a/path', 'https://a?b', 'app.example', 'https://*.app.example', 'null']) {
    assert.throws(() => readOriginRules('0.0.0.0', '', text), /ALLOWED_ORIGINS cannot contain ".*": expected origins such as/, text)
  }
  for (const text of ['http://x/', 'x/', '*', 'a b/c', 'a@b']) {
    assert.throws(() => readOriginRules('0.0.0.0', text, ''), /ALLOWED_HOSTS cannot contain ".*": expected host names such as/, text)
  }
  const { hosts, origins } = readOriginRules('0.0.0.0', 'Hub.example:8080, ::1 [fd00::1]:80',
    'https://App.example/, http://b.example:80 chrome-extension://abcdef')
  assert.deepEqual([...hosts ?? []], ['hub.example', '[::1]', '[fd00::1]'])
  assert.deepEqual([...origins], ['https://app.example', 'http://b.example', 'chrome-extension://abcdef'])
})

test('a wrong value is shown without the user and the password in it', async () => {
  for (const [name, text, shown] of [
    ['BASE_URL', 'user:s3cret@hub', '…@hub'], ['BASE_URL', 'https//user:s3cret@hub', '…@hub'],
    ['REGISTRY_URL', 'https://user:s3/cret@hub?x', 'https://…@hub?x'], ['TOOL_HUB_URL', 'http://user:s3@cret@hub', 'http://…@hub']
  ] as const) {
    assert.throws(() => readEnv({ [name]: text }), (error: Error) => error.message.includes(` cannot be "${shown}": `), text)
  }
  const wrong = (error: Error): boolean => error.message.includes(' "…@h": ') || error.message.includes(' "https://…@h": ')
  assert.throws(() => readOriginRules('0.0.0.0', 'user:s3cret@h', ''), wrong)
  assert.throws(() => readOriginRules('0.0.0.0', '', 'https://user:s3cret@h'), wrong)
  assert.throws(() => new OutboundAllowlist('10.0.0.1,https://user:s3cret@h'), wrong)
  assert.throws(() => parseTrustProxy('127.0.0.1,user:s3cret@h'), wrong)
})

test('a place that cannot be listened at is told of in a sentence', async () => {
  const [error] = await once(createServer().listen(0, '192.0.2.1'), 'error') as unknown[]
  assert.match(String(explainListenError(error, { HOST: '192.0.2.1', PORT: 3_000 })),
    /^Error: HOST cannot be "192\.0\.2\.1": this machine does not have this address/)
})

test('the signs that others than this machine come', async () => {
  const table: Array<[host: string, allowedHosts: string, baseUrl: string | undefined, signs: string[]]> = [
    ['127.0.0.1', '', undefined, []],
    ['localhost', 'localhost, 127.0.0.1:3000', 'http://localhost:3000', []],
    ['::1', '', 'http://[::1]:3000', []],
    ['0.0.0.0', '', undefined, ['HOST=0.0.0.0']],
    ['127.0.0.1', 'hub.example.com', undefined, ['ALLOWED_HOSTS=hub.example.com']],
    ['127.0.0.1', '', 'https://hub.example.com', ['install.baseUrl=https://hub.example.com']],
    ['::', 'a.example', 'no address', ['HOST=::', 'ALLOWED_HOSTS=a.example']]
  ]
  for (const [host, allowedHosts, baseUrl, signs] of table) {
    const address = findBaseUrlSetting({ install: { baseUrl } }, {})
    assert.deepEqual(exposureSigns({ host, listenAddress: host, allowedHosts, address }), signs)
  }
  const address = findBaseUrlSetting({ install: { baseUrl: 'http://localhost:3000' } }, { BASE_URL: 'https://hub.example.com' })
  assert.deepEqual(exposureSigns({ host: 'own-name', listenAddress: '127.0.1.1', allowedHosts: '', address }), ['BASE_URL=https://hub.example.com'])
})

test('tools that are open to the world are warned of, even while bearer keys are required', async (t) => {
  const server = { url: 'http://127.0.0.1:9/mcp' }
  const mcpServers = {
    unmarked: server,
    marked: { ...server, visibility: 'public' },
    own: { ...server, visibility: 'private' },
    disabled: { ...server, enabled: false }
  }
  const published = { install: { baseUrl: 'https://hub.example.com' } }
  const said = async (systemConfig: object, env: Record<string, string>, servers: object = mcpServers): Promise<string[]> => {
    const hub = await startHub(t, { settings: { mcpServers: servers, systemConfig }, env })
    return hub.output().split('\n').filter((line) => line.includes('without credentials, under'))
  }
  const open = { PUBLIC_TOOLS: 'all' }
  const [warning = ''] = await said(published, open)
  assert.equal((JSON.parse(warning) as { level: unknown }).level, 40)
  assert.match(warning, /tools of 3 of its servers .*\/api\/tools.*enableBearerAuth.*install\.baseUrl=https.*PUBLIC_TOOLS=public/)
  assert.equal((await said({}, { ...open, ALLOWED_HOSTS: 'hub.example.com' })).length, 1)
  assert.equal((await said({}, open)).length, 0, 'nobody else comes')
  assert.equal((await said(published, {})).length, 0, 'what is open was marked so')
  assert.equal((await said(published, { PUBLIC_TOOLS: 'off' })).length, 0)
  assert.equal((await said(published, open, { disabled: mcpServers.disabled })).length, 0, 'nothing is open')
  const unlocked = { ...published, routing: { enableBearerAuth: false } }
  const [overMcp = ''] = await said(unlocked, { PUBLIC_TOOLS: 'off' })
  assert.match(overMcp, /tools of 1 of its servers without credentials, under \/mcp, since .*enableBearerAuth is off .*or routing.enableBearerAuth on/)
  assert.match((await said(unlocked, open)).join(), /\/api\/tools.*and under \/mcp.*or PUBLIC_TOOLS=off and routing.enableBearerAuth on/)
  assert.equal((await said(unlocked, {})).length, 0, 'what is open was marked so')
})

test('skipAuth is told loudly where others than this machine come, by whatever shows it', async (t) => {
  const said = async (baseUrl: string | undefined, env: Record<string, string>): Promise<Array<[level: unknown, sentence: string]>> => {
    const systemConfig = { routing: { skipAuth: true }, ...baseUrl === undefined ? {} : { install: { baseUrl } } }
    const hub = await startHub(t, { settings: { systemConfig }, env })
    return hub.output().split('\n').filter((line) => line.includes('routing.skipAuth is on')).map((line) => {
      const { level, msg } = JSON.parse(line) as { level: unknown, msg: string }
      return [level, msg]
    })
  }
  const local = 'routing.skipAuth is on: everybody on this machine has admin rights, and can start processes'
  const loud = (signs: string): [number, string] => [50, `routing.skipAuth is on and other machines can reach the gateway (${signs}): ` +
    'everybody who reaches it has admin rights, and can start processes. Turn it off']
  assert.deepEqual(await said(undefined, {}), [[40, local]])
  assert.deepEqual(await said('http://localhost:3000', {}), [[40, local]])
  assert.deepEqual(await said(undefined, { HOST: '127.1' }), [[40, local]])
  assert.deepEqual(await said('https://hub.example.com', {}), [loud('install.baseUrl=https://hub.example.com')])
  assert.deepEqual(await said(undefined, { ALLOWED_HOSTS: 'hub.example.com' }), [loud('ALLOWED_HOSTS=hub.example.com')])
  assert.deepEqual(await said(undefined, { TRUST_PROXY: 'loopback' }), [loud('TRUST_PROXY=loopback')])
})
