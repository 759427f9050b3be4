import fp from 'fastify-plugin'
import type { Storage } from '../../db/store.ts'
import { gatewayName } from '../../protocol/instance.ts'
import type { Sealer } from '../base/secrets/index.ts'
import builtIns from './builtins/index.ts'
import { Gateway } from './gateway.ts'

declare module 'fastify' {
  interface FastifyInstance { gateway: Gateway }
}

export interface GatewayOptions {
  /** Encrypts task ids and event cursors for clients. Default: with a random key that only this process has. */
  sealer?: Sealer
  storage: Pick<Storage, 'tasks'>
}

/** Decorates the app with `gateway`, where other plugins register providers, hooks and methods. */
const gateway = fp<GatewayOptions>(async (app, { sealer, storage }) => {
  const gateway = new Gateway({
    access: app.access,
    sealer,
    tasks: storage.tasks,
    serverInfo: { name: gatewayName, version: app.config.version },
    logError: (error, sentence) => { app.log.error({ err: error }, sentence) }
  })
  app.decorate('gateway', gateway)
  app.addHook('onClose', async () => { await gateway.close() })
}, { name: 'gateway', dependencies: ['config', 'settings', 'access'] })

/** Registers the gateway, and the built-in prompts, resources and skills. */
export default fp<GatewayOptions>(async (app, { sealer, storage }) => {
  await app.register(gateway, { sealer, storage })
  await app.register(builtIns)
}, { name: 'gateway-parts' })
