import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ownerOf } from '../plugins/settings/index.ts'
import { bytesOf, collectText, growthOf, holdBody, readJson, valueHoldOf } from '../plugins/base/body/index.ts'
import { ownerAt } from '../plugins/base/limits/index.ts'
import type {} from './api/principal.ts'
import type {} from './mcp/request.ts'

/** The current max size of a body: `routing.jsonBodyLimit`. */
const limitOf = (app: FastifyInstance): string => app.settings.current.system.routing?.jsonBodyLimit ?? '1mb'

/** In whose name a body is read: its sender's, where the guard of the scope has identified one. */
function senderOf ({ principal, caller, ip }: FastifyRequest): string {
  const known = principal ?? caller
  return known ? ownerOf(known, ip) : ownerAt(ip)
}

/**
 * Parses bodies of the calling scope and its children as JSON of bounded size and depth. An empty body is undefined.
 * @param most max size, where the settings allow more
 */
export function jsonBodies (app: FastifyInstance, most?: string): void {
  const max = (): string => most === undefined || bytesOf(limitOf(app)) < bytesOf(most) ? limitOf(app) : most
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', holdBody({ limit: () => bytesOf(max()), ownerOf: senderOf, isCounted: true }))
  app.addContentTypeParser(
    'application/json',
    async (request: FastifyRequest, payload: FastifyRequest['raw']) => {
      const count = (size: number): void => { countChange(request, size) }
      return await readJson(payload, max(), valueHoldOf(request), count, growthOf(request))
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
  app.addHook('preParsing', holdBody({ limit: () => max, ownerOf: senderOf, isCounted: false }))
}

/**
 * Takes bodies of the calling scope and its children as unparsed JSON text of bounded size. With a callback: every call
 * comes this way.
 * @param isCounted the values of large ones are counted before they are made
 */
export function textBodies (app: FastifyInstance, isCounted = false): void {
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', holdBody({ limit: () => bytesOf(limitOf(app)), ownerOf: senderOf, isCounted }))
  app.addContentTypeParser('application/json', (request: FastifyRequest, payload: FastifyRequest['raw'], done) => {
    collectText(payload, bytesOf(limitOf(app)), done, growthOf(request))
  })
}
