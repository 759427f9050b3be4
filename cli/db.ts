// `tool-hub db` as a script of its own, for `npm run db:…`.
import { guardOutputs, processIo } from './io.ts'
import { runScript } from './scripts/run.ts'

guardOutputs()
process.exitCode = await runScript('db', process.argv.slice(2), processIo())
