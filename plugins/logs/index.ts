import fp from 'fastify-plugin'
import type { LogRing } from './ring.ts'
import { maskerOf } from './secrets.ts'
import { childLine } from './tap.ts'

declare module 'fastify' {
  interface FastifyInstance {
    logs: LogRing
    /** Logs a line that a server's child has printed: in the ring always, in the log of the process at level `debug`. */
    logChild: (server: string, line: string) => void
  }
}

/** `app.logs`: the newest lines of the log, for admins. @param ring is filled by the logger, which was made before the app */
export default fp<{ ring: LogRing }>(async (app, { ring }) => {
  const { JWT_SECRET, METRICS_TOKEN } = app.config.env
  const secrets = [JWT_SECRET, METRICS_TOKEN].filter((secret) => secret !== undefined)
  ring.redactBy(maskerOf(() => app.settings.current, secrets))
  app.decorate('logs', ring)
  app.decorate('logChild', (server: string, line: string) => {
    ring.child(server, line)
    app.log.debug({ server, [childLine]: true }, `${server}: ${line}`)
  })
}, { name: 'logs', dependencies: ['config', 'settings'] })
