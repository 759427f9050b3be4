import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { enterScope } from '../../plugins/base/scopes/index.ts'

/**
 * Scope `console`: the pages for people. These routes stand for all of them: the instance that serves them is made by
 * the first request, so that a gateway whose console nobody opens has nothing of it in memory.
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
    // What a form does is stated by its route in that instance, where READONLY refuses it, too.
    app.post(url, { schema: { hide: true }, config: { effect: 'run' } }, pass)
  }
}
export default routes
