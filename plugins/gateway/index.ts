import fp from 'fastify-plugin'
import type { GatewayOptions } from './plugin.ts'

export { gatewayLimits } from './limits.ts'
export type { EventTarget } from './event-cursors.ts'
export { accessRevoked } from './event-streams.ts'
export { Claims, type StoredClaims } from './claims.ts'
export type { Gateway, Result } from './gateway.ts'
export type { GatewayOptions } from './plugin.ts'
export { spellingsOf } from './hidden-resources.ts'
export type { AppliedPolicy, FinishedCall, GatewayCall, GuardFinding } from './hooks.ts'
export { unknownItem } from './methods/items.ts'
export { OwnRequest } from './own-request.ts'
export { ListResult, type ListEntry, itemText } from './list.ts'
export type { Precedence } from './precedence.ts'
export type { CallTool, PresentationInput } from './surfaces.ts'
export { type Section, showItem, type Target } from './section.ts'
export type { Surface } from './surface.ts'
export { matchesTemplate, templateLiterals } from './templates.ts'
export { serverIdentity } from './task-handles.ts'

/** Registers the gateway, which lists and runs the items of all providers, for MCP, REST and OpenAPI. */
export default fp<GatewayOptions>(async (app, { sealer, storage }) => {
  await app.register(import('./plugin.ts'), { sealer, storage })
}, { name: 'gateway-wing', dependencies: ['settings-wing'] })
