import type { FastifyReply, FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import type { InboundRequest } from '../../plugins/downstream/index.ts'
import type { Principal, View } from '../../plugins/settings/index.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The principal that the guard has identified. */
    caller: Principal | null
    /** The view of the path; null on routes where the session determines it. */
    view: View | null
  }
}

/** Converts a request for the MCP endpoints. @throws NotFound if it has no view */
export function inboundOf (request: FastifyRequest, reply: FastifyReply): InboundRequest {
  if (!request.view) throw new errors.NotFound()
  return { view: request.view, headers: request.headers, raw: reply.raw, address: request.ip }
}
