import fp from 'fastify-plugin'
import type { LogRing } from './ring.ts'
import { maskerOf } from './secrets.ts'
import { childLine } from './tap.ts'

declare module 'fastify' {
  interface FastifyInstance { logs: LogRing }
}

/** `app.logs`: the newest lines of the log, for admins. @param ring is filled by the logger, which was made before the app */
export default fp<{ ring: LogRing }>(async (app, { ring }) => {
  const { JWT_SECRET, METRICS_TOKEN } = app.config.env
  const mask = maskerOf(() => app.settings.current, [JWT_SECRET, METRICS_TOKEN].filter((secret) => secret !== undefined))
  ring.redactBy((text) => mask(app.credentials.mask(text)))
  app.decorate('logs', ring)
  // In the log of the process only at level `debug`.
  app.upstreamHooks.onLine((server, line) => {
    ring.child(server, line)
    app.log.debug({ server, [childLine]: true }, `${server}: ${line}`)
  })
}, { name: 'logs', dependencies: ['base', 'settings', 'upstream'] })
