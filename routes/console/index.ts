import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { enterScope } from '../../plugins/base/scopes/index.ts'

/**
 * Scope `console`: the web console. These routes forward to another Fastify instance, which the first request creates,
 * so that an unused console takes no memory.
 */
const routes: FastifyPluginAsync = async (app) => {
  if (!app.console.isOn) return
  enterScope(app, 'console')
  const load = async (): Promise<FastifyPluginAsync> => (await import('./pages.ts')).default
  const pass = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const pages = await app.console.open(load)
    reply.hijack()
    pages.routing(request.raw, reply.raw)
  }
  for (const url of ['/console', '/console/*']) {
    app.get(url, { schema: { hide: true }, config: { effect: 'read' } }, pass)
    // The inner route states the effect of a form; READONLY is enforced there, too.
    app.post(url, { schema: { hide: true }, config: { effect: 'run' } }, pass)
  }
}
export default routes
