import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import browsers, { securityHeaders } from '../plugins/base/browsers/index.ts'
import { readAsset } from '../plugins/base/config/index.ts'
import { enterScope } from '../plugins/base/scopes/index.ts'
import { completeApi, describeApi } from '../schemas/openapi.ts'
import apiRoutes from './api/index.ts'
import { jsonBodies } from './bodies.ts'
import consoleRoutes from './console/index.ts'
import mcpRoutes from './mcp/index.ts'
import oauthRoutes from './oauth/index.ts'
import openRoutes from './open/index.ts'
import publicRoutes from './public/index.ts'
import loginRoutes from './public/login.ts'
import socialRoutes from './social/index.ts'

export interface RoutesOptions {
  /** The admin's password under the development script. */
  developmentPassword?: string
}

/** All routes, by scope, and the API's own documentation. */
const routes: FastifyPluginAsync<RoutesOptions> = async (app, { developmentPassword }) => {
  const { basePath, version } = app.config
  await app.register(browsers)
  await app.register(swagger, {
    openapi: describeApi(version, basePath),
    transformObject: (document) => completeApi('openapiObject' in document ? document.openapiObject : {}) as never
  })
  await app.register(documentation)
  await app.register(async (open) => {
    securityHeaders(open)
    await open.register(publicRoutes, { prefix: basePath })
  })
  await app.register(async (api) => {
    securityHeaders(api)
    jsonBodies(api)
    await api.register(loginRoutes, { developmentPassword })
    await api.register(apiRoutes)
  }, { prefix: `${basePath}/api` })
  await app.register(async (open) => {
    securityHeaders(open)
    await open.register(openRoutes, { prefix: `${basePath}/api` })
  })
  await app.register(oauthRoutes)
  await app.register(socialRoutes, { prefix: basePath })
  await app.register(consoleRoutes, { prefix: basePath })
  await app.register(mcpRoutes, { prefix: basePath })
}
export default fp(routes, { name: 'routes', dependencies: ['management', 'extensions'] })

/** Scope `docs`: the API's documentation, as pages. */
const documentation: FastifyPluginAsync = async (app) => {
  enterScope(app, 'docs')
  securityHeaders(app)
  const content = await readAsset('icons/tool-hub.svg')
  await app.register(swaggerUi, {
    routePrefix: `${app.config.basePath}/docs`,
    uiConfig: { persistAuthorization: true },
    logo: { type: 'image/svg+xml', content },
    theme: {
      title: 'Tool-Hub: the API',
      favicon: [{ filename: 'tool-hub.svg', rel: 'icon', type: 'image/svg+xml', sizes: 'any', content }]
    }
  })
}
