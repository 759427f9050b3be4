// `tool-hub backup` as a script of its own, for `npm run backup`.
import { guardOutputs, processIo } from './io.ts'
import { runScript } from './scripts/run.ts'

guardOutputs()
process.exitCode = await runScript('backup', process.argv.slice(2), processIo())
