import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { assetPath } from '../../../plugins/base/config/index.ts'
import { npmPackageOf } from '../../../plugins/management/index.ts'
import type { MarketFile } from '../../../schemas/catalogues.ts'
import { licences, type Definition, type Source } from './sources.ts'

const run = promisify(execFile)
/** Time for an installation, and for a server to list its tools, in ms. */
const limits = { install: 120_000, list: 20_000 }

interface Manifest { version: string, license?: string, bin?: string | Record<string, string> }

/**
 * The tools of the market's npm packages that start without credentials, each within a limited time.
 * @param versions by package; other packages are left out. Undefined: the newest of all
 * @param log is told why a package is left out
 */
export async function npmServers (
  cache: string, versions: ReadonlyMap<string, string> | undefined, log: (line: string) => void
): Promise<Source[]> {
  const { servers } = JSON.parse(await readFile(assetPath('market/servers.json'), 'utf8')) as MarketFile
  const sources: Source[] = []
  for (const server of servers) {
    const name = npmPackageOf(server)
    if (name === undefined || sources.some((source) => source.name === name)) continue
    if (versions && !versions.has(name)) continue
    const [, ...args] = (server.installations.npm?.args ?? []).filter((arg) => arg !== name)
    if (args.some((arg) => arg.includes('${'))) { log(`${name}: needs arguments`); continue }
    try {
      const { manifest, folder } = await installed(name, versions?.get(name) ?? 'latest', cache)
      const licence = manifest.license ?? 'none'
      if (!licences.has(licence)) { log(`${name}: licence ${licence}`); continue }
      const definitions = await toolsOf(join(folder, binOf(manifest)), args)
      sources.push({ name, kind: 'npm', version: manifest.version, licence, definitions })
    } catch (error) {
      log(`${name}: ${String(error).split('\n', 1)[0]?.slice(0, 120) ?? ''}`)
    }
  }
  return sources
}

/** Installs a package without running its scripts. @returns its manifest and its folder */
export async function installed (
  name: string, version: string, cache: string
): Promise<{ manifest: Manifest, folder: string }> {
  const prefix = join(cache, 'npm', name.replace('/', '+'))
  await mkdir(prefix, { recursive: true })
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save']
  await run('npm', ['install', '--prefix', prefix, ...options, `${name}@${version}`], { timeout: limits.install })
  const folder = join(prefix, 'node_modules', name)
  return { folder, manifest: JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest }
}

function binOf ({ bin }: Manifest): string {
  const path = typeof bin === 'string' ? bin : Object.values(bin ?? {})[0]
  if (path === undefined) throw new Error('it has no command')
  return path
}

/** Starts a server in an empty folder, with nothing of the environment but the path, and lists its tools. */
async function toolsOf (command: string, args: readonly string[]): Promise<Definition[]> {
  const cwd = await mkdtemp(join(tmpdir(), 'search-train-'))
  const env = { PATH: process.env.PATH ?? '', HOME: cwd }
  const transport = new StdioClientTransport(
    { command: process.execPath, args: [command, ...args], cwd, env, stderr: 'ignore' }
  )
  const client = new Client({ name: 'search-train', version: '1.0.0' })
  try {
    await client.connect(transport, { timeout: limits.list })
    const { tools } = await client.listTools(undefined, { timeout: limits.list })
    return tools.map(({ name, description = '', inputSchema }) =>
      ({ name, description, parameters: Object.keys(inputSchema.properties ?? {}) }))
  } finally {
    await client.close()
  }
}
