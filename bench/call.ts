import type { Bench, Measurement } from './bench.ts'
import { compare, type Target } from './compare.ts'
import type { Load } from './drive.ts'
import { startGateway } from './gateway.ts'
import { echoCall } from './jobs.ts'
import { waitUntilListed } from './tools.ts'
import { httpServer, startEcho, startReference, stdioServer } from './upstreams.ts'

/**
 * An echo call through the gateway, through the reference and directly to the upstream, with several numbers of calls in flight. A second
 * reference shows the noise.
 */
export const call: Measurement = { title: 'Echo call', run }

const loads: Array<Load & { rounds: number }> = [
  { inFlight: 16, calls: 10_000, rounds: 9 },
  { inFlight: 1, calls: 3_000, rounds: 3 },
  { inFlight: 64, calls: 10_000, rounds: 3 }
]

async function run (bench: Bench): Promise<string> {
  const { processes, quick, log } = bench
  const echo = await startEcho(processes)
  const reference = await startReference(processes, echo)
  const again = await startReference(processes, echo)
  const gateway = await startGateway(bench, { mcpServers: { echo: httpServer(echo), pipe: stdioServer } })
  const targets: Target[] = [
    { name: 'gateway, HTTP upstream', endpoint: gateway.endpoint('/mcp/echo'), pid: gateway.running.pid },
    { name: 'gateway, stdio upstream', endpoint: gateway.endpoint('/mcp/pipe'), pid: gateway.running.pid },
    { name: 'reference', endpoint: { ...gateway.endpoint('/mcp'), port: reference.port }, pid: reference.running.pid },
    { name: 'reference again', endpoint: { ...gateway.endpoint('/mcp'), port: again.port }, pid: again.running.pid },
    { name: 'direct', endpoint: { ...gateway.endpoint('/mcp'), port: echo.port } }
  ]
  for (const { endpoint } of targets) await waitUntilListed(gateway, endpoint, 1)
  const parts: string[] = []
  for (const { inFlight, calls, rounds } of loads) {
    const load = { inFlight, calls: quick ? calls / 5 : calls }
    const counted = quick ? Math.min(rounds, 3) : rounds
    const compared = await compare({ targets, job: echoCall, load, rounds: counted, log })
    parts.push(`${inFlight} in flight, ${counted} rounds of ${load.calls} calls each:`, compared)
  }
  return parts.join('\n\n')
}
