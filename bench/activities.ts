import { tmpdir } from 'node:os'
import { createQueryRunner } from '../db/postgres/connection/query-runner.ts'
import { openDatabase } from '../db/postgres/open.ts'
import { PostgresActivities } from '../db/postgres/ports/activities.ts'
import { makeView, type Principal } from '../plugins/settings/access/view.ts'
import type { FinishedCall } from '../plugins/gateway/hooks.ts'
import { openVault } from '../plugins/base/secrets/vault.ts'
import { PlainExchange } from '../plugins/downstream/tools/exchange.ts'
import { Cluster } from '../test/helpers/database.ts'
import type { Bench, Measurement } from './bench.ts'
import { compare, type Target } from './compare.ts'
import { startGateway, type Gateway } from './gateway.ts'
import { echoCall } from './jobs.ts'
import { costOfRecording } from './recording.ts'
import { waitUntilListed } from './tools.ts'
import { httpServer, startEcho } from './upstreams.ts'

/**
 * An echo call that is recorded in a PostgreSQL, in turns with one on a gateway that records nothing (ACTIVITY_RETENTION=0), each with a
 * database of its own. The recorded call may cost 0.02 ms of CPU more. The CPU time of PostgreSQL is not counted; but while it works, the
 * gateway's core is slower, so what the gateway itself does for a record is measured alone as well.
 */
export const activities: Measurement = { title: 'Echo call with the record of calls', run }

const inFlight = 16

async function run (bench: Bench): Promise<string> {
  const { processes, quick, log } = bench
  const echo = await startEcho(processes)
  const cluster = await Cluster.create({ fsync: 'off' })
  try {
    const alone = await measureAlone(await cluster.make('alone'))
    const start = async (name: string, retention: string): Promise<Gateway> => await startGateway(bench, {
      mcpServers: { echo: httpServer(echo) },
      env: { DB_URL: await cluster.make(name), ACTIVITY_RETENTION: retention }
    })
    const gateways: Array<[string, Gateway]> = [
      ['recorded', await start('recorded', '30d')],
      ['reference', await start('reference', '0')],
      ['not recorded again', await start('again', '0')]
    ]
    const targets: Target[] = gateways.map(([name, gateway]) => ({ name, endpoint: gateway.endpoint('/mcp/echo'), pid: gateway.running.pid }))
    for (const [, gateway] of gateways) await waitUntilListed(gateway, gateway.endpoint('/mcp/echo'), 1)
    const load = { inFlight, calls: quick ? 4_000 : 20_000 }
    const rounds = quick ? 3 : 10
    const compared = await compare({ targets, job: echoCall, load, rounds, log })
    return `${inFlight} in flight, ${rounds} rounds of ${load.calls} calls each; the reference records nothing:\n\n${compared}\n\n` +
      `What the gateway does for one record, in a process that does nothing else: ${alone.toFixed(3)} ms of CPU.`
  } finally {
    // Before the database, so that they do not wait for it.
    await processes.stopAll()
    await cluster.remove()
  }
}

/** @returns the CPU time of recording one call, in ms */
async function measureAlone (dbUrl: string): Promise<number> {
  const driver = await openDatabase({ dbUrl, startupTimeout: 20, info: () => {}, warn: () => {} })
  const vault = await openVault({ dataDir: tmpdir(), encryptionKey: 'a key of this bench' })
  try {
    return await costOfRecording(new PostgresActivities(createQueryRunner(driver, () => undefined), vault), finishedCall)
  } finally {
    await driver.end()
  }
}

const principal: Principal = { kind: 'anonymous', key: 'anonymous', user: 'anonymous', isAdmin: false }

function finishedCall (): FinishedCall {
  const params = { name: 'echo-echo', arguments: { message: 'hello there' } }
  const origin = { headers: {}, address: '127.0.0.1' }
  return {
    exchange: new PlainExchange(makeView(principal, { kind: 'global' }), 'tools/call', params, origin),
    provider: 'echo',
    item: 'echo',
    startedAt: performance.now(),
    trace: undefined,
    duration: 1.5,
    outcome: 'ok',
    output: JSON.stringify({ content: [{ type: 'text', text: 'hello there' }] }),
    error: undefined
  }
}
