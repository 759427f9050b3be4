import { tokensFor } from '../test/helpers/oauth.ts'
import { compare, type Load, type Target } from './compare.ts'
import { type Bench, type Measurement, startGateway } from './gateway.ts'
import { echoCall, modernEchoCall, plainEchoCall, toolList, type Job } from './session.ts'
import { httpServer, startEcho, startReference, stdioServer, waitUntilListed } from './upstreams.ts'

const inFlight = 16

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
  const what = job === echoCall ? 'calls' : 'lists'
  const table = await compare({ targets, job, reference, load, rounds, log })
  return `${load.inFlight} in flight, ${rounds} rounds of ${load.calls} ${what} each${note}:\n\n${table}`
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
    const reference = await startReference(processes, echo)
    const again = await startReference(processes, echo)
    const gateway = await startGateway(bench, { mcpServers: { echo: httpServer(echo), pipe: stdioServer } })
    const { pid } = gateway.running
    const direct = gateway.endpoint('/mcp')
    const targets: Target[] = [
      { name: 'gateway, HTTP upstream', endpoint: gateway.endpoint('/mcp/echo'), pid },
      { name: 'gateway, stdio upstream', endpoint: gateway.endpoint('/mcp/pipe'), pid },
      { name: 'reference', endpoint: { ...direct, port: reference.port }, pid: reference.running.pid },
      { name: 'reference again', endpoint: { ...direct, port: again.port }, pid: again.running.pid },
      { name: 'direct', endpoint: { ...direct, port: echo.port } }
    ]
    for (const { endpoint } of targets) await waitUntilListed(gateway, endpoint, 1)
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
    const gateway = await startGateway(bench, { mcpServers })
    const { pid } = gateway.running
    const [toLegacy, toModern] = [gateway.endpoint('/mcp/legacy'), gateway.endpoint('/mcp/modern')]
    const targets: Target[] = [
      { name: 'legacy client, legacy server', endpoint: toLegacy, pid },
      { name: 'modern client, legacy server', endpoint: toLegacy, pid, job: modernEchoCall },
      { name: 'legacy client, modern server', endpoint: toModern, pid },
      { name: 'modern client, modern server', endpoint: toModern, pid, job: modernEchoCall }
    ]
    for (const { endpoint } of targets) await waitUntilListed(gateway, endpoint, 1)
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
    const reference = await startReference(processes, echo)
    const gateway = await startGateway(bench, { mcpServers: { echo: httpServer(echo) } })
    const { pid } = gateway.running
    const endpoint = gateway.endpoint('/mcp/echo')
    const targets: Target[] = [
      { name: 'POST /api/tools', endpoint: gateway.endpoint('/api/tools/echo/echo'), pid, job: plainEchoCall },
      { name: 'MCP', endpoint, pid },
      { name: 'reference', endpoint: { ...gateway.endpoint('/mcp'), port: reference.port }, pid: reference.running.pid }
    ]
    await waitUntilListed(gateway, endpoint, 1)
    const load = { inFlight, calls: quick ? 2_000 : 10_000 }
    return await compared(bench, { targets, load, rounds: quick ? 3 : 5 })
  }
}

const tools = 1_000

/** `tools/list` of 1,000 tools. The reference fetches every list from the upstream, since it caches nothing. */
export const list: Measurement = {
  title: 'tools/list of 1,000 tools',
  run: async (bench) => {
    const { processes, quick } = bench
    const many = await startEcho(processes, { tools })
    const reference = await startReference(processes, many)
    const gateway = await startGateway(bench, { mcpServers: { many: httpServer(many) } })
    const targets: Target[] = [
      { name: 'gateway', endpoint: gateway.endpoint('/mcp/many'), pid: gateway.running.pid },
      { name: 'reference', endpoint: { ...gateway.endpoint('/mcp'), port: reference.port }, pid: reference.running.pid }
    ]
    for (const { endpoint } of targets) await waitUntilListed(gateway, endpoint, tools)
    const load = { inFlight: 4, calls: quick ? 60 : 200 }
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
