import { errors } from '../../../plugins/base/errors/index.ts'
import { setRouteScope } from '../../../plugins/base/scopes/index.ts'
import { UserStats } from '../../../schemas/users.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { createApiRouter } from '../endpoint.ts'
import { builtInPromptEntity, builtInResourceEntity, builtInSkillEntity, teamEntity, userEntity } from '../entities.ts'
import { addReadRoutes, addWriteRoutes } from '../entity.ts'
import { addOrderedEntityRoutes } from '../ordered.ts'
import { requirePrincipal } from '../principal.ts'
import { GuardRecord, NewGuard } from '../../../schemas/guards.ts'
import { NewQuota, QuotaRecord } from '../../../schemas/quotas.ts'
import bundles from './bundles.ts'
import definitions from './definitions.ts'
import logs from './logs.ts'
import oauthClients from './oauth-clients.ts'
import policies from './policies.ts'
import system from './system.ts'

/** Scope `admin`, within `api`: the routes of the management API that only admins may use. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  setRouteScope(app, 'admin')
  app.addHook('onRequest', async (request) => {
    if (!requirePrincipal(request).isAdmin) throw new errors.Forbidden('Only an admin may do this')
  })
  addReadRoutes(app, userEntity(app))
  addWriteRoutes(app, userEntity(app))
  addWriteRoutes(app, teamEntity(app))
  addWriteRoutes(app, builtInPromptEntity(app))
  addWriteRoutes(app, builtInResourceEntity(app))
  addWriteRoutes(app, builtInSkillEntity(app))
  createApiRouter(app, 'Users').get('/users-stats', { summary: 'Get the number of users', data: UserStats }, () =>
    ({ data: app.users.stats() }))
  addOrderedEntityRoutes(app, {
    tag: 'Rules',
    path: '/guards',
    noun: 'guard',
    nouns: 'guards',
    itemSchema: GuardRecord,
    newItemSchema: NewGuard,
    entries: app.guards
  })
  addOrderedEntityRoutes(app, {
    tag: 'Rules',
    path: '/quotas',
    noun: 'quota',
    nouns: 'quotas',
    itemSchema: QuotaRecord,
    newItemSchema: NewQuota,
    entries: app.quotas
  })
  await app.register(system)
  await app.register(logs)
  await app.register(definitions)
  await app.register(oauthClients)
  await app.register(bundles)
  await app.register(policies)
}
export default routes
