import type { FastifyInstance } from 'fastify'

/** Response headers that scripts may read in addition to the safelisted ones. */
const exposedHeaders = 'www-authenticate, retry-after, etag'

/**
 * Allows pages of any origin to read the responses of this instance's routes (CORS), and adds routes that respond to
 * preflight requests. Only for routes that read no cookies or other credentials that browsers add automatically.
 * @param paths the paths with preflight responses, each with its allowed methods, such as `GET, POST`
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
