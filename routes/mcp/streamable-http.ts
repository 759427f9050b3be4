import type { FastifyInstance } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { toInboundRequest } from './request.ts'

/**
 * The paths of the streamable HTTP transport. On `plain` paths, clients see all tools of the route; on `smart` paths,
 * only the few tools of `$smart`, with which they search and call the others.
 */
export const streamableHttpPaths = {
  plain: [
    '/mcp', '/mcp/:name', '/:user/mcp', '/:user/mcp/:name', '/api/mcp', '/api/mcp/:name', '/api/mcp/group/:group'
  ],
  smart: [
    '/mcp/$smart', '/mcp/$smart/:name', '/:user/mcp/$smart', '/:user/mcp/$smart/:name',
    '/api/mcp/$smart', '/api/mcp/$smart/:name'
  ]
} as const

/** Adds the routes of MCP over streamable HTTP. For speed, the handlers of GET, POST and DELETE are synchronous. */
export default async function streamableHttpRoutes (
  app: FastifyInstance, { urls }: { readonly urls: readonly string[] }
): Promise<void> {
  const { streamableHttp: endpoint } = app.downstream
  for (const url of urls) {
    app.post(url, { config: { effect: 'run' } }, (request, reply) => {
      endpoint.post(toInboundRequest(request, reply), String(request.body ?? ''))
      reply.hijack()
    })
    app.get(url, { exposeHeadRoute: false, config: { effect: 'read' } }, (request, reply) => {
      endpoint.get(toInboundRequest(request, reply))
      reply.hijack()
    })
    app.delete(url, { config: { effect: 'run' } }, (request, reply) => {
      endpoint.delete(toInboundRequest(request, reply))
      reply.hijack()
    })
    app.route({
      url,
      method: ['PUT', 'PATCH'],
      config: { effect: 'run' },
      handler: async (_request, reply) => {
        reply.header('allow', 'GET, POST, DELETE')
        throw new errors.MethodNotAllowed('GET, POST and DELETE')
      }
    })
  }
}
