import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { type Bench, type Build, builds, type Measurement, startGateway } from './gateway.ts'
import { cpuTime } from './processes.ts'
import { Connection } from './connection.ts'
import { resultOf, Session, toolList } from './session.ts'
import { cell, table } from './statistics.ts'
import { httpServer, startEcho, waitUntilListed } from './upstreams.ts'

/** The first `tools/list` after a restart, while no server answers: 90 accept connections and are silent, 10 refuse. */
export const restart: Measurement = { title: 'First tools/list after a restart', run }

const servers = 100
const dead = 10
const toolsOfEach = 10

interface First { ms: number, cpu: number }

async function run (bench: Bench): Promise<string> {
  const rounds = bench.quick ? 2 : 5
  const measured = new Map(builds.map(({ name }): [string, First[]] => [name, []]))
  for (let round = 1; round <= rounds; round++) {
    for (const build of round % 2 === 0 ? builds : builds.toReversed()) {
      const first = await measure(bench, build)
      measured.get(build.name)?.push(first)
      bench.log(`round ${round}/${rounds}, ${build.name}: ${first.ms.toFixed(0)} ms, ${first.cpu.toFixed(0)} ms of CPU`)
    }
  }
  const rows = [...measured].map(([name, all]) => [
    name,
    cell(all.map(({ ms }) => ms), 0),
    cell(all.map(({ cpu }) => cpu), 0)
  ])
  return `${rounds} rounds. ${servers} servers with ${toolsOfEach} tools each; after the restart ${servers - dead} ` +
    `of them accept connections and never answer, and ${dead} refuse them. From the request, sent at the first 200 of ` +
    `/health in a session just opened, to the answer with all ${servers * toolsOfEach} tools. CPU includes what else ` +
    `the gateway does meanwhile.\n\n${table(['', 'ms', 'CPU ms'], rows)}`
}

async function measure (bench: Bench, { command }: Build): Promise<First> {
  const { processes, folder } = bench
  const echo = await startEcho(processes, { tools: toolsOfEach })
  const ending = await startEcho(processes, { tools: toolsOfEach })
  const mcpServers = Object.fromEntries(Array.from({ length: servers }, (_, i) =>
    [`server${i}`, httpServer(i % (servers / dead) === 0 ? ending : echo, `/mcp/${i}`)]))
  const home = await mkdtemp(join(folder, 'restart-'))
  const before = await startGateway(bench, { mcpServers, command, home })
  await waitUntilListed(before, before.endpoint('/mcp'), servers * toolsOfEach)
  for (const { running } of [before, echo, ending]) await processes.stop(running)
  const silence = await startEcho(processes, { silent: true, port: echo.port })
  const gateway = await startGateway(bench, { mcpServers, command, home })
  const connection = await Connection.open(gateway.port)
  const { request, isCorrect } = toolList(servers * toolsOfEach)
  const session = await Session.open(connection, gateway.endpoint('/mcp'))
  const cpuBefore = cpuTime(gateway.running.pid)
  const began = performance.now()
  const response = await connection.send(session.encode(request(1)))
  const first = { ms: performance.now() - began, cpu: cpuTime(gateway.running.pid) - cpuBefore }
  if (!isCorrect(resultOf(response, 1), 1)) throw new Error(`not all tools were listed: ${response.body.slice(0, 500)}`)
  connection.close()
  for (const { running } of [gateway, silence]) await processes.stop(running)
  return first
}
