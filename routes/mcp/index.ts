import type { FastifyError, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Principal } from '../../plugins/settings/index.ts'
import { sendRpcError } from '../../plugins/base/errors/index.ts'
import { setRouteScope } from '../../plugins/base/scopes/index.ts'
import { addJsonTextBodyParser } from '../bodies.ts'
import type {} from './request.ts'
import { sseMessageRoutes, ssePaths, sseStreamRoutes } from './sse.ts'
import streamableHttpRoutes, { streamableHttpPaths } from './streamable-http.ts'

/** The path parameters of MCP routes. `user`: a username; `name`: a group or a server; `group`: a group. */
interface Params { user?: string, name?: string, group?: string }

/** Scope `mcp`: the routes of the MCP transports. Errors are JSON-RPC errors, and bodies stay unparsed text. */
const routes: FastifyPluginAsync = async (app) => {
  setRouteScope(app, 'mcp')
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const challenge = app.oauth.challenge(request, error)
    if (challenge !== undefined) reply.header('www-authenticate', challenge)
    sendRpcError(error, request, reply)
  })
  addJsonTextBodyParser(app)
  app.decorateRequest('caller', null)
  app.decorateRequest('view', null)
  // Without this, Fastify would create a logger for each request, which costs time.
  app.setChildLoggerFactory((logger) => logger)

  // For speed, the hook is asynchronous only if the check of the credential is asynchronous.
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

  // On these routes, the path determines the view: which servers and items the caller can use.
  for (const kind of ['plain', 'smart'] as const) {
    await app.register(async (paths) => {
      paths.addHook('onRequest', (request, _reply, done) => {
        const params = request.params as Params
        if (request.caller) {
          request.view = app.access.viewOfRoute(request.caller, kind === 'smart' ? { ...params, smart: true } : params)
        }
        done()
      })
      await paths.register(streamableHttpRoutes, { urls: streamableHttpPaths[kind] })
      await paths.register(sseStreamRoutes, { urls: ssePaths[kind] })
    })
  }
  // The route for messages of the SSE transport uses the view of the session that the request names.
  await app.register(sseMessageRoutes)
}
export default routes

/** Stores the identified caller of a request, and copies the CORS headers to the raw response. */
function setCaller (request: FastifyRequest, reply: FastifyReply, principal: Principal): void {
  request.caller = principal
  if (request.headers.origin === undefined) return
  // The transports write to the raw response, which does not contain the headers set on Fastify's reply.
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
}
