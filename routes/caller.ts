import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Principal } from '../plugins/access/view.ts'
import type { Caller } from '../plugins/tools/tools.ts'
import { disconnectOf } from './disconnect.ts'

/** The caller of a request that runs something. It is `gone` when the connection closes before the answer. */
export function callerOf (request: FastifyRequest, reply: FastifyReply, principal: Principal): Caller {
  return { principal, headers: request.headers, address: request.ip, gone: disconnectOf(reply) }
}
