import type { FastifyReply, FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import type { InboundRequest } from '../../plugins/downstream/index.ts'
import type { Principal, View } from '../../plugins/settings/index.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller of an MCP route; null until the `onRequest` hook of the scope `mcp` has identified the caller. */
    caller: Principal | null
    /** What the caller may use on this path; null on the SSE message route, where the session determines it. */
    view: View | null
  }
}

/** Converts a Fastify request to the argument of the MCP endpoints. @throws NotFound if the request has no view */
export function toInboundRequest (request: FastifyRequest, reply: FastifyReply): InboundRequest {
  if (!request.view) throw new errors.NotFound()
  return { view: request.view, headers: request.headers, raw: reply.raw, address: request.ip }
}
