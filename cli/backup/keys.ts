import { existsSync } from 'node:fs'
import { chmod, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openKeyRing } from '../../plugins/base/secrets/index.ts'
import type { Env } from '../../schemas/env.ts'
import { files, type BackupDescription } from './contents.ts'
import type { Places } from './places.ts'

/**
 * Checks that the secrets of a backup can be opened once it is restored, and that its key does not take the place of another one.
 * @param isAllowed the operator accepts that they cannot
 * @throws Error with one sentence
 */
export async function checkKeys (
  { sealedWith }: BackupDescription,
  work: string,
  places: Places,
  { ENCRYPTION_KEY: encryptionKey }: Env,
  { isAllowed, print }: { isAllowed: boolean, print: (message: string) => void }
): Promise<void> {
  const key = join(work, files.key)
  if (existsSync(key)) {
    await chmod(key, 0o600)
    const isOther = existsSync(places.key) && (await readFile(places.key, 'utf8')).trim() !== (await readFile(key, 'utf8')).trim()
    if (isOther) {
      throw new Error(`${places.key} is another key than that of the backup. Move it to a safe place first. Nothing was changed.`)
    }
  }
  const rings = [await openKeyRing({ dataDir: places.dataDir, encryptionKey }), await openKeyRing({ dataDir: work })]
  const lost = Object.entries(sealedWith).filter(([id]) => rings.every((ring) => ring.find(id) === undefined))
  if (lost.length === 0) return
  const what = lost.map(([id, count]) => `${count} of key ${id}`).join(', ')
  if (!isAllowed) {
    const advice = encryptionKey === undefined
      ? 'Set ENCRYPTION_KEY to their key'
      : 'ENCRYPTION_KEY does not match what was stored: set it to their key, or add that one behind a comma'
    throw new Error(
      `These secrets cannot be opened here: ${what}. ${advice}, put the key file at ${places.key}, or use --without-key. ` +
      'Nothing was changed.'
    )
  }
  print(`These secrets stay locked until the key is there: ${what}.`)
}
