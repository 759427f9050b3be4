import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { StorageError } from '../../../db/store.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { errorResponseText } from '../../../protocol/message.ts'
import { ShareError } from '../limits/index.ts'
import type { Pages } from '../pages/index.ts'
import { findingsOf, mostSpecificFinding } from './findings.ts'
import { errors, OAuthError, toStorageHttpError } from './list.ts'

/**
 * JSON-RPC codes of HTTP errors on the MCP routes. Other errors have -32603 if their status is 500 or above, otherwise
 * -32000.
 */
const rpcCodes: Readonly<Record<string, number>> = {
  TH_SESSION_UNKNOWN: rpcCode.unavailable,
  TH_UNKNOWN_ROUTE: rpcCode.unavailable,
  TH_INVALID_UTF8: rpcCode.parse,
  TH_LIMIT_REACHED: rpcCode.unavailable,
  TH_SHARE_USED: rpcCode.unavailable
}

/** An HTTP error with data for its response. `retryAfter`: in seconds; `scope`: what the access token lacks. */
type HttpError = FastifyError & { errors?: readonly unknown[], retryAfter?: number, scope?: string }

const statusOf = (error: FastifyError): number =>
  error.validation ? 400 : error.statusCode !== undefined && error.statusCode >= 400 ? error.statusCode : 500

// An error that is not meant for HTTP, such as an RpcError, may have a number.
const isGatewayError = ({ code }: { code?: unknown }): boolean => typeof code === 'string' && code.startsWith('TH_')

/**
 * Converts an error to an HTTP error, and logs a storage error. Replaces Fastify's error for an unsupported media type
 * by the gateway's own.
 */
function toHttpError (error: FastifyError | ShareError | StorageError, request: FastifyRequest): HttpError {
  if (error instanceof StorageError) {
    // A known storage outage has already been logged.
    const { server } = request
    const isKnown = server.hasDecorator('settings') && server.settings.storeProblem !== undefined
    request.log[isKnown ? 'debug' : 'warn']({ err: error }, 'a request failed because the storage is unavailable')
    return toStorageHttpError(error, new errors.DataAway())
  }
  if (error instanceof ShareError) {
    return error.isOwnerLimit ? new errors.ShareUsed(error.message) : new errors.LimitReached(error.message)
  }
  return error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? new errors.UnsupportedMediaType() : error
}

/** Logs an error that is a fault of the gateway, and sets `Retry-After` (RFC 9110, 10.2.3). @returns the status */
function beginAnswer (error: HttpError, request: FastifyRequest, reply: FastifyReply): number {
  const status = statusOf(error)
  // A client that leaves while its body is received is no fault of the gateway, and must not fill the log.
  const hasClientLeft = request.raw.destroyed && !request.raw.complete
  if (status >= 500 && !isGatewayError(error)) {
    request.log[hasClientLeft ? 'debug' : 'error']({ err: error }, 'a request failed')
  }
  if (status === 503 || status === 507) reply.header('retry-after', '5')
  if (status === 429) reply.header('retry-after', String(error.retryAfter ?? 60))
  return status
}

/** The code to expose: the gateway's own or Fastify's; `TH_FAILED` for any other error. */
const codeOf = ({ code }: FastifyError): string => /^(?:TH|FST)_/.test(code) ? code : 'TH_FAILED'

/** Messages, by error code, that replace Fastify's messages, since those contain the whole path. */
const pathErrors: Readonly<Record<string, string>> = {
  FST_ERR_BAD_URL: 'The path is not valid: percent-encode it as UTF-8',
  FST_ERR_MAX_PARAM_LENGTH: 'A part of the path is too long'
}

/** The message to expose. If the status is 500 or above, only messages of the gateway's own errors are exposed. */
const sentenceOf = (error: FastifyError): string =>
  pathErrors[error.code] ?? (statusOf(error) >= 500 && !isGatewayError(error) ? 'Internal error' : error.message)

/** The `WWW-Authenticate` challenge. Without a bearer token, it contains no error (RFC 6750, section 3.1). */
const challengeFor = ({ headers: { authorization } }: FastifyRequest): string =>
  authorization !== undefined && /^bearer /i.test(authorization) ? 'Bearer error="invalid_token"' : 'Bearer'

/** Creates the error for a method that a path does not allow, and sets `Allow`. @param methods the allowed methods */
function notAllowed (methods: readonly string[], reply: FastifyReply): FastifyError {
  reply.header('allow', methods.join(', '))
  return new errors.MethodNotAllowed(joinInWords(methods))
}

/**
 * Replaces NoSuch by MethodNotAllowed if routes without parameters have this path, but other methods. `GET
 * /api/servers/batch` would otherwise say that there is no server named "batch".
 */
function withMethods (error: HttpError, request: FastifyRequest, reply: FastifyReply): HttpError {
  if (error.code !== 'TH_NO_SUCH') return error
  const methods = request.server.methodsAt(request.url.split('?', 1)[0] ?? '', true)
  return methods.length === 0 || methods.includes(request.method) ? error : notAllowed(methods, reply)
}

/** Sends an error in the format of the management API and public routes: `{success: false, message, code, errors?}`. */
export function sendEnvelopeError (given: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const error = withMethods(toHttpError(given, request), request, reply)
  const status = beginAnswer(error, request, reply)
  if (status === 401 && !reply.hasHeader('www-authenticate')) reply.header('www-authenticate', challengeFor(request))
  if (error.code === 'TH_TOKEN_TWICE') reply.header('www-authenticate', 'Bearer error="invalid_request"')
  if (error.scope !== undefined) {
    reply.header('www-authenticate', `Bearer error="insufficient_scope", scope="${error.scope}"`)
  }
  const found = findingsOf(error)
  const first = mostSpecificFinding(found)
  send(reply, status, {
    success: false,
    message: first ? `${first.path} ${first.message}` : sentenceOf(error),
    code: found ? 'TH_INVALID_INPUT' : codeOf(error),
    errors: found ?? (isGatewayError(error) ? error.errors : undefined)
  })
}

/**
 * Sends an error in the format of the routes for OpenAPI documents and tool calls over plain HTTP: `{success: false,
 * error, message}`. `error` is the code.
 */
export function sendPlainHttpError (given: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const error = toHttpError(given, request)
  const status = beginAnswer(error, request, reply)
  const found = mostSpecificFinding(findingsOf(error))
  send(reply, status, found
    ? { success: false, error: 'TH_INVALID_INPUT', message: `${found.path} ${found.message}` }
    : { success: false, error: codeOf(error), message: sentenceOf(error) })
}

/**
 * Sends an error in the format of the MCP routes: a JSON-RPC error with a null id; for the status 401, the OAuth format
 * (RFC 6750, section 3).
 */
export function sendRpcError (given: FastifyError | RpcError, request: FastifyRequest, reply: FastifyReply): void {
  reply.type('application/json')
  if (given instanceof RpcError) {
    void reply.code(400).send(errorResponseText('null', given.toText()))
    return
  }
  const error = toHttpError(given, request)
  const status = beginAnswer(error, request, reply)
  if (status === 401) {
    if (!reply.hasHeader('www-authenticate')) reply.header('www-authenticate', 'Bearer')
    send(reply, 401, { error: 'invalid_token', error_description: error.message })
    return
  }
  const number = rpcCodes[error.code ?? ''] ?? (status >= 500 ? rpcCode.internal : rpcCode.badRequest)
  void reply.code(status).send(errorResponseText('null', new RpcError(number, sentenceOf(error)).toText()))
}

/** OAuth error codes by HTTP status, for errors that are not an `OAuthError`. */
const oauthCodes: Readonly<Record<number, string>> = {
  401: 'invalid_token',
  403: 'access_denied',
  404: 'not_found',
  429: 'temporarily_unavailable',
  503: 'temporarily_unavailable'
}

/** Sends an error in the format of the authorization server: `{error, error_description}` (RFC 6749, section 5.2). */
export function sendOAuthError (given: FastifyError | OAuthError, request: FastifyRequest, reply: FastifyReply): void {
  const error = toHttpError(given, request)
  const status = beginAnswer(error, request, reply)
  const isOAuthError = given instanceof OAuthError
  const code = isOAuthError ? given.code : oauthCodes[status] ?? (status >= 500 ? 'server_error' : 'invalid_request')
  // Without credentials, the challenge contains no error (RFC 6750, section 3.1).
  if (status === 401) {
    reply.header('www-authenticate', request.headers.authorization === undefined ? 'Bearer' : `Bearer error="${code}"`)
  }
  reply.header('cache-control', 'no-store')
  send(reply, status, { error: code, error_description: isOAuthError ? given.message : sentenceOf(error) })
}

function send (reply: FastifyReply, status: number, body: object): void {
  void reply.code(status).type('application/json').send(JSON.stringify(body))
}

/** Converts an error to what a page shows. Logs a fault of the gateway, and sets `Retry-After`. */
export function preparePageError (given: FastifyError, request: FastifyRequest, reply: FastifyReply): PageError {
  const error = toHttpError(given, request)
  const status = beginAnswer(error, request, reply)
  const found = mostSpecificFinding(findingsOf(error))
  return { status, text: `${found ? `${found.path} ${found.message}` : sentenceOf(error)}.`, code: codeOf(error) }
}

interface PageError { readonly status: number, readonly text: string, readonly code: string }

/** Creates an error handler that sends an HTML page with the message of the error. */
export const pageErrorHandler = (pages: Pages, title: string) =>
  (given: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    const { status, text } = preparePageError(given, request, reply)
    const { headers, html } = pages.problem({ title, text, status })
    void reply.code(status).headers(headers).send(html)
  }

/** The title of the authorization server's error pages. */
export const oauthErrorTitle = 'This request cannot be answered'

/**
 * Creates the error handler of the authorization server's pages. It replaces NotFound by OAuthOff: the pages have no
 * routes while the authorization server is off.
 */
export const oauthPageErrorHandler = (pages: Pages): ReturnType<typeof pageErrorHandler> => {
  const show = pageErrorHandler(pages, oauthErrorTitle)
  return (error, request, reply) => {
    show(error.code === 'TH_NOT_FOUND' ? new errors.OAuthOff() : error, request, reply)
  }
}

/** Creates the error handler for paths without a route. It uses the error format of routes with similar paths. */
export function errorHandlerByPath (basePath: string): typeof sendEnvelopeError {
  const isOAuth = (path: string): boolean => path.startsWith(`${basePath}/oauth/`)
  const isMcp = (path: string): boolean =>
    path.startsWith(`${basePath}/`) &&
      /^\/(?:messages$|(?:api\/|[^/]+\/)?(?:mcp|sse)(?:\/|$))/.test(path.slice(basePath.length))
  // The paths of the scope `open`. `/api/tools/call/:server` belongs to the management API.
  const isOpen = (path: string): boolean =>
    path.startsWith(`${basePath}/`) &&
    /^\/api\/(?:(?:[^/]+\/)?(?:openapi\.(?:json|yaml)|tools\/(?!call\/)[^/]+\/[^/]+)|openapi\/(?:servers|stats))\/?$/
      .test(path.slice(basePath.length))
  return (error, request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const format = isMcp(path)
      ? sendRpcError
      : isOAuth(path) ? sendOAuthError : isOpen(path) ? sendPlainHttpError : sendEnvelopeError
    format(error, request, reply)
  }
}

const joinInWords = (methods: readonly string[]): string => methods.join(', ').replace(/, ([^,]*)$/, ' and $1')

/** Sets the error handlers of the main app and the annexes, for routes outside the scopes that set their own. */
export default fp(async (app) => {
  const format = errorHandlerByPath(app.config.basePath)
  const notFound = (request: FastifyRequest, reply: FastifyReply): void => {
    const methods = app.methodsAt(request.url.split('?', 1)[0] ?? '')
    // A path with a wildcard, such as that of static files, allows the method even where there is nothing.
    const isOtherMethod = methods.length > 0 && !methods.includes(request.method)
    format(isOtherMethod ? notAllowed(methods, reply) : new errors.NotFound(), request, reply)
  }
  await app.annexes.onEveryApp(app, (each) => {
    // If Fastify cannot read a body, it sets `Connection: close`. A client that is still sending would then get a reset
    // instead of the response.
    each.addHook('onError', async (_request, reply) => { reply.removeHeader('connection') })
    if (each !== app) each.setErrorHandler(sendEnvelopeError).setNotFoundHandler(notFound)
  })
  // If a hook rejects a request for an annex, the annex rejects it again, in the error format of its route.
  app.setErrorHandler((error: FastifyError, request, reply) =>
    (request.is404 ? app.annexes.handOver(request, reply) : undefined) ?? sendEnvelopeError(error, request, reply))
  app.setNotFoundHandler((request, reply) => app.annexes.handOver(request, reply) ?? notFound(request, reply))
}, { name: 'errors', dependencies: ['config'] })
