import { drive, type Driven, type Job, type Load } from './drive.ts'
import { figuresOf, type Figures } from './figures.ts'
import type { Endpoint } from './session.ts'
import { cell, table } from './table.ts'

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
