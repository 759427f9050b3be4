import type { Driven } from './drive.ts'
import { quantile } from './statistics.ts'

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
