import { chmod, mkdir, open, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { crc32, createInflateRaw } from 'node:zlib'
import pLimit from 'p-limit'
import { fsyncPath } from '../../../../db/folder.ts'
import { ArchiveError, quoteEntryName, type ArchiveBounds, type ArchiveEntry } from './archive.ts'

/** Number of bytes read at once. */
const chunkSize = 64 * 1024
/** Max number of concurrent file syncs. */
const maxConcurrentSyncs = 8

/**
 * Writes the entries of an archive to a new folder. Files get the mode 0644 or 0755, folders 0755 less the umask. When
 * the promise resolves, everything is on stable storage. If it rejects, the caller must remove the incomplete folder.
 * @param file the archive
 * @param entries as returned by `readEntries`
 * @param folder the path of the new folder, which must not exist
 * @throws ArchiveError if content differs from its headers or is too large; errors of the file system
 */
export async function extractEntries (
  file: FileHandle,
  entries: readonly ArchiveEntry[],
  folder: string,
  bounds: ArchiveBounds,
  signal: AbortSignal
): Promise<void> {
  const { size } = await file.stat()
  const folders = new Set<string>()
  const makeFolder = async (path: string): Promise<void> => {
    if (folders.has(path)) return
    if (path !== '.') await makeFolder(dirname(path))
    folders.add(path)
    // Fails if the path exists, even as a link: the folder must contain only what this function creates.
    await mkdir(join(folder, path))
    // Regardless of the umask: with CHILD_USER, another user enters the folder.
    await chmod(join(folder, path), 0o755)
  }
  let total = 0
  const count = (length: number): void => {
    total += length
    if (total > bounds.maxTotalSize) {
      throw new ArchiveError(`its files have more than ${bounds.maxTotalSize} bytes in total`)
    }
    if (total > bounds.ratioCheckedFrom && total > size * bounds.maxRatio) {
      throw new ArchiveError('it has too high a compression ratio')
    }
  }
  await makeFolder('.')
  for (const entry of entries) {
    await makeFolder(entry.isFolder ? entry.path : dirname(entry.path))
    if (!entry.isFolder) await extractFile(file, entry, join(folder, entry.path), count, bounds, signal)
  }
  const limit = pLimit(maxConcurrentSyncs)
  const paths = [...entries.filter(({ isFolder }) => !isFolder).map(({ path }) => path), ...folders]
  await Promise.all(paths.map(async (path) => { await limit(async () => { await fsyncPath(join(folder, path)) }) }))
}

async function extractFile (
  archive: FileHandle,
  { path, size, compressedSize, crc, isDeflated, isExecutable, dataAt }: ArchiveEntry,
  target: string,
  count: (length: number) => void,
  bounds: ArchiveBounds,
  signal: AbortSignal
): Promise<void> {
  const refuse = (reason: string): never => { throw new ArchiveError(`${quoteEntryName(path)} ${reason}`) }
  const mode = isExecutable ? 0o755 : 0o644
  const output = await open(target, 'wx', mode)
  let written = 0
  let checksum = 0
  const write = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of chunks) {
      written += chunk.length
      if (written > size) refuse('is larger than stated')
      if (written > bounds.ratioCheckedFrom && written > compressedSize * bounds.maxRatio) {
        refuse('has too high a compression ratio')
      }
      count(chunk.length)
      checksum = crc32(chunk, checksum)
      await output.writeFile(chunk)
    }
  }
  const inflate = createInflateRaw()
  try {
    // Sets the mode regardless of the umask: with CHILD_USER, another user reads the file.
    await output.chmod(mode)
    const bytes = (): AsyncGenerator<Buffer> => readChunks(archive, dataAt, compressedSize)
    if (isDeflated) await pipeline(bytes, inflate, write, { signal })
    else await pipeline(bytes, write, { signal })
  } catch (error) {
    if (error instanceof Error && 'code' in error && /^Z_|^ERR_.*BUFFER/.test(String(error.code))) refuse('is damaged')
    throw error
  } finally {
    inflate.destroy()
    await output.close()
  }
  if (written !== size || (isDeflated && inflate.bytesWritten !== compressedSize)) refuse('is smaller than stated')
  if (checksum !== crc) refuse('is damaged: its checksum differs')
}

/** Reads a part of a file in chunks. @throws ArchiveError if the file is shorter */
async function * readChunks (file: FileHandle, from: number, length: number): AsyncGenerator<Buffer> {
  for (let at = from; at < from + length;) {
    const { bytesRead, buffer } =
      await file.read(Buffer.allocUnsafe(Math.min(chunkSize, from + length - at)), 0, undefined, at)
    if (bytesRead === 0) throw new ArchiveError('it is cut off')
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}
