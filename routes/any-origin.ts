import type { FastifyInstance } from 'fastify'

/** The response headers that scripts may read in addition to the CORS-safelisted ones. */
const exposedHeaders = 'www-authenticate, retry-after, etag'

/**
 * Allows pages of any origin to read the responses of the routes of `app` (CORS), and adds routes that respond to
 * preflight requests. Use it only for routes that read no cookies or other credentials that browsers add automatically.
 * @param paths the allowed methods, such as `GET, POST`, by the path that gets a preflight route
 */
export function allowAnyOrigin (app: FastifyInstance, paths: Readonly<Record<string, string>>): void {
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('access-control-allow-origin', '*')
    reply.header('access-control-expose-headers', exposedHeaders)
    done()
  })
  for (const [path, methods] of Object.entries(paths)) {
    app.options(path, async ({ headers }, reply) => {
      const requested = headers['access-control-request-headers']
      if (requested !== undefined) reply.header('access-control-allow-headers', requested)
      reply.header('access-control-allow-methods', methods)
      reply.header('access-control-max-age', '600')
      await reply.code(204).send()
    })
  }
}
