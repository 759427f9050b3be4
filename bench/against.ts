import { type Bench, type Measurement, startGateway, type Gateway } from './gateway.ts'
import { compare, type Comparison, type Target } from './compare.ts'
import { echoCall, toolList } from './session.ts'
import { waitUntilListed, httpServer, startEcho, stdioServer } from './upstreams.ts'

/** The `dist/server.js` of another build, for example of an earlier commit. */
export const otherBuild = process.env.BENCH_AGAINST

/** This build against another one, in turns within one run. A second process of the other build shows the noise. */
export const against: Measurement = { title: 'Against another build', run }

const tools = 1_000

/** What is compared: the path of the endpoint, and the load of one round. */
const parts = [
  { name: 'echo call over HTTP', path: '/mcp/echo', listed: 1, job: echoCall, load: { inFlight: 16, calls: 10_000 } },
  { name: 'echo call over stdio', path: '/mcp/pipe', listed: 1, job: echoCall, load: { inFlight: 16, calls: 10_000 } },
  { name: 'tools/list of 1,000 tools', path: '/mcp/many', listed: tools, job: toolList(tools), load: { inFlight: 4, calls: 200 } }
] as const

async function run (bench: Bench): Promise<string> {
  if (otherBuild === undefined) throw new Error('BENCH_AGAINST must name the dist/server.js of another build')
  const { processes, quick, log } = bench
  const mcpServers = {
    echo: httpServer(await startEcho(processes)),
    pipe: stdioServer,
    many: httpServer(await startEcho(processes, { tools }))
  }
  const other = [process.execPath, otherBuild]
  const gateways: Array<[string, Gateway]> = [
    ['this build', await startGateway(bench, { mcpServers })],
    ['reference', await startGateway(bench, { mcpServers, command: other })],
    ['reference again', await startGateway(bench, { mcpServers, command: other })]
  ]
  const rounds = quick ? 3 : 10
  const texts: string[] = []
  for (const { name, path, listed, job, load } of parts) {
    const targets: Target[] = gateways.map(([name, gateway]) => ({ name, endpoint: gateway.endpoint(path), pid: gateway.running.pid }))
    for (const [, gateway] of gateways) await waitUntilListed(gateway, gateway.endpoint(path), listed)
    const comparison: Comparison = { targets, job, load, rounds, log: (progress) => { log(`${name}: ${progress}`) } }
    texts.push(`${name}, ${load.inFlight} in flight, ${rounds} rounds of ${load.calls} each:`, await compare(comparison))
  }
  return texts.join('\n\n')
}
