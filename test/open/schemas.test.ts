// JSON Schema in the dialect of OpenAPI 3.0.3, and documents as YAML.
import assert from 'node:assert/strict'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { test } from 'tap'
import { parse } from 'yaml'
import { SchemaTranslator } from '../../plugins/downstream/openapi/translate.ts'
import { toYaml } from '../../plugins/downstream/openapi/yaml.ts'
import { as30, samples, schemas } from '../fakes/schemas.ts'
import { at, type Json } from '../helpers/client.ts'

/** A schema as OpenAPI 3.0.3 says it, with its components. */
function said (schema: unknown): Json {
  const translation = new SchemaTranslator(schema, 's.t')
  const { schema: whole } = translation.translate(schema)
  return translation.components.size === 0 ? whole : { ...whole, components: { schemas: Object.fromEntries(translation.components) } }
}

const options = { strict: false, validateFormats: false, logger: false, addUsedSchema: false } as const

test('what a JSON Schema accepts is accepted as OpenAPI says it', async () => {
  const original = new Ajv2020(options)
  const reader = new Ajv(options)
  let accepted = 0
  let refused = 0
  fc.assert(fc.property(schemas, fc.array(samples, { minLength: 8, maxLength: 8 }), (schema, values) => {
    const translated = said(schema)
    const readable = as30(translated) as Json
    const [before, after] = [original.compile(schema as Json), reader.compile(readable)]
    original.removeSchema(schema as Json)
    reader.removeSchema(readable)
    for (const value of values) {
      let fits: unknown
      // A few combinations of patternProperties are too much for this validator.
      try { fits = before(value) } catch { continue }
      if (fits) {
        accepted++
        assert.ok(after(value), `${JSON.stringify(value)} is refused by ${JSON.stringify(translated)}`)
      } else if (!after(value)) refused++
    }
  }), { numRuns: 500, endOnFailure: true })
  assert.ok(accepted > 500 && refused > 500, `${accepted} accepted, ${refused} refused: the values tell nothing`)
})

test('what each keyword becomes', async () => {
  const table: Array<[unknown, unknown]> = [
    [
      { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }], default: null, title: 'N' },
      { title: 'N', default: null, type: 'integer', minimum: 1, nullable: true }
    ],
    [{ anyOf: [{ enum: ['a', 'b'] }, { type: 'null' }] }, { type: 'string', enum: ['a', 'b', null], nullable: true }],
    [{ type: ['string', 'null'], minLength: 2 }, { type: 'string', nullable: true, minLength: 2 }],
    [{ type: ['string', 'integer', 'null'] }, { anyOf: [{ type: 'string', nullable: true }, { type: 'integer' }] }],
    [{ type: 'null' }, { type: 'string', nullable: true, enum: [null] }],
    [{ const: 'a' }, { type: 'string', enum: ['a'] }],
    [
      { type: 'number', exclusiveMinimum: 0, maximum: 9 },
      { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 9 }
    ],
    [{ type: 'number', exclusiveMaximum: 5, maximum: 3 }, { type: 'number', maximum: 3 }],
    [{ type: 'array' }, { type: 'array', items: {} }],
    [
      { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false },
      { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] }, maxItems: 2 }
    ],
    [
      { type: 'object', patternProperties: { '^x': { type: 'string' } }, additionalProperties: false },
      { type: 'object', additionalProperties: { anyOf: [{ type: 'string' }] } }
    ],
    [{ if: { type: 'string' }, then: { minLength: 1 }, else: { minimum: 1 } }, { anyOf: [{ minLength: 1 }, { minimum: 1 }] }],
    [{ not: { type: 'string' } }, { not: { type: 'string' } }],
    [{ not: { contains: { type: 'string' } } }, {}],
    // What cannot be said must not be forbidden either.
    ...[
      { pattern: '\\-' }, { minLength: '2' }, { enum: [] }, { type: 'strin' }, { multipleOf: 0 },
      { const: 1, enum: [2, 1] }, { required: ['a', 7] }
    ].map((each): [unknown, unknown] => [{ not: each }, {}]),
    [
      { oneOf: [{ type: 'string', pattern: '^\\#' }, { type: 'string', enum: ['red'] }] },
      { anyOf: [{ type: 'string' }, { type: 'string', enum: ['red'] }] }
    ],
    [{ oneOf: [{ type: 'string' }, { type: 'integer' }] }, { oneOf: [{ type: 'string' }, { type: 'integer' }] }],
    [{ oneOf: [{ type: 'string' }, { contains: {} }] }, { anyOf: [{ type: 'string' }, {}] }],
    [
      { type: 'object', properties: { a: true, b: false }, required: ['a', 'a', 7] },
      { type: 'object', properties: { a: {}, b: { not: {} } }, required: ['a'] }
    ],
    [
      { type: 'string', examples: ['x', 'y'], contentEncoding: 'base64', $comment: 'no' },
      { type: 'string', format: 'byte', example: 'x' }
    ],
    [{ type: 'string', contentEncoding: 'base64', format: 'binary' }, { type: 'string', format: 'byte' }],
    // Whatever holds a reference is taken for one, wherever it stands.
    [
      { type: 'object', default: { $ref: '#/x' }, examples: [[{ $ref: 'file:///x' }]], title: 'T' },
      { type: 'object', title: 'T' }
    ],
    [{ type: 'object', enum: [{ a: { $ref: '#/x' } }] }, { type: 'object' }],
    [{ not: { const: { $ref: '#/x' } } }, {}],
    [
      { type: 'object', properties: { $ref: { type: 'string' }, o: { type: 'integer' } }, additionalProperties: false },
      { type: 'object', properties: { o: { type: 'integer' } } }
    ],
    [{ $ref: 'https://elsewhere.example/schema' }, {}],
    [
      { $ref: '#/$defs/kind', description: 'which', $defs: { kind: { enum: ['x', 'y'] } } },
      { description: 'which', type: 'string', enum: ['x', 'y'] }
    ],
    [
      { $ref: '#/definitions/n', minimum: 5, $schema: 'http://json-schema.org/draft-07/schema#', definitions: { n: { type: 'integer' } } },
      { type: 'integer' }
    ],
    [{ $ref: '#/$defs/self', $defs: { self: { $ref: '#/$defs/self' } } }, {}]
  ]
  for (const [schema, expected] of table) assert.deepEqual(said(schema), expected, JSON.stringify(schema))
  const tree = said({
    type: 'object',
    properties: { root: { $ref: '#/$defs/Node' } },
    $defs: { Node: { type: 'object', properties: { next: { $ref: '#/$defs/Node' }, top: { $ref: '#' } } } }
  })
  assert.deepEqual(at(tree, 'properties', 'root'), { $ref: '#/components/schemas/s.t.Node' })
  assert.deepEqual(at(tree, 'components', 'schemas', 's.t.Node', 'properties'), {
    next: { $ref: '#/components/schemas/s.t.Node' },
    top: { $ref: '#/components/schemas/s.t.Arguments' }
  })
})

test('a schema whose parts refer to each other twice over does not double with each level', async () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => [
      `d${n}`,
      { type: 'object', properties: { a: { $ref: `#/$defs/d${n + 1}` }, b: { $ref: `#/$defs/d${n + 1}` } } }
    ])
  )
  const deep = { type: 'object', properties: { a: { $ref: '#/$defs/d0' } }, $defs }
  assert.ok(JSON.stringify(said(deep)).length < 10_000)
  const nested = Array.from({ length: 60 }).reduce<Json>((inner) => ({ type: ['array', 'null'], items: inner }), { type: 'string' })
  assert.ok(JSON.stringify(said(nested)).length < 10_000)
})

test('YAML of numbers that readers of YAML 1.1 take for numbers, too, and of texts that they take for texts', async () => {
  // Their numbers with an exponent have a dot.
  const number = /^of: [-+]?\d+(\.\d*([eE][-+]\d+)?)?$/
  for (const value of [1e21, -1e21, 1e-7, -1.5e-7, 1.25e300, 5e-324, 0, 12, -0.5]) {
    const text = toYaml({ of: value })
    assert.equal(at(parse(text), 'of'), value)
    assert.match(text.trim(), number)
  }
  // Of their other types a text is told by its quotes.
  for (const text of ['yes', '1:20', 'a word']) assert.equal(toYaml({ of: text }), `of: "${text}"\n`)
})

test('YAML of what is deep is not much longer than JSON', async () => {
  const odd = { 'é\u2028 "k"': ['\ud800\u0085', 1e30, null, true, {}, []] }
  const deep = Array.from({ length: 400 }).reduce<Json>(
    (inner, _, n) => (n % 2 === 0 ? { type: 'object', properties: { [`p${n}`]: inner } } : { type: 'array', items: inner }),
    odd
  )
  const yaml = toYaml(deep)
  assert.ok(yaml.length < 3 * JSON.stringify(deep).length, `${yaml.length} characters`)
  assert.deepEqual(parse(yaml), JSON.parse(JSON.stringify(deep).replace('\\ud800', '\ufffd')))
})
