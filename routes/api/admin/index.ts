import { errors } from '../../../plugins/base/errors/index.ts'
import { enterScope } from '../../../plugins/base/scopes/index.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { principalOf } from '../principal.ts'
import activities from './activities.ts'
import audit from './audit.ts'
import bundles from './bundles.ts'
import builtIns from './builtins.ts'
import logs from './logs.ts'
import oauthClients from './oauth-clients.ts'
import system from './system.ts'
import users from './users.ts'

/** Scope `admin`, within `api`: every request has an admin as its caller. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  enterScope(app, 'admin')
  app.addHook('onRequest', (request, _reply, done) => {
    if (!principalOf(request).isAdmin) throw new errors.Forbidden('Only an admin may do this')
    done()
  })
  await app.register(users)
  await app.register(system)
  await app.register(audit)
  await app.register(builtIns)
  await app.register(activities)
  await app.register(logs)
  await app.register(oauthClients)
  await app.register(bundles)
}
export default routes
