import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { validate } from '@readme/openapi-parser'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { parse, stringify } from 'yaml'
import { makeView } from '../../plugins/access/view.ts'
import { Claims } from '../../plugins/gateway/claims.ts'
import { Precedence } from '../../plugins/gateway/precedence.ts'
import type { Section } from '../../plugins/gateway/section.ts'
import { TextCache } from '../../plugins/openapi/cache.ts'
import { frameOf, headOf, responses, uniqueOperationId, type BodyInput } from '../../plugins/openapi/document.ts'
import { CpuBudget, timeBudgetOf } from '../../plugins/json-schema/time-budget.ts'
import { limits } from '../../plugins/limits/index.ts'
import { notations } from '../../plugins/openapi/notation.ts'
import { OpenApi } from '../../plugins/openapi/openapi.ts'
import { toOperation } from '../../plugins/openapi/operation.ts'
import { SchemaTranslator } from '../../plugins/openapi/translate.ts'
import { writeBody, writeHead, writeServers } from '../../plugins/openapi/write.ts'
import { makeCatalogue, type Catalogue, type Item } from '../../protocol/lists.ts'
import type { Provider } from '../../protocol/provider.ts'
import {
  assertPlain,
  at,
  connected,
  everything,
  KEY,
  OTHER,
  otherKey,
  plain,
  settings,
  sleep,
  text,
  within,
  type Json
} from '../helpers/client.ts'
import { Raw, Refusal, startUpstream, tool, type Call } from '../fakes/fault-http.ts'
import { measureHold } from '../fakes/loop-hold.ts'
import { as30, samples, schemas } from '../fakes/schemas.ts'
import { npmServer, startHub, until, type Hub } from '../helpers/hub.ts'
import { emptySnapshot } from '../helpers/snapshot.ts'

// ---- documents and operations as a program that imports them sees them -----------------------------

interface Operation { id: string, method: string, path: string, server: string, parameters: Json[], body: unknown }

async function document (hub: Hub, path = '/api/openapi.json', headers: Record<string, string> = {}): Promise<Json> {
  const reply = await fetch(`${hub.url}${path}`, { headers })
  assert.equal(reply.status, 200, `${path}: ${await reply.clone().text()}`)
  return await reply.json() as Json
}

/** A document that two validators take, neither of which is ours. */
async function valid (given: unknown): Promise<void> {
  const first = await validate(structuredClone(given) as Parameters<typeof validate>[0])
  assert.ok(first.valid, JSON.stringify(first, null, 1).slice(0, 3_000))
  const second = await new Validator().validate(structuredClone(given) as Json)
  assert.ok(second.valid, JSON.stringify(second).slice(0, 3_000))
  assert.equal(at(given, 'openapi'), '3.0.3')
}

function operations (given: unknown): Operation[] {
  return Object.entries(at(given, 'paths') as Json).flatMap(([path, item]) => ['get', 'post'].flatMap((method) => {
    const operation = at(item, method)
    if (operation === undefined) return []
    return [
      {
        id: String(at(operation, 'operationId')),
        method: method.toUpperCase(),
        path,
        server: String(at(operation, 'tags', 0)),
        parameters: (at(operation, 'parameters') ?? []) as Json[],
        body: at(operation, 'requestBody', 'content', 'application/json', 'schema')
      }
    ]
  }))
}

const ids = (given: unknown): string[] => operations(given).map(({ id }) => id)

/** A value that a schema of OpenAPI 3.0.3 takes, with all its properties or the required ones only. */
function example (schema: unknown, whole: unknown, all: boolean, name = ''): unknown {
  const ref = at(schema, '$ref')
  if (typeof ref === 'string') return example(at(whole, ...ref.slice(2).split('/')), whole, false, name)
  for (const keyword of ['allOf', 'anyOf', 'oneOf']) {
    const first = at(schema, keyword, 0)
    if (first !== undefined && at(schema, 'type') === undefined) return example(first, whole, all, name)
  }
  const choice = at(schema, 'enum', 0)
  if (choice !== undefined) return choice
  switch (at(schema, 'type')) {
    case 'integer': case 'number': return at(schema, 'minimum') ?? 1
    case 'boolean': return true
    case 'array': return [example(at(schema, 'items'), whole, all, name)]
    case 'object': {
      const required = new Set((at(schema, 'required') ?? []) as string[])
      const own = Object.entries((at(schema, 'properties') ?? {}) as Json)
        .filter(([key]) => all || required.has(key))
        .map(([key, value]) => [key, example(value, whole, all, key)])
      const cases = ['anyOf', 'oneOf'].flatMap((keyword) =>
        at(schema, keyword, 0) === undefined ? [] : [example({ type: 'object', ...(at(schema, keyword, 0) as Json) }, whole, all)]
      )
      return Object.assign(Object.fromEntries(own), ...cases) as Json
    }
    default: return /uri|url/.test(`${at(schema, 'format')}`) ? 'http://127.0.0.1:9/none' : name === 'path' ? '.' : 'text'
  }
}

/** Calls an operation as its document says. */
async function run (
  hub: Hub,
  whole: unknown,
  operation: Operation,
  all: boolean,
  headers: Record<string, string> = {}
): Promise<{ status: number; text: string }> {
  const base = new URL(String(at(whole, 'servers', 0, 'url')), hub.url).href
  const query = new URLSearchParams()
  for (const parameter of operation.parameters) {
    if (all || parameter.required === true) {
      query.append(String(parameter.name), String(example(parameter.schema, whole, all, String(parameter.name))))
    }
  }
  const body = operation.body === undefined ? undefined : JSON.stringify(example(operation.body, whole, all))
  const url = `${base}${operation.path}${query.size > 0 ? `?${query}` : ''}`
  const reply = await fetch(url, {
    method: operation.method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body
  })
  return { status: reply.status, text: await reply.text() }
}

/** The dialect of failures on these routes. */
function refused (answer: { status: number, text: string }, status: number, says = /./): void {
  assert.equal(answer.status, status, answer.text)
  const body: unknown = JSON.parse(answer.text)
  assert.equal(at(body, 'success'), false, answer.text)
  assert.match(String(at(body, 'error')), /^(TH|FST)_/, answer.text)
  assert.match(String(at(body, 'message')), says, answer.text)
  assertPlain(answer.text)
}

const get = async (
  hub: Hub,
  path: string,
  headers: Record<string, string> = {}
): Promise<{ status: number; text: string; headers: Headers }> => {
  const reply = await fetch(`${hub.url}${path}`, { headers })
  return { status: reply.status, text: await reply.text(), headers: reply.headers }
}

const post = async (
  hub: Hub,
  path: string,
  body: unknown,
  headers: Record<string, string> = {}
): Promise<{ status: number; text: string }> => {
  const reply = await fetch(`${hub.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body)
  })
  return { status: reply.status, text: await reply.text() }
}

/** Changes the settings file as an operator would, and waits until the gateway has taken it up. */
async function edit (hub: Hub, change: (file: Json) => void, seen: () => Promise<boolean>): Promise<void> {
  const file = JSON.parse(await readFile(hub.settingsPath, 'utf8')) as Json
  change(file)
  await writeFile(hub.settingsPath, JSON.stringify(file))
  await until(seen, 'the change was never taken up')
}

/** A tool that answers with the arguments it was called with. */
const echoArguments = ({ method, params }: Call): Json | undefined =>
  method === 'tools/call'
    ? {
        content: [{ type: 'text', text: JSON.stringify(params.arguments) }],
        structuredContent: { tool: params.name, args: params.arguments }
      }
    : undefined

const object = (properties: Json, more: Json = {}): Json => ({ inputSchema: { type: 'object', properties, ...more } })
const several = (count: number, schema: unknown = { type: 'string' }): Json =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, schema]))

// ---- JSON Schema in the dialect of OpenAPI 3.0.3 ---------------------------------------------------

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
    [
      { type: ['string', 'null'], minLength: 2 },
      { type: 'string', nullable: true, minLength: 2 }
    ],
    [{ type: ['string', 'integer', 'null'] }, { anyOf: [{ type: 'string', nullable: true }, { type: 'integer' }] }],
    [{ type: 'null' }, { type: 'string', nullable: true, enum: [null] }],
    [{ const: 'a' }, { type: 'string', enum: ['a'] }],
    [
      { type: 'number', exclusiveMinimum: 0, maximum: 9 },
      { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 9 }
    ],
    [
      { type: 'number', exclusiveMaximum: 5, maximum: 3 },
      { type: 'number', maximum: 3 }
    ],
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
      { pattern: '\\-' },
      { minLength: '2' },
      { enum: [] },
      { type: 'strin' },
      { multipleOf: 0 },
      { const: 1, enum: [2, 1] },
      { required: ['a', 7] }
    ].map((each): [unknown, unknown] => [{ not: each }, {}]),
    [
      {
        oneOf: [
          { type: 'string', pattern: '^\\#' },
          { type: 'string', enum: ['red'] }
        ]
      },
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
    [
      { type: 'string', contentEncoding: 'base64', format: 'binary' },
      { type: 'string', format: 'byte' }
    ],
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

// ---- documents --------------------------------------------------------------------------------------

test('every operation of real servers runs as its document says', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-files-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  await writeFile(join(folder, 'text'), 'hello')
  const hub = await startHub(t, {
    settings: settings({
      everything: npmServer('everything', 'stdio'),
      files: { ...npmServer('filesystem', folder), cwd: folder },
      memory: { ...npmServer('memory'), env: { MEMORY_FILE_PATH: join(folder, 'memory.json') } },
      remote: { type: 'streamable-http', url: await everything(t) }
    })
  })
  await connected(hub, 4)
  const whole = await document(hub)
  await valid(whole)
  const all = operations(whole)
  assert.deepEqual([...new Set(all.map(({ server }) => server))], ['everything', 'files', 'memory', 'remote'])
  assert.ok(all.length > 40, `${all.length} operations`)
  for (const name of ['everything', 'files', 'memory', 'remote']) {
    const part = await document(hub, `/api/${name}/openapi.json`)
    await valid(part)
    assert.deepEqual(ids(part), all.filter(({ server }) => server === name).map(({ id }) => id))
  }
  let succeeded = 0
  // At once: one of them takes ten seconds.
  await Promise.all(all.flatMap((operation) => [false, true].map(async (full) => {
    const answer = await within(operation.id, run(hub, whole, operation, full))
    assert.equal(answer.status, 200, `${operation.method} ${operation.path}: ${answer.text}`)
    const result: unknown = JSON.parse(answer.text)
    assert.ok(Array.isArray(at(result, 'content')), answer.text)
    // Arguments that the server's own schema refuses would be an error of ours.
    assert.doesNotMatch(text(result), /-32602|invalid arguments/i, `${operation.id}: ${answer.text}`)
    if (at(result, 'isError') !== true) succeeded++
  })))
  assert.ok(succeeded > all.length, `only ${succeeded} of ${2 * all.length} calls did something`)
})

test('documents', async (t) => {
  const tools = [
    tool('ten', object(several(10))),
    tool('eleven', object(several(11))),
    tool('none', object({})),
    tool(
      'mixed',
      object(
        {
          n: { type: 'integer', minimum: 1 },
          s: { type: 'string', description: 'Some text' },
          o: { anyOf: [{ type: 'number' }, { type: 'null' }] },
          k: { $ref: '#/$defs/Kind' }
        },
        { required: ['n'], $defs: { Kind: { enum: ['x', 'y'] } } }
      )
    ),
    tool('list', object({ l: { type: 'array', items: { type: 'string' } } })),
    tool('nested', object({ o: { type: 'object', properties: { a: { type: 'integer' } } } })),
    tool('anything', object({ a: {} })),
    tool('maybe', object({ a: { anyOf: [{ type: 'string' }, { type: 'array' }] } })),
    tool('open', object({}, { additionalProperties: { type: 'integer' } })),
    tool('cases', {
      inputSchema: {
        type: 'object',
        oneOf: [
          { properties: { a: { type: 'string' } }, required: ['a'] },
          { properties: { b: { type: 'string' } }, required: ['b'] }
        ]
      }
    }),
    tool(
      'tree',
      object(
        { root: { $ref: '#/$defs/Node' } },
        {
          $defs: {
            Node: {
              type: 'object',
              required: ['name'],
              properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/Node' } } }
            }
          }
        }
      )
    ),
    tool(
      'unions',
      object({
        u: { anyOf: [{ type: 'integer' }, { type: 'string', enum: ['auto'] }] },
        e: { enum: [1, 'a', true] },
        c: { oneOf: [{ type: 'boolean' }, { const: 'auto' }] }
      })
    ),
    tool('odd', {
      title: 'Odd',
      inputSchema: {
        type: 'object',
        properties: {
          'a b&c=d': { type: 'string' },
          'é%': { type: 'integer' },
          yes: { type: 'boolean' },
          list: { type: 'array', prefixItems: [{ const: 1 }], items: false },
          deep: { type: 'object', patternProperties: { '^x': { type: ['string', 'null'] } }, additionalProperties: false }
        }
      }
    })
  ]
  const fake = await startUpstream(t, { tools, on: echoArguments })
  const other = await startUpstream(t, { tools: [tool('other'), tool('second')], on: echoArguments })
  const member = { name: 'other', tools: ['second'] }
  const hub = await startHub(t, {
    env: { BASE_PATH: '/hub' },
    settings: settings(
      { fake: { url: fake.url, description: 'Tools for tests' }, other: { url: other.url, tools: { other: { enabled: false } } } },
      {
        groups: [
          { id: 'g-1', name: 'team one', servers: ['fake', member] },
          { id: 'g-2', name: 'other', servers: ['fake'] },
          { id: 'g-3', name: 'nothing', servers: [] }
        ],
        systemConfig: { install: { baseUrl: 'https://hub.example/' } }
      }
    )
  })
  await connected(hub, 2)
  const here = 'https://hub.example/hub/api'
  /** As the document says, but on this machine. */
  const onHub = (given: unknown): Json => {
    const { paths, ...rest } = given as Json
    return { ...rest, servers: [{ url: `${hub.url}/api` }], paths }
  }

  await t.test('a tool of up to ten single values is a GET, every other one a POST', async () => {
    const whole = await document(hub)
    await valid(whole)
    assert.equal(at(whole, 'servers', 0, 'url'), here)
    const methods = Object.fromEntries(operations(whole).map(({ id, method }) => [id, method]))
    assert.deepEqual(methods, {
      fake_ten: 'GET',
      fake_eleven: 'POST',
      fake_none: 'GET',
      fake_mixed: 'GET',
      fake_list: 'POST',
      fake_nested: 'POST',
      fake_anything: 'POST',
      fake_maybe: 'POST',
      fake_open: 'POST',
      fake_cases: 'POST',
      fake_tree: 'POST',
      fake_unions: 'GET',
      fake_odd: 'POST',
      other_second: 'GET'
    })
    const mixed = at(whole, 'paths', '/tools/fake/mixed', 'get')
    assert.deepEqual(at(mixed, 'parameters'), [
      { name: 'n', in: 'query', required: true, schema: { type: 'integer', minimum: 1 } },
      { name: 's', in: 'query', required: false, description: 'Some text', schema: { type: 'string' } },
      { name: 'o', in: 'query', required: false, schema: { type: 'number', nullable: true } },
      { name: 'k', in: 'query', required: false, schema: { type: 'string', enum: ['x', 'y'] } }
    ])
    assert.deepEqual(
      [at(mixed, 'tags'), at(mixed, 'description'), at(mixed, 'responses', '200', 'content', 'application/json', 'schema')],
      [['fake'], 'The tool mixed', { $ref: '#/components/schemas/ToolResponse' }]
    )
    assert.deepEqual(at(whole, 'tags'), [{ name: 'fake', description: 'Tools for tests' }, { name: 'other' }])
    for (const name of ['ToolResponse', 'ErrorResponse', 'fake.tree.Node']) {
      assert.ok(at(whole, 'components', 'schemas', name) !== undefined, name)
    }
    // A tool of a modern server may answer any JSON value.
    const data = at(whole, 'components', 'schemas', 'ToolResponse', 'properties', 'structuredContent')
    assert.deepEqual(Object.keys(data as object), ['description'])
    assert.equal(at(whole, 'paths', '/tools/fake/odd', 'post', 'summary'), 'Odd')
    for (const operation of operations(whole)) {
      for (const full of [false, true]) assert.equal((await run(hub, onHub(whole), operation, full)).status, 200, operation.id)
    }
  })

  await t.test('in YAML they say the same', async () => {
    for (const path of ['openapi', 'fake/openapi', 'team%20one/openapi']) {
      const reply = await fetch(`${hub.url}/api/${path}.yaml?description=${encodeURIComponent('two\\nlines: "and" \\u2028 more #')}`)
      assert.match(String(reply.headers.get('content-type')), /yaml/)
      assert.deepEqual(
        parse(await reply.text()),
        await document(hub, `/api/${path}.json?description=${encodeURIComponent('two\\nlines: "and" \\u2028 more #')}`)
      )
    }
  })

  await t.test('the query says what stands in the head, and what is covered', async () => {
    const asked = await document(
      hub,
      '/api/openapi.json?title=Mine&description=About&version=7.1&serverUrl=https%3A%2F%2Felse.example%2Fapi%2F&servers=other,' +
      '%20nope&includeDisabled=true'
    )
    await valid(asked)
    assert.deepEqual(
      [at(asked, 'info'), at(asked, 'servers')],
      [{ title: 'Mine', description: 'About', version: '7.1' }, [{ url: 'https://else.example/api/' }]]
    )
    assert.deepEqual(ids(asked), ['other_other', 'other_second'])
    assert.deepEqual(ids(await document(hub, '/api/openapi.json?servers=nope')), [])
    refused(await get(hub, '/api/tools/other/other'), 404)
    for (const serverUrl of [
      'nope',
      '/api',
      'ftp://else.example/',
      'javascript:alert(1)',
      'https://user@else.example/',
      'https://u:p@else.example',
      'https://{host}/',
      'https:\\\\\\\\else.example',
      'https://',
      'https://else.example/ x',
      `https://else.example/${'x'.repeat(2_048)}`,
      '',
      '//else.example/api'
    ]) {
      for (const path of ['/api/openapi.json', '/api/openapi.yaml', '/api/fake/openapi.json']) {
        refused(await get(hub, `${path}?serverUrl=${encodeURIComponent(serverUrl)}`), 400, /serverUrl/)
      }
    }
    for (const query of ['includeDisabled=maybe', 'title=a&title=b', 'servers=a&servers=b']) {
      refused(await get(hub, `/api/openapi.json?${query}`), 400)
    }
    const elsewhere = await plain(`http://127.0.0.1:${hub.port}/hub/api/openapi.json`, { headers: { 'x-forwarded-host': 'evil.example' } })
    assert.equal(elsewhere.status, 200)
    assert.ok(!elsewhere.body.includes('evil.example'))
  })

  await t.test('a group comes before a server of its name, by id or name, with what it selects', async () => {
    for (const name of ['g-1', 'team%20one']) {
      const group = await document(hub, `/api/${name}/openapi.json`)
      await valid(group)
      assert.ok(
        ids(group).includes('other_second') && ids(group).includes('fake_ten') && !ids(group).includes('other_other'),
        ids(group).join()
      )
      const elsewhere = await document(hub, `/api/${name}/openapi.json?serverUrl=https%3A%2F%2Felse.example%2Fapi%2F`)
      assert.deepEqual(
        [at(elsewhere, 'servers', 0, 'url'), at(elsewhere, 'paths', '/tools/fake/ten', 'servers')],
        ['https://else.example/api/', [{ url: 'https://else.example/api/g-1' }]]
      )
      assert.deepEqual(
        [at(group, 'info', 'title'), at(group, 'servers', 0, 'url'), at(group, 'paths', '/tools/fake/ten', 'servers')],
        ['team one', here, [{ url: `${here}/g-1` }]]
      )
    }
    assert.ok(ids(await document(hub, '/api/other/openapi.json')).every((id) => id.startsWith('fake_')))
    for (const path of ['/api/nope/openapi.json', '/api/nothing/openapi.json', '/api/nope/openapi.yaml']) refused(await get(hub, path), 404)
    for (const path of [
      '/api/team%20one/tools/other/second?a=1',
      '/api/g-1/tools/other/second?a=1',
      '/api/tools/other/second?group=team%20one&a=1',
      '/api/fake/tools/fake/none?a=1'
    ]) {
      const answer = await get(hub, path)
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(at(JSON.parse(answer.text), 'structuredContent', 'args'), { a: '1' })
    }
    assert.equal((await post(hub, '/api/g-1/tools/other/second', {})).status, 200)
    assert.equal((await post(hub, '/api/tools/other/second?group=g-1', { a: 1 })).status, 200)
    for (const query of ['group=team%20one&group=team%20one', 'group=g-1&group=nope']) {
      refused(await get(hub, `/api/tools/other/second?${query}`), 400, /group/)
      refused(await post(hub, `/api/tools/other/second?${query}`, {}), 400, /group/)
    }
    assert.deepEqual(at(JSON.parse((await get(hub, '/api/g-1/tools/other/second?group=a&group=b')).text), 'structuredContent', 'args'), {
      group: ['a', 'b']
    })
    for (const path of [
      '/api/g-2/tools/other/second',
      '/api/fake/tools/other/second',
      '/api/tools/other/second?group=g-2',
      '/api/tools/other/second?group=nope',
      '/api/tools/fake/none?group=fake',
      '/api/nope/tools/fake/none'
    ]) { refused(await get(hub, path), 404) }
  })

  await t.test('which servers, and how many tools', async () => {
    assert.deepEqual(JSON.parse((await get(hub, '/api/openapi/servers')).text), { success: true, data: ['fake', 'other'] })
    assert.deepEqual(JSON.parse((await get(hub, '/api/openapi/stats')).text), {
      success: true,
      data: {
        totalServers: 2,
        totalTools: 14,
        serverBreakdown: [
          { name: 'fake', toolCount: 13, status: 'connected' },
          { name: 'other', toolCount: 1, status: 'connected' }
        ]
      }
    })
  })

  await t.test('an ETag spares what has not changed, and changes with what it covers', async () => {
    for (const path of ['/api/openapi.json', '/api/openapi.yaml', '/api/fake/openapi.json', '/api/openapi/servers', '/api/openapi/stats']) {
      const first = await get(hub, path)
      const etag = String(first.headers.get('etag'))
      assert.match(etag, /^"[^"]+"$/)
      for (const seen of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const again = await get(hub, path, { 'if-none-match': seen })
        assert.deepEqual([again.status, again.text, again.headers.get('etag')], [304, '', etag], `${path} ${seen}`)
        assert.deepEqual([again.headers.get('content-length'), again.headers.get('content-type')], [null, null])
      }
      assert.equal((await get(hub, path, { 'if-none-match': '"other"' })).text, first.text)
    }
    const tag = async (path: string): Promise<string | null> => (await get(hub, path)).headers.get('etag')
    assert.equal(
      new Set(
        await Promise.all(
          [
            '/api/openapi.json',
            '/api/openapi.yaml',
            '/api/openapi.json?title=x',
            '/api/openapi.json?includeDisabled=true',
            '/api/openapi.json?servers=fake',
            '/api/g-1/openapi.json'
          ].map(tag)
        )
      ).size,
      6
    )
  })

  await t.test('documents follow toggles, descriptions, new tools, disconnects and connects', async () => {
    const now = async (): Promise<Json> => await document(hub)
    const before = String((await get(hub, '/api/openapi.json')).headers.get('etag'))
    await edit(
      hub,
      (file) => {
        ;(file.mcpServers as Record<string, Json>).other = { url: other.url, tools: { second: { description: 'Said by an admin' } } }
      },
      async () => ids(await now()).includes('other_other')
    )
    assert.equal(at(await now(), 'paths', '/tools/other/second', 'get', 'description'), 'Said by an admin')
    assert.equal((await get(hub, '/api/openapi.json', { 'if-none-match': before })).status, 200)
    other.options = { ...other.options, tools: [tool('other'), tool('second'), tool('third')] }
    await other.broadcast('notifications/tools/list_changed')
    await until(async () => ids(await now()).includes('other_third'), 'the new tool never came')
    await edit(
      hub,
      (file) => {
        ;(file.mcpServers as Record<string, Json>).other = { url: other.url, enabled: false }
      },
      async () => !ids(await now()).some((id) => id.startsWith('other_'))
    )
    assert.deepEqual(JSON.parse((await get(hub, '/api/openapi/servers')).text), { success: true, data: ['fake'] })
    await edit(
      hub,
      (file) => {
        ;(file.mcpServers as Record<string, Json>).other = { url: other.url, keepAliveInterval: 1_000 }
      },
      async () => ids(await now()).includes('other_third')
    )
    await other.close()
    await until(async () => !ids(await now()).some((id) => id.startsWith('other_')), 'the lost server stayed')
    await other.listen()
    await until(async () => ids(await now()).includes('other_third'), 'the server never came back')
  })
})

test('YAML of numbers that readers of YAML 1.1 take for numbers, too', async () => {
  // Their numbers with an exponent have a dot.
  const number = /^of: [-+]?\d+(\.\d+([eE][-+]\d+)?)?$/
  for (const value of [1e21, -1e21, 1e-7, -1.5e-7, 1.25e300, 5e-324, 0, 12, -0.5]) {
    const text = notations.yaml.members({ of: value }, 0)
    assert.equal(at(parse(text), 'of'), value)
    assert.match(text.trim(), number)
  }
})

test('YAML of what is deep is not much longer than JSON', async () => {
  const odd = { 'é\u2028 "k"': ['\ud800\u0085', 1e30, null, true, {}, []] }
  const deep = Array.from({ length: 400 }).reduce<Json>(
    (inner, _, n) => (n % 2 === 0 ? { type: 'object', properties: { [`p${n}`]: inner } } : { type: 'array', items: inner }),
    odd
  )
  const yaml = notations.yaml.members(deep, 0)
  assert.ok(yaml.length < 3 * JSON.stringify(deep).length, `${yaml.length} characters`)
  assert.deepEqual(parse(yaml), JSON.parse(JSON.stringify(deep).replace('\\ud800', '\ufffd')))
})

test('names of every kind work in paths, and operations are never confused', async (t) => {
  const odd = [
    'with space',
    'dots.in.it',
    '.hidden',
    '...',
    'slash/inside',
    'per%cent',
    'a%2Fb',
    'question?',
    'hash#',
    'plus+and&',
    'semi;colon',
    'brace{d}',
    'naïve',
    '工具',
    'инструмент',
    '🛠️',
    '"quoted"',
    "it's",
    'back\\slash',
    '__proto__',
    'constructor',
    '~1',
    'x'.repeat(1_500)
  ]
  const unnameable = ['.', '..', '\ud800']
  const fake = await startUpstream(t, {
    tools: [...odd, ...unnameable].map((name) => tool(name, object({ v: { type: 'string' } }))),
    on: echoArguments
  })
  const first = await startUpstream(t, { tools: [tool('c'), tool('b_c')], on: echoArguments })
  const mcpServers = { 'сервер 1.x': { url: fake.url }, a_b: { url: first.url }, a: { url: first.url }, users: { url: first.url } }
  const hub = await startHub(t, { settings: settings(mcpServers) })
  await connected(hub, 4)
  const whole = await document(hub)
  await valid(whole)
  assert.deepEqual(parse((await get(hub, '/api/openapi.yaml')).text), whole)
  const named = operations(whole).filter(({ server }) => server === 'сервер 1.x')
  assert.deepEqual(named.map(({ id }) => id.replace('сервер 1.x_', '')), odd)
  for (const [n, operation] of named.entries()) {
    const answer = await run(hub, whole, operation, true)
    assert.equal(answer.status, 200, `${operation.path}: ${answer.text}`)
    assert.deepEqual(at(JSON.parse(answer.text), 'structuredContent'), { tool: odd[n], args: { v: 'text' } }, operation.path)
  }
  // a_b + c and a + b_c would both be a_b_c.
  const others = operations(whole).filter(({ server }) => server === 'a_b' || server === 'a')
  assert.equal(new Set(others.map(({ id }) => id)).size, 4)
  assert.deepEqual(others.slice(0, 3).map(({ id }) => id), ['a_b_c', 'a_b_b_c', 'a_c'])
  assert.match(String(others[3]?.id), /^a_b_c_[0-9a-f]{8}$/)
  for (const operation of others) {
    assert.equal(
      at(JSON.parse((await run(hub, whole, operation, true)).text), 'structuredContent', 'tool'),
      operation.path.split('/').at(-1),
      operation.id
    )
  }
  assert.deepEqual(ids(await document(hub)), ids(whole))
  // Not taken for a user.
  const users = await document(hub, '/api/users/openapi.json')
  assert.deepEqual(ids(users), ['users_c', 'users_b_c'])
  assert.deepEqual(parse((await get(hub, '/api/users/openapi.yaml')).text), users)
  for (const operation of operations(users)) assert.equal((await run(hub, users, operation, true)).status, 200)
})

// ---- tools over plain HTTP -------------------------------------------------------------------------

test('tools over plain HTTP', async (t) => {
  const typed = {
    n: { type: 'integer' },
    x: { type: 'number' },
    b: { type: 'boolean' },
    s: { type: 'string' },
    l: { type: 'array', items: { type: 'integer' } },
    w: { type: 'array', items: { type: 'string' } },
    o: { type: 'object' },
    m: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
    e: { enum: [1, 2] },
    z: { type: ['string', 'integer'] }
  }
  const seen: Call[] = []
  let result = ''
  const fake = await startUpstream(t, {
    tools: [
      tool('odd'),
      tool('typed', object(typed)),
      tool(
        'strict',
        object(
          { q: { type: 'string', minLength: 2, pattern: '^[a-z]+$' }, n: { type: 'integer', maximum: 5 } },
          { required: ['q'], additionalProperties: false }
        )
      ),
      tool('group', object({ group: { type: 'string' }, token: { type: 'string' }, limit: { type: 'integer' } })),
      tool('slow'),
      tool('hang'),
      tool('refuse'),
      tool('fail'),
      tool('raw'),
      tool('off'),
      tool('evil', object({ p: { type: 'string', pattern: '^(a+)+$' }, q: { type: 'string', pattern: 'a*a*a*a*b' } })),
      tool(
        'digits',
        object(
          { u: { type: 'string', pattern: '^\\d+$' }, c: { type: 'string', pattern: '^C' } },
          { patternProperties: { '^x-': { type: 'string' } }, additionalProperties: false }
        )
      ),
      tool(
        'sized',
        object({
          u: { anyOf: [{ type: 'number' }, { type: 'string', pattern: '^\\d+(px|%)$' }] },
          v: { anyOf: [{ type: 'integer' }, { type: 'string', minLength: 3 }] },
          s: { type: 'string' },
          any: {}
        })
      ),
      tool(
        'tuple',
        object(
          { z: { type: 'string' }, t: { type: 'array', items: [{ type: 'string' }, { type: 'number' }] } },
          { required: ['z'], additionalProperties: false }
        )
      ),
      tool(
        'parts',
        object(
          {
            z: { type: 'integer', exclusiveMinimum: true },
            n: { type: 'integer', maximum: 5 },
            k: { $ref: '#/$defs/Kind' },
            gone: { $ref: 'https://elsewhere.example/schema' }
          },
          { required: ['n'], additionalProperties: false, $defs: { Kind: { enum: ['x', 'y'] } } }
        )
      ),
      tool(
        'inherited',
        object({ constructor: { type: 'string' }, toString: { type: 'string' }, valueOf: { type: 'integer' } }, { required: ['valueOf'] })
      ),
      tool('prototype', JSON.parse('{"inputSchema":{"type":"object","properties":{"__proto__":{"type":"string"}},"required":["__proto__"]}}') as Json),
      tool('nested', JSON.parse(`{"inputSchema":{"type":"object","properties":{"list":{"items":{"$ref":"#/$defs/One"}}},"$defs":{"One":{
        "properties":{"__proto__":{"maximum":3},"properties":{"enum":[{"properties":{"__proto__":1}}]}},"additionalProperties":false}}}}`) as Json),
      tool('broken', { inputSchema: { type: 'object', properties: { a: { $ref: 'https://elsewhere.example/schema' } } } }),
      tool('old', {
        inputSchema: {
          $schema: 'http://json-schema.org/draft-07/schema#',
          type: 'object',
          properties: { pair: { type: 'array', items: [{ type: 'integer' }, { type: 'string' }], additionalItems: false } }
        }
      })
    ],
    async on (call) {
      if (call.method !== 'tools/call') return undefined
      seen.push(call)
      switch (call.params.name) {
        case 'fail':
          return { content: [{ type: 'text', text: 'it failed' }], isError: true }
        case 'odd':
          return new Raw(result)
        case 'refuse':
          return new Refusal(-32000, 'not today, canary-4242-secret')
        case 'raw':
          return new Raw('{ "content": [], "big": 12345678901234567890, "huge": 1e400, "__proto__": {"x":1}, "last":"\\u00e9" }')
        case 'slow':
          await sleep(3_000)
          return { content: [] }
        case 'hang':
          return 'never'
        default:
          return echoArguments(call)
      }
    }
  })
  const hub = await startHub(t, {
    settings: settings({
      fake: {
        url: fake.url,
        headers: { 'X-Secret': 'canary-4242-secret' },
        tools: { off: { enabled: false } },
        options: { timeout: 1_500 }
      },
      away: { url: 'http://127.0.0.1:9/mcp' },
      disabled: { url: fake.url, enabled: false }
    })
  })
  await connected(hub, 1)
  const args = (answer: { status: number; text: string }): unknown => {
    assert.equal(answer.status, 200, answer.text)
    return at(JSON.parse(answer.text), 'structuredContent', 'args')
  }
  const typedGet = async (query: string): Promise<{ status: number, text: string }> => await get(hub, `/api/tools/fake/typed?${query}`)

  await t.test('texts become what the schema says', async () => {
    const table: Array<[string, unknown]> = [
      ['n=7&x=-1.5e3&b=true&s=7', { n: 7, x: -1500, b: true, s: '7' }],
      ['n=-0&b=1', { n: 0, b: true }],
      ['n=1.0', { n: 1 }],
      ['n=1e2', { n: 100 }],
      ['n=-1.50E%2B1', { n: -15 }],
      ['n=2500e-2&m=0.0', { n: 25, m: 0 }],
      ['l=1.0,2e0', { l: [1, 2] }],
      ['b=0', { b: false }],
      ['b=false', { b: false }],
      ['n=9007199254740991', { n: 9007199254740991 }],
      ['l=1,2,3', { l: [1, 2, 3] }],
      ['l=1&l=2', { l: [1, 2] }],
      ['l=%5B1%5D', { l: [1] }],
      ['l=', { l: [] }],
      ['w=a&w=b,c', { w: ['a', 'b,c'] }],
      ['w=a', { w: ['a'] }],
      ['o=%7B%22k%22%3A%5B1%5D%7D', { o: { k: [1] } }],
      ['m=5', { m: 5 }],
      ['m=null', { m: null }],
      ['e=2', { e: 2 }],
      ['z=5', { z: '5' }],
      ['s=a+b%20c%2B&s2=&other=x&other=y', { s: 'a b c+', s2: '', other: ['x', 'y'] }],
      ['token=t&constructor=c&toString=s&__proto__=p', JSON.parse('{"token":"t","constructor":"c","toString":"s","__proto__":"p"}')]
    ]
    for (const [query, expected] of table) assert.deepEqual(args(await typedGet(query)), expected, query)
    assert.deepEqual(args(await post(hub, '/api/tools/fake/typed', { n: '7', x: 1, l: '1,2', o: { n: '7' }, extra: { deep: [1, 'a'] } })), {
      n: 7,
      x: 1,
      l: [1, 2],
      o: { n: '7' },
      extra: { deep: [1, 'a'] }
    })
    assert.deepEqual(args(await get(hub, '/api/tools/fake/group?group=mine&token=secret&limit=3')), {
      group: 'mine',
      token: 'secret',
      limit: 3
    })
    assert.deepEqual(args(await get(hub, '/api/tools/fake/strict?q=ab&n=5')), { q: 'ab', n: 5 })
    assert.deepEqual(args(await get(hub, '/api/tools/fake/old?pair=%5B1,%22a%22%5D')), { pair: [1, 'a'] })
    assert.deepEqual(args(await get(hub, '/api/tools/fake/inherited?valueOf=1')), { valueOf: 1 })
    for (const [path, body] of [
      ['prototype', '{"__proto__":"a"}'], ['nested', '{"list":[{"__proto__":2,"properties":{"properties":{"__proto__":1}}}]}']
    ] as const) assert.deepEqual(args(await post(hub, `/api/tools/fake/${path}`, body)), JSON.parse(body), path)
    assert.deepEqual(args(await get(hub, '/api/tools/fake/sized?u=5&v=7&s=8&any=9')), { u: 5, v: 7, s: '8', any: '9' })
    assert.deepEqual(args(await get(hub, '/api/tools/fake/sized?u=5px&v=700')), { u: '5px', v: '700' })
    assert.deepEqual(args(await get(hub, '/api/tools/fake/tuple?z=1&t=%5B%22a%22,1%5D')), { z: '1', t: ['a', 1] })
    assert.deepEqual(args(await get(hub, '/api/tools/fake/parts?n=5&k=x&z=1&gone=any')), { n: 5, k: 'x', z: 1, gone: 'any' })
    // Each schema has patterns of its own, whichever were compiled before.
    assert.deepEqual(args(await get(hub, '/api/tools/fake/digits?u=12&c=C&x-a=1')), { u: '12', c: 'C', 'x-a': '1' })
    for (const body of ['', '{}', ' ']) assert.deepEqual(args(await post(hub, '/api/tools/fake/typed', body)), {})
    assert.deepEqual(
      args(
        await fetch(`${hub.url}/api/tools/fake/typed`, { method: 'POST' }).then(async (reply) => ({
          status: reply.status,
          text: await reply.text()
        }))
      ),
      {}
    )
    // What the gateway cannot check, the upstream does.
    assert.deepEqual(args(await post(hub, '/api/tools/fake/broken', { a: 1 })), { a: 1 })
    for (const evil of [{ p: `${'a'.repeat(60)}b` }, { q: 'a'.repeat(20_000) }]) {
      assert.deepEqual(args(await within('a pattern that takes for ever', post(hub, '/api/tools/fake/evil', evil))), evil)
    }
  })

  await t.test(
    'a schema that takes for ever is left to the upstream, whatever makes it so, and for a while it is not tried again',
    async (t) => {
      const chain = Object.fromEntries(
        Array.from({ length: 40 }, (_, n) => [`d${n}`, { allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] }])
      )
      const long = Array.from({ length: 4_000 }, (_, n) => n)
      const hostile = await startUpstream(t, {
        tools: [
          tool('groups', object({ a: { type: 'string', pattern: '^((a+)(a*))+$' } })),
          tool('optional', object({ a: { type: 'string', pattern: '^(a?){40}a{40}$' } })),
          tool('doubled', object({ a: { $ref: '#/$defs/d0' } }, { $defs: { ...chain, d40: { type: 'string' } } })),
          tool(
            'recursive',
            object(
              { a: { $ref: '#/$defs/n' } },
              {
                $defs: {
                  n: {
                    anyOf: [
                      { properties: { c: { $ref: '#/$defs/n' } }, required: ['x'] },
                      { properties: { c: { $ref: '#/$defs/n' } }, required: ['x'] }
                    ]
                  }
                }
              }
            )
          ),
          tool(
            'items',
            object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: { allOf: Array.from({ length: 300 }, () => ({ $ref: '#/$defs/a' })) } } })
          ),
          tool(
            'links',
            object(Object.fromEntries(long.map((n) => [`p${n}`, { $ref: `#/$defs/d${n}` }])), {
              $defs: {
                ...Object.fromEntries(long.map((n) => [`d${n}`, { $ref: `#/$defs/d${n + 1}` }])),
                [`d${long.length}`]: { type: 'string' }
              }
            })
          ),
          tool('good', object({ n: { type: 'integer' } }))
        ],
        on: echoArguments
      })
      const hub = await startHub(t, { settings: settings({ hostile: { url: hostile.url } }) })
      await connected(hub, 1)
      let deep: Json = {}
      for (let n = 0; n < 25; n++) deep = { c: deep }
      const table: Array<[string, Json]> = [
        ['groups', { a: `${'a'.repeat(40)}!` }],
        ['optional', { a: `${'a'.repeat(45)}!` }],
        ['doubled', { a: 'x' }],
        ['recursive', { a: deep }],
        ['items', { a: ['1', '2'] }]
      ]
      for (const [name, given] of table) {
        assert.deepEqual(args(await within(name, post(hub, `/api/tools/hostile/${name}`, given))), given)
        assert.deepEqual(args(await post(hub, `/api/tools/hostile/${name}`, given)), given)
      }
      // Others are validated again once their owner's CPU time allows.
      await until(async () => (await get(hub, '/api/tools/hostile/good?n=x')).status === 400)
      assert.deepEqual(
        args(
          await within('a list for the management API',
            post(hub, '/api/tools/call/hostile', { toolName: 'items', arguments: { a: ['1'] } }, { authorization: `Bearer ${KEY}` }).then(
              (answer) => ({ ...answer, text: JSON.stringify(at(JSON.parse(answer.text), 'data')) })
            )
          )
        ),
        { a: ['1'] }
      )
      const whole = await within('a document with a chain of references', document(hub, '/api/hostile/openapi.json'))
      assert.deepEqual(at(whole, 'paths', '/tools/hostile/links', 'post', 'requestBody', 'content', 'application/json', 'schema'), {
        type: 'object',
        additionalProperties: { description: 'The arguments of the tool' }
      })
    }
  )

  await t.test('the result comes as the tool gave it, to the byte', async () => {
    for (const answer of [await get(hub, '/api/tools/fake/raw'), await post(hub, '/api/tools/fake/raw', {})]) {
      assert.deepEqual(
        [answer.status, answer.text],
        [200, '{ "content": [], "big": 12345678901234567890, "huge": 1e400, "__proto__": {"x":1}, "last":"\\u00e9" }']
      )
    }
    const failed = await get(hub, '/api/tools/fake/fail')
    assert.deepEqual(
      [failed.status, JSON.parse(failed.text), failed.headers.get('cache-control'), failed.headers.get('content-type')],
      [200, { content: [{ type: 'text', text: 'it failed' }], isError: true }, 'no-store', 'application/json; charset=utf-8']
    )
  })

  await t.test('... on the management API, too, and so do the arguments', async () => {
    const call = async (body: string, server = 'fake'): Promise<{ status: number; text: string }> =>
      await post(hub, `/api/tools/call/${server}`, body, { authorization: `Bearer ${KEY}` })
    const raw = async (text: string): Promise<{ status: number; text: string }> => {
      result = text
      return await call('{"toolName":"odd"}')
    }
    const said = (text: string): string => `{"success":true,"data":{${text},"toolName":"odd","arguments":{}}}`
    for (const members of [
      '"content":{"a":1}',
      '"content":["abc",5,null]',
      '"content":[],"structuredContent":[1,2,3]',
      '"structuredContent":"text"',
      '"structuredContent":null',
      '"isError":"yes"',
      '"content":[],"big":12345678901234567890,"huge":1e400,"_meta":{"x":1}'
    ]) {
      assert.deepEqual(await raw(`{${members}}`), { status: 200, text: said(members) })
    }
    assert.equal(
      (await raw('{ "toolName": "mine", "content": [] }')).text,
      '{"success":true,"data":{"toolName": "odd","content": [],"arguments":{}}}'
    )
    for (const text of ['5', 'null', '"text"', '[]']) {
      assert.deepEqual([(await raw(text)).status, at(JSON.parse((await raw(text)).text), 'code')], [502, 'TH_UPSTREAM_FAILED'], text)
    }
    seen.length = 0
    for (const [body, status, says] of [
      ['{"toolName":"typed","arguments":{"n":12345678901234567890}}', 400, /12345678901234567890/],
      ['{"toolName":"typed","arguments":{"x":1e400}}', 400, /1e400/],
      ['{bad', 400, /JSON/],
      ['[]', 400, /./],
      ['', 400, /toolName/]
    ] as const) {
      const answer = await call(body)
      assert.equal(answer.status, status, answer.text)
      assert.match(String(at(JSON.parse(answer.text), 'message')), says)
      assert.equal((await call(body, 'nope')).status, 404, body)
    }
    assert.equal(
      (await post(hub, '/api/tools/call/nope', 'x', { authorization: `Bearer ${KEY}`, 'content-type': 'text/plain' })).status,
      404
    )
    assert.equal(seen.length, 0)
  })

  await t.test('on the management API arguments are converted for a server that is still connecting, too', async (t) => {
    const slow = await startUpstream(t, {
      tools: [tool('typed', object(typed))],
      on: async (call) => {
        if (call.method === 'initialize') await sleep(1_500)
        return await echoArguments(call)
      }
    })
    const headers = { authorization: `Bearer ${KEY}` }
    assert.equal((await post(hub, '/api/servers', { name: 'slow', config: { url: slow.url } }, headers)).status, 200)
    const answer = await post(
      hub,
      '/api/tools/call/slow',
      { toolName: 'typed', arguments: { n: '5', b: 'true', l: '1,2', s: '5' } },
      headers
    )
    assert.deepEqual(at(JSON.parse(answer.text), 'data', 'structuredContent', 'args'), { n: 5, b: true, l: [1, 2], s: '5' }, answer.text)
  })

  await t.test('bad input gets a clear error and never reaches the upstream', async () => {
    seen.length = 0
    const table: Array<[string, RegExp]> = [
      ['typed?n=abc', /\bn\b.*integer/],
      ['typed?n=1.5', /integer/],
      ['typed?n=1.05e1', /integer/],
      ['typed?n=1e-1', /integer/],
      ['typed?n=9007199254740990.9', /integer/],
      ['typed?n=1e400', /n is too large to be passed on exactly/],
      ['typed?n=NaN', /\bn\b/],
      ['typed?n=9007199254740993', /n is too large to be passed on exactly/],
      ['typed?n=9007199254740993.0', /n is too large/],
      ['typed?l=1,-9007199254740993', /l\.1 is too large/],
      ['typed?n=', /\bn\b/],
      ['typed?n=1&n=2', /\bn\b/],
      ['typed?n=0x10', /\bn\b/],
      ['typed?x=NaN', /\bx\b.*number/],
      ['typed?x=Infinity', /\bx\b/],
      ['typed?x=-Infinity', /\bx\b/],
      ['typed?x=1e400', /x is too large/],
      ['typed?x=12345678901234567890', /x is too large/],
      ['typed?x=1,5', /\bx\b/],
      ['typed?x=1&x=2', /\bx\b/],
      ['typed?b=yes', /\bb\b.*boolean/],
      ['typed?b=TRUE', /\bb\b/],
      ['typed?b=', /\bb\b/],
      ['typed?b=true&b=false', /\bb\b/],
      ['typed?s=a&s=b', /\bs\b.*string/],
      ['typed?l=1,a', /l\.1.*integer/],
      ['typed?o=%7Bx', /\bo\b.*object/],
      ['typed?o=%7B%22k%22:1e400%7D', /\bo\b/],
      ['typed?o=%5B%5D', /\bo\b/],
      ['typed?e=3', /\be\b.*1, 2/],
      ['typed?m=x', /\bm\b/],
      ['strict', /\bq\b.*required/],
      ['strict?q=a', /\bq\b/],
      ['strict?q=AB', /\bq\b.*pattern/],
      ['strict?q=ab&n=6', /\bn\b.*5/],
      ['strict?q=ab&extra=1', /extra.*not known/],
      ['strict?q=a&n=x&extra=1', /(?=.*\bq\b)(?=.*\bn\b)(?=.*extra)/],
      ['sized?u=5em', /\bu\b/],
      ['sized?v=ab', /\bv\b/],
      ['tuple', /z.*required/],
      ['tuple?z=1&bogus=2', /bogus.*not known/],
      ['tuple?z=1&t=%5B1,1%5D', /t\.0.*string/],
      ['parts', /n.*required/],
      ['parts?n=6', /\bn\b.*5/],
      ['parts?n=1&k=z', /\bk\b/],
      ['parts?n=1&bogus=2', /bogus.*not known/],
      ['digits?u=ab', /\bu\b.*pattern/],
      ['digits?c=12', /\bc\b.*pattern/],
      ['digits?y-a=1', /y-a.*not known/],
      ['inherited', /valueOf.*required/],
      ['inherited?valueOf=1&constructor=a&constructor=b', /constructor.*string/],
      ['old?pair=%5B1,2%5D', /pair/],
      ['old?pair=%5B1,%22a%22,3%5D', /pair/],
      ['typed?s=%ZZ', /percent/],
      ['typed?s=%ff', /percent/]
    ]
    for (const [path, says] of table) refused(await get(hub, `/api/tools/fake/${path}`), 400, says)
    for (const [path, body, says] of [
      ['prototype', '{"__proto__":5}', /__proto__ must be string/],
      ['prototype', '{"a":"b"}', /__proto__ is required/],
      ['nested', '{"list":[{"__proto__":4}]}', /list\.0\.__proto__ must be <= 3/],
      ['nested', '{"list":[{"other":4}]}', /other is not known/],
      ['nested', '{"list":[{"properties":{"properties":{"__proto__":2}}}]}', /list\.0\.properties must be one of/],
      ['strict', '{"q":"ab","n":5,"__proto__":5}', /__proto__ is not known/]
    ] as const) refused(await post(hub, `/api/tools/fake/${path}`, body), 400, says)
    const bodies: Array<[string, number, RegExp]> = [
      ['[]', 400, /object/],
      ['null', 400, /object/],
      ['7', 400, /object/],
      ['"text"', 400, /object/],
      ['{', 400, /JSON/],
      ['{"n":1e400}', 400, /1e400/],
      ['{"n":12345678901234567890}', 400, /12345678901234567890/],
      ['{"deep":[{"n":-12345678901234567890}]}', 400, /12345678901234567890/],
      ['{"n":true}', 400, /\bn\b/],
      ['{"n":[1]}', 400, /\bn\b/],
      ['{"s":1}', 400, /\bs\b/],
      ['{"o":[]}', 400, /\bo\b/],
      [`{"o":{"a":${'['.repeat(300)}${']'.repeat(300)}}}`, 400, /nested/],
      [`{"s":"${'x'.repeat(1_100_000)}"}`, 413, /larger/],
      ...[300, 3_000, 20_000].map((levels): [string, number, RegExp] => [
        JSON.stringify({ o: `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}` }),
        400,
        /\bo\b.*object/
      ])
    ]
    for (const [body, status, says] of bodies) refused(await post(hub, '/api/tools/fake/typed', body), status, says)
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      refused(await post(hub, '/api/tools/fake/typed', '{"n":1}', { 'content-type': type }), 415)
    }
    const page = { 'sec-fetch-site': 'cross-site' }
    const foreign: Array<Record<string, string>> = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      page,
      { ...page, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
      { 'sec-purpose': 'prefetch' },
      { 'sec-purpose': 'prefetch;prerender' },
      { purpose: 'prefetch' },
      { host: 'evil.example' }
    ]
    for (const headers of foreign) {
      for (const method of ['GET', 'POST']) {
        const answer = await plain(`http://127.0.0.1:${hub.port}/api/tools/fake/typed`, { method, headers })
        refused({ status: answer.status, text: answer.body }, 403)
        if (headers.host === undefined) assert.equal(answer.headers['cache-control'], 'no-store')
      }
    }
    for (const method of ['HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'QUERY']) {
      const answer = await plain(`http://127.0.0.1:${hub.port}/api/tools/fake/typed`, { method }).catch(() => ({ status: 400 }))
      assert.ok(answer.status >= 400 && answer.status < 500, `${method}: ${answer.status}`)
    }
    assert.deepEqual(seen.map(({ params }) => params), [])
    assert.equal((await get(hub, '/api/tools/fake/typed', { origin: hub.url, 'sec-fetch-site': 'same-origin' })).status, 200)
    assert.equal(seen.length, 1)
  })

  await t.test('what is not there, hidden or disabled is all the same', async () => {
    seen.length = 0
    const answers = new Set<string>()
    for (const path of [
      'fake/nope',
      'fake/off',
      'fake/fake-typed',
      'nope/typed',
      'disabled/typed',
      'call/typed',
      '__proto__/typed',
      'fake/..%2Ffake'
    ]) {
      for (const answer of [
        await get(hub, `/api/tools/${path}`),
        await post(hub, `/api/tools/${path.replace('call/', 'calls/')}`, '{"n":"x"')
      ]) {
        refused(answer, 404)
        answers.add(answer.text)
      }
    }
    // Another method than those that run it is a path without a route, in the words of these routes.
    for (const method of ['PUT', 'DELETE', 'PATCH']) {
      for (const path of ['/api/tools/fake/typed', '/api/fake/tools/fake/typed/', '/api/fake/openapi.json', '/api/openapi/stats']) {
        const { status, body } = await plain(`${hub.url}${path}?x=1`, { method })
        refused({ status, text: body }, 404)
        assert.deepEqual(Object.keys(JSON.parse(body) as object), ['success', 'error', 'message'])
      }
      const { status, body } = await plain(`${hub.url}/api/tools/call/fake`, { method })
      assert.deepEqual([status, at(JSON.parse(body), 'code'), at(JSON.parse(body), 'error')], [404, 'TH_NOT_FOUND', undefined])
    }
    assert.equal(answers.size, 1, [...answers].join('\n'))
    assert.equal(seen.length, 0)
  })

  await t.test('an upstream that fails is 502, one that is slow 504', async () => {
    const told = await get(hub, '/api/tools/fake/refuse')
    refused(told, 502, /not today/)
    assert.ok(!told.text.includes('4242'), told.text)
    refused(await within('the deadline', get(hub, '/api/tools/fake/hang')), 504)
    refused(await within('the patience', get(hub, '/api/tools/away/any')), 502, /away/)
  })

  await t.test('a caller that goes away cancels its call', async () => {
    const gone = new AbortController()
    const before = fake.received.filter(({ message }) => message.method === 'notifications/cancelled').length
    const asking = fetch(`${hub.url}/api/tools/fake/slow`, { signal: gone.signal }).catch(() => {})
    await until(() => seen.some(({ params }) => params.name === 'slow'))
    gone.abort()
    await asking
    await until(
      () => fake.received.filter(({ message }) => message.method === 'notifications/cancelled').length > before,
      'the upstream never heard of it'
    )
  })
})

// ---- who reaches what ------------------------------------------------------------------------------

test('credentials are optional: each caller reaches what it may, and the rest is not there', async (t) => {
  const fake = await startUpstream(t, { tools: [tool('echo')], on: echoArguments })
  const at1 = (more: Json): Json => ({ url: fake.url, ...more })
  const third = `thk_${'c'.repeat(64)}`
  const fourth = `thk_${'d'.repeat(64)}`
  const fifth = `thk_${'e'.repeat(64)}`
  const file = settings({
    shared: at1({ visibility: 'public', owner: 'ann' }),
    defaulted: at1({}),
    ofadmin: at1({ owner: 'root', visibilityDefaulted: true, visibility: 'private' }),
    shut: at1({ visibility: 'private' }),
    grouped: at1({ visibility: 'group', owner: 'root' }),
    anns: at1({ owner: 'ann', visibility: 'private' }),
    annsnew: at1({ owner: 'ann' }),
    bobs: at1({ owner: 'bob', visibility: 'private' })
  }, {
    users: [{ username: 'root', password: 'x', isAdmin: true }, { username: 'ann', password: 'x' }, { username: 'bob', password: 'x' }],
    groups: [{ id: 'g-shut', name: 'closed', servers: ['shut', 'bobs'] }, { id: 'g-mixed', name: 'mixed', servers: ['shut', 'shared'] }]
  })
  const keys = [
    ...file.bearerKeys as Json[],
    otherKey({ kind: 'user', owner: 'ann' }),
    otherKey({ id: '33333333-3333-4333-8333-333333333333', token: third, accessType: 'servers', allowedServers: ['shut', 'bobs'] }),
    otherKey({ id: '44444444-4444-4444-8444-444444444444', token: fourth, accessType: 'groups', allowedGroups: ['closed'] }),
    otherKey({ id: '55555555-5555-4555-8555-555555555555', token: fifth, enabled: false })
  ]
  // Admins' servers first, then users'.
  const every = ['defaulted', 'ofadmin', 'shut', 'grouped', 'shared', 'anns', 'annsnew', 'bobs']
  const inOrder = (names: string[]): string[] => every.filter((name) => names.includes(name))
  const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` })
  const anyone = { default: ['defaulted', 'ofadmin', 'shared'], public: ['shared'], all: every, off: [] }

  for (const reach of ['default', 'public', 'all', 'off'] as const) {
    await t.test(`PUBLIC_TOOLS=${reach}`, async (t) => {
      const hub = await startHub(t, { env: { PUBLIC_TOOLS: reach }, settings: { ...file, bearerKeys: keys } })
      await connected(hub, every.length)
      await until(() => hub.output().includes('open to anyone'), 'nothing was told of what is open')
      assert.match(
        hub.output(),
        new RegExp(
          `open to anyone, without credentials: ${anyone[reach].length}, of ${anyone[reach].length} servers .PUBLIC_TOOLS=${reach}`
        )
      )
      const nobody: Array<Record<string, string>> = [
        {},
        bearer('nope'),
        bearer(fifth),
        { 'x-auth-token': 'nope' },
        { authorization: 'Basic abc' }
      ]
      const callers: Array<[Record<string, string>, string[]]> = [
        ...nobody.map((headers): [Record<string, string>, string[]] => [headers, anyone[reach]]),
        [bearer(KEY), every],
        [bearer(OTHER), inOrder([...anyone[reach], 'shared', 'anns', 'annsnew'])],
        [bearer(third), inOrder([...anyone[reach], 'shut', 'bobs'])],
        [bearer(fourth), anyone[reach]]
      ]
      for (const [headers, names] of callers) {
        const closed = reach === 'off' && nobody.includes(headers)
        if (closed) {
          for (const path of [
            '/api/openapi.json',
            '/api/openapi.yaml',
            '/api/openapi/servers',
            '/api/openapi/stats',
            '/api/shared/openapi.json',
            '/api/tools/shared/echo',
            '/api/nope/openapi.json'
          ]) { refused(await get(hub, path, headers), 404) }
          continue
        }
        const whole = await document(hub, '/api/openapi.json', headers)
        if (headers === nobody[0]) await valid(whole)
        assert.deepEqual(operations(whole).map(({ server }) => server), names)
        assert.deepEqual(at(whole, 'tags'), names.map((name) => ({ name })))
        assert.deepEqual(JSON.parse((await get(hub, '/api/openapi/servers', headers)).text), { success: true, data: names })
        assert.deepEqual(
          at(JSON.parse((await get(hub, '/api/openapi/stats', headers)).text), 'data', 'serverBreakdown'),
          names.map((name) => ({ name, toolCount: 1, status: 'connected' }))
        )
        assert.equal((await document(hub, `/api/openapi.json?servers=${every.join()}`, headers)).paths !== undefined, true)
        for (const operation of operations(whole)) assert.equal((await run(hub, whole, operation, true, headers)).status, 200, operation.id)
        const [noTool, noDocument] = [
          (await get(hub, '/api/tools/nowhere/echo', headers)).text,
          (await get(hub, '/api/nowhere/openapi.json', headers)).text
        ]
        for (const name of every) {
          const [called, described] = [
            await get(hub, `/api/tools/${name}/echo`, headers),
            await get(hub, `/api/${name}/openapi.json`, headers)
          ]
          assert.deepEqual(
            [called.status, described.status],
            names.includes(name) ? [200, 200] : [404, 404],
            `${name} ${JSON.stringify(headers)}`
          )
          if (!names.includes(name)) assert.deepEqual([called.text, described.text], [noTool, noDocument])
        }
      }
      if (reach === 'all') return
      // A group shows what its caller may see, and is not there where that is nothing; a key for the group opens it.
      const of = async (name: string, headers: Record<string, string>): Promise<string[] | number> => {
        const answer = await get(hub, `/api/${name}/openapi.json`, headers)
        return answer.status === 200 ? operations(JSON.parse(answer.text)).map(({ server }) => server) : answer.status
      }
      assert.deepEqual(
        [await of('closed', {}), await of('mixed', {}), await of('closed', bearer(OTHER)), await of('mixed', bearer(OTHER))],
        [404, reach === 'off' ? 404 : ['shared'], 404, ['shared']]
      )
      assert.deepEqual(
        [await of('closed', bearer(fourth)), await of('mixed', bearer(fourth)), await of('closed', bearer(third))],
        [['shut', 'bobs'], reach === 'off' ? 404 : ['shared'], ['shut', 'bobs']]
      )
      const group = await document(hub, '/api/closed/openapi.json', bearer(fourth))
      assert.equal((await get(hub, '/api/closed/tools/shut/echo', bearer(fourth))).status, 200)
      assert.equal((await get(hub, '/api/tools/shut/echo?group=closed', bearer(fourth))).status, 200)
      assert.equal(
        (
          await get(
            hub,
            new URL(`${String(at(group, 'paths', '/tools/shut/echo', 'servers', 0, 'url'))}/tools/shut/echo`, hub.url).pathname,
            bearer(fourth)
          )
        ).status,
        200
      )
      for (const path of ['/api/tools/shut/echo', '/api/mixed/tools/shut/echo', '/api/closed/tools/defaulted/echo']) {
        refused(await get(hub, path, bearer(fourth)), 404)
      }
      refused(await get(hub, '/api/closed/tools/shut/echo'), 404)
      // Not even a good token makes an argument a credential.
      assert.equal((await get(hub, `/api/tools/shut/echo?token=${KEY}`)).status, 404)
    })
  }
})

test('a login counts in x-auth-token, and a page that is allowed may call', async (t) => {
  const fake = await startUpstream(t, { tools: [tool('echo')], on: echoArguments })
  const hub = await startHub(t, {
    env: { ADMIN_PASSWORD: 'Open-Sesame-1', ALLOWED_ORIGINS: 'https://app.example' },
    settings: settings({ shut: { url: fake.url, visibility: 'private' }, open: { url: fake.url } })
  })
  await connected(hub, 2)
  let token: unknown
  await until(async () => {
    token = at(JSON.parse((await post(hub, '/api/auth/login', { username: 'admin', password: 'Open-Sesame-1' })).text), 'token')
    return typeof token === 'string'
  })
  assert.equal((await get(hub, '/api/tools/shut/echo', { 'x-auth-token': String(token) })).status, 200)
  assert.equal((await get(hub, `/api/tools/shut/echo?token=${String(token)}`)).status, 404)
  assert.deepEqual(at(JSON.parse((await get(hub, `/api/tools/open/echo?token=${String(token)}`)).text), 'structuredContent', 'args'), {
    token
  })
  assert.equal((await get(hub, '/api/tools/open/echo', { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' })).status, 200)
  const secured = await document(hub, '/api/openapi.json', { 'x-auth-token': String(token) })
  await valid(secured)
  assert.deepEqual(at(secured, 'security'), [{ bearerAuth: [] }, { login: [] }])
  assert.deepEqual(at(await document(hub), 'security'), [{}, { bearerAuth: [] }], 'without credentials, too')
})

test('what takes too long is stopped, and rests; what was only kept waiting is not', async () => {
  let runs = 0
  const spin = (time: number) => (): number => { runs++; for (const end = performance.now() + time; performance.now() < end;); return runs }
  const hands = {}
  assert.equal(timeBudgetOf(hands).run('quick', 500, spin(1)), 1)
  assert.equal(timeBudgetOf(hands).run('slow', 20, spin(60_000)), undefined)
  const before = runs
  assert.equal(timeBudgetOf(hands).run('slow', 500, spin(1)), undefined)
  assert.equal(runs, before, 'it is not begun again')
  assert.equal(timeBudgetOf(hands).run('other', 500, spin(1)), before + 1)
  assert.equal(timeBudgetOf({}).run('slow', 500, spin(1)), before + 2, 'other hands have nothing to do with it')
  // Stopped work is charged eight times its CPU time: the charge shows that a user's work was stopped after 20 ms, an admin's after 100.
  const left = (isPatient: boolean): number => {
    const budget = new CpuBudget({ isPatient })
    assert.equal(timeBudgetOf({}).run('a', 100, spin(60_000), budget), undefined)
    return budget.left
  }
  // Beside busy processes it is begun again, and stopped late: then it shows at another time.
  await until(() => left(false) > limits.schemaCpu.burst - 8 * 2 * limits.schemaCpu.validation, 'a user is charged for more')
  const patient = left(true)
  assert.ok(patient < limits.schemaCpu.burst / 2, `${patient}`)
  const deep = (): number => deep() + 1
  assert.equal(timeBudgetOf(hands).run('deep', 500, deep), undefined)
  assert.throws(() => timeBudgetOf(hands).run('wrong', 500, () => { throw new Error('of its own') }), /of its own/)
  for (let n = 0; n < 10; n++) timeBudgetOf(hands).run(`more ${n}`, 5, spin(60_000))
  assert.equal(timeBudgetOf(hands).run('quick', 500, spin(1)), undefined, 'of so many, nothing is begun')
})

test('a call that waits or runs when access is withdrawn ends without an answer of the tool', async (t) => {
  const fake = await startUpstream(t, {
    tools: [tool('slow')],
    on: async ({ method }) => {
      if (method === 'tools/call') {
        await sleep(3_000)
        return { content: [] }
      }
      return undefined
    }
  })
  const hub = await startHub(t, {
    env: { ADMIN_PASSWORD: 'Open-Sesame-1' },
    settings: settings({ one: { url: fake.url, visibility: 'public' }, two: { url: fake.url, visibility: 'public' } })
  })
  await connected(hub, 2)
  const admin = { authorization: `Bearer ${KEY}` }
  const change = async (method: string, path: string, body?: Json): Promise<void> => {
    const answer = await fetch(`${hub.url}${path}`, {
      method,
      headers: { ...admin, ...(body ? { 'content-type': 'application/json' } : {}) },
      body: body && JSON.stringify(body)
    })
    assert.ok(answer.ok, await answer.text())
  }
  await change('POST', '/api/users', { username: 'eve', password: 'Open-Sesame-2' })
  const login = {
    'x-auth-token': String(
      at(JSON.parse((await post(hub, '/api/auth/login', { username: 'eve', password: 'Open-Sesame-2' })).text), 'token')
    )
  }
  const begun = performance.now()
  const calls = [
    get(hub, '/api/tools/one/slow'),
    post(hub, '/api/tools/call/one', { toolName: 'slow' }, login),
    post(hub, '/api/tools/call/two', { toolName: 'slow' }, login),
    get(hub, '/api/tools/two/slow')
  ] as const
  await until(() => fake.received.filter(({ message }) => message.method === 'tools/call').length === 4)
  await change('PUT', '/api/servers/one', { config: { url: fake.url, visibility: 'private' } })
  refused(await calls[0], 404)
  assert.equal((await calls[1]).status, 404)
  await change('DELETE', '/api/users/eve')
  assert.equal((await calls[2]).status, 401)
  assert.ok(performance.now() - begun < 2_900, 'they were waited for')
  assert.equal((await calls[3]).status, 200, 'who may still call has the answer')
  assert.equal(fake.received.filter(({ message }) => message.method === 'notifications/cancelled').length, 3)
})

test('a tool that runs as a task only is run as one, and its result waited for', async (t) => {
  const heard: string[] = []
  let last = 0
  const fake = await startUpstream(t, {
    capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } },
    tools: [{ ...tool('research', object({ topic: { type: 'string' } })), execution: { taskSupport: 'required' } }],
    async on ({ method, params }) {
      if (method === 'tools/call') {
        if (params.task === undefined) return new Refusal(-32601, 'it runs as a task only')
        return {
          task: {
            taskId: `t${++last}`,
            status: 'working',
            createdAt: '2026-01-01T00:00:00Z',
            lastUpdatedAt: '2026-01-01T00:00:00Z',
            ttl: 60_000
          }
        }
      }
      if (method.startsWith('tasks/')) heard.push(`${method} ${String(params.taskId)}`)
      if (method === 'tasks/result') {
        await sleep(params.taskId === 't3' ? 5_000 : 100)
        return { content: [{ type: 'text', text: `of ${String(params.taskId)}` }] }
      }
      return method === 'tasks/cancel' ? { taskId: params.taskId, status: 'cancelled' } : undefined
    }
  })
  const hub = await startHub(t, { settings: settings({ one: { url: fake.url } }) })
  await connected(hub, 1)
  const [operation] = operations(await document(hub))
  assert.equal(operation?.path, '/tools/one/research')
  const text = (answer: { text: string }, ...path: string[]): unknown => at(JSON.parse(answer.text), ...path, 'content', 0, 'text')
  assert.equal(text(await get(hub, '/api/tools/one/research?topic=x')), 'of t1')
  assert.equal(
    text(
      await post(hub, '/api/tools/call/one', { toolName: 'research', arguments: { topic: 'x' } }, { authorization: `Bearer ${KEY}` }),
      'data'
    ),
    'of t2'
  )
  const gone = new AbortController()
  const asking = fetch(`${hub.url}/api/tools/one/research`, { signal: gone.signal }).catch(() => {})
  await until(() => heard.includes('tasks/result t3'))
  gone.abort()
  await asking
  await until(() => heard.includes('tasks/cancel t3'), 'the task goes on for nobody')
})

// ---- size --------------------------------------------------------------------------------------------

const manyProperties = {
  q: { type: 'string', description: 'What to look for' },
  n: { anyOf: [{ type: 'integer', exclusiveMinimum: 0 }, { type: 'null' }], default: null },
  tags: { type: 'array', items: { $ref: '#/$defs/Tag' } },
  o: { type: 'object', properties: several(6, { type: ['string', 'null'] }), additionalProperties: false }
}
/** As many tools as a large API has, each of a size that they have. */
const manyTools = (count: number, name = 'tool'): Array<{ key: string; text: string }> =>
  Array.from({ length: count }, (_, n) => ({
    key: `${name}-${n}`,
    text: JSON.stringify(
      tool(`${name}-${n}`, {
        description: 'A tool that does something. '.repeat(10),
        inputSchema: {
          type: 'object',
          properties: manyProperties,
          required: ['q'],
          $defs: { Tag: { type: 'object', properties: { name: { type: 'string' }, parent: { $ref: '#/$defs/Tag' } } } }
        }
      })
    )
  }))
const listing = (items: Array<{ key: string; text: string }>, name = 'big'): BodyInput['servers'][number] => ({
  name,
  description: undefined,
  status: 'connected',
  catalogue: 1,
  items,
  toTool: (item) => ({ item, description: undefined, enabled: true })
})
const cpu = async (work: () => unknown): Promise<number> => {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

/** Documents of one server whose catalogue and settings a test may change. */
function documentsOf (items: Array<{ key: string, text: string }>) {
  const world = { version: 1, catalogue: 1, items, builds: 0 }
  const catalogue = (): Catalogue => {
    const { catalogue: id, items } = world
    const tools = Object.assign([...items], {
      [Symbol.iterator]: () => {
        world.builds++
        return items.values()
      }
    })
    const { lists, ...rest } = makeCatalogue({ name: 'big', version: '1' })
    return { ...rest, id, lists: { ...lists, tools } }
  }
  const snapshot = { ...emptySnapshot, servers: new Map([['big', { name: 'big', config: {} }]]) }
  const view = makeView({ key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }, { kind: 'global', open: true })
  const provider: Provider = { name: 'big', status: 'connected', catalogue, call: async () => assert.fail() }
  const openapi = new OpenApi({
    snapshot: () => ({ ...snapshot, version: world.version }),
    access: { open: () => view },
    gateway: {
      precedence: (sections, separator) => new Precedence(sections, separator, () => new Claims()),
      sections: () => [
        { server: { name: 'big', config: {} }, label: 'big', member: { name: 'big' }, ofAdmin: true, provider, catalogue: catalogue() }
      ]
    },
    basePath: ''
  })
  return {
    world,
    ask: async (title: string, format: 'json' | 'yaml' = 'json', hold?: (bytes: number) => void) =>
      await openapi.document(view.principal, undefined, { title }, format, '127.0.0.1', hold)
  }
}

test('an operationId keeps its meaning while its server is away, and when an earlier one begins to list such a tool', async (t) => {
  const [earlier, later] = [
    await startUpstream(t, { tools: [tool('c')], on: echoArguments }),
    await startUpstream(t, { tools: [tool('b_c'), tool('b_d')], on: echoArguments })
  ]
  const hub = await startHub(t, { settings: settings({ a_b: { url: earlier.url }, a: { url: later.url } }) })
  await connected(hub, 2)
  const ids = async (): Promise<Record<string, string>> =>
    Object.fromEntries(operations(await document(hub)).map(({ server, path, id }) => [`${server}/${path.split('/').at(-1)}`, id]))
  const before = await ids()
  assert.equal(before['a_b/c'], 'a_b_c')
  assert.match(String(before['a/b_c']), /^a_b_c_[0-9a-f]{8}$/)
  assert.equal(before['a/b_d'], 'a_b_d')

  earlier.options.tools = [tool('c'), tool('d')]
  await earlier.broadcast('notifications/tools/list_changed')
  await until(async () => 'a_b/d' in await ids(), 'the new tool is not described')
  const after = await ids()
  assert.match(String(after['a_b/d']), /^a_b_d_[0-9a-f]{8}$/)
  const { 'a_b/d': added, ...rest } = after
  assert.deepEqual(rest, before)

  await earlier.close()
  await until(async () => {
    await post(hub, '/api/tools/a_b/c', {})
    return !('a_b/c' in await ids())
  }, 'a server that is away is still described')
  assert.deepEqual(await ids(), { 'a/b_c': before['a/b_c'], 'a/b_d': before['a/b_d'] })
})

test('whose operationIds are whose is found out where a document is written, not with each request', async () => {
  const view = makeView({ key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }, { kind: 'global', open: true })
  const sections = ['a', 'a_b'].map((name, at): Section => {
    const catalogue = makeCatalogue({ name, version: '1', tools: [{ name: at === 0 ? 'b_c' : 'c', inputSchema: { type: 'object' } }] })
    const provider: Provider = { name, status: 'connected', catalogue: () => catalogue, call: async () => assert.fail() }
    return { server: { name, config: {} }, label: name, member: { name }, ofAdmin: true, provider, catalogue }
  })
  let asked = 0
  const openapi = new OpenApi({
    snapshot: () => emptySnapshot,
    access: { open: () => view },
    gateway: {
      sections: () => sections,
      precedence: (given, separator) => {
        asked++
        return new Precedence(given, separator, ({ catalogue }) => {
          const claims = new Claims()
          claims.note(catalogue ? [catalogue] : [])
          return claims
        })
      }
    },
    basePath: ''
  })
  for (let n = 0; n < 3; n++) {
    const { chunks } = await openapi.document(view.principal, undefined, {}, 'json', '127.0.0.1')
    const [first, second, ...more] = ids(JSON.parse(Buffer.concat(chunks()).toString()))
    assert.equal(first, 'a_b_c')
    assert.match(String(second), /^a_b_c_[0-9a-f]{8}$/)
    assert.equal(more.length, 0)
  }
  assert.equal(asked, 1)
})

test('a document is written piece by piece as it would be in one go', async () => {
  const odd = [
    {
      name: 'with space',
      description: 'é "q"\u2028 \ud83d\ude00',
      inputSchema: {
        type: 'object',
        properties: manyProperties,
        $defs: { Tag: { type: 'object', properties: { t: { $ref: '#/$defs/Tag' } } } }
      }
    },
    { name: '.', inputSchema: { type: 'object' } },
    { name: 'z'.repeat(1_200), inputSchema: { type: 'object' } },
    { name: 'c', inputSchema: { $ref: '#/$defs/E', $defs: { E: {} } } }
  ].map((each) => ({ key: each.name, text: JSON.stringify(each) }))
  const servers = [
    listing(odd, 'a_b'),
    { ...listing(manyTools(30), 'сервер'), description: 'Said of it' },
    {
      ...listing(odd, 'a'),
      toTool: (item: Item) => ({
        item,
        description: item === odd[0] ? 'Said by an admin' : undefined,
        enabled: item !== odd[1] && item !== odd[3]
      })
    },
    listing([{ key: 'b_c', text: odd[3]?.text ?? '' }], 'a')
  ]
  const inputs: BodyInput[] = [servers, [], [listing([])], [listing(odd)]].flatMap((servers) =>
    [false, true].flatMap((flag) => [false, true].map((inGroup) => ({ servers, disabled: flag, secured: flag, inGroup })))
  )
  const url = 'https://hub.example/api/g-1'
  const head = headOf({ title: 'T "x"', description: 'about', version: '1', serverUrl: '/api' })
  for (const input of inputs) {
    const { components, ...frame } = frameOf(input)
    const paths: Json = {}
    const schemas: Json = { ...components.schemas }
    const ids = new Set<string>()
    for (const { name, items, toTool } of input.servers) {
      for (const item of items) {
        const { description: said, enabled } = toTool(item) ?? {}
        const operation = enabled || input.disabled ? toOperation(name, item) : undefined
        if (!operation) continue
        const { path, method, summary, description } = operation
        const text = said ?? description
        const operationId = uniqueOperationId(name, item.key, true, ids)
        paths[path] = {
          ...(input.inGroup ? { servers: [{ url }] } : {}),
          [method]: {
            operationId,
            summary,
            ...(text === undefined ? {} : { description: text }),
            tags: [name],
            ...operation.input,
            responses
          }
        }
        Object.assign(schemas, Object.fromEntries(operation.components))
      }
    }
    const whole = { ...head, ...frame, paths, components: { ...components, schemas } }
    const pieces = (format: 'json' | 'yaml'): string =>
      writeHead(head, notations[format]) +
      [...writeBody(input, format)]
        .map(({ text, rest }) => (rest === undefined ? text : `${text}${writeServers(url, notations[format])}${rest}`))
        .join('')
    // Twice: what is remembered of a tool is the same.
    for (let n = 0; n < 2; n++) {
      assert.equal(pieces('json'), JSON.stringify(whole))
      assert.equal(pieces('yaml'), `${notations.yaml.members(whole, 0).slice(1)}\n`)
    }
    assert.deepEqual(parse(pieces('yaml')), whole)
  }
})

test('a document over 1,000 tools takes less than 100 ms of CPU, and then next to nothing', async () => {
  const fresh = (): BodyInput => ({ servers: [listing(manyTools(1_000))], disabled: false, inGroup: false, secured: false })
  const build = (input: BodyInput): string => `{${[...writeBody(input, 'json')].map(({ text }) => text).join('')}`
  build(fresh())
  const all = [fresh(), fresh(), fresh(), fresh(), fresh()]
  assert.ok(build(fresh()).length > 1_000_000)
  const taken: number[] = []
  for (const input of all) taken.push(await cpu(() => build(input)))
  // 100 on a quiet machine; others may use this one.
  assert.ok(Math.min(...taken) < 150, `${taken.join()} ms`)

  const { world, ask } = documentsOf(manyTools(1_000))
  await ask('first')
  await ask('first', 'yaml')
  const kept = await cpu(async () => { for (let n = 0; n < 100; n++) { await ask(`other ${n}`); await ask(`other ${n}`, 'yaml') } }) / 200
  assert.ok(kept < 3 && world.builds === 2, `${kept} ms for one that is kept, ${world.builds} builds`)
  const again: number[] = []
  for (let n = 0; n < 3; n++) { world.version++; again.push(await cpu(async () => { await ask('first', 'yaml') })) }
  const folded: unknown = JSON.parse(build(fresh()))
  const library = await cpu(() => stringify(folded, { aliasDuplicateObjects: false }))
  assert.ok(Math.min(...again) < library / 4, `${again.join()} ms for YAML, ${library} ms by the library`)
})

test('a large document does not hold the event loop, is written once for all who ask, and is of one moment', async () => {
  const { world, ask } = documentsOf(manyTools(3_000))
  for (const format of ['json', 'yaml'] as const) {
    world.builds = 0
    const end = measureHold()
    await sleep(10)
    const asked = Array.from({ length: 20 }, async (_, n) => await ask(`title ${n}`, format))
    // What comes later is for those who ask later.
    const before = world.items
    world.version++
    world.catalogue++
    world.items = manyTools(2, 'later')
    const all = await Promise.all(asked)
    const held = end()
    assert.ok(held < 50, `${format}: held for ${held} ms`)
    assert.equal(world.builds, 1, format)
    assert.equal(new Set(all.map(({ etag }) => etag)).size, 20)
    const texts = all.map(({ chunks }) => Buffer.concat(chunks()).toString())
    assert.ok(texts.every((text) => text.length > 4_000_000 && !text.includes('later-') && text.includes('/tools/big/tool-2999"')), format)
    const later = Buffer.concat((await ask('later', format)).chunks()).toString()
    assert.ok(later.includes('/tools/big/later-1"') && !later.includes('tool-0'), format)
    world.catalogue++
    world.items = before
  }
})

test('memory is taken for a document before it is written, and one that would be too large is not written', async () => {
  const tools = (count: number): Array<{ key: string, text: string }> => Array.from({ length: count }, (_, n) => {
    const name = `tool-${n}`
    return { key: name, text: JSON.stringify({ name, description: 'd'.repeat(6_000), inputSchema: { type: 'object' } }) }
  })
  const { world, ask } = documentsOf(tools(500))
  await assert.rejects(ask('a', 'json', () => { throw new Error('there is none') }), /there is none/)
  assert.equal(world.builds, 0)
  const held: number[] = []
  const { chunks } = await ask('a', 'json', (bytes) => { held.push(bytes) })
  const size = Buffer.concat(chunks()).length
  const [expected = 0] = held
  assert.ok(held.length === 1 && expected > size * 0.9 && expected < size * 1.5, `${held.join()} for ${size} bytes`)
  assert.equal((await ask('another title')).chunks()[1], chunks()[1], 'chunks are shared')

  const builds = world.builds
  world.items = tools(6_000)
  world.catalogue++
  await assert.rejects(ask('a'), { name: 'ShareError', isOwners: false, message: /more than 32 MiB; name some of the servers with \?servers=/ })
  assert.equal(world.builds, builds)
})

test('documents are written one after the other, and not more may wait than the bound says', async () => {
  const cache = new TextCache({ maxTexts: 2, maxSize: 1_000, maxPending: 4 })
  const made: string[] = []
  let running = 0
  const make = (key: string) => async (): Promise<{ chunks: Buffer[], hash: string }> => {
    assert.equal(++running, 1, 'two at once')
    made.push(key)
    await sleep(5)
    running--
    if (key === 'bad') throw new Error('it failed')
    return { chunks: [Buffer.from(key)], hash: key }
  }
  const get = async (key: string): Promise<string> => (await cache.get(key, make(key))).hash
  const failing = assert.rejects(get('bad'), /it failed/)
  const [first, same, second] = [get('a'), get('a'), get('b')]
  await assert.rejects(get('c'), { name: 'ShareError', isOwners: true })
  await failing
  assert.deepEqual(await Promise.all([first, same, second]), ['a', 'a', 'b'])
  assert.deepEqual(
    [await get('a'), await get('c'), await get('a'), await get('b'), await get('bad').catch(() => 'again')],
    ['a', 'c', 'a', 'b', 'again']
  )
  assert.deepEqual(made, ['bad', 'a', 'b', 'c', 'b', 'bad'])
})
