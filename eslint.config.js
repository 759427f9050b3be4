import importX, { createNodeResolver } from 'eslint-plugin-import-x'
import neostandard from 'neostandard'

/** The floors of the house, from the ground up (docs/architecture.md): a folder imports from lower floors only. */
const floors = [
  ['schemas', 'protocol'],
  ['db', 'plugins/config'],
  ['plugins/limits'],
  ['plugins/json-schema', 'plugins/secrets', 'plugins/outbound'],
  ['plugins/errors'],
  ['plugins/access', 'plugins/scopes', 'plugins/body', 'plugins/browsers'],
  ['plugins/settings'],
  ['plugins/gateway', 'plugins/audit', 'plugins/users', 'plugins/system'],
  ['plugins/upstream', 'plugins/metrics', 'plugins/openapi'],
  ['plugins/keys', 'plugins/downstream'],
  ['plugins/auth', 'plugins/groups'],
  ['plugins/servers', 'plugins/tools', 'plugins/export'],
  ['routes', 'cli'],
  ['app.ts'],
  ['server.ts']
]
const above = (floor) => floors.slice(floor + 1).flat()
const beside = (floor, room) => floors[floor].filter((each) => each !== room)
const zones = floors.flatMap((rooms, floor) => rooms.map((room) => ({
  target: `./${room}`,
  from: [...above(floor), ...beside(floor, room)].map((each) => `./${each}`),
  message: 'a folder imports from lower floors only'
})).filter(({ from }) => from.length > 0))
/** Ways of asking read the gateway's surfaces: they do not know upstream servers. */
const ways = ['downstream', 'tools', 'openapi'].map((room) => ({
  target: `./plugins/${room}`,
  from: './plugins/upstream',
  message: 'read the surfaces of the gateway'
}))

/** Which folder may import what (HOUSE: server → app → routes → plugins → protocol, db → schemas). */
const direction = (files, groups) => ({
  files,
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      { patterns: groups.map(([group, message]) => ({ group, message, allowTypeImports: false })) }
    ]
  }
})
const noFastify = [['fastify', 'fastify-*', '@fastify/*'], 'this folder knows no Fastify']
const noDriver = [['drizzle-orm', 'drizzle-orm/*', 'postgres', '@electric-sql/*'], 'drivers are for db/postgres']

export default [
  ...neostandard({ ts: true, ignores: ['dist', '.cache', 'node_modules', 'bench/out'] }),
  {
    files: ['**/*.ts'],
    plugins: { 'import-x': importX },
    settings: {
      'import-x/resolver-next': [createNodeResolver({ extensions: ['.ts'] })],
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts'] }
    },
    rules: {
      'import-x/no-cycle': ['error', { ignoreExternal: true }],
      'import-x/no-restricted-paths': ['error', { zones: [...zones, ...ways] }],
      '@stylistic/max-len': ['error', { code: 140, ignoreUrls: true, ignoreRegExpLiterals: true }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      // A schema and its type share a name; a promise that nobody waits for is marked.
      '@typescript-eslint/no-redeclare': 'off',
      'no-void': ['error', { allowAsStatement: true }],
      'no-restricted-syntax': ['error', { selector: 'TSEnumDeclaration', message: 'no enums: a string union says the same' }]
    }
  },
  {
    files: ['*.ts', 'schemas/**', 'protocol/**', 'db/**', 'plugins/**', 'routes/**'],
    ignores: ['server.ts'],
    rules: {
      'no-restricted-properties': ['error', { object: 'process', property: 'env', message: 'the environment is read in server.ts' }]
    }
  },
  // Bodies and programs that tests send are often one literal.
  { files: ['test/**/*.ts', 'bench/**/*.ts'], rules: { '@stylistic/max-len': ['error', { code: 140, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true }] } },
  direction(['schemas/**'], [[['../*', 'node:*'], 'schemas import TypeBox only'], noFastify, noDriver]),
  direction(
    ['protocol/**'],
    [[['**/schemas/**', '**/db/**', '**/plugins/**', '**/routes/**'], 'protocol/ knows nothing of ours'], noFastify, noDriver]
  ),
  direction(['db/**'], [[['**/protocol/**', '**/plugins/**', '**/routes/**'], 'db/ knows schemas and drivers'], noFastify]),
  direction(
    ['db/*.ts', 'db/json/**', 'db/memory/**'],
    [[['**/protocol/**', '**/plugins/**', '**/routes/**'], 'db/ knows schemas and drivers'], noFastify, noDriver]
  ),
  direction(
    ['plugins/**'],
    [
      [['**/routes/**', '**/app.ts'], 'plugins stand below routes'],
      [['**/db/json/**', '**/db/postgres/**'], 'nobody above db/open.ts asks which adapter runs'],
      noDriver
    ]
  ),
  direction(['routes/**'], [[['**/db/**', '**/protocol/**'], 'routes speak to app.<noun> only'], noDriver])
]
