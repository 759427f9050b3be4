import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type Bench, builds, type Measurement, startGateway } from './gateway.ts'
import { cell, table } from './statistics.ts'
import { httpServer, startEcho, waitUntilListed } from './upstreams.ts'

/** The cost of commands: CPU time and memory of the process, and the time until it ends. */
export const commandLine: Measurement = { title: 'Command line', run }

const commands = [['--help'], ['--version'], ['status']]
const probe = new URL('usage-probe.mjs', import.meta.url).href

interface Usage { cpu: number, peak: number, wall: number }

async function run (bench: Bench): Promise<string> {
  const gateway = await startGateway(bench, { mcpServers: { echo: httpServer(await startEcho(bench.processes)) } })
  const endpoint = gateway.endpoint('/mcp')
  await waitUntilListed(gateway, endpoint, 1)
  const env = { TOOL_HUB_URL: `http://127.0.0.1:${gateway.port}`, TOOL_HUB_KEY: endpoint.token, HOME: bench.folder }
  const programs = [
    { name: 'node -e 0', line: ['-e', '0'] },
    ...builds.flatMap(({ name, command }) => commands.map((args) => ({
      name: `${name}: tool-hub ${args.join(' ')}`,
      line: [join(dirname(command.at(-1) ?? ''), 'cli/main.js'), ...args]
    })))
  ]
  const rounds = bench.quick ? 3 : 11
  const measured = programs.map(({ name, line }) => ({ name, line, usages: [] as Usage[] }))
  for (let round = 1; round <= rounds; round++) {
    for (const { line, usages } of round % 2 === 0 ? measured : measured.toReversed()) {
      usages.push(await usageOf(bench, line, env))
    }
    const progress = measured.map(({ name, usages }) => `${name} ${usages.at(-1)?.cpu.toFixed(0) ?? '–'} ms`)
    bench.log(`round ${round}/${rounds}: ${progress.join(' · ')}`)
  }
  const rows = measured.map(({ name, usages }) => [
    name,
    cell(usages.map(({ cpu }) => cpu), 0),
    cell(usages.map(({ wall }) => wall), 0),
    cell(usages.map(({ peak }) => peak / 1_024), 0)
  ])
  const header = ['', 'CPU ms', 'ms', 'peak of RSS, MiB']
  return `${rounds} rounds; \`status\` asks a running gateway.\n\n${table(header, rows)}`
}

/** Runs a command line of Node. @throws where it fails */
async function usageOf ({ folder }: Bench, line: string[], more: Record<string, string>): Promise<Usage> {
  const file = join(folder, 'usage.json')
  const env = { PATH: process.env.PATH, USAGE: file, ...more }
  const began = performance.now()
  await promisify(execFile)(process.execPath, [`--import=${probe}`, ...line], { env, timeout: 60_000 })
  const wall = performance.now() - began
  return { ...JSON.parse(await readFile(file, 'utf8')) as Omit<Usage, 'wall'>, wall }
}
