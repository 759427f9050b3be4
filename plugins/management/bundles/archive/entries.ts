import type { FileHandle } from 'node:fs/promises'
import { fromFdPromise, type Entry, type LocalFileHeader, type ZipFile } from 'yauzl'
import {
  type ArchiveBounds, type ArchiveEntry, ArchiveError, decodeEntryName, ArchivePathChecker, quoteEntryName
} from './archive.ts'
import { findCentralDirectory } from './end.ts'

/** Bits of the general purpose bit flag of an entry (APPNOTE 4.4.4). */
const flag = { encrypted: 1, descriptor: 8, stronglyEncrypted: 0x40, utf8: 0x800, masked: 0x2000 } as const
/** The bits that must be equal in the local header and the central directory. */
const comparedFlags = Object.values(flag).reduce((all, each) => all | each, 0)
/** The ids of extra fields (APPNOTE 4.5, 4.6): ZIP64 sizes, UNIX attributes, a second name, ASi UNIX attributes. */
const extra = { zip64: 0x0001, unix: 0x000d, unicodePath: 0x7075, asiUnix: 0x756e } as const
/** File types in the upper 16 bits of the external attributes. */
const fileType = { mask: 0o170000, none: 0, file: 0o100000, folder: 0o040000 } as const

/**
 * Reads and checks the headers of all entries: their paths, file types and stated sizes. Local headers must agree with
 * the central directory, and the data of entries must not overlap. Content is not read: `extractEntries` checks whether
 * it has the stated size.
 * @throws ArchiveError
 */
export async function readEntries (
  file: FileHandle, bounds: ArchiveBounds, signal: AbortSignal
): Promise<ArchiveEntry[]> {
  const end = await findCentralDirectory(file)
  if (end.entryCount > bounds.maxEntries) throw new ArchiveError(`it contains more than ${bounds.maxEntries} files`)
  const zip = await asArchiveError(
    fromFdPromise(file.fd, { autoClose: false, decodeStrings: false, strictFileNames: true })
  )
  const entries: ArchiveEntry[] = []
  const paths = new ArchivePathChecker(bounds)
  let total = 0
  // The reader is not closed, since that would close the caller's file.
  const found = zip.eachEntry()
  for (let next = await asArchiveError(found.next()); next.done !== true; next = await asArchiveError(found.next())) {
    signal.throwIfAborted()
    const entry = toEntry(next.value, await asArchiveError(localHeaderOf(zip, next.value)))
    paths.add(entry.path, entry.isFolder)
    total += entry.size
    checkSizes(entry, total, bounds)
    entries.push(entry)
  }
  if (Number(zip.readEntryCursor) !== end.endAt) {
    throw new ArchiveError('its central directory has more entries than stated')
  }
  checkOverlaps(entries, end.directoryAt)
  return entries
}

/** Replaces an error of yauzl by an ArchiveError with a fixed message. Errors of the file system stay the same. */
async function asArchiveError<Result> (reading: Promise<Result>): Promise<Result> {
  return await reading.catch((error: unknown) => {
    if (error instanceof Error && 'syscall' in error) throw error
    throw new ArchiveError('it is damaged: its directory cannot be read')
  })
}

const localHeaderOf = async (zip: ZipFile, entry: Entry): Promise<LocalFileHeader> =>
  await new Promise((resolve, reject) => {
    zip.readLocalFileHeader(entry, (error, header) => {
      if (error) reject(error)
      else resolve(header)
    })
  })

/** Converts the headers of an entry, after checking that they are supported and agree. @throws ArchiveError */
function toEntry (entry: Entry, local: LocalFileHeader): ArchiveEntry {
  const { fileNameRaw: raw, compressionMethod, uncompressedSize: size, compressedSize, crc32: crc } = entry
  const name = decodeEntryName(raw)
  const refuse = (reason: string): never => { throw new ArchiveError(`${quoteEntryName(name)} ${reason}`) }
  if ((entry.generalPurposeBitFlag & (flag.encrypted | flag.stronglyEncrypted | flag.masked)) !== 0) {
    refuse('is encrypted')
  }
  if (compressionMethod !== 0 && compressionMethod !== 8) {
    refuse('uses a compression method that is not supported: use deflate')
  }
  if (!matchesDirectory(entry, local)) refuse('is described in two different ways')
  checkExtraFields(entry, raw, refuse)
  const mode = entry.externalFileAttributes >>> 16
  const isFolder = name.endsWith('/')
  const type = mode & fileType.mask
  if (type !== fileType.none && type !== (isFolder ? fileType.folder : fileType.file)) {
    refuse('is not a file: links and devices are not allowed')
  }
  if (isFolder && (size !== 0 || crc !== 0)) refuse('is a folder with content')
  return {
    path: isFolder ? name.slice(0, -1) : name,
    isFolder,
    isExecutable: (mode & 0o111) !== 0,
    isDeflated: compressionMethod === 8,
    size,
    compressedSize,
    crc,
    headerAt: entry.relativeOffsetOfLocalHeader,
    dataAt: local.fileDataStart
  }
}

/**
 * Whether a local header agrees with the central directory. If a data descriptor follows the data, the local header may
 * state the sizes and the CRC as 0.
 */
function matchesDirectory (entry: Entry, local: LocalFileHeader): boolean {
  const hasDescriptor = (entry.generalPurposeBitFlag & flag.descriptor) !== 0
  const matchesKnown = (stated: number, known: number): boolean => stated === known || (hasDescriptor && stated === 0)
  return (
    local.fileName.equals(entry.fileNameRaw) &&
    (local.generalPurposeBitFlag & comparedFlags) === (entry.generalPurposeBitFlag & comparedFlags) &&
    local.compressionMethod === entry.compressionMethod &&
    matchesKnown(local.crc32, entry.crc32) &&
    matchesKnown(local.compressedSize, entry.compressedSize) &&
    matchesKnown(local.uncompressedSize, entry.uncompressedSize)
  )
}

/** Rejects links, alternative names, and alternative sizes. */
function checkExtraFields ({ extraFields }: Entry, raw: Buffer, refuse: (reason: string) => never): void {
  for (const { id, data } of extraFields) {
    // Times, uid and gid take twelve bytes; further data is the target of a link or a device number.
    if (id === extra.unix && data.length > 12) refuse('is a link or a device')
    if (id === extra.asiUnix && data.length >= 10 && data.readUInt32LE(6) !== 0) refuse('is a link or a device')
    if (id === extra.unicodePath && !data.subarray(5).equals(raw)) refuse('has two names')
    if (id === extra.zip64) refuse('is in the ZIP64 format, which is not supported')
  }
}

/**
 * Checks the stated sizes, before anything is inflated.
 * @param total the size of all entries up to this one
 * @throws ArchiveError
 */
function checkSizes ({ path, size, compressedSize }: ArchiveEntry, total: number, bounds: ArchiveBounds): void {
  if (size > bounds.maxFileSize) {
    throw new ArchiveError(`${quoteEntryName(path)} is larger than ${bounds.maxFileSize} bytes`)
  }
  if (total > bounds.maxTotalSize) {
    throw new ArchiveError(`its files have more than ${bounds.maxTotalSize} bytes in total`)
  }
  if (size > bounds.ratioCheckedFrom && size > compressedSize * bounds.maxRatio) {
    throw new ArchiveError(`${quoteEntryName(path)} has too high a compression ratio`)
  }
}

/** Checks that no entries share bytes, and that no entry extends into the central directory. @throws ArchiveError */
function checkOverlaps (entries: readonly ArchiveEntry[], directoryAt: number): void {
  let last = 0
  for (const { path, headerAt, dataAt, compressedSize } of [...entries].sort((one, other) =>
    one.headerAt - other.headerAt)) {
    if (headerAt < last) throw new ArchiveError(`${quoteEntryName(path)} overlaps with another file`)
    last = dataAt + compressedSize
  }
  if (last > directoryAt) throw new ArchiveError('a file overlaps with its central directory')
}
