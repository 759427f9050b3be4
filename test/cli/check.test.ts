// `tool-hub check` says what a start of the gateway would say, by the same code, and leaves no trace.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { check } from '../../cli/commands/check.ts'
import { temporaryFolder } from '../fakes/store-file.ts'

test('what the gateway refuses is an error, and what it warns of a warning', async (t) => {
  const folder = await temporaryFolder(t)
  const sound = { SETTINGS_PATH: join(folder, 'mcp_settings.json'), JWT_SECRET: 'x'.repeat(32) }
  const cases: Array<[environment: Record<string, string>, level?: 'error' | 'warning', message?: RegExp]> = [
    [{}],
    [{ DB_URL: 'postgres://hub:secret@db/hub' }],
    [{ PORT: 'x' }, 'error', /PORT cannot be "x"/],
    [{ TRUST_PROXY: 'maybe' }, 'error', /TRUST_PROXY cannot have "maybe"/],
    [{ ALLOWED_ORIGINS: 'foo' }, 'error', /ALLOWED_ORIGINS cannot have "foo"/],
    [{ ALLOWED_HOSTS: 'http://a' }, 'error', /ALLOWED_HOSTS cannot have/],
    [{ OUTBOUND_ALLOW: '10.0.0.0/40' }, 'error', /OUTBOUND_ALLOW cannot hold/],
    [{ HOST: '1.2.3.4' }, 'error', /HOST cannot be "1\.2\.3\.4"/],
    [{ DB_URL: 'mysql://x' }, 'error', /DB_URL has an unknown scheme/],
    [{ DB_URL: 'foo' }, 'error', /DB_URL has an unknown scheme/],
    [{ DB_URL: 'pglite://' }, 'error', /DB_URL names no folder/],
    [{ DB_URL: 'pglite:///etc/passwd' }, 'error', /\/etc\/passwd cannot be opened/],
    [{ ENCRYPTION_KEY: 'abc' }, 'error', /Key 1 of ENCRYPTION_KEY is too short/],
    [{ CHILD_USER: 'no-such-user' }, 'error', /CHILD_USER/],
    [{ JWT_SECRET: 'short' }, 'warning', /JWT_SECRET is weak/],
    [{ INIT_TIMEOUT: '30' }, 'warning', /INIT_TIMEOUT=30 is 30 ms/],
    [{ DATA_DIR: '/etc/passwd' }, 'warning', /DATA_DIR cannot be written: \/etc\/passwd is not a folder/],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'foo' }, 'warning', /calls are not traced: OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https address/],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' }, 'warning', /calls are not traced: .* such as http:/],
    [{ SOCIAL_AUTH_ENABLED: 'true' }, 'warning', /it needs a database/],
    [{ SOCIAL_AUTH_ENABLED: 'true', DB_URL: 'postgres://db/hub' }, 'warning', /no provider is enabled/]
  ]
  // OpenTelemetry reads the environment of the process by itself.
  const former = process.env
  t.after(() => { process.env = former })
  for (const [environment, level, message] of cases) {
    process.env = { PATH: former.PATH, ...sound, ...environment }
    const findings = (await check(process.env)).filter(({ message }) => !/no settings file yet|checked by the gateway/.test(message))
    assert.deepEqual(findings.map((finding) => finding.level), level === undefined ? [] : [level], JSON.stringify([environment, findings]))
    if (message) assert.match(findings[0]?.message ?? '', message)
  }
  assert.deepEqual(readdirSync(folder), [])
})
