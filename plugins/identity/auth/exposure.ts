import type { FastifyInstance } from 'fastify'
import type { SystemConfig } from '../../../schemas/settings.ts'
import { countVisibleServers, makeView, type Principal, findBaseUrlSetting } from '../../settings/index.ts'
import { isLoopback } from '../../base/config/index.ts'
import { loginSecretAdvice } from '../../base/secrets/index.ts'

/** Interval at which the error log about `routing.skipAuth` is repeated, in ms. */
const warningInterval = 15 * 60_000

/**
 * Logs a warning while `routing.skipAuth` is on, which makes everyone who can reach the gateway an admin. If other
 * machines can reach the gateway, the message is logged as an error, and repeated.
 */
export function warnOfSkippedAuth (app: FastifyInstance): void {
  const { env, listenAddress } = app.config
  const { HOST: host, ALLOWED_HOSTS: allowedHosts, TRUST_PROXY: trustProxy } = env
  const signsOf = (system: SystemConfig): string => [
    ...exposureSigns({ host, listenAddress, allowedHosts, address: findBaseUrlSetting(system, env) }),
    ...trustProxy === '' ? [] : [`TRUST_PROXY=${trustProxy}`]
  ].join(' and ')
  const warn = (isRepeated: boolean): void => {
    const { system } = app.settings.current
    if (system.routing?.skipAuth !== true) return
    const signs = signsOf(system)
    const consequence = 'has admin rights, and can start processes'
    if (signs !== '') {
      app.log.error(
        `routing.skipAuth is on and other machines can reach the gateway (${signs}): everybody who reaches it ` +
        `${consequence}. Turn it off`
      )
    } else if (!isRepeated) app.log.warn(`routing.skipAuth is on: everybody on this machine ${consequence}`)
  }
  const timer = setInterval(warn, warningInterval, true).unref()
  app.settings.on('changed', ({ system }, { system: former }) => {
    const isSame = system.routing?.skipAuth === former.routing?.skipAuth && signsOf(system) === signsOf(former)
    if (!isSame) warn(false)
  })
  app.addHook('onReady', async () => { warn(false) })
  app.addHook('onClose', async () => { clearInterval(timer) })
}

/** The settings that can make the gateway reachable from other machines. */
interface Exposure {
  host: string
  /** The address that the host resolves to. */
  listenAddress: string
  allowedHosts: string
  address: ReturnType<typeof findBaseUrlSetting>
}

/**
 * Returns the settings because of which other machines can probably reach the gateway, each as `NAME=value`; an empty
 * list if there are none.
 */
export function exposureSigns ({ host, listenAddress, allowedHosts, address }: Exposure): string[] {
  const names = allowedHosts.split(/[\s,]+/).map((each) => each.replace(/:\d*$/, '').toLowerCase())
  const isForeign = names.some((name) => name !== '' && !isLoopback(name))
  const isPublished = address !== undefined && URL.canParse(address.text) && !isLoopback(new URL(address.text).hostname)
  return [
    ...isLoopback(listenAddress) ? [] : [`HOST=${host}`],
    ...isForeign ? [`ALLOWED_HOSTS=${allowedHosts}`] : [],
    ...isPublished ? [`${address.name}=${address.text}`] : []
  ]
}

/** The access of callers without credentials. */
export interface AnonymousAccess {
  /** The number of servers whose tools such callers can run over plain HTTP. */
  readonly overHttp: number
  /** The number of servers whose tools such callers can run over MCP. */
  readonly overMcp: number
  /** Whether `routing.skipAuth` makes such callers admins on the management API. */
  readonly isAuthSkipped: boolean
}

/** Returns the access of callers without credentials. @param anonymous the principal of such callers */
export function anonymousAccessOf (app: FastifyInstance, anonymous: Principal): AnonymousAccess {
  const { routing } = app.settings.current.system
  const { PUBLIC_TOOLS: publicTools } = app.config.env
  return {
    overHttp: publicTools === 'off'
      ? 0
      : countVisibleServers(app.access, app.access.viewOfOpenRoute(anonymous, {}, 'server')),
    overMcp: routing?.enableBearerAuth === false
      ? countVisibleServers(app.access, makeView(anonymous, { kind: 'global' }))
      : 0,
    isAuthSkipped: routing?.skipAuth === true
  }
}

/**
 * Logs a warning when callers without credentials can run tools and other machines can reach the gateway. Logs nothing
 * with PUBLIC_TOOLS=public, since each server that such callers can use was then made public on purpose.
 */
export function warnOfOpenTools (app: FastifyInstance, anonymous: Principal): void {
  const { basePath, env, listenAddress } = app.config
  const { HOST: host, ALLOWED_HOSTS: allowedHosts, PUBLIC_TOOLS: publicTools } = env
  if (publicTools === 'public') return
  let warned = ''
  const warn = (): void => {
    const { system } = app.settings.current
    const address = findBaseUrlSetting(system, env)
    const signs = exposureSigns({ host, listenAddress, allowedHosts, address }).join(' and ')
    const { overHttp, overMcp } = anonymousAccessOf(app, anonymous)
    const ways = [
      ...overHttp > 0 ? [`under ${basePath}/api/tools, regardless of routing.enableBearerAuth`] : [],
      ...overMcp > 0 ? [`under ${basePath}/mcp, since routing.enableBearerAuth is off`] : []
    ].join(', and ')
    const found = signs === '' || ways === '' ? '' : `${ways} (${signs}; PUBLIC_TOOLS=${publicTools})`
    if (found !== '' && found !== warned) {
      const servers = Math.max(overHttp, overMcp)
      const closing =
        [...overHttp > 0 ? ['PUBLIC_TOOLS=off'] : [], ...overMcp > 0 ? ['routing.enableBearerAuth on'] : []]
          .join(' and ')
      app.log.warn(
        { servers, publicTools },
        `Everybody who can reach this gateway can run the tools of ${servers} of its servers without credentials, ` +
        `${found}. Set PUBLIC_TOOLS=public to open only servers that are marked public, or ${closing}`
      )
    }
    warned = found
  }
  app.settings.on('changed', warn)
  app.addHook('onReady', async () => { warn() })
}

const placeholderSecrets = new Set(['secret', 'changeme', 'change-me', 'password', 'your-secret-key', 'jwt-secret'])

/** Logs a warning if the secret that signs login tokens is weak, or if there is no secret that outlives the process. */
export function warnOfWeakSecret (app: FastifyInstance, secret: string | undefined): void {
  if (secret === undefined) {
    app.log.warn(
      'JWT_SECRET is not set, and no secret is stored: logins end when the gateway stops. Set it to ' +
      loginSecretAdvice
    )
  } else if (Buffer.byteLength(secret) < 32 || placeholderSecrets.has(secret.toLowerCase())) {
    app.log.warn(`JWT_SECRET is weak: use ${loginSecretAdvice}`)
  }
}
