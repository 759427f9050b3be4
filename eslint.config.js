import { existsSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import neostandard from 'neostandard'

/** The wings of the house, from the ground up (docs/architecture.md): a wing imports from lower lines only, through their index.ts. */
const floors = [
  ['schemas', 'protocol', 'package.ts'],
  ['db'],
  ['plugins/base'],
  ['plugins/settings'],
  ['plugins/gateway', 'plugins/identity'],
  ['plugins/downstream', 'plugins/upstream'],
  ['plugins/extensions', 'plugins/management'],
  ['routes'],
  ['app.ts'],
  ['server.ts'],
  ['cli']
]
const floorOf = (path) => floors.findIndex((rooms) => rooms.some((room) => path === room || path.startsWith(`${room}/`)))
const roomOf = (path) => floors[floorOf(path)]?.find((room) => path === room || path.startsWith(`${room}/`))
/** The index.ts through which others import a file of a wing, or of a folder of base; undefined: it is no plugin's. */
const doorOf = (path) => /^plugins\/(?:base\/[^/]+|[^/]+)\//.exec(path)?.[0].concat('index.ts')
/** Ways of asking read the gateway's surfaces: they do not know upstream servers. */
const asksOnly = /^plugins\/(downstream|tools|openapi)\//

const imports = new Map()
/** The files of ours that a file imports, types included. */
function importsOf (file) {
  if (!imports.has(file)) {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    const found = [...text.matchAll(/^(?:import|export)\b[^'"]*?\bfrom '(\.[^']+)'/gm)]
    imports.set(file, found.map(([, path]) => resolve(dirname(file), path)))
  }
  return imports.get(file)
}

/** Whether an import of `from` leads back to `file`. */
function leadsTo (file, from, seen = new Set()) {
  if (from === file) return true
  if (seen.has(from)) return false
  seen.add(from)
  return importsOf(from).some((next) => leadsTo(file, next, seen))
}

const house = {
  rules: {
    imports: {
      create: (context) => {
        const file = context.filename
        const path = relative(import.meta.dirname, file)
        const check = ({ source }) => {
          if (!source?.value.startsWith('.')) return
          const target = resolve(dirname(file), source.value)
          const to = relative(import.meta.dirname, target)
          const [door, own] = [doorOf(to), doorOf(path)]
          const isPast = door !== undefined && door !== own && to !== door && !/^plugins\/base\/[^/]+$/.test(path)
          if (isPast) context.report({ node: source, message: `import ${door}` })
          const climbs = floorOf(path) !== -1 && roomOf(path) !== roomOf(to) && floorOf(to) >= floorOf(path)
          if (climbs) context.report({ node: source, message: 'a folder imports from lower floors only' })
          if (asksOnly.test(path) && to.startsWith('plugins/upstream/')) context.report({ node: source, message: 'read the surfaces of the gateway' })
          if (leadsTo(file, target)) context.report({ node: source, message: 'this import leads back to its own file' })
        }
        return { ImportDeclaration: check, ExportNamedDeclaration: check, ExportAllDeclaration: check }
      }
    }
  }
}

const isCall = (node, pattern) => node.type === 'CallExpression' && pattern.test(calleeOf(node))
/** `a.b` of a call `x.a.b(…)`, as far as it consists of names. */
const calleeOf = ({ callee }) => callee.type === 'Identifier'
  ? callee.name
  : callee.type === 'MemberExpression' && callee.property.type === 'Identifier'
    ? `${callee.object.type === 'Identifier' ? callee.object.name : ''}.${callee.property.name}`
    : ''
const propertyOf = (node, name) => node?.type === 'ObjectExpression' ? node.properties.find(({ key }) => key?.name === name) : undefined
const inMs = (node) => node?.type === 'Literal' && typeof node.value === 'number' ? node.value : Infinity

const functionOf = (node) => node.arguments.findLast(({ type }) => /Function/.test(type))
const linesOf = ({ loc }) => loc.end.line - loc.start.line + 1
const isTest = (node) => isCall(node, /^(\w+\.)?test$/) && functionOf(node) !== undefined
const clocks = /^(Date|performance)\.now$/
const wait = 'wait for an event; `silence(ms)` is for what must not come, behind a marker'

/** What a verdict must not hang on: how fast the machine is (test/README.md). */
const tests = {
  rules: {
    'no-clock': {
      create: (context) => {
        const report = (node, message) => { context.report({ node, message }) }
        const holdsTimers = /mockTimers\(|mock\.timers/.test(context.sourceCode.text)
        const sleeps = (node) => { if (!holdsTimers) report(node, wait) }
        return {
          CallExpression: (node) => {
            if (isCall(node, /^sleep$/)) report(node, wait)
            if (isCall(node, /^(process\.(cpuUsage|memoryUsage|hrtime)|memoryUsage\.rss)$/)) report(node, 'measure in test/measure')
            if (isCall(node, /^(\w+\.)?(test|before|beforeEach)$/)) {
              const timeout = node.arguments.map((argument) => propertyOf(argument, 'timeout')).find(Boolean)
              if (timeout !== undefined) report(timeout, 'tests have no timeout: the runner has one for each file')
            }
            if (isCall(node, /^AbortSignal\.timeout$/) && inMs(node.arguments[0]) < 30_000) report(node, 'a deadline of at least 30 s')
            if (isCall(node, /^(\w*\.)?(spawn|spawnSync|exec|execFile|execFileSync|execute)$/)) {
              const timeout = propertyOf(node.arguments.at(-1), 'timeout')
              if (timeout !== undefined && inMs(timeout.value) < 30_000) report(timeout, 'a deadline of at least 30 s')
            }
          },
          'NewExpression[callee.name="Promise"] CallExpression[callee.name="setTimeout"]': sleeps,
          'ImportDeclaration[source.value="node:timers/promises"] ImportSpecifier[imported.name="setTimeout"]': sleeps,
          // How long something took, within a comparison or an assertion.
          ':matches(BinaryExpression[operator=/^[<>]=?$/], CallExpression[callee.object.name="assert"]) BinaryExpression[operator="-"]': (node) => {
            if (isCall(node.left, clocks) && node.right.type !== 'Literal') report(node, 'hold the clock, or measure in test/measure')
          }
        }
      }
    },
    'max-lines': {
      create: (context) => {
        const counted = []
        return {
          CallExpression: (node) => { if (isTest(node)) counted.push({ node, nested: 0 }) },
          'CallExpression:exit': (node) => {
            if (counted.at(-1)?.node !== node) return
            const { nested } = counted.pop()
            const lines = linesOf(functionOf(node))
            const own = lines - nested
            if (own > 100) context.report({ node, message: `a test of ${own} lines: 100 at most, beside the tests in it` })
            const around = counted.at(-1)
            if (around !== undefined) around.nested += lines
          }
        }
      }
    }
  }
}

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
    plugins: { house },
    rules: {
      'house/imports': 'error',
      '@stylistic/max-len': ['error', { code: 120, ignoreUrls: true, ignoreRegExpLiterals: true }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      // The compiler says it in a fraction of the time (noUnusedLocals).
      '@typescript-eslint/no-unused-vars': 'off',
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
  // A file holds one idea.
  { files: ['*.ts', '{schemas,protocol,db,plugins,routes,cli}/**/*.ts'], rules: { 'max-lines': ['error', 300] } },
  // Bodies and programs that tests send are often one literal.
  { files: ['test/**/*.ts', 'bench/**/*.ts'], rules: { 'house/imports': 'off', '@stylistic/max-len': ['error', { code: 140, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true }] } },
  {
    files: ['test/**/*.test.ts', 'test/contracts/**'],
    ignores: ['test/measure/**', 'test/nightly/**'],
    plugins: { tests },
    rules: { 'tests/no-clock': 'error' }
  },
  {
    files: ['test/**/*.test.ts'],
    plugins: { tests },
    rules: { 'max-lines': ['error', 800], 'tests/max-lines': 'error' }
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
