import fp from 'fastify-plugin'
import type { OwnCredentials } from '../../base/secrets/own-credentials.ts'
import type { LogRing } from './ring.ts'
import { maskerOf } from './secrets.ts'
import { childLine } from './tap.ts'

declare module 'fastify' {
  interface FastifyInstance {
    logs: LogRing
    /** Recognises the gateway's own credentials. */
    credentials: OwnCredentials
    /** Logs a line that a server's child has printed: in the ring always, in the log of the process at level `debug`. */
    logChild: (server: string, line: string) => void
  }
}

/**
 * `app.logs`: the newest lines of the log, for admins. `app.credentials`: what no line has.
 * @param ring is filled by the logger, which was made before the app, as was `credentials`
 */
export default fp<{ ring: LogRing, credentials: OwnCredentials }>(async (app, { ring, credentials }) => {
  const { JWT_SECRET, METRICS_TOKEN } = app.config.env
  credentials.watch(() => app.settings.current.keys)
  const mask = maskerOf(() => app.settings.current, [JWT_SECRET, METRICS_TOKEN].filter((secret) => secret !== undefined))
  ring.redactBy((text) => mask(credentials.mask(text)))
  app.decorate('credentials', credentials)
  app.decorate('logs', ring)
  app.decorate('logChild', (server: string, line: string) => {
    ring.child(server, line)
    app.log.debug({ server, [childLine]: true }, `${server}: ${line}`)
  })
}, { name: 'logs', dependencies: ['config', 'settings'] })
