import { type Bench, builds, type Measurement, startGateway } from './gateway.ts'
import { startReference, httpServer, startEcho, stdioServer, type Listening, waitUntilListed } from './upstreams.ts'
import { cell, table } from './statistics.ts'

/** Time from spawning the gateway to its first /health, and to a `tools/list` on /mcp with the tools of all responsive upstreams. */
export const start: Measurement = { title: 'Start with 50 upstreams', run }

const upstreams = 50
const overStdio = 10
const cases = [
  { name: '40 over HTTP, 10 over stdio', silent: 0 },
  { name: '10 over HTTP, 10 over stdio, 30 that never answer', silent: 30 }
]

async function run (bench: Bench): Promise<string> {
  const { processes, log } = bench
  const echo = await startEcho(processes)
  const silence = await startEcho(processes, { silent: true })
  const rounds = bench.quick ? 3 : 5
  const bare: number[] = []
  const starts = builds.flatMap(({ name: build, command }) => cases.map(({ name, silent }) => ({
    name: build === builds[0].name ? name : `${build}: ${name}`,
    silent,
    command,
    healthy: [] as number[],
    listed: [] as number[]
  })))
  for (let round = 1; round <= rounds; round++) {
    bare.push(await startBare(bench, echo))
    for (const { silent, command, healthy, listed } of starts) {
      const gateway = await startGateway(bench, { mcpServers: settings(echo, silence, silent), command })
      healthy.push(gateway.ready)
      listed.push(await waitUntilListed(gateway, gateway.endpoint('/mcp'), upstreams - silent))
      await processes.stop(gateway.running)
    }
    const progress = starts.map(({ name, healthy, listed }) => `${name}: ${lastOf(healthy)} ms, listed ${lastOf(listed)} ms`)
    log(`round ${round}/${rounds}: reference ${lastOf(bare)} ms · ${progress.join(' · ')}`)
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
    `${rounds} rounds, each with a new data folder, in ms from spawning; ` +
      'the ratio is to the reference, from spawning to its first connection.',
    table(
      ['', 'ms to /health', 'ratio', 'ms to all tools listed', 'ratio'],
      [...rows, ['reference', cell(bare, 0), cell(ratios(bare), 2), '–', '–']]
    )
  ].join('\n\n')
}

const lastOf = (values: number[]): string => values.at(-1)?.toFixed(0) ?? '–'

/** Starts the reference. Returns the time from spawning it to its first connection, in ms. */
async function startBare ({ processes }: Bench, echo: Listening): Promise<number> {
  const { running, ready } = await startReference(processes, echo)
  await processes.stop(running)
  return ready
}

/** 50 servers: 10 over stdio, `silent` that never answer, and the others over HTTP, each on a path of its own. */
function settings (echo: Listening, silence: Listening, silent: number): Record<string, object> {
  return Object.fromEntries(Array.from({ length: upstreams }, (_, i) => {
    const server = i < overStdio ? stdioServer : httpServer(i < overStdio + silent ? silence : echo, `/mcp/${i}`)
    return [`upstream${i}`, server]
  }))
}
