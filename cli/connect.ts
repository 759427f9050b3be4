import { existsSync } from 'node:fs'
import { Value } from '@sinclair/typebox/value'
import { messageOf } from '../db/errors.ts'
import {
  isSameStorage, type LocalAccess, readEnvironment, readLocalAccess, storageLocation
} from '../plugins/base/config/index.ts'
import { Env } from '../schemas/env.ts'
import { httpApi, type ManagementApi } from './api.ts'
import { exits, CommandError } from './errors.ts'
import { processIo, type Environment, type Io } from './io.ts'
import { placesOf } from './places.ts'
import { ask } from './request.ts'

/** Selects a gateway. `needsGateway`: the command needs a running gateway. */
interface Where { readonly url?: string, readonly needsGateway?: boolean }

/**
 * Connects to the management API: of the gateway in TOOL_HUB_URL and TOOL_HUB_KEY, else of the gateway that runs on
 * this machine with these settings, else within this process, on the settings themselves.
 * @throws CommandError
 */
export async function connect (
  { url, needsGateway = false }: Where,
  io: Pick<Io, 'env' | 'cwd' | 'stderr'> = processIo()
): Promise<ManagementApi> {
  const env = environment(io.env)
  const address = url === undefined ? env.TOOL_HUB_URL : checked(url)
  if (address !== undefined) {
    if (env.TOOL_HUB_KEY === undefined) {
      throw new CommandError(`TOOL_HUB_KEY is not set: ${address} needs a system key that is good for ` +
        'everything.', exits.forbidden)
    }
    return httpApi(address.replace(/\/$/, ''), env.TOOL_HUB_KEY)
  }
  const places = placesOf(env, io.cwd)
  const local = await running(places.dataDir)
  if (local &&
    isSameStorage(storageLocation(places.settings, env.DB_URL), local)) return httpApi(local.url, local.token, true)
  if (needsGateway) {
    const other = local ? ` The one at ${local.url} works on ${local.database ?? local.settings}.` : ''
    const place = env.DB_URL === undefined ? places.settings : 'the database of DB_URL'
    const missing = env.DB_URL === undefined && !existsSync(places.settings) ? ', and there is no such file' : ''
    throw new CommandError(
      `No gateway runs over ${place}${missing}.${other} Start it (tool-hub serve), or name another one with --config ` +
      'or --url.',
      exits.unreachable
    )
  }
  return await (await import('./offline.ts')).offlineApi(env, places, io)
}

/** Checks the address of --url like TOOL_HUB_URL. @throws CommandError, whose message hides a password */
function checked (url: string): string {
  if (/^[^?#]*\/\/[^/?#]*@/.test(url)) {
    throw new CommandError('--url: an address with a user and a password is not taken. The system key stands in ' +
      'TOOL_HUB_KEY.', exits.usage)
  }
  if (Value.Check(Env.properties.TOOL_HUB_URL, url) && URL.canParse(url)) return url
  throw new CommandError(`--url cannot be ${JSON.stringify(url)}: expected an address as ` +
    '"https://hub.example.com"', exits.usage)
}

/** The running gateway whose local credential is in the data folder. */
async function running (dataDir: string): Promise<LocalAccess | undefined> {
  let access
  try {
    access = readLocalAccess(dataDir)
  } catch (error) {
    throw new CommandError(messageOf(error), exits.forbidden)
  }
  if (!access) return undefined
  // A killed gateway leaves its credential file, and another program may use its port, so check the health endpoint
  // before sending the credential.
  const health = await ask(`${access.url}/health`, { signal: AbortSignal.timeout(5_000) })
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

/** Reads the environment like the gateway. @throws CommandError */
function environment (env: Environment): ReturnType<typeof readEnvironment> {
  try {
    return readEnvironment(env)
  } catch (error) {
    throw new CommandError(messageOf(error), exits.usage)
  }
}
