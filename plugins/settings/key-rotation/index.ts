import fp from 'fastify-plugin'
import type { Resealing } from '../../../db/store.ts'
import { KeyRotation } from './key-rotation.ts'

/**
 * Re-encrypts with the current ENCRYPTION_KEY what former keys have encrypted, in the background of a start.
 * @param connects whether the gateway runs; a command that works on the settings alone does not re-encrypt
 */
export default fp<{ resealing?: Resealing, connects?: boolean }>(async (app, { resealing, connects = true }) => {
  if (!resealing || !connects) return
  const rotation = new KeyRotation({
    resealing,
    info: (sentence) => { app.log.info(sentence) },
    warn: (sentence) => { app.log.warn(sentence) }
  })
  app.addHook('onReady', async () => { rotation.start() })
  app.addHook('onClose', async () => { await rotation.close() })
}, { name: 'key-rotation', dependencies: ['settings'] })
