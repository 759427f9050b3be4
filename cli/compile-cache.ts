import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { packageVersion } from '../package.ts'

/** The parts of `node:module` that Node has from 22.8 and 22.10 on. */
const { enableCompileCache, flushCompileCache } = nodeModule as unknown as {
  enableCompileCache?: (folder: string) => unknown
  flushCompileCache?: () => void
}

interface CacheOptions {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Makes the folder where it is missing, and removes what other versions kept. */
  readonly mayWrite: boolean
}

/** How long after a start its compiled code is stored, in ms: it is stored at a regular end as well. */
const storedAfter = 20_000

/**
 * Keeps the compiled code of modules in `DATA_DIR/compiled`, where Node can: the next start does not compile. The
 * folder holds what this user executes, so nobody else may write there. Without such a folder, everything goes on.
 */
export function keepCompiledCode ({ environment, mayWrite }: CacheOptions): void {
  if (!enableCompileCache || process.env.NODE_DISABLE_COMPILE_CACHE !== undefined) return
  const { SETTINGS_PATH: settings = 'mcp_settings.json', DATA_DIR: given = '' } = environment
  const dataDir = resolve(given === '' ? join(dirname(settings), '.tool-hub') : given)
  const all = join(dataDir, 'compiled')
  const own = join(all, packageVersion())
  try {
    for (const folder of [dataDir, all, own]) if (mayWrite) makeFolder(folder)
    if (![dataDir, all, own].every(isOurs)) return
    for (const name of mayWrite ? readdirSync(all) : []) {
      if (join(all, name) !== own) rmSync(join(all, name), { recursive: true })
    }
    enableCompileCache(own)
    if (mayWrite && flushCompileCache) setTimeout(flushCompileCache, storedAfter).unref()
  } catch {}
}

function makeFolder (path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch {}
}

/** Whether this user alone may write in a folder, which is no link. */
function isOurs (path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o022) === 0
}
