import type { FastifyReply, FastifyRequest } from 'fastify'
import { ownerOf, type Principal } from '../plugins/settings/index.ts'
import { holdUntilClosed } from '../plugins/base/body/index.ts'
import type { Caller } from '../plugins/downstream/index.ts'
import { disconnectOf } from './disconnect.ts'

/** The caller of a request that runs something. It is `gone` when the connection closes before the answer. */
export function callerOf (request: FastifyRequest, reply: FastifyReply, principal: Principal): Caller {
  const hold = holdUntilClosed(reply.raw, ownerOf(principal, request.ip))
  return { principal, headers: request.headers, address: request.ip, gone: disconnectOf(reply), hold }
}

/** The envelope of what was run. The data stay the text that they are. @param data JSON */
export function withData (reply: FastifyReply, data: string): string {
  reply.type('application/json')
  return `{"success":true,"data":${data}}`
}
