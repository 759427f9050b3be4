// What servers list that MCP does not allow, or that SDKs of the legacy era cannot read: one item must not take a whole list from anybody.
// Which items and which schemas: upstream/catalogues.test.ts, and the table below.
import assert from 'node:assert/strict'
import { served } from '../helpers/served.ts'
import { test } from 'tap'
import { isCompilableSchema } from '../../plugins/downstream/legacy/to-legacy-list.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { agent, type Json } from '../helpers/client.ts'

const object = { type: 'object' }
const withOutput = (name: string, more: Json): Json => tool(name, { outputSchema: { type: 'object', ...more } })

test('one item that clients cannot read does not take the whole list from them', async (t) => {
  const odd = await startUpstream(t, {
    capabilities: { tools: { listChanged: 'yes' }, prompts: {}, resources: { subscribe: 'yes' }, extensions: { y: 5, z: {} }, logging: 1 },
    tools: [
      tool('described', { description: 5 }),
      { name: 'untyped', inputSchema: {} },
      { name: 'anything', inputSchema: { type: 'object', properties: { x: true } } },
      { name: 'number', inputSchema: { type: 'object', properties: { x: 5 } } },
      { name: 'required', inputSchema: { type: 'object', required: 'a' } },
      withOutput('pattern', { properties: { a: { pattern: '(' } } }),
      withOutput('same', { properties: { a: { type: 'string' } } })
    ],
    prompts: [{ name: 'bad', arguments: [{ name: 5 }] }, { name: 'good' }],
    resources: [
      { uri: 'r://priority', name: 'p', annotations: { priority: 5 } },
      { uri: 'r://nameless' },
      { uri: 'r://day', name: 'd', annotations: { lastModified: '2026-01-02', priority: 1 } }
    ],
    resourceTemplates: [{ uriTemplate: 't://{a}', name: 5 }, { uriTemplate: 't://{b}' }]
  })
  const fine = await startUpstream(t, { tools: [tool('fine')] })
  const hub = await served(t, { odd: { url: odd.url }, fine: { url: fine.url } })
  for (const [path, prefix] of [['/mcp', 'odd-'], ['/mcp/odd', '']] as const) {
    const client = await agent(t, `${hub.url}${path}`)
    const { tools } = await client.listTools()
    const listed = new Map(tools.map((each) => [each.name, each]))
    const readable = ['untyped', 'anything', 'pattern', 'same'].map((name) => `${prefix}${name}`)
    assert.deepEqual([...listed.keys()], [...readable, ...prefix === '' ? [] : ['fine-fine']])
    assert.deepEqual(listed.get(`${prefix}untyped`)?.inputSchema, object)
    assert.deepEqual(listed.get(`${prefix}anything`)?.inputSchema, { type: 'object', properties: { x: {} } })
    assert.equal(listed.get(`${prefix}pattern`)?.outputSchema, undefined)
    assert.deepEqual(listed.get(`${prefix}same`)?.outputSchema, { type: 'object', properties: { a: { type: 'string' } } })
    assert.deepEqual((await client.listPrompts()).prompts.map(({ name }) => name), [`${prefix}good`])
    assert.deepEqual((await client.listResources()).resources, [
      { uri: 'r://nameless', name: 'r://nameless' },
      { uri: 'r://day', name: 'd', annotations: { priority: 1 } }
    ])
    assert.deepEqual((await client.listResourceTemplates()).resourceTemplates, [{ uriTemplate: 't://{b}', name: 't://{b}' }])
    assert.deepEqual(client.getServerCapabilities()?.extensions, { z: {} })
  }
  const warnings = String((await managed(hub, 'GET', '/servers/odd')).warnings)
  for (const name of ['described', 'number', 'required', 'bad', 'r://priority', 't://{a}']) {
    assert.ok(warnings.includes(`"${name}" was omitted`), `${name}: ${warnings}`)
  }
  for (const name of ['extensions.y', 'logging', 'resources.subscribe', 'tools.listChanged']) {
    assert.ok(warnings.includes(`"${name}" is not`), `${name}: ${warnings}`)
  }
})

test('which schemas a client can compile', async () => {
  const deep = (schema: unknown): unknown => ({ type: 'object', properties: { a: { anyOf: [{ items: [{ not: schema }] }] } } })
  const table: Array<[unknown, boolean]> = [
    [{ type: ['string', 'null'], pattern: '^a$', format: 'nobody-knows' }, true],
    [{ properties: { type: { type: 'string' }, pattern: { const: '(' }, $ref: {}, $id: {} } }, true],
    [{ enum: [{ type: 'text', pattern: '(' }], default: { $ref: '#/none' }, examples: [{ $id: 5 }] }, true],
    [true, true],
    [{ $defs: { a: {} }, $ref: '#/$defs/a' }, true],
    [{ $ref: '#' }, true],
    [{ type: 'text' }, false],
    [{ type: ['string', 'text'] }, false],
    [{ type: 5 }, false],
    [{ pattern: '[' }, false],
    [{ patternProperties: { '(': {} } }, false],
    [{ $ref: '#/$defs/none' }, false],
    [{ $ref: '#anchor' }, false],
    [{ $id: 'urn:a' }, false],
    [5, false],
    // Draft 4, draft 3, OpenAPI 3.0, and slips of generators.
    [{ minimum: 1, exclusiveMinimum: true }, false],
    [{ type: 'number', minimum: 1, exclusiveMinimum: 1, multipleOf: 2, minLength: 0 }, true],
    [{ id: 'a' }, false],
    [{ required: true }, false],
    [{ required: ['a'], properties: { id: { type: 'string' }, required: {}, enum: {} } }, true],
    [{ nullable: true }, false],
    [{ type: 'string', nullable: true }, true],
    [{ type: ['string', 'null'], nullable: false }, false],
    [{ type: 'string', nullable: 'yes' }, false],
    [{ enum: [] }, false],
    [{ enum: 'a' }, false],
    [{ minLength: '1' }, false],
    [{ maximum: null }, false],
    [{ format: {} }, false],
    [{ pattern: 5 }, false],
    [{ uniqueItems: 'x' }, false],
    [{ anyOf: {} }, false],
    [{ properties: [] }, false],
    [{ dependencies: { a: ['b'], b: { type: 'string' }, c: true } }, true],
    [{ dependencies: { a: { properties: { b: { type: 'any' } } } } }, false],
    [{ dependencies: ['a'] }, false],
    [{ $ref: {} }, false]
  ]
  for (const [schema, expected] of table) {
    assert.equal(isCompilableSchema(schema), expected, JSON.stringify(schema))
    // References are of the whole schema.
    if (!JSON.stringify(schema).includes('$ref')) assert.equal(isCompilableSchema(deep(schema)), expected, JSON.stringify(deep(schema)))
  }
})
