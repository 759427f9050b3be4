import type { FastifyPluginAsync } from 'fastify'
import { addSecurityHeaders } from '../plugins/base/browsers/index.ts'
import apiRoutes from './api/index.ts'
import { addJsonBodyParser } from './bodies.ts'
import oauthRoutes from './oauth/index.ts'
import loginRoutes from './public/login.ts'
import upstreamLogin from './public/upstream-login.ts'
import socialRoutes from './social/index.ts'

export interface ManagementRoutesOptions {
  /** The password of the first admin under `npm run dev`; otherwise undefined. */
  developmentPassword?: string
}

/** The routes of the management API, the logins and the authorization server, which MCP calls do not need. */
const routes: FastifyPluginAsync<ManagementRoutesOptions> = async (app, { developmentPassword }) => {
  const { basePath } = app.config
  await app.register(async (api) => {
    addSecurityHeaders(api)
    addJsonBodyParser(api)
    await api.register(loginRoutes, { developmentPassword })
    await api.register(apiRoutes)
  }, { prefix: `${basePath}/api` })
  await app.register(oauthRoutes)
  await app.register(async (pages) => {
    addSecurityHeaders(pages)
    await pages.register(upstreamLogin, { prefix: basePath })
  })
  await app.register(socialRoutes, { prefix: basePath })
}
export default routes
