import type { TObject } from '@sinclair/typebox'
import type { onRequestHookHandler, preValidationHookHandler, RouteOptions } from 'fastify'
import { closestMember, quoteName } from '../../../schemas/unknown-members.ts'
import { errors } from '../errors/index.ts'
import { baseLimits } from '../limits/index.ts'

/** Rejects a query whose percent-encoding is not valid UTF-8: Fastify would treat its escapes as literal text. */
export const checkQueryEncoding: preValidationHookHandler = (request, _reply, done) => {
  const { url, is404 } = request
  const at = url.indexOf('?')
  if (at >= 0 && !is404 && url.includes('%', at)) {
    try {
      decodeURIComponent(url.slice(at))
    } catch {
      done(new errors.InvalidInput('The query is not valid: percent-encode it as UTF-8'))
      return
    }
  }
  done()
}

/** Rejects a query with more than `baseLimits.parameters` parameters, before a hook, route or library parses it. */
export const limitQueryParameters: onRequestHookHandler = ({ url }, reply, done) => {
  // Parameters are counted in the whole URL, since the router and the routes that parse the URL themselves disagree on
  // where the query starts.
  if (!hasTooMany(url)) {
    done()
    return
  }
  // The hook that sets this header on all responses runs later.
  reply.header('x-content-type-options', 'nosniff')
  done(tooManyError('query'))
}

/**
 * Checks that a form (application/x-www-form-urlencoded) has at most `baseLimits.parameters` fields.
 * @returns the same text
 * @throws InvalidInput
 */
export function limitFormFields (text: string): string {
  if (hasTooMany(text)) throw tooManyError('form')
  return text
}

/** Whether a text has more than `baseLimits.parameters` parameters separated by `&`. */
function hasTooMany (text: string): boolean {
  let left = baseLimits.parameters
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1)) if (--left <= 0) return true
  return false
}

const tooManyError = (what: string): Error =>
  new errors.InvalidInput(`The ${what} has more than ${baseLimits.parameters} parameters`)

/**
 * Query parameters that all management API routes accept: a login token, and `_`, which scripts add to bypass caches.
 */
const universalParameters = ['token', '_']

/**
 * An `onRoute` hook that makes routes reject unknown query parameters: a misspelt filter, if ignored, would select
 * everything. Routes with the effect `run` accept any parameter.
 */
export function refuseUnknownQuery (route: RouteOptions): void {
  if (route.config?.effect === 'run') return
  const own = route.preValidation === undefined ? [] : [route.preValidation].flat()
  route.preValidation = [requireKnownQuery(route.schema?.querystring as TObject | undefined), ...own]
}

/**
 * Creates a hook that rejects query parameters that a schema does not declare.
 * @param schema the schema of the query; undefined for a route without parameters
 */
function requireKnownQuery (schema?: TObject): preValidationHookHandler {
  const known = Object.keys(schema?.properties ?? {})
  const verb = known.length > 1 ? 'are' : 'is'
  const all = `there ${verb} ${known.map((name) => `"${name}"`).join(', ') || 'none'}`
  return ({ query }, _reply, done) => {
    const unknown = Object.keys(query as object).find((name) =>
      !universalParameters.includes(name) && !known.includes(name))
    if (unknown === undefined) {
      done()
      return
    }
    const meant = closestMember(unknown, known)
    const hint = meant === undefined ? all : `did you mean ${quoteName(meant)}?`
    done(new errors.InvalidInput(`The parameter ${quoteName(unknown)} is not known; ${hint}`))
  }
}
