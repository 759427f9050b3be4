import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { SystemConfig } from '../../schemas/settings.ts'
import type { Config } from '../base/config/index.ts'

/** The part of `app.config` that determines public addresses. */
export interface AddressConfig { readonly basePath: Config['basePath'], readonly env: Pick<Config['env'], 'BASE_URL'> }

/** Finds the configured public address and its source: BASE_URL, else `install.baseUrl`. It is not validated. */
export function findBaseUrlSetting (
  { install }: SystemConfig,
  { BASE_URL: url }: AddressConfig['env']
): { name: 'BASE_URL' | 'install.baseUrl', text: string } | undefined {
  if (url !== undefined) return { name: 'BASE_URL', text: url }
  return install?.baseUrl === undefined ? undefined : { name: 'install.baseUrl', text: install.baseUrl }
}

/**
 * Derives the public base URL from an address: its origin and path, with the base path appended unless the path already
 * ends with it.
 * @returns the URL without a trailing slash; undefined if it is not an http(s) URL
 */
export function withBasePath (address: string | undefined, basePath: string): string | undefined {
  if (address === undefined || !URL.canParse(address)) return undefined
  const { origin, pathname, protocol } = new URL(address)
  if (!/^https?:$/.test(protocol)) return undefined
  const path = pathname.replace(/\/+$/, '')
  return `${origin}${path.endsWith(basePath) ? path : `${path}${basePath}`}`
}

/** Returns the public base URL from BASE_URL, else `install.baseUrl`; undefined if that is not an http(s) URL. */
export const configuredBaseUrl = (system: SystemConfig, { basePath, env }: AddressConfig): string | undefined =>
  withBasePath(findBaseUrlSetting(system, env)?.text, basePath)

/** Returns the public base URL: the configured one, otherwise the address on which the gateway listens. */
export const publicBaseUrl = (app: FastifyInstance): string =>
  configuredBaseUrl(app.settings.current.system, app.config) ?? `${listeningOrigin(app)}${app.config.basePath}`

/** Returns the origin of the address on which the gateway listens; before it listens, with port 80. */
export function listeningOrigin (app: FastifyInstance): string {
  const { HOST: host } = app.config.env
  const { port } = app.server.address() as AddressInfo | null ?? { port: 80 }
  const isAny = host === '0.0.0.0' || host === '::'
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return new URL(`http://${name}:${port}`).origin
}
