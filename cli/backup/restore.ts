// `tool-hub restore`: restores a backup. If a step fails, earlier steps are undone. The gateway must not be running.
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, readFile, rename, rm, rmdir, stat, symlink } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { messageOf } from '../../db/errors.ts'
import { chownAll } from '../../db/folder.ts'
import { unpackBackup, backupFiles, type BackupDescription } from './archive.ts'
import { exitCodes, CommandError, explainFileError } from '../errors.ts'
import { gatewayPathsOf, type GatewayPaths } from '../gateway-paths.ts'
import { openRestoreTarget, type RestoreTarget } from './target.ts'
import { currentVersionLink } from '../../plugins/management/index.ts'
import { readEnvironment } from '../../plugins/base/config/index.ts'
import type { Env } from '../../schemas/env.ts'
import type { MaintenanceContext } from '../context.ts'
import { openKeyRing } from '../../plugins/base/secrets/index.ts'

interface RestoreOptions {
  readonly file: string
  readonly replace: boolean
  readonly keepTokens: boolean
  readonly withoutKey: boolean
}

/** A restore failed, and some of its steps could not be undone. */
class IncompleteUndoError extends Error {}

/** Restores a backup. @throws Error with a message for the user, also about changes that could not be undone */
export async function restoreBackup (
  { io, report }: MaintenanceContext,
  { file, replace, keepTokens, withoutKey }: RestoreOptions
): Promise<void> {
  const env = readEnvironment(io.env)
  checkDatabaseVariables(io.env)
  const paths = gatewayPathsOf(env, io.cwd)
  const work = join(paths.dataDir, `.restore-${randomUUID()}`)
  let keepsWork = false
  try {
    await mkdir(paths.dataDir, { recursive: true, mode: 0o700 })
    const { description, bundles } = await unpackBackup(resolve(io.cwd, file), work)
    checkKind(description, env)
    await checkKeys(description, work, paths, env, { acceptsLoss: withoutKey, print: report.print })
    checkBundlesFolder(description, bundles, paths)
    const options = { replace, keepTokens, print: report.print }
    const target = await openRestoreTarget(description, work, paths, env, options)
    report.print(`Restores the backup of ${description.createdAt} to ${target.location}.`)
    try {
      await restoreFiles(target, work, paths, bundles)
    } finally {
      await target.close()
    }
    report.print(
      'Keys and users that were removed since then exist again: check them. Users whose account differs from the one ' +
      `before the restore have to log in again${keepTokens ? ', unless there were no settings before' : ''}.`
    )
    report.writeResult(
      { location: target.location, createdAt: description.createdAt, kind: description.kind, bundles },
      `${basename(file)} of ${description.createdAt} is restored to ${target.location}, with ${bundles.length} bundles.`
    )
  } catch (error) {
    keepsWork = error instanceof IncompleteUndoError
    throw explainFileError(error, {
      target: `What is in ${paths.dataDir} and ${dirname(paths.settings)}`,
      folder: '/',
      advice: 'Make sure that this user can write to these folders (DATA_DIR, SETTINGS_PATH), and that they have ' +
        'free space.'
    })
  } finally {
    if (!keepsWork) await rm(work, { recursive: true, force: true }).catch(() => {})
    // Removes the folder only if it is empty, since this command may have created it.
    await rmdir(paths.dataDir).catch(() => {})
  }
}

/**
 * Rejects an empty DB_URL beside a DB_URL_FILE, since it is unclear whether the settings file or the database is meant.
 * @throws CommandError
 */
function checkDatabaseVariables (
  { DB_URL: dbUrl, DB_URL_FILE: dbUrlFile = '' }: Readonly<Record<string, string | undefined>>
): void {
  if (dbUrl !== '' || dbUrlFile === '') return
  throw new CommandError(
    'DB_URL is empty, and DB_URL_FILE names a database. Set DB_URL_FILE= as well to restore to the settings file, or ' +
    'unset DB_URL to restore to that database. Nothing was changed.',
    exitCodes.usage
  )
}

/** Checks that the backup of a database is not restored to a settings file. @throws Error */
function checkKind ({ kind }: BackupDescription, { DB_URL: dbUrl }: Env): void {
  if (kind === 'file' || dbUrl !== undefined) return
  throw new Error('This is the backup of a database. Set DB_URL to the database to restore it to; tool-hub db ' +
    'export then makes a settings file from it.')
}

/**
 * Checks, for the backup of a database that contains bundles, that the folder of bundles has the same path as before:
 * encrypted configs may contain the path, and are restored unchanged.
 * @throws Error
 */
function checkBundlesFolder (
  { kind, bundlesFolder }: BackupDescription, bundles: readonly string[], paths: GatewayPaths
): void {
  if (kind === 'file' || bundles.length === 0 || bundlesFolder === paths.bundles) return
  throw new Error(
    `This backup contains bundles from the folder ${bundlesFolder}, which encrypted configs of its servers may ` +
    `refer to. Set DATA_DIR to ${dirname(bundlesFolder)}, in a container for example, to restore it. Nothing was ` +
    'changed.'
  )
}

/** Restores the bundles, the key and finally the settings. If a step fails, the steps before it are undone. */
async function restoreFiles (
  target: RestoreTarget, work: string, paths: GatewayPaths, bundles: readonly string[]
): Promise<void> {
  const undo: Array<() => Promise<void>> = []
  const fresh = join(work, 'unpacked')
  const former = join(work, 'former-bundles')
  await mkdir(fresh, { recursive: true })
  for (const name of bundles) await symlink('restored', join(fresh, name, currentVersionLink), 'dir')
  // After a restore by root, the gateway must be able to change its files.
  const owner = await stat(paths.dataDir)
  await chownAll(fresh, owner)
  try {
    if (existsSync(paths.bundles)) {
      await rename(paths.bundles, former)
      undo.unshift(async () => { await rename(former, paths.bundles) })
    }
    await rename(fresh, paths.bundles)
    undo.unshift(async () => { await rename(paths.bundles, fresh) })
    const key = join(work, backupFiles.key)
    if (existsSync(key) && !existsSync(paths.key)) {
      await copyFile(key, `${paths.key}.tmp`)
      await chownAll(`${paths.key}.tmp`, owner)
      await rename(`${paths.key}.tmp`, paths.key)
      undo.unshift(async () => { await rm(paths.key, { force: true }) })
    }
    await target.commit()
  } catch (error) {
    const failures: string[] = []
    for (const step of undo) await step().catch((failure: unknown) => { failures.push(messageOf(failure)) })
    if (failures.length === 0) throw error
    throw new IncompleteUndoError(
      `The restore failed (${messageOf(error)}), and not all of its steps could be undone: ${failures.join('; ')}. ` +
      `The bundles of before the restore are in ${existsSync(former) ? former : paths.bundles}; move them to ` +
      `${paths.bundles} before the gateway starts.`
    )
  }
}

/**
 * Checks that the secrets in a backup can be decrypted after the restore, and that the key file in the backup, if any,
 * would not replace a different one.
 * @param work the folder of the unpacked backup
 * @param options `acceptsLoss`: whether the operator accepts secrets that cannot be decrypted; the function then only
 *   prints their number
 * @throws Error
 */
async function checkKeys (
  { sealedWith }: BackupDescription,
  work: string,
  paths: GatewayPaths,
  { ENCRYPTION_KEY: encryptionKey }: Env,
  { acceptsLoss, print }: { acceptsLoss: boolean, print: (message: string) => void }
): Promise<void> {
  const key = join(work, backupFiles.key)
  if (existsSync(key)) {
    await chmod(key, 0o600)
    const isOther =
      existsSync(paths.key) && (await readFile(paths.key, 'utf8')).trim() !== (await readFile(key, 'utf8')).trim()
    if (isOther) {
      throw new Error(
        `${paths.key} differs from the key in the backup. Move it to a safe place first. Nothing was changed.`
      )
    }
  }
  const rings = [await openKeyRing({ dataDir: paths.dataDir, encryptionKey }), await openKeyRing({ dataDir: work })]
  const lost = Object.entries(sealedWith).filter(([id]) => rings.every((ring) => ring.find(id) === undefined))
  if (lost.length === 0) return
  const what = lost.map(([id, count]) => `${count} of key ${id}`).join(', ')
  if (!acceptsLoss) {
    const advice = encryptionKey === undefined
      ? 'Set ENCRYPTION_KEY to their key'
      : 'ENCRYPTION_KEY does not match: set it to their key, or append that key after a comma'
    throw new Error(
      `These secrets cannot be decrypted here: ${what}. ${advice}, put the key file at ${paths.key}, or use ` +
      '--without-key. Nothing was changed.'
    )
  }
  print(`These secrets cannot be decrypted until their key is available: ${what}.`)
}
