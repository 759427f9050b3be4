import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { baseLimits, memoryBudget } from '../../base/limits/index.ts'
import { chargedOwnerOf } from '../../settings/index.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The response to this request of the console. */
    console: ServerResponse | null
  }
}

/** The memory that an answer takes while it is parsed and shown, in bytes per character. */
export const shownCost = { api: 4, list: 2, result: 16 } as const

/** Prepares requests for `holdMemory`. */
export function prepareToHoldMemory (scope: FastifyInstance): void {
  scope.decorateRequest('console', null)
  scope.addHook('onRequest', async (request, reply) => { request.console = reply.raw })
}

/**
 * Reserves memory for what a page shows, from the share of the signed-in user, until the response has ended.
 * @throws ShareError if too little is free
 */
export function holdMemory ({ principal, ip, console: response }: FastifyRequest, bytes: number): void {
  if (principal === null || response === null || response.closed || bytes <= baseLimits.smallText) return
  response.once('close', memoryBudget.reserve(chargedOwnerOf(principal, ip), bytes))
}
