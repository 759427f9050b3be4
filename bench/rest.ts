import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../test/helpers/hub.ts'
import { type Bench, builds, type Measurement, startGateway, statusOf } from './gateway.ts'
import { cpuTime, residentTree, waitFor } from './processes.ts'
import { cell, table } from './statistics.ts'
import { stdioServer, type Listening } from './upstreams.ts'

/** From spawning to the first 200 of the health route, and the memory of a gateway that nobody uses. */
export const rest: Measurement = { title: 'Start and rest', run }

/** The folder of the package mcp-hub, installed somewhere: a peer to compare with. It is no dependency. */
const peer = process.env.BENCH_MCP_HUB
/** From the health route to the reading of the memory, in ms. */
const settleTime = 10_000

/** Starts with the folder and the servers given, which the second start finds as the first left them. */
interface Program { name: string, start: (home: string, mcpServers: Record<string, object>) => Promise<Listening> }

/** Of one round: ms to the health route, CPU ms until then, MiB at rest; of the second start but for `first`. */
interface Figures { first: number, second: number, cpu: number, alone: number, withServer: number }

async function run (bench: Bench): Promise<string> {
  const programs: Program[] = builds.map(({ name, command }) => ({
    name,
    start: async (home, mcpServers) => await startGateway(bench, { mcpServers, command, home })
  }))
  if (peer !== undefined) {
    programs.push({ name: 'mcp-hub', start: async (...given) => await startPeer(bench, peer, ...given) })
  }
  const rounds = bench.quick ? 2 : 7
  const measured = new Map(programs.map(({ name }): [string, Figures[]] => [name, []]))
  for (let round = 1; round <= rounds; round++) {
    for (const program of round % 2 === 0 ? programs : programs.toReversed()) {
      const figures = await measure(bench, program)
      measured.get(program.name)?.push(figures)
      const progress = Object.entries(figures).map(([figure, value]) => `${figure} ${Number(value).toFixed(0)}`)
      bench.log(`round ${round}/${rounds}, ${program.name}: ${progress.join(' · ')}`)
    }
  }
  const reference = measured.get(programs.at(-1)?.name ?? '') ?? []
  const rows = [...measured].map(([name, all]) => {
    const of = (figure: keyof Figures): number[] => all.map((one) => one[figure])
    const ratios = all.map(({ second }, round) => second / (reference[round]?.second ?? NaN))
    const others = (['cpu', 'alone', 'withServer'] as const).map((figure) => cell(of(figure), 0))
    return [name, cell(of('first'), 0), cell(of('second'), 0), cell(ratios, 2), ...others]
  })
  const header = ['', 'ms, first start', 'ms, second', 'ratio', 'CPU ms, second', 'MiB', 'MiB, one stdio server']
  return `${rounds} rounds, from spawning to the health route, without servers; the ratio is to the last row. ` +
    `RSS ${settleTime / 1_000} s later, of the program's processes without the stdio server's.\n\n${table(header, rows)}`
}

async function measure ({ processes, folder }: Bench, { start }: Program): Promise<Figures> {
  const home = await mkdtemp(join(folder, 'rest-'))
  const first = await start(home, {})
  await processes.stop(first.running)
  const second = await start(home, {})
  const cpu = cpuTime(second.running.pid)
  await sleep(settleTime)
  const alone = residentTree(second.running.pid) / 1_024
  await processes.stop(second.running)
  const third = await start(await mkdtemp(join(folder, 'rest-')), { pipe: stdioServer })
  await sleep(settleTime)
  const withServer = residentTree(third.running.pid, stdioServer.args[0]) / 1_024
  await processes.stop(third.running)
  return { first: first.ready, second: second.ready, cpu, alone, withServer }
}

async function startPeer (
  { processes }: Bench,
  root: string,
  home: string,
  mcpServers: Record<string, object>
): Promise<Listening> {
  const port = await freePort()
  const config = join(home, 'servers.json')
  await writeFile(config, JSON.stringify({ mcpServers }))
  const command = [process.execPath, join(root, 'dist/cli.js'), '--port', String(port), '--config', config]
  const running = processes.start(command, { env: { HOME: home, NODE_ENV: 'production' } })
  return { port, running, ready: await waitFor(async () => (await statusOf(port, '/api/health')) === 200, running) }
}
