import { dirname, join, resolve } from 'node:path'
import type { Env } from '../schemas/env.ts'
import { CommandError, exitCodes } from './errors.ts'

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

/**
 * Returns the error for settings that another process has locked without leaving its credential in DATA_DIR: a gateway
 * that is still starting, one that uses another DATA_DIR, or one that does not listen on loopback.
 * @param pid the process, if known
 */
export const lockedError = (
  pid: number | undefined, { DB_URL: dbUrl }: Env, { settings, dataDir }: GatewayPaths
): CommandError => new CommandError(
  `Process ${pid ?? '(unknown)'} uses ${dbUrl === undefined ? settings : 'the database of DB_URL'}, and ` +
  `${join(dataDir, 'command-line.json')} does not belong to it: a gateway seems to be starting. Try again in a ` +
  'moment. If it started earlier, set DATA_DIR to the folder that the gateway uses. A gateway that does not listen ' +
  'on a loopback address needs --url and TOOL_HUB_KEY.',
  exitCodes.unreachable
)
