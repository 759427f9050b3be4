import { createHash } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { FileEditedError, overwriteFile, replaceFileAtomically } from './write.ts'

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Returns the path of the backup: the bytes before the first write of the process, or the last write in place. */
export const backupPath = (path: string): string => `${path}.bak`
/** Returns the path of the file that exists during a write in place: the digest of the backup, as in `sha256sum`. */
const markerPath = (path: string): string => `${path}.bak.sha256`

/**
 * Overwrites a file that cannot be replaced by a rename. The former bytes are saved in `.bak` first, and are restored
 * if the write fails. If that fails too, or the process dies, the next `restoreInterruptedWrite` restores them.
 * @param lastCheck called right before the write; if it throws, the old bytes stay
 * @throws the system's error
 */
export async function overwriteWithBackup (
  path: string, bytes: Uint8Array, former: Uint8Array, lastCheck?: () => void
): Promise<void> {
  await replaceFileAtomically(backupPath(path), former)
  await replaceFileAtomically(markerPath(path), Buffer.from(`${digest(former)}  ${basename(backupPath(path))}\n`))
  try {
    await overwriteFile(path, bytes, lastCheck)
  } catch (error) {
    // After FileEditedError nothing was written, and the edit must be kept.
    if (error instanceof FileEditedError) await removeMarker(path)
    else await overwriteFile(path, former).then(async () => { await removeMarker(path) }).catch(() => {})
    throw error
  }
  await removeMarker(path)
}

/** Removes the marker. A failure is ignored, since the marker has an effect only if the file cannot be parsed. */
async function removeMarker (path: string): Promise<void> {
  await rm(markerPath(path), { force: true }).catch(() => {})
}

/**
 * Restores a file that cannot be parsed, if a write in place was interrupted and its `.bak` is complete.
 * @returns the restored bytes; undefined if no write was interrupted
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

/** Removes the files that an interrupted process left. Call it only once the file is known to be valid. */
export async function removeLeftovers (path: string): Promise<void> {
  await removeMarker(path)
  for (const name of [path, backupPath(path), markerPath(path)]) {
    await rm(`${name}.tmp`, { force: true }).catch(() => {})
  }
}
