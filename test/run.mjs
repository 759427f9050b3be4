// Runs tests and closes with one line a person (and CI) can read: `N passed, N failed`, which counts tests and their subtests.
//
//   node test/run.mjs                  what `npm test` runs
//   node test/run.mjs gateway mcp      only the files whose path contains one of the words
//   node test/run.mjs --system         integration/ and system/: databases, providers, browsers and whole processes
//   node test/run.mjs --ci             both, with lint, types and conformance, as one schedule
//   node test/run.mjs --nightly        nightly/: what takes minutes, as installing from a registry does
//   node test/run.mjs --measure        measure/: what a quiet machine must show; --soak: soak/, hours
//   --coverage measures what the tests reach; --record notes how long each file took; --jobs=N runs so many processes at a time
//
// Files share processes (batches). One that fails runs once more, alone, after everything else: if it passes then, it is told as FLAKY.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { buildTests, bundleOf } from './build.mjs'
import { batchesOf, durationOf, durationsFile, filesOf } from './runner/files.mjs'
import { inSlots, runProcess } from './runner/process.mjs'
import { indented, seconds, tapReader } from './runner/report.mjs'
import { startPostgres } from './runner/postgres.mjs'
import { verdict } from './runner/verdict.mjs'

const args = process.argv.slice(2)
const has = (name) => args.includes(`--${name}`)
const words = args.filter((arg) => !arg.startsWith('--'))
const cwd = fileURLToPath(new URL('../', import.meta.url))
const started = Date.now()

/** The kinds of files to run, with how many batches each is put into at most. */
const [kind] = ['measure', 'soak', 'nightly'].filter(has)
const kinds = kind !== undefined
  ? { [kind]: Infinity }
  : { ...has('system') ? {} : { unit: 12 }, ...has('system') || has('ci') ? { integration: 14, system: 6 } : {} }
// What is measured shares the machine with nothing.
const isMeasured = kind === 'measure' || kind === 'soak'
const slots = isMeasured || kind === 'nightly'
  ? 1
  : Number(args.find((arg) => arg.startsWith('--jobs='))?.slice('--jobs='.length) ?? availableParallelism() + (has('ci') ? 2 : 1))
/** ms: a file may be silent for so long, and take so long in all. A soak is silent for minutes, and takes hours. */
const bounds = has('soak') ? { silence: 3_600_000, limit: 6 * 3_600_000 } : { silence: 180_000, limit: 1_200_000 }

const isWanted = (file) => words.length === 0 || words.some((word) => file.includes(word))
const timeOf = (batch) => batch.reduce((sum, file) => sum + durationOf(file), 0)
// The longest come first, so that little is left to wait for at the end.
const batches = Object.entries(kinds).flatMap(([kind, count]) => batchesOf(filesOf(kind).filter(isWanted), count))
  .sort((a, b) => timeOf(b) - timeOf(a))
const files = batches.flat()
if (files.length === 0) {
  console.error('no test file has such a path')
  process.exit(1)
}

// Whole gateways are started from the build. It is made anew when a source is newer.
const build = `${cwd}dist/server.js`
const sources = ['app.ts', 'package.ts', 'server.ts', ...['schemas', 'protocol', 'db', 'plugins', 'routes', 'cli'].flatMap((folder) =>
  readdirSync(`${cwd}${folder}`, { recursive: true }).map((name) => `${folder}/${name}`))]
if (!existsSync(build) || sources.some((name) => statSync(`${cwd}${name}`).mtimeMs > statSync(build).mtimeMs)) {
  console.log('building, since sources are newer than dist/')
  execFileSync('npm', ['run', '--silent', 'build'], { cwd, stdio: 'inherit' })
}
// tap is generated for the plugins of .taprc. It would do that at its first run, too late for that run: the loaders of plugins that are
// left out cost each process more than a second.
const generated = `${cwd}node_modules/@tapjs/test/test-built/dist/esm/index.js`
if (!existsSync(generated) || readFileSync(generated, 'utf8').includes('@tapjs/typescript')) {
  console.log('generating tap for the plugins of .taprc')
  execFileSync(process.execPath, ['node_modules/tap/dist/esm/run.mjs', 'build'], { cwd, stdio: 'ignore' })
}
const fakes = readdirSync(`${cwd}test/fakes`).filter((name) => name.endsWith('.ts')).map((name) => `test/fakes/${name}`)
await buildTests([...files, ...fakes, 'test/runner/batch.ts'])

const coverageFolder = `${cwd}.cache/coverage`
if (has('coverage')) rmSync(coverageFolder, { recursive: true, force: true })
/** One PostgreSQL serves all batches that need one. */
const postgres = files.some((file) => /^test\/(integration|system|nightly|measure|soak)\//.test(file)) ? await startPostgres(cwd) : undefined
const env = {
  TOOL_HUB_TEST_BUILD: 'dist/server.js',
  TOOL_HUB_TEST_FAKES: bundleOf('test/fakes/'),
  TAP_TIMEOUT: '0',
  ...postgres?.env,
  ...has('coverage') ? { NODE_V8_COVERAGE: coverageFolder } : {}
}
const nodeArgs = [
  '--enable-source-maps',
  '--import=./test/helpers/prepare.mjs',
  // A larger nursery: a tenth less time for collecting garbage.
  '--max-semi-space-size=64',
  '--expose-gc',
  // A fixed loop took nine times as much CPU in one run of four with it.
  ...isMeasured ? ['--no-concurrent-osr'] : []
]

/** How each file ended, by its path: of one that ran again, the second time. */
const results = new Map()
const quickly = (result) => console.log([
  `${result.ok ? '✔' : '✖'} ${result.file} (${seconds(result.ms)}, ${result.passed} passed${result.failed > 0 ? `, ${result.failed} failed` : ''})`,
  ...result.ok && !has('verbose') ? result.lines.filter((line) => line.trimStart().startsWith('#')) : result.lines
].join('\n'))

/** Runs files in one process; those that it did not get to, each in one of its own. */
async function runBatch (files) {
  const reader = tapReader((result) => {
    // A batch that ends early may print tests where files stand.
    if (!files.includes(result.file)) return
    results.set(result.file, result)
    quickly(result)
  })
  const { code, ended, errors } = await runProcess(process.execPath, [...nodeArgs, bundleOf('test/runner/batch.ts'), ...files], {
    cwd, env, onOutput: reader.write, silence: bounds.silence, limit: bounds.limit * files.length
  })
  reader.end()
  const open = files.filter((file) => !results.has(file))
  if (open.length === 0) {
    // All files have told their end; what failed after that belongs to the last.
    const last = results.get(files.at(-1))
    if (code !== 0 && files.every((file) => results.get(file).ok)) fail(last, `its process ended with ${ended ?? `code ${code}`}`, errors)
    return
  }
  const [died, ...rest] = open
  fail({ file: died, ok: false, ms: 0, passed: 0, failed: 0, skipped: 0, lines: [], failures: [] }, `its process ended with ${ended ?? `code ${code}`}`, errors)
  for (const file of rest) await runBatch([file])
}

function fail (result, why, errors) {
  const failure = { path: '', first: why, what: `${why}\n${errors.slice(-4_000)}` }
  results.set(result.file, { ...result, ok: false, failed: result.failed + 1, failures: [...result.failures, failure] })
  console.log(`✖ ${result.file}: ${indented(failure.what, 2).trimStart()}`)
}

/** Commands beside the tests: how each ended, by its name. */
const steps = new Map()
async function runStep (name, command, stepArgs, stepEnv = {}) {
  const begun = Date.now()
  let output = ''
  const { code, ended, errors } = await runProcess(command, stepArgs, { cwd, env: { ...env, ...stepEnv }, silence: 600_000, limit: 1_800_000, onOutput: (text) => { output += text } })
  const ok = code === 0 && ended === undefined
  steps.set(name, ok)
  const text = `${output}${errors}`
  console.log(`${ok ? '✔' : '✖'} ${name} (${seconds(Date.now() - begun)})${ok ? '' : `: ${ended ?? `exit code ${code}`}\n${indented(text.slice(-20_000), 2)}`}`)
  if (ok && name === 'conformance') console.log(indented(text.split('\n').filter((line) => /^conformance: /.test(line)).join('\n'), 2))
  return text
}

const conformance = async () => await runStep('conformance', 'npm', ['run', '--silent', 'conformance'])
let said = ''

const tasks = batches.map((batch) => async () => { await runBatch(batch) })
const run = has('ci')
  ? [
      async () => { await runStep('lint', 'npm', ['run', '--silent', 'lint']) },
      async () => { await runStep('types', 'npm', ['run', '--silent', 'types']) },
      async () => { said = await conformance() },
      ...tasks
    ]
  : tasks
await inSlots(slots, run)

const flaky = []
for (const [file, first] of [...results].filter(([, { ok }]) => !ok)) {
  // Measures have their own rounds.
  if (isMeasured) break
  console.log(`once more, alone: ${file}`)
  results.delete(file)
  await runBatch([file])
  if (results.get(file).ok) flaky.push({ file, ...first.failures[0] })
  else results.set(file, { ...results.get(file), failures: [...first.failures, ...results.get(file).failures] })
}
// The suite has deadlines of its own.
if (steps.get('conformance') === false) {
  const first = said.split('\n').find((line) => /NO$/.test(line))?.split(/\s{2,}/)[0] ?? ''
  await conformance()
  if (steps.get('conformance')) flaky.push({ file: 'conformance', path: first, first: 'differs through the gateway' })
}
await postgres?.stop()

if (has('coverage')) {
  const options = ['--temp-directory', coverageFolder, '--reporter', 'text', '--reporter', 'html', '--reports-dir', `${coverageFolder}/report`, '--all', '--exclude-after-remap']
  const folders = ['app.ts', 'schemas/**', 'protocol/**', 'db/**', 'plugins/**', 'routes/**'].flatMap((name) => ['--include', name])
  execFileSync(process.execPath, ['node_modules/c8/bin/c8.js', 'report', ...options, ...folders], { cwd, stdio: 'inherit' })
}
if (has('record')) {
  const recorded = Object.fromEntries([...results.values()].map(({ file, ms }) => [file, Number((ms / 1_000).toFixed(1))]))
  const all = { ...JSON.parse(readFileSync(durationsFile, 'utf8')), ...recorded }
  const kept = Object.entries(all).filter(([file]) => existsSync(`${cwd}${file}`)).sort(([a], [b]) => a < b ? -1 : 1)
  writeFileSync(durationsFile, `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`)
}

const listed = JSON.parse(readFileSync(`${cwd}test/flaky.json`, 'utf8'))
const { lines, ok } = verdict({ results: [...results.values()], flaky, listed, steps })
console.log(`in ${seconds(Date.now() - started)}`)
console.log(lines.join('\n'))
process.exit(ok ? 0 : 1)
