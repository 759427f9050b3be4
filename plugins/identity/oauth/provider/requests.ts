import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { Provider } from 'oidc-provider'

/** The Fastify requests of the raw requests that were passed to oidc-provider. */
const requests = new WeakMap<IncomingMessage, FastifyRequest>()

/**
 * Returns the Fastify request that a raw request belongs to.
 * @throws Error if `passToProvider` has not passed the request to oidc-provider
 */
export function fastifyRequestOf (raw: IncomingMessage): FastifyRequest {
  const request = requests.get(raw)
  if (!request) throw new Error('the request was not passed to the library')
  return request
}

/**
 * Rewrites the headers of a request as if it were sent to the issuer's address, since oidc-provider builds URLs from
 * them.
 */
export function rewriteToIssuerAddress (issuer: string, raw: IncomingMessage): void {
  const { host, protocol } = new URL(issuer)
  raw.headers.host = host
  raw.headers['x-forwarded-proto'] = protocol.slice(0, -1)
  // The client's address stays readable (`request.ip`), since attempts are counted by it.
  for (const name of ['x-forwarded-host', 'forwarded']) delete raw.headers[name]
}

/**
 * Passes a request to oidc-provider, which sends the response.
 * @param path the path and query of the request, without the base path
 */
export function passToProvider (
  provider: Provider,
  issuer: string,
  request: FastifyRequest,
  reply: ServerResponse,
  path: string
): void {
  const raw: IncomingMessage & { originalUrl?: string } = request.raw
  requests.set(raw, request)
  rewriteToIssuerAddress(issuer, raw)
  raw.url = path
  // Fastify stores the original URL here; the library would build its URLs from it instead of from the issuer.
  delete raw.originalUrl
  reply.setHeader('x-content-type-options', 'nosniff')
  void provider.callback()(raw, reply)
}
