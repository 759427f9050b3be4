import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { Shares } from '../../base/limits/index.ts'
import { EventStream } from '../../downstream/index.ts'
import { chargedOwnerOf, type Principal } from '../../settings/index.ts'
import { childLineMark } from './logger.ts'
import { type LogRing, createMasker } from './ring.ts'
import { extensionsLimits } from '../limits.ts'

declare module 'fastify' {
  interface FastifyInstance {
    logs: LogRing
    /**
     * Responds to an admin's request with an event stream of the log: `{type: 'initial', logs}`, then
     * `{type: 'log', log}` for each new line and `{type: 'clear'}`. The stream ends when the caller is no longer an
     * admin, when the login expires, or if the caller reads too slowly. The reply must be hijacked.
     * @throws ShareError if the caller has used up its share of the streams, or all streams are in use
     */
    streamLogs: (request: FastifyRequest, reply: FastifyReply, principal: Principal) => void
  }
}

/**
 * Interval at which the gateway checks whether the readers of streams are still admins, in ms. It also checks after
 * each known change of access.
 */
const checkInterval = 30_000

/** Max delay of a timer, in ms: 24.8 days. */
const maxTimerDelay = 2 ** 31 - 1

/**
 * `app.logs` and `app.streamLogs`: the newest lines of the log, for admins.
 * @param ring the buffer that the logger fills
 */
export default fp<{ ring: LogRing }>(async (app, { ring }) => {
  const { JWT_SECRET, METRICS_TOKEN } = app.config.env
  const mask =
    createMasker(() => app.settings.current, [JWT_SECRET, METRICS_TOKEN].filter((secret) => secret !== undefined))
  ring.setRedaction((text) => mask(app.credentials.mask(text)))
  app.decorate('logs', ring)
  // Lines printed by servers are always added to the ring, but to the process log at level `debug` only.
  app.upstreamHooks.onLine = (server, line) => {
    ring.addChildLine(server, line)
    app.log.debug({ server, [childLineMark]: true }, `${server}: ${line}`)
  }

  const shares = new Shares(extensionsLimits.logs.streams, 'log streams')
  const streams = new Map<EventStream, FastifyRequest>()
  const endStreamsOfFormerAdmins = (): void => {
    for (const [stream, request] of streams) {
      void app.auth.identifyManagementCaller(request).then(({ isAdmin }) => isAdmin, () => false).then((isAdmin) => {
        if (!isAdmin) stream.end()
      })
    }
  }
  app.decorate('streamLogs', (request, reply, principal) => {
    const release = shares.take(chargedOwnerOf(principal, request.ip))
    const headers = Object.entries(reply.getHeaders()).map(([name, value]): [string, string] => [name, String(value)])
    const stream = new EventStream(reply.raw, Object.fromEntries(headers))
    streams.set(stream, request)
    const send = (event: object): void => { stream.write(`data: ${JSON.stringify(event)}\n\n`) }
    send({ type: 'initial', logs: ring.list() })
    const stop = ring.listen((log) => { send(log ? { type: 'log', log } : { type: 'clear' }) })
    const { expiresAt } = principal
    const expiry = expiresAt === undefined
      ? undefined
      : setTimeout(() => { stream.end() }, Math.min(expiresAt - Date.now(), maxTimerDelay)).unref()
    stream.onClose(() => {
      clearTimeout(expiry)
      stop()
      release()
      streams.delete(stream)
    })
  })
  const timer = setInterval(endStreamsOfFormerAdmins, checkInterval).unref()
  app.auth.accessChanges.on('changed', endStreamsOfFormerAdmins)
  app.auth.accessChanges.on('expired', endStreamsOfFormerAdmins)
  app.addHook('preClose', async () => {
    clearInterval(timer)
    for (const stream of streams.keys()) stream.end()
  })
}, { name: 'logs', dependencies: ['base', 'settings', 'auth', 'upstream', 'downstream'] })
