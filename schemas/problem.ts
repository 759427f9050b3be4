import type { TSchema } from '@sinclair/typebox'
import { Value, ValueErrorType, type ValueError } from '@sinclair/typebox/value'

/** The first violation of a schema: its path, and a message about what is expected; undefined if the value is valid. */
export function firstSchemaProblem (schema: TSchema, value: unknown): { path: string, message: string } | undefined {
  const error = Value.Errors(schema, value).First()
  return error && { path: error.path.slice(1).replaceAll('/', '.'), message: messageOf(error) }
}

/** For a member that is missing or does not match its pattern, its description serves as the message. */
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

/** Converts a sentence to a clause: its first letter becomes lower case, unless it begins an abbreviation. */
const asClause = (sentence: string): string => sentence.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase())
