import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { StorageError } from '../../../db/store.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import { errorText } from '../../../protocol/message.ts'
import { ShareError } from '../limits/index.ts'
import type { Pages } from '../pages/index.ts'
import { findingsOf, mostSpecific } from './findings.ts'
import { errors } from './list.ts'
import { OAuthError } from './oauth-error.ts'

/** The JSON-RPC codes of HTTP errors on the MCP routes; others are -32000. */
const rpcCodes: Readonly<Record<string, number>> = {
  TH_SESSION_UNKNOWN: code.unavailable,
  TH_UNKNOWN_ROUTE: code.unavailable,
  TH_INVALID_UTF8: code.parse,
  TH_LIMIT_REACHED: code.unavailable,
  TH_SHARE_USED: code.unavailable
}

const statusOf = (error: FastifyError): number =>
  error.validation ? 400 : error.statusCode !== undefined && error.statusCode >= 400 ? error.statusCode : 500

const unchanged = 'the settings were not changed'

/**
 * Our own error for a media type that is not supported, which says more than Fastify's; for a share that is used up; and for a storage that
 * cannot be used.
 */
function ours<Failure extends FastifyError | ShareError | StorageError> (
  error: Failure,
  request: FastifyRequest
): Exclude<Failure, ShareError | StorageError> | FastifyError {
  if (error instanceof StorageError) {
    // While it is known to be away, the log has a line of that already.
    const { server } = request
    const isKnown = server.hasDecorator('settings') && server.settings.problem !== undefined
    request.log[isKnown ? 'debug' : 'warn']({ err: error }, 'the storage could not be used for a request')
    return error.failing ? new errors.DiskFailing(unchanged) : error.full ? new errors.StorageFull(unchanged) : new errors.DataAway()
  }
  if (error instanceof ShareError) return error.isOwners ? new errors.ShareUsed(error.message) : new errors.LimitReached(error.message)
  const known = error as Exclude<Failure, ShareError | StorageError>
  return (known as FastifyError).code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? new errors.UnsupportedMediaType() : known
}

/** Says when a request that met a bound may be repeated (RFC 9110 §10.2.3). `after`: in seconds, where it is known */
function retryLater (reply: FastifyReply, status: number, after?: number): void {
  if (status === 503 || status === 507) reply.header('retry-after', '5')
  if (status === 429) reply.header('retry-after', String(after ?? 60))
}

/** The code that may leave: ours, or Fastify's about the request; never those of internal faults. */
const codeOf = ({ code }: FastifyError): string => /^(?:TH|FST)_/.test(code) ? code : 'TH_FAILED'

/** Sentences for errors of Fastify's that repeat the whole path. */
const pathErrors: Readonly<Record<string, string>> = {
  FST_ERR_BAD_URL: 'The path is not valid: percent-encode it as UTF-8',
  FST_ERR_MAX_PARAM_LENGTH: 'A part of the path is too long'
}

/** The message that may leave: our own sentences, and Fastify's about the request; never those of internal faults. */
const messageOf = (error: FastifyError): string =>
  pathErrors[error.code] ?? (statusOf(error) >= 500 && !error.code?.startsWith('TH_') ? 'Internal error' : error.message)

/** The challenge for a caller who was not identified: who has sent no credentials is told of no error (RFC 6750, section 3.1). */
const challengeOf = ({ headers: { authorization } }: FastifyRequest): string =>
  authorization !== undefined && /^bearer /i.test(authorization) ? 'Bearer error="invalid_token"' : 'Bearer'

/** The dialect of the management API and the public routes: `{success: false, message, code, errors?}`. */
export function envelope (
  given: FastifyError & { errors?: readonly string[], retryAfter?: number, scope?: string },
  request: FastifyRequest,
  reply: FastifyReply
): void {
  const error: typeof given = ours(given, request)
  const status = statusOf(error)
  if (status >= 500 && !error.code?.startsWith('TH_')) request.log.error({ err: error }, 'a request failed')
  if (status === 401 && !reply.hasHeader('www-authenticate')) reply.header('www-authenticate', challengeOf(request))
  if (error.code === 'TH_TOKEN_TWICE') reply.header('www-authenticate', 'Bearer error="invalid_request"')
  if (given.scope !== undefined) reply.header('www-authenticate', `Bearer error="insufficient_scope", scope="${given.scope}"`)
  retryLater(reply, status, given.retryAfter)
  const found = findingsOf(error)
  const told = mostSpecific(found)
  const message = told ? `${told.path} ${told.message}` : messageOf(error)
  void reply
    .code(status)
    .type('application/json')
    .send(
      JSON.stringify({
        success: false,
        message,
        code: found ? 'TH_INVALID_INPUT' : codeOf(error),
        errors: found ?? (error.code?.startsWith('TH_') ? error.errors : undefined)
      })
    )
}

/** The dialect of OpenAPI documents and of tools over plain HTTP: `{success: false, error, message}`; `error` is the code. */
export function toolError (given: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const error = ours(given, request)
  const status = statusOf(error)
  if (status >= 500 && !error.code?.startsWith('TH_')) request.log.error({ err: error }, 'a request failed')
  retryLater(reply, status)
  const found = mostSpecific(findingsOf(error))
  const told = found
    ? { error: 'TH_INVALID_INPUT', message: `${found.path} ${found.message}` }
    : { error: codeOf(error), message: messageOf(error) }
  void reply.code(status).type('application/json').send(JSON.stringify({ success: false, ...told }))
}

/** The dialect of the MCP routes: JSON-RPC errors without an id; 401 as OAuth says it (RFC 6750 §3). */
export function jsonRpc (given: FastifyError | RpcError, request: FastifyRequest, reply: FastifyReply): void {
  reply.type('application/json')
  if (given instanceof RpcError) {
    void reply.code(400).send(errorText('null', given.toText()))
    return
  }
  const error = ours(given, request)
  const status = statusOf(error)
  if (status >= 500 && !error.code?.startsWith('TH_')) request.log.error({ err: error }, 'an MCP request failed')
  if (status === 401) {
    if (!reply.hasHeader('www-authenticate')) reply.header('www-authenticate', 'Bearer')
    void reply
      .code(401)
      .send(JSON.stringify({ error: 'invalid_token', error_description: error.message }))
    return
  }
  retryLater(reply, status)
  const number = rpcCodes[error.code ?? ''] ?? (status >= 500 ? code.internal : code.badRequest)
  void reply.code(status).send(errorText('null', new RpcError(number, messageOf(error)).toText()))
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
  const error = given instanceof OAuthError ? given : ours(given, request)
  const status = error instanceof OAuthError ? error.statusCode : statusOf(error)
  const code = error instanceof OAuthError ? error.code : oauthCodes[status] ?? (status >= 500 ? 'server_error' : 'invalid_request')
  if (status >= 500 && !error.code?.startsWith('TH_')) request.log.error({ err: error }, 'a request to the authorization server failed')
  // Who has sent no credentials is told of no error (RFC 6750, section 3.1).
  if (status === 401) reply.header('www-authenticate', request.headers.authorization === undefined ? 'Bearer' : `Bearer error="${code}"`)
  retryLater(reply, status)
  const description = error instanceof OAuthError ? error.message : messageOf(error)
  void reply
    .code(status)
    .header('cache-control', 'no-store')
    .type('application/json')
    .send(JSON.stringify({ error: code, error_description: description }))
}

/** The dialect of pages: one that shows the message. */
export const pageError = (pages: Pages, title: string) => (given: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
  const error = ours(given, request)
  const status = statusOf(error)
  if (status >= 500 && !error.code?.startsWith('TH_')) request.log.error({ err: error }, 'a page failed')
  retryLater(reply, status, 'retryAfter' in given ? Number(given.retryAfter) : undefined)
  const { headers, html } = pages.problem({ title, text: `${messageOf(error)}.`, status })
  void reply.code(status).headers(headers).send(html)
}

/** The title of pages about errors of the authorization server. */
export const unanswered = 'This request cannot be answered'

/** The dialect of the pages of the authorization server, of which everything is a path without a route while it is off. */
export const oauthPageError = (pages: Pages): ReturnType<typeof pageError> => {
  const show = pageError(pages, unanswered)
  return (error, request, reply) => { show(error.code === 'TH_NOT_FOUND' ? new errors.OAuthOff() : error, request, reply) }
}

/** The dialect for a path without a route: that of the routes around it. */
export function byPath (basePath: string): typeof envelope {
  const isOAuth = (path: string): boolean => path.startsWith(`${basePath}/oauth/`)
  const isMcp = (path: string): boolean =>
    path.startsWith(`${basePath}/`) && /^\/(?:messages$|(?:api\/|[^/]+\/)?(?:mcp|sse)(?:\/|$))/.test(path.slice(basePath.length))
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

/** The root's handlers, for everything outside the scopes that have a dialect of their own. */
export default fp(async (app) => {
  const dialect = byPath(app.config.basePath)
  app.setErrorHandler(envelope)
  // Fastify asks for the end of the connection where a body cannot be read. A client that still sends would get a reset in place of the
  // answer; `endUnread` bounds what it may go on sending.
  app.addHook('onError', async (_request, reply) => { reply.removeHeader('connection') })
  app.setNotFoundHandler((request, reply) => {
    const methods = request.method === 'OPTIONS' ? [] : app.methodsAt(request.url.split('?', 1)[0] ?? '')
    if (methods.length > 0) reply.header('allow', methods.join(', '))
    dialect(methods.length > 0 ? new errors.MethodNotAllowed(inWords(methods)) : new errors.NotFound(), request, reply)
  })
}, { name: 'errors', dependencies: ['config'] })
