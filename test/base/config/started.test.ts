// What a start loads, as the build tells it: packages that only some requests or commands need are not among it.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'tap'
// @ts-expect-error the scripts of the build have no types
import * as packages from '../../../cli/packages.mjs'
import { loadPackage } from '../../../package.ts'
import { path } from '../../helpers/hub.ts'

const { latePackageNames, externalPackages, moduleStubs } = packages as {
  latePackageNames: string[], externalPackages: string[], moduleStubs: Record<string, string>
}

const skip = existsSync(path('dist/started.json')) ? false : 'there is no build yet: npm run build'

test('what a start loads', { skip }, async (t) => {
  const started = JSON.parse(readFileSync(path('dist/started.json'), 'utf8')) as Record<string, Record<string, number>>
  const sizeOf = (program: string): number => Object.values(started[program] ?? {}).reduce((sum, bytes) => sum + bytes, 0)

  await t.test('the gateway: nothing of documents, databases, traces, uploads, validators and forms', async () => {
    const { server = {} } = started
    assert.ok('fastify' in server && 'tool-hub' in server, JSON.stringify(server))
    const asked = [
      ...externalPackages, ...Object.keys(moduleStubs), 'ajv', 'light-my-request', 'commander', 'postgres', 'drizzle-orm', 'prom-client', 'js-yaml',
      'yaml', 'yazl', '@fastify/swagger', '@fastify/multipart', '@fastify/cookie', '@modelcontextprotocol/sdk', 'pino-pretty',
      '@opentelemetry/core', '@opentelemetry/resources', '@opentelemetry/sdk-trace-base', '@opentelemetry/exporter-trace-otlp-http'
    ]
    assert.deepEqual(asked.filter((name) => Object.hasOwn(server, name)), [])
    assert.ok(sizeOf('server') < 2_650_000, `${sizeOf('server')} bytes`)
  })

  await t.test('the command line: nothing but its commands', async () => {
    assert.deepEqual(Object.keys(started['cli/main'] ?? {}), ['commander', 'tool-hub'])
    assert.ok(sizeOf('cli/main') < 140_000, `${sizeOf('cli/main')} bytes`)
  })

  await t.test('late packages have bundles, and all bundled packages their licences', async () => {
    for (const name of latePackageNames) assert.ok(existsSync(path(`dist/packages/${name}.cjs`)), name)
    assert.equal(new (loadPackage('ajv').Ajv)().validate({ type: 'string' }, 'text'), true)
    assert.equal(loadPackage('fast-json-stringify')({ type: 'object' })({}), '{}')
    const licences = readFileSync(path('dist/LICENCES.txt'), 'utf8')
    for (const name of ['fastify', 'ajv', 'undici', 'commander', 'postgres']) {
      assert.match(licences, new RegExp(`^${name} [\\d.]+ \\(`, 'm'), name)
    }
  })
})
