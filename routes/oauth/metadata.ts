import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { issuerPath, resourceMetadata, resourceName, serverMetadata } from '../../plugins/identity/index.ts'
import { forAnyOrigin } from '../any-origin.ts'

const server = '/.well-known/oauth-authorization-server'
const resource = '/.well-known/oauth-protected-resource'

/**
 * The metadata documents. The well-known path is inserted before the path of the issuer or resource (RFC 8414, section
 * 3.1; RFC 9728, section 3.1). It also exists below the base path, for proxies that forward nothing else.
 */
const routes: FastifyPluginAsync = async (app) => {
  const { basePath } = app.config
  const config = { effect: 'read' } as const
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })
  // From the raw URL: the router has decoded its parameter, and names may contain spaces.
  const restOf = ({ url }: FastifyRequest): string => /^[^?]*?\/\.well-known\/[^/?]+(\/[^?]*)?/.exec(url)?.[1] ?? ''
  const describeServer = async (request: FastifyRequest): Promise<object> =>
    serverMetadata(app.oauth.issuer(request), app.oauth.settings)
  /** The document for the issuer whose path follows the well-known path. */
  const describeServerAt = async (request: FastifyRequest): Promise<object> => {
    if (restOf(request).replace(/\/+$/, '') !== issuerPath(app.oauth.issuer(request))) throw new errors.NotFound()
    return await describeServer(request)
  }
  const describeResource = (issuer: string, rest: string): object => {
    const path = resourceName(issuer, `${issuer}${rest}`)
    if (path === undefined) throw new errors.NotFound()
    return resourceMetadata(issuer, path, app.oauth.settings)
  }
  const describeResourceBelow = async (request: FastifyRequest): Promise<object> =>
    describeResource(app.oauth.issuer(request), restOf(request))
  /** The document for the resource whose path follows the well-known path. */
  const describeResourceAt = async (request: FastifyRequest): Promise<object> => {
    const issuer = app.oauth.issuer(request)
    const [path, prefix] = [restOf(request), issuerPath(issuer)]
    if (path === prefix || path.startsWith(`${prefix}/`)) return describeResource(issuer, path.slice(prefix.length))
    // Without a base path, the request may come through a proxy that has removed the issuer's path.
    if (basePath !== '') throw new errors.NotFound()
    return describeResource(issuer, path)
  }
  // Pages of any origin may start a login. The MCP SDKs send a header that is not safelisted, so preflights occur.
  const below = basePath === '' ? [] : [`${basePath}${resource}/*`]
  const paths = [`${basePath}${server}`, `${server}/*`, `${basePath}${resource}`, `${resource}/*`, ...below]
  forAnyOrigin(app, Object.fromEntries(paths.map((path) => [path, 'GET'])))
  app.get(`${basePath}${server}`, { config }, describeServer)
  app.get(`${server}/*`, { config }, describeServerAt)
  app.get(`${basePath}${resource}`, { config }, describeResourceBelow)
  app.get(`${resource}/*`, { config }, describeResourceAt)
  if (basePath !== '') app.get(`${basePath}${resource}/*`, { config }, describeResourceBelow)
}
export default routes
