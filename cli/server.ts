// The process of the gateway, `dist/server.js`: what it loads may be compiled already.
import { keepCompiledCode } from './compile-cache.ts'

keepCompiledCode({ environment: process.env, mayWrite: true })
await import('../server.ts')
