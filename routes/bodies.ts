import type { FastifyInstance, FastifyRequest } from 'fastify'
import { bytesOf, collectText, readJson } from '../plugins/body/index.ts'
import { holdBody, valuesOf } from '../plugins/body/memory.ts'
import { ownerAt } from '../plugins/limits/owner.ts'
import type {} from './api/principal.ts'

/** The current max size of a body: `routing.jsonBodyLimit`. */
const limitOf = (app: FastifyInstance): string => app.settings.current.system.routing?.jsonBodyLimit ?? '1mb'

/**
 * Parses bodies of the calling scope and its children as JSON of bounded size and depth. An empty body is undefined.
 * @param most max size, where the settings allow more
 */
export function jsonBodies (app: FastifyInstance, most?: string): void {
  const max = (): string => most === undefined || bytesOf(limitOf(app)) < bytesOf(most) ? limitOf(app) : most
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', holdBody(() => bytesOf(max()), true))
  app.addContentTypeParser(
    'application/json',
    async (request: FastifyRequest, payload: FastifyRequest['raw']) => {
      const owner = ownerAt(request.ip)
      return await readJson(payload, max(), owner, valuesOf(request), (size) => { countChange(request, size) })
    }
  )
}

/** Counts a large body that asks for a change. @param size in characters @throws ShareError */
function countChange ({ server, principal, routeOptions }: FastifyRequest, size: number): void {
  if (principal && routeOptions.config.effect === 'change') server.settings.countLarge(principal, size)
}

/**
 * Takes bodies of the calling scope and its children as unparsed JSON text of bounded size. With a callback: every call comes this way.
 * @param isCounted the values of large ones are counted before they are made
 */
export function textBodies (app: FastifyInstance, isCounted = false): void {
  app.removeAllContentTypeParsers()
  app.addHook('preParsing', holdBody(() => bytesOf(limitOf(app)), isCounted))
  app.addContentTypeParser('application/json', (_request: FastifyRequest, payload: FastifyRequest['raw'], done) => {
    collectText(payload, bytesOf(limitOf(app)), done)
  })
}
