import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import {
  issuerPath, protectedResourceMetadata, resourcePathAsSent, authorizationServerMetadata
} from '../../plugins/identity/index.ts'
import { allowAnyOrigin } from '../any-origin.ts'

const serverMetadataPath = '/.well-known/oauth-authorization-server'
const resourceMetadataPath = '/.well-known/oauth-protected-resource'

/**
 * The routes of the metadata documents of the authorization server and of the protected resources (MCP routes). The
 * well-known path is inserted before the path of the issuer or resource (RFC 8414, section 3.1; RFC 9728, section 3.1).
 * The documents are also served below the base path, for proxies that forward only requests below it.
 */
const routes: FastifyPluginAsync = async (app) => {
  const { basePath } = app.config
  const config = { effect: 'read' } as const
  // Returns the path that follows the well-known path; '' if there is none. It is taken from the raw URL, since the
  // router decodes parameters, and the names of groups and servers may contain spaces.
  const pathAfterWellKnown = ({ originalUrl: url }: FastifyRequest): string =>
    /^[^?]*?\/\.well-known\/[^/?]+(\/[^?]*)?/.exec(url)?.[1] ?? ''
  const describeServer = async (request: FastifyRequest): Promise<object> =>
    authorizationServerMetadata(app.oauth.issuer(request), app.oauth.settings)
  /** Returns the document of the issuer whose path follows the well-known path. @throws NotFound for another issuer */
  const describeServerAt = async (request: FastifyRequest): Promise<object> => {
    if (pathAfterWellKnown(request).replace(/\/+$/, '') !== issuerPath(app.oauth.issuer(request))) {
      throw new errors.NotFound()
    }
    return await describeServer(request)
  }
  const describeResource = (issuer: string, rest: string): object => {
    const path = resourcePathAsSent(issuer, `${issuer}${rest}`)
    if (path === undefined) throw new errors.NotFound()
    return protectedResourceMetadata(issuer, path, app.oauth.settings)
  }
  const describeResourceBelow = async (request: FastifyRequest): Promise<object> =>
    describeResource(app.oauth.issuer(request), pathAfterWellKnown(request))
  /** Returns the document of the resource whose path follows the well-known path. @throws NotFound if it is unknown */
  const describeResourceAt = async (request: FastifyRequest): Promise<object> => {
    const issuer = app.oauth.issuer(request)
    const [path, prefix] = [pathAfterWellKnown(request), issuerPath(issuer)]
    if (path === prefix || path.startsWith(`${prefix}/`)) return describeResource(issuer, path.slice(prefix.length))
    // Without a base path, a proxy may have removed the issuer's path from the URL.
    if (basePath !== '') throw new errors.NotFound()
    return describeResource(issuer, path)
  }
  // Pages of any origin may start a login. The MCP SDKs send a header that is not CORS-safelisted, so browsers send
  // preflight requests first.
  const below = basePath === '' ? [] : [`${basePath}${resourceMetadataPath}/*`]
  const paths = [
    `${basePath}${serverMetadataPath}`, `${serverMetadataPath}/*`, `${basePath}${resourceMetadataPath}`,
    `${resourceMetadataPath}/*`, ...below
  ]
  allowAnyOrigin(app, Object.fromEntries(paths.map((path) => [path, 'GET'])))
  app.get(`${basePath}${serverMetadataPath}`, { config }, describeServer)
  app.get(`${serverMetadataPath}/*`, { config }, describeServerAt)
  app.get(`${basePath}${resourceMetadataPath}`, { config }, describeResourceBelow)
  app.get(`${resourceMetadataPath}/*`, { config }, describeResourceAt)
  if (basePath !== '') app.get(`${basePath}${resourceMetadataPath}/*`, { config }, describeResourceBelow)
}
export default routes
