import { Ajv, type ValidateFunction } from 'ajv'
import type { FastifySchemaCompiler } from 'fastify'
import { limits } from '../limits/index.ts'

// Values of bodies are not converted to other types. Those of paths and queries are, since they are text.
const firstError = new Ajv({ strict: false })
const allErrors = new Ajv({ allErrors: true, strict: false })
const coercing = new Ajv({ strict: false, coerceTypes: true })

/**
 * The validator compiler of all routes. It reports all errors of a body, or only the first one of a body with more than
 * `limits.findingValues` values: a million wrong elements would be a million errors.
 */
export const compileValidator: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  if (httpPart !== 'body') return coercing.compile(schema)
  const check = firstError.compile(schema)
  let checkAll: ValidateFunction | undefined
  return (body: unknown) => {
    if (check(body)) return true
    if (countOf(body, limits.findingValues) > limits.findingValues) return { error: check.errors ?? [] }
    checkAll ??= allErrors.compile(schema)
    checkAll(body)
    return { error: checkAll.errors ?? [] }
  }
}

/** The number of values within a JSON value, itself included; the count stops above `max`. */
function countOf (value: unknown, max: number): number {
  let count = 1
  if (typeof value !== 'object' || value === null) return count
  for (const each of Object.values(value)) {
    if (count > max) break
    count += countOf(each, max - count)
  }
  return count
}
