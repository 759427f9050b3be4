import { existsSync } from 'node:fs'
import { mkdir, readFile, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { sql } from 'drizzle-orm'
import type { SettingsDocument } from '../../db/apply.ts'
import { isObject } from '../../protocol/json.ts'
import { FileLock, LockHeldError } from '../../db/file-lock.ts'
import { recordCollections } from '../../db/records.ts'
import { withoutRecords } from '../../db/json/records.ts'
import { parseSettings } from '../../db/json/parse.ts'
import { replaceFileAtomically } from '../../db/json/write.ts'
import { serializeSettings } from '../../db/document-text.ts'
import { orderedEntries, createOrderedObject } from '../../db/order.ts'
import { selectRows } from '../../db/postgres/connection/driver.ts'
import { restoreTables } from '../../db/postgres/backup/restore.ts'
import { openDatabase } from '../../db/postgres/open.ts'
import { importDocument } from '../../db/postgres/settings/transfer.ts'
import { createAccountRestorer } from '../../db/restored-users.ts'
import { readSettings } from '../../db/seed.ts'
import { openVault } from '../../plugins/base/secrets/index.ts'
import { parseTimerDuration } from '../../schemas/durations.ts'
import type { Env } from '../../schemas/env.ts'
import { backupFiles, readLines, type BackupDescription } from './archive.ts'
import type { GatewayPaths } from '../gateway-paths.ts'

/** The destination of a restore, checked and locked. */
export interface RestoreTarget {
  readonly location: string
  /** Replaces the settings with those of the backup, in one step. */
  readonly commit: () => Promise<void>
  readonly close: () => Promise<void>
}

interface TargetOptions {
  readonly replace: boolean, readonly keepTokens: boolean, readonly print: (message: string) => void
}

/** Opens and locks the settings file or database to restore to. @throws Error if it is in use or must not change */
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
    // The tokens of a file that cannot be parsed cannot be kept.
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
      const restored = { ...withoutRecords(document), ...usersOf(document, [], false) }
      const vault = await openVault({ dataDir, encryptionKey: env.ENCRYPTION_KEY })
      await importDocument(driver, vault, restored, mayReplace)
    }
    return { location: `the database at ${driver.location}`, commit, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Reads the settings file of an unpacked backup. */
const documentOf = async (work: string): Promise<SettingsDocument> => {
  const path = join(work, backupFiles.settings)
  await readSettings(path)
  return parseSettings(await readFile(path), path)
}

/** The text of the restored settings file. @param present the current settings; undefined if there are none */
function toText (document: SettingsDocument, present: SettingsDocument | undefined, keepTokens: boolean): string {
  const users = present !== undefined && Array.isArray(present.users) ? present.users.filter(isObject) : []
  const keepsTokens = keepTokens && present === undefined
  // Tokens and consents of the backup may have been used or withdrawn since, so the current ones are kept.
  const keptRecords = keepsTokens
    ? {}
    : Object.fromEntries([recordCollections.tokens, recordCollections.consents].map(({ name }) =>
      [name, present?.[name]]))
  return serializeSettings({
    ...(keepsTokens ? document : withoutRecords(document, [recordCollections.userValues.name])),
    ...usersOf(document, users, keepsTokens),
    ...keptRecords
  })
}

/**
 * The users of a backup, prepared for their restore (`createAccountRestorer`).
 * @param present the users of the current settings
 * @param keepsTokens whether the tokens in the backup stay valid
 */
const usersOf = (
  { users }: SettingsDocument, present: ReadonlyArray<Record<string, unknown>>, keepsTokens: boolean
): SettingsDocument => {
  if (!Array.isArray(users)) return {}
  const restore = createAccountRestorer(present, keepsTokens)
  return { users: users.map((user: unknown) => isObject(user) ? restore(user) : user) }
}

/** The settings with paths of bundles in another folder. @param from, to the old and the new bundles folder */
function withBundlesFolder (document: SettingsDocument, from: string, to: string): SettingsDocument {
  const { mcpServers } = document
  if (from === to || !isObject(mcpServers)) return document
  const change = (value: unknown): unknown => {
    if (typeof value === 'string') return value.replaceAll(`${from}/`, `${to}/`)
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
