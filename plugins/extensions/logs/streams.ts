import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { EventStream } from '../../downstream/index.ts'
import { limits, Shares } from '../../base/limits/index.ts'
import { ownerOf, type Principal } from '../../settings/index.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Answers a request of an admin by a stream of the log: `{type: 'initial', logs}`, then `{type: 'log', log}` and `{type: 'clear'}`. It
     * ends when the caller is no admin any more, and when it reads too slowly. The reply must be hijacked. @throws ShareError
     */
    streamLogs: (request: FastifyRequest, reply: FastifyReply, principal: Principal) => void
  }
}

/** How often it is checked whether the caller of a stream is still an admin, in ms; also at each change of the settings. */
const interval = 30_000

export default fp(async (app) => {
  const shares = new Shares(limits.logs.streams, 'log streams')
  const open = new Map<EventStream, FastifyRequest>()
  const check = (): void => {
    for (const [stream, request] of open) {
      app.auth.management(request).then(({ isAdmin }) => isAdmin, () => false).then((stands) => { if (!stands) stream.end() }, () => {})
    }
  }
  app.decorate('streamLogs', (request, reply, principal) => {
    const release = shares.take(ownerOf(principal, request.ip))
    const headers = Object.entries(reply.getHeaders()).map(([name, value]): [string, string] => [name, String(value)])
    const stream = new EventStream(reply.raw, Object.fromEntries(headers))
    open.set(stream, request)
    const send = (event: object): void => { stream.write(`data: ${JSON.stringify(event)}\n\n`) }
    send({ type: 'initial', logs: app.logs.list() })
    const stop = app.logs.listen((log) => { send(log ? { type: 'log', log } : { type: 'clear' }) })
    stream.onClose(() => {
      stop()
      release()
      open.delete(stream)
    })
  })
  const timer = setInterval(check, interval).unref()
  app.auth.standings.on('changed', check)
  app.auth.standings.on('expired', check)
  app.addHook('preClose', async () => {
    clearInterval(timer)
    for (const stream of open.keys()) stream.end()
  })
}, { name: 'log-streams', dependencies: ['logs', 'auth', 'downstream'] })
