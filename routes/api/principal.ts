import type { FastifyRequest } from 'fastify'
import type { Principal } from '../../plugins/access/view.ts'
import { errors } from '../../plugins/errors/list.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller; null until the scope's guard has identified it. */
    principal: Principal | null
  }
}

/** The name of the caller, for the audit log. @throws Unauthorized when there is none */
export const authorOf = (request: FastifyRequest): string => principalOf(request).username ?? ''

/** The caller of a management route, as the guard of scope `api` identified it. @throws Unauthorized when there is none */
export function principalOf (request: FastifyRequest): Principal {
  if (!request.principal) throw new errors.Unauthorized('Log in first')
  return request.principal
}
