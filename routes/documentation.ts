import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyPluginAsync } from 'fastify'
import { addSecurityHeaders } from '../plugins/base/browsers/index.ts'
import { readAsset } from '../plugins/base/config/index.ts'
import { setRouteScope, type RouteRow } from '../plugins/base/scopes/index.ts'
import { completeApiDocument, apiDocumentBase } from '../schemas/openapi.ts'

/** Scope `docs`: the documentation of the gateway's HTTP API, as an OpenAPI document and as pages. */
const documentation: FastifyPluginAsync = async (app) => {
  const { version, basePath } = app.config
  setRouteScope(app, 'docs')
  addSecurityHeaders(app)
  await app.register(swagger, {
    openapi: apiDocumentBase(version, basePath),
    transformObject: (document) =>
      completeApiDocument('openapiObject' in document ? document.openapiObject : {}) as never
  })
  // @fastify/swagger documents only the routes of this instance, so the routes of the other instances are registered
  // again here, with their schemas and empty handlers. The routes of the scope `open` come last.
  const sortKeyOf = (row: RouteRow): number => Number(row.scope === 'open')
  for (const { method, url, schema, scope, effect } of app.routeTable.toSorted((a, b) => sortKeyOf(a) - sortKeyOf(b))) {
    if (scope === 'docs' || method === 'HEAD' || method === 'OPTIONS') continue
    const config = { effect, isUnlisted: true } as const
    app.route({ method, url, schema, config, exposeHeadRoute: false, handler: async () => {} })
  }
  const content = await readAsset('icons/tool-hub.svg')
  await app.register(swaggerUi, {
    routePrefix: `${basePath}/docs`,
    uiConfig: { persistAuthorization: true },
    logo: { type: 'image/svg+xml', content },
    theme: {
      title: 'Tool-Hub: the API',
      favicon: [{ filename: 'tool-hub.svg', rel: 'icon', type: 'image/svg+xml', sizes: 'any', content }]
    }
  })
}
export default documentation
