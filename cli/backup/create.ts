// `tool-hub backup`: writes the settings, tokens and bundles of a gateway to one file and, if requested, its key.
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { appendFile, copyFile, mkdir, open, readdir, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { openDatabase } from '../../db/postgres/open.ts'
import { dumpTables } from '../../db/postgres/backup/dump.ts'
import { readSettings } from '../../db/seed.ts'
import { bundleNameProblem, currentVersionLink } from '../../plugins/management/index.ts'
import { readEnvironment } from '../../plugins/base/config/index.ts'
import { listNames } from '../../plugins/base/errors/index.ts'
import { parseTimerDuration } from '../../schemas/durations.ts'
import type { Env } from '../../schemas/env.ts'
import {
  checksumOf, backupFiles, unpackBackup, type BackupDescription, copyFiles, writeZip, countSealedSecrets
} from './archive.ts'
import { explainFileError } from '../errors.ts'
import { toPrintable } from '../printable.ts'
import { gatewayPathsOf, type GatewayPaths } from '../gateway-paths.ts'
import type { MaintenanceReporter, MaintenanceContext } from '../context.ts'
import { packageVersion } from '../../package.ts'

interface CreateOptions { readonly file: string | undefined, readonly withKey: boolean, readonly force: boolean }

/** Creates a backup. @throws Error with a message for the user; then no incomplete file remains */
export async function createBackup (
  { io, report }: MaintenanceContext, { file, withKey, force }: CreateOptions
): Promise<void> {
  const env = readEnvironment(io.env)
  const paths = gatewayPathsOf(env, io.cwd)
  const createdAt = new Date().toISOString()
  const target = resolve(io.cwd, file ?? `tool-hub-${createdAt.replace(/[:.]/g, '-')}.zip`)
  if (target === paths.settings || target === paths.key) {
    throw new Error(`${target} is a file of the gateway itself, and was not changed. Choose another file.`)
  }
  if (existsSync(target) && !force) {
    throw new Error(`${target} already exists and was not changed. Choose another file, or use --force.`)
  }
  const work = join(dirname(target), `.backup-${randomUUID()}`)
  try {
    await mkdir(work, { mode: 0o700 })
    const content = new Map<string, string>()
    /** Adds a file to the backup. @returns the path to which the caller must write its content */
    const put = (name: string): string => {
      const path = join(work, content.size.toString())
      content.set(name, path)
      return path
    }
    const kind = env.DB_URL === undefined ? 'file' : 'database'
    if (env.DB_URL === undefined) await putSettings(paths, put(backupFiles.settings))
    else await putTables(env, env.DB_URL, put, report)
    const sealedWith: BackupDescription['sealedWith'] = {}
    for (const path of content.values()) await countSealedSecrets(path, sealedWith)
    await putBundles(paths, work, put, report)
    const hasKey = withKey && existsSync(paths.key)
    if (hasKey) await copyFile(paths.key, put(backupFiles.key))
    const checksums: BackupDescription['checksums'] = {}
    for (const [name, path] of content) checksums[name] = await checksumOf(path)
    const description: BackupDescription =
      { format: 1, createdAt, version: packageVersion(), kind, bundlesFolder: paths.bundles, sealedWith, checksums }
    await writeFile(put(backupFiles.description), JSON.stringify(description, null, 2))
    const archive = join(work, 'archive')
    await writeZip(archive, content)
    // Checks that the backup can be unpacked, before it gets its final name.
    await unpackBackup(archive, join(work, 'check'))
    const handle = await open(archive, 'r')
    await handle.sync().finally(async () => { await handle.close() })
    await rename(archive, target)
    printKeyAdvice(report, env, withKey, hasKey, sealedWith)
    report.writeResult(
      { file: target, kind, createdAt, hasKey, sealedWith },
      `The backup is ${target}. Only its owner may read it: it contains ` +
      `secrets${kind === 'file' ? ' in plain text' : ''}.`
    )
  } catch (error) {
    throw explainFileError(error, {
      target,
      folder: dirname(target),
      advice: 'Choose a file in an existing folder that this user can write to and that has free space.'
    })
  } finally {
    await rm(work, { recursive: true, force: true }).catch(() => {})
  }
}

async function putSettings ({ settings }: GatewayPaths, target: string): Promise<void> {
  if (await readSettings(settings) === undefined) throw new Error(`The settings file ${settings} does not exist.`)
  await copyFile(settings, target)
}

async function putTables (
  env: Env, dbUrl: string, put: (name: string) => string, { print }: MaintenanceReporter
): Promise<void> {
  const startupTimeout = parseTimerDuration(env.DB_STARTUP_TIMEOUT)
  const driver = await openDatabase({ dbUrl, startupTimeout, info: print, warn: print, mustExist: true })
  try {
    const paths = new Map<string, string>()
    let failure: unknown
    await dumpTables(driver, async (table, lines) => {
      const path = paths.get(table) ?? put(`${backupFiles.tables}/${table}.jsonl`)
      paths.set(table, path)
      await appendFile(path, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 }).catch((error: unknown) => {
        failure = error
        throw error
      })
    // The transaction wraps each error in a database error. For a failed write, the original error is thrown instead.
    }).catch((error: unknown) => { throw failure ?? error })
  } finally {
    await driver.end()
  }
}

/** Adds each bundle to the backup: an archive of a copy of its current version, since servers may write into it. */
async function putBundles (
  { bundles }: GatewayPaths, work: string, put: (name: string) => string, { print }: MaintenanceReporter
): Promise<void> {
  for (const name of await readdir(bundles).catch(() => [])) {
    const place = await realpath(join(bundles, name)).catch(() => '')
    const folder = await realpath(join(place, currentVersionLink)).catch(() => undefined)
    // A folder that no upload has made is no bundle, such as one whose link points to another place.
    if (bundleNameProblem(name) !== undefined || folder === undefined || dirname(folder) !== place) continue
    const copy = join(work, 'bundle')
    await mkdir(copy)
    const { paths, others } = await copyFiles(folder, copy)
    if (existsSync(folder)) await writeZip(put(`${backupFiles.bundles}/${name}.zip`), paths)
    else print(`The bundle ${name} was removed meanwhile and is not in the backup.`)
    await rm(copy, { recursive: true })
    if (others.length > 0) {
      print(toPrintable(
        `The bundle ${name} has ${others.length} files that are not in the backup, since they are links or devices, ` +
        'have names that differ only in case or that an archive cannot contain, or were removed meanwhile: ' +
        listNames(others)
      ))
    }
  }
}

/** Tells the operator whether the backup contains the key file and, if not, how many secrets need which key. */
function printKeyAdvice (
  { print }: MaintenanceReporter,
  env: Env,
  withKey: boolean,
  hasKey: boolean,
  sealedWith: BackupDescription['sealedWith']
): void {
  const secretCounts = Object.entries(sealedWith)
  if (hasKey) print('It contains the key file, which decrypts all secrets in it: protect it as you protect the key.')
  else if (withKey) print('It contains no key file, since there is none in DATA_DIR.')
  if (env.ENCRYPTION_KEY !== undefined) {
    print('It does not contain ENCRYPTION_KEY: keep that with the environment of the gateway.')
  }
  if (secretCounts.length === 0 || hasKey) return
  print(
    'Without the key, these secrets in it cannot be decrypted: ' +
    `${secretCounts.map(([id, count]) => `${count} of key ${id}`).join(', ')}. They are credentials of servers (env, ` +
    'headers, args, addresses), secrets of the system configuration, and encrypted records. Passwords, keys and ' +
    'tokens are hashes, which need no key.'
  )
}
