/** What several rounds gave. */
export interface Spread { median: number, min: number, max: number }

export function spread (values: number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  return { median: quantile(sorted, 0.5), min: quantile(sorted, 0), max: quantile(sorted, 1) }
}

/** The value below which the fraction lies, from values in ascending order (between two of them: in proportion). */
export function quantile (sorted: ArrayLike<number>, fraction: number): number {
  const place = fraction * (sorted.length - 1)
  const low = sorted[Math.floor(place)] ?? NaN
  const high = sorted[Math.ceil(place)] ?? NaN
  return low + (high - low) * (place - Math.floor(place))
}
