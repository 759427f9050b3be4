import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { SystemConfig } from '../../schemas/settings.ts'
import type { Config } from '../base/config/index.ts'

/** What of `app.config` decides about public addresses. */
export interface AddressConfig { readonly basePath: Config['basePath'], readonly env: Pick<Config['env'], 'BASE_URL'> }

/** The public address as the operator wrote it, and where: BASE_URL, else `install.baseUrl`. Not checked. */
export function statedAddress (
  { install }: SystemConfig,
  { BASE_URL: url }: AddressConfig['env']
): { name: 'BASE_URL' | 'install.baseUrl', text: string } | undefined {
  if (url !== undefined) return { name: 'BASE_URL', text: url }
  return install?.baseUrl === undefined ? undefined : { name: 'install.baseUrl', text: install.baseUrl }
}

/**
 * The public base of an address: its origin and path, with the base path at the end once, whether or not the address
 * ends with it.
 * @returns without a slash at the end; undefined: it is no http address
 */
export function withBasePath (address: string | undefined, basePath: string): string | undefined {
  if (address === undefined || !URL.canParse(address)) return undefined
  const { origin, pathname, protocol } = new URL(address)
  if (!/^https?:$/.test(protocol)) return undefined
  const path = pathname.replace(/\/+$/, '')
  return `${origin}${path.endsWith(basePath) ? path : `${path}${basePath}`}`
}

/** The public base that BASE_URL or `install.baseUrl` states; undefined: neither does. */
export const configuredBase = (system: SystemConfig, { basePath, env }: AddressConfig): string | undefined =>
  withBasePath(statedAddress(system, env)?.text, basePath)

/** The public base: as configured, else the address on which the gateway listens. */
export const publicBase = (app: FastifyInstance): string =>
  configuredBase(app.settings.current.system, app.config) ?? `${listeningOrigin(app)}${app.config.basePath}`

/** The origin of the address on which the gateway listens. */
export function listeningOrigin (app: FastifyInstance): string {
  const { HOST: host } = app.config.env
  const { port } = app.server.address() as AddressInfo | null ?? { port: 80 }
  const isAny = host === '0.0.0.0' || host === '::'
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return new URL(`http://${name}:${port}`).origin
}
