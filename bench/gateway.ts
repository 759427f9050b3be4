import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { bearerKey, freePort, path } from '../test/helpers/hub.ts'
import { Connection } from './connection.ts'
import { waitFor, type Processes } from './processes.ts'
import type { Endpoint } from './session.ts'
import type { Listening } from './upstreams.ts'

export interface Gateway extends Listening {
  /** An MCP endpoint of the gateway, with its key. */
  endpoint: (path: string) => Endpoint
}

export interface GatewayOptions {
  mcpServers: Record<string, object>
  /** Sections of `systemConfig` beside `routing`. */
  system?: Record<string, object>
  /** Variables beside those of every gateway. */
  env?: Record<string, string>
  /** Loads the memory probe, which reports on an IPC channel. */
  probe?: boolean
  /** The command to start; by default that of the first build. */
  command?: string[]
  /** The folder for settings and data; by default a new one. A file of settings that is there is kept. */
  home?: string
}

/** A command to start in place of the gateway's build, with its arguments separated by spaces. */
export const override = process.env.BENCH_GATEWAY

/** A build that is measured: `name` is that of its rows. */
export interface Build { name: string, command: string[] }

/** This build, or the command in its place; then the `dist/server.js` that BENCH_AGAINST names, as of the commit before. */
export const builds: [Build, ...Build[]] = [
  { name: 'gateway', command: override?.split(' ') ?? [process.execPath, path('dist/server.js')] },
  ...process.env.BENCH_AGAINST === undefined ? [] : [{ name: 'before', command: [process.execPath, process.env.BENCH_AGAINST] }]
]
const key = bearerKey({ name: 'bench' })
const probeUrl = new URL('memory-probe.mjs', import.meta.url)

/** Starts the gateway's build, or the command in its place, with a new folder and settings. Ready at the first 200 of GET /health. */
export async function startGateway (
  { processes, folder }: Bench,
  { mcpServers, system = {}, env: more = {}, probe = false, command = builds[0].command, home }: GatewayOptions
): Promise<Gateway> {
  const place = home ?? await mkdtemp(join(folder, 'gateway-'))
  const settingsPath = join(place, 'mcp_settings.json')
  const settings = { mcpServers, bearerKeys: [key], systemConfig: { ...system, routing: { enableBearerAuth: true } } }
  if (!existsSync(settingsPath)) await writeFile(settingsPath, JSON.stringify(settings, null, 2), { mode: 0o600 })
  const port = await freePort()
  const env = {
    HOME: place,
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PORT: String(port),
    SETTINGS_PATH: settingsPath,
    DATA_DIR: join(place, 'data'),
    LOG_LEVEL: 'warn',
    OUTBOUND_ALLOW: '127.0.0.0/8',
    ...more,
    ...(probe ? { NODE_OPTIONS: `--import=${probeUrl.href}` } : {})
  }
  const running = processes.start(command, { env, ipc: probe })
  const ready = await waitFor(async () => (await statusOf(port, '/health')) === 200, running)
  return { port, running, ready, endpoint: (path) => ({ port, path, token: key.token }) }
}

/** The status of GET on a route of a port. */
export async function statusOf (port: number, route: string): Promise<number> {
  const connection = await Connection.open(port)
  try {
    return (await connection.send(`GET ${route} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)).status
  } finally {
    connection.close()
  }
}

const entry = path('dist/server.js')
const folders = ['schemas', 'protocol', 'db', 'plugins', 'routes', 'cli'].map(path)

/** Runs `npm run build` where dist is missing, or older than a source. */
export function ensureBuilt (log: (progress: string) => void): void {
  const built = statSync(entry, { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (Math.max(...sources().map((file) => statSync(file).mtimeMs)) <= built) return
  log('npm run build')
  const { status } = spawnSync('npm', ['run', 'build'], { cwd: path('.'), stdio: ['ignore', 2, 2], timeout: 180_000 })
  if (status !== 0) throw new Error('npm run build failed')
}

function sources (): string[] {
  const inside = folders.flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)))
  return [...inside.filter((name) => name.endsWith('.ts')), path('app.ts'), path('server.ts')]
}

/** The resources of a measurement. */
export interface Bench {
  processes: Processes
  /** A temporary folder, removed at the end. */
  folder: string
  /** Fewer rounds and calls. */
  quick: boolean
  /** Prints a line of progress. */
  log: (progress: string) => void
}

export interface Measurement {
  title: string
  /** Resolves with the Markdown below the title. Processes that it leaves running are stopped after it. */
  run: (bench: Bench) => Promise<string>
}
