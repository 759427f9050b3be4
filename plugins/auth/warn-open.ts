import type { FastifyInstance } from 'fastify'
import { isLoopback } from './origin.ts'

const every = 15 * 60_000

/** Tells, for as long as it is so, that `routing.skipAuth` makes everybody an admin who reaches this address. */
export function warnOfOpenDoors (app: FastifyInstance, host: string): void {
  const local = isLoopback(host)
  const tell = (): void => {
    if (app.settings.current.system.routing?.skipAuth !== true) return
    if (local) app.log.warn('routing.skipAuth is on: everybody on this machine is an admin here, and may start processes')
    else {
      app.log.error(
        `routing.skipAuth is on and the gateway listens on ${host}: everybody who reaches it is an admin here, and may start processes. Turn it off, or listen on 127.0.0.1`
      )
    }
  }
  const again = local ? undefined : setInterval(tell, every).unref()
  app.settings.on('changed', (next, former) => { if (next.system.routing?.skipAuth !== former.system.routing?.skipAuth) tell() })
  app.addHook('onReady', async () => { tell() })
  app.addHook('onClose', async () => { clearInterval(again) })
}
