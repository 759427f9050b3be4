import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { buildApp } from '../../app.ts'
import { CatalogueFiles } from '../../db/json/catalogues.ts'
import { openStorage } from '../../db/open.ts'
import { readEnvironment } from '../../plugins/base/config/environment.ts'
import { Passwords } from '../../plugins/base/secrets/hash.ts'
import { readOrCreateLoginSecret } from '../../plugins/base/secrets/secret-file.ts'
import { openKeyRing } from '../../plugins/base/secrets/key-ring.ts'
import { createSealer } from '../../plugins/base/secrets/seal.ts'
import { SealedVault } from '../../plugins/base/secrets/vault.ts'
import { parseTimerDuration } from '../../schemas/durations.ts'
import type { HubOptions } from './hub.ts'
import './patient.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }

const passwords = new Passwords()
/** By password: a hash takes a third of a second of CPU, and a file of tests starts many gateways with the same one. */
const hashes = new Map<string, Promise<string>>()
const unknown = randomBytes(12).toString('base64url')

/** The settings with the first admin, as a first start would leave them; as they are where it would do something else. */
export async function withAdmin ({ settings, env = {} }: HubOptions): Promise<HubOptions['settings']> {
  if (typeof settings !== 'object' || Buffer.isBuffer(settings) || 'users' in settings) return settings
  if ((env.DB_URL ?? '') !== '' || env.READONLY !== undefined) return settings
  const password = env.ADMIN_PASSWORD ?? unknown
  const hash = hashes.get(password) ?? passwords.hash(password)
  hashes.set(password, hash)
  return { ...settings, users: [{ username: 'admin', password: await hash, isAdmin: true, createdAt: new Date().toISOString() }] }
}

export interface RunningApp {
  app: FastifyInstance
  port: number
  /** Everything logged so far, a JSON object a line. */
  output: () => string
}

/**
 * The gateway within this process, from its environment until it is ready: what server.ts does, without what only a process can do.
 * @throws Error as server.ts prints it
 */
export async function runApp (environment: Readonly<Record<string, string>>): Promise<RunningApp> {
  const env = readEnvironment(environment)
  const dataDir = env.DATA_DIR ?? join(dirname(env.SETTINGS_PATH), '.tool-hub')
  let output = ''
  const print = (text: string): void => { output += text }
  let warn = (sentence: string): void => { print(`${sentence}\n`) }
  const keys = await openKeyRing({ dataDir, encryptionKey: env.ENCRYPTION_KEY })
  const storage = await openStorage({
    settingsPath: env.SETTINGS_PATH,
    usageFolder: join(dataDir, 'usage'),
    dbUrl: env.DB_URL,
    startupTimeout: parseTimerDuration(env.DB_STARTUP_TIMEOUT),
    vault: new SealedVault(keys),
    warn: (sentence) => { warn(sentence) },
    info: (sentence) => { print(`${sentence}\n`) }
  })
  const app = await buildApp({
    logger: { level: env.LOG_LEVEL, stream: { write: print } },
    storage,
    sealer: createSealer(keys),
    catalogueCache: new CatalogueFiles(join(dataDir, 'catalogues')),
    bundles: { root: join(dataDir, 'bundles'), isShared: env.DB_URL !== undefined },
    version,
    env: { ...env, JWT_SECRET: readOrCreateLoginSecret(env, dataDir, (sentence) => { warn(sentence) }) },
    drainTimeout: parseTimerDuration(env.DRAIN_TIMEOUT),
    environment
  })
  warn = (sentence) => { app.log.warn(sentence) }
  try {
    await app.ready()
    // The first admin is stored while the port opens already, and the gateway is ready when both are done.
    const firstAdmin = app.users.createFirstAdmin(env.ADMIN_PASSWORD).catch((error: unknown) => {
      app.log.warn(`The first admin could not be stored: ${error instanceof Error ? error.message : String(error)}`)
    })
    await app.listen({ host: app.config.listenAddress, port: env.PORT })
    await firstAdmin
    await app.keys.migrateLegacyKey().catch((error: unknown) => {
      app.log.warn(`routing.bearerAuthKey could not be taken over: ${error instanceof Error ? error.message : String(error)}`)
    })
    app.phase.name = 'ready'
  } catch (error) {
    await app.close()
    throw error
  }
  return { app, port: (app.server.address() as AddressInfo).port, output: () => output }
}
