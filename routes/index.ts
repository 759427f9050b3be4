import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import browsers, { addSecurityHeaders } from '../plugins/base/browsers/index.ts'
import type { ManagementRoutesOptions } from './management.ts'
import mcpRoutes from './mcp/index.ts'
import openRoutes from './open/index.ts'
import publicRoutes from './public/index.ts'

export type RoutesOptions = ManagementRoutesOptions

/**
 * Registers all routes. The management API with its logins, the console and the documentation are annexes: apps of
 * their own, each of which is created by the first request for one of its paths.
 */
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
    // Otherwise, these requests would match the route `/tools/:server/:tool` of the scope `open`.
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
