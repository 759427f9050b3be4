import { createHash } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { Edited, overwrite, replace } from './write.ts'

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Where the last good bytes are kept: as the process found them, and before each write in place. */
export const backupOf = (path: string): string => `${path}.bak`
/** There only while a file is written in place: the digest of its `.bak`, as `sha256sum` writes it. */
const markerOf = (path: string): string => `${path}.bak.sha256`

/**
 * Writes a file in place, for one that cannot be replaced. The old bytes are safe in `.bak` before the first one is touched, and
 * are put back when the write fails; where even that fails, or the process dies, `recover` does it.
 * @param last as for `replace`
 * @throws the system's error
 */
export async function writeInPlace (path: string, bytes: Uint8Array, former: Uint8Array, last?: () => void): Promise<void> {
  await replace(backupOf(path), former)
  await replace(markerOf(path), Buffer.from(`${digest(former)}  ${basename(backupOf(path))}\n`))
  try {
    await overwrite(path, bytes, last)
  } catch (error) {
    // An edit is not ours to undo.
    if (error instanceof Edited) await dropMarker(path)
    else await overwrite(path, former).then(async () => { await dropMarker(path) }).catch(() => {})
    throw error
  }
  await dropMarker(path)
}

/** A marker that stays by mistake does no harm for as long as the file parses. */
async function dropMarker (path: string): Promise<void> {
  await rm(markerOf(path), { force: true }).catch(() => {})
}

/**
 * Puts the last good bytes back into a file that does not parse, when a write in place was interrupted and its `.bak` is whole.
 * @returns the bytes; undefined when that is not what happened
 * @throws the system's error when they cannot be written
 */
export async function recover (path: string): Promise<Buffer | undefined> {
  const marker = await readFile(markerOf(path), 'utf8').catch(() => undefined)
  const backup = marker === undefined ? undefined : await readFile(backupOf(path)).catch(() => undefined)
  if (marker === undefined || backup === undefined || marker.split(' ')[0] !== digest(backup)) return undefined
  await overwrite(path, backup)
  await dropMarker(path)
  return backup
}

/** Clears away what an interrupted process left, once the file is known to be good. */
export async function tidy (path: string): Promise<void> {
  await dropMarker(path)
  for (const name of [path, backupOf(path), markerOf(path)]) await rm(`${name}.tmp`, { force: true }).catch(() => {})
}
