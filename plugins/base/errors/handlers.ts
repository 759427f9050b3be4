import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { StorageError } from '../../../db/store.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import { errorText } from '../../../protocol/message.ts'
import { ShareError } from '../limits/index.ts'
import type { Pages } from '../pages/index.ts'
import { findingsOf, mostSpecific } from './findings.ts'
import { errors, OAuthError } from './list.ts'

/** The JSON-RPC codes of HTTP errors on the MCP routes; others are -32000. */
const rpcCodes: Readonly<Record<string, number>> = {
  TH_SESSION_UNKNOWN: code.unavailable,
  TH_UNKNOWN_ROUTE: code.unavailable,
  TH_INVALID_UTF8: code.parse,
  TH_LIMIT_REACHED: code.unavailable,
  TH_SHARE_USED: code.unavailable
}

/** The error as a dialect answers it. `retryAfter`: in seconds; `scope`: the scope that the access token lacks. */
type Answered = FastifyError & { errors?: readonly string[], retryAfter?: number, scope?: string }

const statusOf = (error: FastifyError): number =>
  error.validation ? 400 : error.statusCode !== undefined && error.statusCode >= 400 ? error.statusCode : 500

const isOurs = ({ code }: FastifyError): boolean => code?.startsWith('TH_')

/** The HTTP error for an error of a subsystem, or of Fastify where ours says more. */
function toHttpError (error: FastifyError | ShareError | StorageError, request: FastifyRequest): Answered {
  if (error instanceof StorageError) {
    // While the storage is known to be away, the log has a line of that already.
    const { server } = request
    const isKnown = server.hasDecorator('settings') && server.settings.problem !== undefined
    request.log[isKnown ? 'debug' : 'warn']({ err: error }, 'the storage could not be used for a request')
    const unchanged = 'the settings were not changed'
    return error.failing
      ? new errors.DiskFailing(unchanged)
      : error.full ? new errors.StorageFull(unchanged) : new errors.DataAway()
  }
  if (error instanceof ShareError) {
    return error.isOwners ? new errors.ShareUsed(error.message) : new errors.LimitReached(error.message)
  }
  return error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? new errors.UnsupportedMediaType() : error
}

/**
 * Logs a fault of the gateway, and says when the request may be repeated (RFC 9110, section 10.2.3).
 * @returns the status
 */
function begin (error: Answered, request: FastifyRequest, reply: FastifyReply): number {
  const status = statusOf(error)
  if (status >= 500 && !isOurs(error)) request.log.error({ err: error }, 'a request failed')
  if (status === 503 || status === 507) reply.header('retry-after', '5')
  if (status === 429) reply.header('retry-after', String(error.retryAfter ?? 60))
  return status
}

/** The code that may leave: ours, or Fastify's about the request; never those of internal faults. */
const codeOf = ({ code }: FastifyError): string => /^(?:TH|FST)_/.test(code) ? code : 'TH_FAILED'

/** Sentences in place of Fastify's, which repeat the whole path. */
const pathErrors: Readonly<Record<string, string>> = {
  FST_ERR_BAD_URL: 'The path is not valid: percent-encode it as UTF-8',
  FST_ERR_MAX_PARAM_LENGTH: 'A part of the path is too long'
}

/** The message that may leave: ours, or Fastify's about the request; never those of internal faults. */
const sentenceOf = (error: FastifyError): string =>
  pathErrors[error.code] ?? (statusOf(error) >= 500 && !isOurs(error) ? 'Internal error' : error.message)

/** The challenge to a caller who was not identified. Without credentials, it names no error (RFC 6750, section 3.1). */
const challengeFor = ({ headers: { authorization } }: FastifyRequest): string =>
  authorization !== undefined && /^bearer /i.test(authorization) ? 'Bearer error="invalid_token"' : 'Bearer'

/** The dialect of the management API and the public routes: `{success: false, message, code, errors?}`. */
export function envelope (given: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const error = toHttpError(given, request)
  const status = begin(error, request, reply)
  if (status === 401 && !reply.hasHeader('www-authenticate')) reply.header('www-authenticate', challengeFor(request))
  if (error.code === 'TH_TOKEN_TWICE') reply.header('www-authenticate', 'Bearer error="invalid_request"')
  if (error.scope !== undefined) {
    reply.header('www-authenticate', 'Bearer error="insufficient_scope", ' +
    `scope="${error.scope}"`)
  }
  const found = findingsOf(error)
  const first = mostSpecific(found)
  send(reply, status, {
    success: false,
    message: first ? `${first.path} ${first.message}` : sentenceOf(error),
    code: found ? 'TH_INVALID_INPUT' : codeOf(error),
    errors: found ?? (isOurs(error) ? error.errors : undefined)
  })
}

/**
 * The dialect of OpenAPI documents and of tools over plain HTTP: `{success: false, error, message}`; `error` is the
 * code.
 */
export function toolError (given: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const error = toHttpError(given, request)
  const status = begin(error, request, reply)
  const found = mostSpecific(findingsOf(error))
  send(reply, status, found
    ? { success: false, error: 'TH_INVALID_INPUT', message: `${found.path} ${found.message}` }
    : { success: false, error: codeOf(error), message: sentenceOf(error) })
}

/** The dialect of the MCP routes: JSON-RPC errors without an id; 401 in the form of OAuth (RFC 6750, section 3). */
export function jsonRpc (given: FastifyError | RpcError, request: FastifyRequest, reply: FastifyReply): void {
  reply.type('application/json')
  if (given instanceof RpcError) {
    void reply.code(400).send(errorText('null', given.toText()))
    return
  }
  const error = toHttpError(given, request)
  const status = begin(error, request, reply)
  if (status === 401) {
    if (!reply.hasHeader('www-authenticate')) reply.header('www-authenticate', 'Bearer')
    send(reply, 401, { error: 'invalid_token', error_description: error.message })
    return
  }
  const number = rpcCodes[error.code ?? ''] ?? (status >= 500 ? code.internal : code.badRequest)
  void reply.code(status).send(errorText('null', new RpcError(number, sentenceOf(error)).toText()))
}

/** The codes of OAuth for errors that say none, by status. */
const oauthCodes: Readonly<Record<number, string>> = {
  401: 'invalid_token',
  403: 'access_denied',
  404: 'not_found',
  429: 'temporarily_unavailable',
  503: 'temporarily_unavailable'
}

/** The dialect of the authorization server: `{error, error_description}` (RFC 6749, section 5.2). */
export function oauthError (given: FastifyError | OAuthError, request: FastifyRequest, reply: FastifyReply): void {
  const error = toHttpError(given, request)
  const status = begin(error, request, reply)
  const isOAuths = given instanceof OAuthError
  const code = isOAuths ? given.code : oauthCodes[status] ?? (status >= 500 ? 'server_error' : 'invalid_request')
  // Without credentials, the challenge names no error (RFC 6750, section 3.1).
  if (status === 401) {
    reply.header('www-authenticate', request.headers.authorization === undefined ? 'Bearer' : `Bearer error="${code}"`)
  }
  reply.header('cache-control', 'no-store')
  send(reply, status, { error: code, error_description: isOAuths ? given.message : sentenceOf(error) })
}

function send (reply: FastifyReply, status: number, body: object): void {
  void reply.code(status).type('application/json').send(JSON.stringify(body))
}

/** The dialect of pages: a page that shows the message. */
export const pageError = (pages: Pages, title: string) =>
  (given: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    const error = toHttpError(given, request)
    const status = begin(error, request, reply)
    const { headers, html } = pages.problem({ title, text: `${sentenceOf(error)}.`, status })
    void reply.code(status).headers(headers).send(html)
  }

/** The title of pages about errors of the authorization server. */
export const unanswered = 'This request cannot be answered'

/** The dialect of the pages of the authorization server: while it is off, none of its paths has a route. */
export const oauthPageError = (pages: Pages): ReturnType<typeof pageError> => {
  const show = pageError(pages, unanswered)
  return (error, request, reply) => {
    show(error.code === 'TH_NOT_FOUND' ? new errors.OAuthOff() : error, request, reply)
  }
}

/** The dialect for a path without a route: that of the neighbouring routes. */
export function byPath (basePath: string): typeof envelope {
  const isOAuth = (path: string): boolean => path.startsWith(`${basePath}/oauth/`)
  const isMcp = (path: string): boolean =>
    path.startsWith(`${basePath}/`) &&
      /^\/(?:messages$|(?:api\/|[^/]+\/)?(?:mcp|sse)(?:\/|$))/.test(path.slice(basePath.length))
  // The paths of the scope `open`; `/api/tools/call/:server` is the management API's.
  const isOpen = (path: string): boolean =>
    path.startsWith(`${basePath}/`) &&
    /^\/api\/(?:(?:[^/]+\/)?(?:openapi\.(?:json|yaml)|tools\/(?!call\/)[^/]+\/[^/]+)|openapi\/(?:servers|stats))\/?$/
      .test(path.slice(basePath.length))
  return (error, request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const dialect = isMcp(path) ? jsonRpc : isOAuth(path) ? oauthError : isOpen(path) ? toolError : envelope
    dialect(error, request, reply)
  }
}

/** A list of methods in a sentence. */
const inWords = (methods: readonly string[]): string => methods.join(', ').replace(/, ([^,]*)$/, ' and $1')

/** The handlers of the root, for everything outside the scopes with their own dialect. */
export default fp(async (app) => {
  const dialect = byPath(app.config.basePath)
  const notFound = (request: FastifyRequest, reply: FastifyReply): void => {
    const methods = request.method === 'OPTIONS' ? [] : app.methodsAt(request.url.split('?', 1)[0] ?? '')
    if (methods.length > 0) reply.header('allow', methods.join(', '))
    dialect(methods.length > 0 ? new errors.MethodNotAllowed(inWords(methods)) : new errors.NotFound(), request, reply)
  }
  await app.annexes.onEveryApp(app, (each) => {
    // Fastify closes the connection where a body cannot be read. A client that still sends would get a reset in place
    // of the answer.
    each.addHook('onError', async (_request, reply) => { reply.removeHeader('connection') })
    if (each !== app) each.setErrorHandler(envelope).setNotFoundHandler(notFound)
  })
  // What a hook refuses on the way to an annex, the annex refuses in its own words.
  app.setErrorHandler((error: FastifyError, request, reply) =>
    (request.is404 ? app.annexes.handOn(request, reply) : undefined) ?? envelope(error, request, reply))
  app.setNotFoundHandler((request, reply) => app.annexes.handOn(request, reply) ?? notFound(request, reply))
}, { name: 'errors', dependencies: ['config'] })
