import { refuseUnknownQuery } from '../../plugins/base/body/index.ts'
import { setRouteScope } from '../../plugins/base/scopes/index.ts'
import { createEntityTagHook } from '../entity-tag.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import account from './account.ts'
import activities from './activities.ts'
import events from './events.ts'
import admin from './admin/index.ts'
import approvals from './approvals.ts'
import catalogues from './catalogues.ts'
import builtIns from './builtins.ts'
import groups from './groups.ts'
import { bearerKeyEntity, teamEntity } from './entities.ts'
import { addReadRoutes, addWriteRoutes } from './entity.ts'
import items from './items.ts'
import oauth from './oauth.ts'
import people from './people.ts'
import servers from './servers.ts'
import settings from './settings.ts'
import tasks from './tasks.ts'
import templates from './templates.ts'
import usage from './usage.ts'
import tools from './tools.ts'
import variables from './variables.ts'

const cacheControl = 'no-store'

/** Scope `api`: the routes of the management API. The caller of each request is identified before its body is read. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  setRouteScope(app, 'api')
  app.addHook('onRoute', refuseUnknownQuery)
  app.addHook('onSend', createEntityTagHook(cacheControl))
  app.decorateRequest('principal', null)
  app.addHook('onRequest', async (request, reply) => {
    // Responses are only for this caller, and may contain secrets.
    reply.header('cache-control', cacheControl)
    request.principal = { ...await app.auth.identifyManagementCaller(request), address: request.ip }
    // A guest sends no credential. Only the Origin header shows whether the guest sent a request, or a page of another
    // site in the guest's browser.
    if (request.principal.kind === 'guest') app.auth.checkOrigin(request)
  })
  await app.register(account)
  await app.register(servers)
  await app.register(variables)
  await app.register(items)
  await app.register(groups)
  addReadRoutes(app, bearerKeyEntity(app))
  addWriteRoutes(app, bearerKeyEntity(app))
  addReadRoutes(app, teamEntity(app))
  await app.register(people)
  await app.register(settings)
  await app.register(tools)
  await app.register(builtIns)
  await app.register(templates)
  await app.register(activities)
  await app.register(approvals)
  await app.register(events)
  await app.register(tasks)
  await app.register(usage)
  await app.register(oauth)
  await app.register(catalogues)
  await app.register(admin)
}
export default routes
