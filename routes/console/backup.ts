import type { FastifyPluginAsync } from 'fastify'
import { createPageRouter } from './page.ts'

/** The page that explains how to back up and restore the gateway, and the download of the settings with all secrets. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, settings } = app
  createPageRouter(app).page('backup', { title: 'Backup', isInNav: true }, () => {
    const { servers, groups, users } = settings.current
    return { facts: [['Servers', servers.size], ['Groups', groups.size], ['Users', users.size]] }
  })

  app.get('/backup/settings', { config: { effect: 'read' } }, async (request, reply) => {
    const { data } = await kit.api.ask(request, 'GET', '/mcp-settings/export?includeSecrets=true')
    return await reply.type('application/json')
      .header('content-disposition', 'attachment; filename="mcp_settings.json"')
      .send(app.export.toText(data as object))
  })
}
export default routes
