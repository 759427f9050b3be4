import type { FastifyInstance } from 'fastify'

/** Response headers that scripts may read in addition to the safelisted ones. */
const exposedHeaders = 'www-authenticate, retry-after, etag'

/**
 * Allows pages of any origin to read the responses of this instance's routes (CORS), and responds to preflight requests
 * for some paths. Only for routes that read no cookies or other credentials which browsers add automatically.
 * @param paths the allowed methods by path
 */
export function allowAnyOrigin (app: FastifyInstance, paths: Readonly<Record<string, string>>): void {
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('access-control-allow-origin', '*')
    reply.header('access-control-expose-headers', exposedHeaders)
    done()
  })
  for (const [path, methods] of Object.entries(paths)) {
    app.options(path, async ({ headers }, reply) => {
      const asked = headers['access-control-request-headers']
      if (asked !== undefined) reply.header('access-control-allow-headers', asked)
      reply.header('access-control-allow-methods', methods)
      reply.header('access-control-max-age', '600')
      await reply.code(204).send()
    })
  }
}
