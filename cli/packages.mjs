/**
 * The packages that the build leaves outside of its bundles, since they read files of their own (pages, WebAssembly, tables) or are
 * large and rarely asked for. The image installs these alone, with what they need (cli/prune.mjs).
 */
export const outside = [
  '@electric-sql/pglite',
  '@fastify/swagger-ui',
  'better-auth',
  // better-auth imports it from its own place.
  'drizzle-orm',
  'gpt-tokenizer',
  'oidc-provider'
]

/** The packages that a start does not need and that cannot wait for a promise: a bundle for each (`latePackage`). */
export const late = [
  'ajv',
  'fast-json-stringify',
  'light-my-request',
  // Its parser is loaded by the first connection.
  'undici/lib/llhttp/llhttp-wasm',
  'undici/lib/llhttp/llhttp_simd-wasm'
]

/** What stands for modules that packages ask for and that the gateway does not need, as CommonJS. */
export const replaced = {
  // The gateway gives it its own compilers.
  '@fastify/ajv-compiler': '',
  '@fastify/fast-json-stringify-compiler': '',
  // It compares its version with that which plugins want. The lock file fixes both.
  semver: 'exports.satisfies = () => true',
  // No connection is HTTP/2, and undici does without.
  'node:http2': 'exports.constants = {}',
  http2: 'exports.constants = {}'
}
