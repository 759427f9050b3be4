// Bundles the tests into .cache/tests, a file for each one and what they share. Compiled one by one as they are loaded, the sources cost
// each test file two seconds of CPU more, and most of them take less than that themselves. The gateway's worker threads are those of dist/.
import { readFile } from 'node:fs/promises'
import { rmSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { bundling } from '../cli/bundling.mjs'

const root = fileURLToPath(new URL('../', import.meta.url))
const folder = '.cache/tests'

/** The bundle of a file in test/, below the project's folder. */
export const bundleOf = (name) => name.replace(/^test\//, `${folder}/`).replace(/\.ts$/, '.js')

/** What is not of the gateway asks where it stands to find files beside it: it is told of its source. */
const whereTheSourceIs = {
  name: 'where the source is',
  setup: ({ onLoad }) => {
    onLoad({ filter: /[\\/](test|bench|docs)[\\/].*\.(ts|mjs)$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)),
      loader: path.endsWith('.ts') ? 'ts' : 'js'
    }))
  }
}

/** Tests in a batch take `test` of test/runner/tap.ts for tap's. */
const tapOfTheBatch = {
  name: 'tap of the batch',
  setup: ({ onResolve }) => {
    onResolve({ filter: /^tap$/ }, ({ importer }) => /[\\/]test[\\/]runner[\\/](tap|batch)\.ts$/.test(importer) ? undefined : { path: `${root}test/runner/tap.ts` })
  }
}

/** @param names the files in test/ that are run: tests, and what these start as processes of their own */
export async function buildTests (names) {
  rmSync(`${root}${folder}`, { recursive: true, force: true })
  await build({
    ...bundling,
    absWorkingDir: root,
    entryPoints: names,
    outbase: 'test',
    outdir: folder,
    plugins: [whereTheSourceIs, tapOfTheBatch]
  })
}
