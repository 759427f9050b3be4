import { tokensFor } from '../test/helpers/oauth.ts'
import { compare, type Load, type Target } from './compare.ts'
import { type Bench, builds, type GatewayOptions, type Measurement, startGateway } from './gateway.ts'
import { echoCall, largeCall, largeSize, modernEchoCall, plainEchoCall, toolList, type Job } from './session.ts'
import { httpServer, startEcho, startReference, stdioServer, waitUntilListed, type Listening } from './upstreams.ts'

const inFlight = 16

/** A row of a table: an endpoint of each build. `listed`: the tools that it lists; default 1. */
interface Row { name: string, path: string, listed?: number, job?: Job }

/** Compares targets under one load. `note` follows the load in the heading of the table. */
async function compared (
  { log }: Bench,
  { targets, job = echoCall, load, rounds, reference, note = '' }: {
    targets: Target[]
    job?: Job
    load: Load
    rounds: number
    reference?: string
    note?: string
  }
): Promise<string> {
  const what = job === echoCall ? 'calls' : 'requests'
  const table = await compare({ targets, job, reference, load, rounds, log })
  return `${load.inFlight} in flight, ${rounds} rounds of ${load.calls} ${what} each${note}:\n\n${table}`
}

/** Starts a gateway of each build, and waits until it lists its tools. Rows of other builds begin with the build's name. */
async function gatewayTargets (bench: Bench, options: GatewayOptions, rows: Row[]): Promise<Target[]> {
  const targets: Target[] = []
  for (const build of builds) {
    const gateway = await startGateway(bench, { ...options, command: build.command })
    for (const { name, path, listed = 1, job } of rows) {
      const endpoint = gateway.endpoint(path)
      if (!job?.isPlain) await waitUntilListed(gateway, endpoint, listed)
      targets.push({ name: build === builds[0] ? name : `${build.name}: ${name}`, endpoint, pid: gateway.running.pid, job })
    }
  }
  return targets
}

/** Starts a reference in front of an upstream, as a target. */
async function referenceTarget ({ processes }: Bench, upstream: Listening, name = 'reference'): Promise<Target> {
  const { port, running } = await startReference(processes, upstream)
  return { name, endpoint: { port, path: '/mcp', token: 'none' }, pid: running.pid }
}

const loads: Array<Load & { rounds: number }> = [
  { inFlight: 16, calls: 10_000, rounds: 9 },
  { inFlight: 1, calls: 3_000, rounds: 3 },
  { inFlight: 64, calls: 10_000, rounds: 3 }
]

/**
 * An echo call through the gateway, through the reference and directly to the upstream, with several numbers of calls
 * in flight. A second reference shows the noise.
 */
export const call: Measurement = {
  title: 'Echo call',
  run: async (bench) => {
    const { processes, quick } = bench
    const echo = await startEcho(processes)
    const targets: Target[] = [
      ...await gatewayTargets(bench, { mcpServers: { echo: httpServer(echo), pipe: stdioServer } }, [
        { name: 'gateway, HTTP upstream', path: '/mcp/echo' },
        { name: 'gateway, stdio upstream', path: '/mcp/pipe' }
      ]),
      await referenceTarget(bench, echo),
      await referenceTarget(bench, echo, 'reference again'),
      { name: 'direct', endpoint: { port: echo.port, path: '/mcp', token: 'none' } }
    ]
    const parts: string[] = []
    for (const { inFlight, calls, rounds } of loads) {
      const load = { inFlight, calls: quick ? calls / 5 : calls }
      parts.push(await compared(bench, { targets, load, rounds: quick ? Math.min(rounds, 3) : rounds }))
    }
    return parts.join('\n\n')
  }
}

/** An echo call through the gateway for clients and servers of both eras of MCP. */
export const modern: Measurement = {
  title: 'Echo call of both eras',
  run: async (bench) => {
    const { processes, quick } = bench
    const [echo, modernEcho] = [await startEcho(processes), await startEcho(processes, { modern: true })]
    const mcpServers = { legacy: httpServer(echo), modern: httpServer(modernEcho) }
    const targets = await gatewayTargets(bench, { mcpServers }, [
      { name: 'legacy client, legacy server', path: '/mcp/legacy' },
      { name: 'modern client, legacy server', path: '/mcp/legacy', job: modernEchoCall },
      { name: 'legacy client, modern server', path: '/mcp/modern' },
      { name: 'modern client, modern server', path: '/mcp/modern', job: modernEchoCall }
    ])
    const load = { inFlight, calls: quick ? 2_000 : 10_000 }
    return await compared(bench, { targets, load, rounds: quick ? 4 : 12, reference: 'legacy client, legacy server' })
  }
}

/**
 * An echo call over plain HTTP (`POST /api/tools/:server/:tool`) and over MCP. The reference passes the MCP call through
 * to the same upstream.
 */
export const plainCall: Measurement = {
  title: 'Echo call over plain HTTP',
  run: async (bench) => {
    const { processes, quick } = bench
    const echo = await startEcho(processes)
    const targets: Target[] = [
      ...await gatewayTargets(bench, { mcpServers: { echo: httpServer(echo) } }, [
        { name: 'MCP', path: '/mcp/echo' },
        { name: 'POST /api/tools', path: '/api/tools/echo/echo', job: plainEchoCall }
      ]),
      await referenceTarget(bench, echo)
    ]
    const load = { inFlight, calls: quick ? 2_000 : 10_000 }
    return await compared(bench, { targets, load, rounds: quick ? 3 : 5 })
  }
}

/** A call whose result has 64 KiB of text. The reference passes the same result through. */
export const large: Measurement = {
  title: `A result of ${largeSize / 1_024} KiB`,
  run: async (bench) => {
    const { processes, quick } = bench
    const echo = await startEcho(processes)
    const targets: Target[] = [
      ...await gatewayTargets(bench, { mcpServers: { echo: httpServer(echo), pipe: stdioServer } }, [
        { name: 'gateway, HTTP upstream', path: '/mcp/echo' },
        { name: 'gateway, stdio upstream', path: '/mcp/pipe' }
      ]),
      await referenceTarget(bench, echo)
    ]
    const load = { inFlight, calls: quick ? 600 : 2_000 }
    return await compared(bench, { targets, job: largeCall, load, rounds: quick ? 3 : 7 })
  }
}

const tools = 1_000

/** `tools/list` of 1,000 tools, of one server and of ten. The reference caches nothing: it fetches each list. */
export const list: Measurement = {
  title: 'tools/list of 1,000 tools',
  run: async (bench) => {
    const { processes, quick } = bench
    const many = await startEcho(processes, { tools })
    const part = await startEcho(processes, { tools: tools / 10 })
    const parts = Array.from({ length: 10 }, (_, i): [string, object] => [`part${i}`, httpServer(part, `/mcp/${i}`)])
    const targets: Target[] = [
      ...await gatewayTargets(bench, { mcpServers: { many: httpServer(many) } }, [
        { name: 'gateway', path: '/mcp/many', listed: tools }
      ]),
      ...await gatewayTargets(bench, { mcpServers: Object.fromEntries(parts) }, [
        { name: 'gateway, merged', path: '/mcp', listed: tools }
      ]),
      await referenceTarget(bench, many)
    ]
    const load = { inFlight: 4, calls: quick ? 400 : 2_000 }
    return await compared(bench, { targets, job: toolList(tools), load, rounds: quick ? 3 : 5 })
  }
}

/**
 * An echo call with an access token of the gateway's authorization server, and with a bearer key (the reference). The
 * CPU time may be 1.05 of the reference at most.
 */
export const token: Measurement = {
  title: 'Echo call with an access token',
  run: async (bench) => {
    const { processes, quick } = bench
    const admin = { username: 'admin', password: 'Bench-Of-Admins-1' }
    const echo = await startEcho(processes)
    const gateway = await startGateway(bench, {
      mcpServers: { echo: httpServer(echo) },
      system: { oauthServer: { enabled: true } },
      env: { ADMIN_PASSWORD: admin.password }
    })
    const endpoint = gateway.endpoint('/mcp/echo')
    await waitUntilListed(gateway, endpoint, 1)
    const { access_token: accessToken } = await tokensFor(`http://127.0.0.1:${gateway.port}`, admin)
    const { pid } = gateway.running
    const targets: Target[] = [
      { name: 'access token', endpoint: { ...endpoint, token: accessToken }, pid },
      { name: 'reference', endpoint, pid },
      { name: 'bearer key again', endpoint, pid }
    ]
    const load = { inFlight, calls: quick ? 4_000 : 10_000 }
    return await compared(bench, { targets, load, rounds: quick ? 3 : 10, note: '; the reference is a bearer key' })
  }
}
