// An installed tarball has only what `files` in package.json names: all that is read at run time must be among it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { promisify } from 'node:util'
import { loadOnce, readAsset } from '../../../package.ts'
import { temporaryFolder } from '../../fakes/store-file.ts'
import { path } from '../../helpers/hub.ts'

/** The paths in the tarball that `npm pack` would make now. */
async function packed (): Promise<Set<string>> {
  const args = ['pack', '--json', '--dry-run', '--ignore-scripts']
  const { stdout } = await promisify(execFile)('npm', args, { cwd: path(''), maxBuffer: 16 * 1024 * 1024 })
  const [tarball] = JSON.parse(stdout) as Array<{ files: Array<{ path: string }> }>
  return new Set(tarball?.files.map((file) => file.path))
}

/** The files below a folder of the project, as `packed` names them. */
const filesIn = (folder: string): string[] =>
  readdirSync(path(folder), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(path('').length))

/** The relative links of a text, without their anchors. */
const linksOf = (file: string): string[] =>
  [...readFileSync(path(file), 'utf8').replace(/^```.*?^```/gms, '').matchAll(/\]\(([^)#\s]+)[^)]*\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))

test('the package', { skip: existsSync(path('dist/server.js')) ? false : 'there is no build yet: npm run build' }, async (t) => {
  const files = await packed()

  await t.test('has the build, the migrations and the assets', async () => {
    const entries = ['server', 'app', 'cli/main', 'plugins/extensions/compression/worker', 'plugins/upstream/openapi/describe/worker']
    for (const name of [...entries.map((entry) => `dist/${entry}.js`), 'package.json', 'README.md', 'LICENSE', 'CHANGELOG.md']) {
      assert.ok(files.has(name), name)
    }
    for (const name of filesIn('dist')) assert.ok(files.has(name), name)
    // The build has what becomes of these.
    const assets = filesIn('assets').filter((name) => !name.startsWith('assets/console/client/'))
    for (const name of [...assets, ...filesIn('db/migrations')]) assert.ok(files.has(name), name)
    assert.ok(filesIn('assets').length > 0 && filesIn('db/migrations').length > 0)
  })

  await t.test('has what its texts link to', async () => {
    // Pictures are looked at in the repository.
    const docs = filesIn('docs').filter((file) => !file.endsWith('.ts') && !file.startsWith('docs/console/'))
    for (const name of [...docs, ...filesIn('examples')]) assert.ok(files.has(name), name)
    const isThere = (name: string): boolean => files.has(name) || [...files].some((file) => file.startsWith(`${name}/`))
    const texts = [...files].filter((file) => file.endsWith('.md') && !file.startsWith('assets/'))
    const links = texts.flatMap((file) => linksOf(file).map((link) => ({ file, link, to: join(dirname(file), link) })))
    assert.ok(links.length > 50)
    assert.deepEqual(links.filter(({ to }) => !isThere(to)), [])
  })

  await t.test('has no sources, tests or settings', async () => {
    const texts = ['README', 'CHANGELOG', 'CONTRIBUTING', 'SECURITY', 'bench/RESULTS', 'test/README'].map((name) => `${name}.md`)
    const others = new Set([...texts, 'package.json', 'LICENSE', 'compose.yaml', 'Dockerfile', 'bench/chart.svg'])
    const allowed = /^(dist|assets|db\/migrations|examples)\/|^docs\/.*(?<!\.ts)$/
    assert.deepEqual([...files].filter((name) => !allowed.test(name) && !others.has(name)), [])
  })
})

test('an asset is read from the package', async () => {
  assert.match(await readAsset('icons/tool-hub.svg'), /^<svg [^]*<\/svg>\s*$/)
})

test('npm ci is quiet', async (t) => {
  await t.test('no package wants another Node than this one, nor is deprecated', async (t) => {
    const folder = await temporaryFolder(t)
    for (const name of ['package.json', 'package-lock.json', '.npmrc']) copyFileSync(path(name), join(folder, name))
    const args = ['ci', '--dry-run', '--offline', '--ignore-scripts']
    const { stdout, stderr } = await promisify(execFile)('npm', args, { cwd: folder, maxBuffer: 16 * 1024 * 1024 })
    assert.match(stdout, /^add fastify /m)
    assert.deepEqual(stderr.split('\n').filter((line) => /EBADENGINE|deprecated/.test(line)), [])
  })

  // npm 11 tells of each that is not covered, by its name: versions are compared with addresses, and the lockfile has none.
  await t.test('every install script is allowed, where the tests run', async () => {
    const read = (name: string): unknown => JSON.parse(readFileSync(path(name), 'utf8'))
    const { packages } = read('package-lock.json') as { packages: Record<string, { hasInstallScript?: true, os?: string[], cpu?: string[] }> }
    const { allowScripts } = read('package.json') as { allowScripts: Record<string, boolean> }
    const isOurs = ({ os = ['linux'], cpu = ['x64'] }: { os?: string[], cpu?: string[] }): boolean =>
      os.some((each) => /^(linux|darwin)$/.test(each)) && cpu.some((each) => /^(x64|arm64)$/.test(each))
    const scripted = Object.entries(packages).filter(([, entry]) => entry.hasInstallScript && isOurs(entry))
      .map(([at]) => at.slice(at.lastIndexOf('node_modules/') + 'node_modules/'.length))
    assert.deepEqual([...new Set(scripted)].sort(), Object.keys(allowScripts).sort())
    assert.ok(Object.values(allowScripts).every((allowed) => allowed))
  })
})

test('loadOnce loads once, and again after a failure only', async () => {
  const answers = [Promise.reject(new Error('too many open files')), Promise.resolve('loaded')]
  const load = loadOnce(async () => await answers.shift())
  await assert.rejects(load(), /too many open files/)
  assert.deepEqual(await Promise.all([load(), load()]), ['loaded', 'loaded'])
  assert.equal(await load(), 'loaded')
})
