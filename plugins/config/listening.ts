import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** The origin by which the gateway is reached on the address on which it listens. */
export function listeningOrigin (app: FastifyInstance): string {
  const { HOST: host } = app.config.env
  const { port } = app.server.address() as AddressInfo | null ?? { port: 80 }
  const isAny = host === '0.0.0.0' || host === '::'
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return new URL(`http://${name}:${port}`).origin
}
