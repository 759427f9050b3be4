import type { FastifyInstance, FastifyRequest } from 'fastify'
import { bytesOf, readJson, readText } from '../plugins/body/index.ts'

/** How much a body may hold, as the settings say now: `routing.jsonBodyLimit`. */
const limitOf = (app: FastifyInstance): string => app.settings.current.system.routing?.jsonBodyLimit ?? '1mb'

/** Bodies are JSON of bounded size and depth, or nothing. For the scope that calls it and those below. */
export function jsonBodies (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    async (_request: FastifyRequest, payload: FastifyRequest['raw']) => await readJson(payload, limitOf(app))
  )
}

/** Bodies are the text of JSON, as it came, of bounded size. For the scope that calls it and those below. */
export function textBodies (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    async (_request: FastifyRequest, payload: FastifyRequest['raw']) => await readText(payload, bytesOf(limitOf(app)))
  )
}
