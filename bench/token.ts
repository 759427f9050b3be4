import { tokensFor } from '../test/helpers/oauth.ts'
import type { Bench, Measurement } from './bench.ts'
import { compare, type Target } from './compare.ts'
import { startGateway } from './gateway.ts'
import { echoCall } from './jobs.ts'
import { waitUntilListed } from './tools.ts'
import { httpServer, startEcho } from './upstreams.ts'

/**
 * An echo call with an access token of the gateway's authorization server, in turns with the same call with a bearer key (the reference),
 * on one gateway. The CPU time may be 1.05 of the reference at most.
 */
export const token: Measurement = { title: 'Echo call with an access token', run }

const inFlight = 16

async function run (bench: Bench): Promise<string> {
  const { processes, quick, log } = bench
  const person = { username: 'admin', password: 'Bench-Of-Admins-1' }
  const echo = await startEcho(processes)
  const gateway = await startGateway(bench, {
    mcpServers: { echo: httpServer(echo) },
    system: { oauthServer: { enabled: true } },
    env: { ADMIN_PASSWORD: person.password }
  })
  const endpoint = gateway.endpoint('/mcp/echo')
  await waitUntilListed(gateway, endpoint, 1)
  const { access_token: accessToken } = await tokensFor(`http://127.0.0.1:${gateway.port}`, person)
  const { pid } = gateway.running
  const targets: Target[] = [
    { name: 'access token', endpoint: { ...endpoint, token: accessToken }, pid },
    { name: 'reference', endpoint, pid },
    { name: 'bearer key again', endpoint, pid }
  ]
  const load = { inFlight, calls: quick ? 4_000 : 10_000 }
  const rounds = quick ? 3 : 10
  const compared = await compare({ targets, job: echoCall, load, rounds, log })
  return `${inFlight} in flight, ${rounds} rounds of ${load.calls} calls each; the reference is a bearer key:\n\n${compared}`
}
