import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { jsonRpc } from '../../plugins/errors/index.ts'
import { errors } from '../../plugins/errors/list.ts'
import type { Inbound } from '../../plugins/downstream/downstream.ts'
import { enterScope } from '../../plugins/scopes/index.ts'
import type { View } from '../../plugins/access/view.ts'
import { textBodies } from '../bodies.ts'

declare module 'fastify' {
  interface FastifyRequest { view: View | null }
}

/** The words of an MCP route: for whom, and a group or server, or a group only. */
interface Params { user?: string, name?: string, group?: string }

/** Scope `mcp`: transport credentials, JSON-RPC errors, bodies as text. */
const routes: FastifyPluginAsync = async (app) => {
  enterScope(app, 'mcp')
  app.setErrorHandler(jsonRpc)
  textBodies(app)
  app.decorateRequest('view', null)

  app.setChildLoggerFactory((logger) => logger)

  // Hooks and handlers that wait for nothing are no async functions here: this is the path of every call.
  app.addHook('onRequest', (request, reply, done) => {
    app.auth.origin(request)
    const params = request.params as Params
    request.view = app.access.view(app.auth.transport(request, params.user), params)
    // What is said of origins goes with the answer, which is written past Fastify.
    if (request.headers.origin !== undefined) {
      for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value)
    }
    done()
  })

  for (const url of ['/mcp', '/mcp/:name', '/:user/mcp', '/:user/mcp/:name', '/api/mcp', '/api/mcp/:name', '/api/mcp/group/:group']) {
    app.post(url, { config: { effect: 'run' } }, (request, reply) => {
      app.downstream.post(inbound(request, reply), String(request.body ?? ''))
      reply.hijack()
    })
    app.get(url, { exposeHeadRoute: false, config: { effect: 'read' } }, (request, reply) => {
      app.downstream.get(inbound(request, reply))
      reply.hijack()
    })
    app.delete(url, { config: { effect: 'run' } }, (request, reply) => { app.downstream.delete(inbound(request, reply)); reply.hijack() })
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

function inbound (request: FastifyRequest, reply: FastifyReply): Inbound {
  if (!request.view) throw new errors.NotFound()
  return { view: request.view, headers: request.headers, raw: reply.raw }
}
