import { Connection } from './connection.ts'
import { ModernRequests, PlainRequests, Session, type Endpoint } from './session.ts'
import { cpuTime } from './cpu.ts'

/** A request that is sent many times: by default of JSON-RPC. `id` counts from 1. */
export interface Job {
  /** The body of the request as JSON text. */
  request: (id: number) => string
  /** Whether a `result` is correct for the request with this id. */
  isCorrect: (result: unknown, id: number) => boolean
  /** The request is plain HTTP, without a session, and the body of the response is the result. */
  isPlain?: true
  /** The name that the headers of MCP 2026-07-28 repeat: the request is one of that revision, without a session. */
  modern?: { method: string, name: string }
}

export interface Load { calls: number, inFlight: number }

/** The cost of a drive in ms: CPU time of the measured process, wall-clock time, and each call's latency. */
export interface Driven { cpu: number, wall: number, latencies: number[] }

/**
 * Sends `calls` requests, in one session where they are MCP's, with `inFlight` at any time, each on its own connection.
 * @throws at the first wrong response
 */
export async function drive (endpoint: Endpoint, job: Job, { calls, inFlight }: Load, pid?: number): Promise<Driven> {
  const connections = await Promise.all(Array.from({ length: inFlight }, async () => await Connection.open(endpoint.port)))
  try {
    const [first] = connections
    if (first === undefined) throw new Error('nothing in flight')
    const session = job.isPlain
      ? new PlainRequests(endpoint)
      : job.modern ? new ModernRequests(endpoint, job.modern) : await Session.open(first, endpoint)
    const latencies: number[] = []
    let sent = 0
    const work = async (connection: Connection): Promise<void> => {
      while (sent < calls) {
        const id = ++sent
        const began = performance.now()
        const response = await connection.send(session.encode(job.request(id)))
        latencies.push(performance.now() - began)
        if (!job.isCorrect(session.resultOf(response, id), id)) throw new Error(`wrong response to request ${id}: ${response.body.slice(0, 500)}`)
      }
    }
    const used = (): number => pid === undefined ? 0 : cpuTime(pid)
    const cpuBefore = used()
    const began = performance.now()
    await Promise.all(connections.map(work))
    const wall = performance.now() - began
    const cpu = used() - cpuBefore
    await session.end(first)
    return { cpu, wall, latencies }
  } finally {
    for (const connection of connections) connection.close()
  }
}
