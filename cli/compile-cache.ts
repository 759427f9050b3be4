import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { packageVersion } from '../package.ts'

/** `enableCompileCache` exists from Node 22.8 on, `flushCompileCache` from 22.10 on. */
const { enableCompileCache, flushCompileCache } = nodeModule as unknown as {
  enableCompileCache?: (folder: string) => unknown
  flushCompileCache?: () => void
}

interface CacheOptions {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Whether to create a missing folder, and remove the caches of other versions. */
  readonly mayWrite: boolean
}

/** The time from the start until compiled code is written to the cache, in ms. A regular exit writes it as well. */
const flushDelay = 20_000

/**
 * Makes Node keep the compiled code of modules in `DATA_DIR/compiled`, for a faster start. Does nothing if Node does
 * not support this, or if the folder is unsafe or, without `mayWrite`, missing: Node executes the cached code, so other
 * users must not be able to write to the folder.
 */
export function useCompileCache ({ environment, mayWrite }: CacheOptions): void {
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
    if (mayWrite && flushCompileCache) setTimeout(flushCompileCache, flushDelay).unref()
  } catch {}
}

function makeFolder (path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch {}
}

/** Whether a path is a folder, not a link, that belongs to this user and to which no other user can write. */
function isOurs (path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o022) === 0
}
