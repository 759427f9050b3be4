import { spawn, type ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A TCP port that was free a moment ago, below those that the system gives to sockets, so that no other one gets it meanwhile. */
export async function freePort (): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => { resolve(false) }).listen(port, '127.0.0.1', () => { resolve(true) })
    })
    if (!isFree) continue
    await new Promise((resolve) => { server.close(resolve) })
    return port
  }
}

/** Whether a port of loopback takes connections. A request that nobody takes costs six times as much CPU. */
const isListening = async (port: number): Promise<boolean> => await new Promise((resolve) => {
  const socket = connect(port, '127.0.0.1')
  const end = (): void => { resolve(!socket.destroyed); socket.destroy() }
  socket.once('connect', end).once('error', end)
})

/** The path of a file below the project's root. */
export const path = (name: string): string => join(root, name)

/** The command line of a server package from npm, run by this Node. */
export function npmServer (name: 'everything' | 'filesystem' | 'memory', ...args: string[]): { command: string, args: string[] } {
  return { command: process.execPath, args: [join(root, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`), ...args] }
}

/** A TypeScript file of ours as a command line: for one of test/fakes, its bundle where `npm test` made one (test/build.mjs). */
export function tsServer (name: string, ...args: string[]): { command: string, args: string[] } {
  const { TOOL_HUB_TEST_FAKES: bundles } = process.env
  const file = /^test\/fakes\/(.*)\.ts$/.exec(name)?.[1]
  const program = bundles === undefined || file === undefined ? ['--import', 'tsx', join(root, name)] : [join(root, bundles, `${file}.js`)]
  return { command: process.execPath, args: [...program, ...args] }
}

/** Processes hash passwords as cheaply as the test does, or could not check its hashes. */
const cheapHashes = ['--import', path('test/helpers/cheap-hashes.mjs')]
const realHashes = (): Record<string, string> => process.env.TEST_REAL_HASHES === '1' ? { TEST_REAL_HASHES: '1' } : {}

/** The command line (`tool-hub`) by this Node: from the build where `npm test` made one, which starts in a third of the time. */
export const cliProgram: readonly string[] = process.env.TOOL_HUB_TEST_BUILD === undefined
  ? [process.execPath, ...cheapHashes, '--import', path('node_modules/tsx/dist/loader.mjs'), path('cli/main.ts')]
  : [process.execPath, ...cheapHashes, path('dist/cli/main.js')]

/** A running gateway. */
export interface Hub {
  url: string
  port: number
  folder: string
  settingsPath: string
  /** Everything that the gateway has logged so far; of a process, everything that it has printed. */
  output: () => string
  /** Ends the gateway as SIGTERM does; the exit code that it has or would have. */
  stop: () => Promise<number | null>
}

/** A gateway as a process of its own. */
export interface ProcessHub extends Hub {
  pid: number
  child: ChildProcess
  /** What a first start tells where there is no terminal; empty until it does. */
  firstWords: () => string
}

/** The program and the arguments that start the gateway. By itself, a test file runs the sources; `npm test` makes a build first. */
export const serverProgram = (build = process.env.TOOL_HUB_TEST_BUILD): string[] =>
  [process.execPath, ...cheapHashes, ...(build === undefined ? ['--import', 'tsx', join(root, 'server.ts')] : [join(root, build)])]

/** What a first start over this folder has told where there is no terminal; empty: nothing yet. */
export function firstWordsIn (dataDir: string): string {
  try {
    return readFileSync(join(dataDir, 'first-start.txt'), 'utf8')
  } catch {
    return ''
  }
}

/** Any test context that can clean up: tap's `t`. What is registered last runs first. */
export interface Cleanup { after: (fn: () => unknown) => void }

export interface HubOptions {
  /** The settings file: an object is written as JSON, a string or buffer as it is; nothing: no file. */
  settings?: object | string | Buffer
  env?: Record<string, string>
  /** An existing folder (with its settings file and data) instead of a new one. */
  folder?: string
}

export interface ProcessOptions extends HubOptions {
  /** The path to wait for until it answers with success; default `/health`; false: do not wait. */
  wait?: '/health' | '/health/ready' | false
  /** The limit of open files (`ulimit -n`). */
  openFiles?: number
}

/** The folder of a gateway, with its settings file. `remove` leaves one that was there before. */
async function prepare (options: HubOptions): Promise<{ folder: string; settingsPath: string; remove: () => Promise<void> }> {
  const folder = options.folder ?? await mkdtemp(join(tmpdir(), 'tool-hub-test-'))
  const settingsPath = join(folder, 'mcp_settings.json')
  if (options.settings !== undefined) {
    const text =
      typeof options.settings === 'string' || Buffer.isBuffer(options.settings)
        ? options.settings
        : JSON.stringify(options.settings, null, 2)
    await writeFile(settingsPath, text, { mode: 0o600 })
  }
  const remove = async (): Promise<void> => {
    if (options.folder === undefined) await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  return { folder, settingsPath, remove }
}

/**
 * Starts a gateway within this process, on a port of its own, and waits until it serves. It is made and begun as server.ts does; what
 * belongs
 * to a process (signals, exit codes, what it prints, its size, a port that it cannot have) is for `spawnHub`. Stopped after the test.
 */
export async function startHub (t: Cleanup, options: HubOptions = {}): Promise<Hub> {
  // Only files that start a gateway load it.
  const { runApp, withAdmin } = await import('./run-app.ts')
  const { folder, settingsPath, remove } = await prepare({ ...options, settings: await withAdmin(options) })
  const environment = {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    HOST: '127.0.0.1',
    PORT: '0',
    SETTINGS_PATH: settingsPath,
    ...options.env
  }
  const { app, port, output } = await runApp(environment)
  const url = `http://127.0.0.1:${port}${options.env?.BASE_PATH ?? ''}`
  let closed: Promise<number> | undefined
  const stop = async (): Promise<number> => await (closed ??= (async () => {
    await app.close()
    return 0
  })())
  t.after(async () => {
    await stop()
    await remove()
  })
  return { url, port, folder, settingsPath, output, stop }
}

/**
 * Starts the gateway as its own process, as an operator would, and waits for it.
 * Stopped and cleaned up after the test.
 */
export async function spawnHub (t: Cleanup, options: ProcessOptions = {}): Promise<ProcessHub> {
  const { folder, settingsPath, remove } = await prepare(options)
  const port = Number(options.env?.PORT ?? await freePort())
  const command = serverProgram()
  const limited = options.openFiles === undefined ? command : ['sh', '-c', `ulimit -n ${options.openFiles}; exec "$0" "$@"`, ...command]
  const [program = '', ...args] = limited
  const child = spawn(program, args, {
    cwd: root,
    env: {
      PATH: process.env.PATH ?? '', HOME: folder, HOST: '127.0.0.1', PORT: String(port), SETTINGS_PATH: settingsPath, ...realHashes(), ...options.env
    },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  let output = ''
  child.stdout.on('data', (chunk) => { output += String(chunk) })
  child.stderr.on('data', (chunk) => { output += String(chunk) })
  const exited = new Promise<number | null>((resolve) => { child.once('exit', (code) => { resolve(code) }) })
  const stop = async (): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    return await exited
  }
  t.after(async () => {
    await stop()
    await remove()
  })
  const base = `http://127.0.0.1:${port}${options.env?.BASE_PATH ?? ''}`
  const firstWords = (): string => firstWordsIn(options.env?.DATA_DIR ?? join(folder, '.tool-hub'))
  const hub: ProcessHub = { url: base, port, pid: child.pid ?? 0, folder, settingsPath, output: () => output, child, stop, firstWords }
  const { wait = '/health' } = options
  if (wait === false) return hub
  let isOpen = false
  await until(async () => {
    if (child.exitCode !== null) return true
    return (isOpen ||= await isListening(port)) && (await fetch(`${base}${wait}`)).ok
  }, () => `no ${wait}: ${output}`)
  if (child.exitCode !== null) throw new Error(`the gateway exited: ${output}`)
  return hub
}

/** How long tests wait for anything, in ms: no machine is too slow for it, and what comes costs nothing. */
export const deadline = 60_000

/** Polls until the condition holds (it may throw meanwhile); fails with the message after a minute. */
export async function until (condition: () => unknown, message: string | (() => string) = 'the condition never held'): Promise<void> {
  const start = Date.now()
  for (;;) {
    try {
      if (await condition()) return
    } catch {}
    if (Date.now() - start > deadline) throw new Error(typeof message === 'string' ? message : message())
    await new Promise((resolve) => { setTimeout(resolve, 20) })
  }
}

/** A system bearer key for a settings file, with the token that opens it. */
export function bearerKey (more: Record<string, unknown> = {}): {
  id: string
  name: string
  token: string
  kind: string
  enabled: boolean
  accessType: string
} {
  return {
    id: '11111111-1111-4111-8111-111111111111',
    name: 'test',
    token: `thk_${'a'.repeat(64)}`,
    kind: 'system',
    enabled: true,
    accessType: 'all',
    ...more
  }
}
