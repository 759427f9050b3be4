import { spread } from './statistics.ts'

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
