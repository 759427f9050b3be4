import type { Bench, Measurement } from './bench.ts'
import { compare, type Target } from './compare.ts'
import { startGateway } from './gateway.ts'
import { echoCall, plainEchoCall } from './jobs.ts'
import { waitUntilListed } from './tools.ts'
import { httpServer, startEcho, startReference } from './upstreams.ts'

/**
 * An echo call over plain HTTP (`POST /api/tools/:server/:tool`), in turns with the same call over MCP. The reference passes the call of
 * MCP through to the same upstream.
 */
export const plainCall: Measurement = { title: 'Echo call over plain HTTP', run }

const inFlight = 16

async function run (bench: Bench): Promise<string> {
  const { processes, quick, log } = bench
  const echo = await startEcho(processes)
  const reference = await startReference(processes, echo)
  const gateway = await startGateway(bench, { mcpServers: { echo: httpServer(echo) } })
  const { pid } = gateway.running
  const targets: Target[] = [
    { name: 'POST /api/tools', endpoint: gateway.endpoint('/api/tools/echo/echo'), pid, job: plainEchoCall },
    { name: 'MCP', endpoint: gateway.endpoint('/mcp/echo'), pid },
    { name: 'reference', endpoint: { ...gateway.endpoint('/mcp'), port: reference.port }, pid: reference.running.pid }
  ]
  await waitUntilListed(gateway, gateway.endpoint('/mcp/echo'), 1)
  const load = { inFlight, calls: quick ? 2_000 : 10_000 }
  const rounds = quick ? 3 : 5
  const compared = await compare({ targets, job: echoCall, load, rounds, log })
  return `${inFlight} in flight, ${rounds} rounds of ${load.calls} calls each:\n\n${compared}`
}
