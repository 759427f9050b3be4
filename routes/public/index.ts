import { timingSafeEqual } from 'node:crypto'
import { readAsset } from '../../plugins/base/config/index.ts'
import { errors } from '../../plugins/base/errors/index.ts'
import { sendPage } from '../../plugins/base/pages/index.ts'
import { loginSecretAdvice, sha256 } from '../../plugins/base/secrets/index.ts'
import { configuredBaseUrl } from '../../plugins/settings/index.ts'
import { Failure } from '../../schemas/answers.ts'
import { ConfigResponse, MetricsResponse, PublicConfigResponse } from '../../schemas/public.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import events from './events.ts'
import health from './health.ts'

const tags = ['System']

/**
 * Returns a function that checks, in constant time, whether an Authorization header contains a token.
 * @param token if undefined, no header is accepted
 */
function createBearerCheck (token: string | undefined): (authorization: string | undefined) => boolean {
  if (token === undefined) return () => false
  const expected = Buffer.from(sha256(token))
  return (authorization = '') => {
    const sent = /^bearer +(.+)$/i.exec(authorization)?.[1]?.trim()
    return sent !== undefined && timingSafeEqual(Buffer.from(sha256(sent)), expected)
  }
}

/** Scope `public`: routes that require no credentials, except `/metrics` unless METRICS is `public`. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { version, basePath } = app.config
  await app.register(health, {
    status: 'ok',
    servers: () => app.upstreams.countByStatus(),
    problem: () => app.phase.name === 'ready' ? app.settings.outageReason : app.phase.name
  })

  await app.register(events)

  app.get('/', { schema: { hide: true }, config: { effect: 'read' } }, async (request, reply) => {
    const isBrowser = /(?:^|[,\s])text\/html(?:[,;\s]|$)/.test(request.headers.accept ?? '')
    reply.header('vary', 'accept')
    if (isBrowser && app.console.isOn) return await reply.redirect(`${basePath}/console`, 303)
    const { connected, ...others } = app.upstreams.countByStatus()
    return await sendPage(reply, app.pages.home({
      state: app.phase.name !== 'ready'
        ? app.phase.name
        : app.settings.storeProblem === undefined ? 'ready' : 'waiting for its storage',
      connected,
      total: Object.values(others).reduce((sum, count) => sum + count, connected),
      endpoint: `${configuredBaseUrl(app.settings.current.system, app.config) ?? basePath}/mcp`,
      docs: `${basePath}/docs`,
      health: `${basePath}/health`
    }))
  })
  const icon = await readAsset('icons/tool-hub.svg')
  app.get('/favicon.ico', { schema: { hide: true }, config: { effect: 'read' } }, async (_request, reply) =>
    await reply.header('content-type', 'image/svg+xml').header('cache-control', 'public, max-age=86400').send(icon))

  if (app.config.env.METRICS !== 'off') {
    const isPublic = app.config.env.METRICS === 'public'
    const token = app.config.env.METRICS_TOKEN
    if (token !== undefined && Buffer.byteLength(token) < 32) {
      app.log.warn(`METRICS_TOKEN is weak: use ${loginSecretAdvice}`)
    }
    const hasMetricsToken = createBearerCheck(token)
    app.get(
      '/metrics',
      {
        schema: {
          tags,
          summary: 'Metrics, for Prometheus',
          description:
            'For admins, and with METRICS_TOKEN. With METRICS=public for every caller, with the names of those ' +
            'servers only that the caller may see.',
          ...(isPublic ? { security: [] } : {}),
          response: { 200: MetricsResponse, 401: Failure, 403: Failure }
        },
        config: { effect: 'read' }
      },
      async (request, reply) => {
        reply.type(app.metrics.contentType)
        if (hasMetricsToken(request.headers.authorization)) return await app.metrics.read()
        const principal = isPublic
          ? await app.auth.identifyOptionally(request)
          : await app.auth.identifyMetricsCaller(request)
        if (!isPublic && !principal.isAdmin) {
          throw new errors.Forbidden('Only an admin may read the metrics (METRICS=public opens them)')
        }
        return await app.metrics.read(principal)
      }
    )
  }

  app.get(
    '/config',
    {
      schema: {
        tags,
        summary: 'Get the name, version and base path of this gateway',
        security: [],
        response: { 200: ConfigResponse, 403: Failure }
      },
      config: { effect: 'read' }
    },
    async () => ({ success: true as const, data: { basePath, version, name: 'tool-hub' } })
  )

  app.get(
    '/public-config',
    {
      schema: {
        tags,
        summary: 'Get the configuration of the login page',
        security: [],
        response: {
          200: PublicConfigResponse, 403: Failure
        }
      },
      config: { effect: 'read' }
    },
    async () => {
      const skipAuth = app.settings.current.system.routing?.skipAuth === true
      const permissions = skipAuth ? { admin: true, servers: 'all', users: true, system: true } : {}
      const { isEnabled: enabled, path, providers } = app.social
      const socialAuth = { enabled, basePath: path, providers: providers.map(({ id }) => id) }
      return { success: true as const, data: { skipAuth, permissions, socialAuth } }
    }
  )
}
export default routes
