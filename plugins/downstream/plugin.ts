import fp from 'fastify-plugin'
import type { UsedStates } from '../../db/ports.ts'
import { mayRun } from '../settings/index.ts'
import { Downstream } from './downstream.ts'
import type { Sealer } from './modern/state.ts'

declare module 'fastify' {
  interface FastifyInstance { downstream: Downstream }
}

/** `app.downstream`: access to the gateway by MCP. `app.ts` drains it. */
export default fp<{ sealer?: Sealer, usedStates: UsedStates }>(async (app, { sealer, usedStates }) => {
  const logError = (error: unknown, sentence: string): void => { app.log.error({ err: error }, sentence) }
  const isOurs = (value: string): boolean => app.credentials.holds(value)
  const downstream = new Downstream(app.gateway, () => app.settings.current, logError, sealer, usedStates, isOurs)
  app.decorate('downstream', downstream)
  // Sessions end with their access; the others lose the servers that they do not see any more.
  app.auth.standings.on('changed', (standingOf) => {
    downstream.revoke((view) => {
      const principal = standingOf(view.principal)
      return principal !== undefined && mayRun(principal) && app.access.stands(view, principal)
    })
    app.gateway.withdraw()
  })
  app.auth.standings.on('expired', (id) => { downstream.closeChannels(id) })
}, { name: 'downstream', dependencies: ['base', 'gateway', 'auth', 'access', 'settings'] })
