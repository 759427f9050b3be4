import fp from 'fastify-plugin'
import type { Storage } from '../../db/store.ts'
import { gatewayName } from '../../protocol/instance.ts'
import type { Sealer } from '../base/secrets/index.ts'
import { Gateway } from './gateway.ts'

export { gatewayLimits } from './limits.ts'
export type { EventTypeTarget } from './event-cursors.ts'
export { accessRevokedError } from './event-streams.ts'
export { ItemClaims, type StoredItemClaims } from './claims.ts'
export type { MethodResult } from './gateway.ts'
export type { Gateway }
export { spellingsOf } from './hidden-resources.ts'
export type { AppliedPolicy, FinishedCall, GatewayCall, GuardFinding } from './hooks.ts'
export { unknownItemError } from './methods/items.ts'
export { ListResult, type ListEntry, itemText } from './list.ts'
export type { Precedence } from './precedence.ts'
export type { CallTool, PresentationInput } from './surfaces.ts'
export { type ViewSection, toShownItem, type ItemTarget } from './section.ts'
export type { Surface } from './surface.ts'
export { matchesTemplate, templateLiterals } from './templates.ts'
export { serverFingerprint } from './task-handles.ts'

declare module 'fastify' {
  interface FastifyInstance { gateway: Gateway }
}

export interface GatewayOptions {
  /** Encrypts task ids and event cursors for clients. Default: with a random key that only this process has. */
  sealer?: Sealer
  storage: Pick<Storage, 'tasks'>
}

/**
 * Registers the gateway, which lists and runs the items of all providers, for MCP, REST and OpenAPI; and the built-in
 * prompts, resources and skills. Other plugins register providers, hooks and methods at `app.gateway`.
 */
export default fp<GatewayOptions>(async (app, { sealer, storage }) => {
  const gateway = new Gateway({
    access: app.access,
    sealer,
    tasks: storage.tasks,
    serverInfo: { name: gatewayName, version: app.config.version },
    logError: (error, sentence) => { app.log.error({ err: error }, sentence) }
  })
  app.decorate('gateway', gateway)
  app.addHook('onClose', async () => { await gateway.close() })
  await app.register(import('./builtins/index.ts'))
}, { name: 'gateway', dependencies: ['settings-wing'] })
