import type { FastifyRequest } from 'fastify'
import type { Principal } from '../../plugins/settings/index.ts'
import { errors } from '../../plugins/base/errors/index.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller; null until the scope's guard has identified it. */
    principal: Principal | null
  }
}

/**
 * Returns the caller of a management route, as identified by the guard of `api`.
 * @throws Unauthorized if there is none
 */
export function requirePrincipal (request: FastifyRequest): Principal {
  if (!request.principal) throw new errors.Unauthorized('Log in first')
  return request.principal
}
