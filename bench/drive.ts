import { Connection } from './connection.ts'
import { Session, resultOf, type Endpoint } from './session.ts'
import { cpuTime } from './cpu.ts'

/** A JSON-RPC request that can be sent again and again. `id` counts from 1. */
export interface Job {
  /** The request as JSON text. */
  request: (id: number) => string
  /** Whether this `result` is the right one for that id. */
  right: (result: unknown, id: number) => boolean
}

export interface Load { calls: number, inFlight: number }

/** What a drive took: CPU of the process that was given, wall clock, each call's latency; all in ms. */
export interface Driven { cpu: number, wall: number, latencies: number[] }

/** One session, `calls` requests of it with `inFlight` under way at any time, each on its own connection; throws at the first wrong answer. */
export async function drive (endpoint: Endpoint, job: Job, { calls, inFlight }: Load, pid?: number): Promise<Driven> {
  const connections = await Promise.all(Array.from({ length: inFlight }, async () => await Connection.open(endpoint.port)))
  try {
    const [first] = connections
    if (first === undefined) throw new Error('nothing in flight')
    const session = await Session.open(first, endpoint)
    const latencies: number[] = []
    let sent = 0
    const work = async (connection: Connection): Promise<void> => {
      while (sent < calls) {
        const id = ++sent
        const began = performance.now()
        const answer = await connection.send(session.encode(job.request(id)))
        latencies.push(performance.now() - began)
        if (!job.right(resultOf(answer, id), id)) throw new Error(`wrong answer to request ${id}: ${answer.body.slice(0, 500)}`)
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
