import fp from 'fastify-plugin'
import type { Resealing } from '../../../db/store.ts'
import { EncryptionKeyRotation } from './key-rotation.ts'

/**
 * Re-encrypts secrets that are encrypted with former keys, in the background after the start, with the first key of
 * ENCRYPTION_KEY.
 * @param connects whether the gateway runs; commands that only work on the settings do not re-encrypt
 */
export default fp<{ resealing?: Resealing, connects?: boolean }>(async (app, { resealing, connects = true }) => {
  if (!resealing || !connects) return
  const rotation = new EncryptionKeyRotation({
    resealing,
    info: (sentence) => { app.log.info(sentence) },
    warn: (sentence) => { app.log.warn(sentence) }
  })
  app.addHook('onReady', async () => { rotation.start() })
  app.addHook('onClose', async () => { await rotation.close() })
}, { name: 'key-rotation', dependencies: ['settings'] })
