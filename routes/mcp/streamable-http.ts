import type { FastifyPluginAsync } from 'fastify'
import { errors } from '../../plugins/errors/list.ts'
import { inboundOf } from './inbound.ts'

const urls = ['/mcp', '/mcp/:name', '/:user/mcp', '/:user/mcp/:name', '/api/mcp', '/api/mcp/:name', '/api/mcp/group/:group']

/** MCP over streamable HTTP. The handlers are synchronous but for large bodies, since this is the path of every call. */
const routes: FastifyPluginAsync = async (app) => {
  const { streamableHttp: endpoint } = app.downstream
  for (const url of urls) {
    app.post(url, { config: { effect: 'run' } }, (request, reply) => {
      const reading = endpoint.post(inboundOf(request, reply), String(request.body ?? ''))
      // A large body is read in turns, and may be refused meanwhile.
      if (reading) return reading.then(() => { reply.hijack() })
      reply.hijack()
    })
    app.get(url, { exposeHeadRoute: false, config: { effect: 'read' } }, (request, reply) => {
      endpoint.get(inboundOf(request, reply))
      reply.hijack()
    })
    app.delete(url, { config: { effect: 'run' } }, (request, reply) => {
      endpoint.delete(inboundOf(request, reply))
      reply.hijack()
    })
    app.route({
      url,
      method: ['PUT', 'PATCH'],
      config: { effect: 'run' },
      handler: async (_request, reply) => {
        reply.header('allow', 'GET, POST, DELETE')
        throw new errors.MethodNotAllowed()
      }
    })
  }
}
export default routes
