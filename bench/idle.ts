import { get } from 'node:http'
import { type Bench, type Build, builds, type Measurement, startGateway } from './gateway.ts'
import { Connection } from './connection.ts'
import { drive } from './compare.ts'
import { echoCall, Session, type Endpoint } from './session.ts'
import { memoryOf, type Memory } from './processes.ts'
import { cell, table } from './statistics.ts'
import { waitUntilListed, httpServer, startEcho, type Listening } from './upstreams.ts'

/** The memory of an idle session, without a socket or with its GET stream open. */
export const idle: Measurement = { title: 'Idle sessions', run }

const rounds = 3

interface Held { before: Memory, after: Memory }

async function run (bench: Bench): Promise<string> {
  const sessions = bench.quick ? 500 : 2_000
  const echo = await startEcho(bench.processes)
  const rows: string[][] = []
  for (const [streams, build] of [false, true].flatMap((streams) => builds.map((build): [boolean, Build] => [streams, build]))) {
    const name = `${build === builds[0] ? '' : `${build.name}: `}${streams ? 'with an open GET stream' : 'without a socket'}`
    const held: Held[] = []
    for (let round = 1; round <= rounds; round++) {
      held.push(await hold(bench, build, echo, sessions, streams))
      bench.log(`${name}, round ${round}/${rounds}: ${perSession(held.slice(-1), 'collected', sessions)} KiB a session`)
    }
    rows.push([
      name,
      cell(perSession(held, 'heap', sessions), 1),
      cell(perSession(held, 'collected', sessions), 1),
      cell(perSession(held, 'standing', sessions), 1),
      cell(held.map(({ before }) => before.collected / 1_024), 0)
    ])
  }
  const header = [
    `${sessions} sessions`,
    'heap, KiB each',
    'RSS after a collection, KiB each',
    'RSS as it stands, KiB each',
    'RSS of the gateway before, MiB'
  ]
  return [
    `Each of ${rounds} rounds on a gateway just started, after ${2 * sessions} plain calls. The growth, divided by the sessions. ` +
      'As it stands: 2 s after the last session, garbage included. RSS grows only once the pages that the warm-up left free ' +
      'are used up: the heap is the steadier figure.',
    table(header, rows)
  ].join('\n\n')
}

/** Opens `sessions` sessions on a new gateway, and measures its memory before and after. */
async function hold (bench: Bench, { command }: Build, echo: Listening, sessions: number, streams: boolean): Promise<Held> {
  const gateway = await startGateway(bench, { mcpServers: { echo: httpServer(echo) }, probe: true, command })
  const endpoint = gateway.endpoint('/mcp/echo')
  await waitUntilListed(gateway, endpoint, 1)
  await drive(endpoint, echoCall, { calls: 2 * sessions, inFlight: 8 })
  const before = await memoryOf(gateway.running)
  const closers = await open(endpoint, sessions, streams)
  const after = await memoryOf(gateway.running)
  for (const close of closers) close()
  await bench.processes.stop(gateway.running)
  return { before, after }
}

/** Opens the sessions over one connection, which is then closed. Returns functions that close the GET streams. */
async function open (endpoint: Endpoint, sessions: number, streams: boolean): Promise<Array<() => void>> {
  const connection = await Connection.open(endpoint.port)
  const closers: Array<() => void> = []
  try {
    for (let i = 0; i < sessions; i++) {
      const { id } = await Session.open(connection, endpoint)
      if (streams) closers.push(await listen(endpoint, id))
    }
    return closers
  } finally {
    connection.close()
  }
}

/** Opens a session's GET stream on a socket of its own, and waits for its head. Returns a function that closes it. */
async function listen ({ port, path, token }: Endpoint, session: string): Promise<() => void> {
  return await new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      accept: 'text/event-stream',
      'mcp-session-id': session,
      'mcp-protocol-version': '2025-11-25'
    }
    const request = get({ host: '127.0.0.1', port, path, headers, agent: false, timeout: 10_000 }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${path} answered GET with ${response.statusCode}`))
      response.on('error', () => {}).resume()
      request.setTimeout(0)
      resolve(() => { request.destroy() })
    })
    request.on('timeout', () => { request.destroy(new Error('no head of a GET stream within 10 s')) })
    request.on('error', reject)
  })
}

/** The growth of a figure in each round, in KiB per session. */
function perSession (held: Held[], figure: keyof Memory, sessions: number): number[] {
  return held.map(({ before, after }) => (after[figure] - before[figure]) / sessions)
}
