import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { basename } from 'node:path'
import { override } from './gateway.ts'
import { referenceFile } from './upstreams.ts'

const file = new URL('RESULTS.md', import.meta.url)

const introduction = `# Measured

Written by \`npm run bench\` (\`-- --quick\`, \`-- --only call,list,idle,start\`). Figures are the median of the rounds, with (minimum–maximum).
A ratio is to the reference, a bare node:http pass-through proxy before the same upstream, within the same round, where all take turns many
times a second; what noise is left shows in the row of a second reference. CPU is the measured process's own, all threads, neither client's nor upstream's.
`

/** One line: when, on what, against what. Quick runs are for a look, not for comparing. */
export function machine (quick: boolean): string {
  const cores = cpus()
  const load = loadavg()[0]?.toFixed(1) ?? '?'
  return (
    `${new Date().toISOString().slice(0, 10)} · ${cores.length} × ${cores[0]?.model.trim() ?? 'unknown CPU'} · Node ${process.version} · ` +
    `load ${load} at the start · reference ${basename(referenceFile)}${override === undefined ? '' : ` · in the gateway's place: ${override}`}${quick ? ' · quick' : ''}`
  )
}

/** Puts a section in its place in RESULTS.md, where `order` says which headings there are; the others stay as they were. Answers the whole text. */
export function writeResults (title: string, section: string, order: string[]): string {
  const sections = new Map([...read(), [title, section]])
  const text = [
    introduction,
    ...order.filter((heading) => sections.has(heading)).map((heading) => `## ${heading}\n\n${sections.get(heading) ?? ''}\n`)
  ].join('\n')
  writeFileSync(file, text)
  return text
}

function read (): Array<[string, string]> {
  return (existsSync(file) ? readFileSync(file, 'utf8') : '').split(/^## /m).slice(1).map((section) => {
    const line = section.indexOf('\n')
    return [section.slice(0, line), section.slice(line).trim()]
  })
}
