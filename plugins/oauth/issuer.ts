import type { FastifyInstance, FastifyRequest } from 'fastify'
import { configuredOrigin, listeningOrigin } from '../settings/base-url.ts'

/**
 * The issuer identifier (RFC 8414): `install.baseUrl` with the base path, else the address on which the gateway listens. A forwarded host
 * counts only where TRUST_PROXY says so, since a header is what a caller can set.
 */
export function issuerOf (app: FastifyInstance, request: FastifyRequest): string {
  const { basePath, env } = app.config
  return `${configuredOrigin(app) ?? forwardedOrigin(request, env.TRUST_PROXY) ?? listeningOrigin(app)}${basePath}`
}

/** The path of an issuer, without a slash at the end. */
export const issuerPath = (issuer: string): string => new URL(issuer).pathname.replace(/\/$/, '')

function forwardedOrigin ({ headers, host, protocol }: FastifyRequest, trustProxy: string | undefined): string | undefined {
  const isForwarded = trustProxy !== undefined && headers['x-forwarded-host'] !== undefined
  return isForwarded && URL.canParse(`${protocol}://${host}`) ? new URL(`${protocol}://${host}`).origin : undefined
}
