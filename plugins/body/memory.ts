import type { preParsingHookHandler } from 'fastify'
import { limits } from '../limits/index.ts'
import { memory } from '../limits/memory.ts'
import { ownerAt } from '../limits/owner.ts'

/**
 * Takes memory for a body before it is read, and gives it back when the request is answered. Small bodies are not counted; one without a
 * length counts as the largest that is accepted.
 * @param limit the current max size of a body, in bytes
 */
export const holdBody = (limit: () => number): preParsingHookHandler => (request, reply, payload, done) => {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  const size = length === undefined ? encoding === undefined ? 0 : limit() : Number(length)
  if (size > limits.smallBody && size <= limit()) {
    // However much an operator admits, some bodies fit.
    const cost = Math.min(size * limits.bodyCost, memory.max / 4)
    reply.raw.once('close', memory.take(ownerAt(request.ip), cost))
  }
  done(null, payload)
}
