import type { FastifyBaseLogger } from 'fastify'
import fp from 'fastify-plugin'
import { messageOf } from '../../db/errors.ts'
import type { Resealing } from '../../db/store.ts'

/**
 * Re-encrypts secrets that are encrypted with former keys, in the background after the start, with the first key of
 * ENCRYPTION_KEY.
 * @param connects whether the gateway runs; commands that only work on the settings do not re-encrypt
 */
export default fp<{ resealing?: Resealing, connects?: boolean }>(async (app, { resealing, connects = true }) => {
  if (!resealing || !connects) return
  const end = new AbortController()
  let running: Promise<void> = Promise.resolve()
  app.addHook('onReady', async () => { running = rotateEncryptionKey(resealing, app.log, end.signal) })
  app.addHook('onClose', async () => {
    end.abort()
    await running
  })
}, { name: 'key-rotation', dependencies: ['settings'] })

/**
 * Re-encrypts secrets that are encrypted with former keys, and logs when the former keys can be removed. What remains,
 * because of a failure or an abort, is left to the next start.
 */
export async function rotateEncryptionKey (
  resealing: Resealing, log: Pick<FastifyBaseLogger, 'info' | 'warn'>, signal: AbortSignal
): Promise<void> {
  try {
    const { former, locked } = await resealing.countOutdatedSeals()
    if (locked.length > 0) {
      const those = locked.map(({ what, key, count }) => `${count} ${what} (key ${key})`).join(', ')
      log.warn(
        `Encrypted with a key that is not available: ${those}. Append that key to ENCRYPTION_KEY, ` +
        'after a comma. Logins at servers that cannot be decrypted are treated as missing.'
      )
    }
    if (former === 0) return
    log.info('key rotation: secrets encrypted with former keys are being re-encrypted with the first key')
    const { anew } = await resealing.resealAll(signal)
    const left = (await resealing.countOutdatedSeals()).former
    const done = `key rotation: ${anew} ${anew === 1 ? 'secret was' : 'secrets were'} re-encrypted`
    if (left === 0) {
      log.info(
        `${done} with the first key. No stored secret needs another key: once each replica has started with this ` +
        'first key, you can remove the former keys from ENCRYPTION_KEY. Tasks that are running now need the former ' +
        'keys until they end'
      )
    } else {
      log.warn(
        `${done}; ${left} still ${left === 1 ? 'uses' : 'use'} a former key: they cannot be decrypted, or another ` +
        'replica was using them or has another first key. Keep the former keys. The next start tries again.'
      )
    }
  } catch (error) {
    if (signal.aborted) return
    log.warn(
      `Secrets encrypted with former keys could not be re-encrypted (${messageOf(error)}). Keep the former keys. The ` +
      'next start tries again.'
    )
  }
}
