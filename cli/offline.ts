import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../db/errors.ts'
import { buildApp } from '../app.ts'
import { CatalogueFiles } from '../db/json/catalogues.ts'
import { LockHeldError } from '../db/file-lock.ts'
import { openStorage } from '../db/open.ts'
import type { Storage } from '../db/store.ts'
import { newLocalToken } from '../plugins/base/config/index.ts'
import { openVault } from '../plugins/base/secrets/index.ts'
import { parseTimerDuration } from '../schemas/durations.ts'
import type { Env } from '../schemas/env.ts'
import { ManagementApiClient } from './api.ts'
import { lockedError, type GatewayPaths } from './gateway-paths.ts'
import { exitCodes, CommandError } from './errors.ts'
import { createProcessIo, type Io } from './io.ts'
import { packageVersion } from '../package.ts'

/**
 * Creates an app in this process that neither listens nor connects to servers, and returns a client of its management
 * API. No gateway may be running with the same settings, since only one process at a time may use a settings file. The
 * settings must already exist, so that a mistyped path or DB_URL does not create new ones.
 * @throws CommandError
 */
export async function createOfflineApiClient (
  env: Env, paths: GatewayPaths, io: Pick<Io, 'env' | 'stderr'> = createProcessIo()
): Promise<ManagementApiClient> {
  if (env.DB_URL === undefined && !existsSync(paths.settings)) {
    throw new CommandError(
      `There is no settings file ${paths.settings}, and none was created. Specify another one with --config ` +
      '(SETTINGS_PATH); the first start of the gateway (tool-hub serve) creates it.',
      exitCodes.unreachable
    )
  }
  const remark = (message: string): void => { io.stderr.write(`${message}\n`) }
  const localToken = newLocalToken()
  let storage: Storage | undefined
  try {
    storage = await openStorage({
      settingsPath: paths.settings,
      dbUrl: env.DB_URL,
      startupTimeout: parseTimerDuration(env.DB_STARTUP_TIMEOUT),
      vault: await openVault({ dataDir: paths.dataDir, encryptionKey: env.ENCRYPTION_KEY }),
      warn: remark,
      info: remark,
      mustExist: true
    })
    const app = await buildApp({
      logger: { level: 'silent' },
      storage,
      catalogueCache: new CatalogueFiles(join(paths.dataDir, 'catalogues')),
      bundles: { root: paths.bundles, isShared: env.DB_URL !== undefined },
      version: packageVersion(),
      // Requests come from this process only, so their Host header needs no check.
      env: { ...env, HOST: '127.0.0.1', ALLOWED_HOSTS: '' },
      drainTimeout: 1_000,
      environment: io.env,
      localToken,
      connects: false
    })
    await app.ready()
    const base = app.config.basePath
    return new ManagementApiClient(async (method, path, body, more) => {
      const { statusCode, payload, headers: { etag } } = await app.inject({
        method: method as 'GET',
        url: `${base}${path}`,
        headers: { authorization: `Bearer ${localToken}`, ...more },
        payload: body
      })
      return { status: statusCode, text: payload, etag: etag?.toString() }
    }, { close: async () => { await app.close() } })
  } catch (error) {
    await storage?.store.close()
    const { cause } = error as { cause?: unknown }
    if (cause instanceof LockHeldError) throw lockedError(cause.pid, env, paths)
    throw new CommandError(messageOf(error), exitCodes.unreachable)
  }
}
