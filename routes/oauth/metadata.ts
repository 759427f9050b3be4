import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { issuerPath, resourceMetadata, resourceName, serverMetadata } from '../../plugins/identity/index.ts'
import { forAnyOrigin } from '../any-origin.ts'

const server = '/.well-known/oauth-authorization-server'
const resource = '/.well-known/oauth-protected-resource'

/**
 * The metadata documents. Their well-known path stands before the path that they are for (RFC 8414, section 3.1; RFC
 * 9728, section 3.1), and below the base path as well, for proxies that pass on nothing else.
 */
const routes: FastifyPluginAsync = async (app) => {
  const { basePath } = app.config
  const config = { effect: 'read' } as const
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })
  // As it was sent: the router has decoded its parameter, and names may hold spaces.
  const restOf = ({ url }: FastifyRequest): string => /^[^?]*?\/\.well-known\/[^/?]+(\/[^?]*)?/.exec(url)?.[1] ?? ''
  const describeServer = async (request: FastifyRequest): Promise<object> =>
    serverMetadata(app.oauth.issuer(request), app.oauth.settings)
  /** By the path of the issuer behind the well-known one. */
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
  /** By the path of the resource behind the well-known one. */
  const describeResourceAt = async (request: FastifyRequest): Promise<object> => {
    const issuer = app.oauth.issuer(request)
    const [path, prefix] = [restOf(request), issuerPath(issuer)]
    if (path === prefix || path.startsWith(`${prefix}/`)) return describeResource(issuer, path.slice(prefix.length))
    // Without a base path, this is also what a proxy passes on that has taken the path of the issuer off.
    if (basePath !== '') throw new errors.NotFound()
    return describeResource(issuer, path)
  }
  // Pages of any origin log their user in; the SDKs ask with a header that is not safelisted.
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
