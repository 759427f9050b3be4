import type { FastifyInstance, FastifyRequest } from 'fastify'
import { chargedOwnerOf } from '../plugins/settings/index.ts'
import {
  parseSize, collectBodyText, unmeasuredReservationOf, reserveBodyMemory, readJsonBody
} from '../plugins/base/body/index.ts'
import { ownerOfAddress } from '../plugins/base/limits/index.ts'
import type {} from './api/principal.ts'
import type {} from './mcp/request.ts'

/** Returns the current max size of a body: `routing.jsonBodyLimit`. */
const limitOf = (app: FastifyInstance): string => app.settings.current.system.routing?.jsonBodyLimit ?? '1mb'

/** Returns the owner to whom the memory of a body is charged: the identified caller, otherwise the IP address. */
function senderOf ({ principal, caller, ip }: FastifyRequest): string {
  const known = principal ?? caller
  return known ? chargedOwnerOf(known, ip) : ownerOfAddress(ip)
}

/**
 * Makes the calling scope and its children parse bodies as JSON of limited size and depth. An empty body becomes
 * undefined.
 * @param most max size of a body, even if the settings allow more
 */
export function parseJsonBodies (app: FastifyInstance, most?: string): void {
  const max = (): string => most === undefined || parseSize(limitOf(app)) < parseSize(most) ? limitOf(app) : most
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', reserveBodyMemory({ limit: () => parseSize(max()), ownerOf: senderOf }))
  app.addContentTypeParser(
    'application/json',
    async (request: FastifyRequest, payload: FastifyRequest['raw']) => {
      const count = (size: number): void => { countChange(request, size) }
      return await readJsonBody(payload, max(), count, unmeasuredReservationOf(request))
    }
  )
}

/** Charges a large body of a changing request to its caller. @param size in characters @throws ShareError */
function countChange ({ server, principal, routeOptions }: FastifyRequest, size: number): void {
  if (principal && routeOptions.config.effect === 'change') server.settings.chargeLargeChange(principal, size)
}

/** Reserves memory for forms that the scope and its children parse. @param max max size of a form, in bytes */
export function reserveFormMemory (app: FastifyInstance, max: number): void {
  app.addHook('preParsing', reserveBodyMemory({ limit: () => max, ownerOf: senderOf }))
}

/**
 * Makes the calling scope and its children read bodies as unparsed JSON text of limited size. The parser uses a
 * callback instead of a promise for speed, since every call passes through it.
 */
export function readTextBodies (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', reserveBodyMemory({ limit: () => parseSize(limitOf(app)), ownerOf: senderOf }))
  app.addContentTypeParser('application/json', (request: FastifyRequest, payload: FastifyRequest['raw'], done) => {
    collectBodyText(payload, parseSize(limitOf(app)), done, unmeasuredReservationOf(request))
  })
}
