// `npm run build`: bundles the sources and most packages into dist/. This shortens the start, since a process loads a
// few files instead of a thousand. Code that only some requests or commands need is in separate files, loaded on first
// use.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { bundling } from './bundling.mjs'
import { buildConsoleAssets } from './console-assets.mjs'
import { licencesOf } from './licences.mjs'
import { externalPackages, latePackageNames, moduleStubs } from './packages.mjs'

const root = fileURLToPath(new URL('../', import.meta.url))
const programs = { server: 'cli/server.ts', app: 'app.ts', 'cli/main': 'cli/main.ts' }
const threads = [
  'plugins/base/json-schema/worker',
  'plugins/base/threads/worker',
  'plugins/downstream/openapi/worker',
  'plugins/extensions/compression/worker',
  'plugins/extensions/pins/scan/scan',
  'plugins/extensions/guards/detect/worker',
  'plugins/extensions/quotas/worker',
  'plugins/upstream/openapi/describe/worker'
]

/**
 * Puts the code that every start of the gateway loads into one chunk. esbuild creates a chunk for each set of entry
 * points that share a module, and each dynamic import is an entry point, so there would be about fifty chunks. To avoid
 * that, the parts of wings are imported statically, and dynamically imported modules import the app, which is already
 * loaded by then.
 */
const singleStartChunk = {
  name: 'single start chunk',
  setup: ({ onLoad, onResolve, resolve }) => {
    onLoad({ filter: /[\\/]plugins[\\/]\w+[\\/]index\.ts$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8')
      const [whole, parts] = /import\('(\.\/\w+\.ts)'\)/.exec(source) ?? []
      if (parts === undefined) return undefined
      return { contents: `import wingParts from '${parts}'\n${source.replace(whole, 'wingParts')}`, loader: 'ts' }
    })
    onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, async ({ path, kind, resolveDir, importer, pluginData }) => {
      if (kind !== 'dynamic-import' || pluginData === 'is resolved' || importer.startsWith(`${root}cli/`)) return undefined
      const found = await resolve(path, { kind, resolveDir, importer, pluginData: 'is resolved' })
      return { ...found, suffix: '?late' }
    })
    // Modules that plugins/base/config/index.ts re-exports are bundled only where they are used.
    onResolve({ filter: /^\.\// }, async ({ path, kind, resolveDir, importer, pluginData }) => {
      if (pluginData === 'is resolved' || importer !== `${root}plugins/base/config/index.ts`) return undefined
      return { ...await resolve(path, { kind, resolveDir, importer, pluginData: 'is resolved' }), sideEffects: false }
    })
    // A module of its own that exports the other one: a copy of it would be a second instance, with other classes.
    onLoad({ filter: /\.ts$/ }, ({ path, suffix }) => {
      if (suffix !== '?late') return undefined
      const from = `from ${JSON.stringify(path)}`
      const hasDefault = /^export default |^export \{[^}]*\bdefault\b/m.test(readFileSync(path, 'utf8'))
      const lines = [`import ${JSON.stringify(`${root}app.ts`)}`, `export * ${from}`, ...hasDefault ? [`export { default } ${from}`] : []]
      return { contents: lines.join('\n'), loader: 'ts', resolveDir: dirname(path) }
    })
  }
}

/** Makes each `require` of a package in `latePackageNames` load the separate bundle of this package. */
const latePackages = {
  name: 'late packages',
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /./ }, ({ kind, path }) => {
      if (kind !== 'require-call') return undefined
      if (Object.hasOwn(moduleStubs, path)) return { path, namespace: 'moduleStubs' }
      const wanted = path.replace(/^(\.\.?\/)+|\.js$/g, '')
      const name = latePackageNames.find((each) => path.startsWith('.') ? each.includes('/') && each.endsWith(`/${wanted}`) : each === wanted)
      return name === undefined ? undefined : { path: `#packages/${name}`, external: true }
    })
    onLoad({ filter: /./, namespace: 'moduleStubs' }, ({ path }) => ({ contents: moduleStubs[path] }))
  }
}

/**
 * Loads Node's modules by `require`, since an import reads all their members, some of which load further modules (the
 * `WebSocket` of `node:http` loads Node's own undici).
 */
const requiredBuiltins = {
  name: 'required builtins',
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /^node:/ }, ({ kind, path }) =>
      kind === 'import-statement' ? { path, namespace: 'builtin' } : { path, external: true })
    onLoad({ filter: /./, namespace: 'builtin' }, ({ path }) => ({ contents: `module.exports = require(${JSON.stringify(path)})` }))
  }
}

const common = {
  ...bundling,
  packages: 'bundle',
  external: externalPackages.flatMap((name) => [name, `${name}/*`]),
  // CommonJS packages in the bundles call `require` for Node's modules.
  banner: { js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url)" },
  // A single character beyond Latin-1 would double the memory that V8 needs for the source text.
  charset: 'ascii',
  minifyWhitespace: true,
  lineLimit: 160,
  legalComments: 'none',
  metafile: true,
  absWorkingDir: root,
  outdir: 'dist'
}

rmSync(`${root}dist`, { recursive: true, force: true })
const [{ metafile }, ...others] = await Promise.all([
  build({ ...common, entryPoints: programs, plugins: [singleStartChunk, latePackages, requiredBuiltins] }),
  build({ ...common, entryPoints: Object.fromEntries(threads.map((name) => [name, `${name}.ts`])), chunkNames: 'chunks/thread-[hash]' }),
  build({
    ...common,
    banner: undefined,
    format: 'cjs',
    splitting: false,
    outExtension: { '.js': '.cjs' },
    entryPoints: Object.fromEntries(latePackageNames.map((name) => [`packages/${name}`, name])),
    plugins: [latePackages]
  })
])
assertNoCopies(metafile)
const inputs = [metafile, ...others.map((other) => other.metafile)].flatMap((each) => Object.keys(each.inputs))
writeFileSync(`${root}dist/LICENCES.txt`, licencesOf(inputs, root))
if (process.env.BUILD_META) writeFileSync(process.env.BUILD_META, JSON.stringify(metafile))
writeFileSync(`${root}dist/started.json`, `${JSON.stringify(Object.fromEntries(Object.keys(programs).map((name) => [name, startSizesOf(name)])), null, 2)}\n`)

await buildConsoleAssets(root, 'dist/console')

/** Checks that each module is in one file only: a second copy has classes of its own, which `instanceof` does not recognize. */
function assertNoCopies ({ outputs }) {
  const places = new Map()
  for (const [output, { inputs }] of Object.entries(outputs)) {
    for (const [input, { bytesInOutput }] of Object.entries(inputs)) {
      const module = input.replace(/\?late$/, '')
      if (bytesInOutput > 0) places.set(module, [...places.get(module) ?? [], output])
    }
  }
  const copied = [...places].filter(([, files]) => files.length > 1)
  if (copied.length > 0) throw new Error(`Modules are bundled more than once: ${JSON.stringify(copied)}`)
}

/** Returns the numbers of bytes that a program loads at its start, by package. `tool-hub` is the gateway's own code. */
function startSizesOf (program) {
  const bytes = {}
  const seen = new Set()
  const visit = (file) => {
    if (seen.has(file)) return
    seen.add(file)
    const { imports, inputs } = metafile.outputs[file]
    for (const [input, { bytesInOutput }] of Object.entries(inputs)) {
      const [, name = 'tool-hub'] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input) ?? []
      bytes[name] = (bytes[name] ?? 0) + bytesInOutput
    }
    for (const { kind, path, external } of imports) {
      // A program enables the compile cache, and then loads its main module by a dynamic import.
      if (kind !== 'import-statement' && !(kind === 'dynamic-import' && file === `dist/${program}.js`)) continue
      if (external !== true) visit(path)
      else if (!path.startsWith('node:')) bytes[path] = 0
    }
  }
  visit(`dist/${program}.js`)
  return Object.fromEntries(Object.entries(bytes).sort(([one], [other]) => one < other ? -1 : 1))
}
