// Runs the steps of a start of the gateway, and collects their errors and warnings, without changing settings. It
// connects to no server, opens no database, and serves no request.
import { createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { messageOf } from '../db/errors.ts'
import { buildApp, type AppOptions } from '../app.ts'
import type { SettingsDocument } from '../db/apply.ts'
import { CatalogueFiles } from '../db/json/catalogues.ts'
import { ReadOnlyFileStore } from '../db/json/read-only.ts'
import { createFileStorage } from '../db/open.ts'
import type { SocialLogins } from '../db/ports/social-logins.ts'
import { assertDatabaseUrl } from '../db/postgres/open.ts'
import { requireWritableFolder, explainListenError, findChildUser } from '../plugins/base/config/index.ts'
import {
  checkLoginSecretFile, type KeyRing, openKeyRing, replicasProblem, SealedVault
} from '../plugins/base/secrets/index.ts'
import type { Env } from '../schemas/env.ts'
import type { GatewayPaths } from './gateway-paths.ts'
import { packageVersion } from '../package.ts'

/** The result of a rehearsal. */
interface Remarks {
  /** The reasons why the gateway would not start. */
  readonly errors: string[]
  /** Warnings that a start would log. */
  readonly warnings: string[]
}

/**
 * Rehearses a start of the gateway, to find out why it would fail.
 * @param document the content of the settings file; an empty object if the settings are in a database
 */
export async function rehearseStart (
  env: Env,
  paths: GatewayPaths,
  document: SettingsDocument,
  environment: AppOptions['environment']
): Promise<Remarks> {
  const remarks: Remarks = { errors: [], warnings: [] }
  const { errors, warnings } = remarks
  /** Runs a step. An error is not thrown, but its message is added to `found`, and the result is undefined. */
  const attempt = async <Result>(work: () => Result | Promise<Result>, found = errors): Promise<Result | undefined> => {
    try {
      return await work()
    } catch (error) {
      found.push(messageOf(error))
      return undefined
    }
  }
  const keys =
    await attempt(async () => await openKeyRing({ dataDir: paths.dataDir, encryptionKey: env.ENCRYPTION_KEY }))
  const { DB_URL: dbUrl } = env
  if (dbUrl !== undefined) await attempt(async () => { await assertDatabaseUrl(dbUrl) })
  await attempt(async () => { await listenBriefly(env) })
  await attempt(() => { requireWritableFolder(paths.dataDir) }, warnings)
  if (env.JWT_SECRET === undefined) await attempt(() => { checkLoginSecretFile(paths.dataDir) })
  const replicas = replicasProblem(env)
  if (replicas !== undefined) warnings.push(replicas)
  const childUser = await attempt(() => findChildUser(env.CHILD_USER))
  await attempt(async () => {
    const app = await buildApp({
      logger: { level: 'warn', stream: { write: (line: string) => { warnings.push(sentenceOf(line)) } } },
      storage: storageFor(env, document, keys ?? await openKeyRing({ dataDir: paths.dataDir })),
      // These folders do not exist. A running gateway may be using those in DATA_DIR.
      catalogueCache: new CatalogueFiles(join(tmpdir(), randomUUID())),
      bundles: { root: join(tmpdir(), randomUUID()), isShared: true },
      version: packageVersion(),
      // If the secret is not set, a real start generates it.
      env: { ...env, JWT_SECRET: env.JWT_SECRET ?? randomUUID() },
      drainTimeout: 1,
      environment,
      childUser,
      connects: false
    })
    try {
      await app.ready()
    } finally {
      await app.close()
    }
  })
  return remarks
}

/** Creates read-only storage. With DB_URL, `socialLogins` is an empty object, since only a login would use it. */
const storageFor = (env: Env, document: SettingsDocument, keys: KeyRing) => ({
  ...createFileStorage(new ReadOnlyFileStore(document), new SealedVault(keys)),
  ...(env.DB_URL === undefined ? {} : { socialLogins: {} as SocialLogins })
})

/** Returns the message of a log line, followed by the message of the error in it, if any. @param line as JSON text */
function sentenceOf (line: string): string {
  const { msg = '', err } = JSON.parse(line) as { msg?: string, err?: { message?: string } }
  return err?.message === undefined || msg.includes(err.message) ? msg : `${msg}: ${err.message}`
}

/**
 * Checks that the gateway can listen on HOST. Uses any free port, since a running gateway may be using PORT.
 * @throws Error with a message for the user
 */
async function listenBriefly (env: Env): Promise<void> {
  const server = createServer()
  try {
    server.listen({ host: env.HOST, port: 0 })
    await once(server, 'listening')
  } catch (error) {
    throw explainListenError(error, env)
  } finally {
    server.close()
  }
}
