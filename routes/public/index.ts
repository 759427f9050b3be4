import { Failure } from '../../schemas/api.ts'
import { Config, Metrics, PublicConfig } from '../../schemas/public.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import health from './health.ts'

export interface PublicOptions { name: string, version: string, basePath: string }

const tags = ['System']

/** Scope `public`: no credentials needed. */
const routes: FastifyPluginAsyncTypebox<PublicOptions> = async (app, { name, version, basePath }) => {
  await app.register(health, {
    status: 'ok',
    servers: () => app.upstreams.counts(),
    problem: () => app.phase.name === 'ready' ? app.settings.problem : app.phase.name
  })

  app.get(
    '/metrics',
    {
      schema: { tags, summary: 'Metrics, for Prometheus', security: [], response: { 200: Metrics, 403: Failure } },
      config: { effect: 'read' }
    },
    async (_request, reply) => {
      reply.type(app.metrics.contentType)
      return await app.metrics.metrics()
    }
  )

  app.get(
    '/config',
    {
      schema: { tags, summary: 'Name, version and base path of this gateway', security: [], response: { 200: Config, 403: Failure } },
      config: { effect: 'read' }
    },
    async () => ({ success: true as const, data: { basePath, version, name } })
  )

  app.get(
    '/public-config',
    {
      schema: { tags, summary: 'What a login page needs to know', security: [], response: { 200: PublicConfig, 403: Failure } },
      config: { effect: 'read' }
    },
    async () => {
      const skipAuth = app.settings.current.system.routing?.skipAuth === true
      const permissions = skipAuth ? { admin: true, servers: 'all', users: true, system: true } : {}
      return {
        success: true as const,
        data: { skipAuth, permissions, socialAuth: { enabled: false, basePath: '/api/auth/better', providers: [] } }
      }
    }
  )
}
export default routes
