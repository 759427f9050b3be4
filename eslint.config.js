import { existsSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import neostandard from 'neostandard'

/**
 * The layers of the source tree, lowest first (docs/architecture.md, "The tree"). A file may import from its own folder
 * of this list, and from folders of lower layers.
 */
const layers = [
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
const isIn = (path, folder) => path === folder || path.startsWith(`${folder}/`)
/** The index in `layers` of a path; -1 if it is in no layer, such as a test. */
const layerOf = (path) => layers.findIndex((folders) => folders.some((folder) => isIn(path, folder)))
/** The entry of `layers` that contains a path; undefined if none does. */
const layerFolderOf = (path) => layers[layerOf(path)]?.find((folder) => isIn(path, folder))
/** The entry point of the wing, or of the folder of base, that contains a path; undefined outside of plugins/. */
const entryPointOf = (path) => /^plugins\/(?:base\/[^/]+|[^/]+)\//.exec(path)?.[0].concat('index.ts')
/** Code towards clients reads the gateway's surfaces, and does not know upstream servers. */
const isDownstream = /^plugins\/downstream\//

const imports = new Map()
/** The project's files that a file imports, including type imports. */
function importsOf (file) {
  if (!imports.has(file)) {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    const found = [...text.matchAll(/^(?:import|export)\b[^'"]*?\bfrom '(\.[^']+)'/gm)]
    imports.set(file, found.map(([, path]) => resolve(dirname(file), path)))
  }
  return imports.get(file)
}

/** Whether `from`, or a file that it imports directly or indirectly, is `file`: an import of `from` is then a cycle. */
function importsFile (file, from, seen = new Set()) {
  if (from === file) return true
  if (seen.has(from)) return false
  seen.add(from)
  return importsOf(from).some((next) => importsFile(file, next, seen))
}

const architecture = {
  rules: {
    imports: {
      create: (context) => {
        const file = context.filename
        const path = relative(import.meta.dirname, file)
        const check = ({ source }) => {
          if (!source?.value.startsWith('.')) return
          const target = resolve(dirname(file), source.value)
          const to = relative(import.meta.dirname, target)
          const report = (message) => { context.report({ node: source, message }) }
          const [entryPoint, own] = [entryPointOf(to), entryPointOf(path)]
          const bypasses = entryPoint !== undefined && entryPoint !== own && to !== entryPoint && !/^plugins\/base\/[^/]+$/.test(path)
          if (bypasses) report(`import ${entryPoint} instead`)
          const isUpward = layerOf(path) !== -1 && layerFolderOf(path) !== layerFolderOf(to) && layerOf(to) >= layerOf(path)
          if (isUpward) report('a folder may import from lower layers only')
          if (isDownstream.test(path) && to.startsWith('plugins/upstream/')) report('read the surfaces of the gateway instead')
          if (importsFile(file, target)) report('this import is part of a cycle')
        }
        return { ImportDeclaration: check, ExportNamedDeclaration: check, ExportAllDeclaration: check }
      }
    }
  }
}

const isCall = (node, pattern) => node.type === 'CallExpression' && pattern.test(calleeOf(node))
/** The callee of a call as text: `f` for `f(…)`, `a.f` for `a.f(…)`, `.f` for `x.a.f(…)`; empty for other callees. */
const calleeOf = ({ callee }) => callee.type === 'Identifier'
  ? callee.name
  : callee.type === 'MemberExpression' && callee.property.type === 'Identifier'
    ? `${callee.object.type === 'Identifier' ? callee.object.name : ''}.${callee.property.name}`
    : ''
const propertyOf = (node, name) => node?.type === 'ObjectExpression' ? node.properties.find(({ key }) => key?.name === name) : undefined
/** The value of a number literal, here a time in ms; Infinity for any other expression. */
const numberOf = (node) => node?.type === 'Literal' && typeof node.value === 'number' ? node.value : Infinity

const functionOf = (node) => node.arguments.findLast(({ type }) => /Function/.test(type))
const linesOf = ({ loc }) => loc.end.line - loc.start.line + 1
const isTest = (node) => isCall(node, /^(\w+\.)?test$/) && functionOf(node) !== undefined
const clocks = /^(Date|performance)\.now$/
const waitForEvent = 'wait for an event; to check that nothing comes, wait for a marker and then use `silence(ms)`'

/** Rules for tests: no result may depend on the speed of the machine (test/README.md). */
const tests = {
  rules: {
    'no-clock': {
      create: (context) => {
        const report = (node, message) => { context.report({ node, message }) }
        const hasMockTimers = /mockTimers\(|mock\.timers/.test(context.sourceCode.text)
        const reportSleep = (node) => { if (!hasMockTimers) report(node, waitForEvent) }
        return {
          CallExpression: (node) => {
            if (isCall(node, /^sleep$/)) report(node, waitForEvent)
            if (isCall(node, /^(process\.(cpuUsage|memoryUsage|hrtime)|memoryUsage\.rss)$/)) report(node, 'measure in test/measure')
            if (isCall(node, /^(\w+\.)?(test|before|beforeEach)$/)) {
              const timeout = node.arguments.map((argument) => propertyOf(argument, 'timeout')).find(Boolean)
              if (timeout !== undefined) report(timeout, 'tests have no timeout: the runner has one for each file')
            }
            if (isCall(node, /^AbortSignal\.timeout$/) && numberOf(node.arguments[0]) < 30_000) report(node, 'a deadline of at least 30 s')
            if (isCall(node, /^(\w*\.)?(spawn|spawnSync|exec|execFile|execFileSync|execute)$/)) {
              const timeout = propertyOf(node.arguments.at(-1), 'timeout')
              if (timeout !== undefined && numberOf(timeout.value) < 30_000) report(timeout, 'a deadline of at least 30 s')
            }
          },
          'NewExpression[callee.name="Promise"] CallExpression[callee.name="setTimeout"]': reportSleep,
          'ImportDeclaration[source.value="node:timers/promises"] ImportSpecifier[imported.name="setTimeout"]': reportSleep,
          // Elapsed time, such as `Date.now() - start`, in a comparison or an assertion.
          ':matches(BinaryExpression[operator=/^[<>]=?$/], CallExpression[callee.object.name="assert"]) BinaryExpression[operator="-"]': (node) => {
            if (isCall(node.left, clocks) && node.right.type !== 'Literal') report(node, 'control the clock, or measure in test/measure')
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
            if (own > 100) context.report({ node, message: `a test of ${own} lines, without nested tests: 100 at most` })
            const outer = counted.at(-1)
            if (outer !== undefined) outer.nested += lines
          }
        }
      }
    }
  }
}

/**
 * Forbids imports in some files (docs/architecture.md, "The tree").
 * @param groups pairs of import patterns and the message for them
 */
const forbidImports = (files, groups) => ({
  files,
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      { patterns: groups.map(([group, message]) => ({ group, message, allowTypeImports: false })) }
    ]
  }
})
const noFastify = [['fastify', 'fastify-*', '@fastify/*'], 'this folder must not depend on Fastify']
const noDriver = [['drizzle-orm', 'drizzle-orm/*', 'postgres', '@electric-sql/*'], 'only db/postgres may import database drivers']

export default [
  ...neostandard({ ts: true, ignores: ['dist', '.cache', 'node_modules', 'bench/out'] }),
  {
    files: ['**/*.ts'],
    plugins: { architecture },
    rules: {
      'architecture/imports': 'error',
      '@stylistic/max-len': ['error', { code: 120, ignoreUrls: true, ignoreRegExpLiterals: true }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      // The compiler reports them faster (noUnusedLocals).
      '@typescript-eslint/no-unused-vars': 'off',
      // A schema and its type have the same name.
      '@typescript-eslint/no-redeclare': 'off',
      // `void` marks a promise that is not awaited.
      'no-void': ['error', { allowAsStatement: true }],
      'no-restricted-syntax': ['error', { selector: 'TSEnumDeclaration', message: 'use a string union instead of an enum' }]
    }
  },
  {
    files: ['*.ts', 'schemas/**', 'protocol/**', 'db/**', 'plugins/**', 'routes/**'],
    ignores: ['server.ts'],
    rules: {
      'no-restricted-properties': ['error', { object: 'process', property: 'env', message: 'only server.ts reads the environment' }]
    }
  },
  // Max length of a source file, in lines.
  { files: ['*.ts', '{schemas,protocol,db,plugins,routes,cli}/**/*.ts'], rules: { 'max-lines': ['error', 300] } },
  // Tests and measurements contain long literals, such as request bodies and programs.
  { files: ['test/**/*.ts', 'bench/**/*.ts'], rules: { 'architecture/imports': 'off', '@stylistic/max-len': ['error', { code: 140, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true }] } },
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
  forbidImports(['schemas/**'], [[['../*', 'node:*'], 'schemas import TypeBox only'], noFastify, noDriver]),
  forbidImports(
    ['protocol/**'],
    [[['**/schemas/**', '**/db/**', '**/plugins/**', '**/routes/**'], 'protocol/ imports no other folder'], noFastify, noDriver]
  ),
  forbidImports(['db/**'], [[['**/protocol/**', '**/plugins/**', '**/routes/**'], 'db/ imports schemas and drivers only'], noFastify]),
  forbidImports(
    ['db/*.ts', 'db/json/**', 'db/memory/**'],
    [[['**/protocol/**', '**/plugins/**', '**/routes/**'], 'db/ imports schemas and drivers only'], noFastify, noDriver]
  ),
  forbidImports(
    ['plugins/**'],
    [
      [['**/routes/**', '**/app.ts'], 'plugins must not depend on routes'],
      [['**/db/json/**', '**/db/postgres/**'], 'use the ports of db/: only db/open.ts chooses an adapter'],
      noDriver
    ]
  ),
  forbidImports(['routes/**'], [[['**/db/**', '**/protocol/**'], 'routes use the decorators of the app only'], noDriver])
]
