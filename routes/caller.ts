import type { FastifyReply, FastifyRequest } from 'fastify'
import { ownerOf } from '../plugins/settings/access/owner.ts'
import type { Principal } from '../plugins/settings/access/view.ts'
import { ValueMemory } from '../plugins/base/body/memory.ts'
import type { Caller } from '../plugins/downstream/tools/tools.ts'
import { disconnectOf } from './disconnect.ts'

/** The caller of a request that runs something. It is `gone` when the connection closes before the answer. */
export function callerOf (request: FastifyRequest, reply: FastifyReply, principal: Principal): Caller {
  const values = new ValueMemory(reply.raw, ownerOf(principal, request.ip))
  return { principal, headers: request.headers, address: request.ip, gone: disconnectOf(reply), values }
}
