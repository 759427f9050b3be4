#!/usr/bin/env node
// The entry point of the command line, `tool-hub`. It enables the compile cache before other modules load.
import { keepCompiledCode } from './compile-cache.ts'

keepCompiledCode({ environment: process.env, mayWrite: false })
const { run } = await import('./run.ts')
await run()
