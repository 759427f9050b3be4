/** The esbuild options of all bundles: of the gateway (cli/build.mjs) and of the tests (test/build.mjs). */
export const bundling = {
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  sourcemap: true,
  sourcesContent: false,
  logLevel: 'warning'
}
