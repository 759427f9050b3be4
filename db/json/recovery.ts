import { createHash } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { FileEdited, overwrite, replace } from './write.ts'

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** The path of the backup: the bytes found at the start of the process, or those before the last write in place. */
export const backupOf = (path: string): string => `${path}.bak`
/**
 * The path of a marker that exists only during a write in place. It contains the digest of the backup, in the format of
 * `sha256sum`.
 */
const markerOf = (path: string): string => `${path}.bak.sha256`

/**
 * Overwrites a file that cannot be replaced by a rename. The old bytes are saved in `.bak` first, and are restored when
 * the write fails. If that fails too, or the process dies, `recover` restores them.
 * @param lastCheck as for `replace`
 * @throws the system's error
 */
export async function writeInPlace (
  path: string, bytes: Uint8Array, former: Uint8Array, lastCheck?: () => void
): Promise<void> {
  await replace(backupOf(path), former)
  await replace(markerOf(path), Buffer.from(`${digest(former)}  ${basename(backupOf(path))}\n`))
  try {
    await overwrite(path, bytes, lastCheck)
  } catch (error) {
    // On FileEdited nothing was written, and the edit must be kept.
    if (error instanceof FileEdited) await dropMarker(path)
    else await overwrite(path, former).then(async () => { await dropMarker(path) }).catch(() => {})
    throw error
  }
  await dropMarker(path)
}

/** Removes the marker. A failure is harmless as long as the file can be parsed. */
async function dropMarker (path: string): Promise<void> {
  await rm(markerOf(path), { force: true }).catch(() => {})
}

/**
 * Restores a file that cannot be parsed, if a write in place was interrupted and its `.bak` is complete.
 * @returns the restored bytes; undefined: no write was interrupted
 * @throws the system's error when the bytes cannot be written
 */
export async function recover (path: string): Promise<Buffer | undefined> {
  const marker = await readFile(markerOf(path), 'utf8').catch(() => undefined)
  const backup = marker === undefined ? undefined : await readFile(backupOf(path)).catch(() => undefined)
  if (marker === undefined || backup === undefined || marker.split(' ')[0] !== digest(backup)) return undefined
  await overwrite(path, backup)
  await dropMarker(path)
  return backup
}

/** Removes the files that an interrupted process left. Call it only once the file is known to be valid. */
export async function tidy (path: string): Promise<void> {
  await dropMarker(path)
  for (const name of [path, backupOf(path), markerOf(path)]) await rm(`${name}.tmp`, { force: true }).catch(() => {})
}
