#!/usr/bin/env node
// The entry point of the command line, `tool-hub`. It enables the compile cache before it loads other modules.
import { useCompileCache } from './compile-cache.ts'

useCompileCache({ environment: process.env, mayWrite: false })
const { runCommandFromArgv: run } = await import('./run.ts')
await run()
