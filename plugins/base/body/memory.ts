import type { ServerResponse } from 'node:http'
import type { FastifyRequest, preParsingHookHandler } from 'fastify'
import { parsedSizeOf } from '../threads/index.ts'
import { memoryBudget, baseLimits, onceClosed } from '../limits/index.ts'

/** For each request whose body has no Content-Length, the function that reserves memory for the body. */
const unmeasuredReservations = new WeakMap<FastifyRequest, () => void>()

/**
 * Returns the function that reserves memory for a body without Content-Length. The reader of the body calls it once
 * more than `baseLimits.smallBody` bytes have arrived; it throws ShareError if too little memory is left.
 * @returns undefined for any other request
 */
export const chunkedBodyReserver = (request: FastifyRequest): (() => void) | undefined =>
  unmeasuredReservations.get(request)

/**
 * Reserves memory until a response is closed, but at most a quarter of the memory budget.
 * @param owner the owner whose share of the budget the memory uses
 * @throws ShareError
 */
function reserveUntilClosed (raw: ServerResponse, owner: string, bytes: number): void {
  onceClosed(raw, memoryBudget.reserve(owner, Math.min(bytes, memoryBudget.max / 4)))
}

/**
 * Reserves the memory that the values parsed from a body take beyond `baseLimits.bodyCost`, until the response is
 * closed. Called before a body is parsed as a whole.
 * @param owner the owner whose share of the budget the memory uses
 * @throws ShareError
 */
export function reserveParsedBody (raw: ServerResponse, owner: string, text: string): void {
  if (text.length <= baseLimits.smallBody) return
  const more = parsedSizeOf(text, 'json') - text.length * baseLimits.bodyCost
  if (more > 0) reserveUntilClosed(raw, owner, more)
}

interface BodyMemoryOptions {
  /** Returns the current max size of a body of this sender, in bytes. */
  readonly limit: (request: FastifyRequest) => number
  /** Returns the owner whose share of the memory budget the body uses. */
  readonly ownerOf: (request: FastifyRequest) => string
}

/**
 * Creates a hook that reserves memory for a body before it is read, and releases it when the response is closed. Bodies
 * of at most `baseLimits.smallBody` bytes are not counted. A body without Content-Length counts as if it had the max
 * size, once its reader calls the function of `chunkedBodyReserver`.
 */
export const createBodyMemoryHook = ({ limit, ownerOf }: BodyMemoryOptions): preParsingHookHandler =>
  (request, reply, payload, done) => {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
    const isMeasured = length !== undefined || encoding === undefined
    const max = limit(request)
    const size = isMeasured ? Number(length ?? 0) : max
    if (size > baseLimits.smallBody && size <= max) {
      const take = (): void => { reserveUntilClosed(reply.raw, ownerOf(request), size * baseLimits.bodyCost) }
      if (isMeasured) take()
      else unmeasuredReservations.set(request, take)
    }
    done(null, payload)
  }
