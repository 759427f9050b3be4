import fp from 'fastify-plugin'
import { Gateway } from './gateway.ts'
import type { PublicReach } from '../access/visibility.ts'

declare module 'fastify' {
  interface FastifyInstance { gateway: Gateway }
}

export interface GatewayOptions { version: string, publicTools: PublicReach }

/** `app.gateway`: what we can do. MCP, REST and OpenAPI are ways of asking it. */
export default fp<GatewayOptions>(async (app, { version, publicTools }) => {
  app.decorate('gateway', new Gateway(() => app.settings.current, app.upstreams, publicTools, { name: 'tool-hub', version }))
}, { name: 'gateway', dependencies: ['settings', 'upstream'] })
