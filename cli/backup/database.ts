// The commands `tool-hub db migrate`, `tool-hub db import` and `tool-hub db export`.
import { rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { errorCode } from '../../db/errors.ts'
import { replaceFileAtomically as replaceFile } from '../../db/json/write.ts'
import { serializeSettings } from '../../db/document-text.ts'
import type { DatabaseDriver } from '../../db/postgres/connection/driver.ts'
import { openDatabase } from '../../db/postgres/open.ts'
import { exportDocument, importDocument } from '../../db/postgres/settings/transfer.ts'
import { readSettings } from '../../db/seed.ts'
import type { Vault } from '../../db/store.ts'
import { readEnvironment } from '../../plugins/base/config/index.ts'
import { openVault } from '../../plugins/base/secrets/index.ts'
import { explainFileError } from '../errors.ts'
import { gatewayPathsOf } from '../gateway-paths.ts'
import type { MaintenanceContext } from '../context.ts'
import { parseTimerDuration } from '../../schemas/durations.ts'
import type { Env } from '../../schemas/env.ts'

interface ImportOptions { readonly file: string | undefined, readonly replace: boolean }
interface ExportOptions { readonly file: string | undefined, readonly force: boolean, readonly masked: boolean }

/**
 * Opens the database at DB_URL, runs `work` and closes the database.
 * @param mustExist whether its tables must exist and be up to date; otherwise, they are created or updated
 */
async function withDatabase (
  { io, report }: MaintenanceContext,
  mustExist: boolean,
  work: (driver: DatabaseDriver, env: Env) => Promise<void>
): Promise<void> {
  const env = readEnvironment(io.env)
  if (env.DB_URL === undefined) {
    throw new Error(
      'DB_URL is not set, so the gateway keeps its settings in a file. Set DB_URL to the address of the database.'
    )
  }
  const driver = await openDatabase({
    dbUrl: env.DB_URL,
    startupTimeout: parseTimerDuration(env.DB_STARTUP_TIMEOUT),
    info: report.print,
    warn: report.print,
    mustExist
  })
  try {
    await work(driver, env)
  } finally {
    await driver.end()
  }
}

/**
 * Opens the vault with the gateway's encryption key, so that the gateway and the commands can read the same secrets.
 */
const vaultOf = async (env: Env, cwd: string): Promise<Vault> =>
  await openVault({ dataDir: gatewayPathsOf(env, cwd).dataDir, encryptionKey: env.ENCRYPTION_KEY })

/** Creates or updates the tables of the database. */
export async function migrateDatabase (task: MaintenanceContext): Promise<void> {
  await withDatabase(task, false, async () => {
    task.report.writeResult({ migrated: true }, 'The tables are up to date.')
  })
}

/**
 * Stores a settings file in the database, without its tokens, consents and logins.
 * @throws Error if the database has settings, unless `replace` is set
 */
export async function importSettings (task: MaintenanceContext, { file, replace }: ImportOptions): Promise<void> {
  const { io, report } = task
  await withDatabase(task, false, async (driver, env) => {
    const path = resolve(io.cwd, file ?? env.SETTINGS_PATH)
    const document = await readSettings(path)
    if (document === undefined) throw new Error(`The settings file ${path} does not exist.`)
    const warnings = await importDocument(driver, await vaultOf(env, io.cwd), document, replace)
    for (const each of warnings) report.print(each)
    report.writeResult(
      { file: path, location: driver.location }, `${path} is stored in the database at ${driver.location}.`
    )
  })
}

/** Writes the settings in the database to a settings file, or to stdout for the file `-`. @throws Error */
export async function exportSettings (task: MaintenanceContext, options: ExportOptions): Promise<void> {
  await withDatabase(task, true, async (driver, env) => { await writeExport(driver, env, task, options) })
}

async function writeExport (
  driver: DatabaseDriver,
  env: Env,
  { io, report }: MaintenanceContext,
  { file, force, masked }: ExportOptions
): Promise<void> {
  const path = file === '-' ? '-' : resolve(io.cwd, file ?? env.SETTINGS_PATH)
  const exported = await exportDocument(driver, await vaultOf(env, io.cwd))
  if (exported === undefined) {
    throw new Error(`The database at ${driver.location} is empty: nothing has been stored in it.`)
  }
  const { document, locked } = exported
  if (locked.length > 0 && !masked) {
    throw new Error(
      `${locked.join('\n')}\nNothing was written. Use --masked to write everything, with masks (••••) in place of ` +
      'these secrets.'
    )
  }
  for (const each of locked) report.print(each)
  const text = serializeSettings(document)
  if (path === '-') {
    // No result is printed: stdout must contain the export only.
    io.stdout.write(text)
    return
  }
  await (force ? replaceFile(path, Buffer.from(text)) : writeFile(path, text, { flag: 'wx', mode: 0o600, flush: true }))
    .catch(async (error: unknown) => {
      if (errorCode(error) === 'EEXIST') {
        throw new Error(`${path} already exists and was not changed. Choose another file, or use --force.`)
      }
      // An incomplete file would make the next export without --force fail.
      if (!force) await rm(path, { force: true }).catch(() => {})
      const advice = 'Choose a file in an existing folder that this user can write to and that has free space.'
      throw explainFileError(error, { target: path, folder: dirname(path), advice })
    })
  const secrets = locked.length === 0
    ? 'contains secrets in plain text'
    : 'contains masks (••••) in place of the secrets that cannot be decrypted, and the others in plain text'
  report.writeResult(
    { file: path, location: driver.location },
    `The database at ${driver.location} was exported to ${path}. The file ${secrets}: only its owner may read it.`
  )
}
