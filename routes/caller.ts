import type { FastifyReply, FastifyRequest } from 'fastify'
import { reserveUntilClosed } from '../plugins/base/body/index.ts'
import { type HttpCaller, DisconnectSignal } from '../plugins/downstream/index.ts'
import { ownerOf, type Principal } from '../plugins/settings/index.ts'

/**
 * The caller of a request that runs something. Its `disconnect` fires if the connection closes before the response is
 * sent.
 */
export function callerOf (request: FastifyRequest, reply: FastifyReply, principal: Principal): HttpCaller {
  const hold = reserveUntilClosed(reply.raw, ownerOf(principal, request.ip))
  return {
    principal, headers: request.headers, address: request.ip, disconnect: disconnectOf(reply), reserveMemory: hold
  }
}

/** Wraps the result of a run in the API's envelope. The data stays unparsed text. @param data JSON text */
export function withData (reply: FastifyReply, data: string): string {
  reply.type('application/json')
  return `{"success":true,"data":${data}}`
}

/** Signals that the connection closes before the response is sent. */
function disconnectOf ({ raw }: FastifyReply): DisconnectSignal {
  const disconnect = new DisconnectSignal()
  raw.once('close', () => { if (!raw.writableFinished) disconnect.trigger() })
  return disconnect
}

/** The same as an AbortSignal, which is slower: not for the path of every call. */
export function signalOf (reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  disconnectOf(reply).listen(() => { controller.abort() })
  return controller.signal
}
