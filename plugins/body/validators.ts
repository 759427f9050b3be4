import { Ajv, type ValidateFunction } from 'ajv'
import type { FastifySchemaCompiler } from 'fastify'
import { limits } from '../limits/index.ts'

// A body says what it means: nothing is guessed from another type. Paths and queries are text, and are converted.
const first = new Ajv({ strict: false })
const every = new Ajv({ allErrors: true, strict: false })
const text = new Ajv({ strict: false, coerceTypes: true })

/**
 * What routes check their input by. All that is wrong with a body is told, or of a large one the first thing: a million wrong elements
 * would be a million findings.
 */
export const compileValidator: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  if (httpPart !== 'body') return text.compile(schema)
  const check = first.compile(schema)
  let tell: ValidateFunction | undefined
  return (body: unknown) => {
    if (check(body)) return true
    if (countOf(body, limits.findingValues) > limits.findingValues) return { error: check.errors ?? [] }
    tell ??= every.compile(schema)
    tell(body)
    return { error: tell.errors ?? [] }
  }
}

/** How many values there are in a JSON value, counted until there are more than `most`. */
function countOf (value: unknown, most: number): number {
  let count = 1
  if (typeof value !== 'object' || value === null) return count
  for (const each of Object.values(value)) {
    if (count > most) break
    count += countOf(each, most - count)
  }
  return count
}
