import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Principal, View } from '../../plugins/access/view.ts'
import { jsonRpc } from '../../plugins/errors/index.ts'
import { enterScope } from '../../plugins/scopes/index.ts'
import { textBodies } from '../bodies.ts'
import { messages, streams } from './sse.ts'
import streamableHttp from './streamable-http.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The principal that the guard has identified. */
    caller: Principal | null
    /** What the path asks for, as the principal sees it; null where the session says it. */
    view: View | null
  }
}

/** The words of an MCP route: for which user, and a group or server, or a group only. */
interface Params { user?: string, name?: string, group?: string }

/** Scope `mcp`: transport credentials, JSON-RPC errors, bodies as text. */
const routes: FastifyPluginAsync = async (app) => {
  enterScope(app, 'mcp')
  app.setErrorHandler(jsonRpc)
  textBodies(app)
  app.decorateRequest('caller', null)
  app.decorateRequest('view', null)
  app.setChildLoggerFactory((logger) => logger)

  // No async functions here, unless a credential has to be waited for: this is the path of every call.
  app.addHook('onRequest', (request, reply, done) => {
    app.auth.origin(request)
    const principal = app.auth.transport(request, (request.params as Params).user)
    if (principal instanceof Promise) {
      principal.then((found) => { admit(request, reply, found); done() }).catch(done)
      return
    }
    admit(request, reply, principal)
    done()
  })

  // The path says what is asked for, ...
  await app.register(async (paths) => {
    paths.addHook('onRequest', (request, _reply, done) => {
      if (request.caller) request.view = app.access.view(request.caller, request.params as Params)
      done()
    })
    await paths.register(streamableHttp)
    await paths.register(streams)
  })
  // ... or the session does, which its principal began on such a path.
  await app.register(messages)
}
export default routes

function admit (request: FastifyRequest, reply: FastifyReply, principal: Principal): void {
  request.caller = principal
  if (request.headers.origin === undefined) return
  // Answers are written past Fastify: the CORS headers that it has set go with them.
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value)
}
