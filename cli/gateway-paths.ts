import { dirname, join, resolve } from 'node:path'
import type { Env } from '../schemas/env.ts'

/** The absolute paths of a gateway's files and folders. `key`: the encryption key. */
export interface GatewayPaths {
  readonly settings: string, readonly dataDir: string, readonly bundles: string, readonly key: string
}

/** Returns the paths of a gateway with this environment. @param cwd the folder that relative paths start from */
export function gatewayPathsOf (
  { SETTINGS_PATH, DATA_DIR }: Pick<Env, 'SETTINGS_PATH' | 'DATA_DIR'>, cwd = '.'
): GatewayPaths {
  const settings = resolve(cwd, SETTINGS_PATH)
  const dataDir = DATA_DIR === undefined ? join(dirname(settings), '.tool-hub') : resolve(cwd, DATA_DIR)
  return { settings, dataDir, bundles: join(dataDir, 'bundles'), key: join(dataDir, 'encryption.key') }
}
