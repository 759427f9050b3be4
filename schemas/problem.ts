import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

/** The first violation of a schema: its path, and a message about what is expected. Undefined: the value is valid. */
export function problemOf (schema: TSchema, value: unknown): { path: string, message: string } | undefined {
  const error = Value.Errors(schema, value).First()
  if (!error) return undefined
  const choices: unknown = error.schema.enum
  return {
    path: error.path.slice(1).replaceAll('/', '.'),
    message: Array.isArray(choices)
      ? `expected one of ${choices.join(', ')}`
      : `${error.message.charAt(0).toLowerCase()}${error.message.slice(1)}`
  }
}
