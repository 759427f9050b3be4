import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { Provider } from 'oidc-provider'

/** The requests that the library answers, by what it knows of them. */
const requests = new WeakMap<IncomingMessage, FastifyRequest>()

/** @throws Error for a request that was not handed over */
export function requestOf (raw: IncomingMessage): FastifyRequest {
  const request = requests.get(raw)
  if (!request) throw new Error('the request was not handed over')
  return request
}

/**
 * Makes a request look as if it had come to the address of the issuer: the library builds its URLs from the request, which a caller
 * could make say anything.
 */
export function addressTo (issuer: string, raw: IncomingMessage): void {
  const { host, protocol } = new URL(issuer)
  raw.headers.host = host
  raw.headers['x-forwarded-proto'] = protocol.slice(0, -1)
  for (const name of ['x-forwarded-host', 'x-forwarded-for', 'forwarded']) delete raw.headers[name]
}

/**
 * Lets the library answer a request.
 * @param path the path and query of the request below the base path
 */
export function handOver (
  provider: Provider,
  issuer: string,
  request: FastifyRequest,
  reply: ServerResponse,
  path: string
): void {
  const raw: IncomingMessage & { originalUrl?: string } = request.raw
  requests.set(raw, request)
  addressTo(issuer, raw)
  raw.url = path
  // Fastify's note of the URL as it came: the library would take the path of its own URLs from it, in place of the issuer's.
  delete raw.originalUrl
  reply.setHeader('x-content-type-options', 'nosniff')
  void provider.callback()(raw, reply)
}
