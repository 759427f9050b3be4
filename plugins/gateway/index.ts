import fp from 'fastify-plugin'
import type { GatewayOptions } from './plugin.ts'

export { gatewayLimits } from './limits.ts'
export type { EventTypeTarget } from './event-cursors.ts'
export { accessRevokedError } from './event-streams.ts'
export { ItemClaims, type StoredItemClaims } from './claims.ts'
export type { Gateway, MethodResult } from './gateway.ts'
export type { GatewayOptions } from './plugin.ts'
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

/** Registers the gateway, which lists and runs the items of all providers, for MCP, REST and OpenAPI. */
export default fp<GatewayOptions>(async (app, { sealer, storage }) => {
  await app.register(import('./plugin.ts'), { sealer, storage })
}, { name: 'gateway-wing', dependencies: ['settings-wing'] })
