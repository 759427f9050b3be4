// A made-up transport, added to a copy of the sources by the steps of docs/extending.md and nothing else.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { test } from 'tap'
import { path } from '../helpers/hub.ts'

const run = promisify(execFile)
const copied = ['db', 'plugins', 'protocol', 'routes', 'schemas', 'assets', 'test/helpers', 'app.ts', 'package.ts', 'package.json']

/** What the copy runs: a gateway with a server of the new type. */
const program = `
import assert from 'node:assert/strict'
import { isRestrictedConfig } from '../plugins/settings/index.ts'
import { translateConfig } from '../schemas/foreign-config.ts'
import { configProblem } from '../schemas/server.ts'
import { connected, Session, settings, text } from './helpers/client.ts'
import { startHub } from './helpers/hub.ts'

const cleanups = []
const t = { after: (run) => { cleanups.unshift(run) } }
const config = { type: 'loopback', openapi: { schema: '{}' } }
assert.equal(isRestrictedConfig(config), true)
assert.equal(translateConfig({ type: 'Echo' }).config.type, 'loopback')
assert.equal(configProblem(config), undefined)
assert.match(configProblem({ type: 'loopback' }), /needs a "url"/)
const hub = await startHub(t, { settings: settings({ mine: config }) })
await connected(hub, 1)
const session = await Session.open(hub.url + '/mcp')
assert.equal(text(await session.call('mine-shout', { text: 'hello' })), '{"TEXT":"HELLO"}')
for (const each of cleanups) await each()
console.log('it is served')
`

interface Step { file: string, code: string, after: string | undefined }

/** The code blocks of the section that say where they belong. */
function steps (): Step[] {
  const document = readFileSync(path('docs/extending.md'), 'utf8')
  const section = document.slice(document.indexOf('## A transport\n')).split('\n## ', 2).slice(0, 2).join('\n## ')
  return [...section.matchAll(/^```ts (file|into)=(\S+)(?: after="([^\n]*)")?\n(.*?)^```$/gms)]
    .map(([, , file = '', after, code = '']) => ({ file, code, after }))
}

test('a transport is added by three changes: its class, its traits, and what makes it', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tool-hub-extending-'))
  t.after(() => { rmSync(folder, { recursive: true, force: true }) })
  for (const name of copied) cpSync(path(name), join(folder, name), { recursive: true })
  // Its threads, and the packages that it loads late, are those of the build.
  for (const name of ['node_modules', 'dist']) symlinkSync(path(name), join(folder, name))
  for (const { file, code, after } of steps()) {
    const to = join(folder, file)
    if (after === undefined) { writeFileSync(to, code); continue }
    const before = readFileSync(to, 'utf8')
    assert.equal(before.split(`${after}\n`).length, 2, `${file} has the line ${after}`)
    writeFileSync(to, before.replace(`${after}\n`, () => `${after}\n${code}`))
  }
  assert.equal(new Set(steps().map(({ file }) => file)).size, 3)
  writeFileSync(join(folder, 'test/run.ts'), program)
  // In one file: loaded one by one, the sources take three times as much CPU. Helpers look for package.json two folders above.
  await build({
    absWorkingDir: folder, entryPoints: ['test/run.ts'], outfile: 'test/bundle/run.mjs', bundle: true, packages: 'external', platform: 'node', format: 'esm', target: 'node20.19'
  })
  const { stdout } = await run(process.execPath, ['--import', path('test/helpers/cheap-hashes.mjs'), 'test/bundle/run.mjs'], { cwd: folder })
  assert.match(stdout, /it is served/)
})
