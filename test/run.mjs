// Runs the tests with tap, one process a file, and closes with one line a person (and CI) can read: `N passed, N failed`, which counts
// tests and their subtests. `node test/run.mjs gateway mcp` runs only the files whose path contains one of the words; `--system` those in
// test/integration, over real databases, providers and browsers, and then those in test/system, of whole processes; both say what they need
// beyond Node and npm. `--soak` those in test/soak, which take long;
// `--coverage` measures what the tests reach.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Parser } from 'tap-parser'
import { stringify } from 'yaml'
import { buildTests, bundleOf, sourceOf } from './build.mjs'

const args = process.argv.slice(2)
const kind = args.includes('--system') ? 'system' : args.includes('--soak') ? 'soak' : 'npm test'
/** The folders of tests that `npm test` leaves out. */
const apart = ['integration/', 'system/', 'soak/']
/** What runs one after the other. */
const parts = {
  'npm test': [{ options: ['--timeout=300', '--jobs=3'] }],
  // Servers, databases and browsers wait for each other for much of the time.
  system: [
    { folder: 'integration/', options: ['--timeout=900', '--jobs=4'] },
    { folder: 'system/', options: ['--timeout=900', '--jobs=2'] },
    { folder: 'system/', alone: true, options: ['--timeout=900', '--jobs=1'] }
  ],
  soak: [{ folder: 'soak/', options: [`--timeout=${6 * 3_600}`, '--jobs=1'] }]
}[kind]
const coverage = args.includes('--coverage')
const words = args.filter((arg) => !arg.startsWith('--'))
const root = new URL('./', import.meta.url)
const project = new URL('../', import.meta.url)
const names = readdirSync(root, { recursive: true }).map(String).filter((name) => words.length === 0 || words.some((word) => name.includes(word))).sort()
/** Files that take long are begun first: the end shall not be one of them alone. */
const longest = [
  'access/matrix', 'api/management', 'open/openapi', 'downstream/mcp', 'auth/access', 'upstream/openapi',
  // These wait for most of their time: for a registry, for an idle minute.
  'integration/cli-first-start', 'integration/running', 'integration/nginx',
  'integration/database', 'integration/pglite', 'integration/cli', 'integration/oauth-storage', 'integration/continuity',
  'integration/api', 'integration/oauth-flow', 'integration/users', 'integration/social-login',
  'system/replicas', 'system/faults', 'system/hub'
].map((name) => `${name}.test.ts`)
/** Tests of how long something takes under load: nothing else runs beside them. */
const timed = ['activities', 'descriptions', 'hub', 'many-rows', 'withstands'].map((name) => `system/${name}.test.ts`)
const place = (name) => longest.includes(name) ? longest.indexOf(name) : longest.length
const ordered = names.toSorted((one, other) => place(one) - place(other))
/** The files of one folder; of all that `npm test` runs, without one; with `alone`, those in `timed`. */
const filesOf = ({ folder, alone = false }) => ordered
  .filter((name) => folder === undefined ? !apart.some((each) => name.startsWith(each)) : name.startsWith(folder))
  .filter((name) => name.endsWith(folder === 'soak/' ? '.ts' : '.test.ts') && timed.includes(name) === alone)
  .map((name) => `test/${name}`)
const files = parts.flatMap(filesOf)
if (files.length === 0) {
  console.error('no test file has such a path')
  process.exit(1)
}

// Whole gateways are started from the build, in half the time. It is made anew when a source is newer.
const build = new URL('dist/server.js', project)
const sources = [
  'app.ts',
  'package.ts',
  'server.ts',
  ...['schemas', 'protocol', 'db', 'plugins', 'routes', 'cli'].flatMap((folder) =>
    readdirSync(new URL(folder, project), { recursive: true }).map((name) => `${folder}/${name}`)
  )
]
if (!existsSync(build) || sources.some((name) => statSync(new URL(name, project)).mtimeMs > statSync(build).mtimeMs)) {
  console.log('building, since sources are newer than dist/')
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: project, stdio: 'inherit' })
}

// A soak starts tests from their sources, each with its own seed.
const isBuilt = kind !== 'soak'
const fakes = readdirSync(new URL('fakes', root)).filter((name) => name.endsWith('.ts')).map((name) => `test/fakes/${name}`)
if (isBuilt) await buildTests([...files, ...fakes])

let passed = 0
let failed = 0
let skipped = 0
let ended = 0
/** The failures, told again at the end: a person (and CI) reads the last lines first. */
const failures = []
const indented = (text, by) => text.trimEnd().replace(/^(?=.)/gm, ' '.repeat(by))
const seconds = (ms) => `${((ms ?? 0) / 1_000).toFixed(2)} s`

/**
 * Prints the results that a parser of TAP reads, and counts the tests among them.
 * @param depth 0: the files; deeper: tests
 * @param path the names of the tests around, as far as they are known: a file is named after its tests
 */
function follow (parser, depth, path = []) {
  let isTest = false
  let failedBefore = failed
  parser.on('child', (child) => {
    isTest = true
    failedBefore = failed
    follow(child, depth + 1, [...path, sourceOf(child.name)])
  })
  parser.on('comment', (comment) => {
    if (depth > 0 && !/^# (Subtest: |time=)/.test(comment)) console.log(indented(comment, 2 * depth))
  })
  parser.on('assert', ({ ok, name: told, time, skip, diag }) => {
    const name = depth === 0 ? sourceOf(told) : told
    if (depth === 0 && isTest) ended++
    if (skip) {
      skipped++
      console.log(indented(`- ${name} (skipped: ${skip})`, 2 * depth))
    } else if (isTest) {
      if (depth > 0) ok ? passed++ : failed++
      // A file that fails though no test in it did: it crashed, or took too long.
      else if (!ok && failed === failedBefore) failed++
      console.log(indented(`${ok ? '✔' : '✖'} ${name} (${seconds(time)})`, 2 * depth))
    }
    // A point that is no test says what is wrong with the test around it: an exception, mostly.
    if (!ok && (!isTest || depth === 0)) {
      const what = `${isTest ? '' : `${name}\n`}${indented(stringify(diag ?? {}), 2)}`
      console.log(indented(what, 2 * depth))
      failures.push([[...path, isTest ? name : ''].filter(Boolean).join(' › '), what])
    }
    isTest = false
  })
}

// tap's own measure reads what tsx makes of a source wrongly (100 % of everything); Node's, by c8, does not.
const coverageFolder = fileURLToPath(new URL('.cache/coverage', project))
const measured = coverage ? { NODE_V8_COVERAGE: coverageFolder } : {}
if (coverage) rmSync(coverageFolder, { recursive: true, force: true })

const tap = new URL('node_modules/tap/dist/esm/run.mjs', project)
// tap is generated for the plugins of .taprc. It would do that at its first run, too late for that run: the loaders of plugins that are
// left out cost each file more than a second.
const generated = new URL('node_modules/@tapjs/test/test-built/dist/esm/index.js', project)
if (!existsSync(generated) || readFileSync(generated, 'utf8').includes('@tapjs/typescript')) {
  console.log('generating tap for the plugins of .taprc')
  execFileSync(process.execPath, [fileURLToPath(tap), 'build'], { cwd: project, stdio: 'ignore' })
}

const builds = { TOOL_HUB_TEST_BUILD: 'dist/server.js', ...isBuilt ? { TOOL_HUB_TEST_FAKES: bundleOf('test/fakes/') } : {} }

const nodeArgs = [
  '--enable-source-maps',
  '--import=./test/helpers/prepare.mjs',
  // A larger nursery: a tenth less time for collecting garbage.
  '--max-semi-space-size=64',
  ...isBuilt ? [] : ['--import=tsx']
].map((arg) => `--node-arg=${arg}`)

/** Runs some files with tap. @returns its exit code */
async function run (files, options) {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('suite.mjs', root)), ...options, ...nodeArgs, ...isBuilt ? files.map(bundleOf) : files],
    { cwd: project, env: { ...process.env, ...measured, ...builds }, stdio: ['ignore', 'pipe', 'inherit'] }
  )
  const parser = new Parser()
  follow(parser, 0)
  child.stdout.pipe(parser)
  const [[code]] = await Promise.all([once(child, 'close'), once(parser, 'complete')])
  return code
}

const started = Date.now()
let code = 0
for (const part of parts) if (filesOf(part).length > 0) code = await run(filesOf(part), part.options) || code
// tap gives up on what is left after some failures.
const missing = files.length - ended
if (missing > 0) console.log(`${missing} files have not ended`)
failed += missing
if (code !== 0 && failed === 0) failed++
if (coverage) {
  const c8 = fileURLToPath(new URL('node_modules/c8/bin/c8.js', project))
  const options = ['--temp-directory', coverageFolder, '--reporter', 'text', '--reporter', 'html', '--reports-dir', `${coverageFolder}/report`, '--all', '--exclude-after-remap']
  const folders = ['app.ts', 'schemas/**', 'protocol/**', 'db/**', 'plugins/**', 'routes/**'].flatMap((name) => ['--include', name])
  execFileSync(process.execPath, [c8, 'report', ...options, ...folders], { cwd: project, stdio: 'inherit' })
}
if (failures.length > 0) console.log('\nWhat failed:')
for (const [path, what] of failures) console.log(`✖ ${path}\n${indented(what, 2)}`)
console.log(`${files.length} files in ${seconds(Date.now() - started)}${skipped === 0 ? '' : `, ${skipped} tests skipped`}`)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 && passed > 0 ? 0 : 1
