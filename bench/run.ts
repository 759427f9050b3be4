import { parseArgs } from 'node:util'
import { ensureBuilt, override } from './gateway.ts'
import { activities } from './activities.ts'
import { call, large, list, modern, plainCall, token } from './calls.ts'
import { commandLine } from './command-line.ts'
import { compression } from './compression.ts'
import { consolePages } from './console.ts'
import { idle } from './idle.ts'
import { installation } from './installation.ts'
import { makeWorkplace } from './processes.ts'
import { machine, writeResults } from './results.ts'
import { rest } from './rest.ts'
import { restart } from './restart.ts'
import { search } from './search.ts'
import { start } from './start.ts'

const all = {
  call,
  modern,
  plain: plainCall,
  large,
  list,
  token,
  activities,
  search,
  compression,
  console: consolePages,
  idle,
  start,
  restart,
  rest,
  cli: commandLine,
  installation
}
/** In ms. */
const timeout = 60 * 60_000

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string', default: Object.keys(all).join(',') } }
})
const wanted = values.only.split(',')
const unknown = wanted.filter((name) => !Object.hasOwn(all, name))
if (unknown.length > 0) throw new Error(`--only takes ${Object.keys(all).join(', ')}; not ${unknown.join(', ')}`)

const { folder, processes } = makeWorkplace()
setTimeout(() => {
  process.stderr.write(`stopped after ${timeout / 60_000} minutes\n`)
  process.exit(1)
}, timeout).unref()

if (override === undefined) ensureBuilt((progress) => { process.stderr.write(`${progress}\n`) })
let results = ''
for (const [name, { title, run }] of Object.entries(all)) {
  if (!wanted.includes(name)) continue
  const log = (progress: string): void => { process.stderr.write(`${name}: ${progress}\n`) }
  const conditions = machine(values.quick)
  try {
    const measured = await run({ processes, folder, quick: values.quick, log })
    results = writeResults(title, `${conditions}\n\n${measured}`, Object.values(all).map(({ title }) => title))
  } catch (error) {
    log(`failed; output of the processes:\n${processes.output()}`)
    throw error
  }
  await processes.stopAll()
}
process.stdout.write(results)
