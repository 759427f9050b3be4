import fp from 'fastify-plugin'
import type { DownstreamOptions } from './parts.ts'

export { type InboundRequest, firstHeaderValue } from './endpoint.ts'
export { EventStream } from './event-stream.ts'
export { DisconnectSignal } from './tools/exchange.ts'
export { parseExactJson } from './tools/parse-arguments.ts'
export type { HttpCaller, ToolAddress } from './tools/tools.ts'
export type { DownstreamOptions } from './parts.ts'

/** The endpoints through which clients reach the gateway. */
export default fp<DownstreamOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'downstream-wing', dependencies: ['gateway', 'identity', 'upstream-wing'] })
