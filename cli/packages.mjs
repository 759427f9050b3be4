/**
 * The packages that are not bundled, since they read files of their own (pages, WebAssembly, tables) or are large and
 * rarely used. The container image installs only these packages and their dependencies (cli/prune.mjs).
 */
export const externalPackages = [
  '@electric-sql/pglite',
  '@fastify/swagger-ui',
  'better-auth',
  // better-auth, which is not bundled, imports it from node_modules.
  'drizzle-orm',
  'gpt-tokenizer',
  'oidc-provider'
]

/** The packages that are loaded on first use, synchronously, by `loadPackage`. Each has its own bundle. */
export const latePackageNames = [
  '@marcbachmann/cel-js',
  'ajv',
  'fast-json-stringify',
  'light-my-request',
  're2js',
  // undici loads its HTTP parser with the first connection.
  'undici/lib/llhttp/llhttp-wasm',
  'undici/lib/llhttp/llhttp_simd-wasm'
]

/** CommonJS code in place of modules that packages require but the gateway does not use. */
export const moduleStubs = {
  // Fastify requires both compilers; the gateway sets its own.
  '@fastify/ajv-compiler': '',
  '@fastify/fast-json-stringify-compiler': '',
  // Fastify compares its version with the one that plugins require; the lock file fixes both.
  semver: 'exports.satisfies = () => true',
  // fast-jwt uses asn1.js for asymmetric keys; the gateway signs with a shared secret (HS256).
  'asn1.js': "exports.define = () => ({ decode: () => { throw new Error('asymmetric keys are not supported') } })",
  // No connection uses HTTP/2, and undici works without this module.
  'node:http2': 'exports.constants = {}',
  http2: 'exports.constants = {}'
}
