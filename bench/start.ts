import type { Bench, Measurement } from './bench.ts'
import { startGateway } from './gateway.ts'
import { startReference, httpServer, startEcho, stdioServer, type Listening } from './upstreams.ts'
import { cell, table } from './table.ts'
import { untilListed } from './tools.ts'

/** From spawning the gateway to /health, and to a `tools/list` on /mcp with the tools of all upstreams that answer. */
export const start: Measurement = { title: 'Start with 50 upstreams', run }

const upstreams = 50
const overStdio = 10
const cases = [
  { name: '40 over HTTP, 10 over stdio', silent: 0 },
  { name: '10 over HTTP, 10 over stdio, 30 that never answer', silent: 30 }
]

async function run (bench: Bench): Promise<string> {
  const { processes, say } = bench
  const echo = await startEcho(processes)
  const silence = await startEcho(processes, { silent: true })
  const rounds = bench.quick ? 3 : 5
  const bare: number[] = []
  const starts = cases.map((one) => ({ ...one, healthy: [] as number[], listed: [] as number[] }))
  for (let round = 1; round <= rounds; round++) {
    bare.push(await startBare(bench, echo))
    for (const { silent, healthy, listed } of starts) {
      const gateway = await startGateway(bench, { mcpServers: settings(echo, silence, silent) })
      healthy.push(gateway.ready)
      listed.push(await untilListed(gateway, gateway.endpoint('/mcp'), upstreams - silent))
      await processes.stop(gateway.running)
    }
    say(
      `round ${round}/${rounds}: reference ${bare.at(-1)?.toFixed(0)} ms · ${starts.map(({ name, healthy, listed }) => `${name}: ${healthy.at(-1)?.toFixed(0)} ms, listed ${listed.at(-1)?.toFixed(0)} ms`).join(' · ')}`
    )
  }
  const ratios = (values: number[]): number[] => values.map((value, round) => value / (bare[round] ?? NaN))
  const rows = starts.map(({ name, healthy, listed }) => [
    name,
    cell(healthy, 0),
    cell(ratios(healthy), 2),
    cell(listed, 0),
    cell(ratios(listed), 2)
  ])
  return [
    `${rounds} rounds, each with a new data folder, in ms from spawning; the ratio is to the reference, from spawning to its first connection.`,
    table(
      ['', 'ms to /health', 'ratio', 'ms to all tools listed', 'ratio'],
      [...rows, ['reference', cell(bare, 0), cell(ratios(bare), 2), '–', '–']]
    )
  ].join('\n\n')
}

/** ms from spawning the reference to its first connection. */
async function startBare ({ processes }: Bench, echo: Listening): Promise<number> {
  const { running, ready } = await startReference(processes, echo)
  await processes.stop(running)
  return ready
}

/** 50 servers: 10 over stdio, so many that never answer, the others over HTTP, each on a path of its own. */
function settings (echo: Listening, silence: Listening, silent: number): Record<string, object> {
  return Object.fromEntries(Array.from({ length: upstreams }, (_, i) => {
    const server = i < overStdio ? stdioServer : httpServer(i < overStdio + silent ? silence : echo, `/mcp/${i}`)
    return [`upstream${i}`, server]
  }))
}
