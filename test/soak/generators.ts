// Makers of clients from npm take the OpenAPI documents as they are: of the tools, and of the management API. The makers are installed into
// a temporary folder: the project needs none of them.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { connected, settings, type Json } from '../helpers/client.ts'
import { npmServer, startHub } from '../helpers/hub.ts'

const run = promisify(execFile)
const packages = {
  '@redocly/openapi-core': '2.64.0',
  '@hey-api/openapi-ts': '0.95.0',
  'openapi-typescript': '7.13.0',
  'openapi-zod-client': '1.18.3',
  orval: '7.13.2',
  'swagger-typescript-api': '13.13.0',
  typescript: '5.9.3'
}
/** How each is called, and the file that it makes. */
const makers: Record<string, { bin: string, args: (document: string, out: string) => string[], made: string }> = {
  'openapi-typescript': { bin: 'bin/cli.js', args: (document, out) => [document, '-o', `${out}/types.ts`], made: 'types.ts' },
  'swagger-typescript-api': { bin: 'dist/cli.mjs', args: (document, out) => ['generate', '-p', document, '-o', out, '-n', 'api.ts'], made: 'api.ts' },
  '@hey-api/openapi-ts': { bin: 'bin/run.js', args: (document, out) => ['-i', document, '-o', out, '-c', '@hey-api/client-fetch'], made: 'sdk.gen.ts' },
  orval: { bin: 'dist/bin/orval.js', args: (document, out) => ['--input', document, '--output', `${out}/orval.ts`], made: 'orval.ts' },
  'openapi-zod-client': { bin: 'bin.js', args: (document, out) => [document, '-o', `${out}/zod.ts`], made: 'zod.ts' }
}

interface Problem { severity: string, ruleId: string, message: string, location: Array<{ pointer?: string }> }
interface Linter {
  createConfig: (config: Json) => Promise<unknown>
  lintFromString: (input: { source: string, absoluteRef: string, config: unknown }) => Promise<Problem[]>
}

test('makers of clients take the documents', async (t) => {
  const folder = await temporaryFolder(t)
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies: packages }))
  const installing = run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline'], { cwd: folder })

  const commands = { everything: npmServer('everything'), files: npmServer('filesystem', folder), memory: npmServer('memory') }
  const servers = Object.entries(commands).map(([name, command]) => [name, { ...command, visibility: 'public' }])
  const hub = await startHub(t, { settings: settings(Object.fromEntries(servers)) })
  await connected(hub, 3)
  const documents = { tools: '/api/openapi.json', management: '/docs/json' }
  for (const [name, where] of Object.entries(documents)) {
    await writeFile(join(folder, `${name}.json`), await (await fetch(`${hub.url}${where}`)).text())
  }
  await installing
  const load = createRequire(join(folder, 'package.json'))
  const { createConfig, lintFromString } = await import(pathToFileURL(load.resolve('@redocly/openapi-core')).href) as Linter

  for (const name of Object.keys(documents)) {
    const document = join(folder, `${name}.json`)
    const source = await readFile(document, 'utf8')
    const ids = [...source.matchAll(/"operationId":"([^"]+)"/g)].map(([, id]) => id)
    assert.ok(ids.length > 20, `${ids.length} operations`)

    await t.test(`redocly finds no error in the document of ${name}`, async () => {
      const problems = await lintFromString({ source, absoluteRef: document, config: await createConfig({ extends: ['recommended'] }) })
      const errors = problems.filter(({ severity }) => severity === 'error')
      assert.deepEqual(errors.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`), [])
    })
    for (const [maker, { bin, args, made }] of Object.entries(makers)) {
      await t.test(`${maker} makes a client of ${name}`, async () => {
        const out = join(folder, name, maker.replace(/\W/g, '-'))
        await mkdir(out, { recursive: true })
        await run(process.execPath, [join(folder, 'node_modules', maker, bin), ...args(document, out)], { cwd: folder })
        const { size } = await stat(join(out, made))
        assert.ok(size > 100 * ids.length, `${size} bytes for ${ids.length} operations`)
      })
    }
  }
})
