import { errors } from '../../plugins/errors/list.ts'
import { Failure } from '../../schemas/api.ts'
import { Health, Liveness } from '../../schemas/public.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

export interface HealthOptions {
  /** `ok`, or what the process is doing before it serves. */
  status: string
  /** The number of servers in each state. */
  servers: () => { readonly connected: number } & Readonly<Record<string, number>>
  /** Why no work should be sent here now; undefined: it can be. */
  problem: () => string | undefined
}

const tags = ['System']
const config = { effect: 'read', anyHost: true } as const

/** Scope `public`: what people and orchestrators ask to see whether the process lives. */
const routes: FastifyPluginAsyncTypebox<HealthOptions> = async (app, { status, servers, problem }) => {
  app.get('/health', { schema: { tags, summary: 'Health, for people', security: [], response: { 200: Health } }, config }, async () => {
    const { connected, ...others } = servers()
    const total = Object.values(others).reduce((sum, count) => sum + count, connected)
    return { status, timestamp: new Date().toISOString(), uptime: process.uptime(), servers: { total, connected } }
  })

  app.get(
    '/health/live',
    { schema: { tags, summary: 'Liveness, for orchestrators', security: [], response: { 200: Liveness } }, config },
    async () => ({ status: 'ok' })
  )

  app.get(
    '/health/ready',
    {
      schema: {
        tags,
        summary: 'Readiness, for orchestrators',
        description: '503 while starting, draining, or without storage.',
        security: [],
        response: { 200: Liveness, 503: Failure }
      },
      config
    },
    async () => {
      const found = problem()
      if (found !== undefined) throw new errors.NotReady(found)
      return { status: 'ok' }
    }
  )
}
export default routes
