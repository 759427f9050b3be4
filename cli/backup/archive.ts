import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, constants, copyFile, mkdir, readFile, rm, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import { Type, type Static } from '@sinclair/typebox'
import { ZipFile } from 'yazl'
import { errorCode } from '../../db/errors.ts'
import {
  type ArchiveBounds, ArchiveError, ArchivePathChecker, bundleNameProblem, unpackBackupArchive
} from '../../plugins/management/index.ts'
import { firstSchemaProblem } from '../../schemas/problem.ts'

/**
 * The names of the files and folders in a backup, which is a zip archive. Bundles are `bundles/<name>.zip`, database
 * tables `database/<name>.jsonl`.
 */
export const backupFiles = {
  description: 'backup.json',
  settings: 'settings.json',
  key: 'encryption.key',
  tables: 'database',
  bundles: 'bundles'
} as const

/** The schema of `backup.json`, which describes a backup. */
export const BackupDescription = Type.Object({
  format: Type.Literal(1),
  /** The time of the backup, in ISO 8601. */
  createdAt: Type.String(),
  /** The version of the Tool-Hub that created the backup. */
  version: Type.String(),
  kind: Type.Union([Type.Literal('file'), Type.Literal('database')]),
  /** The path of the gateway's folder of bundles. The configs of servers may contain this path. */
  bundlesFolder: Type.String(),
  /** The number of encrypted secrets in the backup, by the id of the encryption key. */
  sealedWith: Type.Record(Type.String(), Type.Integer()),
  /** The SHA-256 of each file, in hex, by the path in the backup. */
  checksums: Type.Record(Type.String(), Type.String())
})
export type BackupDescription = Static<typeof BackupDescription>

/**
 * The limits for unpacking a backup. They are near those of the zip format itself, since the operator trusts the file.
 */
const backupBounds: ArchiveBounds = {
  maxEntries: 65_534,
  maxFileSize: 4 * 1024 ** 3 - 1,
  maxTotalSize: 64 * 1024 ** 3,
  maxRatio: 2_000,
  ratioCheckedFrom: 1024 ** 3,
  maxDepth: 128,
  maxNameLength: 255,
  maxPathLength: 4_096
}

/** Returns the SHA-256 of a file, in hex. */
export async function checksumOf (path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

/** Yields the lines of a text file that are not empty. */
export async function * readLines (path: string): AsyncGenerator<string> {
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    if (line !== '') yield line
  }
}

/**
 * Unpacks and checks a backup. The bundles in it are unpacked too, to `unpacked/<name>/restored` in the folder.
 * @param path the backup
 * @param folder the folder for the content, which is created
 * @returns the description of the backup, and the names of the bundles
 * @throws Error if the backup is missing, damaged or invalid; the folder is then removed
 */
export async function unpackBackup (path: string, folder: string): Promise<{
  description: BackupDescription, bundles: string[]
}> {
  try {
    await access(path).catch(() => { throw new ArchiveError('the file does not exist, or this user may not read it') })
    if ((await stat(path)).isDirectory()) throw new ArchiveError('it is a folder')
    await unpackBackupArchive(path, folder, backupBounds)
    const description: unknown = JSON.parse(await readFile(join(folder, backupFiles.description), 'utf8').catch(() =>
      'null'))
    const problem = firstSchemaProblem(BackupDescription, description)
    if (problem) {
      throw new ArchiveError(
        `its ${backupFiles.description} does not describe a backup: "${problem.path}": ${problem.message}`
      )
    }
    const valid = description as BackupDescription
    const bundles: string[] = []
    for (const [name, checksum] of Object.entries(valid.checksums)) {
      if (name.split('/').includes('..')) {
        throw new ArchiveError(`the path ${JSON.stringify(name)} points outside the archive`)
      }
      const found = await checksumOf(join(folder, name)).catch(() => undefined)
      if (found !== checksum) {
        throw new ArchiveError(`the file ${name} in it is ${found === undefined ? 'missing' : 'damaged'}`)
      }
      const bundle = /^bundles\/(.+)\.zip$/.exec(name)?.[1]
      if (bundle === undefined) continue
      const reason = bundleNameProblem(bundle)
      if (reason !== undefined) throw new ArchiveError(`a bundle in it has an invalid name: ${reason}`)
      await mkdir(join(folder, 'unpacked', bundle), { recursive: true, mode: 0o755 })
      await unpackBackupArchive(join(folder, name), join(folder, 'unpacked', bundle, 'restored'), backupBounds)
      bundles.push(bundle)
    }
    return { description: valid, bundles }
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    if (error instanceof ArchiveError || error instanceof SyntaxError) {
      const reason = error instanceof ArchiveError ? error.message : 'it is damaged'
      throw new Error(`The backup ${path} cannot be used: ${reason}. Nothing was changed.`)
    }
    throw error
  }
}

/**
 * Writes a zip archive, which must not exist yet.
 * @param paths the paths of the files, by their names in the archive
 */
export async function writeZip (target: string, paths: ReadonlyMap<string, string>): Promise<void> {
  const zip = new ZipFile()
  for (const [name, path] of paths) zip.addFile(path, name)
  zip.end()
  await Promise.race([
    pipeline(zip.outputStream, createWriteStream(target, { flags: 'wx', mode: 0o600, flush: true })),
    // If a file cannot be read, the output stream does not end, so `pipeline` alone would wait forever.
    new Promise((_resolve, reject) => { zip.on('error', reject) })
  ])
}

/**
 * Copies the files of a folder and its subfolders, which may change meanwhile. `paths`: the absolute paths of the
 * copies, by the paths of the files relative to the folder; `others`: the relative paths of what a backup cannot
 * contain: links, devices and the like, names that the archive does not allow, and files that were removed meanwhile.
 * @param target an existing folder, which gets the copies
 */
export async function copyFiles (
  folder: string, target: string
): Promise<{ paths: Map<string, string>, others: string[] }> {
  const paths = new Map<string, string>()
  const others: string[] = []
  const checker = new ArchivePathChecker(backupBounds)
  const unlessMissing = (error: unknown): undefined => { if (errorCode(error) !== 'ENOENT') throw error }
  const copy = async (path: string): Promise<boolean> => {
    try {
      checker.add(path, false)
    } catch (error) {
      if (error instanceof ArchiveError) return false
      throw error
    }
    const place = join(target, paths.size.toString())
    const isCopied = await copyFile(join(folder, path), place, constants.COPYFILE_FICLONE)
      .then(() => true, unlessMissing)
    if (isCopied) paths.set(path, place)
    return isCopied === true
  }
  const visit = async (subfolder: string): Promise<void> => {
    const entries = await readdir(join(folder, subfolder), { withFileTypes: true }).catch(unlessMissing)
    if (entries === undefined) others.push(subfolder)
    for (const entry of entries ?? []) {
      const path = subfolder === '' ? entry.name : `${subfolder}/${entry.name}`
      if (entry.isDirectory()) await visit(path)
      else if (!entry.isFile() || !await copy(path)) others.push(path)
    }
  }
  await visit('')
  return { paths, others }
}

/**
 * Counts the encrypted secrets (see `plugins/base/secrets/seal.ts`) in a file of JSON texts.
 * @param counts the numbers by the id of the encryption key; this function increases them
 */
export async function countSealedSecrets (path: string, counts: Record<string, number>): Promise<void> {
  for await (const line of readLines(path)) {
    for (const [, id = ''] of line.matchAll(/"v1\.([0-9a-f]{8})\.[\w-]{20,}"/g)) counts[id] = (counts[id] ?? 0) + 1
  }
}
