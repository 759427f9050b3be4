import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

// Where the files of the package are: among its sources, in a build (whose modules are bundled into a few files of `dist/`), and where the
// tarball was installed.

let root: string | undefined

/** The absolute path of a file or folder of the package, whether or not there is one. @param name its path below package.json */
export function packagePath (name: string): string {
  root ??= packageRoot()
  return join(root, name)
}

/** The absolute path of a module that runs by itself. @param name its path below package.json, without extension: one of cli/build.mjs */
export function entryPath (name: string): string {
  return packagePath(import.meta.url.endsWith('.ts') ? `${name}.ts` : `dist/${name}.js`)
}

/** The version of the package. */
export function packageVersion (): string {
  return (JSON.parse(readFileSync(packagePath('package.json'), 'utf8')) as { version: string }).version
}

/** The nearest folder above this file that holds a package.json. */
function packageRoot (): string {
  const start = dirname(fileURLToPath(import.meta.url))
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) throw new Error(`There is no package.json above ${start}: reinstall Tool-Hub`)
  }
}
