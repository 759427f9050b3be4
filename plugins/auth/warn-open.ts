import type { FastifyInstance } from 'fastify'
import { isUsable } from '../../db/store.ts'
import type { Principal } from '../access/view.ts'
import { isLoopback } from '../config/loopback.ts'

/** In ms. */
const interval = 15 * 60_000

/**
 * Logs a warning when `routing.skipAuth` is on, which makes everybody who reaches the gateway an admin; repeatedly, and as an error, when
 * it does not listen on loopback.
 */
export function warnOfSkippedAuth (app: FastifyInstance, host: string): void {
  const local = isLoopback(host)
  const warn = (): void => {
    if (app.settings.current.system.routing?.skipAuth !== true) return
    if (local) {
      app.log.warn('routing.skipAuth is on: everybody on this machine is an admin here, and may start processes')
      return
    }
    app.log.error(
      `routing.skipAuth is on and the gateway listens on ${host}: everybody who reaches it is an admin here, and may start processes. ` +
      'Turn it off, or listen on 127.0.0.1'
    )
  }
  const timer = local ? undefined : setInterval(warn, interval).unref()
  app.settings.on('changed', (next, former) => {
    if (next.system.routing?.skipAuth !== former.system.routing?.skipAuth) warn()
  })
  app.addHook('onReady', async () => { warn() })
  app.addHook('onClose', async () => { clearInterval(timer) })
}

/** The settings by which an operator lets in more than this machine. */
export interface Exposure { host: string, allowedHosts: string, baseUrl: string | undefined }

/** The settings that show that other machines reach the gateway, for a log line; an empty array: none does. */
export function exposureSigns ({ host, allowedHosts, baseUrl }: Exposure): string[] {
  const names = allowedHosts.split(/[\s,]+/).map((each) => each.replace(/:\d*$/, '').toLowerCase())
  const isForeign = names.some((name) => name !== '' && !isLoopback(name))
  const isPublished = baseUrl !== undefined && URL.canParse(baseUrl) && !isLoopback(new URL(baseUrl).hostname)
  return [
    ...isLoopback(host) ? [] : [`HOST=${host}`],
    ...isForeign ? [`ALLOWED_HOSTS=${allowedHosts}`] : [],
    ...isPublished ? [`install.baseUrl=${baseUrl}`] : []
  ]
}

/**
 * Logs a warning when callers without credentials can run tools and other machines reach the gateway. PUBLIC_TOOLS=public is a decision:
 * each of these servers was marked.
 */
export function warnOfOpenTools (app: FastifyInstance, anonymous: Principal): void {
  const { HOST: host, ALLOWED_HOSTS: allowedHosts, PUBLIC_TOOLS: publicTools } = app.config.env
  if (publicTools === 'public' || publicTools === 'off') return
  let warned = ''
  const warn = (): void => {
    const signs = exposureSigns({ host, allowedHosts, baseUrl: app.settings.current.system.install?.baseUrl })
    const open = app.access.visible(app.access.open(anonymous, {}, 'server')).filter(({ server }) => isUsable(server)).length
    const found = open === 0 ? '' : signs.join(' and ')
    if (found !== '' && found !== warned) {
      app.log.warn(
        { servers: open, publicTools },
        `Everybody who reaches this gateway may run the tools of ${open} of its servers without credentials, under ` +
        `${app.config.basePath}/api/tools, whatever routing.enableBearerAuth says (${found}; PUBLIC_TOOLS=${publicTools}). ` +
        'Set PUBLIC_TOOLS=public to open only servers that are marked public, or PUBLIC_TOOLS=off'
      )
    }
    warned = found
  }
  app.settings.on('changed', warn)
  app.addHook('onReady', async () => { warn() })
}
