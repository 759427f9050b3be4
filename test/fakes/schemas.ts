import fc from 'fast-check'
import type { Json } from '../helpers/client.ts'

// JSON Schemas as nobody writes them, values that may fit them, and a way to read what OpenAPI 3.0.3 says with a validator of draft 7.

const names = fc.constantFrom('a', 'b', 'c')
const small = fc.integer({ min: -2, max: 3 })
const count = fc.integer({ min: 0, max: 3 })
const scalar = fc.oneof(small, fc.constantFrom<unknown>(0.5, 'a', 'ab', 'abc', '', true, false, null))

/** JSON values of few kinds, so that a schema of the kinds below has a chance. */
export const samples = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof({ depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(names, tie('value'), { maxKeys: 3, noNullPrototype: true }))
})).value

const types = fc.constantFrom('string', 'number', 'integer', 'boolean', 'array', 'object', 'null')

/** Schemas of 2020-12 with every keyword that OpenAPI has other words for, or none. */
export const schemas: fc.Arbitrary<unknown> = fc
  .letrec<{ schema: unknown }>((tie) => {
    const schema = tie('schema')
    const some = fc.array(schema, { minLength: 1, maxLength: 3 })
    const one = (keyword: string, value: fc.Arbitrary<unknown>): fc.Arbitrary<Json> => value.map((each) => ({ [keyword]: each }))
    const keywords = fc.oneof(
      one('type', fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 4 }))),
      one('enum', fc.uniqueArray(scalar, { minLength: 1, maxLength: 4 })),
      one('const', scalar),
      one('minimum', small),
      one('maximum', small),
      one('exclusiveMinimum', small),
      one('exclusiveMaximum', small),
      one('multipleOf', fc.constantFrom(0.5, 1, 2)),
      one('minLength', count),
      one('maxLength', count),
      one('pattern', fc.constantFrom('^a', 'b$', '^.?$')),
      one('minItems', count),
      one('maxItems', count),
      one('uniqueItems', fc.boolean()),
      one('items', schema),
      one('prefixItems', some),
      one('contains', schema),
      one('properties', fc.dictionary(names, schema, { maxKeys: 3 })),
      one('required', fc.uniqueArray(names, { maxLength: 2 })),
      one('additionalProperties', schema),
      one('patternProperties', fc.dictionary(fc.constantFrom('a', '^b', '.'), schema, { maxKeys: 2 })),
      one('propertyNames', schema),
      one('minProperties', count),
      one('maxProperties', count),
      one('dependentRequired', fc.constant({ a: ['b'] })),
      one('unevaluatedProperties', schema),
      one('allOf', some),
      one('anyOf', some),
      one('oneOf', some),
      one('not', schema),
      fc.record({ if: schema, then: schema, else: schema }, { requiredKeys: ['if'] }),
      one('$ref', fc.constantFrom('#/$defs/one', '#/$defs/two')),
      one('description', fc.constant('something')),
      one('default', scalar)
    )
    return {
      schema: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc.constantFrom<unknown>(true, false, { type: 'string' }, { type: 'null' }, { type: 'integer' }, { type: 'object' }),
        fc.array(keywords, { minLength: 1, maxLength: 4 }).map((parts) => Object.assign({}, ...parts) as Json)
      )
    }
  })
  .schema.chain((schema) =>
    fc
      .record({
        one: definition(schema),
        two: fc.constantFrom<unknown>(
          { type: ['object', 'null'], properties: { a: { $ref: '#/$defs/two' }, b: { $ref: '#/$defs/one' } } },
          { enum: ['a', 'ab'] }
        )
      })
      .map(($defs) => (typeof schema === 'object' && schema !== null ? { ...schema, $defs } : { allOf: [schema], $defs }))
  )

/** What is referred to: no reference of its own without an object around it, since a validator would follow it forever. */
const definition = (schema: unknown): fc.Arbitrary<unknown> =>
  fc.constantFrom<unknown>(
    { type: 'array', items: schema },
    { properties: { a: schema, c: { $ref: '#/$defs/one' } } },
    { type: 'integer' },
    { anyOf: [{ type: 'string' }, { type: 'null' }] },
    { oneOf: [{ type: 'object', properties: { b: { $ref: '#/$defs/one' } } }, { type: 'null' }] }
  )

/**
 * OpenAPI 3.0.3 for a validator of draft 7 that knows `nullable`: there bounds that exclude are numbers of their own, and a reference
 * stands alone.
 */
export function as30 (schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(as30)
  if (typeof schema !== 'object' || schema === null) return schema
  const { enum: values, default: _, example: __, ...rest } = schema as Json
  const out: Json = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, as30(value)]))
  if (values !== undefined) out.enum = values
  for (const [flag, bound] of [['exclusiveMinimum', 'minimum'], ['exclusiveMaximum', 'maximum']] as const) {
    if (out[flag] !== true) continue
    out[flag] = out[bound]
    delete out[bound]
  }
  return out
}
