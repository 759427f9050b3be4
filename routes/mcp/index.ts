import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Principal, View } from '../../plugins/access/view.ts'
import { jsonRpc } from '../../plugins/errors/index.ts'
import { enterScope } from '../../plugins/scopes/index.ts'
import { textBodies } from '../bodies.ts'
import sse from './sse.ts'
import streamableHttp from './streamable-http.ts'

declare module 'fastify' {
  interface FastifyRequest {
    view: View | null
    /** The principal that the guard has identified. */
    caller: Principal | null
  }
  interface FastifyContextConfig {
    /** The path does not say what is asked: the session that the request names does. */
    viewOf?: 'session'
  }
}

/** The words of an MCP route: for which user, and a group or server, or a group only. */
interface Params { user?: string, name?: string, group?: string }

/** Scope `mcp`: transport credentials, JSON-RPC errors, bodies as text. */
const routes: FastifyPluginAsync = async (app) => {
  enterScope(app, 'mcp')
  app.setErrorHandler(jsonRpc)
  textBodies(app)
  app.decorateRequest('view', null)
  app.decorateRequest('caller', null)
  app.setChildLoggerFactory((logger) => logger)

  // No async functions here, unless a credential has to be waited for: this is the path of every call.
  app.addHook('onRequest', (request, reply, done) => {
    app.auth.origin(request)
    const params = request.params as Params
    const admit = (principal: Principal): void => {
      request.caller = principal
      if (request.routeOptions.config.viewOf !== 'session') request.view = app.access.view(principal, params)
      exposeOrigin(request, reply)
      done()
    }
    const principal = app.auth.transport(request, params.user)
    if (principal instanceof Promise) principal.then(admit).catch(done)
    else admit(principal)
  })

  await app.register(streamableHttp)
  await app.register(sse)
}
export default routes

/** Answers are written past Fastify: the CORS headers that it has set go with them. */
function exposeOrigin (request: FastifyRequest, reply: FastifyReply): void {
  if (request.headers.origin === undefined) return
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value)
}
