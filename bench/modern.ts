import type { Bench, Measurement } from './bench.ts'
import { compare, type Target } from './compare.ts'
import { startGateway } from './gateway.ts'
import { echoCall, modernEchoCall } from './jobs.ts'
import { waitUntilListed } from './tools.ts'
import { httpServer, startEcho } from './upstreams.ts'

/** An echo call through the gateway for clients and servers of both eras of MCP, in turns. */
export const modern: Measurement = { title: 'Echo call of both eras', run }

const inFlight = 16

async function run (bench: Bench): Promise<string> {
  const { processes, quick, log } = bench
  const [echo, modernEcho] = [await startEcho(processes), await startEcho(processes, { modern: true })]
  const gateway = await startGateway(bench, { mcpServers: { legacy: httpServer(echo), modern: httpServer(modernEcho) } })
  const { pid } = gateway.running
  const targets: Target[] = [
    { name: 'legacy client, legacy server', endpoint: gateway.endpoint('/mcp/legacy'), pid },
    { name: 'modern client, legacy server', endpoint: gateway.endpoint('/mcp/legacy'), pid, job: modernEchoCall },
    { name: 'legacy client, modern server', endpoint: gateway.endpoint('/mcp/modern'), pid },
    { name: 'modern client, modern server', endpoint: gateway.endpoint('/mcp/modern'), pid, job: modernEchoCall }
  ]
  for (const { endpoint } of targets) await waitUntilListed(gateway, endpoint, 1)
  const load = { inFlight, calls: quick ? 2_000 : 10_000 }
  const rounds = quick ? 4 : 12
  const reference = 'legacy client, legacy server'
  const compared = await compare({ targets, job: echoCall, reference, load, rounds, log })
  return `${inFlight} in flight, ${rounds} rounds of ${load.calls} calls each:\n\n${compared}`
}
