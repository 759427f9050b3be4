/* eslint-disable no-template-curly-in-string -- configs hold variables in this form */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { RegistryClient } from '../../../plugins/management/market/registry.ts'
import { CatalogueSource } from '../../../plugins/management/market/source.ts'
import { toConfigs } from '../../../plugins/management/market/to-configs.ts'
import type { FetchedResponse } from '../../../plugins/base/outbound/fetch.ts'
import { toServerChange } from '../../../plugins/management/servers/to-store.ts'
import type { Principal } from '../../../plugins/settings/access/view.ts'
import type { ConvertedPackage } from '../../../schemas/catalogues.ts'
import { newNameProblem } from '../../../schemas/names.ts'
import { firstSchemaProblem } from '../../../schemas/problem.ts'
import { ServerJson } from '../../../schemas/server-json.ts'
import { registryEntries } from '../../fakes/registry-entries.ts'
import { appFor } from '../../helpers/app.ts'

type Json = Record<string, unknown>
const entryWith = (more: Json): ServerJson =>
  ({ name: 'io.github.ada/weather', description: 'd', version: '1.0.0', ...more }) as ServerJson
const packaged = (more: Json): ConvertedPackage => first({ packages: [{ registryType: 'npm', identifier: '@ada/weather', version: '1.2.3', transport: { type: 'stdio' }, ...more }] })
const remote = (more: Json): ConvertedPackage => first({ remotes: [{ type: 'streamable-http', url: 'https://mcp.example.com/mcp', ...more }] })
function first (more: Json): ConvertedPackage {
  const server = entryWith(more)
  assert.equal(firstSchemaProblem(ServerJson, server), undefined)
  const [ready] = toConfigs(server)
  assert.ok(ready)
  return ready
}

test('packages', async (t) => {
  const cases: Array<[string, Json, Json]> = [
    ['npm', {}, { command: 'npx', args: ['-y', '@ada/weather@1.2.3'] }],
    ['npm without a version', { version: undefined }, { command: 'npx', args: ['-y', '@ada/weather'] }],
    ['npm of the public registry', { registryBaseUrl: 'https://registry.npmjs.org/' }, { command: 'npx', args: ['-y', '@ada/weather@1.2.3'] }],
    ['PyPI', { registryType: 'pypi', identifier: 'weather-mcp' }, { command: 'uvx', args: ['weather-mcp@1.2.3'] }],
    [
      'PyPI with arguments of uvx and of the package',
      {
        registryType: 'pypi',
        identifier: 'weather-mcp',
        runtimeHint: 'uvx',
        runtimeArguments: [{ type: 'named', name: '--python', value: '3.12' }],
        packageArguments: [{ type: 'positional', value: 'serve' }]
      },
      { command: 'uvx', args: ['--python=3.12', 'weather-mcp@1.2.3', 'serve'] }
    ],
    ['OCI with a tag', { registryType: 'oci', identifier: 'ghcr.io/ada/weather:2', version: undefined }, { command: 'docker', args: ['run', '-i', '--rm', 'ghcr.io/ada/weather:2'] }],
    ['OCI with a digest', { registryType: 'oci', identifier: 'ada/weather@sha256:00' }, { command: 'docker', args: ['run', '-i', '--rm', 'ada/weather@sha256:00'] }],
    ['OCI with a version aside', { registryType: 'oci', identifier: 'ada/weather' }, { command: 'docker', args: ['run', '-i', '--rm', 'ada/weather:1.2.3'] }],
    ['OCI with a port and a version aside', { registryType: 'oci', identifier: 'reg.example:5000/weather' }, { command: 'docker', args: ['run', '-i', '--rm', 'reg.example:5000/weather:1.2.3'] }],
    ['OCI with a registry aside', { registryType: 'oci', identifier: 'ada/weather', registryBaseUrl: 'https://ghcr.io' }, { command: 'docker', args: ['run', '-i', '--rm', 'ghcr.io/ada/weather:1.2.3'] }],
    ['OCI on Docker Hub', { registryType: 'oci', identifier: 'ada/weather', registryBaseUrl: 'https://docker.io' }, { command: 'docker', args: ['run', '-i', '--rm', 'ada/weather:1.2.3'] }],
    ['OCI with a checksum', { registryType: 'oci', identifier: 'ada/weather', fileSha256: '0'.repeat(64) }, { command: 'docker', args: ['run', '-i', '--rm', 'ada/weather:1.2.3'] }],
    [
      'arguments: fixed, default, required, optional, named',
      {
        runtimeHint: 'npx',
        runtimeArguments: [{ type: 'named', name: '--node-options', value: '--no-warnings' }],
        packageArguments: [
          { type: 'positional', value: 'serve' },
          { type: 'positional', valueHint: 'folder', default: '/srv' },
          { type: 'positional', valueHint: 'city', isRequired: true },
          { type: 'positional', valueHint: 'unit' },
          { type: 'named', name: '--port', default: '80' },
          { type: 'named', name: '-k', isRequired: true },
          { type: 'named', name: '--quiet' },
          { type: 'named', name: '--fast', format: 'boolean', isRequired: true },
          { type: 'named', name: '--slow', format: 'boolean', default: 'false' },
          { type: 'named', name: '--loud', format: 'boolean', value: 'true' }
        ]
      },
      {
        command: 'npx',
        args: [
          '-y', '--node-options=--no-warnings', '@ada/weather@1.2.3',
          'serve', '/srv', '${INPUT_WEATHER_CITY}', '--port=80', '-k', '${INPUT_WEATHER_K}', '--fast', '--loud'
        ]
      }
    ],
    [
      'variables in values, as the API has them',
      {
        registryType: 'oci',
        identifier: 'ada/weather',
        runtimeArguments: [
          {
            type: 'named',
            name: '--mount',
            value: 'type=bind,src={source},dst={target},ro={ro}{unknown}',
            variables: { source: { isRequired: true, format: 'filepath' }, target: { default: '/data' }, ro: { value: '1' } }
          },
          { type: 'named', name: '-v', value: '{host}:/x', variables: { host: {} } }
        ],
        environmentVariables: [
          { name: 'KEY', isRequired: true, isSecret: true },
          { name: 'MODE', value: 'live' },
          { name: 'SPARE' }
        ]
      },
      {
        command: 'docker',
        args: ['run', '-i', '--rm', '-e', 'KEY', '-e', 'MODE', '--mount=type=bind,src=${INPUT_WEATHER_SOURCE},dst=/data,ro=1{unknown}', 'ada/weather:1.2.3'],
        env: { KEY: '${INPUT_WEATHER_KEY}', MODE: 'live' }
      }
    ]
  ]
  for (const [name, given, config] of cases) {
    await t.test(name, async () => { assert.deepEqual(packaged(given).config, { type: 'stdio', ...config }) })
  }
})

test('what a person has to fill in, and may', async () => {
  const { required = [], optional } = packaged({
    environmentVariables: [
      { name: 'API_KEY', isRequired: true, isSecret: true, description: 'Your key', placeholder: 'k-…', choices: ['a', 'b'] },
      { name: 'api-key', isRequired: true },
      { name: 'SPARE', description: 'Not needed', isSecret: true }
    ]
  })
  assert.deepEqual(required.map(({ format, ...field }) => field), [
    { key: 'INPUT_WEATHER_API_KEY', title: 'API_KEY', description: 'Your key', sensitive: true, placeholder: 'k-…', choices: ['a', 'b'] },
    { key: 'INPUT_WEATHER_API_KEY_2', title: 'api-key', description: undefined, sensitive: false, placeholder: undefined, choices: undefined }
  ])
  assert.deepEqual(optional, [{ title: 'SPARE', place: 'env', description: 'Not needed', sensitive: true }])
})

test('remotes', async (t) => {
  const cases: Array<[string, Json, Json]> = [
    ['streamable HTTP', {}, { type: 'streamable-http', url: 'https://mcp.example.com/mcp' }],
    ['SSE', { type: 'sse', url: 'http://mcp.example.com/sse' }, { type: 'sse', url: 'http://mcp.example.com/sse' }],
    [
      'headers: fixed, with a variable, required, optional',
      {
        headers: [
          { name: 'X-Fixed', value: 'a' },
          { name: 'Authorization', value: 'Bearer {token}', variables: { token: { isRequired: true, isSecret: true } } },
          { name: 'X-Key', isRequired: true, isSecret: true },
          { name: 'X-Spare' }
        ]
      },
      {
        type: 'streamable-http',
        url: 'https://mcp.example.com/mcp',
        headers: { 'X-Fixed': 'a', Authorization: 'Bearer ${INPUT_WEATHER_TOKEN}', 'X-Key': '${INPUT_WEATHER_X_KEY}' }
      }
    ],
    [
      'variables of the address',
      { url: 'https://{tenant}.example.com/{region}', variables: { tenant: { isRequired: true }, region: { default: 'eu', choices: ['eu', 'us'] } } },
      { type: 'streamable-http', url: 'https://${INPUT_WEATHER_TENANT}.example.com/eu' }
    ],
    [
      'a blank variable at the end of the address',
      { url: 'https://mcp.example.com/{path}', variables: { path: { value: ' ' } } },
      { type: 'streamable-http', url: 'https://mcp.example.com/' }
    ],
    ['an address that is a variable', { url: '{base}/mcp', variables: { base: {} } }, { type: 'streamable-http', url: '${INPUT_WEATHER_BASE}/mcp' }]
  ]
  for (const [name, given, config] of cases) await t.test(name, async () => { assert.deepEqual(remote(given).config, config) })
})

test('each config of an entry has a name of its own', async () => {
  const [http, sse] = [{ type: 'streamable-http', url: 'https://a.example/mcp' }, { type: 'sse', url: 'https://a.example/sse' }]
  const npm = { registryType: 'npm', identifier: 'weather', transport: { type: 'stdio' } }
  const namesOf = (more: Json): unknown[] => toConfigs(entryWith(more)).map(({ name }) => name)
  assert.deepEqual(namesOf({ remotes: [http, sse], packages: [npm] }), ['weather', 'weather-sse', 'weather-npm'])
  assert.deepEqual(namesOf({ remotes: [sse, http, http], packages: [npm, npm] }), ['weather', 'weather-http', 'weather-http-2', 'weather-npm', 'weather-npm-2'])
  assert.deepEqual(namesOf({ remotes: [{ type: 'ws', url: 'wss://a.example' }, http] }), [undefined, 'weather'], 'the first that can be added')
})

test('reasons where there is no config', async (t) => {
  const cases: Array<[string, () => ConvertedPackage, RegExp]> = [
    ['a bundle', () => packaged({ registryType: 'mcpb', identifier: 'https://example.com/a.mcpb' }), /POST \/api\/mcpb\/upload/],
    ['NuGet', () => packaged({ registryType: 'nuget' }), /dnx/],
    ['Cargo', () => packaged({ registryType: 'cargo' }), /compiled/],
    ['an unknown type', () => packaged({ registryType: 'constructor' }), /"constructor" are not supported/],
    ['another registry', () => packaged({ registryBaseUrl: 'https://evil.example' }), /comes from "https:\/\/evil\.example"/],
    ['a checksum', () => packaged({ fileSha256: '0'.repeat(64) }), /checksum/],
    ['a package that serves HTTP', () => packaged({ transport: { type: 'streamable-http', url: 'http://localhost:1/mcp' } }), /run it yourself/],
    ['an unknown transport', () => packaged({ transport: { type: 'pigeon' } }), /"pigeon"/],
    ['an identifier that is an option', () => packaged({ identifier: '--call=evil' }), /not the name of a package/],
    ['an image that is an option', () => packaged({ registryType: 'oci', identifier: '--privileged' }), /not the name of a package/],
    ['a version that is a range', () => packaged({ version: '^1.0.0' }), /not a single version/],
    ['arguments of node', () => packaged({ runtimeHint: 'node', runtimeArguments: [{ type: 'named', name: '--inspect' }] }), /for "node", but npx would run it/],
    [
      'arguments of Python',
      () => packaged({ registryType: 'pypi', identifier: 'weather', runtimeHint: 'python', runtimeArguments: [{ type: 'named', name: '-m', value: 'weather' }] }),
      /for "python", but uvx would run it/
    ],
    ['arguments of another command', () => packaged({ runtimeHint: 'bunx', runtimeArguments: [{ type: 'positional', value: 'x' }] }), /for "bunx"/],
    ['an unknown type of argument', () => packaged({ packageArguments: [{ type: 'spoken', value: 'x' }] }), /"spoken"/],
    ['a named argument without a name', () => packaged({ packageArguments: [{ type: 'named', value: 'x' }] }), /without a name/],
    ['a variable of our environment', () => packaged({ environmentVariables: [{ name: 'A', value: '${AWS_SECRET}' }] }), /variable of this gateway/],
    [
      'a variable put together',
      () => remote({ headers: [{ name: 'X', value: '${a}', variables: { a: { value: '{HOME}' } } }] }),
      /variable of this gateway/
    ],
    ['one put together of parts', () => remote({ headers: [{ name: 'X', value: '${a}', variables: { a: { value: 'HOME' } } }, { name: 'Y', value: '{b}{{c}', variables: { b: { value: '$' }, c: { value: 'HOME}' } } }] }), /variable of this gateway/],
    ['a mask', () => remote({ headers: [{ name: 'X', value: '••••abcd' }] }), /masked secret/],
    ['a control character', () => packaged({ environmentVariables: [{ name: 'A', value: 'a\u0000b' }] }), /control character/],
    ['a variable without a name', () => packaged({ environmentVariables: [{ name: 'A=B', value: 'x' }] }), /not a valid variable name/],
    ['__proto__ as a variable', () => packaged({ environmentVariables: [{ name: '__proto__', value: 'x' }] }), /not a valid variable name/],
    ['a header that is none', () => remote({ headers: [{ name: 'X Y', value: 'x' }] }), /not a valid header name/],
    ['an address of another kind', () => remote({ url: 'file:///etc/passwd' }), /not an http or https address/],
    ['an address with an unknown variable', () => remote({ url: 'https://{tenant}.example.com' }), /\{tenant\}/],
    ['no address', () => remote({ url: undefined }), /no address/],
    ['an unknown remote', () => remote({ type: 'stdio' }), /"stdio"/],
    ['neither package nor remote', () => first({}), /neither a package nor a remote/]
  ]
  for (const [name, made, reason] of cases) {
    await t.test(name, async () => {
      const ready = made()
      assert.equal(ready.config, undefined)
      assert.match(ready.reason ?? '', reason)
    })
  }
})

test('names that servers may have here', async () => {
  const nameFor = (name: string): string | undefined => toConfigs(entryWith({ name, remotes: [{ type: 'sse', url: 'https://a.example' }] }))[0]?.name
  for (const [given, name] of [
    ['io.github.ada/weather', 'weather'],
    ['io.github.ada/mcp', 'ada-mcp'],
    ['com.example/._weird_', 'weird'],
    ['com.example/__proto__', 'proto'],
    ['com.example/constructor', 'example-constructor']
  ] as const) assert.equal(nameFor(given), name)
})

test('every entry that the API allows becomes configs that can be stored, or reasons', async (t) => {
  const app = await appFor(t, { users: [{ username: 'admin', password: 'x', isAdmin: true }] })
  const snapshot = app.settings.current
  const admin: Principal = { key: 'admin', kind: 'user', user: 'admin', username: 'admin', isAdmin: true }
  let [configs, reasons] = [0, 0]
  fc.assert(fc.property(registryEntries, (entry) => {
    const { server } = JSON.parse(JSON.stringify(entry)) as { server: ServerJson }
    assert.equal(firstSchemaProblem(ServerJson, server), undefined)
    const ready = toConfigs(server)
    assert.equal(ready.length, Math.max(1, (server.packages ?? []).length + (server.remotes ?? []).length))
    for (const { name, config, required = [], reason } of ready) {
      assert.ok((reason === undefined) !== (config === undefined))
      if (config === undefined || name === undefined) { reasons++; continue }
      configs++
      assert.equal(newNameProblem(name), undefined, name)
      const text = JSON.stringify(config)
      const { value } = toServerChange(snapshot, admin, name, config as Json, false)
      assert.deepEqual({ ...value, ...config }, value)
      // The only variables in it are those that a person is told of.
      const named = new Set([...text.matchAll(/\$\{([A-Za-z_]\w*)\}/g)].map(([, key]) => key))
      assert.deepEqual([...named].sort(), required.map(({ key }) => key).sort())
    }
  }), { numRuns: 300 })
  t.comment(`${configs} configs, ${reasons} reasons`)
  assert.ok(configs > 100 && reasons > 50, `${configs} configs, ${reasons} reasons`)
})

test('a large answer of a registry is read without holding the event loop, in the name of the caller', async () => {
  const servers = Array.from({ length: 1_000 }, (_, n) => ({
    server: { name: `com.example/s${n}`, description: 'd'.repeat(100), version: '1.0.0', remotes: [{ type: 'sse', url: 'https://mcp.example.com/' }] }
  }))
  const body = Buffer.from(JSON.stringify({ servers, metadata: { count: servers.length, nextCursor: 'more' } }))
  const causes: unknown[] = []
  const fetch = async (_url: unknown, { memoryOwner }: { memoryOwner?: string }): Promise<FetchedResponse> => {
    causes.push(memoryOwner)
    return { status: 200, headers: {}, body }
  }
  const registry = new RegistryClient(new CatalogueSource({ outbound: { fetch } as never, name: 'The registry', reportOutage: () => {} }), 'https://registry.example')
  let others = 0
  let isOver = false
  const tick = (): void => { if (!isOver) { others++; setImmediate(tick) } }
  setImmediate(tick)
  const { value } = await registry.listEntries({}, 'user ann')
  isOver = true
  assert.deepEqual([value.servers.length, value.servers[999]?.configs.length, value.metadata.nextCursor], [1_000, 1, 'more'])
  assert.deepEqual(causes, ['user ann'])
  assert.ok(others > 10, `other work ran ${others} times meanwhile`)
})
