import type { FastifyError, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Principal } from '../../plugins/settings/index.ts'
import { sendRpcError } from '../../plugins/base/errors/index.ts'
import { enterScope } from '../../plugins/base/scopes/index.ts'
import { addTextBodyParser } from '../bodies.ts'
import type {} from './request.ts'
import { sseMessageRoutes, ssePaths, sseStreamRoutes } from './sse.ts'
import streamableHttpRoutes, { streamableHttpPaths } from './streamable-http.ts'

/** The path parameters of an MCP route: an optional user, and the name of a group or server, or of a group only. */
interface Params { user?: string, name?: string, group?: string }

/** Scope `mcp`: credentials by transport, JSON-RPC errors, bodies as text. */
const routes: FastifyPluginAsync = async (app) => {
  enterScope(app, 'mcp')
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const challenge = app.oauth.challenge(request, error)
    if (challenge !== undefined) reply.header('www-authenticate', challenge)
    sendRpcError(error, request, reply)
  })
  addTextBodyParser(app)
  app.decorateRequest('caller', null)
  app.decorateRequest('view', null)
  // Creating a logger per request would cost every call time.
  app.setChildLoggerFactory((logger) => logger)

  // Synchronous unless the credential check is asynchronous, since every call passes through this hook.
  app.addHook('onRequest', (request, reply, done) => {
    app.auth.checkOrigin(request)
    const principal = app.auth.identifyMcpCaller(request, (request.params as Params).user)
    if (principal instanceof Promise) {
      principal.then((found) => { setCaller(request, reply, found); done() }).catch(done)
      return
    }
    setCaller(request, reply, principal)
    done()
  })

  // On these routes, the path determines the view.
  await app.register(async (paths) => {
    paths.addHook('onRequest', (request, _reply, done) => {
      if (request.caller) request.view = app.access.viewOfRoute(request.caller, request.params as Params)
      done()
    })
    await paths.register(streamableHttpRoutes, { urls: streamableHttpPaths.plain })
    await paths.register(sseStreamRoutes, { urls: ssePaths.plain })
  })
  await app.register(async (paths) => {
    paths.addHook('onRequest', (request, _reply, done) => {
      if (request.caller) {
        request.view = app.access.viewOfRoute(request.caller, { ...request.params as Params, smart: true })
      }
      done()
    })
    await paths.register(streamableHttpRoutes, { urls: streamableHttpPaths.smart })
    await paths.register(sseStreamRoutes, { urls: ssePaths.smart })
  })
  // Messages of the SSE transport use the view of the session that the request names.
  await app.register(sseMessageRoutes)
}
export default routes

/** Stores the identified caller of a request. */
function setCaller (request: FastifyRequest, reply: FastifyReply, principal: Principal): void {
  request.caller = principal
  if (request.headers.origin === undefined) return
  // Responses are written to the raw response, so the CORS headers set on the reply are copied to it.
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
}
