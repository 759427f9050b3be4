import type { FastifyInstance, FastifyRequest } from 'fastify'
import { chargedOwnerOf } from '../plugins/settings/index.ts'
import {
  parseSize, collectBodyText, chunkedBodyReservation, createBodyMemoryHook, readJsonBody
} from '../plugins/base/body/index.ts'
import { ownerOfAddress } from '../plugins/base/limits/index.ts'
import type {} from './api/principal.ts'
import type {} from './mcp/request.ts'

/** Returns the current max size of a body, such as `1mb`: the setting `routing.jsonBodyLimit`. */
const limitOf = (app: FastifyInstance): string => app.settings.current.system.routing?.jsonBodyLimit ?? '1mb'

/** Returns the owner to whom the memory of a body is charged: the identified caller, otherwise the IP address. */
function senderOf ({ principal, caller, ip }: FastifyRequest): string {
  const known = principal ?? caller
  return known ? chargedOwnerOf(known, ip) : ownerOfAddress(ip)
}

/**
 * Makes the calling scope and its children parse bodies as JSON of limited size and depth. An empty body becomes
 * undefined.
 * @param maxSize max size of a body, such as `64kb`, even if the settings allow more
 */
export function addJsonBodyParser (app: FastifyInstance, maxSize?: string): void {
  const limit = (): string =>
    maxSize === undefined || parseSize(limitOf(app)) < parseSize(maxSize) ? limitOf(app) : maxSize
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', createBodyMemoryHook({ limit: () => parseSize(limit()), ownerOf: senderOf }))
  app.addContentTypeParser(
    'application/json',
    async (request: FastifyRequest, payload: FastifyRequest['raw']) => {
      const admit = (length: number): void => { chargeChange(request, length) }
      return await readJsonBody(payload, limit(), admit, chunkedBodyReservation(request))
    }
  )
}

/** Charges a large body to the caller, if the request is a change. @param length in characters @throws ShareError */
function chargeChange ({ server, principal, routeOptions }: FastifyRequest, length: number): void {
  if (principal && routeOptions.config.effect === 'change') server.settings.chargeLargeChange(principal, length)
}

/**
 * Reserves memory for the bodies of the calling scope and its children, which parse them themselves.
 * @param maxSize max size of a body, in bytes
 */
export function addFormMemoryReservation (app: FastifyInstance, maxSize: number): void {
  app.addHook('preParsing', createBodyMemoryHook({ limit: () => maxSize, ownerOf: senderOf }))
}

/**
 * Makes the calling scope and its children read bodies as unparsed JSON text of limited size. The parser uses a
 * callback instead of a promise for speed, since every call passes through it.
 */
export function addTextBodyParser (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', createBodyMemoryHook({ limit: () => parseSize(limitOf(app)), ownerOf: senderOf }))
  app.addContentTypeParser('application/json', (request: FastifyRequest, payload: FastifyRequest['raw'], done) => {
    collectBodyText(payload, parseSize(limitOf(app)), done, chunkedBodyReservation(request))
  })
}
