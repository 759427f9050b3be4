import type { ServerResponse } from 'node:http'
import type { FastifyRequest, preParsingHookHandler } from 'fastify'
import { largeText } from '../../../protocol/text.ts'
import { memory, baseLimits } from '../limits/index.ts'

/** Reserves memory, in bytes, until the request is answered; at most a quarter of the budget. @throws ShareError */
export type ReserveMemory = (bytes: number) => void

/** Functions that reserve memory for the values of large bodies, by request. */
const valueReservations = new WeakMap<FastifyRequest, ReserveMemory>()
/** Functions that reserve memory for bodies without Content-Length, by request. */
const unmeasuredReservations = new WeakMap<FastifyRequest, () => void>()

/** The function that reserves memory for the values of a body; undefined unless `reserveBodyMemory` counts them. */
export const valueReservationOf = (request: FastifyRequest): ReserveMemory | undefined => valueReservations.get(request)

/**
 * The function that reserves memory for a body without Content-Length. It is called once more than
 * `baseLimits.smallBody` bytes have arrived, and throws ShareError when no memory is left.
 * @returns undefined for a request with a Content-Length
 */
export const unmeasuredReservationOf = (request: FastifyRequest): (() => void) | undefined =>
  unmeasuredReservations.get(request)

/** @param owner the owner in whose share the memory counts */
export const reserveUntilClosed = (raw: ServerResponse, owner: string): ReserveMemory => (bytes) => {
  raw.once('close', memory.take(owner, Math.min(bytes, memory.max / 4)))
}

interface BodyMemoryOptions {
  /** The current max size of a body, in bytes. */
  readonly limit: () => number
  readonly ownerOf: (request: FastifyRequest) => string
  /** Whether the values of a large body are counted before they are made (`valueReservationOf`). */
  readonly isCounted: boolean
}

/**
 * Reserves memory for a body before it is read, and releases it when the request is answered. Small bodies are not
 * counted. A body without Content-Length counts as one of the max size, as soon as it is no longer small.
 */
export const reserveBodyMemory = ({ limit, ownerOf, isCounted }: BodyMemoryOptions): preParsingHookHandler =>
  (request, reply, payload, done) => {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
    const isMeasured = length !== undefined || encoding === undefined
    const size = isMeasured ? Number(length ?? 0) : limit()
    if (size > baseLimits.smallBody && size <= limit()) {
      const hold = reserveUntilClosed(reply.raw, ownerOf(request))
      const take = (): void => {
        hold(size * (isCounted && size > largeText ? baseLimits.bodyTextCost : baseLimits.bodyCost))
      }
      if (isMeasured) take()
      else unmeasuredReservations.set(request, take)
      if (isCounted && size > baseLimits.steppedBody) valueReservations.set(request, hold)
    }
    done(null, payload)
  }
