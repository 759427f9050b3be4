import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { basename } from 'node:path'
import { writeChart } from './chart.ts'
import { override } from './gateway.ts'
import { referenceFile } from './upstreams.ts'

const file = new URL('RESULTS.md', import.meta.url)

const introduction = `# Measured

Written by \`npm run bench\` (\`-- --quick\`, \`-- --only call,list\`; bench/run.ts has the names). BENCH_AGAINST names the \`dist/server.js\`
of another build, which is measured beside this one in the same run; BENCH_MCP_HUB the folder of the package mcp-hub, to compare the start
with. Figures are the median of the rounds, with (minimum–maximum).
Ratios are to the reference, a bare node:http pass-through proxy in front of the same upstream, within the same round, in which all targets
alternate many times a second; the row of a second reference shows the remaining noise. CPU is that of the measured process with all its
threads, without client and upstream.
`

/** The conditions of a run on one line: date, machine, reference. Figures of quick runs are too noisy to be compared. */
export function machine (quick: boolean): string {
  const cores = cpus()
  const load = loadavg()[0]?.toFixed(1) ?? '?'
  return (
    `${new Date().toISOString().slice(0, 10)} · ${cores.length} × ${cores[0]?.model.trim() ?? 'unknown CPU'} · ` +
    `Node ${process.version} · ` +
    `load ${load} at the start · reference ${basename(referenceFile)}` +
    `${override === undefined ? '' : ` · in the gateway's place: ${override}`}${quick ? ' · quick' : ''}`
  )
}

/**
 * Replaces one section of RESULTS.md; the others stay as they are, and those that no benchmark writes come last.
 * @param order the titles of all benchmarks, in the order of the sections
 * @returns the whole text
 */
export function writeResults (title: string, section: string, order: string[]): string {
  const sections = new Map([...read(), [title, section]])
  const others = [...sections.keys()].filter((heading) => !order.includes(heading))
  const text = [
    introduction,
    ...[...order, ...others].filter((heading) => sections.has(heading)).map((heading) => `## ${heading}\n\n${sections.get(heading) ?? ''}\n`)
  ].join('\n')
  writeFileSync(file, text)
  writeChart(text)
  return text
}

function read (): Array<[string, string]> {
  return (existsSync(file) ? readFileSync(file, 'utf8') : '').split(/^## /m).slice(1).map((section) => {
    const line = section.indexOf('\n')
    return [section.slice(0, line), section.slice(line).trim()]
  })
}
