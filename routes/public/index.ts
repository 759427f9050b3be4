import { Type } from '@sinclair/typebox'
import { errors } from '../../plugins/errors/list.ts'
import { Config, Health, Liveness, PublicConfig } from '../../schemas/public.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

export interface PublicOptions { name: string, version: string, basePath: string }

const tags = ['System']

/** Scope `public`: no credentials. */
const routes: FastifyPluginAsyncTypebox<PublicOptions> = async (app, { name, version, basePath }) => {
  app.get('/health', { schema: { tags, summary: 'Health, for people', security: [], response: { 200: Health } }, config: { effect: 'read' } }, async () => {
    const { connected, ...others } = app.upstreams.counts()
    const total = Object.values(others).reduce((sum, count) => sum + count, connected)
    return { status: 'ok', timestamp: new Date().toISOString(), uptime: process.uptime(), servers: { total, connected } }
  })

  app.get('/health/live', { schema: { tags, summary: 'Liveness, for orchestrators', security: [], response: { 200: Liveness } }, config: { effect: 'read' } }, async () => ({ status: 'ok' }))

  app.get('/health/ready', { schema: { tags, summary: 'Readiness, for orchestrators', description: '503 while starting, draining, or without storage.', security: [], response: { 200: Liveness } }, config: { effect: 'read' } }, async () => {
    const { name: phase } = app.phase
    const problem = phase === 'ready' ? app.settings.problem : phase
    if (problem !== undefined) throw new errors.NotReady(problem)
    return { status: 'ok' }
  })

  app.get('/metrics', { schema: { tags, summary: 'Metrics, for Prometheus', security: [], produces: ['text/plain'], response: { 200: Type.String() } }, config: { effect: 'read' } }, async (_request, reply) => {
    reply.type(app.metrics.contentType)
    return await app.metrics.metrics()
  })

  app.get('/config', { schema: { tags, summary: 'What this gateway is', security: [], response: { 200: Config } }, config: { effect: 'read' } }, async () => ({ success: true as const, data: { basePath, version, name } }))

  app.get('/public-config', { schema: { tags, summary: 'What a login page needs to know', security: [], response: { 200: PublicConfig } }, config: { effect: 'read' } }, async () => {
    const skipAuth = app.settings.current.system.routing?.skipAuth === true
    const permissions = skipAuth ? { admin: true, servers: 'all', users: true, system: true } : {}
    return { success: true as const, data: { skipAuth, permissions, socialAuth: { enabled: false, basePath: '/api/auth/better', providers: [] } } }
  })
}
export default routes
