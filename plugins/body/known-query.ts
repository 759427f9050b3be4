import type { TObject } from '@sinclair/typebox'
import type { preValidationHookHandler } from 'fastify'
import { errors } from '../errors/list.ts'

/** Any query of the management API may hold the token of a login (DECISIONS §3), and `_`, by which browsers get round a cache. */
const always = ['token', '_']

/**
 * Refuses a query with a parameter that the route does not know: a misspelt filter would select everything.
 * @param schema the query of the route; undefined: it has no parameters
 */
export function knownQuery (schema?: TObject): preValidationHookHandler {
  const known = Object.keys(schema?.properties ?? {})
  const verb = known.length > 1 ? 'are' : 'is'
  const all = `there ${verb} ${known.map((name) => `"${name}"`).join(', ') || 'none'}`
  return ({ query }, _reply, done) => {
    const unknown = Object.keys(query as object).find((name) => !always.includes(name) && !known.includes(name))
    const sentence = `The parameter ${JSON.stringify(unknown?.slice(0, 100))} is not known; ${all}`
    done(unknown === undefined ? undefined : new errors.InvalidInput(sentence))
  }
}
