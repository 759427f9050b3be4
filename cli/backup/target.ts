import { existsSync } from 'node:fs'
import { mkdir, readFile, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { sql } from 'drizzle-orm'
import type { Document } from '../../db/apply.ts'
import { isObject } from '../../protocol/json.ts'
import { FileLock, LockHeldError } from '../../db/file-lock.ts'
import { collections } from '../../db/records.ts'
import { withoutRecords } from '../../db/json/records.ts'
import { parseSettings } from '../../db/json/parse.ts'
import { replace } from '../../db/json/write.ts'
import { documentText } from '../../db/document-text.ts'
import { orderedEntries, orderedObject } from '../../db/order.ts'
import { selectRows } from '../../db/postgres/backup/dump.ts'
import { restoreTables } from '../../db/postgres/backup/restore.ts'
import { openDatabase } from '../../db/postgres/open.ts'
import { importDocument } from '../../db/postgres/settings/transfer.ts'
import { withMarks } from '../../db/restored-users.ts'
import { readSettings } from '../../db/seed.ts'
import { openVault } from '../../plugins/base/secrets/index.ts'
import { milliseconds } from '../../schemas/durations.ts'
import type { Env } from '../../schemas/env.ts'
import { files, readLines, type BackupDescription } from './archive.ts'
import type { Places } from '../places.ts'

/** The destination of a restore, checked and locked. */
export interface RestoreTarget {
  readonly location: string
  /** Replaces the settings, in one step. */
  readonly commit: () => Promise<void>
  readonly close: () => Promise<void>
}

interface TargetOptions {
  readonly replace: boolean, readonly keepTokens: boolean, readonly print: (message: string) => void
}

/** Opens the target. @throws Error if a gateway uses it, or it holds settings that must not be replaced */
export async function openTarget (
  description: BackupDescription,
  work: string,
  places: Places,
  env: Env,
  options: TargetOptions
): Promise<RestoreTarget> {
  if (env.DB_URL !== undefined) return await openDatabaseTarget(description, work, places, env, env.DB_URL, options)
  return await openFileTarget(description, work, places, options)
}

async function openFileTarget (
  { bundlesFolder }: BackupDescription,
  work: string,
  { settings, bundles }: Places,
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
      throw new Error(`The settings file ${path} exists, and was left as it is. Use --replace to replace it by the ` +
        'backup.')
    }
    const document = moved(await documentOf(work), bundlesFolder, bundles)
    // An unreadable file has no valid tokens.
    const present = await readSettings(path).catch(() => ({}))
    const next = toText(document, present, keepTokens)
    return { location: path, commit: async () => { await replace(path, Buffer.from(next)) }, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function openDatabaseTarget (
  { kind, bundlesFolder, createdAt }: BackupDescription,
  work: string,
  { dataDir, bundles }: Places,
  env: Env,
  dbUrl: string,
  { replace: mayReplace, keepTokens, print }: TargetOptions
): Promise<RestoreTarget> {
  const driver =
    await openDatabase({ dbUrl, startupTimeout: milliseconds(env.DB_STARTUP_TIMEOUT), info: print, warn: print })
  const close = async (): Promise<void> => { await driver.end() }
  try {
    const running = await driver.db.transaction(async (tx) => await selectRows<{ pid: number }>(
      tx,
      sql`select pid from pg_stat_activity where datname = current_database()
        and application_name = 'tool-hub listener'`
    ))
    if (running.length > 0) {
      throw new Error(`${running.length} gateways use the database at ${driver.location}. Stop them first. Nothing ` +
        'was changed.')
    }
    const commit = async (): Promise<void> => {
      if (kind === 'database') {
        const pathOf = (table: string): string => join(work, files.tables, `${table}.jsonl`)
        await restoreTables(driver, {
          createdAt,
          replace: mayReplace,
          keepTokens,
          linesOf: (table) => existsSync(pathOf(table)) ? readLines(pathOf(table)) : undefined
        })
        return
      }
      const document = moved(await documentOf(work), bundlesFolder, bundles)
      const marked = { ...withoutRecords(document), ...usersOf(document, [], false) }
      await importDocument(driver, await openVault({ dataDir, encryptionKey: env.ENCRYPTION_KEY }), marked, mayReplace)
    }
    return { location: `the database at ${driver.location}`, commit, close }
  } catch (error) {
    await close()
    throw error
  }
}

const documentOf = async (work: string): Promise<Document> => {
  const path = join(work, files.settings)
  await readSettings(path)
  return parseSettings(await readFile(path), path)
}

/** The text of the restored settings. @param present the current settings; undefined: none */
function toText (document: Document, present: Document | undefined, keepTokens: boolean): string {
  const users = present !== undefined && Array.isArray(present.users) ? present.users.filter(isObject) : []
  const keeps = keepTokens && present === undefined
  // Tokens and consents of the backup may have been used or withdrawn since; the current ones stay.
  const spent = keeps
    ? {}
    : Object.fromEntries([collections.tokens, collections.consents].map(({ name }) => [name, present?.[name]]))
  return documentText(
    { ...(keeps ? document : withoutRecords(document)), ...usersOf(document, users, keeps), ...spent }
  )
}

const usersOf = ({ users }: Document, present: ReadonlyArray<Record<string, unknown>>, keeps: boolean): Document => {
  if (!Array.isArray(users)) return {}
  const marks = withMarks(present, keeps)
  return { users: users.map((user: unknown) => isObject(user) ? marks(user) : user) }
}

/** A document whose servers run bundles in another folder. */
function moved (document: Document, from: string, to: string): Document {
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
    ...document, mcpServers: orderedObject(orderedEntries(mcpServers).map(([name, config]) => [name, change(config)]))
  }
}
