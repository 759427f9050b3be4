import { dirname, join, resolve } from 'node:path'
import type { Env } from '../../schemas/env.ts'

/** Where a gateway with this environment keeps what it keeps on disk. */
export interface Places { readonly settings: string, readonly dataDir: string, readonly bundles: string, readonly key: string }

/** @param cwd the folder that its paths are relative to */
export function placesOf ({ SETTINGS_PATH, DATA_DIR }: Pick<Env, 'SETTINGS_PATH' | 'DATA_DIR'>, cwd = '.'): Places {
  const settings = resolve(cwd, SETTINGS_PATH)
  const dataDir = DATA_DIR === undefined ? join(dirname(settings), '.tool-hub') : resolve(cwd, DATA_DIR)
  return { settings, dataDir, bundles: join(dataDir, 'bundles'), key: join(dataDir, 'encryption.key') }
}
