import { createHash } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { FileEditedError, overwriteFile, replaceFileAtomically } from './write.ts'

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/**
 * Returns the path of the backup of a file: its bytes from before the first write of this process, or from before the
 * last write in place.
 */
export const backupPath = (path: string): string => `${path}.bak`
/**
 * Returns the path of the marker: a file that exists during a write in place, and contains the digest of the backup in
 * the format of `sha256sum`.
 */
const markerPath = (path: string): string => `${path}.bak.sha256`

/**
 * Overwrites a file in place, for files that cannot be replaced by a rename. The former bytes are saved in `.bak`
 * first, and written back if the write fails. If that fails too, or the process dies, `restoreInterruptedWrite`
 * restores them.
 * @param lastCheck called right before the write; if it throws, the file is not changed
 * @throws the system's error
 */
export async function backUpAndOverwrite (
  path: string, bytes: Uint8Array, former: Uint8Array, lastCheck?: () => void
): Promise<void> {
  await replaceFileAtomically(backupPath(path), former)
  await replaceFileAtomically(markerPath(path), Buffer.from(`${digest(former)}  ${basename(backupPath(path))}\n`))
  try {
    await overwriteFile(path, bytes, lastCheck)
  } catch (error) {
    // `lastCheck` throws FileEditedError before anything is written, and the edit must be kept.
    if (error instanceof FileEditedError) await removeMarker(path)
    else await overwriteFile(path, former).then(async () => { await removeMarker(path) }).catch(() => {})
    throw error
  }
  await removeMarker(path)
}

/** Removes the marker. A failure is ignored, since the marker is only used if the file cannot be parsed. */
async function removeMarker (path: string): Promise<void> {
  await rm(markerPath(path), { force: true }).catch(() => {})
}

/**
 * Restores a file from its `.bak`, if a write in place was interrupted and the `.bak` is complete. Only to be called if
 * the file cannot be parsed.
 * @returns the restored bytes; undefined if the file was not restored
 * @throws the system's error when the bytes cannot be written
 */
export async function restoreInterruptedWrite (path: string): Promise<Buffer | undefined> {
  const marker = await readFile(markerPath(path), 'utf8').catch(() => undefined)
  const backup = marker === undefined ? undefined : await readFile(backupPath(path)).catch(() => undefined)
  if (marker === undefined || backup === undefined || marker.split(' ')[0] !== digest(backup)) return undefined
  await overwriteFile(path, backup)
  await removeMarker(path)
  return backup
}

/** Removes the marker and temporary files that an interrupted process left. Only to be called if the file is valid. */
export async function removeLeftovers (path: string): Promise<void> {
  await removeMarker(path)
  for (const name of [path, backupPath(path), markerPath(path)]) {
    await rm(`${name}.tmp`, { force: true }).catch(() => {})
  }
}
