import fp from 'fastify-plugin'
import { Downstream } from './downstream.ts'

declare module 'fastify' {
  interface FastifyInstance { downstream: Downstream }
}

/** `app.downstream`: MCP as a way of asking the gateway. `app.ts` drains it. */
export default fp(async (app) => {
  const downstream = new Downstream(
    app.gateway,
    () => app.settings.current,
    (error, sentence) => {
      app.log.error({ err: error }, sentence)
    }
  )
  app.decorate('downstream', downstream)
  // Sessions end with their access; those that stay lose what they do not see any more.
  app.auth.standings.on('changed', (standingOf) => {
    downstream.revoke((view) => {
      const principal = standingOf(view.principal)
      return principal !== undefined && app.access.stands(view, principal)
    })
    app.gateway.withdraw()
  })
}, { name: 'downstream', dependencies: ['gateway', 'auth', 'access', 'settings'] })
