import { execFile } from 'node:child_process'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { path } from './hub.ts'

/** Time for an installation, in ms. */
const installMs = 600_000

async function installed (modules: string, name: string): Promise<string | undefined> {
  try {
    return (JSON.parse(await readFile(join(modules, name, 'package.json'), 'utf8')) as { version?: string }).version
  } catch { return undefined }
}

/**
 * Installs packages that are no dependencies of the project, such as those that need a newer Node than the gateway does, below `.cache`.
 * Does nothing where these versions are there.
 * @param folder its name below `.cache`
 * @param packages versions by name
 * @returns the path of `node_modules`; the command of a package is in its `.bin`
 */
export async function cachedPackages (folder: string, packages: Readonly<Record<string, string>>): Promise<string> {
  const cache = path(`.cache/${folder}`)
  const modules = join(cache, 'node_modules')
  const versions = await Promise.all(Object.keys(packages).map(async (name) => await installed(modules, name)))
  if (versions.join() === Object.values(packages).join()) return modules
  const wanted = Object.entries(packages).map(([name, version]) => `${name}@${version}`)
  console.log(`# installing ${wanted.join(' and ')} into ${cache}`)
  await mkdir(cache, { recursive: true })
  const args = ['install', '--prefix', cache, '--save-exact', '--no-audit', '--no-fund', ...wanted]
  await promisify(execFile)('npm', args, { timeout: installMs, killSignal: 'SIGKILL' })
  return modules
}
