// `npm run build`: bundles the sources into dist/, which shortens the start: one bundle for each entry, and one for the modules
// that a set of entries shares. Packages are not bundled.
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { bundling } from './bundling.mjs'
import { buildConsoleAssets } from './console-assets.mjs'

const root = fileURLToPath(new URL('../', import.meta.url))
const entries = [
  'server',
  'app',
  'cli/main',
  'plugins/base/json-schema/worker',
  'plugins/base/threads/worker',
  'plugins/downstream/openapi/worker',
  'plugins/extensions/compression/worker',
  'plugins/upstream/openapi/describe/worker'
]

rmSync(`${root}dist`, { recursive: true, force: true })
await build({
  ...bundling,
  absWorkingDir: root,
  entryPoints: Object.fromEntries(entries.map((name) => [name, `${name}.ts`])),
  outdir: 'dist'
})
await buildConsoleAssets(root, 'dist/console')
