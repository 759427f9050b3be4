import fp from 'fastify-plugin'
import { Downstream } from './downstream.ts'

declare module 'fastify' {
  interface FastifyInstance { downstream: Downstream }
}

export interface DownstreamOptions {
  /** How long calls in flight may still take when the app closes, in ms. */
  drainTimeout: number
}

/** `app.downstream`: MCP as a way of asking the gateway; the only place that writes MCP to the socket. */
export default fp<DownstreamOptions>(async (app, { drainTimeout }) => {
  const downstream = new Downstream(app.gateway, app.upstreams, () => app.settings.current, (error, sentence) => { app.log.error({ err: error }, sentence) })
  app.decorate('downstream', downstream)
  app.settings.on('changed', () => {
    downstream.revoke((view) => {
      const principal = app.auth.standing(view.principal)
      return principal !== undefined && app.access.stands(view, principal)
    })
  })
  app.addHook('preClose', async () => { await downstream.close(drainTimeout) })
}, { name: 'downstream', dependencies: ['gateway', 'auth', 'access', 'settings'] })
