import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type * as cel from '@marcbachmann/cel-js'
import type * as ajv from 'ajv'
import type fastJsonStringify from 'fast-json-stringify'
import type * as lightMyRequest from 'light-my-request'
import type * as re2 from 're2js'

// Paths of the package's files, and packages that are loaded on first use. The functions work in the source tree, in a
// build (which bundles the modules into a few files in `dist/`) and in an installed package.

let root: string | undefined

/**
 * Returns the absolute path of a file or folder of the package, which need not exist.
 * @param name its path relative to package.json
 */
export function packagePath (name: string): string {
  root ??= packageRoot()
  return join(root, name)
}

/**
 * Returns the absolute path of a module that is started as a process or thread of its own: the source, or its build.
 * @param name its path relative to package.json, without extension; one of the entry points in cli/build.mjs
 */
export const entryPointPath = (name: string): string =>
  packagePath(import.meta.url.endsWith('.ts') ? `${name}.ts` : `dist/${name}.js`)

/** Packages that are loaded on first use, to make the start faster. */
interface LazyPackages {
  '@marcbachmann/cel-js': typeof cel
  ajv: typeof ajv
  'fast-json-stringify': typeof fastJsonStringify
  'light-my-request': typeof lightMyRequest
  re2js: typeof re2
}

const requireModule = createRequire(import.meta.url)

/**
 * Loads a package synchronously, for code that cannot await `import()`.
 * @param name one of `latePackageNames` of cli/packages.mjs
 */
export const loadPackage = <Name extends keyof LazyPackages>(name: Name): LazyPackages[Name] =>
  requireModule(import.meta.url.endsWith('.ts') ? name : packagePath(`dist/packages/${name}.cjs`)) as LazyPackages[Name]

/**
 * Returns a function that loads something at its first call, and returns the same promise then.
 * @param load what loads it; called again only after it failed. Node itself keeps the failure of an `import()` until
 *   the process ends, so that only what else it does, such as reading a file, can succeed then
 */
export function loadOnce<Loaded> (load: () => Promise<Loaded>): () => Promise<Loaded> {
  let loading: Promise<Loaded> | undefined
  return async () => await (loading ??= load().catch((error: unknown) => {
    loading = undefined
    throw error
  }))
}

/**
 * Returns the absolute path of an asset, which need not exist.
 * @param name its path below `assets/`, such as `icons/tool-hub.svg`
 */
export const assetPath = (name: string): string => packagePath(`assets/${name}`)

/** Reads the text of an asset. @param name its path below `assets/` @throws the system's error */
export const readAsset = async (name: string): Promise<string> => await readFile(assetPath(name), 'utf8')

/** Reads the bytes of an asset. @param name its path below `assets/` @throws the system's error */
export const readAssetBytes = async (name: string): Promise<Buffer> => await readFile(assetPath(name))

/** Reads the text of an asset synchronously. @param name its path below `assets/` @throws the system's error */
export const readAssetSync = (name: string): string => readFileSync(assetPath(name), 'utf8')

/** Returns the version of the package, as in package.json. */
export const packageVersion = (): string =>
  (JSON.parse(readFileSync(packagePath('package.json'), 'utf8')) as { version: string }).version

/** Returns the nearest of the folders around this file that has a package.json. */
function packageRoot (): string {
  const start = dirname(fileURLToPath(import.meta.url))
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) throw new Error(`There is no package.json above ${start}: reinstall Tool-Hub`)
  }
}
