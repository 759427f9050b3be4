import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import browsers, { addSecurityHeaders } from '../plugins/base/browsers/index.ts'
import type { ManagementRoutesOptions } from './management.ts'
import mcpRoutes from './mcp/index.ts'
import openRoutes from './open/index.ts'
import publicRoutes from './public/index.ts'

export type RoutesOptions = ManagementRoutesOptions

/** All routes, by scope. Routes that MCP calls do not need are in annexes, loaded by the first request for them. */
const routes: FastifyPluginAsync<RoutesOptions> = async (app, { developmentPassword }) => {
  const { basePath } = app.config
  await app.register(browsers)
  await app.register(async (scope) => {
    addSecurityHeaders(scope)
    await scope.register(publicRoutes, { prefix: basePath })
  })
  await app.register(async (scope) => {
    addSecurityHeaders(scope)
    await scope.register(openRoutes, { prefix: `${basePath}/api` })
  })
  await app.register(mcpRoutes, { prefix: basePath })
  const below = (path: string): string => `${basePath}${path}/`
  const management = app.annexes.add(app, {
    paths: [
      ...['/api', app.social.path, '/oauth', '/.well-known'].map(below),
      '/.well-known/',
      `${basePath}/client-metadata.json`
    ],
    // `/tools/:server/:tool` of the scope `open` would match these requests.
    shadowedRoutes: [{ method: 'POST', url: `${basePath}/api/tools/call/:server` }],
    load: async () => {
      const { default: managementRoutes } = await import('./management.ts')
      return async (annex) => { await annex.register(managementRoutes, { developmentPassword }) }
    }
  })
  if (app.console.isOn) {
    const { base } = app.console
    app.annexes.add(app, {
      paths: [base, `${base}/`],
      load: async () => await app.console.load((await import('./console/index.ts')).default)
    })
  }
  app.annexes.add(app, {
    paths: [`${basePath}/docs`, below('/docs')],
    load: async () => {
      const { default: documentation } = await import('./documentation.ts')
      await management()
      return documentation
    }
  })
}
export default fp(routes, { name: 'routes', dependencies: ['management', 'extensions'] })
