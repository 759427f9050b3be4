// Capabilities of clients and servers, versions of the legacy era, and log levels.
import assert from 'node:assert/strict'
import { test } from 'tap'
import fc from 'fast-check'
import type { RpcError } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/json.ts'
import {
  ownLinkCapabilities, acceptsQuestions, requireClientCapability, capabilityClassOf, emptyCapabilityClass,
  sharedLinkCapabilities, withListChanged, mergeCapabilities, removeInvalidCapabilities, legacyRouteCapabilities, modernRouteCapabilities
} from '../../protocol/capabilities.ts'
import {
  allowsBatch, allowsPolling, alternativeVersions, isLegacyVersion, latestLegacyVersion, legacyVersions, negotiateVersion
} from '../../protocol/legacy/versions.ts'
import { isLogLevel, logLevels, lowerLogLevel, meetsLogLevel, type LogLevel } from '../../protocol/listener.ts'
import { holds } from '../helpers/json-texts.ts'

const ui = 'io.modelcontextprotocol/ui'
test('capabilities: classOf: equal for what an upstream cannot tell apart, whatever the order; else not', async () => {
  const capability = fc.dictionary(
    fc.constantFrom('sampling', 'elicitation', 'roots', 'extensions', 'experimental', '__proto__', '2', '10'),
    fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.dictionary(fc.constantFrom('tools', 'context', 'form', 'url', 'listChanged', ui, 'x'), fc.jsonValue({ maxDepth: 1 }), {
        maxKeys: 3
      })
    ),
    { maxKeys: 4 }
  )
  const shuffled = (value: unknown): unknown => isObject(value)
    ? Object.fromEntries(Object.keys(value).reverse().map((key) => [key, shuffled(value[key])]))
    : Array.isArray(value) ? value.map(shuffled) : value
  holds(fc.property(capability, capability, (one, other) => {
    const copy = shuffled(one) as Record<string, unknown>
    assert.equal(capabilityClassOf(copy), capabilityClassOf(one))
    let same = true
    try {
      assert.deepEqual(JSON.parse(JSON.stringify(sharedLinkCapabilities(one))), JSON.parse(JSON.stringify(sharedLinkCapabilities(other))))
    } catch { same = false }
    assert.equal(capabilityClassOf(one) === capabilityClassOf(other), same)
  }))
  assert.equal(capabilityClassOf({}), emptyCapabilityClass)
  assert.notEqual(capabilityClassOf({ sampling: {} }), capabilityClassOf({ sampling: { tools: {} } }))
  assert.notEqual(capabilityClassOf({ extensions: { [ui]: [1, 2] } }), capabilityClassOf({ extensions: { [ui]: [2, 1] } }))
  assert.ok(capabilityClassOf({ extensions: { [ui]: 'x'.repeat(100_000) } }).length < 1_000, 'it is a key in many places')
  assert.notEqual(capabilityClassOf({ extensions: { [ui]: 'x'.repeat(100_000) } }), capabilityClassOf({ extensions: { [ui]: 'y'.repeat(100_000) } }))
})

test('capabilities: shareable: what an upstream acts upon, and nothing that makes a client one of a kind', async () => {
  const table: Array<[Record<string, unknown>, Record<string, unknown>]> = [
    [{}, {}],
    [{ sampling: {}, elicitation: {}, roots: {} }, { sampling: {}, elicitation: {}, roots: {} }],
    [{ sampling: { context: {}, tools: {}, x: 1 } }, { sampling: { context: {}, tools: {} } }],
    [{ elicitation: { form: { applyDefaults: true }, url: {}, x: 1 } }, { elicitation: { form: { applyDefaults: true }, url: {} } }],
    [{ roots: { listChanged: false, x: 1 } }, { roots: { listChanged: false } }],
    [
      { sampling: { form: {} }, elicitation: { tools: {} }, roots: { url: {} } },
      { sampling: {}, elicitation: {}, roots: {} }
    ],
    [{ sampling: null, elicitation: true, roots: [] }, {}],
    [{ experimental: { x: 1 }, tasks: { list: {} }, logging: {}, x: 1 }, {}],
    [{ extensions: { [ui]: { mimeTypes: ['text/html'] }, other: {} } }, { extensions: { [ui]: { mimeTypes: ['text/html'] } } }],
    [{ extensions: { other: {} } }, {}],
    [{ extensions: null }, {}],
    [{ [ui]: {} }, {}],
    [
      JSON.parse('{"__proto__":{"sampling":{}},"constructor":{},"sampling":{"__proto__":{"tools":{}}}}') as Record<string, unknown>,
      { sampling: {} }
    ]
  ]
  for (const [client, expected] of table) {
    assert.deepEqual(sharedLinkCapabilities(client), expected, JSON.stringify(client))
    assert.equal(capabilityClassOf(client), capabilityClassOf(sharedLinkCapabilities(client)), 'who shares a connection is shown the same on it')
  }
  assert.equal(capabilityClassOf({ experimental: { x: 1 }, extensions: { other: {} } }), emptyCapabilityClass)
})

test('capabilities: tasks towards the client are not carried, and make no class of their own', async () => {
  const own = ownLinkCapabilities({ sampling: {}, tasks: { list: {} }, experimental: { x: 1 } })
  assert.deepEqual(own, { sampling: {}, experimental: { x: 1 } })
  assert.equal(capabilityClassOf({ sampling: {}, tasks: { list: {} } }), capabilityClassOf({ sampling: {} }))
})

test('capabilities: canBeAsked: sampling, elicitation or roots', async () => {
  const table: Array<[Record<string, unknown>, boolean]> = [
    [{}, false],
    [{ sampling: {} }, true],
    [{ elicitation: { url: {} } }, true],
    [{ roots: { listChanged: true } }, true],
    [{ extensions: { a: {} }, experimental: {} }, false],
    [{ sampling: null }, false],
    [{ sampling: true }, false],
    [{ roots: [] }, false],
    [{ tasks: {} }, false]
  ]
  for (const [client, expected] of table) assert.equal(acceptsQuestions(client), expected, JSON.stringify(client))
})

test('capabilities: checkAskable: what was declared, with its modes and parts, and what nobody knows', async () => {
  const everything = { sampling: { tools: {} }, elicitation: { form: {}, url: {} }, roots: {} }
  const needs: Record<string, keyof typeof everything> = {
    'sampling/createMessage': 'sampling', 'elicitation/create': 'elicitation', 'roots/list': 'roots'
  }
  for (const [method, need] of Object.entries(needs)) {
    assert.throws(() => { requireClientCapability({}, { method, params: {} }) }, { code: -32601 })
    requireClientCapability(everything, { method, params: {} })
    requireClientCapability({ [need]: {} }, { method, params: {} })
    assert.throws(() => { requireClientCapability({ ...everything, [need]: undefined }, { method, params: {} }) }, { code: -32601 })
  }
  requireClientCapability({}, { method: 'x-vendor/ask', params: { mode: 'url' } })
  const modes: ReadonlyArray<readonly [Record<string, unknown>, form: boolean, url: boolean]> = [
    [{}, true, false], [{ form: {} }, true, false], [{ url: {} }, false, true], [{ form: {}, url: {} }, true, true],
    [{ vendor: {} }, true, false]
  ]
  const refused = (check: () => void): boolean => {
    try { check() } catch (error) { assert.equal((error as RpcError).code, -32602); return true }
    return false
  }
  for (const [elicitation, form, url] of modes) {
    for (const [mode, can] of [['form', form], [undefined, form], ['url', url]] as const) {
      const asked = { method: 'elicitation/create', params: { mode } }
      assert.equal(refused(() => { requireClientCapability({ elicitation }, asked) }), !can, JSON.stringify([elicitation, mode]))
    }
  }
  const withTools = { method: 'sampling/createMessage', params: { tools: [] } }
  assert.ok(refused(() => { requireClientCapability({ sampling: {} }, withTools) }))
  requireClientCapability(everything, withTools)
})

test('capabilities: shown: the lists that are there can change; nothing else is touched', async () => {
  const server = { tools: {}, resources: { subscribe: true, extra: 1 }, logging: {}, experimental: { x: 1 }, prompts: null }
  assert.deepEqual(withListChanged(server), {
    tools: { listChanged: true },
    resources: { subscribe: true, extra: 1, listChanged: true },
    logging: {},
    experimental: { x: 1 },
    prompts: null
  })
  assert.deepEqual(server.tools, {}, 'the original is not changed')
  assert.deepEqual(withListChanged({}), {})
})

test('capabilities: union: what any of them has; subscribe if any has it; what needs one upstream is left out', async () => {
  const table: Array<[Array<Record<string, unknown>>, Record<string, unknown>]> = [
    [[], {}],
    [[{ tools: {} }, { prompts: { listChanged: false } }], { tools: { listChanged: true }, prompts: { listChanged: true } }],
    [[{ resources: { subscribe: true } }, { resources: { subscribe: false } }], { resources: { subscribe: true, listChanged: true } }],
    [[{ resources: {} }, { resources: { subscribe: true } }], { resources: { subscribe: true, listChanged: true } }],
    [[{ logging: {}, completions: {} }, {}], { logging: {}, completions: {} }],
    [[{ tasks: { list: {} }, experimental: { x: {} }, tools: {} }, { tasks: { cancel: {} } }],
      { tools: { listChanged: true }, tasks: { list: {}, cancel: {} } }],
    [[{ extensions: { a: {} } }, { extensions: { b: {} } }], { extensions: { a: {}, b: {} } }]
  ]
  for (const [servers, expected] of table) assert.deepEqual(mergeCapabilities(servers), expected, JSON.stringify(servers))
})

test('capabilities: tasks are announced in the form of the client\'s era, where a server has them in either form', async () => {
  const extension = { 'io.modelcontextprotocol/tasks': {} }
  const call = { requests: { tools: { call: {} } } }
  const table: Array<[Record<string, unknown>, Record<string, unknown>, Record<string, unknown>]> = [
    [{ tools: {} }, { tools: {} }, { tools: {} }],
    [{ tasks: { list: {}, ...call } }, { tasks: { list: {}, ...call } }, { extensions: extension }],
    [{ tasks: { list: {} } }, { tasks: { list: {} } }, {}],
    [
      { extensions: { x: {}, ...extension } },
      { extensions: { x: {} }, tasks: { cancel: {}, ...call } },
      { extensions: { x: {}, ...extension } }
    ],
    [
      { extensions: extension, tasks: { list: {}, ...call } },
      { extensions: {}, tasks: { list: {}, cancel: {}, ...call } },
      { extensions: extension }
    ]
  ]
  for (const [route, legacy, modern] of table) {
    assert.deepEqual([legacyRouteCapabilities(route), modernRouteCapabilities(route)], [legacy, modern], JSON.stringify(route))
  }
})

test('capabilities: those that are not what MCP says are left out, each with a sentence', async () => {
  const valid = { tools: {}, resources: { subscribe: true, x: 'y' }, extensions: { y: {} }, unknown: 5, tasks: { list: {}, other: 1 } }
  assert.deepEqual(removeInvalidCapabilities(valid), { capabilities: valid, problems: [] })
  const table: Array<[string, Record<string, unknown>, string]> = [
    ['{"tools":5,"logging":{}}', { logging: {} }, '"tools" is not an object'],
    ['{"prompts":null}', {}, '"prompts" is not an object'],
    ['{"resources":{"subscribe":"yes","listChanged":true}}', { resources: { listChanged: true } }, '"resources.subscribe" is not a boolean'],
    ['{"extensions":{"y":5,"z":{}}}', { extensions: { z: {} } }, '"extensions.y" is not an object'],
    ['{"experimental":{"__proto__":1}}', { experimental: {} }, '"experimental.__proto__" is not an object'],
    ['{"tasks":{"requests":[]}}', { tasks: {} }, '"tasks.requests" is not an object'],
    ['{"tasks":{"requests":{"tools":5}}}', { tasks: { requests: {} } }, '"tasks.requests.tools" is not an object']
  ]
  for (const [text, capabilities, problem] of table) {
    const found = removeInvalidCapabilities(JSON.parse(text) as Record<string, unknown>)
    assert.deepEqual(found, { capabilities, problems: [`capabilities: ${problem} and was omitted`] })
  }
})

test('versions of the legacy era', async () => {
  const table: Array<[unknown, string, boolean]> = [
    ...legacyVersions.map((version): [unknown, string, boolean] => [version, version, true]),
    ['2026-07-28', latestLegacyVersion, false],
    ['1999-01-01', latestLegacyVersion, false],
    ['', latestLegacyVersion, false],
    [undefined, latestLegacyVersion, false],
    [20250618, latestLegacyVersion, false],
    ['2025-11-25 ', latestLegacyVersion, false]
  ]
  for (const [asked, answered, known] of table) {
    assert.equal(negotiateVersion(asked), answered)
    assert.equal(isLegacyVersion(asked), known)
  }
  assert.equal(latestLegacyVersion, '2025-11-25')
  assert.deepEqual(legacyVersions.map((version) => [version, allowsBatch(version), allowsPolling(version)]), [
    ['2025-11-25', false, true], ['2025-06-18', false, false], ['2025-03-26', true, false], ['2024-11-05', true, false],
    ['2024-10-07', true, false]
  ])
})

test('the versions to offer a server that refused the latest one', async () => {
  const left = legacyVersions.slice(1)
  const table: Array<[string, readonly string[]]> = [
    ['{"code":-32602,"message":"Unsupported protocol version","data":{"expected":"2025-06-18"}}', ['2025-06-18']],
    [
      '{"code":-32602,"message":"Unsupported protocolVersion 2025-11-25","data":{"supported":["2024-11-05","2025-03-26"]}}',
      ['2025-03-26', '2024-11-05']
    ],
    ['{"code":-32602,"message":"Unsupported protocol version"}', left],
    ['{"code":-32602,"message":"Unsupported protocol version: 2025-11-25, supported: 2026-07-28"}', left],
    ['{"code":-32602,"message":"clientInfo.version is missing, try 2025-06-18"}', []]
  ]
  for (const [error, versions] of table) assert.deepEqual(alternativeVersions(error, left), versions, error)
})

test('log levels', async () => {
  const inOrder = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] satisfies LogLevel[]
  assert.deepEqual(logLevels, inOrder)
  inOrder.forEach((a, at) => {
    assert.equal(isLogLevel(a), true)
    inOrder.forEach((b, other) => {
      assert.equal(meetsLogLevel(a, b), at >= other, `${a} for who wants ${b}`)
      assert.equal(lowerLogLevel(a, b), at < other ? a : b)
    })
    assert.equal(lowerLogLevel(a, undefined), a)
    assert.equal(lowerLogLevel(undefined, a), a)
    // A level that nobody knows is passed on: better one too many than one lost.
    assert.equal(meetsLogLevel('fatal', a), true)
    assert.equal(meetsLogLevel(undefined, a), true)
  })
  assert.equal(lowerLogLevel(undefined, undefined), undefined)
  for (const other of ['DEBUG', 'warn', '', 3, null, undefined, {}]) assert.equal(isLogLevel(other), false)
})
