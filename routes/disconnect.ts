import type { FastifyReply } from 'fastify'
import { Disconnect } from '../plugins/downstream/index.ts'

/** Tells when the connection of a reply closes before the answer was sent. */
export function disconnectOf ({ raw }: FastifyReply): Disconnect {
  const disconnect = new Disconnect()
  raw.once('close', () => { if (!raw.writableFinished) disconnect.happen() })
  return disconnect
}

/** The same as an abort signal, for work that is not done thousands of times a second. */
export function signalOf (reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  disconnectOf(reply).listen(() => { controller.abort() })
  return controller.signal
}
