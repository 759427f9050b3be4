import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

// Where the files of the package are: in the sources, in a build (whose modules are bundled into a few files of
// `dist/`), and in an installed tarball.

let root: string | undefined

/**
 * The absolute path of a file or folder of the package, whether or not it exists.
 * @param name its path below package.json
 */
export function packagePath (name: string): string {
  root ??= packageRoot()
  return join(root, name)
}

/**
 * The absolute path of a module that runs by itself.
 * @param name its path below package.json, without extension: one of cli/build.mjs
 */
export const entryPath = (name: string): string =>
  packagePath(import.meta.url.endsWith('.ts') ? `${name}.ts` : `dist/${name}.js`)

/**
 * The absolute path of an asset, whether or not it exists.
 * @param name its path below `assets/`: `icons/tool-hub.svg`
 */
export const assetPath = (name: string): string => packagePath(`assets/${name}`)

/** The text of an asset. @throws as `readFile` */
export const readAsset = async (name: string): Promise<string> => await readFile(assetPath(name), 'utf8')

/** The version of the package. */
export const packageVersion = (): string =>
  (JSON.parse(readFileSync(packagePath('package.json'), 'utf8')) as { version: string }).version

/** The nearest folder above this file that holds a package.json. */
function packageRoot (): string {
  const start = dirname(fileURLToPath(import.meta.url))
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) throw new Error(`There is no package.json above ${start}: reinstall Tool-Hub`)
  }
}
