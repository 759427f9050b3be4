import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, mkdir, readFile, rm, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import { Type, type Static } from '@sinclair/typebox'
import { ZipFile } from 'yazl'
import { type ArchiveBounds, ArchiveError, bundleNameProblem, unpackArchive } from '../../plugins/management/index.ts'
import { firstSchemaProblem } from '../../schemas/problem.ts'

/** The names of the files in a backup (a zip archive): bundles `bundles/<name>.zip`, tables `database/<name>.jsonl`. */
export const backupFiles = {
  description: 'backup.json',
  settings: 'settings.json',
  key: 'encryption.key',
  tables: 'database',
  bundles: 'bundles'
} as const

/** The content of `backup.json`, which describes a backup. */
export const BackupDescription = Type.Object({
  format: Type.Literal(1),
  /** ISO 8601. */
  createdAt: Type.String(),
  /** The version of Tool-Hub. */
  version: Type.String(),
  kind: Type.Union([Type.Literal('file'), Type.Literal('database')]),
  /** The gateway's bundle folder, whose path occurs in the configs of servers. */
  bundlesFolder: Type.String(),
  /** The ids of the keys that encrypt secrets in the backup, with the number of secrets for each. */
  sealedWith: Type.Record(Type.String(), Type.Integer()),
  /** The SHA-256 of each file, in hex, by its path. */
  checksums: Type.Record(Type.String(), Type.String())
})
export type BackupDescription = Static<typeof BackupDescription>

/** Bounds for reading a backup: about those of the zip format, since the operator trusts the file. */
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

/** SHA-256 of a file, in hex. */
export async function checksumOf (path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

/** The lines of a text file that are not empty. */
export async function * readLines (path: string): AsyncGenerator<string> {
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    if (line !== '') yield line
  }
}

/**
 * Unpacks and checks a backup, including the bundles in it.
 * @param folder the folder for the content; it is created
 * @returns its description, and the names of its bundles
 * @throws Error if any part is damaged; the folder is then removed
 */
export async function unpackBackup (path: string, folder: string): Promise<{
  description: BackupDescription, bundles: string[]
}> {
  try {
    await access(path).catch(() => { throw new ArchiveError('the file does not exist, or this user may not read it') })
    await unpackArchive(path, folder, backupBounds)
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
      await unpackArchive(join(folder, name), join(folder, 'unpacked', bundle, 'restored'), backupBounds)
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

/** Writes a zip archive. @param paths the path of each file, by its name in the archive */
export async function writeZip (target: string, paths: ReadonlyMap<string, string>): Promise<void> {
  const zip = new ZipFile()
  for (const [name, path] of paths) zip.addFile(path, name)
  zip.end()
  await Promise.race([
    pipeline(zip.outputStream, createWriteStream(target, { flags: 'wx', mode: 0o600, flush: true })),
    // The stream does not end if a file cannot be read.
    new Promise((_resolve, reject) => { zip.on('error', reject) })
  ])
}

/** Lists the files in a folder and below it, by relative path. `others`: links and devices, which an archive omits. */
export async function listFiles (folder: string): Promise<{ paths: Map<string, string>, others: string[] }> {
  const root = await realpath(folder)
  const paths = new Map<string, string>()
  const others: string[] = []
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) paths.set(path.slice(root.length + 1), path)
    else if (!entry.isDirectory()) others.push(path)
  }
  return { paths, others }
}

/**
 * Counts the encrypted secrets (`plugins/base/secrets/seal.ts`) in a file of JSON texts.
 * @param counts the counts by the ids of the encryption keys, which are increased
 */
export async function countSealedSecrets (path: string, counts: Record<string, number>): Promise<void> {
  for await (const line of readLines(path)) {
    for (const [, id = ''] of line.matchAll(/"v1\.([0-9a-f]{8})\.[\w-]{20,}"/g)) counts[id] = (counts[id] ?? 0) + 1
  }
}
