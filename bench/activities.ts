import { tmpdir } from 'node:os'
import { createQueryRunner } from '../db/postgres/connection/query-runner.ts'
import { openDatabase } from '../db/postgres/open.ts'
import { PostgresActivities } from '../db/postgres/ports/activities.ts'
import { makeView, type Principal } from '../plugins/settings/access/view.ts'
import type { FinishedCall } from '../plugins/gateway/hooks.ts'
import { openVault } from '../plugins/base/secrets/vault.ts'
import { PlainHttpExchange } from '../plugins/downstream/tools/exchange.ts'
import { Cluster } from '../test/helpers/database.ts'
import { type Bench, type Measurement, startGateway, type Gateway } from './gateway.ts'
import { compare, type Target } from './compare.ts'
import { echoCall } from './session.ts'
import { waitUntilListed, httpServer, startEcho } from './upstreams.ts'
import type { Activities } from '../db/ports/activities.ts'
import { toActivity } from '../plugins/extensions/activities/describe.ts'
import { ActivityRecorder } from '../plugins/extensions/activities/recorder.ts'
import { createConfigRedactor } from '../plugins/base/secrets/redact.ts'
import { spread } from './statistics.ts'

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
    const targets: Target[] = gateways.map(([name, gateway]) =>
      ({ name, endpoint: gateway.endpoint('/mcp/echo'), pid: gateway.running.pid }))
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
    return await costOfRecording(new PostgresActivities(createQueryRunner(driver, () =>
      undefined), vault), finishedCall)
  } finally {
    await driver.end()
  }
}

const principal: Principal = { kind: 'anonymous', key: 'anonymous', user: 'anonymous', isAdmin: false }

function finishedCall (): FinishedCall {
  const result = JSON.stringify({ content: [{ type: 'text', text: 'hello there' }] })
  const params = { name: 'echo-echo', arguments: { message: 'hello there' } }
  const origin = { headers: {}, address: '127.0.0.1' }
  return {
    exchange: new PlainHttpExchange(makeView(principal, { kind: 'global' }), 'tools/call', params, origin),
    provider: 'echo',
    item: 'echo',
    startedAt: performance.now(),
    trace: undefined,
    policy: undefined,
    duration: 1.5,
    outcome: 'ok',
    output: result,
    answer: result,
    isToolError: false,
    error: undefined
  }
}

const batches = 40
const batch = 500
const rounds = 7

/**
 * The CPU time of this process for recording one call, in ms: what the gateway does for it, without the rest of the call and without what
 * it costs that the other core works.
 * @param call one that has just ended
 */
export async function costOfRecording (store: Activities, call: () => FinishedCall): Promise<number> {
  const redact = createConfigRedactor({ url: 'http://127.0.0.1:1/mcp', headers: { authorization: 'Bearer of the upstream' } })
  const recorder = new ActivityRecorder({
    store,
    describe: (each) => toActivity(each, { includesPayloads: true, redact: (_server, text) => redact(text) }),
    isStorageAway: () => false,
    bounds: { entries: batch * 2, size: 2 ** 30 },
    log: () => {}
  })
  const times: number[] = []
  for (let round = 0; round <= rounds; round++) {
    let cpu = 0
    for (let n = 0; n < batches; n++) {
      const calls = Array.from({ length: batch }, call)
      const before = process.cpuUsage()
      for (const each of calls) recorder.record(each)
      await written(recorder)
      const { user, system } = process.cpuUsage(before)
      cpu += user + system
    }
    if (round > 0) times.push(cpu / 1_000 / batches / batch)
  }
  await recorder.close(10_000)
  if (recorder.shedCount > 0) throw new Error(`${recorder.shedCount} calls were not recorded`)
  return spread(times).median
}

async function written (recorder: ActivityRecorder): Promise<void> {
  while (recorder.waitingCount > 0) await new Promise((resolve) => { setTimeout(resolve, 1) })
}
