import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { chargedOwnerOf } from '../plugins/settings/index.ts'
import {
  parseSize, collectBodyText, chunkedBodyReserver, createBodyMemoryHook, readJsonBody, reserveParsedBody
} from '../plugins/base/body/index.ts'
import { ownerOfAddress } from '../plugins/base/limits/index.ts'
import type {} from './api/principal.ts'
import type {} from './mcp/request.ts'

/** Returns the current value of the setting `routing.jsonBodyLimit`: the max size of a JSON body, such as `1mb`. */
const limitOf = (app: FastifyInstance): string => app.settings.current.system.routing?.jsonBodyLimit ?? '1mb'

/** Returns whom the memory of a request body is charged to: the identified caller, otherwise the IP address. */
function bodyOwnerOf ({ principal, caller, ip }: FastifyRequest): string {
  const known = principal ?? caller
  return known ? chargedOwnerOf(known, ip) : ownerOfAddress(ip)
}

/** Returns a body as text, after the memory of its parsed values was reserved. @throws ShareError */
export function bodyTextToParse (request: FastifyRequest, { raw }: FastifyReply): string {
  const text = String(request.body ?? '')
  reserveParsedBody(raw, bodyOwnerOf(request), text)
  return text
}

/**
 * Makes `app` and its child instances parse bodies as JSON of limited size and depth. An empty body becomes undefined.
 * @param maxSize an upper limit, such as `64kb`, that applies even if the settings allow larger bodies
 */
export function addJsonBodyParser (app: FastifyInstance, maxSize?: string): void {
  const limit = (): string =>
    maxSize === undefined || parseSize(limitOf(app)) < parseSize(maxSize) ? limitOf(app) : maxSize
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', createBodyMemoryHook({ limit: () => parseSize(limit()), ownerOf: bodyOwnerOf }))
  app.addContentTypeParser(
    'application/json',
    async (request: FastifyRequest, payload: FastifyRequest['raw']) => {
      const admit = (length: number): void => { chargeChange(request, length) }
      return await readJsonBody(payload, limit(), admit, chunkedBodyReserver(request))
    }
  )
}

/**
 * Charges a large body to the caller if the route has the effect `change`.
 * @param length the length of the body, in characters
 * @throws ShareError if the caller has used up its share
 */
function chargeChange ({ server, principal, routeOptions }: FastifyRequest, length: number): void {
  if (principal && routeOptions.config.effect === 'change') server.settings.chargeLargeChange(principal, length)
}

/**
 * Makes `app` and its child instances reserve memory for request bodies. Their routes must parse the bodies themselves.
 * @param maxSize max size of a body, in bytes
 */
export function addBodyMemoryReservation (app: FastifyInstance, maxSize: number): void {
  app.addHook('preParsing', createBodyMemoryHook({ limit: () => maxSize, ownerOf: bodyOwnerOf }))
}

/**
 * Makes `app` and its child instances accept JSON bodies of limited size, and keep them as unparsed text. The parser
 * uses a callback instead of a promise for speed, since MCP calls pass through it.
 */
export function addJsonTextBodyParser (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', createBodyMemoryHook({ limit: () => parseSize(limitOf(app)), ownerOf: bodyOwnerOf }))
  app.addContentTypeParser('application/json', (request: FastifyRequest, payload: FastifyRequest['raw'], done) => {
    collectBodyText(payload, parseSize(limitOf(app)), done, chunkedBodyReserver(request))
  })
}
