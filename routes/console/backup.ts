import type { FastifyPluginAsync } from 'fastify'
import { pagesOf } from './page.ts'

/** What do I keep, and how? */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, settings } = app
  const { page, form } = pagesOf(app)
  page('backup', { title: 'Backup', isInNav: true }, () => {
    const { servers, groups, users } = settings.current
    return {
      facts: [['Servers', servers.size], ['Groups', groups.size], ['Users', users.size]],
      commands: 'tool-hub backup\ntool-hub restore <file>'
    }
  })

  form('/backup/settings', { effect: 'run' }, async ({ request, reply }) => {
    const { data } = await kit.api.ask(request, 'GET', '/mcp-settings/export?includeSecrets=true')
    void reply.type('application/json').header('content-disposition', 'attachment; filename="mcp_settings.json"')
      .send(JSON.stringify(data, undefined, 2))
    return undefined
  })
}
export default routes
