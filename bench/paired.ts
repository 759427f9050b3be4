import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort, path } from '../test/helpers/hub.ts'
import { drive, type Driven } from './compare.ts'
import { Connection } from './connection.ts'
import { ensureBuilt, override } from './gateway.ts'
import { makeWorkplace, type Processes, waitFor } from './processes.ts'
import { echoCall, type Endpoint } from './session.ts'
import { spread, type Spread } from './statistics.ts'
import { httpServer, startEcho, waitUntilListed, type Listening } from './upstreams.ts'

export interface PairOptions {
  processes: Processes
  /** The folder for the gateways' settings; the caller removes it. */
  folder: string
  /** Pairs of slices, and the calls of each. */
  pairs: number
  calls: number
  /** The gateway's command line; default: its build, or BENCH_GATEWAY. */
  command?: string[]
}

/** One gateway of a pair: its settings beside the server `echo`, and the key of its caller. */
export interface PairedSettings { readonly settings: object, readonly token: string }

interface Started extends Listening { endpoint: Endpoint }

/** `ratio`: the CPU time of the second in relation to the first. `first`, `second`: that of a call, in ms. */
export interface Pair { readonly ratio: Spread, readonly first: Spread, readonly second: Spread }

/**
 * CPU time of a `tools/call` at two gateways in front of one upstream. They are measured alternately, and each slice is compared with the
 * next one.
 */
export async function measurePair (
  { processes, folder, pairs, calls, command = override?.split(' ') ?? [process.execPath, path('dist/server.js')] }: PairOptions,
  both: readonly [PairedSettings, PairedSettings]
): Promise<Pair> {
  const echo = await startEcho(processes)
  const [one, other] = await Promise.all(both.map(async (each) => await start(processes, folder, command, echo, each)))
  if (!one || !other) throw new Error('no gateways')
  const slice = async ({ endpoint, running: { pid } }: Started): Promise<number> =>
    perCall(await drive(endpoint, echoCall, { calls, inFlight: 8 }, pid))
  for (const gateway of [one, other, one, other]) await slice(gateway)
  const measured: Array<readonly [number, number]> = []
  for (let pair = 0; pair < pairs; pair++) {
    // The order alternates, since the machine's speed drifts.
    if (pair % 2 === 0) measured.push([await slice(one), await slice(other)])
    else {
      const second = await slice(other)
      measured.push([await slice(one), second])
    }
  }
  return {
    ratio: spread(measured.map(([first, second]) => second / first)),
    first: spread(measured.map(([first]) => first)),
    second: spread(measured.map(([, second]) => second))
  }
}

const perCall = ({ cpu, latencies }: Driven): number => cpu / latencies.length

async function start (
  processes: Processes, folder: string, command: string[], echo: Listening, { settings, token }: PairedSettings
): Promise<Started> {
  const home = await mkdtemp(join(folder, 'paired-'))
  const settingsPath = join(home, 'mcp_settings.json')
  await writeFile(settingsPath, JSON.stringify({ mcpServers: { echo: httpServer(echo) }, ...settings }), { mode: 0o600 })
  const port = await freePort()
  const running = processes.start(command, {
    env: { HOME: home, NODE_ENV: 'production', HOST: '127.0.0.1', PORT: String(port), SETTINGS_PATH: settingsPath, LOG_LEVEL: 'warn' }
  })
  const ready = await waitFor(async () => { (await Connection.open(port)).close(); return true }, running)
  const endpoint = { port, path: '/mcp/echo', token }
  await waitUntilListed({ port, running, ready }, endpoint, 1)
  return { port, running, ready, endpoint }
}

/** Runs a comparison as a program: with the build, in a folder of its own, and nothing left behind. */
export async function runPaired (measure: (options: PairOptions) => Promise<void>): Promise<void> {
  if (override === undefined) ensureBuilt((progress) => { process.stderr.write(`${progress}\n`) })
  const { folder, processes } = makeWorkplace()
  await measure({ processes, folder, pairs: 40, calls: 1_000 })
  await processes.stopAll()
}
