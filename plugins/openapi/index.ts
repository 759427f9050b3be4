import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { PublicReach } from '../access/visibility.ts'
import { OpenApi } from './openapi.ts'

declare module 'fastify' {
  interface FastifyInstance { openapi: OpenApi }
}

export interface OpenApiOptions { publicTools: PublicReach, basePath: string }

/** How long the first connections are waited for before it is told what is open, in ms; and how often they are looked at. */
const patience = 60_000
const interval = 250

/** `app.openapi`: what may be called over plain HTTP, as OpenAPI documents. */
export default fp<OpenApiOptions>(async (app, { publicTools, basePath }) => {
  const openapi = new OpenApi({
    snapshot: () => app.settings.current,
    access: app.access,
    upstreamOf: (name) => app.upstreams.get(name),
    anonymous: publicTools,
    basePath
  })
  app.decorate('openapi', openapi)

  let timer: NodeJS.Timeout | undefined
  app.addHook('onListen', async () => {
    const until = Date.now() + patience
    const look = (): void => {
      if (app.upstreams.counts().connecting > 0 && Date.now() < until) return
      clearInterval(timer)
      tellReach(app, publicTools)
    }
    timer = setInterval(look, interval)
    timer.unref()
  })
  app.addHook('onClose', async () => { clearInterval(timer) })
}, { name: 'openapi', dependencies: ['settings', 'access', 'upstream'] })

/** One line for the operator: what callers without credentials may run. */
function tellReach (app: FastifyInstance, publicTools: PublicReach): void {
  const { totalServers: servers, totalTools: tools } = publicTools === 'off'
    ? { totalServers: 0, totalTools: 0 }
    : app.openapi.stats({ key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false })
  app.log.info(
    { servers, tools, publicTools },
    `Tools that are open to anyone, without credentials: ${tools}, of ${servers} servers (PUBLIC_TOOLS=${publicTools})`
  )
}
