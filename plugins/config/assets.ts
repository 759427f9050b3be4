// Files that are read and not compiled (icons, templates) stand in `assets/` of the package, whose folder differs between the
// sources, the build in `dist/` and an installed tarball.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

let root: string | undefined

/** The absolute path of an asset, whether or not there is one. @param name its path below `assets/`, for example `icons/tool-hub.svg` */
export function assetPath (name: string): string {
  root ??= packageRoot()
  return join(root, 'assets', name)
}

/** The text of an asset. @throws as `readFile` when there is none */
export const readAsset = async (name: string): Promise<string> => await readFile(assetPath(name), 'utf8')

/** The nearest folder above this file that holds a package.json. */
function packageRoot (): string {
  const start = dirname(fileURLToPath(import.meta.url))
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) throw new Error(`There is no package.json above ${start}: reinstall Tool-Hub`)
  }
}
