#!/usr/bin/env node
// The command line, `tool-hub`, as a process.
import { guardOutputs, processIo } from './io.ts'
import { main } from './program.ts'

guardOutputs()
const code = await main(process.argv.slice(2), processIo())
// A gateway that was started has an exit code of its own.
if (code !== 0) process.exitCode = code
