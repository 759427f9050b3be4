// Nothing that a stranger, a user or a server can size costs more than its size: each input is handled at two sizes, one four times the
// other, and the CPU that the larger takes must be about that of the smaller, handled four times. What is quadratic takes four times that.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { applyChanges } from '../../db/apply.ts'
import { parseSnapshot } from '../../db/document.ts'
import { shareUnchangedParts } from '../../db/json/share.ts'
import type { Snapshot } from '../../db/store.ts'
import { checkInvariants } from '../../db/invariants.ts'
import { makeView, type Principal, type ViewScope } from '../../plugins/settings/access/view.ts'
import { canUseRoute, visibleServers } from '../../plugins/settings/access/visibility.ts'
import { AuditLog } from '../../plugins/settings/audit/audit.ts'
import { MemoryAuditTrail } from '../../plugins/settings/audit/memory-trail.ts'
import { ListResult } from '../../plugins/gateway/list.ts'
import { ItemClaims } from '../../plugins/gateway/claims.ts'
import { buildSurface, findResourceTarget } from '../../plugins/gateway/surface.ts'
import { groupChangesForServerRemoval } from '../../plugins/management/groups/groups.ts'
import { changesForKeyScopeRename, changesForKeyScopeRemoval } from '../../plugins/identity/keys/scope-changes.ts'
import { parseQueryArguments } from '../../plugins/downstream/tools/parse-arguments.ts'
import { maskText } from '../../plugins/extensions/guards/detect/mask.ts'
import { compressText } from '../../plugins/extensions/compression/compress.ts'
import { strategyNames, type StrategyName } from '../../plugins/extensions/compression/strategies/strategy.ts'
import { loadTokenCounter } from '../../plugins/extensions/compression/tokens.ts'
import { convertArguments } from '../../plugins/base/json-schema/arguments.ts'
import { resolvePointer } from '../../plugins/base/json-schema/json-pointer.ts'
import { OwnedMap } from '../../plugins/base/limits/bounded-map.ts'
import { maskConfig } from '../../plugins/base/secrets/mask-config.ts'
import { unmask } from '../../plugins/base/secrets/unmask.ts'
import { createConfigRedactor } from '../../plugins/base/secrets/redact.ts'
import { openKeyRing } from '../../plugins/base/secrets/key-ring.ts'
import { SealedVault } from '../../plugins/base/secrets/vault.ts'
import { secretTargetsOf } from '../../plugins/management/servers/authorship.ts'
import { referencedVariables, replaceSecrets } from '../../plugins/management/templates/config.ts'
import { TemplateVariables } from '../../plugins/management/templates/variables.ts'
import { readList } from '../../plugins/upstream/catalogues/read-list.ts'
import { childEnvironment, expandVariables } from '../../plugins/upstream/links/environment.ts'
import { selectPassedHeaders, parsePassthroughHeaders } from '../../plugins/upstream/links/passthrough.ts'
import { parseChallenge } from '../../plugins/upstream/login/challenge.ts'
import { ArgumentNames, ToolNames } from '../../plugins/upstream/openapi/describe/names.ts'
import { EventStreamParser } from '../../protocol/event-stream.ts'
import { withMembers } from '../../protocol/json.ts'
import { makeStaticCatalogue } from '../../protocol/lists.ts'
import { parseMessage } from '../../protocol/parse-message.ts'
import { LineReader } from '../../protocol/pieces.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { cpuTime, median } from '../helpers/measured.ts'
import { settingsLimits } from '../../plugins/settings/limits.ts'

const newAudit = (): AuditLog =>
  new AuditLog({ trail: new MemoryAuditTrail(settingsLimits.audit), bounds: settingsLimits.audit, notify: () => {}, warn: () => {} })

/** Linear work takes as long, and `n log n` a little longer; the rest of the distance to 4 is for the garbage collector and others. */
const mostGrowth = 2

/**
 * The work on a small input, many times: lists and maps of some 16,000 entries and more are memory that the system gives and takes back
 * each time, which costs more than the work.
 */
const manyTimes = (prepare: (size: number) => () => void) => (size: number) => {
  const work = prepare(size)
  return () => { for (let run = 0; run < 20; run++) work() }
}

const indices = (count: number): number[] => Array.from({ length: count }, (_, at) => at)
const mapOf = <Value>(count: number, value: (at: number) => Value): Record<string, Value> =>
  Object.fromEntries(indices(count).map((at) => [`x-name-${at}`, value(at)]))
const secret = (at: number): string => `Bearer secret-${at * 7_919}-of-mine`
const headersOf = (count: number): ServerConfig => ({ url: 'http://h.example/', headers: mapOf(count, secret) })

const snapshotOf = (servers: Record<string, ServerConfig>): Snapshot => parseSnapshot({ mcpServers: servers }, 1).snapshot
const catalogueOf = (count: number, kind: 'tools' | 'resourceTemplates') => makeStaticCatalogue({
  name: 'many',
  version: '1',
  ...(kind === 'tools'
    ? { tools: indices(count).map((at) => ({ name: `tool-${at}`, inputSchema: { type: 'object' } })) }
    : { resourceTemplates: indices(count).map((at) => ({ name: 't', uriTemplate: `files://host-${at}/{path}` })) })
})
const surfaceOf = (count: number, kind: 'tools' | 'resourceTemplates') => buildSurface({
  isRaw: false,
  separator: '-',
  supportsApps: false,
  claimsOf: () => new ItemClaims(),
  sections: [{
    server: { name: 'many', config: { url: 'http://h.example/', tools: mapOf(count, () => ({ enabled: true })) } },
    label: 'many',
    isOwnedByAdmin: true,
    member: { name: 'many' },
    provider: undefined,
    catalogue: catalogueOf(count, kind)
  }]
})

const serverNames = (count: number): string[] => indices(count).map((at) => `s${at}`)
/** Settings with as many servers, groups of one server and keys for one server and one group, and one group and one key for all servers. */
const grouped = (count: number): Record<string, unknown> => ({
  mcpServers: Object.fromEntries(serverNames(count).map((name) => [name, { url: 'http://h.example/', owner: 'ann', visibility: 'private' }])),
  groups: [
    { id: 'all', name: 'all', servers: serverNames(count) },
    ...indices(count).map((at) => ({ id: `g${at}`, name: `group ${at}`, servers: ['s0'], owner: 'admin' }))
  ],
  bearerKeys: [
    { id: 'all', name: 'all', kind: 'user', owner: 'ann', accessType: 'custom', allowedServers: serverNames(count) },
    ...indices(count).map((at) => ({ id: `k${at}`, name: 'k', kind: 'system', accessType: 'custom', allowedServers: ['s0'], allowedGroups: ['g0'] }))
  ]
})
const groupedSnapshot = (count: number): Snapshot => parseSnapshot(grouped(count), 1).snapshot
/** Somebody with a key for all servers, and none of the rights of an admin. */
const scoped = (count: number): Principal => ({
  kind: 'user-key',
  key: 'all',
  user: 'ann',
  username: 'ann',
  isAdmin: false,
  keyScope: { accessType: 'custom', groups: serverNames(count), servers: serverNames(count) }
})
const groupOfAll: ViewScope = { kind: 'group', id: 'all', name: 'all', open: true }

const vault = new SealedVault(await openKeyRing({ dataDir: '/nowhere', encryptionKey: randomBytes(32).toString('hex') }))

/** Arguments whose texts are read as a number, or as a list of numbers. */
const readText = (name: 'n' | 'list', part: string) => (size: number) => {
  const schema = { properties: { n: { type: 'number' }, list: { type: 'array', items: { type: 'number' } } } }
  const text = `${part.repeat(size / part.length)}x`
  return () => { convertArguments(schema, { [name]: text }, true) }
}

/** Texts of a length that are made of very many small parts, of one large one, or of parts within parts. */
const costly: Record<string, (length: number) => string> = {
  hunks: (length) => '@@ -1,1 +1,1 @@\n+a\n-b\n'.repeat(length / 22),
  'a file for each change': (length) => '--- a\n+++ b\n@@ -1 +1 @@\n+c\n'.repeat(length / 27),
  'hits in one file': (length) => 'a.c:1:b\n'.repeat(length / 8),
  'hits in many files': (length) => Array.from({ length: length / 12 }, (_, n) => `${n}.c:1:b\n`).join(''),
  'short lines': (length) => 'a\nb\n'.repeat(length / 4),
  failures: (length) => Array.from({ length: length / 12 }, (_, n) => `error ${n.toString(36)}\n at\n`).join(''),
  'one line': (length) => 'error: x '.repeat(length / 9),
  numbers: (length) => `[${'1,'.repeat(length / 2)}1]`,
  'arrays within arrays': (length) => `${'['.repeat(300)}${'1,'.repeat(length / 2)}1${']'.repeat(300)}`,
  members: (length) => `{${'"a":1,'.repeat(length / 6)}"b":1}`,
  'lines of JSON': (length) => '{"a":1}\n'.repeat(length / 8)
}

/** Parts of what the detectors of guards look for. */
const searched = [
  '@', 'a', 'a.', 'a@a.', 'bob@x.com ', 'eyJ-', 'xoxb-', 'a://b:', '4111 ', '1 ', '+1 ', 'DE89 ', '0123 456 ', '(01', '\\n', '%4',
  '-----BEGIN PRIVATE KEY-----'
]

/** What stays is counted as one token for four characters: the tokenizer's time is its own. */
const compressed = (make: (length: number) => string, strategy: StrategyName) => (size: number) => {
  const text = Buffer.from(make(size)).toString()
  return () => { compressText(text, { strategy, minTokens: 2_000, maxOutputTokens: 1_200 }, (kept) => Math.ceil(kept.length / 4)) }
}

/** The size of the smaller one, and what makes an input of a size and returns the work on it. */
type Input = [size: number, prepare: (size: number) => () => unknown]

const inputs: Record<string, Input> = {
  'headers of a config: what is redacted': [4_000, (size) => () => { createConfigRedactor(headersOf(size)) }],
  'headers of a config: a line that is searched': [10_000, (size) => {
    const redact = createConfigRedactor(headersOf(size))
    const line = indices(2_000).map(secret).join(' and ')
    return () => { redact(line) }
  }],
  'headers of a config: masked': [8_000, (size) => () => { maskConfig({ ...headersOf(size) }) }],
  'headers of a config: sealed and opened': [4_000, (size) => () => {
    const { value, sealed } = vault.encryptSecrets({ ...headersOf(size) }, 'p')
    vault.decryptSecrets(value, sealed, 'p')
  }],
  'headers of a config: filled in': [5_000, (size) => {
    const config = { url: 'http://h.example/', headers: mapOf(size, () => `$${'{ONE}'} and $${'{TWO}'}`) }
    const environment = { ONE: 'first', TWO: 'second' }
    return () => { expandVariables(config, environment) }
  }],
  'one header of many words': [8_000, (size) => () => {
    createConfigRedactor({ headers: { authorization: indices(size).map((at) => `secret-${at}`).join(' ') } })
  }],
  'one long secret': [4_000, (size) => {
    const redact = createConfigRedactor({ env: { LONG: 'a'.repeat(size) } })
    return () => { redact('a'.repeat(size)) }
  }],
  'arguments of a command: sent back with their masks': [10_000, (size) => {
    const stored = { args: indices(size).flatMap((at) => ['--token', secret(at)]) }
    const shown = maskConfig(stored)
    return () => { unmask(shown, stored, shown) }
  }],
  'environment of a child': [8_000, (size) => {
    const config = { command: 'x', env: mapOf(size, secret) }
    return () => { childEnvironment(config, {}, { npmRegistry: 'http://r.example/' }) }
  }],
  'passed-on headers': [5_000, (size) => {
    const names = indices(size).map((at) => `x-name-${at}`)
    const headers = { ...mapOf(size, () => 'v'), connection: indices(size).map((at) => `x-other-${at}`).join(', ') }
    return () => { selectPassedHeaders('s', parsePassthroughHeaders({ url: 'http://h/', passthroughHeaders: names }, true).names, headers) }
  }],
  'the challenge of a server that requires a login: a long word': [2_000, manyTimes((size) => {
    const header = `Bearer ${'a'.repeat(size)}`
    return () => { parseChallenge(header) }
  })],
  'the target of a description': [1_000, manyTimes((size) => {
    const config = { openapi: { schema: { paths: mapOf(size, () => ({ servers: [{ url: 'http://a/' }] })) } } }
    return () => { secretTargetsOf(config) }
  })],
  'names of operations': [8_000, (size) => () => {
    const operations = indices(size).map((at) => ({ operationId: 'same', method: 'GET', path: `/p${at}` }))
    const names = new ToolNames(operations)
    for (const operation of operations) names.assign(operation)
  }],
  'a name of underscores': [100_000, (size) => () => {
    new ToolNames([]).assign({ operationId: `a${'_'.repeat(size)}a`, method: 'GET', path: '/p' })
  }],
  'names of arguments': [10_000, (size) => () => {
    const names = new ArgumentNames()
    for (let at = 0; at < size; at++) names.assign({ name: 'same', location: 'query' })
  }],
  'a list of tools: read': [5_000, (size) => {
    const result = JSON.stringify({ tools: indices(size).map((at) => ({ name: `tool-${at}`, inputSchema: { type: 'object' } })) })
    return async () => { await readList('tools', async () => result, () => {}) }
  }],
  'a list of tools: shown': [5_000, (size) => () => { surfaceOf(size, 'tools') }],
  'a list of tools: compared': [20_000, (size) => {
    const [one, other] = [0, 1].map(() => new ListResult('tools', indices(size).map((at) => ({ text: `{"name":"tool-${at}"}` })), '{}'))
    return () => { assert.ok(one !== undefined && other !== undefined && one.equals(other)) }
  }],
  'resource templates': [5_000, (size) => {
    const surface = surfaceOf(size, 'resourceTemplates')
    return () => { for (let run = 0; run < 20; run++) findResourceTarget(surface, `files://other/${'x'.repeat(500)}`) }
  }],
  'events in pieces of one byte': [50_000, (size) => {
    const bytes = Buffer.from(`data: ${'x'.repeat(size)}\n\n`)
    return () => {
      let events = 0
      const parser = new EventStreamParser(() => { events++ }, Infinity)
      for (let from = 0; from < bytes.length; from++) parser.push(bytes.subarray(from, from + 1))
      assert.equal(events, 1)
    }
  }],
  'events of many lines': [50_000, (size) => {
    const bytes = Buffer.from('data: x\r\n'.repeat(size))
    return () => { new EventStreamParser(() => {}, Infinity).push(bytes) }
  }],
  "a child's line in pieces of one character": [50_000, (size) => () => {
    const reader = new LineReader(Infinity, () => {})
    for (let from = 0; from < size; from++) reader.push('x')
    reader.push('\n')
  }],
  'a message with many members': [20_000, (size) => {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x', params: { arguments: mapOf(size, () => '\\"\\\\') } })
    return () => { withMembers(text, { params: '{}' }); parseMessage(text, 200) }
  }],
  'a message with many members of its own': [20_000, (size) => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"x",${'"params":{},'.repeat(size)}"x":1}`
    return () => { parseMessage(text, 200) }
  }],
  'a string of escapes': [200_000, (size) => {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x', params: { x: '\\"'.repeat(size) } })
    return () => { parseMessage(text, 200) }
  }],
  'a batch': [10_000, (size) => {
    const text = JSON.stringify(indices(size).map((id) => ({ jsonrpc: '2.0', id, method: 'ping' })))
    return () => { parseMessage(text, 200) }
  }],
  'a JSON pointer': [100_000, (size) => {
    const pointer = `/${'~1'.repeat(size)}${'/x'.repeat(size)}`
    return () => { resolvePointer({}, pointer) }
  }],
  'the audit of many changes': [2_000, (size) => {
    const former = snapshotOf({})
    const changes = indices(size).map((at) => ({ entity: 'mcpServers' as const, key: `s${at}`, value: { url: 'http://h.example/' } }))
    const next = snapshotOf(Object.fromEntries(changes.map(({ key, value }) => [key, value])))
    return () => { newAudit().addCommit({ by: { username: 'admin' }, changes, former, next }) }
  }],
  'entries of some owners beyond their bound': [2_000, manyTimes((size) => () => {
    const map = new OwnedMap<true>(size / 2)
    for (const at of indices(size)) map.set(`owner ${at % 50}`, String(at), true)
  })],
  'settings: many changes': [5_000, (size) => {
    const changes = indices(size).map((at) => ({ entity: 'mcpServers' as const, key: `s${at}`, value: { url: 'http://h.example/' } }))
    return () => { applyChanges({ mcpServers: {} }, changes) }
  }],
  'groups and keys: read': [5_000, (size) => {
    const document = grouped(size)
    return () => { parseSnapshot(document, 1) }
  }],
  'groups and keys: read again': [5_000, (size) => {
    const before = grouped(size)
    const former = parseSnapshot(before, 1)
    const after = applyChanges(before, [{ entity: 'groups', key: 'g1', value: { id: 'g1', name: 'renamed', servers: ['s1'] } }])
    return () => { parseSnapshot(after, 2, former) }
  }],
  'groups and keys: a server gets another name': [1_000, manyTimes((size) => {
    const document = grouped(size)
    return () => { applyChanges(document, [{ entity: 'mcpServers', key: 's0', value: { url: 'http://h.example/' }, rename: 'other' }]) }
  })],
  'groups and keys: a server, and a group, goes or gets another name': [5_000, (size) => {
    const snapshot = groupedSnapshot(size)
    return () => {
      assert.equal(groupChangesForServerRemoval(snapshot, 's0').length, size + 1)
      assert.equal(changesForKeyScopeRemoval(snapshot, 'allowedServers', ['s0']).length, size + 1)
      assert.equal(changesForKeyScopeRename(snapshot, 'allowedGroups', 'g0', 'other').length, size)
    }
  }],
  'groups: whether all names differ': [5_000, (size) => {
    const [former, next] = [groupedSnapshot(1), groupedSnapshot(size)]
    return () => { checkInvariants(former, next) }
  }],
  'a group of many servers: what a scoped key sees of it': [1_000, manyTimes((size) => {
    const snapshot = groupedSnapshot(size)
    const principal = scoped(size)
    return () => {
      assert.ok(canUseRoute(snapshot, principal, groupOfAll))
      for (const scope of [groupOfAll, { kind: 'global', open: true } as const]) {
        assert.equal(visibleServers(snapshot, makeView(principal, scope), 'public').length, size)
      }
    }
  })],
  'settings: read again': [5_000, (size) => {
    const text = JSON.stringify({ bearerKeys: indices(size).map((at) => ({ id: `k${at}`, allowedServers: ['a', 'b'] })) })
    const [former, next] = [0, 1].map(() => JSON.parse(text) as Record<string, unknown>)
    return () => { shareUnchangedParts(former ?? {}, next ?? {}) }
  }],
  'secrets of a config that become variables of a template': [4_000, (size) => {
    const config = { url: `http://192.0.2.1/?${indices(size).map((at) => `k=${at}x`).join('&')}` }
    return () => { replaceSecrets('q', config, new TemplateVariables(referencedVariables(config), {})) }
  }],
  ...Object.fromEntries(['m&', 'm=1&', `${'n'.repeat(20)}=&`].map((parameter) =>
    [`a query of ${parameter}`, [50_000, (size: number) => () => { parseQueryArguments(parameter.repeat(size)) }]])),
  ...Object.fromEntries(searched.map((part) => [`what a guard searches: ${part}`, [160_000, (size: number) => {
    const text = part.repeat(Math.ceil(size / part.length))
    return () => { maskText(text, ['secrets', 'email', 'card', 'iban', 'phone']) }
  }]])),
  ...Object.fromEntries(['0', '1.', '9e'].map((part) => [`the text of a number: ${part}`, [20_000, readText('n', part)]])),
  ...Object.fromEntries(['0', '1,', '[', '"\\'].map((part) => [`the text of a list: ${part}`, [20_000, readText('list', part)]])),
  ...Object.fromEntries(Object.entries(costly).flatMap(([what, make]) =>
    strategyNames.map((strategy) => [`${what}, compressed as ${strategy}`, [200_000, compressed(make, strategy)]])))
}

for (const [what, [size, prepare]] of Object.entries(inputs)) {
  test(`${what}: four times as much takes about as long as four of a fourth`, async (t) => {
    const [less, more] = [prepare(size), prepare(4 * size)]
    await less()
    await more()
    const small = await median(t, `4 of ${size}`, async () => await cpuTime(async () => { for (let time = 0; time < 4; time++) await less() }))
    const large = await median(t, `${4 * size}`, async () => await cpuTime(more))
    assert.ok(large <= mostGrowth * small + 2, `4 of ${size}: ${small} ms, ${4 * size}: ${large} ms`)
  })
}

test('a text of ever new words after others costs what it does alone', async (t) => {
  const count = await loadTokenCounter()
  const words = (length: number, base: number): string =>
    indices(length).map((n) => ` ${(n * 104_729 + base).toString(36)}x${(n * 7_919).toString(36)}`).join('')
  let base = 1
  const costOf = async (): Promise<number> => {
    const text = words(40_000, base++ * 1e9)
    return await cpuTime(() => count(text))
  }
  const alone = await median(t, 'alone', costOf)
  count(words(200_000, 2e15))
  const after = await median(t, 'after others', costOf)
  assert.ok(after < 3 * alone + 20, `${alone} and ${after} ms`)
})
