import fp from 'fastify-plugin'
import { Downstream } from './downstream.ts'

declare module 'fastify' {
  interface FastifyInstance { downstream: Downstream }
}

/** `app.downstream`: MCP as a way of asking the gateway; the only place that writes MCP to the socket. `app.ts` drains it. */
export default fp(async (app) => {
  const downstream = new Downstream(
    app.gateway,
    app.upstreams,
    () => app.settings.current,
    (error, sentence) => {
      app.log.error({ err: error }, sentence)
    }
  )
  app.decorate('downstream', downstream)
  app.settings.on('changed', () => {
    downstream.revoke((view) => {
      const principal = app.auth.standing(view.principal)
      return principal !== undefined && app.access.stands(view, principal)
    })
    app.gateway.withdraw([...downstream.sessions].map((session) => ({ view: session.view, client: session })))
  })
}, { name: 'downstream', dependencies: ['gateway', 'auth', 'access', 'settings'] })
