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
  /** Whether the folder may be created if missing, and caches of other versions removed. */
  readonly mayWrite: boolean
}

/** Time from the start until compiled code is written to the cache, in ms. A regular exit also writes it. */
const flushDelay = 20_000

/**
 * Caches the compiled code of modules in `DATA_DIR/compiled` if Node supports it, for a faster start. The code is
 * executed, so other users must not be able to write to the folder. Without a suitable folder, there is no cache.
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

/** Whether a path is a folder (not a link) that only this user can write to. */
function isOurs (path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o022) === 0
}
