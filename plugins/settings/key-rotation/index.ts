import fp from 'fastify-plugin'
import type { Resealing } from '../../../db/store.ts'
import { KeyRotation } from './key-rotation.ts'

/**
 * Seals anew what former keys of ENCRYPTION_KEY have sealed, in the background of a start.
 * @param connects false: this is work on the settings alone, which has no time for that
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
