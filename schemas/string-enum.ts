import { Kind, Type, TypeRegistry } from '@sinclair/typebox'

interface Options<Value> { default?: Value, title?: string, description?: string }

TypeRegistry.Set<{ enum: string[] }>('StringEnum', (schema, value) =>
  typeof value === 'string' && schema.enum.includes(value))

/** Creates a schema for one of several strings. Unlike a union of literals, it gives readable errors. */
export const StringEnum = <const Values extends string[]>(values: Values, options: Options<Values[number]> = {}) =>
  Type.Unsafe<Values[number]>({ [Kind]: 'StringEnum', type: 'string', enum: values, ...options })
