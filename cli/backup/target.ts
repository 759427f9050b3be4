import { existsSync } from 'node:fs'
import { mkdir, readFile, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { sql } from 'drizzle-orm'
import type { SettingsDocument } from '../../db/apply.ts'
import { isObject } from '../../protocol/json.ts'
import { FileLock, LockHeldError } from '../../db/file-lock.ts'
import { recordCollections, reusableCollectionNames } from '../../db/records.ts'
import { withoutRecords } from '../../db/json/records.ts'
import { parseSettings } from '../../db/json/parse.ts'
import { replaceFileAtomically } from '../../db/json/write.ts'
import { serializeSettings } from '../../db/document-text.ts'
import { orderedEntries, createOrderedObject } from '../../db/order.ts'
import { selectRows } from '../../db/postgres/connection/driver.ts'
import { restoreTables } from '../../db/postgres/backup/restore.ts'
import { openDatabase } from '../../db/postgres/open.ts'
import { importDocument } from '../../db/postgres/settings/transfer.ts'
import { withRestoredUsers } from '../../db/restored-users.ts'
import { readSettings } from '../../db/seed.ts'
import { openVault } from '../../plugins/base/secrets/index.ts'
import { parseTimerDuration } from '../../schemas/durations.ts'
import type { Env } from '../../schemas/env.ts'
import { backupFiles, readLines, type BackupDescription } from './archive.ts'
import type { GatewayPaths } from '../gateway-paths.ts'

/** The settings file or database to which a backup is restored. It has been checked and, if it is a file, locked. */
export interface RestoreTarget {
  /** A description of the target for messages: the path of the file, or the address of the database. */
  readonly location: string
  /** Replaces the settings by those of the backup, in one step. */
  readonly commit: () => Promise<void>
  /** Releases the lock, or closes the connection. */
  readonly close: () => Promise<void>
}

interface TargetOptions {
  readonly replace: boolean, readonly keepTokens: boolean, readonly print: (message: string) => void
}

/**
 * Opens the settings file or database to which a backup is restored.
 * @param work the folder of the unpacked backup
 * @throws Error if a gateway uses it, or if it is a settings file that exists and may not be replaced
 */
export async function openRestoreTarget (
  description: BackupDescription,
  work: string,
  paths: GatewayPaths,
  env: Env,
  options: TargetOptions
): Promise<RestoreTarget> {
  if (env.DB_URL !== undefined) return await openDatabaseTarget(description, work, paths, env, env.DB_URL, options)
  return await openFileTarget(description, work, paths, options)
}

async function openFileTarget (
  { bundlesFolder }: BackupDescription,
  work: string,
  { settings, bundles }: GatewayPaths,
  { replace: mayReplace, keepTokens }: TargetOptions
): Promise<RestoreTarget> {
  const path = await realpath(settings).catch(() => settings)
  const lock = new FileLock(path)
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await lock.acquire().catch((error: unknown) => {
    throw error instanceof LockHeldError
      ? new Error(`The settings file ${path} is ${error.message}. Stop the gateway first.`)
      : error
  })
  const close = async (): Promise<void> => { lock.release() }
  try {
    if (existsSync(path) && !mayReplace) {
      throw new Error(
        `The settings file ${path} exists and was not changed. Use --replace to replace it with the backup.`
      )
    }
    const document = withBundlesFolder(await documentOf(work), bundlesFolder, bundles)
    // A file that cannot be parsed counts as one without settings: its tokens cannot be kept.
    const present = await readSettings(path).catch(() => ({}))
    const next = toText(document, present, keepTokens)
    return { location: path, commit: async () => { await replaceFileAtomically(path, Buffer.from(next)) }, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function openDatabaseTarget (
  { kind, bundlesFolder, createdAt }: BackupDescription,
  work: string,
  { dataDir, bundles }: GatewayPaths,
  env: Env,
  dbUrl: string,
  { replace: mayReplace, keepTokens, print }: TargetOptions
): Promise<RestoreTarget> {
  const driver =
    await openDatabase({ dbUrl, startupTimeout: parseTimerDuration(env.DB_STARTUP_TIMEOUT), info: print, warn: print })
  const close = async (): Promise<void> => { await driver.end() }
  try {
    const running = await driver.db.transaction(async (tx) => await selectRows<{ pid: number }>(
      tx,
      sql`select pid from pg_stat_activity where datname = current_database()
        and application_name = 'tool-hub listener'`
    ))
    if (running.length > 0) {
      throw new Error(
        `${running.length} gateways use the database at ${driver.location}. Stop them first. Nothing was changed.`
      )
    }
    const commit = async (): Promise<void> => {
      if (kind === 'database') {
        const pathOf = (table: string): string => join(work, backupFiles.tables, `${table}.jsonl`)
        await restoreTables(driver, {
          createdAt,
          replacesExisting: mayReplace,
          restoresTokens: keepTokens,
          rowsOf: (table) => existsSync(pathOf(table)) ? readLines(pathOf(table)) : undefined
        })
        return
      }
      const document = withBundlesFolder(await documentOf(work), bundlesFolder, bundles)
      // The import compares the accounts with those of the database, if it has any.
      const restored = keepTokens ? document : withRestoredUsers(document, [], false)
      const vault = await openVault({ dataDir, encryptionKey: env.ENCRYPTION_KEY })
      for (const each of await importDocument(driver, vault, restored, mayReplace)) print(each)
    }
    return { location: `the database at ${driver.location}`, commit, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Reads the settings file in an unpacked backup. */
const documentOf = async (work: string): Promise<SettingsDocument> => {
  const path = join(work, backupFiles.settings)
  await readSettings(path)
  return parseSettings(await readFile(path), path)
}

/**
 * Returns the text of the restored settings file.
 * @param document the settings in the backup
 * @param present the current settings; undefined if there are none
 * @param keepTokens whether tokens in the backup stay valid, if there are no current settings
 */
function toText (document: SettingsDocument, present: SettingsDocument | undefined, keepTokens: boolean): string {
  const users = present !== undefined && Array.isArray(present.users) ? present.users.filter(isObject) : []
  const keepsTokens = keepTokens && present === undefined
  // Tokens and consents in the backup may have been used or withdrawn since, so the current ones are kept instead.
  const keptRecords = keepsTokens
    ? {}
    : Object.fromEntries([recordCollections.tokens, recordCollections.consents].map(({ name }) =>
      [name, present?.[name]]))
  const settings = keepsTokens ? document : withoutRecords(document, reusableCollectionNames)
  return serializeSettings({ ...withRestoredUsers(settings, users, keepsTokens), ...keptRecords })
}

/**
 * Returns settings in which the paths of bundles in the configs of servers point to another folder.
 * @param from the former folder of bundles
 * @param to the new folder of bundles
 */
function withBundlesFolder (document: SettingsDocument, from: string, to: string): SettingsDocument {
  const { mcpServers } = document
  if (from === to || !isObject(mcpServers)) return document
  const change = (value: unknown): unknown => {
    if (typeof value === 'string') return value.replaceAll(`${from}/`, () => `${to}/`)
    if (Array.isArray(value)) return value.map(change)
    return isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, change(each)]))
      : value
  }
  return {
    ...document,
    mcpServers: createOrderedObject(
      orderedEntries(mcpServers).map(([name, config]) => [name, change(config)])
    )
  }
}
