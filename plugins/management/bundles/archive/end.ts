import type { FileHandle } from 'node:fs/promises'
import { ArchiveError } from './archive.ts'

// The zip format is specified in PKWARE's APPNOTE.TXT.

/** The size of the "end of central directory record" (APPNOTE 4.3.16), and the max size of its comment, in bytes. */
const recordSize = 22
const maxComment = 0xffff
const endSignature = 0x06054b50
const zip64LocatorSize = 20
const zip64LocatorSignature = 0x07064b50

/** The number of entries, and the offsets of the start and the end of the central directory, in bytes. */
interface ArchiveEnd { readonly entryCount: number, readonly directoryAt: number, readonly endAt: number }

/** Reads a part of a file. @throws ArchiveError if the file is shorter */
async function readPart (file: FileHandle, at: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length)
  for (let done = 0; done < length;) {
    const { bytesRead } = await file.read(buffer, done, length - done, at + done)
    if (bytesRead === 0) throw new ArchiveError('it is cut off')
    done += bytesRead
  }
  return buffer
}

/**
 * Finds the central directory of a zip archive by its end record. Split archives, ZIP64 and trailing bytes are
 * rejected, since zip readers interpret them differently.
 * @throws ArchiveError
 */
export async function findCentralDirectory (file: FileHandle): Promise<ArchiveEnd> {
  const { size } = await file.stat()
  const length = Math.min(size, zip64LocatorSize + recordSize + maxComment)
  const tail = await readPart(file, size - length, length)
  let at = length - recordSize
  while (at >= 0 && tail.readUInt32LE(at) !== endSignature) at--
  if (at < 0) throw new ArchiveError('it is not a zip archive, or it is cut off')
  if (at + recordSize + tail.readUInt16LE(at + 20) !== length) {
    throw new ArchiveError('there are other bytes after the archive')
  }
  if (at >= zip64LocatorSize && tail.readUInt32LE(at - zip64LocatorSize) === zip64LocatorSignature) {
    throw new ArchiveError('it is in the ZIP64 format, which is not supported')
  }
  const [disk, directoryDisk, onDisk, entries] = [4, 6, 8, 10].map((offset) => tail.readUInt16LE(at + offset))
  if (disk !== 0 || directoryDisk !== 0 || onDisk !== entries) {
    throw new ArchiveError('it is a part of a multi-part archive')
  }
  const directorySize = tail.readUInt32LE(at + 12)
  const directoryAt = tail.readUInt32LE(at + 16)
  const endAt = size - length + at
  if (directoryAt + directorySize !== endAt) {
    throw new ArchiveError('its central directory is not at the stated position')
  }
  return { entryCount: entries ?? 0, directoryAt, endAt }
}

/**
 * The signature of an MCPB bundle follows the zip archive: header, length (four bytes), PKCS #7, footer. `max`: the max
 * size of these parts in total, in bytes.
 */
const signature = { header: 'MCPB_SIG_V1', footer: 'MCPB_SIG_END', max: 1024 * 1024 } as const

/**
 * Removes the signature from a bundle file, so that only the zip archive remains. The signature is not verified.
 * @returns whether the file had a signature
 */
export async function removeSignature (file: FileHandle): Promise<boolean> {
  const { size } = await file.stat()
  const length = Math.min(size, signature.max)
  const tail = await readPart(file, size - length, length)
  if (tail.subarray(-signature.footer.length).toString('latin1') !== signature.footer) return false
  const at = tail.lastIndexOf(signature.header)
  const lengthAt = at + signature.header.length
  if (at < 0 || lengthAt + 4 > length) return false
  if (lengthAt + 4 + tail.readUInt32LE(lengthAt) + signature.footer.length !== length) return false
  await file.truncate(size - length + at)
  return true
}
