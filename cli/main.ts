#!/usr/bin/env node
// The process of the command line, `tool-hub`: what it loads may be compiled already.
import { keepCompiledCode } from './compile-cache.ts'

keepCompiledCode({ environment: process.env, mayWrite: false })
const { run } = await import('./run.ts')
await run()
