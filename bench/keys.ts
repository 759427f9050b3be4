import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bearerKey, freePort, path } from '../test/helpers/hub.ts'
import { ensureBuilt, override } from './gateway.ts'
import { Connection } from './connection.ts'
import { drive, type Driven } from './compare.ts'
import { echoCall, type Endpoint } from './session.ts'
import { Processes, waitFor } from './processes.ts'
import { spread, type Spread } from './statistics.ts'
import { waitUntilListed, httpServer, startEcho, type Listening } from './upstreams.ts'

/** Max cost of a call with 10,000 stored keys, relative to a call with one. */
export const keysBound = 1.15
const many = 10_000

export interface KeysOptions {
  processes: Processes
  /** The folder for the gateways' settings; the caller removes it. */
  folder: string
  /** Pairs of slices, and the calls of each. */
  pairs: number
  calls: number
  /** The gateway's command line; default: its build, or BENCH_GATEWAY. */
  command?: string[]
}

/**
 * CPU time of a `tools/call` with 10,000 stored keys, relative to one with one key. Two gateways in front of one upstream are measured
 * alternately, and each slice is compared with the next one. The key in use is the last one stored.
 */
export async function measureKeys ({
  processes,
  folder,
  pairs,
  calls,
  command = override?.split(' ') ?? [process.execPath, path('dist/server.js')]
}: KeysOptions): Promise<Spread> {
  const echo = await startEcho(processes)
  const [one, all] = await Promise.all([1, many].map(async (count) => await start(processes, folder, command, echo, count)))
  if (!one || !all) throw new Error('no gateways')
  const slice = async ({ endpoint, running: { pid } }: Started): Promise<number> =>
    perCall(await drive(endpoint, echoCall, { calls, inFlight: 8 }, pid))
  for (const gateway of [one, all, one, all]) await slice(gateway)
  const ratios: number[] = []
  for (let pair = 0; pair < pairs; pair++) {
    // The order alternates, since the machine's speed drifts.
    const forward = pair % 2 === 0
    const first = await slice(forward ? one : all)
    const second = await slice(forward ? all : one)
    ratios.push(forward ? second / first : first / second)
  }
  return spread(ratios)
}

interface Started extends Listening { endpoint: Endpoint }

const perCall = ({ cpu, latencies }: Driven): number => cpu / latencies.length

/** The nth key as a gateway stores it, by its hash. */
function key (n: number, token: string): object {
  const id = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
  return {
    ...bearerKey({ id, name: `key ${n}`, token: undefined }),
    tokenHash: createHash('sha256').update(token).digest('hex'),
    tokenMask: 'thk_....',
    allowedGroups: [],
    allowedServers: []
  }
}

async function start (processes: Processes, folder: string, command: string[], echo: Listening, count: number): Promise<Started> {
  const home = await mkdtemp(join(folder, 'keys-'))
  const settingsPath = join(home, 'mcp_settings.json')
  const tokenOf = (n: number): string => `thk_${createHash('sha256').update(String(n)).digest('hex')}`
  const bearerKeys = Array.from({ length: count }, (_, n) => key(n, tokenOf(n)))
  await writeFile(settingsPath, JSON.stringify({ mcpServers: { echo: httpServer(echo) }, bearerKeys }), { mode: 0o600 })
  const port = await freePort()
  const running = processes.start(command, {
    env: { HOME: home, NODE_ENV: 'production', HOST: '127.0.0.1', PORT: String(port), SETTINGS_PATH: settingsPath, LOG_LEVEL: 'warn' }
  })
  const ready = await waitFor(async () => { (await Connection.open(port)).close(); return true }, running)
  const endpoint = { port, path: '/mcp/echo', token: tokenOf(count - 1) }
  await waitUntilListed({ port, running, ready }, endpoint, 1)
  return { port, running, ready, endpoint }
}

async function main (): Promise<void> {
  if (override === undefined) ensureBuilt((progress) => { process.stderr.write(`${progress}\n`) })
  const folder = mkdtempSync(join(tmpdir(), 'tool-hub-bench-'))
  const processes = new Processes()
  process.once('exit', () => {
    processes.killAll()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => { process.exit(130) })
  const { median, min, max } = await measureKeys({ processes, folder, pairs: 40, calls: 1_000 })
  await processes.stopAll()
  process.stdout.write(
    `CPU of a call with ${many} keys, relative to one key: ${median.toFixed(3)} (${min.toFixed(3)}–${max.toFixed(3)}); ` +
      `at most ${keysBound}\n`
  )
  if (median > keysBound) process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
