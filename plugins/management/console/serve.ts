import cookie from '@fastify/cookie'
import csrf from '@fastify/csrf-protection'
import files from '@fastify/static'
import { randomBytes } from 'node:crypto'
import type { FastifyError, FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { ConsoleSessions } from '../../../db/ports/console-sessions.ts'
import { isObject } from '../../../protocol/json.ts'
import { percentDecode } from '../../../protocol/text.ts'
import type { User } from '../../../schemas/settings.ts'
import { errors, preparePageError } from '../../base/errors/index.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import { setRouteScope } from '../../base/scopes/index.ts'
import { sha256 } from '../../base/secrets/index.ts'
import { findBaseUrlSetting } from '../../settings/index.ts'
import { managementLimits } from '../limits.ts'
import { ApiClient } from './api-client.ts'
import { findOrBuildAssets } from './assets.ts'
import { TokenEstimator } from './costs.ts'
import { consoleCookieNames, isTheme, setThemeCookie, setNoticeCookie, type Notice } from './cookies.ts'
import { acceptOnlyFormBodies } from './form-body.ts'
import { McpClient } from './mcp-client.ts'
import { prepareToHoldMemory } from './memory.ts'
import { isAutoRefresh, LiveStreams, type LoadLivePageData } from './live.ts'
import { SchemaForm } from './forms/schema-form.ts'
import { ServerForm } from './forms/server-form.ts'
import { blocksOf } from './forms/result.ts'
import { parsePastedServers } from './pasted/pasted.ts'
import { loadPageTemplates, type NavPage, Renderer } from './render.ts'
import { SignedInSessions, type SignedInSession } from './sessions.ts'

declare module 'fastify' {
  interface FastifyInstance { kit: ConsoleKit }
  interface FastifyRequest { signedIn: SignedInSession | null }
  interface FastifyReply {
    /** Returns the CSRF token for the forms of a page. */
    csrf: () => string
  }
}

/** `app.kit`: the services for the routes of the console. */
interface ConsoleKit {
  /** The path of the console. */
  readonly base: string
  readonly renderer: Renderer
  readonly api: ApiClient
  readonly mcp: McpClient
  readonly live: LiveStreams
  readonly costs: TokenEstimator
  /** Reads the servers from a pasted text. @throws InvalidInput */
  readonly readPasted: typeof parsePastedServers
  readonly formOf: (...options: ConstructorParameters<typeof SchemaForm>) => SchemaForm
  readonly serverFormOf: (config: Readonly<Record<string, unknown>>, isAdmin: boolean) => ServerForm
  /** Splits the result of a call into the blocks that a page shows. */
  readonly blocksOf: typeof blocksOf
  /** The `LoadLivePageData` of each page that updates itself, by the name of its template. Routes add their own. */
  readonly watches: Map<string, LoadLivePageData>
  /** The pages of the navigation, in order. Routes add their own. */
  readonly nav: NavPage[]
  /** Begins a session for an authenticated user, and ends a former session of this browser. */
  readonly signIn: (reply: FastifyReply, user: User) => Promise<void>
  /** Ends the session of this browser, if any. */
  readonly signOut: (reply: FastifyReply) => Promise<void>
  /** Stores a notice for the next page in a cookie. */
  readonly notify: (reply: FastifyReply, notice: Notice) => void
  /** Stores the chosen theme in a cookie. An unknown theme is ignored. */
  readonly setTheme: (reply: FastifyReply, theme: string) => void
  /** Returns the path if it is below the console and allowed in a redirect; otherwise the path of the overview. */
  readonly consolePathOf: (path: unknown) => string
}

/**
 * The Content-Security-Policy of all pages: scripts run only from the console's own files, and no site can frame a
 * page. `data:` is allowed for images and audio in results of tools.
 */
const contentPolicy = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", 'media-src data:',
  "connect-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"
].join('; ')

const pageHeaders = {
  'content-security-policy': contentPolicy,
  'referrer-policy': 'same-origin',
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin'
}

/**
 * Serves the console: registers its assets, the checks of sessions and CSRF tokens, `app.kit`, and the pages.
 * @param app the annex (plugins/base/annexes) that contains the console
 * @param main the app that serves the management API and the MCP endpoint
 * @param stored the storage of the sessions
 * @param pages registers the routes of the pages, below the path of the console
 * @returns the streams, which must be closed before `main` waits for its connections to end
 */
export async function serveConsole (
  app: FastifyInstance, main: FastifyInstance, stored: ConsoleSessions, pages: FastifyPluginAsync
): Promise<LiveStreams> {
  setRouteScope(app, 'console-open')
  const { version, env: { READONLY: readonly, JWT_SECRET: secret } } = app.config
  const { base } = app.console
  const { folder, names } = await findOrBuildAssets()
  await app.register(cookie)
  await app.register(csrf, {
    cookieKey: consoleCookieNames.csrf,
    cookieOpts: { path: base, httpOnly: true, sameSite: 'lax' },
    // A token is valid only for the session that it was made for, or without a session if it was made without one.
    getUserInfo: csrfUserOf,
    getToken: ({ body }) => csrfTokenIn(body),
    csrfOpts: { hmacKey: sha256(`console forms ${secret ?? randomBytes(32).toString('hex')}`) },
    logLevel: 'debug'
  })
  await app.register(async (assets) => {
    setRouteScope(assets, 'console-assets')
    await assets.register(files, {
      root: folder,
      prefix: `${base}/assets/`,
      index: false,
      decorateReply: false,
      immutable: true,
      maxAge: '1y',
      preCompressed: true,
      schemaHide: true
    })
  })
  const sessions = new SignedInSessions(stored, app.settings, (about, sentence) => { app.log.warn(about, sentence) })
  const nav: NavPage[] = []
  const live = new LiveStreams(sessions, app.settings)
  const kit: ConsoleKit = {
    base,
    nav,
    live,
    costs: new TokenEstimator(app.gateway),
    readPasted: parsePastedServers,
    formOf: (...options) => new SchemaForm(...options),
    serverFormOf: (config, isAdmin) => new ServerForm(config, isAdmin),
    blocksOf,
    watches: new Map(),
    api: new ApiClient(main),
    mcp: new McpClient(main),
    renderer: new Renderer(await loadPageTemplates(), { base, version, readonly, assets: names, nav }),
    signIn: async (reply, user) => {
      await kit.signOut(reply)
      const path = { path: base, httpOnly: true, sameSite: 'lax', secure: isSecure(reply.request) } as const
      reply.setCookie(consoleCookieNames.session, await sessions.begin(user), path)
    },
    signOut: async (reply) => {
      const { cookies: { [consoleCookieNames.session]: token }, signedIn } = reply.request
      if (token !== undefined) await sessions.end(token)
      if (signedIn) live.end(signedIn.id)
      for (const name of [consoleCookieNames.session, consoleCookieNames.csrf]) reply.clearCookie(name, { path: base })
    },
    notify: (reply, notice) => { setNoticeCookie(reply, base, notice) },
    setTheme: (reply, theme) => { if (isTheme(theme)) setThemeCookie(reply, base, theme) },
    consolePathOf: (path) => consolePathOf(base, path)
  }
  const isSecure = ({ protocol, host }: FastifyRequest): boolean => {
    const stated = findBaseUrlSetting(app.settings.current.system, app.config.env)?.text
    const url = stated !== undefined && URL.canParse(stated) ? new URL(stated) : undefined
    return protocol.toLowerCase() === 'https' || (url?.protocol === 'https:' && url.host === host)
  }
  app.decorate('kit', kit)
  // The pages of a session get the same token, so that unchanged parts of a page stay byte-identical.
  const tokens = new BoundedMap<string, string>(managementLimits.console.formTokens)
  app.decorateReply('csrf', function () {
    const { signedIn, cookies: { [consoleCookieNames.csrf]: secret } } = this.request
    const key = signedIn && secret !== undefined ? `${signedIn.id} ${secret}` : undefined
    const token = (key === undefined ? undefined : tokens.get(key)) ??
      this.generateCsrf({ userInfo: csrfUserOf(this.request), secure: isSecure(this.request) })
    if (key !== undefined) tokens.set(key, token)
    return token
  })
  await app.register(async (scope) => {
    acceptOnlyFormBodies(scope)
    checkRequests(scope, sessions)
    scope.setNotFoundHandler((request, reply) => {
      if (request.principal) void showError(new errors.NotFound(), request, reply)
      else void reply.redirect(`${base}/login`, 303)
    })
    await scope.register(pages)
  }, { prefix: base })
  return live
}

/** Returns what a CSRF token is bound to: the id of the session, or `nobody`. */
const csrfUserOf = ({ signedIn }: FastifyRequest): string => signedIn?.id ?? 'nobody'

function csrfTokenIn (body: unknown): string {
  const { _csrf: token } = (body ?? {}) as { _csrf?: unknown }
  return typeof token === 'string' ? token : ''
}

/**
 * Adds hooks that set the security headers, look up the session of a request, and reject a POST with an invalid Origin
 * or CSRF token; and an error handler that sends pages.
 */
function checkRequests (scope: FastifyInstance, sessions: SignedInSessions): void {
  scope.decorateRequest('principal', null)
  scope.decorateRequest('signedIn', null)
  prepareToHoldMemory(scope)
  const identify = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    reply.headers(pageHeaders)
    const { [consoleCookieNames.session]: token } = request.cookies
    const found = token === undefined ? undefined : await sessions.find(token, !isAutoRefresh(request))
    request.signedIn = found ? { ...found, principal: { ...found.principal, address: request.ip } } : null
    request.principal = request.signedIn?.principal ?? null
  }
  scope.addHook('onRequest', async (request, reply) => {
    if (request.method === 'POST') scope.auth.checkOrigin(request)
    await identify(request, reply)
  })
  scope.addHook('preHandler', (request, reply, done) => {
    if (request.method === 'POST' && !request.is404) scope.csrfProtection(request, reply, done)
    else done()
  })
  scope.setErrorHandler<FastifyError>(async (error, request, reply) => {
    // Hooks of the whole app, such as the one for READONLY, run before the hook above, and may refuse a request.
    if (!reply.hasHeader('content-security-policy')) {
      request.cookies ??= scope.parseCookie(request.headers.cookie ?? '')
      await identify(request, reply)
    }
    return showError(error, request, reply)
  })
}

const expiredPage = 'This page has expired, and nothing was changed'

/** The messages shown in place of the messages of some errors, which users of the console would not understand. */
const messages: Readonly<Record<string, string>> = {
  FST_CSRF_MISSING_SECRET: `${expiredPage}. Go back, reload it, and try again.`,
  FST_CSRF_INVALID_TOKEN: `${expiredPage}. Go back, reload it, and try again.`,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'A form of this console was expected.',
  TH_TOO_LARGE:
    'This form is larger than 2 MiB, and nothing was changed. Go back: your browser kept what you typed.',
  TH_UNSUPPORTED_MEDIA_TYPE: 'A form of this console was expected.'
}

/** The titles of error pages, by status. */
const titles: Readonly<Record<number, string>> = { 401: 'You are not signed in', 404: 'Page not found' }

/** Sends a page with the message of an error, and its status. */
function showError (given: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, text, code } = preparePageError(given, request, reply)
  const title = titles[status] ?? 'This did not work'
  const { principal, server: { kit: { base, renderer } } } = request
  const again = formToSendAgain(given.code, request)
  const data = {
    title,
    status,
    again,
    text: again && principal ? `${expiredPage}.` : messages[given.code] ?? messages[code] ?? text,
    ...status === 404 && { path: request.url.split('?')[0] },
    back: principal ? renderer.linkToParentPage(request.url, principal) : { label: 'Sign in', href: `${base}/login` }
  }
  return renderer.send(reply, 'error', data, status)
}

/** Matches the names of the fields for passwords and other secrets. */
const secretField = /password|^repeated$|^credential$|(?:key|secret|token|dbUrl)$|^values?[.-]|^arg\/(?:env|headers)\//i

/**
 * Returns the submitted form for the error page, from which it can be sent again, if it was refused because the session
 * had ended (401), or because its page was of another session; undefined if it contains secrets or is too large.
 * @param code the code of the error, if it has one
 */
function formToSendAgain (
  code: string | undefined, { body, url, principal, server }: FastifyRequest
): { readonly href: string, readonly fields: object, readonly label: string } | undefined {
  const isRefused = principal === null || code?.startsWith('FST_CSRF_') === true
  if (!isRefused || server.scope === 'console-open' || !isObject(body)) return undefined
  const { _csrf, ...fields } = body
  // Without its secrets, a form would do something else.
  if (Object.entries(fields).some(([name, value]) => value !== '' && secretField.test(name))) return undefined
  if (JSON.stringify(fields).length > managementLimits.console.keptForm) return undefined
  return { href: url, fields, label: principal === null ? 'Continue' : `Send it as ${principal.username ?? ''}` }
}

/**
 * Returns the target of a redirect: a path from a request if it is below the path of the console; otherwise the path of
 * the overview, also in place of the pages to sign in and out, streams and files. This prevents open redirects.
 * @param base the path of the console
 */
function consolePathOf (base: string, path: unknown): string {
  const start = `${base}/overview`
  if (typeof path !== 'string' || !path.startsWith('/') || !URL.canParse(path, 'http://console')) return start
  const { origin, pathname, search } = new URL(path, 'http://console')
  if (origin !== 'http://console' || !pathname.startsWith(`${base}/`) || pathname.includes('//')) return start
  // The router decodes a path before matching it.
  const page = percentDecode(pathname.slice(base.length + 1))
  return page === undefined || /^(?:login|sign-out|welcome|live|assets|theme)(?:\/|$)/.test(page)
    ? start
    : `${pathname}${search}`
}
