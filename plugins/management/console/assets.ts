import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packagePath } from '../../base/config/index.ts'

/** The names of the bundled files, which contain a hash of the content. */
export interface AssetNames { readonly css: string, readonly js: string, readonly icons: string }

interface Bundler { buildConsoleAssets: (root: string, folder: string) => Promise<AssetNames> }

/**
 * Finds the style sheet, script and icons of the console: in `dist/console`, or built by this function if the gateway
 * runs from the sources.
 * @returns the folder, and the file names in it
 */
export async function findOrBuildAssets (): Promise<{ folder: string, names: AssetNames }> {
  const manifest = packagePath('dist/console/manifest.json')
  if (!import.meta.url.endsWith('.ts') && existsSync(manifest)) {
    return { folder: packagePath('dist/console'), names: JSON.parse(await readFile(manifest, 'utf8')) as AssetNames }
  }
  const { buildConsoleAssets } =
    await import(pathToFileURL(packagePath('cli/console-assets.mjs')).href) as Bundler
  const folder = '.cache/console'
  return { folder: packagePath(folder), names: await buildConsoleAssets(join(packagePath(''), '/'), folder) }
}
