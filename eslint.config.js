import neostandard from 'neostandard'

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
    rules: {
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
