// The entry point of the gateway, `dist/server.js`. It enables the compile cache before other modules load.
import { keepCompiledCode } from './compile-cache.ts'

keepCompiledCode({ environment: process.env, mayWrite: true })
await import('../server.ts')
