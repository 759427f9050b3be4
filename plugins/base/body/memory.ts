import type { ServerResponse } from 'node:http'
import type { FastifyRequest, preParsingHookHandler } from 'fastify'
import { largeText } from '../../../protocol/large-message.ts'
import { limits, memory, ShareError } from '../limits/index.ts'

/** The memory for the values of large bodies that are counted, by request. */
const memories = new WeakMap<FastifyRequest, ValueMemory>()
/** Functions that take memory for bodies without Content-Length, by request. */
const unmeasured = new WeakMap<FastifyRequest, () => void>()

/** The memory for the values of a body, where it is a large one that `holdBody` counts. */
export const valuesOf = (request: FastifyRequest): ValueMemory | undefined => memories.get(request)

/**
 * Takes memory for the body of a request that has no Content-Length. To be called once more than `limits.smallBody` bytes have arrived.
 * @returns undefined for a request that has a Content-Length; the function throws ShareError when no memory is left
 */
export const growthOf = (request: FastifyRequest): (() => void) | undefined => unmeasured.get(request)

interface BodyBounds {
  /** The current max size of a body, in bytes. */
  readonly limit: () => number
  /** In whose name its memory is taken. */
  readonly ownerOf: (request: FastifyRequest) => string
  /** The values of a large one are counted before they are made (`ValueMemory`). */
  readonly isCounted: boolean
}

/**
 * Takes memory for a body before it is read, and gives it back when the request is answered. Small bodies are not counted; one without a
 * length counts as the largest that is accepted, once it is not small any more.
 */
export const holdBody = ({ limit, ownerOf, isCounted }: BodyBounds): preParsingHookHandler => (request, reply, payload, done) => {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  const isMeasured = length !== undefined || encoding === undefined
  const size = isMeasured ? Number(length ?? 0) : limit()
  if (size > limits.smallBody && size <= limit()) {
    const each = isCounted && size > largeText ? limits.bodyTextCost : limits.bodyCost
    // However much an operator admits, some bodies fit.
    const cost = Math.min(size * each, memory.max / 4)
    const owner = ownerOf(request)
    const take = (): void => { reply.raw.once('close', memory.take(owner, cost)) }
    if (isMeasured) take()
    else unmeasured.set(request, take)
    if (isCounted && size > limits.steppedBody) memories.set(request, new ValueMemory(reply.raw, owner))
  }
  done(null, payload)
}

/** The memory of the values of one request's body, in its sender's name, until the request is answered or its sender is gone. */
export class ValueMemory {
  readonly #raw: ServerResponse
  readonly #owner: string

  constructor (raw: ServerResponse, owner: string) {
    this.#raw = raw
    this.#owner = owner
  }

  /** @param bytes as they cost @throws ShareError, also when the sender is gone */
  take (bytes: number): void {
    this.mustBeWanted()
    this.#raw.once('close', memory.take(this.#owner, Math.min(bytes, memory.max / 4)))
  }

  /** @throws ShareError when the sender is gone: nobody needs the values */
  mustBeWanted (): void {
    if (this.#raw.destroyed) throw new ShareError('The caller is gone', true)
  }
}
