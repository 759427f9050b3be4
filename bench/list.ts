import type { Bench, Measurement } from './bench.ts'
import { compare } from './compare.ts'
import { startGateway } from './gateway.ts'
import { toolList } from './jobs.ts'
import { untilListed } from './tools.ts'
import { httpServer, startEcho, startReference } from './upstreams.ts'

/** `tools/list` of 1,000 tools; the reference fetches each from the upstream, as it knows no better. */
export const list: Measurement = { title: 'tools/list of 1,000 tools', run }

const tools = 1_000
const inFlight = 4

async function run (bench: Bench): Promise<string> {
  const { processes, quick, say } = bench
  const many = await startEcho(processes, { tools })
  const reference = await startReference(processes, many)
  const gateway = await startGateway(bench, { mcpServers: { many: httpServer(many) } })
  const targets = [
    { name: 'gateway', endpoint: gateway.endpoint('/mcp/many'), pid: gateway.running.pid },
    { name: 'reference', endpoint: { ...gateway.endpoint('/mcp'), port: reference.port }, pid: reference.running.pid }
  ]
  for (const { endpoint } of targets) await untilListed(gateway, endpoint, tools)
  const calls = quick ? 60 : 200
  const rounds = quick ? 3 : 5
  const compared = await compare({ targets, job: toolList(tools), load: { inFlight, calls }, rounds, say })
  return [`${inFlight} in flight, ${rounds} rounds of ${calls} lists each:`, compared].join('\n\n')
}
