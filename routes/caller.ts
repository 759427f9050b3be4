import type { FastifyReply, FastifyRequest } from 'fastify'
import { onceClosed } from '../plugins/base/limits/index.ts'
import { type HttpCaller, DisconnectSignal } from '../plugins/downstream/index.ts'
import type { Principal } from '../plugins/settings/index.ts'

/** Returns the caller of a request. `disconnect` fires if the connection closes before the whole response is sent. */
export const callerOf = ({ headers, ip }: FastifyRequest, reply: FastifyReply, principal: Principal): HttpCaller =>
  ({ principal, headers, address: ip, disconnect: disconnectOf(reply) })

/**
 * Returns the response body of the management API (`{success, data}`) for a result, and sets the content type.
 * @param data the result of a tool, prompt or resource as JSON text; it is not parsed, so that numbers keep all digits
 */
export function wrapInEnvelope (reply: FastifyReply, data: string): string {
  reply.type('application/json')
  return `{"success":true,"data":${data}}`
}

/** Returns a signal that fires if the connection closes before the whole response is sent. */
function disconnectOf ({ raw }: FastifyReply): DisconnectSignal {
  const disconnect = new DisconnectSignal()
  onceClosed(raw, () => { if (!raw.writableFinished) disconnect.trigger() })
  return disconnect
}

/**
 * Returns an AbortSignal that fires if the connection closes before the whole response is sent. It costs more than a
 * DisconnectSignal, so use it only on routes that get few requests.
 */
export function abortSignalOf (reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  disconnectOf(reply).listen(() => { controller.abort() })
  return controller.signal
}
