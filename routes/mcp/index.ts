import type { FastifyError, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Principal } from '../../plugins/settings/index.ts'
import { sendRpcError } from '../../plugins/base/errors/index.ts'
import { enterScope } from '../../plugins/base/scopes/index.ts'
import { textBodies } from '../bodies.ts'
import type {} from './request.ts'
import { messages, sseAddresses, streams } from './sse.ts'
import streamableHttp, { addresses } from './streamable-http.ts'

/** The params of an MCP route: an optional user, with a group or server name, or only a group. */
interface Params { user?: string, name?: string, group?: string }

/** Scope `mcp`: transport credentials, JSON-RPC errors, bodies as text. */
const routes: FastifyPluginAsync = async (app) => {
  enterScope(app, 'mcp')
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const challenge = app.oauth.challenge(request, error)
    if (challenge !== undefined) reply.header('www-authenticate', challenge)
    sendRpcError(error, request, reply)
  })
  textBodies(app)
  app.decorateRequest('caller', null)
  app.decorateRequest('view', null)
  app.setChildLoggerFactory((logger) => logger)

  // Synchronous unless the credential check is asynchronous, since every call passes through this hook.
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

  // The path determines the view,
  await app.register(async (paths) => {
    paths.addHook('onRequest', (request, _reply, done) => {
      if (request.caller) request.view = app.access.view(request.caller, request.params as Params)
      done()
    })
    await paths.register(streamableHttp, { urls: addresses.plain })
    await paths.register(streams, { urls: sseAddresses.plain })
  })
  await app.register(async (paths) => {
    paths.addHook('onRequest', (request, _reply, done) => {
      if (request.caller) request.view = app.access.view(request.caller, { ...request.params as Params, smart: true })
      done()
    })
    await paths.register(streamableHttp, { urls: addresses.smart })
    await paths.register(streams, { urls: sseAddresses.smart })
  })
  // or the session that the request names, which began at such a path.
  await app.register(messages)
}
export default routes

function admit (request: FastifyRequest, reply: FastifyReply, principal: Principal): void {
  request.caller = principal
  if (request.headers.origin === undefined) return
  // Responses bypass Fastify, so its CORS headers are copied to the raw response.
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
}
