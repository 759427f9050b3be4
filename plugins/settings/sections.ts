import type { Static, TObject } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

/**
 * Returns a section of the system settings with the defaults of its schema. A stored member of a wrong type, which
 * other programs may have written, is replaced by its default. A member that the schema does not have is dropped.
 * @param others defaults that the schema does not state
 */
export function withDefaults<Schema extends TObject> (
  schema: Schema, stored: object = {}, others: object = {}
): Static<Schema> {
  const valid = Object.entries(stored).filter(([name, value]) => {
    const member = schema.properties[name]
    return member !== undefined && Value.Check(member, value)
  })
  return Value.Default(schema, { ...others, ...Object.fromEntries(valid) }) as Static<Schema>
}
