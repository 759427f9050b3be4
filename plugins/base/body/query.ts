import type { TObject } from '@sinclair/typebox'
import type { onRequestHookHandler, preValidationHookHandler, RouteOptions } from 'fastify'
import { meantBy, quoteName } from '../../../schemas/unknown-members.ts'
import { errors } from '../errors/index.ts'
import { baseLimits } from '../limits/index.ts'

/** Refuses a query whose percent-encoding is not valid UTF-8: Fastify would pass the escapes on as literal text. */
export const checkQuery: preValidationHookHandler = (request, _reply, done) => {
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

/** Refuses a query of too many parameters, before any other hook, route or library reads them. */
export const boundQuery: onRequestHookHandler = ({ url }, reply, done) => {
  // The address as a whole: where its query begins is told differently by the router and by routes that read it
  // themselves.
  if (!hasTooMany(url)) {
    done()
    return
  }
  // The hooks that add such headers do not run.
  reply.header('x-content-type-options', 'nosniff')
  done(tooMany('query'))
}

/**
 * Refuses a form of too many fields.
 * @param text application/x-www-form-urlencoded
 * @returns the same text
 * @throws InvalidInput
 */
export function boundForm (text: string): string {
  if (hasTooMany(text)) throw tooMany('form')
  return text
}

/** Whether a text separates more than `baseLimits.parameters` parameters. */
function hasTooMany (text: string): boolean {
  let left = baseLimits.parameters
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1)) if (--left <= 0) return true
  return false
}

const tooMany = (what: string): Error =>
  new errors.InvalidInput(`The ${what} has more than ${baseLimits.parameters} parameters`)

/** Any query of the management API may hold the token of a login, and `_`, by which browsers bypass a cache. */
const alwaysKnown = ['token', '_']

/**
 * An `onRoute` hook: routes refuse a query with a parameter that they do not know, since a misspelt filter would select
 * everything. What runs tools and prompts takes any.
 */
export function refuseUnknownQuery (route: RouteOptions): void {
  if (route.config?.effect === 'run') return
  const own = route.preValidation === undefined ? [] : [route.preValidation].flat()
  route.preValidation = [knownQuery(route.schema?.querystring as TObject | undefined), ...own]
}

/** @param schema the query of the route; undefined: it has no parameters */
function knownQuery (schema?: TObject): preValidationHookHandler {
  const known = Object.keys(schema?.properties ?? {})
  const verb = known.length > 1 ? 'are' : 'is'
  const all = `there ${verb} ${known.map((name) => `"${name}"`).join(', ') || 'none'}`
  return ({ query }, _reply, done) => {
    const unknown = Object.keys(query as object).find((name) => !alwaysKnown.includes(name) && !known.includes(name))
    if (unknown === undefined) {
      done()
      return
    }
    const meant = meantBy(unknown, known)
    const hint = meant === undefined ? all : `did you mean ${quoteName(meant)}?`
    done(new errors.InvalidInput(`The parameter ${quoteName(unknown)} is not known; ${hint}`))
  }
}
