/* eslint-disable no-template-curly-in-string -- configs hold variables in this form */
import fc from 'fast-check'

// Entries of a registry, as the description of its API allows them: every member is there or not.

const word = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,12}$/)
const text = fc.oneof(word, fc.string({ maxLength: 40 }), fc.constantFrom('{a}', 'Bearer {token}', '${HOME}', 'x={a},y={b}', '', '••••'))
const optional = { requiredKeys: [] as never[] }

const members = {
  description: text,
  isRequired: fc.boolean(),
  format: fc.constantFrom('string', 'number', 'boolean', 'filepath'),
  value: text,
  isSecret: fc.boolean(),
  default: text,
  placeholder: text,
  choices: fc.array(text, { maxLength: 3 })
}
const input = fc.record(members, optional)
const variables = fc.dictionary(fc.oneof(fc.constantFrom('a', 'b', 'token'), word), input, { maxKeys: 3 })
const withVariables = { ...members, variables }

const positional = fc.oneof(
  fc.record({ ...withVariables, type: fc.constant('positional'), valueHint: word, isRepeated: fc.boolean() }, { requiredKeys: ['type', 'valueHint'] }),
  fc.record({ ...withVariables, type: fc.constant('positional'), isRepeated: fc.boolean() }, { requiredKeys: ['type', 'value'] })
)
const named = fc.record(
  { ...withVariables, type: fc.constant('named'), name: fc.oneof(word.map((each) => `--${each}`), fc.constantFrom('-e', 'port')), isRepeated: fc.boolean() },
  { requiredKeys: ['type', 'name'] }
)
const argument = fc.oneof(positional, named)
const keyValue = fc.record({ ...withVariables, name: fc.oneof(word, fc.constantFrom('API_KEY', 'Authorization')) }, { requiredKeys: ['name'] })
const keyValues = fc.uniqueArray(keyValue, { maxLength: 3, selector: ({ name }) => name })

const url = fc.constantFrom('https://mcp.example.com/mcp', 'http://localhost:8080/{a}', '{base}/mcp', 'https://{tenant}.example.com/sse')
const http = { type: fc.constantFrom('streamable-http', 'sse'), url, headers: keyValues }
const remote = fc.record({ ...http, variables: fc.oneof(variables, fc.record({ base: input, tenant: input, a: input })) }, { requiredKeys: ['type', 'url'] })
const transport = fc.oneof(
  { weight: 8, arbitrary: fc.record({ type: fc.constant('stdio') }) },
  { weight: 1, arbitrary: fc.record(http, { requiredKeys: ['type', 'url'] }) }
)

const packageOf = (type: string, identifiers: string[], base: string) => fc.record(
  {
    registryType: fc.constant(type),
    registryBaseUrl: fc.constant(base),
    identifier: fc.constantFrom(...identifiers),
    version: fc.constantFrom('1.0.2', '2.0.0-beta.1', '1.0.0+build'),
    fileSha256: fc.constant('fe333e598595000ae021bd27117db32ec69af6987f507ba7a63c90638ff633ce'),
    runtimeHint: fc.constantFrom('npx', 'uvx', 'docker', 'dnx'),
    transport,
    runtimeArguments: fc.array(argument, { maxLength: 2 }),
    packageArguments: fc.array(argument, { maxLength: 3 }),
    environmentVariables: keyValues
  },
  { requiredKeys: ['registryType', 'identifier', 'transport'] }
)
const aPackage = fc.oneof(
  packageOf('npm', ['@example/server', 'server'], 'https://registry.npmjs.org'),
  packageOf('pypi', ['example-server'], 'https://pypi.org'),
  packageOf('oci', ['docker.io/example/server:1.0', 'ghcr.io/example/server', 'example/server'], 'https://docker.io'),
  packageOf('nuget', ['Example.Server'], 'https://api.nuget.org/v3/index.json'),
  packageOf('mcpb', ['https://github.com/example/server/releases/download/v1.0.0/server.mcpb'], 'https://github.com'),
  packageOf('cargo', ['example-server'], 'https://crates.io')
)

const server = fc.record(
  {
    $schema: fc.constant('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'),
    name: fc.stringMatching(/^[a-zA-Z0-9.-]{1,20}\/[a-zA-Z0-9._-]{1,20}$/),
    title: fc.string({ minLength: 1, maxLength: 100 }),
    description: fc.string({ minLength: 1, maxLength: 100 }),
    version: fc.constantFrom('1.0.2', '2021.03.15', '2.1.0-alpha'),
    websiteUrl: fc.constant('https://example.com/'),
    repository: fc.record(
      { url: fc.constant('https://github.com/example/server'), source: fc.constant('github'), id: word, subfolder: word },
      { requiredKeys: ['url', 'source'] }
    ),
    icons: fc.array(fc.record({ src: fc.constant('https://example.com/icon.png'), mimeType: fc.constant('image/png'), sizes: fc.constant(['48x48']), theme: fc.constant('dark') }, { requiredKeys: ['src'] }), { maxLength: 2 }),
    packages: fc.array(aPackage, { maxLength: 3 }),
    remotes: fc.array(remote, { maxLength: 3 }),
    _meta: fc.constant({ 'io.modelcontextprotocol.registry/publisher-provided': { tool: 'publisher-cli', nested: { deep: [1, 2] } } })
  },
  { requiredKeys: ['name', 'description', 'version'] }
)

/** Entries as `GET /v0.1/servers` lists them. */
export const registryEntries = fc.record(
  {
    server,
    _meta: fc.record({
      'io.modelcontextprotocol.registry/official': fc.record(
        {
          status: fc.constantFrom('active', 'deprecated', 'deleted'),
          statusMessage: word,
          statusChangedAt: fc.constant('2026-01-01T10:30:00Z'),
          publishedAt: fc.constant('2026-01-01T10:30:00Z'),
          updatedAt: fc.constant('2026-01-01T11:00:00Z'),
          isLatest: fc.boolean()
        },
        optional
      )
    }, optional)
  },
  { requiredKeys: ['server'] }
)
