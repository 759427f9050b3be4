import fp from 'fastify-plugin'
import type { GatewayOptions } from './plugin.ts'

export { gatewayLimits } from './limits.ts'
export { Claims, type StoredClaims } from './claims.ts'
export type { Gateway, Result } from './gateway.ts'
export type { AppliedPolicy, FinishedCall, GatewayCall } from './hooks.ts'
export { unknownItem } from './methods/items.ts'
export { ListResult, type ListEntry, itemText } from './list.ts'
export type { Precedence } from './precedence.ts'
export type { CallTool, PresentationInput } from './surfaces.ts'
export { type Section, showItem, type Target } from './section.ts'
export type { Surface } from './surface.ts'
export { serverIdentity } from './task-handles.ts'

/** Lists and runs the items of all providers, for MCP, REST and OpenAPI. */
export default fp<GatewayOptions>(async (app, { sealer }) => {
  await app.register(import('./plugin.ts'), { sealer })
}, { name: 'gateway-wing', dependencies: ['settings-wing'] })
