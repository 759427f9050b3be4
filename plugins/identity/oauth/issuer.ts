import type { FastifyInstance, FastifyRequest } from 'fastify'
import { configuredBase, listeningOrigin } from '../../settings/index.ts'

type IsProxy = (address: string) => boolean

/** The names that this computer has for itself. */
const ownNames: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * The issuer identifier (RFC 8414): the public base as configured, else the address on which the gateway listens. A forwarded host counts
 * only where a proxy that TRUST_PROXY names has sent the request, since a header is what a caller can set.
 * @param isProxy whether an address that connects is that of such a proxy
 */
export function issuerOf (app: FastifyInstance, request: FastifyRequest, isProxy: IsProxy): string {
  return configuredBase(app.settings.current.system, app.config) ??
    `${forwardedOrigin(request, isProxy) ?? ownOrigin(listeningOrigin(app), request)}${app.config.basePath}`
}

/** The path of an issuer, without a slash at the end. */
export const issuerPath = (issuer: string): string => new URL(issuer).pathname.replace(/\/$/, '')

/**
 * The address on which the gateway listens, under that of the computer's own names which the caller uses: a client compares the resource
 * with the address that it was given (RFC 9728, section 3.3), and that may be `localhost` or `127.0.0.1`. No other name counts.
 */
function ownOrigin (listening: string, { headers: { host = '' } }: FastifyRequest): string {
  const [own, asked] = [new URL(listening), `http://${host}`]
  if (!ownNames.has(own.hostname) || !URL.canParse(asked)) return listening
  const { hostname, port, origin } = new URL(asked)
  return ownNames.has(hostname) && port === own.port ? origin : listening
}

function forwardedOrigin ({ headers, host, protocol, socket }: FastifyRequest, isProxy: IsProxy): string | undefined {
  if (headers['x-forwarded-host'] === undefined || !isProxy(socket.remoteAddress ?? '')) return undefined
  return URL.canParse(`${protocol}://${host}`) ? new URL(`${protocol}://${host}`).origin : undefined
}
