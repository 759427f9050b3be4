// What becomes of the schemas of an OpenAPI description, and that each tool is valid whatever is wrong with it.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { compileDescription } from '../../plugins/upstream/openapi/describe/compile.ts'
import { checkLimits, parseDocument } from '../../plugins/upstream/openapi/describe/document.ts'
import { DescriptionError } from '../../plugins/upstream/openapi/plan.ts'
import { ok, described, op, openapi, restClient } from '../fakes/rest-client.ts'
import { seed } from '../helpers/json-texts.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'

const ajv = new Ajv2020({ strict: false, validateFormats: false })

test('schemas: what OpenAPI 3.0 says, in JSON Schema 2020-12', async (t) => {
  const conversions: Array<[object, object]> = [
    [{ type: 'string', nullable: true }, { type: ['string', 'null'] }],
    [{ type: 'string', nullable: true, enum: ['a', 'a'] }, { type: ['string', 'null'], enum: ['a', null] }],
    [
      { nullable: true, allOf: [{ $ref: '#/components/schemas/Cat' }], description: 'd' },
      { description: 'd', anyOf: [{ allOf: [{ $ref: '#/$defs/Cat' }] }, { type: 'null' }] }
    ],
    [
      { type: 'integer', minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false, format: 'int64' },
      { format: 'int64', maximum: 5, type: 'integer', exclusiveMinimum: 1 }
    ],
    [
      { type: 'string', example: 'x', xml: { name: 'y' }, externalDocs: { url: 'z' }, discriminator: { propertyName: 'p' }, 'x-own': 1 },
      { type: 'string', examples: ['x'] }
    ],
    [
      { $ref: '#/components/schemas/Cat', description: 'mine', type: 'number' },
      { $ref: '#/$defs/Cat', description: 'mine' }
    ],
    [
      {
        type: 'object',
        properties: { id: { readOnly: true }, a: { type: 'string' }, b: { $ref: '#/components/schemas/Made' } },
        required: ['id', 'a', 'a', 'b', 7]
      },
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
    ],
    [
      { type: 'array', items: { type: 'string', format: 'byte' }, uniqueItems: true, minItems: '1' },
      { uniqueItems: true, type: 'array', items: { format: 'byte', type: 'string', contentEncoding: 'base64' } }
    ],
    [
      { type: 'text', pattern: '[', required: true, enum: [], maxLength: -1, items: 5, allOf: [], multipleOf: 0, properties: { a: 'no' } },
      { properties: {} }
    ],
    [
      { type: 'object', additionalProperties: { $ref: '#/components/schemas/Cat' } },
      { type: 'object', additionalProperties: { $ref: '#/$defs/Cat' } }
    ],
    [
      { oneOf: [{ $ref: '#/components/schemas/Cat' }, { not: {} }], deprecated: true, default: null, title: 't' },
      { title: 't', deprecated: true, default: null, not: undefined, oneOf: [{ $ref: '#/$defs/Cat' }, { not: {} }] }
    ]
  ]
  const components = {
    schemas: {
      Cat: {
        type: 'object',
        properties: {
          kittens: { type: 'array', items: { $ref: '#/components/schemas/Cat' } },
          default: { $ref: '#/components/schemas/Deep' }
        }
      },
      Made: { type: 'string', readOnly: true },
      Deep: { type: 'string' },
      Unused: {}
    }
  }
  const parameters = conversions.map(([schema], at) => ({ name: `p${at}`, in: 'query', schema }))
  const client = await described(t, 'http://127.0.0.1:1', { '/x': { get: op('x', parameters) }, '/y': { get: op('y') } }, { components })
  const tools = await client.tools()
  const { properties = {}, $defs } = tools.get('x')?.inputSchema ?? {}
  conversions.forEach(([schema, expected], at) => {
    assert.deepEqual(properties[`p${at}`], JSON.parse(JSON.stringify(expected)), JSON.stringify(schema))
  })
  assert.deepEqual(Object.keys($defs ?? {}), ['Cat', 'Deep'])
  assert.equal(tools.get('y')?.inputSchema.$defs, undefined)
  const valid = ajv.compile({ ...tools.get('x')?.inputSchema })
  assert.ok(valid({ p9: { a: { kittens: [{ kittens: [] }], default: 'x' } }, p0: null }), JSON.stringify(valid.errors))
  assert.equal(valid({ p9: { a: { kittens: [{ kittens: [5] }] } } }), false)

  await t.test('3.1 keeps what stands beside a reference, and its own keywords', async () => {
    const schema = {
      ...openapi({
        '/x': {
          get: op('x', [
            { name: 'p', in: 'query', schema: { $ref: '#/components/schemas/T', maxLength: 3, default: 'ab' } },
            { name: 'q', in: 'query', schema: { exclusiveMinimum: 3, const: 4, prefixItems: [true], dependentRequired: { a: ['b'] }, if: {}, then: false, examples: [4] } },
            { name: 'r', in: 'query', schema: true }
          ])
        }
      }, { components: { schemas: { T: { type: ['string', 'null'], minLength: 2 } } } }),
      openapi: '3.1.0'
    }
    const { inputSchema } = [...(await (await restClient(t, { url: 'http://127.0.0.1:1', openapi: { schema } })).tools()).values()][0] ?? {}
    assert.deepEqual(inputSchema?.properties, {
      p: { maxLength: 3, default: 'ab', $ref: '#/$defs/T' },
      q: { exclusiveMinimum: 3, const: 4, examples: [4], dependentRequired: { a: ['b'] }, if: {}, then: { not: {} }, prefixItems: [{}] },
      r: {}
    })
    const valid = ajv.compile({ ...inputSchema })
    assert.deepEqual([valid({ p: 'abc' }), valid({ p: 'abcd' }), valid({ p: 'a' })], [true, false, false])
  })
  await t.test('patterns are said as Unicode has them; what cannot be said makes a schema take more, never less', async () => {
    const one = (name: string): object => ({ oneOf: [{ $ref: `#/components/schemas/${name}` }, { type: 'string', enum: ['red'] }] })
    const given: Array<[object, object]> = [
      [{ pattern: '^\\#\\:\\_[+\\-/\\@\\d\\]]\\.$' }, { pattern: '^#:_[+\\x2d/@\\d\\]]\\.$' }],
      [{ oneOf: [{ pattern: '^\\#' }, { not: { pattern: '\\:' } }] }, { oneOf: [{ pattern: '^#' }, { not: { pattern: ':' } }] }],
      [
        { patternProperties: { '^\\#': { type: 'string' } }, additionalProperties: false },
        { patternProperties: { '^#': { type: 'string' } }, additionalProperties: false }
      ],
      [{ patternProperties: { '(?i)^a': {}, b: {} }, additionalProperties: false }, { patternProperties: { b: {} } }],
      [{ type: 'string', not: { pattern: '(?i)a' } }, { type: 'string' }],
      [{ not: { items: { minLength: '2' } } }, {}],
      [
        { oneOf: [{ type: 'strin' }, { const: 'b' }], anyOf: [{ maxLength: 5 }] },
        { anyOf: [{ maxLength: 5 }], allOf: [{ anyOf: [{}, { const: 'b' }] }] }
      ],
      [{ if: { enum: [] }, then: { maxLength: 1 }, else: { maxLength: 2 } }, {}],
      [
        { properties: { a: { pattern: '(?i)a' } }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
        { properties: { a: {} }, oneOf: [{ required: ['a'] }, { required: ['b'] }] }
      ],
      [one('Far'), { anyOf: [{ $ref: '#/$defs/Far' }, { type: 'string', enum: ['red'] }] }],
      [one('Near'), { anyOf: [{ $ref: '#/$defs/Near' }, { type: 'string', enum: ['red'] }] }],
      [
        { oneOf: ['Cat', 'Dog'].map((name) => ({ $ref: `#/components/schemas/${name}` })), discriminator: { propertyName: 'kind' } },
        { anyOf: [{ $ref: '#/$defs/Cat' }, { $ref: '#/$defs/Dog' }] }
      ],
      [
        { oneOf: [{ required: ['id'], properties: { id: { readOnly: true } } }, { required: ['v'] }] },
        { anyOf: [{ properties: {} }, { required: ['v'] }] }
      ],
      [{ oneOf: [{ format: 'date' }, { format: 'date-time' }] }, { anyOf: [{ format: 'date' }, { format: 'date-time' }] }],
      [one('Whole'), { oneOf: [{ $ref: '#/$defs/Whole' }, { type: 'string', enum: ['red'] }] }]
    ]
    const schemas = {
      Cat: { required: ['kind'] },
      Dog: { required: ['kind'] },
      Near: { type: 'string', pattern: '(?i)^x' },
      Far: { allOf: [{ $ref: '#/components/schemas/Whole' }, { $ref: '#/components/schemas/Near' }] },
      Whole: { properties: { whole: { $ref: '#/components/schemas/Whole' } } }
    }
    const parameters = given.map(([schema], at) => ({ name: `p${at}`, in: 'query', schema }))
    const client = await restClient(t, {
      url: 'http://127.0.0.1:1',
      openapi: {
        schema: { ...openapi({ '/x': { get: op('x', parameters) } }, { components: { schemas } }), openapi: '3.1.0' }
      }
    })
    const { inputSchema } = (await client.tools()).get('x') ?? {}
    given.forEach(([schema, expected], at) => { assert.deepEqual(inputSchema?.properties[`p${at}`], expected, JSON.stringify(schema)) })
    const valid = ajv.compile({ ...inputSchema })
    for (const args of [{ p9: 'red' }, { p0: '#:_-.' }, { p0: '#:_].' }, { p3: { A: 1 } }, { p11: { kind: 'Cat' } }]) {
      assert.ok(valid(args), JSON.stringify([args, valid.errors]))
    }
    assert.equal(valid({ p0: '#:_,.' }), false)
  })
  await t.test('cut in depth, choices admit what they did', async () => {
    const schemas = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [
      `L${at}`,
      {
        type: 'object',
        required: [`kind${at}`],
        properties: {
          [`kind${at}`]: { type: 'string', enum: Array.from({ length: 200 }, (__, each) => `value-${at}-${each}`) },
          next: { oneOf: [1, 2, 3].map((more) => ({ $ref: `#/components/schemas/L${(at + more) % 100}` })) },
          other: { not: { $ref: `#/components/schemas/L${(at + 9) % 100}` } }
        }
      }
    ]))
    const client = await described(t, 'http://127.0.0.1:1', {
      '/x': { get: op('x', [{ name: 'p', in: 'query', schema: { $ref: '#/components/schemas/L0' } }]) }
    }, { components: { schemas } })
    const valid = ajv.compile({ ...(await client.tools()).get('x')?.inputSchema })
    let value: object = { kind33: 'value-33-1' }
    for (let at = 30; at >= 0; at -= 3) value = { [`kind${at}`]: `value-${at}-1`, next: value, other: {} }
    assert.ok(valid({ p: value }), JSON.stringify(valid.errors))
  })
  await t.test('a schema that is too large loses words, then depth, and stays valid', async () => {
    const properties = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [
      `member${at}`,
      {
        description: 'words '.repeat(20),
        type: 'object',
        properties: Object.fromEntries(
          Array.from({ length: 12 }, (__, next) => [`inner${next}`, { $ref: `#/components/schemas/L${next}` }])
        )
      }
    ]))
    const schemas = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [
      `L${at}`,
      {
        type: 'object',
        description: 'more words '.repeat(30),
        properties: {
          next: { $ref: `#/components/schemas/L${(at + 1) % 200}` },
          value: { type: 'string', enum: Array.from({ length: 40 }, (__, each) => `value-${at}-${each}`) }
        }
      }
    ]))
    const client = await described(t, 'http://127.0.0.1:1', {
      '/x': {
        post: op('x', [], { requestBody: { content: { 'application/json': { schema: { type: 'object', properties } } } } })
      }
    }, { components: { schemas } })
    const { inputSchema } = (await client.tools()).get('x') ?? {}
    assert.ok(JSON.stringify(inputSchema).length <= upstreamLimits.openapi.schema)
    assert.equal(Object.keys(inputSchema?.properties ?? {}).length, 40)
    const valid = ajv.compile({ ...inputSchema })
    assert.ok(valid({ member0: { inner0: { next: {}, value: 'value-0-1' } } }), JSON.stringify(valid.errors))
    assert.equal(valid({ member0: 5 }), false)
  })
})

const reference = (name: string): object => ({ $ref: `#/components/schemas/${name}` })
const whole = JSON.stringify({
  openapi: '3.0.0',
  info: { title: 'x', version: '1', description: 'd' },
  servers: [{ url: '/{v}', variables: { v: { default: 'a' } } }],
  components: {
    securitySchemes: { a: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: 'http://x.test' } } } },
    schemas: {
      A: { type: 'object', nullable: true, required: ['a'], properties: { a: reference('B') } },
      B: { allOf: [reference('A'), { oneOf: [{ type: 'string', enum: ['a', null], pattern: '^a' }] }] }
    }
  },
  paths: {
    '/a/{id}': {
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer', minimum: 1, exclusiveMinimum: true } }],
      post: {
        operationId: 'a',
        summary: 's',
        parameters: [{ name: 'q', in: 'query', style: 'deepObject', explode: true, content: { 'application/json': { schema: reference('A') } } }],
        requestBody: {
          required: true,
          content: {
            'multipart/form-data': {
              schema: {
                type: 'object',
                properties: { f: { type: 'string', format: 'binary' }, g: { type: 'array', items: reference('B') } },
                required: ['f'],
                additionalProperties: { type: 'string' }
              },
              encoding: { g: { style: 'form', contentType: 'text/plain' } }
            }
          }
        },
        security: []
      }
    },
    '/b': { get: { operationId: 'b' } }
  }
})
const inPath = { name: 'id', in: 'path', type: 'array', items: { type: 'string' }, collectionFormat: 'csv' }
const swagger = JSON.stringify({
  swagger: '2.0',
  host: 'x.test',
  basePath: '/v',
  schemes: ['http'],
  consumes: ['application/json'],
  definitions: { A: { type: 'object', properties: { a: { $ref: '#/definitions/A' } } } },
  paths: {
    '/a/{id}': {
      post: { parameters: [inPath, { name: 'b', in: 'body', schema: { $ref: '#/definitions/A' } }] },
      put: { parameters: [{ name: 'f', in: 'formData', type: 'file' }] }
    }
  }
})

const { openapi: bounds, description } = upstreamLimits
const compiled = (document: object, more = {}): ReturnType<typeof compileDescription> =>
  compileDescription({ ...document }, { baseUrl: 'http://x.test', ...bounds, description, ...more })

test('descriptions with anything wrong anywhere: each tool that comes of them is valid', async () => {
  const validate = new Ajv2020({ strict: false }).getSchema('https://json-schema.org/draft/2020-12/schema')
  const compiler = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false })
  const wrong = fc.oneof(fc.jsonValue(), fc.constantFrom('', '#', '#/components/schemas/A', '__proto__', 'object', {},
    [], [null], { $ref: '#/paths' }, { $ref: 5 }, { type: 'object', properties: { x: { $ref: '#/definitions/A' } } }))
  let served = 0
  fc.assert(fc.property(fc.constantFrom(whole, swagger), fc.nat(), wrong, fc.nat(), wrong, (text, at, value, otherAt, otherValue) => {
    const document = JSON.parse(text) as Record<string, unknown>
    for (const [place, put] of [[at, value], [otherAt, otherValue]] as const) {
      const places: Array<[Record<string, unknown>, string]> = []
      const walk = (each: unknown): void => {
        if (typeof each === 'object' && each !== null) {
          for (const key of Object.keys(each)) {
            places.push([each as Record<string, unknown>, key])
            walk((each as Record<string, unknown>)[key])
          }
        }
      }
      walk(document)
      const [target, key] = places[place % places.length] ?? [document, 'paths']
      target[key] = structuredClone(put)
    }
    try {
      checkLimits(document, bounds)
      const { tools, plans, names } = compiled(document, { baseUrl: 'http://x.test/doc' })
      assert.deepEqual([tools.length, plans.length], [names.length, names.length])
      for (const tool of tools) {
        const { name, inputSchema } = JSON.parse(tool) as { name: string, inputSchema: object }
        assert.match(name, /^[\w.-]{1,64}$/)
        assert.ok(validate?.(inputSchema), JSON.stringify(validate?.errors))
        compiler.compile(inputSchema)
        compiler.removeSchema(inputSchema)
        served++
      }
    } catch (error) { if (!(error instanceof DescriptionError)) throw error }
  }), { seed, numRuns: 500 })
  assert.ok(served > 300, String(served))
})

test('objects that have no text, where a text is expected, make a description that cannot be used', async () => {
  const textless = { toString: 0 }
  const written = (more: object): ReturnType<typeof compileDescription> => compiled({ ...openapi({ '/a': { get: ok } }), ...more })
  assert.throws(() => written({ openapi: undefined, swagger: textless }), DescriptionError)
  assert.equal(written({ info: { version: textless } }).version, '')
  const field = { in: 'formData', type: 'array', items: { type: 'string' } }
  const paths = {
    '/a': { post: { parameters: [{ ...field, name: 'a', collectionFormat: textless }] } },
    '/b': { post: { parameters: [{ ...field, name: textless }] } }
  }
  const { names, warnings } = written({ openapi: undefined, swagger: '2.0', consumes: ['multipart/form-data'], paths })
  assert.deepEqual([names, warnings], [['post_a'], ['POST /b was omitted: a parameter has no "name"']])
})

test('what is kept to call the operations is bounded, as tools are', async () => {
  const parameters = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`p${n}`, { name: `${n}${'x'.repeat(10_000)}`, in: 'query' }]))
  const all = Object.keys(parameters).map((name) => ({ $ref: `#/components/parameters/${name}` }))
  const paths = { '/a': { get: { parameters: all, ...ok } }, '/b': { get: ok } }
  const large = compiled({ ...openapi(paths), components: { parameters } })
  assert.deepEqual(large.names, ['get_b'])
  assert.match(large.warnings.join(), /^GET \/a was omitted: the descriptions of its parameters are longer than 262144 characters$/)
  const few = all.slice(0, 5)
  const several = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`/${n}`, { get: { parameters: few, ...ok } }]))
  const { names, warnings, tools, plans } = compiled({ ...openapi(several), components: { parameters } }, { total: 500_000, schema: 1_000 })
  assert.ok([...tools, ...plans].join('').length <= 500_000)
  assert.ok(names.length > 2 && names.length < 10, names.join())
  assert.match(warnings.join(), /would be longer than 500000 characters/)
})

void test('a text that aliases repeat counts each time, and so do the names of members', async () => {
  const few = { values: 1_000, characters: 10_000, depth: 10 }
  const aliases = (count: number): string => Array(count).fill('*a').join(', ')
  for (const anchored of ['x'.repeat(500), `{${'x'.repeat(500)}: 1}`]) {
    assert.ok(parseDocument(`a: &a ${anchored}\nb: [${aliases(10)}]\n`, few))
    assert.throws(() => parseDocument(`a: &a ${anchored}\nb: [${aliases(20)}]\n`, few), /more than 10000 characters/)
  }
})
