import fp from 'fastify-plugin'
import type { Storage } from '../../db/store.ts'
import access from './access/index.ts'
import audit from './audit/index.ts'
import keyRotation from './key-rotation.ts'
import settings from './plugin.ts'

export interface SettingsOptions {
  storage: Pick<Storage, 'auditTrail' | 'resealing' | 'store'>
  /** Whether the gateway connects servers. False for commands that only work on the settings. Default: true. */
  connects?: boolean
}

/** The settings, their audit log, the rotation of the encryption key, and the access decision. */
export default fp<SettingsOptions>(async (app, { storage, connects }) => {
  await app.register(settings, storage)
  await app.register(audit, storage)
  await app.register(keyRotation, { resealing: storage.resealing, connects })
  await app.register(access)
}, { name: 'settings-parts' })
