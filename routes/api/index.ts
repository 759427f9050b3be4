import type { FastifyRequest } from 'fastify'
import { errors } from '../../plugins/errors/list.ts'
import type { Principal } from '../../plugins/access/view.ts'
import { enterScope } from '../../plugins/scopes/index.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import account from './account.ts'
import admin from './admin/index.ts'
import groups from './groups.ts'
import items from './items.ts'
import keys from './keys.ts'
import prompts from './prompts.ts'
import servers from './servers.ts'
import settings from './settings.ts'
import tools from './tools.ts'

declare module 'fastify' {
  interface FastifyRequest { principal: Principal | null }
}

/** Scope `api`: an identity is needed. Bodies are JSON. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  enterScope(app, 'api')
  app.decorateRequest('principal', null)
  app.addHook('onRequest', async (request, reply) => {
    // What is answered is for who asked, and often secret.
    reply.header('cache-control', 'no-store')
    request.principal = app.auth.management(request)
    // The guest has no credential of its own that a foreign page would lack.
    if (request.principal.kind === 'guest') app.auth.origin(request)
  })
  await app.register(account)
  await app.register(servers)
  await app.register(items)
  await app.register(groups)
  await app.register(keys)
  await app.register(settings)
  await app.register(tools)
  await app.register(prompts)
  await app.register(admin)
}
export default routes

/** Who is asking. The scope's guard has made sure that somebody is. */
export function principalOf (request: FastifyRequest): Principal {
  if (!request.principal) throw new errors.Unauthorized('Log in first')
  return request.principal
}
