import { errors } from '../../plugins/base/errors/index.ts'
import { Failure } from '../../schemas/answers.ts'
import { HealthResponse, LivenessResponse } from '../../schemas/public.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

interface HealthOptions {
  /** The `status` in the response of `GET /health`: `ok`, or `starting` while the gateway waits for its database. */
  status: string
  /** Returns the number of servers in each state. */
  servers: () => { readonly connected: number } & Readonly<Record<string, number>>
  /** Returns the reason why the gateway is not ready; undefined if it is ready. */
  problem: () => string | undefined
}

const tags = ['System']
const config = { effect: 'read', anyHost: true } as const
/**
 * Serialises responses without Fastify's serializer compiler, so that health checks do not load it. The compiler's
 * serializers omit members that the schema does not list; these responses have no such members.
 */
const serializerCompiler = () => JSON.stringify

/** The health checks, for people and orchestrators. */
const routes: FastifyPluginAsyncTypebox<HealthOptions> = async (app, { status, servers, problem }) => {
  app.get('/health', {
    schema: { tags, summary: 'Health, for people', security: [], response: { 200: HealthResponse } },
    config,
    serializerCompiler
  }, async () => {
    const counts = servers()
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
    return {
      status,
      timestamp: new Date().toISOString(),
      uptime: process.uptime(),
      servers: {
        total, connected: counts.connected
      }
    }
  })

  app.get(
    '/health/live',
    {
      schema: { tags, summary: 'Liveness, for orchestrators', security: [], response: { 200: LivenessResponse } },
      config,
      serializerCompiler
    },
    async () => ({ status: 'ok' })
  )

  app.get(
    '/health/ready',
    {
      schema: {
        tags,
        summary: 'Readiness, for orchestrators',
        description: '503 while starting, draining, or once the storage has been away for a minute.',
        security: [],
        response: { 200: LivenessResponse, 503: Failure }
      },
      config,
      serializerCompiler
    },
    async () => {
      const reason = problem()
      if (reason !== undefined) throw new errors.NotReady(reason)
      return { status: 'ok' }
    }
  )
}
export default routes
