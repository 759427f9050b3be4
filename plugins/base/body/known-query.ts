import type { TObject } from '@sinclair/typebox'
import type { preValidationHookHandler, RouteOptions } from 'fastify'
import { meantBy, quoteName } from '../../../schemas/unknown-members.ts'
import { errors } from '../errors/index.ts'

/** Any query of the management API may hold the token of a login (DECISIONS §3), and `_`, by which browsers get round a cache. */
const always = ['token', '_']

/**
 * An `onRoute` hook: routes refuse a query with a parameter that they do not know, since a misspelt filter would select everything. What
 * runs tools and prompts takes any.
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
    const unknown = Object.keys(query as object).find((name) => !always.includes(name) && !known.includes(name))
    if (unknown === undefined) {
      done()
      return
    }
    const meant = meantBy(unknown, known)
    const hint = meant === undefined ? all : `did you mean ${quoteName(meant)}?`
    done(new errors.InvalidInput(`The parameter ${quoteName(unknown)} is not known; ${hint}`))
  }
}
