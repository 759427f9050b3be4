import { existsSync } from 'node:fs'
import { Value } from '@sinclair/typebox/value'
import { messageOf } from '../db/errors.ts'
import { FileLock } from '../db/file-lock.ts'
import {
  isSameStorage, type AccessFile, readEnvironment, readAccessFile, storageLocation
} from '../plugins/base/config/index.ts'
import { Env } from '../schemas/env.ts'
import { quotedValue } from '../schemas/read-env.ts'
import { createHttpApiClient, type ManagementApiClient } from './api.ts'
import { exitCodes, CommandError } from './errors.ts'
import { createProcessIo, type Environment, type Io } from './io.ts'
import { gatewayPathsOf, lockedError } from './gateway-paths.ts'
import { requestLocalGateway } from './request.ts'

/**
 * What determines which gateway a command uses. `url`: the value of `--url`. `needsGateway`: whether a gateway must be
 * running, since changing the settings without one is not enough.
 */
interface GatewayChoice { readonly url?: string, readonly needsGateway?: boolean }

/**
 * Creates a client of the management API: of the gateway at `--url` or TOOL_HUB_URL, with TOOL_HUB_KEY; otherwise of
 * the gateway that runs on this machine with these settings; otherwise of an app in this process, which opens the
 * settings.
 * @throws CommandError if TOOL_HUB_KEY is missing, a required gateway is not running, or the settings cannot be opened
 */
export async function connectToManagementApi (
  { url, needsGateway = false }: GatewayChoice,
  io: Pick<Io, 'env' | 'cwd' | 'stderr'> = createProcessIo()
): Promise<ManagementApiClient> {
  const env = parseEnvironment(io.env)
  const address = url === undefined ? env.TOOL_HUB_URL : checkUrlOption(url)
  if (address !== undefined) {
    if (env.TOOL_HUB_KEY === undefined) {
      throw new CommandError(
        `TOOL_HUB_KEY is not set: ${address} needs a system key that is valid for everything.`, exitCodes.forbidden
      )
    }
    if (!/^[\x21-\x7e]+$/.test(env.TOOL_HUB_KEY)) {
      throw new CommandError(
        'TOOL_HUB_KEY has characters that cannot be sent, such as a line break or typographic quotes: it must ' +
        'be the key alone, which begins with thk_.',
        exitCodes.usage
      )
    }
    return createHttpApiClient(address.replace(/\/$/, ''), env.TOOL_HUB_KEY)
  }
  const paths = gatewayPathsOf(env, io.cwd)
  const local = await findRunningGateway(paths.dataDir)
  const storage = storageLocation(paths.settings, env.DB_URL)
  if (local && isSameStorage(storage, local)) {
    return createHttpApiClient(local.url, local.token, true)
  }
  if (needsGateway) {
    // A database of a PostgreSQL server has no lock.
    const { settings, database = settings } = storage
    const isLocked = env.DB_URL === undefined || env.DB_URL.startsWith('pglite://')
    const holder = isLocked ? new FileLock(database).findHolder() : undefined
    if (holder !== undefined) throw lockedError(holder, env, paths)
    const other = local ? ` The one at ${local.url} uses ${local.database ?? local.settings}.` : ''
    const place = env.DB_URL === undefined ? paths.settings : 'the database of DB_URL'
    const missing = env.DB_URL === undefined && !existsSync(paths.settings) ? ', which does not exist' : ''
    throw new CommandError(
      `No gateway runs with ${place}${missing}.${other} Start it (tool-hub serve), or specify another one with ` +
      '--config or --url.',
      exitCodes.unreachable
    )
  }
  return await (await import('./offline.ts')).createOfflineApiClient(env, paths, io)
}

/**
 * Checks that the value of `--url` is valid by the rules of TOOL_HUB_URL and contains no password.
 * @throws CommandError, whose message does not contain the password
 */
function checkUrlOption (url: string): string {
  if (/^[^?#]*\/\/[^/?#]*@/.test(url)) {
    throw new CommandError(
      '--url: an address must not contain a user and a password. Put the system key into TOOL_HUB_KEY.', exitCodes.usage
    )
  }
  if (Value.Check(Env.properties.TOOL_HUB_URL, url) && URL.canParse(url)) return url
  throw new CommandError(
    `--url cannot be ${quotedValue(url)}: expected an address such as "https://hub.example.com"`, exitCodes.usage
  )
}

/**
 * Returns the address and the credential of the gateway that runs on this machine with this data folder; undefined if
 * none is running.
 * @throws CommandError if the file with the credential cannot be read
 */
async function findRunningGateway (dataDir: string): Promise<AccessFile | undefined> {
  let access
  try {
    access = readAccessFile(dataDir)
  } catch (error) {
    throw new CommandError(messageOf(error), exitCodes.forbidden)
  }
  if (!access) return undefined
  // A killed gateway leaves its credential file behind, and another program may use its port, so the health endpoint is
  // checked before the credential is sent.
  const health = await requestLocalGateway(`${access.url}/health`, { signal: AbortSignal.timeout(5_000) })
    .then(({ text }): unknown => JSON.parse(text))
    .catch(() => undefined)
  return isHealth(health) && isAlive(access.pid) ? access : undefined
}

const isHealth = (value: unknown): boolean => typeof value === 'object' && value !== null && 'servers' in value

function isAlive (pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Reads the environment variables of the gateway. @throws CommandError if one is invalid */
function parseEnvironment (env: Environment): ReturnType<typeof readEnvironment> {
  try {
    return readEnvironment(env)
  } catch (error) {
    throw new CommandError(messageOf(error), exitCodes.usage)
  }
}
