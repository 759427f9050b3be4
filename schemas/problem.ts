import type { TSchema } from '@sinclair/typebox'
import { Value, ValueErrorType, type ValueError } from '@sinclair/typebox/value'

/** A violation of a schema. `path`: member names separated by dots. */
export interface SchemaProblem { readonly path: string, readonly message: string }

/** Returns the first violation of a schema, with a message about what is expected; undefined if the value is valid. */
export function firstSchemaProblem (schema: TSchema, value: unknown): SchemaProblem | undefined {
  return schemaProblems(schema, value, 1)[0]
}

/** Returns the violations of a schema, at most `max`, and only the first one for each path. */
export function schemaProblems (schema: TSchema, value: unknown, max = 20): SchemaProblem[] {
  const found = new Map<string, SchemaProblem>()
  for (const error of Value.Errors(schema, value)) {
    const path = error.path.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
    if (!found.has(path)) found.set(path, { path, message: messageOf(error) })
    if (found.size >= max) break
  }
  return [...found.values()]
}

/**
 * Returns the message about a violation. For a missing member or an unmatched pattern, it contains the schema's
 * description.
 */
function messageOf ({ schema, type, message }: ValueError): string {
  const choices: unknown = schema.enum
  if (Array.isArray(choices)) return `expected one of ${choices.join(', ')}`
  if (schema.description !== undefined) {
    if (type === ValueErrorType.StringPattern) return `expected ${asClause(schema.description)}`
    if (type === ValueErrorType.ObjectRequiredProperty) {
      return `expected required property: ${asClause(schema.description)}`
    }
  }
  return asClause(message)
}

/** Converts a sentence to a clause: its first letter becomes lower case, unless it is part of an abbreviation. */
const asClause = (sentence: string): string => sentence.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase())
