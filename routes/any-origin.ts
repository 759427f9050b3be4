import type { FastifyInstance } from 'fastify'

/** Response headers that scripts may read beside the safelisted ones. */
const exposed = 'www-authenticate, retry-after, etag'

/**
 * Lets pages of any origin read the answers of this instance's routes (CORS), and answers the preflights of some of its
 * paths. For answers that depend on nothing which a browser adds by itself: no cookies are read there.
 * @param paths with the methods that pages may use
 */
export function forAnyOrigin (app: FastifyInstance, paths: Readonly<Record<string, string>>): void {
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('access-control-allow-origin', '*')
    reply.header('access-control-expose-headers', exposed)
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
