import fp from 'fastify-plugin'
import { canUseMcp } from '../../settings/index.ts'
import { createHeaderSelector } from './forwarding.ts'
import { HttpTools } from './tools.ts'

declare module 'fastify' {
  interface FastifyInstance { tools: HttpTools }
}

/** Decorates the app with `tools`, which handles requests of plain HTTP callers. `app.ts` closes it. */
export default fp(async (app) => {
  const tools = new HttpTools(app.gateway, app.access, createHeaderSelector(() => app.settings.current))
  app.decorate('tools', tools)
  app.auth.accessChanges.on('changed', (standingOf) => {
    tools.endWithoutAccess((principal) => {
      // `routing.enableBearerAuth` does not decide whether anonymous callers may use the open routes.
      const now = principal.kind === 'anonymous' ? principal : standingOf(principal)
      return now && canUseMcp(now) ? now : undefined
    })
  })
}, { name: 'tools', dependencies: ['gateway', 'access', 'auth', 'keys', 'settings'] })
