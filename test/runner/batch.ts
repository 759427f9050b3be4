// Runs test files one after the other in this process and prints TAP, a subtest a file: `node batch.js test/a.test.ts test/b.test.ts`.
// The files' imports of `tap` lead to tap.ts (test/build.mjs).
import { dirname } from 'node:path'
import { mock } from 'node:test'
import { pathToFileURL } from 'node:url'
import { t } from 'tap'
import { memoryBudget } from '../../plugins/base/limits/memory.ts'
import { runFile } from './tap.ts'
import { baseLimits } from '../../plugins/base/limits/limits.ts'

const files = process.argv.slice(2)
const bundles = pathToFileURL(`${dirname(dirname(process.argv[1] ?? ''))}/`)
const environment = { ...process.env }

t.setTimeout(0)
for (const file of files) {
  await runFile(file, async () => await import(new URL(file.replace(/^test\//, '').replace(/\.ts$/, '.js'), bundles).href))
  // A file leaves the process as it found it.
  // Answers to `inject` never close, and are held for good: the budget counts anew, that of owners as it has another bound.
  memoryBudget.configure(baseLimits.memory + 1)
  memoryBudget.configure(baseLimits.memory)
  memoryBudget.add(-memoryBudget.held)
  mock.reset()
  mock.timers.reset()
  for (const name of Object.keys(process.env)) if (!(name in environment)) Reflect.deleteProperty(process.env, name)
  Object.assign(process.env, environment)
}
t.end()
// What a test did not close must not keep the run waiting; output to pipes is written by now.
setImmediate(() => { process.exit() })
