import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { configuredBaseUrl, countVisibleServers, makeView, type Principal } from '../../settings/index.ts'
import { OpenApiDocuments } from './openapi.ts'

declare module 'fastify' {
  interface FastifyInstance { openapi: OpenApiDocuments }
}

/**
 * Max time after the start until the number of open tools is logged, in ms. It is logged earlier if no server is
 * connecting any more.
 */
const maxConnectWait = 60_000
/** Interval of the check whether any server is still connecting, in ms. */
const checkInterval = 250

/** Decorates the app with `openapi`, which creates OpenAPI documents of the tools that plain HTTP callers may run. */
export default fp(async (app) => {
  const base = (): string => configuredBaseUrl(app.settings.current.system, app.config) ?? app.config.basePath
  const openapi = new OpenApiDocuments({ base, access: app.access, gateway: app.gateway })
  app.decorate('openapi', openapi)

  let timer: NodeJS.Timeout | undefined
  app.addHook('onListen', async () => {
    const until = Date.now() + maxConnectWait
    timer = setInterval(() => {
      if (app.upstreams.countByStatus().connecting > 0 && Date.now() < until) return
      clearInterval(timer)
      logOpenTools(app)
    }, checkInterval).unref()
  })
  app.addHook('onClose', async () => {
    clearInterval(timer)
    openapi.close()
  })
}, { name: 'openapi', dependencies: ['config', 'settings', 'access', 'gateway', 'upstream'] })

/** Logs how many tools callers without credentials may run. */
function logOpenTools (app: FastifyInstance): void {
  const { PUBLIC_TOOLS: publicTools } = app.config.env
  const anonymous: Principal = { key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }
  const nothing = { totalServers: 0, totalTools: 0 }
  const { totalServers: servers, totalTools: tools } = publicTools === 'off' ? nothing : app.openapi.stats(anonymous)
  const overMcp = app.settings.current.system.routing?.enableBearerAuth === false
    ? `; over MCP, those of ${countVisibleServers(app.access, makeView(anonymous, { kind: 'global' }))}, since ` +
      'routing.enableBearerAuth is off'
    : ''
  app.log.info(
    { servers, tools, publicTools },
    `Tools that are open to anyone, without credentials: ${tools}, of ${servers} servers ` +
    `(PUBLIC_TOOLS=${publicTools})${overMcp}`
  )
}
