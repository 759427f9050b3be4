// `tool-hub check` says what a start of the gateway would say, by the same code, and leaves no trace.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { findConfigurationProblems } from '../../cli/findings.ts'
import { Passwords } from '../../plugins/base/secrets/hash.ts'
import { temporaryFolder } from '../fakes/store-file.ts'

test('what the gateway refuses is an error, and what it warns of a warning', async (t) => {
  const folder = await temporaryFolder(t)
  const sound = { SETTINGS_PATH: join(folder, 'mcp_settings.json'), JWT_SECRET: 'x'.repeat(32) }
  const cases: Array<[environment: Record<string, string>, level?: 'error' | 'warning', message?: RegExp]> = [
    [{}],
    [{ DB_URL: 'postgres://hub:secret@db/hub' }],
    [{ PORT: 'x' }, 'error', /PORT cannot be "x"/],
    [{ TRUST_PROXY: 'maybe' }, 'error', /TRUST_PROXY cannot have "maybe"/],
    [{ ALLOWED_ORIGINS: 'foo' }, 'error', /ALLOWED_ORIGINS cannot contain "foo"/],
    [{ ALLOWED_HOSTS: 'http://a' }, 'error', /ALLOWED_HOSTS cannot contain/],
    [{ OUTBOUND_ALLOW: '10.0.0.0/40' }, 'error', /OUTBOUND_ALLOW cannot contain/],
    [{ HOST: '1.2.3.4' }, 'error', /HOST cannot be "1\.2\.3\.4"/],
    [{ DB_URL: 'mysql://x' }, 'error', /DB_URL has an unknown scheme/],
    [{ DB_URL: 'foo' }, 'error', /DB_URL has an unknown scheme/],
    [{ DB_URL: 'pglite://' }, 'error', /DB_URL does not name a folder/],
    [{ DB_URL: 'pglite:///etc/passwd' }, 'error', /\/etc\/passwd cannot be opened/],
    [{ ENCRYPTION_KEY: 'abc' }, 'error', /Key 1 of ENCRYPTION_KEY is too short/],
    [{ CHILD_USER: 'no-such-user' }, 'error', /CHILD_USER/],
    [{ JWT_SECRET: 'short' }, 'warning', /JWT_SECRET is weak/],
    [{ METRICS_TOKEN: 'short' }, 'warning', /METRICS_TOKEN is weak/],
    [{ INIT_TIMEOUT: '30' }, 'warning', /INIT_TIMEOUT=30 is 30 ms/],
    [{ DATA_DIR: '/etc/passwd' }, 'warning', /DATA_DIR cannot be written: \/etc\/passwd is not a folder/],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'foo' }, 'warning', /calls are not traced: OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https address/],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' }, 'warning', /calls are not traced: .* such as http:/],
    [{ SOCIAL_AUTH_ENABLED: 'true' }, 'warning', /it requires a database/],
    [{ SOCIAL_AUTH_ENABLED: 'true', DB_URL: 'postgres://db/hub' }, 'warning', /no provider is enabled/]
  ]
  // OpenTelemetry reads the environment of the process by itself.
  const former = process.env
  t.after(() => { process.env = former })
  for (const [environment, level, message] of cases) {
    process.env = { PATH: former.PATH, ...sound, ...environment }
    const findings = (await findConfigurationProblems(process.env)).filter(({ message }) => !/no settings file yet|the gateway checks/.test(message))
    assert.deepEqual(findings.map((finding) => finding.level), level === undefined ? [] : [level], JSON.stringify([environment, findings]))
    if (message) assert.match(findings[0]?.message ?? '', message)
  }
  assert.deepEqual(readdirSync(folder), [])
})

/** The warnings and errors of a check of these settings, without those about the environment. */
async function findingsOf (t: Test, settings: object): Promise<Array<[level: string, message: string]>> {
  const folder = await temporaryFolder(t)
  const file = join(folder, 'mcp_settings.json')
  await writeFile(file, JSON.stringify(settings))
  const findings = await findConfigurationProblems({ PATH: process.env.PATH, SETTINGS_PATH: file, JWT_SECRET: 'x'.repeat(32) })
  return findings.map(({ level, message }) => [level, message])
}

test('members of the settings that have no effect are named', async (t) => {
  const key = { id: '1', name: 'agent', token: 'x'.repeat(40) }
  const cases: Array<[settings: object, ...messages: string[]]> = [
    [{ bearerKeys: [{ ...key, accesType: 'groups' }] }, 'key "agent": "accesType" is not known and has no effect: did you mean "accessType"?'],
    [{ users: [{ username: 'bob', isAdmn: true }] }, 'user "bob": "isAdmn" is not known and has no effect: did you mean "isAdmin"?'],
    [{ mcpServers: { a: { command: 'x', enabled: false } }, groups: [{ id: '1', name: 'g', servers: [{ name: 'a', tool: ['x'] }], wonder: 1 }] },
      'group "g": "servers.0.tool" is not known and has no effect: did you mean "tools"?', 'group "g": "wonder" is not known and has no effect'],
    [{ mcpServers: { a: { command: 'x', enabled: false, tools: { b: { enable: false } }, arg: [] } } },
      'server "a": "tools.b.enable" is not known and has no effect: did you mean "enabled"?',
      'server "a": "arg" is not known and has no effect: did you mean "args"?'],
    [{
      systemConfig: {
        routing: { skipAuht: false },
        instal: {},
        oauthServer: { enabld: true },
        toolResultCompression: { min_tokens: 1 },
        auth: { betterAuth: { providers: { oidc: { pkc: false } } } }
      }
    },
    '"systemConfig.routing.skipAuht" is not known and has no effect: did you mean "skipAuth"?',
    '"systemConfig.instal" is not known and has no effect: did you mean "install"?',
    '"systemConfig.oauthServer.enabld" is not known and has no effect: did you mean "enabled"?',
    '"systemConfig.toolResultCompression.min_tokens" is not known and has no effect: did you mean "minTokens"?',
    '"systemConfig.auth.betterAuth.providers.oidc.pkc" is not known and has no effect: did you mean "pkce"?'],
    [{ mcpServer: { a: {} }, bearerkeys: [key], userConfigs: { bob: {} }, systemConfig: { mcpRouter: { titel: 'x' } } },
      '"systemConfig.mcpRouter.titel" is not known and has no effect: did you mean "title"?',
      '"mcpServer" is not known and has no effect: did you mean "mcpServers"?',
      '"bearerkeys" is not known and has no effect: did you mean "bearerKeys"?',
      '"userConfigs" is a member of MCPHub: it is kept, but has no effect'],
    // Former names of members, comments, and what all versions write.
    [{ $schema: 'x', '//': 'x', version: 1, systemConfig: { smartRouting: { openaiApiKey: 'x' }, _comment: 'x' }, oauthClients: [], oauthTokens: [], users: [{ username: 'bob', '#': 'x' }] }]
  ]
  for (const [settings, ...messages] of cases) {
    assert.deepEqual(await findingsOf(t, settings), messages.map((message) => ['warning', message]))
  }
  const many = Array.from({ length: 50 }, (_, n) => ({ username: `u${n}`, [`wonder${'x'.repeat(100)}`]: 1 }))
  const told = await findingsOf(t, { users: many })
  assert.deepEqual([told.length, told.at(-1)?.[1]], [21, '"users": 30 more warnings'])
  assert.ok(told.every(([, message]) => message.length < 200))
})

test('a password that no login can succeed with is warned of, with the user and without the password', async (t) => {
  const secret = 'plain-Secret-1'
  const whole = ['$2b$04$yAF4rA94ID.GNvLn8GSMEOmUJBg0FfcNTVsY8tYvYo0YMp8s8kBhy', await new Passwords().hash(secret), undefined]
  const unusable = [secret, '', '••••••', whole[0]?.slice(0, 40), whole[1]?.replace('$32768$', '$4194304$'), `$argon2id$v=19$${secret}`]
  const users = [...whole, ...unusable].map((password, at) => ({ username: `u${at}`, ...(password === undefined ? {} : { password }) }))
  const sentence = '"password" is not a usable hash, so the user cannot log in: tool-hub user reset-password <username> sets a new one'
  assert.deepEqual(await findingsOf(t, { users }), unusable.map((_, at) => ['warning', `user "u${whole.length + at}": ${sentence}`]))
})

test('keys and groups that name nothing are warned of', async (t) => {
  const scope = { accessType: 'custom', allowedGroups: ['daily', 'g1', 'gone'], allowedServers: ['a', 'b'] }
  assert.deepEqual(
    await findingsOf(t, {
      mcpServers: { a: { command: 'x', enabled: false } },
      groups: [{ id: 'g1', name: 'daily', servers: ['a', 'c'] }],
      bearerKeys: [{ id: '1', name: 'agent', token: 'x'.repeat(40), ...scope }]
    }),
    [
      ['warning', 'group "daily" contains a server "c", which does not exist'],
      ['warning', 'key "agent" allows a group "gone", which does not exist'],
      ['warning', 'key "agent" allows a server "b", which does not exist']
    ]
  )
})
