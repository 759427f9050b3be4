import type { Ajv, Options, ValidateFunction } from 'ajv'
import type { FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'
import { latePackage } from '../../../package.ts'
import { baseLimits } from '../limits/index.ts'
import { valuesIn } from './values.ts'

/** A validator that is made by its first use. */
const late = (options: Options): () => Ajv => {
  let made: Ajv | undefined
  return () => {
    made ??= new (latePackage('ajv').Ajv)({ strict: false, ...options })
    return made
  }
}

// Values of bodies are not converted to other types. Those of paths and queries are, since they are text.
// `verbose`: an error about a member that is not known tells which are (`plugins/base/errors/findings.ts`).
const firstError = late({ verbose: true })
const allErrors = late({ allErrors: true, verbose: true })
const coercing = late({ coerceTypes: true })
const selecting = late({ coerceTypes: true, removeAdditional: 'all' })

/**
 * The validator compiler of all routes. It reports all errors of a body, or only the first one of a body with more than
 * `baseLimits.findingValues` values: a million wrong elements would be a million errors. Schemas are compiled at their
 * first use: all of them together would take a tenth of the time that the program takes to start.
 *
 * A query loses the parameters that its route does not declare: one of them may be the token of a login, which is
 * nobody else's business.
 */
export const compileValidator: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  let check: ValidateFunction | undefined
  if (httpPart !== 'body') {
    return (value: unknown) => {
      check ??= (httpPart === 'querystring' ? selecting() : coercing()).compile(schema)
      return check(value) || { error: check.errors ?? [] }
    }
  }
  let checkAll: ValidateFunction | undefined
  return (body: unknown) => {
    check ??= firstError().compile(schema)
    if (check(body)) return true
    if (valuesIn(body, baseLimits.findingValues) > baseLimits.findingValues) return { error: check.errors ?? [] }
    checkAll ??= allErrors().compile(schema)
    checkAll(body)
    return { error: checkAll.errors ?? [] }
  }
}

/**
 * The serializer compiler of all routes, for their answers. Schemas are compiled at their first use, as those of
 * requests are: all of them together would take a tenth of the time that the program takes to start.
 */
export const compileSerializer: FastifySerializerCompiler<object> = ({ schema }) => {
  let write: ((value: unknown) => string) | undefined
  return (value: unknown) => {
    write ??= latePackage('fast-json-stringify')(schema) as (value: unknown) => string
    return write(value)
  }
}
