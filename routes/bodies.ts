import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ownerOf } from '../plugins/settings/index.ts'
import {
  parseSize, collectBodyText, unmeasuredReservationOf, reserveBodyMemory, readJsonBody, valueReservationOf
} from '../plugins/base/body/index.ts'
import { ownerOfAddress } from '../plugins/base/limits/index.ts'
import type {} from './api/principal.ts'
import type {} from './mcp/request.ts'

/** The current max size of a body: `routing.jsonBodyLimit`. */
const limitOf = (app: FastifyInstance): string => app.settings.current.system.routing?.jsonBodyLimit ?? '1mb'

/** In whose name a body is read: its sender's, where the guard of the scope has identified one. */
function senderOf ({ principal, caller, ip }: FastifyRequest): string {
  const known = principal ?? caller
  return known ? ownerOf(known, ip) : ownerOfAddress(ip)
}

/**
 * Parses bodies of the calling scope and its children as JSON of bounded size and depth. An empty body is undefined.
 * @param most max size, where the settings allow more
 */
export function jsonBodies (app: FastifyInstance, most?: string): void {
  const max = (): string => most === undefined || parseSize(limitOf(app)) < parseSize(most) ? limitOf(app) : most
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', reserveBodyMemory({ limit: () => parseSize(max()), ownerOf: senderOf, isCounted: true }))
  app.addContentTypeParser(
    'application/json',
    async (request: FastifyRequest, payload: FastifyRequest['raw']) => {
      const count = (size: number): void => { countChange(request, size) }
      return await readJsonBody(payload, max(), valueReservationOf(request), count, unmeasuredReservationOf(request))
    }
  )
}

/** Counts a large body that asks for a change. @param size in characters @throws ShareError */
function countChange ({ server, principal, routeOptions }: FastifyRequest, size: number): void {
  if (principal && routeOptions.config.effect === 'change') server.settings.countLarge(principal, size)
}

/**
 * Counts the memory of forms that the calling scope and its children read by themselves.
 * @param max size of one, in bytes
 */
export function countForms (app: FastifyInstance, max: number): void {
  app.addHook('preParsing', reserveBodyMemory({ limit: () => max, ownerOf: senderOf, isCounted: false }))
}

/**
 * Takes bodies of the calling scope and its children as unparsed JSON text of bounded size. With a callback: every call
 * comes this way.
 * @param isCounted the values of large ones are counted before they are made
 */
export function textBodies (app: FastifyInstance, isCounted = false): void {
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', reserveBodyMemory({ limit: () => parseSize(limitOf(app)), ownerOf: senderOf, isCounted }))
  app.addContentTypeParser('application/json', (request: FastifyRequest, payload: FastifyRequest['raw'], done) => {
    collectBodyText(payload, parseSize(limitOf(app)), done, unmeasuredReservationOf(request))
  })
}
