import type { FastifyInstance } from 'fastify'
import { isLoopback } from './origin.ts'

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
