import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** `install.baseUrl` without a slash at the end; undefined: it is not set, or no address. */
export function configuredOrigin (app: FastifyInstance): string | undefined {
  const baseUrl = app.settings.current.system.install?.baseUrl
  if (baseUrl === undefined || !URL.canParse(baseUrl)) return undefined
  const { origin, pathname } = new URL(baseUrl)
  return `${origin}${pathname.replace(/\/+$/, '')}`
}

/** The origin of the address on which the gateway listens. */
export function listeningOrigin (app: FastifyInstance): string {
  const { HOST: host } = app.config.env
  const { port } = app.server.address() as AddressInfo | null ?? { port: 80 }
  const isAny = host === '0.0.0.0' || host === '::'
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return new URL(`http://${name}:${port}`).origin
}
