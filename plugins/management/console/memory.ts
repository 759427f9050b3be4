import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { baseLimits, memoryBudget, type Release, ShareError } from '../../base/limits/index.ts'
import { chargedOwnerOf } from '../../settings/index.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The memory that the page takes while it is made; null before the request is prepared. */
    pageMemory: PageMemory | null
  }
}

/** The memory that an answer takes while a page is made of it, in bytes per character. */
export const shownCost = { api: 4, list: 2, result: 16 } as const

/** Reserves memory for the answers of which a page is made, until it is sent. */
class PageMemory {
  readonly #response: ServerResponse
  readonly #releases: Release[] = []

  constructor (response: ServerResponse) {
    this.#response = response
    response.once('close', () => { this.release() })
  }

  /** @param owner the owner of the share @throws ShareError if too little is free, or the client has left */
  take (owner: string, bytes: number): void {
    if (this.#response.closed) throw new ShareError('The browser has closed the page', true)
    this.#releases.push(memoryBudget.reserve(owner, bytes))
  }

  release (): void { for (const release of this.#releases.splice(0)) release() }
}

/** Prepares the requests of a scope for `holdMemory`. A page that is sent is counted by the limits of all replies. */
export function prepareToHoldMemory (scope: FastifyInstance): void {
  scope.decorateRequest('pageMemory', null)
  scope.addHook('onRequest', async (request, reply) => { request.pageMemory = new PageMemory(reply.raw) })
  scope.addHook('onSend', async ({ pageMemory }) => { pageMemory?.release() })
}

/**
 * Reserves memory for an answer of which a page is made, from the share of the signed-in user.
 * @throws ShareError if too little is free, or the client has left
 */
export function holdMemory ({ principal, ip, pageMemory }: FastifyRequest, bytes: number): void {
  if (principal !== null && bytes > baseLimits.smallText) pageMemory?.take(chargedOwnerOf(principal, ip), bytes)
}
