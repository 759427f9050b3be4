import { writeFileSync } from 'node:fs'

const file = new URL('chart.svg', import.meta.url)

/** What is drawn: a row of a section of RESULTS.md. */
const bars = [
  { section: 'Echo call', row: 'gateway, HTTP upstream', label: 'call to an HTTP server' },
  { section: 'Echo call', row: 'gateway, stdio upstream', label: 'call to a stdio server' },
  { section: 'Echo call over plain HTTP', row: 'POST /api/tools', label: 'call over plain HTTP' },
  { section: 'A result of 64 KiB', row: 'gateway, HTTP upstream', label: 'result of 64 KiB' },
  { section: 'tools/list of 1,000 tools', row: 'gateway', label: 'list of 1,000 tools' }
]
/** In pixels. */
const size = { line: 28, left: 170, width: 640, unit: 170 }

/** Draws the CPU time of calls relative to the pass-through proxy. @param results the text of RESULTS.md */
export function writeChart (results: string): void {
  const drawn = bars.flatMap(({ section, row, label }) => {
    const ratio = ratioOf(results, section, row)
    return ratio === undefined ? [] : [{ ratio, label }]
  })
  const height = size.line * (drawn.length + 1)
  const lines = drawn.map(({ ratio, label }, at) => {
    const y = size.line * at + 4
    const width = Math.round(Math.min(ratio * size.unit, size.width - size.left - 40))
    return `<text x="${size.left - 8}" y="${y + 15}" text-anchor="end">${label}</text>` +
      `<rect x="${size.left}" y="${y}" width="${width}" height="20" rx="3" fill="#3b82f6"/>` +
      `<text x="${size.left + width + 6}" y="${y + 15}">${ratio.toFixed(2)}</text>`
  })
  const one = size.left + size.unit
  const line = `<path d="M${one} 0V${height - size.line}" stroke="#9ca3af" stroke-dasharray="4 3"/>`
  const foot = `<text x="${one}" y="${height - 9}" text-anchor="middle">1.00: a bare node:http proxy</text>`
  writeFileSync(file, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${height}" width="${size.width}" ` +
    'font-family="system-ui, sans-serif" font-size="13" fill="#6b7280" role="img" ' +
    `aria-label="CPU time relative to a bare proxy">\n${[...lines, line, foot].join('\n')}\n</svg>\n`)
}

/** The first ratio of CPU time in a row of a section: that with 16 in flight. */
function ratioOf (results: string, section: string, row: string): number | undefined {
  const text = results.split(/^## /m).find((each) => each.startsWith(`${section}\n`)) ?? ''
  const cells = text.split('\n').find((line) => line.startsWith(`| ${row} |`))?.split('|')
  const ratio = Number.parseFloat(cells?.[3] ?? '')
  return Number.isFinite(ratio) ? ratio : undefined
}
