import type { Bench, Measurement } from './bench.ts'
import { compare } from './compare.ts'
import { startGateway } from './gateway.ts'
import { toolList } from './jobs.ts'
import { waitUntilListed } from './tools.ts'
import { httpServer, startEcho, startReference } from './upstreams.ts'

/** `tools/list` of 1,000 tools. The reference fetches every list from the upstream, since it caches nothing. */
export const list: Measurement = { title: 'tools/list of 1,000 tools', run }

const tools = 1_000
const inFlight = 4

async function run (bench: Bench): Promise<string> {
  const { processes, quick, log } = bench
  const many = await startEcho(processes, { tools })
  const reference = await startReference(processes, many)
  const gateway = await startGateway(bench, { mcpServers: { many: httpServer(many) } })
  const targets = [
    { name: 'gateway', endpoint: gateway.endpoint('/mcp/many'), pid: gateway.running.pid },
    { name: 'reference', endpoint: { ...gateway.endpoint('/mcp'), port: reference.port }, pid: reference.running.pid }
  ]
  for (const { endpoint } of targets) await waitUntilListed(gateway, endpoint, tools)
  const calls = quick ? 60 : 200
  const rounds = quick ? 3 : 5
  const compared = await compare({ targets, job: toolList(tools), load: { inFlight, calls }, rounds, log })
  return [`${inFlight} in flight, ${rounds} rounds of ${calls} lists each:`, compared].join('\n\n')
}
