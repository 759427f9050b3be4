import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { setRouteScope } from '../../plugins/base/scopes/index.ts'
import { managementLimits } from '../../plugins/management/index.ts'
import account from './account.ts'
import addAServer from './add-a-server.ts'
import approvals from './approvals.ts'
import audit from './audit.ts'
import backup from './backup.ts'
import { builtInsPages, builtInsAdminPages } from './built-ins.ts'
import bundle from './bundle.ts'
import calls from './calls.ts'
import catalogues from './catalogues.ts'
import definitions from './definitions.ts'
import groups from './groups.ts'
import guards from './guards.ts'
import keys from './keys.ts'
import live from './live.ts'
import { oauthAdminPages, oauthPages } from './oauth.ts'
import logs from './logs.ts'
import myCredentials from './my-credentials.ts'
import overview from './overview.ts'
import playground from './playground.ts'
import prompt from './prompt.ts'
import quotas from './quotas.ts'
import resource from './resource.ts'
import rules from './rules.ts'
import skill from './skill.ts'
import searchLab from './search-lab.ts'
import serverChanges from './server-changes.ts'
import serverConfiguration from './server-configuration.ts'
import servers from './servers.ts'
import settings from './settings.ts'
import signingIn from './signing-in.ts'
import signingOut from './signing-out.ts'
import tasks from './tasks.ts'
import { teamsAdminPages, teamsPages } from './teams.ts'
import tool from './tool.ts'
import templates from './templates.ts'
import theme from './theme.ts'
import usage from './usage.ts'
import users from './users.ts'
import welcome from './welcome.ts'

/** Registers the pages of the console. Those before `signedInPages` need no session (scope `console-open`). */
const routes: FastifyPluginAsync = async (app) => {
  await app.register(signingIn)
  await app.register(welcome)
  await app.register(theme)
  await app.register(signedInPages)
}
export default routes

const sessionEnded = 'Your session has ended, and nothing was changed'

/** Scope `console`: the routes that require a session. Without one, pages redirect to sign in; forms get 401. */
const signedInPages: FastifyPluginAsync = async (app) => {
  setRouteScope(app, 'console')
  const { base } = app.kit
  // A form is refused once its body is read, so that the error page can keep what was typed.
  const form = 'application/x-www-form-urlencoded'
  const isForm = ({ method, headers, server }: FastifyRequest): boolean =>
    method === 'POST' && headers['content-type']?.split(';')[0] === form && server.hasContentTypeParser(form) &&
      Number(headers['content-length']) <= managementLimits.console.keptForm
  app.addHook('onRequest', async (request, reply) => {
    if (request.principal || isForm(request)) return
    const isPage = request.method === 'GET' && request.headers['x-console-refresh'] === undefined
    const query = new URLSearchParams({ next: request.url }).toString()
    if (isPage) return await reply.redirect(`${base}/login?${query}`, 303)
    throw new errors.Unauthorized(sessionEnded)
  })
  app.addHook('preValidation', async ({ principal }) => {
    if (!principal) throw new errors.Unauthorized(sessionEnded)
  })
  app.get('/', { config: { effect: 'read' } }, async (_request, reply) => await reply.redirect(`${base}/overview`, 303))
  await app.register(overview)
  await app.register(servers)
  await app.register(serverConfiguration)
  await app.register(serverChanges)
  await app.register(myCredentials)
  await app.register(definitions)
  await app.register(tool)
  await app.register(prompt)
  await app.register(resource)
  await app.register(skill)
  await app.register(addAServer)
  await app.register(catalogues)
  await app.register(groups)
  await app.register(teamsPages)
  await app.register(keys)
  await app.register(oauthPages)
  await app.register(builtInsPages)
  await app.register(templates)
  await app.register(playground)
  await app.register(searchLab)
  await app.register(approvals)
  await app.register(adminPages)
  await app.register(calls)
  await app.register(usage)
  await app.register(tasks)
  await app.register(account)
  await app.register(live)
  await app.register(signingOut)
}

/** Scope `console-admin`: the pages for admins. Other users get 404. */
const adminPages: FastifyPluginAsync = async (app) => {
  setRouteScope(app, 'console-admin')
  app.addHook('onRequest', async ({ principal }) => { if (principal?.isAdmin === false) throw new errors.NotFound() })
  await app.register(users)
  await app.register(teamsAdminPages)
  await app.register(rules)
  await app.register(guards)
  await app.register(quotas)
  await app.register(bundle)
  await app.register(logs)
  await app.register(audit)
  await app.register(oauthAdminPages)
  await app.register(builtInsAdminPages)
  await app.register(settings)
  await app.register(backup)
}
