import type { ServerResponse } from 'node:http'
import type { FastifyRequest, preParsingHookHandler } from 'fastify'
import { largeText } from '../../../protocol/text.ts'
import { memory, baseLimits } from '../limits/index.ts'

/** Takes memory in bytes until a request is answered, at most a quarter of the budget. @throws ShareError */
export type HoldMemory = (bytes: number) => void

/** Take memory for the values of large bodies, by request. */
const valueHolds = new WeakMap<FastifyRequest, HoldMemory>()
/** Take memory for bodies without Content-Length, by request. */
const unmeasuredHolds = new WeakMap<FastifyRequest, () => void>()

/** Takes memory for the values of a body, where it is a large one that `holdBody` counts. */
export const valueHoldOf = (request: FastifyRequest): HoldMemory | undefined => valueHolds.get(request)

/**
 * Takes memory for the body of a request that has no Content-Length. To be called once more than `baseLimits.smallBody`
 * bytes have arrived.
 * @returns undefined for a request that has a Content-Length; the function throws ShareError when no memory is left
 */
export const growthOf = (request: FastifyRequest): (() => void) | undefined => unmeasuredHolds.get(request)

/** @param owner in whose share the memory counts */
export const holdUntilClosed = (raw: ServerResponse, owner: string): HoldMemory => (bytes) => {
  raw.once('close', memory.take(owner, Math.min(bytes, memory.max / 4)))
}

interface BodyBounds {
  /** The current max size of a body, in bytes. */
  readonly limit: () => number
  readonly ownerOf: (request: FastifyRequest) => string
  /** The values of a large one are counted before they are made (`valueHoldOf`). */
  readonly isCounted: boolean
}

/**
 * Takes memory for a body before it is read, and gives it back when the request is answered. Small bodies are not
 * counted; one without a length counts as the largest that is accepted, once it is not small any more.
 */
export const holdBody = ({ limit, ownerOf, isCounted }: BodyBounds): preParsingHookHandler =>
  (request, reply, payload, done) => {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
    const isMeasured = length !== undefined || encoding === undefined
    const size = isMeasured ? Number(length ?? 0) : limit()
    if (size > baseLimits.smallBody && size <= limit()) {
      const hold = holdUntilClosed(reply.raw, ownerOf(request))
      const take = (): void => {
        hold(size * (isCounted && size > largeText ? baseLimits.bodyTextCost : baseLimits.bodyCost))
      }
      if (isMeasured) take()
      else unmeasuredHolds.set(request, take)
      if (isCounted && size > baseLimits.steppedBody) valueHolds.set(request, hold)
    }
    done(null, payload)
  }
