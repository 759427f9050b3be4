import { Ajv, type ValidateFunction } from 'ajv'
import type { FastifySchemaCompiler } from 'fastify'
import { countValues } from './values.ts'
import fastJson from 'fast-json-stringify'
import type { FastifySerializerCompiler } from 'fastify'
import { baseLimits } from '../limits/index.ts'

// Values in bodies are not coerced to other types; those in paths and queries are, since they are text. `verbose`: the
// error for an unknown member tells the known ones (`plugins/base/errors/findings.ts`).
const firstError = new Ajv({ strict: false, verbose: true })
const allErrors = new Ajv({ allErrors: true, strict: false, verbose: true })
const coercing = new Ajv({ strict: false, coerceTypes: true })
const droppingUnknown = new Ajv({ strict: false, coerceTypes: true, removeAdditional: 'all' })

/**
 * The validator compiler of all routes. It reports all errors of a body, but only the first error of a body with more
 * than `baseLimits.findingValues` values: a million wrong elements would be a million errors. Schemas are compiled at
 * first use: compiling all of them takes a tenth of the start-up time.
 * Parameters that the route does not declare are removed from the query: one of them may be the token of a login.
 */
export const compileValidator: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  let check: ValidateFunction | undefined
  if (httpPart !== 'body') {
    return (value: unknown) => {
      check ??= (httpPart === 'querystring' ? droppingUnknown : coercing).compile(schema)
      return check(value) || { error: check.errors ?? [] }
    }
  }
  let checkAll: ValidateFunction | undefined
  return (body: unknown) => {
    check ??= firstError.compile(schema)
    if (check(body)) return true
    if (countValues(body, baseLimits.findingValues) > baseLimits.findingValues) return { error: check.errors ?? [] }
    checkAll ??= allErrors.compile(schema)
    checkAll(body)
    return { error: checkAll.errors ?? [] }
  }
}

/** The serializer compiler of all routes. Schemas are compiled at first use, as in `compileValidator`. */
export const compileSerializer: FastifySerializerCompiler<object> = ({ schema }) => {
  let write: ((value: unknown) => string) | undefined
  return (value: unknown) => {
    write ??= fastJson(schema) as (value: unknown) => string
    return write(value)
  }
}
