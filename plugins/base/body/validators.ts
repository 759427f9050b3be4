import type { Ajv, Options, ValidateFunction } from 'ajv'
import type { FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'
import { loadPackage } from '../../../package.ts'
import { baseLimits } from '../limits/index.ts'
import { countValues } from './values.ts'

/** Returns a function that creates an Ajv instance on its first call, and then always returns it. */
const lazyAjv = (options: Options): () => Ajv => {
  let made: Ajv | undefined
  return () => {
    made ??= new (loadPackage('ajv').Ajv)({ strict: false, ...options })
    return made
  }
}

// Values in bodies are not coerced to other types. Values in paths, queries and headers are, since they arrive as text.
// With `verbose`, errors contain the schema, from which `plugins/base/errors/findings.ts` lists the known members.
const firstErrorAjv = lazyAjv({ verbose: true })
const allErrorsAjv = lazyAjv({ allErrors: true, verbose: true })
const coercingAjv = lazyAjv({ coerceTypes: true })
const coercingAndDroppingAjv = lazyAjv({ coerceTypes: true, removeAdditional: 'all' })

/**
 * The validator compiler of all routes. It reports all errors of a body, but only the first error if the body has more
 * than `baseLimits.findingValues` values: a million wrong elements would be a million errors. Schemas are compiled on
 * first use, since compiling all of them would delay the start. From a query, it removes the parameters that the route
 * does not declare, such as a login token.
 */
export const compileValidator: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  let check: ValidateFunction | undefined
  if (httpPart !== 'body') {
    return (value: unknown) => {
      check ??= (httpPart === 'querystring' ? coercingAndDroppingAjv() : coercingAjv()).compile(schema)
      return check(value) || { error: check.errors ?? [] }
    }
  }
  let checkAll: ValidateFunction | undefined
  return (body: unknown) => {
    check ??= firstErrorAjv().compile(schema)
    if (check(body)) return true
    if (countValues(body, baseLimits.findingValues) > baseLimits.findingValues) return { error: check.errors ?? [] }
    checkAll ??= allErrorsAjv().compile(schema)
    checkAll(body)
    return { error: checkAll.errors ?? [] }
  }
}

/** The serializer compiler of all routes. Schemas are compiled on first use, as in `compileValidator`. */
export const compileSerializer: FastifySerializerCompiler<object> = ({ schema }) => {
  let write: ((value: unknown) => string) | undefined
  return (value: unknown) => {
    write ??= loadPackage('fast-json-stringify')(schema) as (value: unknown) => string
    return write(value)
  }
}
