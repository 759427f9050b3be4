// `npm run market:check`: asks the npm registry whether the npm packages in assets/market/servers.json exist, and
// writes to this file on which date each was found. `npm run market:check -- fetch git` checks only the entries `fetch`
// and `git`. Entries without an npm package are only counted.
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { assetPath } from '../plugins/base/config/index.ts'
import { npmPackageOf } from '../plugins/management/index.ts'
import type { MarketFile } from '../schemas/catalogues.ts'

const run = promisify(execFile)

/** Whether a package exists in the npm registry. @throws Error if the registry does not respond */
async function exists (name: string): Promise<boolean> {
  try {
    await run('npm', ['view', name, 'name', '--json'], { timeout: 60_000 })
    return true
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string, stderr?: string }
    if (/E404/.test(stdout + stderr)) return false
    throw new Error(`npm view ${name}: ${stderr || String(error)}`)
  }
}

const path = assetPath('market/servers.json')
const file = JSON.parse(await readFile(path, 'utf8')) as MarketFile
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !file.servers.some((server) => server.name === name))
if (unknown.length > 0) throw new Error(`There is no entry named ${unknown.join(', ')}`)

const today = new Date().toISOString().slice(0, 10)
const missing: string[] = []
let [found, others] = [0, 0]
for (const server of file.servers.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
  const name = npmPackageOf(server)
  if (name === undefined) {
    others++
  } else if (await exists(name)) {
    file.found[name] = today
    found++
  } else {
    Reflect.deleteProperty(file.found, name)
    missing.push(`${server.name}: ${name}`)
  }
}
if (missing.length === 0 && wanted.length === 0) file.checked = today
await writeFile(path, `${JSON.stringify(file, null, 1)}\n`)
console.log(`${found} npm packages exist; ${others} entries have no npm package`)
if (missing.length > 0) {
  console.error(`not in the registry:\n${missing.join('\n')}`)
  process.exitCode = 1
}
