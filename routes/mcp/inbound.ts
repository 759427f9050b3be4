import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Inbound } from '../../plugins/downstream/index.ts'
import { errors } from '../../plugins/base/errors/index.ts'

/** The request in the form that endpoints expect. @throws NotFound when it was not admitted */
export function inboundOf (request: FastifyRequest, reply: FastifyReply): Inbound {
  if (!request.view) throw new errors.NotFound()
  return { view: request.view, headers: request.headers, raw: reply.raw, address: request.ip }
}
