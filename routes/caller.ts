import type { FastifyReply, FastifyRequest } from 'fastify'
import { reserveUntilClosed } from '../plugins/base/body/index.ts'
import { type HttpCaller, DisconnectSignal } from '../plugins/downstream/index.ts'
import { ownerOf, type Principal } from '../plugins/settings/index.ts'

/** The caller of a request that runs something. It is `gone` when the connection closes before the answer. */
export function callerOf (request: FastifyRequest, reply: FastifyReply, principal: Principal): HttpCaller {
  const hold = reserveUntilClosed(reply.raw, ownerOf(principal, request.ip))
  return {
    principal, headers: request.headers, address: request.ip, disconnect: disconnectOf(reply), reserveMemory: hold
  }
}

/** The envelope of what was run. The data stay the text that they are. @param data JSON */
export function withData (reply: FastifyReply, data: string): string {
  reply.type('application/json')
  return `{"success":true,"data":${data}}`
}

/** Tells when the connection of a reply closes before the answer was sent. */
function disconnectOf ({ raw }: FastifyReply): DisconnectSignal {
  const disconnect = new DisconnectSignal()
  raw.once('close', () => { if (!raw.writableFinished) disconnect.trigger() })
  return disconnect
}

/** The same as an abort signal, for work that is not done thousands of times a second. */
export function signalOf (reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  disconnectOf(reply).listen(() => { controller.abort() })
  return controller.signal
}
