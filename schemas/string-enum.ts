import { Kind, Type, TypeRegistry } from '@sinclair/typebox'

interface Options<Value> { default?: Value, description?: string }

TypeRegistry.Set<{ enum: string[] }>('StringEnum', (schema, value) => typeof value === 'string' && schema.enum.includes(value))

/** A string of a closed set, as one schema: a union of literals gives unreadable errors. */
export const StringEnum = <const Values extends string[]>(values: Values, options: Options<Values[number]> = {}) =>
  Type.Unsafe<Values[number]>({ [Kind]: 'StringEnum', type: 'string', enum: values, ...options })
