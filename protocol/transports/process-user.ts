import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/** The user that a process runs as. */
export interface ProcessUser { readonly uid: number, readonly gid: number, readonly home: string, readonly name: string }

/**
 * Whether a user may enter a folder, by the modes of it and of all above it. The system does not tell: a process changes to its folder
 * before it changes its user.
 */
export async function mayEnter (folder: string, { uid, gid }: ProcessUser): Promise<boolean> {
  if (uid === 0) return true
  for (let at = resolve(folder); ; at = dirname(at)) {
    const stats = await stat(at).catch(() => undefined)
    if (!stats) return true
    const bit = stats.uid === uid ? 0o100 : stats.gid === gid ? 0o010 : 0o001
    if ((stats.mode & bit) === 0) return false
    if (at === dirname(at)) return true
  }
}
