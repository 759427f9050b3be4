import { type Endpoint, ModernRequests, PlainRequests, Session, type Job } from './session.ts'
import { cell, table, quantile } from './statistics.ts'
import { Connection } from './connection.ts'
import { cpuTime } from './processes.ts'

/** An endpoint to measure. Its CPU time is measured if its pid is given. `job`: its own, in place of the comparison's. */
export interface Target { name: string, endpoint: Endpoint, pid?: number, job?: Job }

export interface Comparison {
  /** Measured alternately. */
  targets: Target[]
  job: Job
  /** The name of the target that ratios are taken to; by default `reference`. */
  reference?: string
  /** The calls of one round. */
  load: Load
  rounds: number
  log: (progress: string) => void
}

/** Figures by the target's name. */
type Round = Map<string, Figures>

/** Slices of a round: the machine's speed drifts within seconds, so the targets alternate many times a second. */
const slices = 20

const columns = [['cpu', 3], ['rate', 0], ['p50', 2], ['p99', 2]] as const
const header = ['', 'CPU ms per call', 'ratio', 'calls/s', 'ratio', 'p50 ms', 'ratio', 'p99 ms', 'ratio']

/** Measures all targets in rounds, after one for warming up. Returns a Markdown table, whose ratios are taken within each round. */
export async function compare ({ targets, job, reference = 'reference', load, rounds, log }: Comparison): Promise<string> {
  const measured: Round[] = []
  for (let number = 0; number <= rounds; number++) {
    const round = await measure(targets, job, load)
    const progress = [...round].map(([name, { cpu, rate }]) => `${name} ${cpu > 0 ? `${cpu.toFixed(3)} ms, ` : ''}${rate.toFixed(0)}/s`)
    log(`${load.inFlight} in flight, ${number === 0 ? 'warm-up' : `round ${number}/${rounds}`}: ${progress.join(' · ')}`)
    if (number > 0) measured.push(round)
  }
  return table(header, targets.map(({ name, pid }) => [name, ...columns.flatMap(([figure, digits]) => {
    if (figure === 'cpu' && pid === undefined) return ['–', '–']
    const ours = measured.map((round) => round.get(name)?.[figure] ?? NaN)
    const ratios = measured.map((round, i) => (ours[i] ?? NaN) / (round.get(reference)?.[figure] ?? NaN))
    return [cell(ours, digits), cell(ratios, 2)]
  })]))
}

/** One round in slices, which go over the targets forward and backward by turns. */
async function measure (targets: Target[], job: Job, { calls, inFlight }: Load): Promise<Round> {
  const drives = new Map(targets.map(({ name }): [string, Driven[]] => [name, []]))
  for (let slice = 0; slice < slices; slice++) {
    for (const { name, endpoint, pid, job: own = job } of slice % 2 === 0 ? targets : targets.toReversed()) {
      drives.get(name)?.push(await drive(endpoint, own, { calls: Math.ceil(calls / slices), inFlight }, pid))
    }
  }
  return new Map([...drives].map(([name, driven]) => [name, figuresOf(driven)]))
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

/** The figures of one round of one target: CPU in ms per call, calls per second, latencies in ms. */
export interface Figures { cpu: number, rate: number, p50: number, p99: number }

/** The figures of several drives, taken together. */
export function figuresOf (drives: Driven[]): Figures {
  const latencies = Float64Array.from(drives.flatMap(({ latencies }) => latencies)).sort()
  const sum = (figure: 'cpu' | 'wall'): number => drives.reduce((total, drive) => total + drive[figure], 0)
  return {
    cpu: sum('cpu') / latencies.length,
    rate: latencies.length / sum('wall') * 1_000,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99)
  }
}
