import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { code, RpcError } from '../../protocol/errors.ts'
import { errorText } from '../../protocol/message.ts'
import { errors } from './list.ts'

/** The JSON-RPC code that goes with an HTTP error on the MCP routes; what is not listed is -32000. */
const rpcCodes: Readonly<Record<string, number>> = {
  TH_SESSION_UNKNOWN: code.unavailable,
  TH_UNKNOWN_ROUTE: code.unavailable,
  TH_INVALID_UTF8: code.parse,
  TH_BUSY: code.unavailable
}

const statusOf = (error: FastifyError): number =>
  error.validation ? 400 : error.statusCode !== undefined && error.statusCode >= 400 ? error.statusCode : 500

/** Fastify's word for a body that is of no type we take tells less than ours. */
const ours = <Failure extends FastifyError>(error: Failure): Failure | FastifyError =>
  error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? new errors.UnsupportedMediaType() : error

/** What may be told of an error: our own sentences, and Fastify's about the request; never what broke inside. */
const messageOf = (error: FastifyError): string =>
  error.code === 'FST_ERR_BAD_URL'
    ? 'The path is not valid: percent-encode it as UTF-8'
    : statusOf(error) >= 500 && !error.code?.startsWith('TH_')
      ? 'Internal error'
      : error.message

/** One thing that a schema found; `isChoice`: that the value is none of several forms, each of which has findings of its own. */
interface Finding { path: string, message: string, isChoice: boolean }

const found = ({ validation = [], validationContext = 'body' }: FastifyError): Finding[] =>
  validation.map(({ keyword, instancePath, message = 'is not valid', params }) => {
    const { missingProperty, additionalProperty, allowedValues, allowedValue } = params as {
      missingProperty?: string
      additionalProperty?: string
      allowedValues?: unknown[]
      allowedValue?: unknown
    }
    const name = missingProperty ?? additionalProperty
    return {
      path: [validationContext, ...instancePath.split('/').slice(1), ...(name === undefined ? [] : [name])].join('.'),
      message:
        missingProperty !== undefined
          ? 'is required'
          : additionalProperty !== undefined
            ? 'is not known'
            : allowedValues
              ? `must be one of ${allowedValues.join(', ')}`
              : keyword === 'const'
                ? `must be ${JSON.stringify(allowedValue)}`
                : message,
      isChoice: keyword === 'anyOf'
    }
  })

/** What a schema found, as DECISIONS §1 says it: `{path, message}` for each; what a value may be instead, in one. */
function findings (error: FastifyError): Array<{ path: string, message: string }> | undefined {
  if (!error.validation) return undefined
  const all = found(error)
  const choices = new Set(all.filter(({ isChoice }) => isChoice).map(({ path }) => path))
  return all
    .filter(({ path, isChoice }, at) => !isChoice && (!choices.has(path) || all.findIndex((each) => each.path === path) === at))
    .map(({ path, message }) => ({
      path,
      message: choices.has(path)
        ? [...new Set(all.filter((each) => each.path === path && !each.isChoice).map((each) => each.message))]
            .join(' or ')
            .replaceAll(' or must be ', ' or ')
        : message
    }))
}

/** Of several findings the one that says most: of what may be this or that, the form that it nearly has. */
const telling = (found: ReturnType<typeof findings>): { path: string, message: string } | undefined =>
  found?.reduce((most, each) => each.path.split('.').length > most.path.split('.').length ? each : most)

/** The dialect of the management API and the public routes: `{success: false, message, code, errors?}`. */
export function envelope (given: FastifyError & { errors?: readonly string[] }, request: FastifyRequest, reply: FastifyReply): void {
  const error: typeof given = ours(given)
  const status = statusOf(error)
  if (status >= 500 && !error.code?.startsWith('TH_')) request.log.error({ err: error }, 'a request failed')
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  if (status === 503 || status === 507) reply.header('retry-after', '5')
  if (status === 429) reply.header('retry-after', /(\d+) s$/.exec(error.message)?.[1] ?? '60')
  const found = findings(error)
  const told = telling(found)
  const message = told ? `${told.path} ${told.message}` : messageOf(error)
  void reply
    .code(status)
    .type('application/json')
    .send(
      JSON.stringify({
        success: false,
        message,
        code: found ? 'TH_INVALID_INPUT' : error.code,
        errors: found ?? (error.code?.startsWith('TH_') ? error.errors : undefined)
      })
    )
}

/** The dialect of OpenAPI documents and of tools over plain HTTP: `{success: false, error, message}`; `error` is the code. */
export function toolError (given: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const error = ours(given)
  const status = statusOf(error)
  if (status >= 500 && !error.code?.startsWith('TH_')) request.log.error({ err: error }, 'a request failed')
  if (status === 503) reply.header('retry-after', '5')
  const found = telling(findings(error))
  const told = found
    ? { error: 'TH_INVALID_INPUT', message: `${found.path} ${found.message}` }
    : { error: error.code ?? 'TH_FAILED', message: messageOf(error) }
  void reply.code(status).type('application/json').send(JSON.stringify({ success: false, ...told }))
}

/** The dialect of the MCP routes: JSON-RPC errors without an id; 401 as OAuth says it (RFC 6750 §3). */
export function jsonRpc (given: FastifyError | RpcError, request: FastifyRequest, reply: FastifyReply): void {
  reply.type('application/json')
  if (given instanceof RpcError) {
    void reply.code(400).send(errorText('null', given.toText()))
    return
  }
  const error = ours(given)
  const status = statusOf(error)
  if (status >= 500 && !error.code?.startsWith('TH_')) request.log.error({ err: error }, 'an MCP request failed')
  if (status === 401) {
    void reply
      .code(401)
      .header('www-authenticate', 'Bearer')
      .send(JSON.stringify({ error: 'invalid_token', error_description: error.message }))
    return
  }
  const number = rpcCodes[error.code ?? ''] ?? (status >= 500 ? code.internal : code.badRequest)
  void reply.code(status).send(errorText('null', new RpcError(number, messageOf(error)).toText()))
}

/** The dialect of a path that leads to no route: that of its neighbours. */
export function byPath (basePath: string): typeof envelope {
  const isMcp = (path: string): boolean =>
    path.startsWith(`${basePath}/`) && /^\/(?:api\/|[^/]+\/)?mcp(?:\/|$)/.test(path.slice(basePath.length))
  return (error, request, reply) => { (isMcp(request.url.split('?', 1)[0] ?? '') ? jsonRpc : envelope)(error, request, reply) }
}

/** The root's handlers, for everything that stands in no scope with a dialect of its own. */
export default fp<{ basePath: string }>(async (app, { basePath }) => {
  const dialect = byPath(basePath)
  app.setErrorHandler(envelope)
  app.setNotFoundHandler((request, reply) => { dialect(new errors.NotFound(), request, reply) })
}, { name: 'errors' })
