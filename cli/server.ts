// The entry point of the gateway, `dist/server.js`. It enables the compile cache before it loads other modules.
import { useCompileCache } from './compile-cache.ts'

useCompileCache({ environment: process.env, mayWrite: true })
await import('../server.ts')
