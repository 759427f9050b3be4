import { dirname, join, resolve } from 'node:path'
import type { Env } from '../schemas/env.ts'

/** The paths of a gateway's files. */
export interface GatewayPaths {
  readonly settings: string, readonly dataDir: string, readonly bundles: string, readonly key: string
}

/** The paths of a gateway with this environment. @param cwd the folder that relative paths start from */
export function gatewayPathsOf (
  { SETTINGS_PATH, DATA_DIR }: Pick<Env, 'SETTINGS_PATH' | 'DATA_DIR'>, cwd = '.'
): GatewayPaths {
  const settings = resolve(cwd, SETTINGS_PATH)
  const dataDir = DATA_DIR === undefined ? join(dirname(settings), '.tool-hub') : resolve(cwd, DATA_DIR)
  return { settings, dataDir, bundles: join(dataDir, 'bundles'), key: join(dataDir, 'encryption.key') }
}
