import { join } from 'node:path'
import { buildApp } from '../app.ts'
import { CatalogueFiles } from '../db/json/catalogues.ts'
import { openStorage } from '../db/open.ts'
import { newLocalToken } from '../plugins/config/local-file.ts'
import { openVault } from '../plugins/secrets/vault.ts'
import { milliseconds, type Env } from '../schemas/env.ts'
import { Api } from './api.ts'
import type { Places } from './backup/places.ts'
import { Failure } from './failure.ts'
import { versionOf } from './version.ts'

/**
 * The management API over the settings, within this process: it listens nowhere and connects to no server. The same rules hold as in the
 * gateway, which must be down: a settings file is used by one process at a time.
 * @throws Failure
 */
export async function offlineApi (env: Env, places: Places): Promise<Api> {
  const remark = (message: string): void => { process.stderr.write(`${message}\n`) }
  const localToken = newLocalToken()
  try {
    const storage = await openStorage({
      settingsPath: places.settings,
      dbUrl: env.DB_URL,
      startupTimeout: milliseconds(env.DB_STARTUP_TIMEOUT),
      vault: await openVault({ dataDir: places.dataDir, encryptionKey: env.ENCRYPTION_KEY }),
      warn: remark,
      info: remark
    })
    const app = await buildApp({
      logger: { level: 'silent' },
      storage,
      catalogueCache: new CatalogueFiles(join(places.dataDir, 'catalogues')),
      bundles: { root: places.bundles, isShared: env.DB_URL !== undefined },
      version: versionOf(),
      // No answer leaves this process, whatever hosts are ours.
      env: { ...env, HOST: '127.0.0.1', ALLOWED_HOSTS: '' },
      initTimeout: milliseconds(env.INIT_TIMEOUT),
      requestTimeout: milliseconds(env.REQUEST_TIMEOUT),
      drainTimeout: 1_000,
      environment: process.env,
      localToken,
      connects: false
    })
    await app.ready()
    const base = app.config.basePath
    return new Api(async (method, path, body) => {
      const { statusCode, payload } = await app.inject({
        method: method as 'GET',
        url: `${base}${path}`,
        headers: { authorization: `Bearer ${localToken}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        payload: body
      })
      return { status: statusCode, text: payload }
    }, { close: async () => { await app.close() } })
  } catch (error) {
    throw new Failure(error instanceof Error ? error.message : String(error))
  }
}
