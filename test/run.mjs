// Runs every test file with node's own runner and closes with one line a person (and CI) can read.
// `node test/run.mjs gateway mcp` runs only the files whose name contains one of the words; `--system` those in test/system, which
// need more than Node and npm and say what they install; `--soak` those in test/soak, which take long.
import { run } from 'node:test'
import { spec as Spec } from 'node:test/reporters'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'

process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --import=tsx`.trim()
const args = process.argv.slice(2)
const kind = args.includes('--system') ? 'system/' : args.includes('--soak') ? 'soak/' : undefined
const words = args.filter((arg) => !arg.startsWith('--'))
const root = new URL('./', import.meta.url)
const files = readdirSync(root, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith(kind === 'soak/' ? '.ts' : '.test.ts'))
  .filter((name) => kind === undefined ? !/^(system|soak)\//.test(name) : name.startsWith(kind))
  .filter((name) => words.length === 0 || words.some((word) => name.includes(word)))
  .sort()
  .map((name) => new URL(name, root).pathname)

// Gateways are started from the build, in half the time: hundreds of them are. It is made anew when a source is newer.
const project = new URL('../', import.meta.url)
const build = new URL('dist/server.js', project)
const sources = [
  'app.ts',
  'server.ts',
  ...['schemas', 'protocol', 'db', 'plugins', 'routes', 'cli'].flatMap((folder) =>
    readdirSync(new URL(folder, project), { recursive: true }).map((name) => `${folder}/${name}`)
  )
]
if (!existsSync(build) || sources.some((name) => statSync(new URL(name, project)).mtimeMs > statSync(build).mtimeMs)) {
  console.log('building, since sources are newer than dist/')
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: project, stdio: 'inherit' })
}
process.env.TOOL_HUB_TEST_BUILD = 'dist/server.js'

let passed = 0
let failed = 0
const stream = run({ files, concurrency: 2, timeout: kind === 'soak/' ? 6 * 3_600_000 : 180_000 })
stream.on('test:pass', (event) => { if (event.details.type !== 'suite' && !event.file?.endsWith(event.name)) passed++ })
stream.on('test:fail', (event) => { if (event.details.type !== 'suite') { failed++; process.exitCode = 1 } })
stream.on('end', () => {
  console.log(`${passed} passed, ${failed} failed`)
  if (passed === 0) process.exitCode = 1
})
stream.compose(new Spec()).pipe(process.stdout)
