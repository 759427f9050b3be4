/** The spread of the values of several rounds. */
export interface Spread { median: number, min: number, max: number }

export function spread (values: number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  return { median: quantile(sorted, 0.5), min: quantile(sorted, 0), max: quantile(sorted, 1) }
}

/** The quantile of values in ascending order, with linear interpolation. */
export function quantile (sorted: ArrayLike<number>, fraction: number): number {
  const position = fraction * (sorted.length - 1)
  const low = sorted[Math.floor(position)] ?? NaN
  const high = sorted[Math.ceil(position)] ?? NaN
  return low + (high - low) * (position - Math.floor(position))
}

/** The values of several rounds as `median (min–max)`. */
export function cell (values: number[], digits: number): string {
  const { median, min, max } = spread(values)
  return `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`
}

/** A Markdown table, the first column aligned left, the others right. */
export function table (header: string[], rows: string[][]): string {
  const rule = header.map((_, i) => i === 0 ? '---' : '---:')
  return [header, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
