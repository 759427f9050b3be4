import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { firstHeaderValue } from '../../plugins/downstream/index.ts'
import { errors } from '../../plugins/base/errors/index.ts'
import { toInboundRequest } from './request.ts'

/**
 * The paths on which clients open the SSE transport. On `plain` paths, clients see all tools of the route; on `smart`
 * paths, only the few tools of `$smart`, with which they search and call the others.
 */
export const ssePaths = {
  plain: ['/sse', '/sse/:name', '/:user/sse', '/:user/sse/:name'],
  smart: ['/sse/$smart', '/sse/$smart/:name', '/:user/sse/$smart', '/:user/sse/$smart/:name']
} as const

/** Adds the routes on which clients open the event stream of the HTTP+SSE transport (MCP 2024-11-05). */
export const sseStreamRoutes = async (
  app: FastifyInstance, { urls }: { readonly urls: readonly string[] }
): Promise<void> => {
  for (const url of urls) {
    app.get(url, { exposeHeadRoute: false, config: { effect: 'read' } }, (request, reply) => {
      app.sse.open(toInboundRequest(request, reply))
      reply.hijack()
    })
  }
}

/** Adds the route to which clients of the HTTP+SSE transport post their messages. */
export const sseMessageRoutes: FastifyPluginAsync = async (app) => {
  app.post('/messages', { config: { effect: 'run' } }, (request, reply) => {
    const { sessionId } = request.query as { sessionId?: string | string[] }
    const { headers, ip: address, caller } = request
    if (!caller) throw new errors.NotFound()
    app.sse.post(caller, firstHeaderValue(sessionId), { headers, address }, String(request.body ?? ''))
    void reply.code(202).send()
  })
}
