import { open } from 'node:fs/promises'
import { type ArchiveBounds, type ArchiveEntry, ArchiveError } from './archive/archive.ts'
import { removeSignature } from './archive/end.ts'
import { readEntries } from './archive/entries.ts'
import { extractEntries } from './archive/extract.ts'
import { managementLimits } from '../limits.ts'

/**
 * Unpacks an uploaded bundle to a new folder, after removing its signature.
 * @returns the entries of the archive
 * @throws ArchiveError
 */
export async function unpackBundle (archive: string, unpacked: string, signal: AbortSignal): Promise<ArchiveEntry[]> {
  const { archiveBounds: bounds, manifestSize } = managementLimits.bundles
  const file = await open(archive, 'r+')
  try {
    await removeSignature(file)
    const entries = await readEntries(file, bounds, signal)
    const manifest = entries.find(({ path, isFolder }) => path === 'manifest.json' && !isFolder)
    if (manifest === undefined) throw new ArchiveError('it has no manifest.json at the top level')
    if (manifest.size > manifestSize) throw new ArchiveError(`its manifest.json is larger than ${manifestSize} bytes`)
    await extractEntries(file, entries, unpacked, bounds, signal)
    return entries
  } finally {
    await file.close()
  }
}

/** Unpacks all files of an archive to a new folder. @throws ArchiveError */
export async function unpackAll (archive: string, folder: string, bounds: ArchiveBounds): Promise<void> {
  const { signal } = new AbortController()
  const file = await open(archive, 'r')
  try {
    await extractEntries(file, await readEntries(file, bounds, signal), folder, bounds, signal)
  } finally {
    await file.close()
  }
}
