import type { Principal, View } from '../../plugins/settings/index.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The principal that the guard has identified. */
    caller: Principal | null
    /** The view that the path asks for; null on routes where the session determines it. */
    view: View | null
  }
}
