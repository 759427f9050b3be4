// `tool-hub restore` as a script of its own, for `npm run restore`.
import { guardOutputs, processIo } from './io.ts'
import { runScript } from './scripts/run.ts'

guardOutputs()
process.exitCode = await runScript('restore', process.argv.slice(2), processIo())
