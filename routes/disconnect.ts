import type { FastifyReply } from 'fastify'

/** A signal that aborts when the connection of a reply closes, after the answer or before. */
export function disconnectSignal (reply: FastifyReply): AbortSignal {
  const disconnected = new AbortController()
  reply.raw.once('close', () => { disconnected.abort() })
  return disconnected.signal
}
