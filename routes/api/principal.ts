import type { FastifyRequest } from 'fastify'
import type { Principal } from '../../plugins/settings/index.ts'
import { errors } from '../../plugins/base/errors/index.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller; null until an `onRequest` hook of the scope has identified the caller. */
    principal: Principal | null
  }
}

/**
 * Returns the caller of a request.
 * @throws Unauthorized if no hook has identified the caller
 */
export function requirePrincipal (request: FastifyRequest): Principal {
  if (!request.principal) throw new errors.Unauthorized('Log in first')
  return request.principal
}
