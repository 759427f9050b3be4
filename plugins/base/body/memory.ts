import type { ServerResponse } from 'node:http'
import type { FastifyRequest, preParsingHookHandler } from 'fastify'
import { memory, baseLimits } from '../limits/index.ts'

/** Functions that reserve memory for bodies without Content-Length, by request. */
const unmeasuredReservations = new WeakMap<FastifyRequest, () => void>()

/**
 * The function that reserves memory for a body without Content-Length. Call it once more than `baseLimits.smallBody`
 * bytes have arrived; it throws ShareError if no memory is left.
 * @returns undefined for a request with a Content-Length
 */
export const unmeasuredReservationOf = (request: FastifyRequest): (() => void) | undefined =>
  unmeasuredReservations.get(request)

/**
 * Reserves memory until a request is answered; at most a quarter of the budget.
 * @param owner the owner whose share the memory counts against
 * @throws ShareError
 */
function reserveUntilClosed (raw: ServerResponse, owner: string, bytes: number): void {
  raw.once('close', memory.take(owner, Math.min(bytes, memory.max / 4)))
}

interface BodyMemoryOptions {
  /** Returns the current max size of a body, in bytes. */
  readonly limit: () => number
  readonly ownerOf: (request: FastifyRequest) => string
}

/**
 * Reserves memory for a body before it is read, and releases it when the request is answered. Small bodies are not
 * counted. A body without Content-Length is treated as one of the max size once it is no longer small.
 */
export const reserveBodyMemory = ({ limit, ownerOf }: BodyMemoryOptions): preParsingHookHandler =>
  (request, reply, payload, done) => {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
    const isMeasured = length !== undefined || encoding === undefined
    const size = isMeasured ? Number(length ?? 0) : limit()
    if (size > baseLimits.smallBody && size <= limit()) {
      const take = (): void => { reserveUntilClosed(reply.raw, ownerOf(request), size * baseLimits.bodyCost) }
      if (isMeasured) take()
      else unmeasuredReservations.set(request, take)
    }
    done(null, payload)
  }
