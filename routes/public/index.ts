import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { Config, Health, PublicConfig } from '../../schemas/public.ts'

export interface PublicOptions { name: string, version: string, basePath: string }

/** Scope `public`: no credentials. */
const routes: FastifyPluginAsyncTypebox<PublicOptions> = async (app, { name, version, basePath }) => {
  app.get('/health', { schema: { response: { 200: Health } }, config: { effect: 'read' } }, async () => {
    const { connected, ...others } = app.upstreams.counts()
    const total = Object.values(others).reduce((sum, count) => sum + count, connected)
    return { status: 'ok', timestamp: new Date().toISOString(), uptime: process.uptime(), servers: { total, connected } }
  })

  app.get('/config', { schema: { response: { 200: Config } }, config: { effect: 'read' } }, async () => ({ success: true as const, data: { basePath, version, name } }))

  app.get('/public-config', { schema: { response: { 200: PublicConfig } }, config: { effect: 'read' } }, async () => {
    const skipAuth = app.snapshot().system.routing?.skipAuth === true
    const permissions = skipAuth ? { admin: true, servers: 'all', users: true, system: true } : {}
    return { success: true as const, data: { skipAuth, permissions, socialAuth: { enabled: false, basePath: '/api/auth/better', providers: [] } } }
  })
}
export default routes
