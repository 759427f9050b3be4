import cookie from '@fastify/cookie'
import type { FastifyPluginAsync } from 'fastify'
import { sendOAuthError } from '../../plugins/base/errors/index.ts'
import { setRouteScope } from '../../plugins/base/scopes/index.ts'
import endpoints from './endpoints.ts'
import metadata from './metadata.ts'
import pages from './pages.ts'
import registration from './registration.ts'
import userinfo from './userinfo.ts'

/**
 * Scope `oauth`: the routes of the authorization server. Errors are JSON in the format of RFC 6749, except on the pages
 * that browsers open, whose errors are HTML. While the authorization server is disabled, all its routes respond with
 * 404.
 */
const routes: FastifyPluginAsync = async (app) => {
  setRouteScope(app, 'oauth')
  app.setErrorHandler(sendOAuthError)
  app.addHook('onRequest', (_request, reply, done) => {
    app.oauth.assertEnabled()
    reply.header('cache-control', 'no-store')
    done()
  })
  await app.register(cookie)
  const { basePath } = app.config
  await app.register(metadata)
  await app.register(async (below) => {
    await below.register(endpoints)
    await below.register(pages)
    await below.register(registration)
    await below.register(userinfo)
  }, { prefix: `${basePath}/oauth` })
}
export default routes
