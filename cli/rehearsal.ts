// Runs the steps of a start (`serve`) and collects their errors and warnings. Settings are read-only; no server is
// connected, no database opened, and no request served.
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
  checkLoginSecret, type KeyRing, openKeyRing, replicasProblem, SealedVault
} from '../plugins/base/secrets/index.ts'
import { parseTimerDuration } from '../schemas/durations.ts'
import type { Env } from '../schemas/env.ts'
import type { GatewayPaths } from './gateway-paths.ts'
import { packageVersion } from '../package.ts'

interface Remarks {
  /** The reasons why the gateway would not start. */
  readonly errors: string[]
  /** Warnings that a start would log. */
  readonly warnings: string[]
}

/** Rehearses a start. @param document the settings; an empty object if they are in a database, which is not opened */
export async function rehearseStart (
  env: Env,
  paths: GatewayPaths,
  document: SettingsDocument,
  environment: AppOptions['environment']
): Promise<Remarks> {
  const remarks: Remarks = { errors: [], warnings: [] }
  const { errors, warnings } = remarks
  /** Runs a step, and adds its error to `found` instead of throwing it. */
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
  if (env.JWT_SECRET === undefined) await attempt(() => { checkLoginSecret(paths.dataDir) })
  const replicas = replicasProblem(env)
  if (replicas !== undefined) warnings.push(replicas)
  const childUser = await attempt(() => findChildUser(env.CHILD_USER))
  await attempt(async () => {
    const app = await buildApp({
      logger: { level: 'warn', stream: { write: (line: string) => { warnings.push(sentenceOf(line)) } } },
      storage: storageFor(env, document, keys ?? await openKeyRing({ dataDir: paths.dataDir })),
      // These folders do not exist: a running gateway may be using those in DATA_DIR.
      catalogueCache: new CatalogueFiles(join(tmpdir(), randomUUID())),
      bundles: { root: join(tmpdir(), randomUUID()), isShared: true },
      version: packageVersion(),
      // A start would generate the secret if it is not set.
      env: { ...env, JWT_SECRET: env.JWT_SECRET ?? randomUUID() },
      initTimeout: parseTimerDuration(env.INIT_TIMEOUT),
      requestTimeout: parseTimerDuration(env.REQUEST_TIMEOUT),
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

/** Creates read-only storage. With DB_URL, `socialLogins` is a placeholder, since only a login uses it. */
const storageFor = (env: Env, document: SettingsDocument, keys: KeyRing) => ({
  ...createFileStorage(new ReadOnlyFileStore(document), new SealedVault(keys)),
  ...(env.DB_URL === undefined ? {} : { socialLogins: {} as SocialLogins })
})

/** The message of a log line, followed by the message of its error. @param line JSON text */
function sentenceOf (line: string): string {
  const { msg = '', err } = JSON.parse(line) as { msg?: string, err?: { message?: string } }
  return err?.message === undefined || msg.includes(err.message) ? msg : `${msg}: ${err.message}`
}

/** Listens briefly on HOST, on any free port, since a running gateway uses its own. @throws Error */
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
