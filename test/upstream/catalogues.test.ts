// What a server lists: read page by page, kept, and shown by class.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test } from 'tap'
import { mockTimers, turnsOfLoop } from '../helpers/clock.ts'
import { seed } from '../helpers/json-texts.ts'
import fc from 'fast-check'
import { RpcError, UpstreamError } from '../../protocol/errors.ts'
import { emptyCapabilityClass } from '../../protocol/capabilities.ts'
import {
  allListKinds, nextCatalogueId, isSameCatalogue, type Catalogue, type Item, type ListKind
} from '../../protocol/lists.ts'
import { ItemClaims } from '../../plugins/gateway/claims.ts'
import { toCacheText, toCatalogue } from '../../plugins/upstream/catalogues/cache-text.ts'
import { UpstreamCatalogues } from '../../plugins/upstream/catalogues/catalogues.ts'
import type { CatalogueLimitsAndStorage } from '../../plugins/upstream/catalogues/shares.ts'
import { readList } from '../../plugins/upstream/catalogues/read-list.ts'
import type { Link } from '../../plugins/upstream/links/link.ts'
import { gatewayLinkKey, type LinkKey } from '../../plugins/upstream/links/link-key.ts'
import { Slot } from '../../plugins/upstream/links/slot.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'

const slotOf = (more: Partial<LinkKey> = {}, user?: string): Slot => new Slot({ ...gatewayLinkKey, ...more }, {}, { user })

test('readList: an upstream\'s list, page by page', async (t) => {
  interface Read { items: Item[], extra: string, warnings: string[], asked: Array<[string, string]> }
  const read = async (kind: ListKind, page: (cursor: string | undefined, at: number) => string): Promise<Read> => {
    const warnings: string[] = []
    const asked: Array<[string, string]> = []
    const result = await readList(kind, async (method, params) => {
      asked.push([method, params])
      const { cursor } = JSON.parse(params) as { cursor?: unknown }
      return page(cursor === undefined ? undefined : JSON.stringify(cursor), asked.length)
    }, (sentence) => { warnings.push(sentence) })
    return { ...result, warnings, asked }
  }
  const tool = (name: string, more = ''): string => `{"name":${JSON.stringify(name)},"inputSchema":{"type":"object"}${more}}`
  const names = ({ items }: Read): string[] => items.map(({ key }) => key)

  await t.test('every page is asked for, with the cursor as it came; items keep their text', async () => {
    const odd = '{ "name" : "b" , "inputSchema" : { "type":"object", "maximum": 12345678901234567890 } , "x-unknown" : 1e400 }'
    const result = await read('tools', (cursor) =>
      cursor === undefined
        ? `{"tools":[${tool('a')}],"nextCursor":"p\\u0032 \\"é\\"","_meta":{"n":1.50},"x":1}`
        : `{"tools":[ ${odd} ],"_meta":{"other":1}}`
    )
    assert.deepEqual(result.asked, [['tools/list', '{}'], ['tools/list', '{"cursor":"p\\u0032 \\"é\\""}']])
    assert.deepEqual(result.items, [{ key: 'a', text: tool('a') }, { key: 'b', text: odd }])
    assert.equal(result.extra, '{"_meta":{"n":1.50},"x":1}')
    assert.deepEqual(result.warnings, [])
  })
  await t.test('each kind by its own method, member and key', async () => {
    const table: Array<[ListKind, string, string, string]> = [
      ['tools', 'tools/list', 'tools', 'name'],
      ['prompts', 'prompts/list', 'prompts', 'name'],
      ['resources', 'resources/list', 'resources', 'uri'],
      ['resourceTemplates', 'resources/templates/list', 'resourceTemplates', 'uriTemplate'],
      ['skills', 'skills/list', 'skills', 'uri'],
      ['events', 'events/list', 'events', 'name']
    ]
    assert.deepEqual(allListKinds, table.map(([kind]) => kind))
    for (const [kind, method, member, key] of table) {
      const more = `${key === 'name' ? '' : ',"name":"n"'},"inputSchema":{"type":"object"}` +
        ',"frontmatter":{"name":"n","description":"d","n":12345678901234567890},"resources":"dynamic"'
      const item = `{"${key}":"k"${more}}`
      const result = await read(kind, () => `{"other":[{"${key}":"no"${more}}],"${member}":[${item}]}`)
      assert.deepEqual([result.items, result.asked[0]?.[0]], [[{ key: 'k', text: item }], method])
    }
  })
  await t.test('no list, an empty one, or something else in its place', async () => {
    for (const [result, what] of [
      ['{"tools":[]}'], ['{}', 'is missing'], ['{"tools":null}', 'is not a list, but null'], ['{"tools":{"a":1}}', 'is not a list, but {"a":1}'],
      ['{"tools":{}}', 'is not a list, but {}'], ['[]', 'is missing']
    ] as const) {
      for (const page of [1, 2]) {
        const { items, warnings } = await read('tools', (_cursor, at) => at === page ? result : `{"tools":[${tool('a')}],"nextCursor":"x"}`)
        assert.equal(items.length, page - 1, result)
        const where = page === 1 ? 'tools: ' : 'tools: page 2: '
        assert.deepEqual(warnings, what === undefined ? [] : [`${where}"tools" ${what}, and is treated as an empty list`])
      }
    }
  })
  await t.test('a list that PHP writes as an object', async () => {
    const { items, warnings } = await read('tools', () => `{"tools":{"0":${tool('a')},"2":${tool('b')}}}`)
    assert.deepEqual(items.map(({ key }) => key), ['a', 'b'])
    assert.deepEqual(warnings, ['tools: "tools" is an object with numeric keys, as PHP writes some lists, and is treated as a list'])
  })
  await t.test('it ends with a cursor that is missing, null, or the same again', async () => {
    for (const [next, pages] of [['', 1], [',"nextCursor":null', 1], [',"nextCursor":"a"', 2]] as const) {
      const result = await read('tools', (_cursor, at) => `{"tools":[${tool(`t${at}`)}]${next}}`)
      assert.equal(result.asked.length, pages, next)
      assert.equal(result.items.length, pages)
    }
  })
  await t.test('pages without end are followed up to a bound, with a warning', async () => {
    const ever = await read('tools', (_cursor, at) => `{"tools":[${tool(`t${at}`)}],"nextCursor":"${at}"}`)
    assert.equal(ever.asked.length, upstreamLimits.listPages)
    assert.equal(ever.items.length, upstreamLimits.listPages)
    assert.match(ever.warnings.at(-1) ?? '', /pages/)
  })
  await t.test('cursors that come again lead in a circle, which ends there', async () => {
    const table: Array<[string[], number]> = [[['x'], 2], [['x', 'y'], 3], [['x', 'y', 'z'], 4], [[''], 2], [['a', 'b', 'b'], 3]]
    for (const [cursors, pages] of table) {
      const next = (at: number): string => cursors[Math.min(at - 1, cursors.length) % cursors.length] ?? ''
      const result = await read('tools', (_cursor, at) => `{"tools":[${tool('a')},${tool('b')}],"nextCursor":${JSON.stringify(next(at))}}`)
      assert.deepEqual([names(result), result.asked.length], [['a', 'b'], pages], cursors.join())
      assert.deepEqual(result.warnings, ['tools: its cursors form a loop; only the items up to there are included'])
    }
  })
  await t.test('a later page that fails: the earlier ones count, and it is told', async () => {
    for (const error of [new RpcError(-32603, 'boom'), new UpstreamError('refused', 'HTTP 500'), new UpstreamError('timeout', 'no answer')]) {
      for (const failing of [2, 3]) {
        const result = await read('prompts', (_cursor, at) => {
          if (at === failing) throw error
          return `{"prompts":[{"name":"p${at}"}],"nextCursor":"${at}"}`
        })
        assert.deepEqual(names(result), ['p1', 'p2'].slice(0, failing - 1))
        assert.deepEqual(result.warnings, [
          `prompts: page ${failing} and those after it could not be read, so their items are missing: ${error.message}`
        ])
      }
    }
    const fault = new TypeError('ours')
    await assert.rejects(read('tools', (cursor) => { if (cursor === undefined) return '{"nextCursor":"x"}'; throw fault }), fault)
  })
  await t.test('an empty cursor that the server itself refuses was the end', async () => {
    const result = await read('tools', (cursor) => {
      if (cursor !== undefined) throw new RpcError(-32602, 'Invalid cursor')
      return `{"tools":[${tool('a')}],"nextCursor":""}`
    })
    assert.deepEqual([names(result), result.warnings], [['a'], []])
  })
  await t.test('what is null in items is one sentence for all of them', async () => {
    const items = ['a', 'b', 'c'].map((name) => tool(name, ',"annotations":{"title":null}')).join()
    const result = await read('tools', () => `{"tools":[null,${tool('good')},${items}],"_meta":null,"ttlMs":null,"x":null}`)
    assert.deepEqual([names(result), result.extra], [['good', 'a', 'b', 'c'], '{"x":null}'])
    assert.deepEqual(result.warnings, [
      'tools: an item without "name" was omitted',
      'tools: null, or [] for an object, is treated as absent in "a" ("annotations.title") and in 2 more items'
    ])
    assert.equal(result.items[1]?.text, tool('a', ',"annotations":{}'))
  })
  await t.test('of items with one name the first counts, with a warning', async () => {
    const result = await read('tools', (cursor) =>
      cursor === undefined
        ? `{"tools":[${tool('a', ',"n":1')},${tool('b')},${tool('a', ',"n":2')}],"nextCursor":"x"}`
        : `{"tools":[${tool('b', ',"n":3')}]}`
    )
    assert.deepEqual(result.items.map(({ text }) => text), [tool('a', ',"n":1'), tool('b')])
    assert.equal(result.warnings.length, 2)
    assert.match(result.warnings[0] ?? '', /"a"/)
  })
  await t.test('an invalid item is left out with a warning, the rest is served', async () => {
    for (const bad of [
      'null', '1', '"x"', '[]', '{}', '{"name":""}', '{"name":1,"inputSchema":{}}', '{"name":"x"}', '{"name":"x","inputSchema":5}',
      '{"name":"x","inputSchema":[1]}',
      `{"name":"x","inputSchema":{},"pad":"${'x'.repeat(upstreamLimits.itemSize)}"}`
    ]) {
      // Of a large item, only the members that matter are parsed.
      const large = bad.replace(/^\{/, `{"pad":"${'x'.repeat(20_000)}"${bad === '{}' ? '' : ','}`)
      for (const each of [bad, large]) {
        const result = await read('tools', () => `{"tools":[${tool('a')},${each},${tool('z')}]}`)
        assert.deepEqual(names(result), ['a', 'z'], bad.slice(0, 60))
        assert.equal(result.warnings.length, 1)
      }
    }
    const padded = tool('a', `,"pad":"${'x'.repeat(20_000)}","inputSchema":{"type":"object"},"name":"last"`)
    const { items } = await read('tools', () => `{"tools":[${padded}]}`)
    const single = `{"pad":"${'x'.repeat(20_000)}","inputSchema":{"type":"object"},"name":"last"}`
    assert.deepEqual(items, [{ key: 'last', text: single }], 'of a repeated member the last one is kept')
    assert.deepEqual(names(await read('prompts', () => '{"prompts":[{"name":"p"}]}')), ['p'], 'a prompt needs no schema')
  })
  await t.test('an item is left out where a known member is not what MCP says: clients refuse a whole list for one', async () => {
    const described = ['"title":5', '"description":5', '"icons":"x"', '"icons":[{}]', '"icons":[{"src":"x","sizes":"16x16"}]', '"_meta":5', '"_meta":[1]']
    const resource = [...described, '"mimeType":1', '"annotations":"x"', '"annotations":{"priority":5}', '"annotations":{"audience":["bot"]}', '"name":5']
    const table: Array<[ListKind, string, string[]]> = [
      ['tools', '"name":"bad","inputSchema":{"type":"object"}', [
        ...described, '"inputSchema":{"type":"array"}', '"outputSchema":true', '"annotations":{"readOnlyHint":"yes"}', '"execution":{"taskSupport":"maybe"}'
      ]],
      ['prompts', '"name":"bad"', [...described, '"arguments":"x"', '"arguments":[{"name":5}]', '"arguments":[{"name":"a","required":"yes"}]']],
      ['resources', '"uri":"bad","name":"n"', [...resource, '"size":"big"']],
      ['resourceTemplates', '"uriTemplate":"bad","name":"n"', resource]
    ]
    for (const [kind, start, members] of table) {
      for (const member of members) {
        for (const pad of ['', `,"pad":"${'x'.repeat(20_000)}"`]) {
          const bad = `{${start},${member}${pad}}`
          const result = await read(kind, () => `{"${kind}":[${bad},{${start.replace('bad', 'good')}}]}`)
          assert.deepEqual(names(result), ['good'], `${kind} ${member}`)
          assert.equal(result.warnings.length, 1)
          assert.match(result.warnings[0] ?? '', new RegExp(`^${kind}: "bad" was omitted: "${/\w+/.exec(member)?.[0] ?? ''}`))
        }
      }
    }
  })
  await t.test('what it lacks or has as null is mended, where that is plain', async () => {
    const listed = async (kind: ListKind, item: string): Promise<string | undefined> => (await read(kind, () => `{"${kind}":[${item}]}`)).items[0]?.text
    for (const pad of ['', `,"pad":"${'x'.repeat(20_000)}"`]) {
      assert.equal(await listed('tools', `{"name":"a","inputSchema":{"n":1e400},"title":null${pad},"_meta":null}`),
        `{"name":"a","inputSchema":{"n":1e400,"type":"object"}${pad}}`)
      assert.equal(await listed('resources', `{"uri":"r:1","mimeType":null,"x":null${pad}}`), `{"uri":"r:1","x":null${pad},"name":"r:1"}`)
      assert.equal(await listed('resourceTemplates', `{"uriTemplate":"r:{a}","name":null${pad}}`), `{"uriTemplate":"r:{a}"${pad},"name":"r:{a}"}`)
      for (const none of [',"inputSchema":null', ',"inputSchema":[ ]']) {
        const tool: unknown = JSON.parse(await listed('tools', `{"name":"a"${none}${pad}}`) ?? 'null')
        assert.deepEqual({ ...tool as object, pad: 0 }, { name: 'a', inputSchema: { type: 'object' }, pad: 0 }, none)
      }
    }
  })
  await t.test('names like those of Object.prototype are names', async () => {
    const odd = ['__proto__', 'constructor', 'toString', 'ü\ud83d\ude00']
    const result = await read('tools', () => `{"tools":[${odd.map((name) => tool(name)).join(',')}]}`)
    assert.deepEqual(names(result), odd)
  })
  await t.test('a long description is cut, all else of the item stays', async () => {
    const most = 'd'.repeat(upstreamLimits.description)
    // Not through a character either.
    for (const [said, shown] of [[`${most}d`, most], [most, most], [`${most.slice(1)}😀 and more`, most.slice(1)]] as const) {
      const { items: [item] } = await read('tools', () => `{"tools":[${tool('a', `,"description":"${said}","n":1e400`)}]}`)
      assert.equal(item?.text, tool('a', `,"description":"${shown}","n":1e400`))
    }
  })
  await t.test('more items than anyone needs are left out, with a warning', async () => {
    const result = await read(
      'prompts',
      (_cursor, at) =>
        `{"prompts":[${Array.from({ length: 20_000 }, (_, index) => `{"name":"${at}-${index}"}`).join(',')}],"nextCursor":"${at}"}`
    )
    assert.equal(result.items.length, upstreamLimits.listItems)
    assert.match(result.warnings.at(-1) ?? '', /only the first/)
  })
  await t.test('a name with characters that are not seen, or that turn others round, is left out', async () => {
    for (const odd of ['line\nbreak', '\u{202e}txet', 'a\u{2066}b', 'a\u{200f}', 'a\u{e0041}\u{e007f}']) {
      const result = await read('tools', () => `{"tools":[${tool(odd)},${tool('plain')}]}`)
      assert.deepEqual(names(result), ['plain'], JSON.stringify(odd))
      assert.match(result.warnings.join(), /^tools: "[\w\u{fffd}]+" has control characters in its name and was omitted$/u)
    }
    // Other scripts, and what belongs to them, are names.
    const scripts = ['Größe', '天気', 'نص', 'क्‍ष']
    assert.deepEqual(names(await read('tools', () => `{"tools":[${scripts.map((name) => tool(name)).join()}]}`)), scripts)
  })
  await t.test('an error of the upstream is the caller\'s', async () => {
    await assert.rejects(readList('tools', async () => { throw new UpstreamError('broken', 'gone') }, () => {}), { message: 'gone' })
  })
})

const lists = (tools: string[] = []): Catalogue['lists'] => ({
  tools: tools.map((key) => ({ key, text: `{"name":"${key}"}` })),
  prompts: [],
  resources: [],
  resourceTemplates: [],
  skills: [],
  events: []
})

const noExtras: Catalogue['extras'] = { tools: '{}', prompts: '{}', resources: '{}', resourceTemplates: '{}', skills: '{}', events: '{}' }
const catalogue = (more: Partial<Catalogue> = {}): Catalogue => ({
  id: nextCatalogueId(),
  capabilityClass: emptyCapabilityClass,
  version: '2025-11-25',
  serverInfo: '{"name":"x","version":"1"}',
  instructions: undefined,
  capabilities: { tools: {} },
  lists: lists(['a', 'b']),
  extras: noExtras,
  ...more
})

test('catalogue: the same, and kept', async (t) => {
  await t.test('sameCatalogue: what a client could tell apart', async () => {
    assert.equal(isSameCatalogue(catalogue(), catalogue()), true, 'the id is ours alone')
    const differences: Array<Partial<Catalogue>> = [
      { serverInfo: '{"name":"x","version":"2"}' }, { instructions: 'do' }, { capabilities: { tools: { listChanged: true } } },
      { lists: lists(['a']) }, { lists: lists(['b', 'a']) }, { lists: lists(['a', 'b', 'c']) },
      { lists: { ...lists(['a', 'b']), tools: [{ key: 'a', text: '{"name":"a"}' }, { key: 'b', text: '{"name":"b" }' }] } },
      ...allListKinds.map((kind) => ({ extras: { ...noExtras, [kind]: '{"_meta":{}}' } })),
      ...allListKinds.filter((kind) => kind !== 'tools').map((kind) => ({ lists: { ...lists(['a', 'b']), [kind]: [{ key: 'k', text: '{}' }] } }))
    ]
    for (const difference of differences) {
      assert.equal(isSameCatalogue(catalogue(), catalogue(difference)), false, JSON.stringify(difference))
      assert.equal(isSameCatalogue(catalogue(difference), catalogue()), false)
    }
  })
  await t.test('the text on disk gives it back, under an id of its own; what is none gives nothing', async () => {
    const before = catalogue({
      instructions: 'say "hi"',
      lists: { ...lists(), resources: [{ key: 'a', text: '{"uri":"a","n":12345678901234567890}' }] }
    })
    const after = toCatalogue(JSON.parse(JSON.stringify(before)))
    assert.ok(after)
    assert.equal(isSameCatalogue(before, after), true)
    assert.notEqual(after.id, before.id)
    assert.deepEqual({ ...after, id: 0 }, { ...before, id: 0 })
    const { id: _, ...whole } = JSON.parse(JSON.stringify(before)) as Record<string, unknown>
    for (const bad of [
      null, [], 'x',
      ...Object.keys(whole).filter((key) => !['version', 'instructions'].includes(key)).map((key) => ({ ...whole, [key]: undefined })),
      { ...whole, lists: { tools: [] } }, { ...whole, extras: { ...noExtras, tools: 1 } }
    ]) assert.equal(toCatalogue(bad), undefined, JSON.stringify(bad))
    for (const item of [null, 'x', {}, { key: 1, text: '{}' }, { key: 'a' }, { key: 'a', text: 'no object' }]) {
      assert.equal(toCatalogue({ ...whole, lists: { ...(whole.lists as object), tools: [item] } }), undefined,
        `an item that is damaged: ${JSON.stringify(item)}`)
    }
  })
})

test('catalogues: by class, and for single clients where that differs', async (t) => {
  const sampling = '{"sampling":{}}'
  /** Text as a cache file gives it; undefined: there is no file. */
  async function * cached (...pieces: Array<string | undefined>): AsyncGenerator<string> {
    for (const piece of pieces) if (piece !== undefined) yield piece
  }
  interface Made { catalogues: UpstreamCatalogues, listed: () => number, kept: string[], warnings: string[] }
  interface Shares extends Partial<CatalogueLimitsAndStorage> { owner?: string, owned?: () => Iterable<Catalogue> }
  const make = (target = 'one', { owner = 'ann', owned = () => [], ...allowance }: Shares = {}): Made => {
    let listed = 0
    const kept: string[] = []
    const warnings: string[] = []
    return {
      catalogues: new UpstreamCatalogues({
        ownCatalogues: owned,
        examine: async () => {},
        owner,
        sourceId: target,
        onChange: () => { listed++ },
        allowance: {
          remainingSize: () => Infinity,
          setHeldSize: () => {},
          waitTime: () => 0,
          recordRead: () => {},
          store: (text) => { kept.push([...text].join('')) },
          ...allowance
        },
        warn: (sentence) => { warnings.push(sentence) }
      }),
      listed: () => listed,
      kept,
      warnings
    }
  }
  /** A link to a server that has tools only. @param list answers `tools/list` with their names */
  const linkOf = (capabilityClass: string, list: () => string[] | Promise<string[]>, more: () => object = () => ({})): Link => ({
    key: { capabilityClass },
    identity: { version: '2025-11-25', capabilities: { tools: {} }, serverInfo: '{"name":"x","version":"1"}', instructions: undefined },
    request: async () => JSON.stringify({ tools: (await list()).map((name) => ({ name, inputSchema: { type: 'object' } })), ...more() })
  }) as unknown as Link
  /** A slot whose link lists these tools, and says how often it was asked. */
  interface Fake { slot: Slot, now: (tools: string[]) => void, asked: () => number, caching: () => object }
  const fake = (key: Partial<LinkKey>, tools: string[], user?: string): Fake => {
    const slot = slotOf(key, user)
    let asked = 0
    let current = tools
    const made: Fake = { slot, now: (fresh) => { current = fresh }, asked: () => asked, caching: () => ({}) }
    slot.link = linkOf(slot.key.capabilityClass, () => { asked++; return current }, () => made.caching())
    return made
  }
  const sizeOfItem = (name: string): number => JSON.stringify({ name, inputSchema: { type: 'object' } }).length
  const tools = (found: Catalogue | undefined): string[] | undefined => found?.lists.tools.map(({ key }) => key)

  await t.test('a class that is not known yet is shown what clients are that declare nothing', async () => {
    const { catalogues } = make()
    assert.equal(catalogues.of(undefined, emptyCapabilityClass), undefined)
    await catalogues.read(fake({}, ['a']).slot, true)
    assert.equal(catalogues.has(emptyCapabilityClass), true)
    assert.equal(catalogues.has(sampling), false)
    assert.deepEqual(tools(catalogues.of(undefined, sampling)), ['a'])
    await catalogues.read(fake({ capabilityClass: sampling }, ['a', 'ask']).slot, false)
    assert.deepEqual(tools(catalogues.of(undefined, sampling)), ['a', 'ask'])
    assert.deepEqual(tools(catalogues.of(undefined, emptyCapabilityClass)), ['a'])
  })
  await t.test('what is listed to several classes is kept once', async () => {
    const { catalogues, listed, kept } = make()
    await catalogues.read(fake({}, ['a', 'b']).slot, true)
    const base = catalogues.of(undefined, emptyCapabilityClass)
    await catalogues.read(fake({ capabilityClass: sampling }, ['a', 'b']).slot, false)
    assert.deepEqual([catalogues.has(sampling), listed(), kept.length], [true, 1, 1])
    assert.equal(catalogues.of(undefined, sampling), base)
    assert.deepEqual(catalogues.all, [base])
    await catalogues.read(fake({ capabilityClass: '{"roots":{}}' }, ['a', 'ask', 'b']).slot, false)
    const [a, ask, b] = catalogues.of(undefined, '{"roots":{}}')?.lists.tools ?? []
    assert.deepEqual([a === base?.lists.tools[0], ask?.key, b === base?.lists.tools[1]], [true, 'ask', true])
  })
  await t.test('what is listed to some clients only has a limit', async () => {
    let held = 0
    const { catalogues, warnings } = make('one', { setHeldSize: (size) => { held = size } })
    const length = upstreamLimits.itemSize - 1_000
    const long = (mark: string): string[] => Array.from({ length: 17 }, (_, at) => `${mark}${at}`.padEnd(length, 'x'))
    await catalogues.read(fake({}, ['a']).slot, true)
    await catalogues.read(fake({ key: 'session 1', affinity: 'session', capabilityClass: sampling }, ['a', ...long('x')]).slot, false)
    await catalogues.read(fake({ capabilityClass: '{"roots":{}}' }, ['a', ...long('y')]).slot, false)
    assert.ok(Number(tools(catalogues.of(undefined, sampling))?.length) > 10)
    assert.deepEqual(tools(catalogues.of(undefined, '{"roots":{}}')), ['a'])
    assert.match(warnings.join(), /further clients get its lists for clients without capabilities/)
    assert.ok(held < upstreamLimits.otherLists)
  })
  await t.test('it is published and kept when it is news, and only then', async () => {
    const { catalogues, listed, kept } = make()
    const base = fake({}, ['a'])
    await catalogues.read(base.slot, true)
    assert.deepEqual([listed(), kept.length, catalogues.isKnown], [1, 1, true])
    const first = catalogues.of(undefined, emptyCapabilityClass)
    await catalogues.read(base.slot, true)
    assert.deepEqual([listed(), kept.length], [1, 1])
    assert.equal(catalogues.of(undefined, emptyCapabilityClass), first, 'the same catalogue stays the same object')
    base.now(['a', 'b'])
    await catalogues.read(base.slot, true)
    assert.deepEqual([listed(), kept.length], [2, 2])
  })
  await t.test('news on one client\'s own connection are that client\'s own, until they are what its class has', async () => {
    const { catalogues, listed } = make()
    const [one, other] = [
      fake({ key: 'session 1', affinity: 'session', capabilityClass: sampling }, ['a']),
      fake({ key: 'session 2', affinity: 'session', capabilityClass: sampling }, ['a'])
    ]
    await catalogues.read(one.slot, false)
    await catalogues.read(other.slot, false)
    assert.deepEqual([listed(), one.slot.catalogue, other.slot.catalogue], [1, undefined, undefined])
    one.now(['a', 'mine'])
    await catalogues.read(one.slot, false)
    assert.deepEqual(tools(catalogues.of(one.slot, sampling)), ['a', 'mine'])
    assert.deepEqual(tools(catalogues.of(other.slot, sampling)), ['a'])
    assert.deepEqual(tools(catalogues.of(undefined, sampling)), ['a'])
    assert.equal(listed(), 2)
    one.now(['a'])
    await catalogues.read(one.slot, false)
    assert.equal(one.slot.catalogue, undefined)
    assert.equal(listed(), 3)
  })
  await t.test('those of single connections count as well, until these end', async () => {
    const size = sizeOfItem('a')
    let held = 0
    const slots = [1, 2, 3].map((n) => fake({ key: `session ${n}`, affinity: 'session', capabilityClass: sampling }, ['a']))
    const ended = new Set<unknown>()
    const { catalogues } = make('one', {
      remainingSize: () => 6 * size,
      setHeldSize: (now) => { held = now },
      owned: () => slots.flatMap(({ slot }) => ended.has(slot) ? [] : slot.catalogue ?? [])
    })
    for (const { slot } of slots) await catalogues.read(slot, false)
    assert.equal(held, size)
    for (const { slot, now } of slots) {
      now(['b', 'c', 'd'])
      await catalogues.read(slot, false)
    }
    assert.deepEqual(slots.map(({ slot }) => tools(slot.catalogue)), [['b', 'c', 'd'], ['b', 'c'], []])
    assert.equal(held, 6 * size)
    ended.add(slots[0]?.slot)
    catalogues.reportSize()
    assert.equal(held, 3 * size)
    catalogues.close()
    catalogues.reportSize()
    assert.equal(held, 0, 'what ends late holds nothing')
  })
  await t.test('when the gateway\'s own list changes, what is known of other classes is no longer', async () => {
    const { catalogues } = make()
    const base = fake({}, ['a'])
    await catalogues.read(base.slot, true)
    await catalogues.read(fake({ capabilityClass: sampling }, ['a', 'ask']).slot, false)
    await catalogues.read(base.slot, true)
    assert.equal(catalogues.has(sampling), true, 'nothing has changed')
    base.now(['b'])
    await catalogues.read(base.slot, true)
    assert.equal(catalogues.has(sampling), false)
    assert.deepEqual(tools(catalogues.of(undefined, sampling)), ['b'])
  })
  await t.test('after a change that all connections read in whatever order, all clients are shown it', async () => {
    const order = fc.shuffledSubarray(['base', 'one', 'other'] as const, { minLength: 3 })
    await fc.assert(fc.asyncProperty(fc.array(order, { minLength: 1, maxLength: 4 }), async (rounds) => {
      const { catalogues } = make()
      const fakes = {
        base: fake({}, ['0']),
        one: fake({ key: 'session 1', affinity: 'session', capabilityClass: sampling }, ['0']),
        other: fake({ key: 'session 2', affinity: 'session', capabilityClass: sampling }, ['0'])
      }
      for (const [name, { slot }] of Object.entries(fakes)) await catalogues.read(slot, name === 'base')
      for (const [round, names] of rounds.entries()) {
        const now = [String(round + 1)]
        for (const each of Object.values(fakes)) each.now(now)
        for (const name of names) await catalogues.read(fakes[name].slot, name === 'base')
        for (const { slot } of [...Object.values(fakes)]) {
          assert.deepEqual(tools(catalogues.of(slot, slot.key.capabilityClass)), now, `round ${round + 1}, ${slot.key.key}`)
        }
        assert.deepEqual(tools(catalogues.of(undefined, sampling)), now, 'clients that come later')
      }
    }), { seed, numRuns: 200 })
  })
  await t.test('a shared connection that is not the gateway\'s own speaks for its class only', async () => {
    const { catalogues } = make()
    const shared = fake({ key: 'x', capabilityClass: sampling }, ['a'])
    await catalogues.read(fake({}, ['a']).slot, true)
    await catalogues.read(shared.slot, false)
    shared.now(['b'])
    await catalogues.read(shared.slot, false)
    assert.deepEqual(tools(catalogues.of(shared.slot, sampling)), ['b'])
    assert.deepEqual(tools(catalogues.of(undefined, emptyCapabilityClass)), ['a'])
  })
  await t.test('nothing is read, for the first time neither, while its owner has used up what may be read', async () => {
    const { catalogues, listed } = make('one', { waitTime: (isFirst) => isFirst ? 60_000 : 0 })
    const base = fake({}, ['a'])
    await catalogues.read(base.slot, true)
    assert.deepEqual([base.asked(), listed()], [0, 0])
    catalogues.close()
  })
  await t.test('lists that have run out are read again when somebody asks, and not sooner', async (t) => {
    mockTimers(t, 'setTimeout', 'Date')
    const { catalogues, listed } = make()
    const base = fake({}, ['a'])
    let [ttlMs, cacheScope] = [60_000, 'public']
    base.caching = () => ({ ttlMs, cacheScope })
    await catalogues.read(base.slot, true)
    const first = catalogues.of(undefined, emptyCapabilityClass)
    assert.ok(first)
    const said = (): unknown => catalogues.caching(first, 'tools', base.slot)
    assert.deepEqual([said(), first.extras.tools], [{ ttlMs: 60_000, isPublic: true }, '{}'])
    assert.equal(catalogues.caching(first, 'prompts', base.slot), undefined)
    mock.timers.tick(30_000)
    assert.deepEqual(said(), { ttlMs: 30_000, isPublic: true })
    assert.equal(catalogues.catchUp(base.slot, true), undefined)
    mock.timers.tick(30_000)
    assert.deepEqual(said(), { ttlMs: 0, isPublic: true })
    assert.equal(base.asked(), 1)
    ttlMs = 1
    await catalogues.catchUp(base.slot, true)?.done
    // Nothing has changed but the time.
    assert.deepEqual([base.asked(), listed(), said()], [2, 1, { ttlMs: 1, isPublic: true }])
    mock.timers.tick(gatewayLimits.freshLists.least - 1)
    assert.equal(catalogues.catchUp(base.slot, true), undefined)
    mock.timers.tick(1)
    ttlMs = 60_000
    base.now(['b'])
    await catalogues.catchUp(base.slot, true)?.done
    assert.deepEqual([base.asked(), listed(), tools(catalogues.of(undefined, emptyCapabilityClass))], [3, 2, ['b']])
  })
  await t.test('what a server lists to one user\'s login alone is shown to nobody else', async () => {
    for (const [cacheScope, seen] of [['private', undefined], ['public', ['a']]] as const) {
      const { catalogues, kept } = make()
      const [ann, bob] = ['ann', 'bob'].map((user) => fake({ key: user, affinity: 'user' }, ['a'], user))
      assert.ok(ann && bob)
      ann.caching = () => ({ ttlMs: 1, cacheScope })
      await catalogues.read(ann.slot, false)
      assert.deepEqual(tools(catalogues.of(ann.slot, emptyCapabilityClass)), ['a'])
      assert.deepEqual(tools(catalogues.of(bob.slot, emptyCapabilityClass)), seen, cacheScope)
      assert.equal(kept.length, seen ? 1 : 0)
    }
  })
  await t.test('who asks while it is being read waits for that reading', async () => {
    const { catalogues } = make()
    const base = fake({}, ['a'])
    await Promise.all([catalogues.read(base.slot, true), catalogues.read(base.slot, true)])
    assert.equal(base.asked(), 1)
  })
  await t.test('news are read 30 ms after the first of a burst, however long it goes on; later ones once more', async (t) => {
    mockTimers(t, 'setTimeout')
    const { catalogues } = make()
    const base = fake({}, ['a'])
    const asked: number[] = []
    for (let ms = 0; ms < 90; ms++) {
      catalogues.refresh(base.slot, true)
      if (ms % 30 === 0) base.now([`of ${ms}`])
      mock.timers.tick(1)
      await turnsOfLoop(1)
      asked.push(base.asked())
    }
    assert.deepEqual([asked[28], asked[29], asked[58], asked[59], asked[88], asked[89]], [0, 1, 1, 2, 2, 3])
  })
  await t.test('a server that tells of changes whenever it is asked, and has none, is asked ever less', async (t) => {
    mockTimers(t, 'setTimeout', 'Date')
    const { catalogues } = make()
    const base = fake({}, ['a'])
    const run = async (ms: number): Promise<number> => {
      const before = base.asked()
      for (let time = 0; time < ms; time += 10) {
        catalogues.refresh(base.slot, true)
        mock.timers.tick(10)
        await turnsOfLoop(1)
      }
      return base.asked() - before
    }
    assert.ok(await run(20_000) <= 12)
    const late = await run(60_000)
    assert.ok(late >= 5 && late <= 7, `${late} times in a minute`)
    base.now(['b'])
    let waited = 0
    while (tools(catalogues.of(undefined, emptyCapabilityClass))?.[0] !== 'b') { await run(10); waited += 10 }
    assert.ok(waited <= 10_100, `${waited} ms`)
    base.now(['c'])
    await run(50)
    assert.deepEqual(tools(catalogues.of(undefined, emptyCapabilityClass)), ['c'], 'real news are quick again')
  })
  await t.test('a burst of news is one reading, after what was being read', async (t) => {
    mockTimers(t, 'setTimeout')
    const { catalogues, warnings } = make()
    const base = fake({}, ['a'])
    let release = (): void => {}
    const reading = new Promise<void>((resolve) => { release = resolve })
    base.slot.link = linkOf(emptyCapabilityClass, async () => { await reading; return ['old'] })
    const first = catalogues.read(base.slot, true)
    base.slot.link = fake({}, ['new']).slot.link
    for (let news = 0; news < 10; news++) { catalogues.refresh(base.slot, true); mock.timers.tick(5) }
    await turnsOfLoop(1)
    assert.equal(catalogues.of(undefined, emptyCapabilityClass), undefined)
    mock.timers.tick(1_000)
    await turnsOfLoop(1)
    release()
    await first
    await turnsOfLoop(1)
    assert.deepEqual(tools(catalogues.of(undefined, emptyCapabilityClass)), ['new'], 'what was read before the news is not the end')
    base.slot.link = linkOf(emptyCapabilityClass, () => { throw new UpstreamError('broken', 'gone') })
    catalogues.refresh(base.slot, true)
    mock.timers.tick(1_000)
    await turnsOfLoop(1)
    assert.match(warnings.join(), /gone/)
    assert.deepEqual(tools(catalogues.of(undefined, emptyCapabilityClass)), ['new'], 'the last known one stays')
    catalogues.refresh(base.slot, true)
    catalogues.close()
    mock.timers.tick(1_000)
    await turnsOfLoop(1)
    assert.equal(warnings.length, 1, 'nothing is read after the end')
  })
  await t.test('since when items are listed is kept with them', async (t) => {
    type Since = { isInitial: boolean, reading: number } | undefined
    const since = (of: UpstreamCatalogues, ...keys: string[]): Since[] => keys.map((key) => of.claims.firstListing('tools', key))
    const restored = async (kept: string | undefined, target?: string, more?: Shares): Promise<Made> => {
      const made = make(target, more)
      await made.catalogues.restoreFrom(() => cached(kept))
      return made
    }
    const before = make()
    assert.equal(before.catalogues.claims.isKnown, false)
    const base = fake({}, ['a', 'gone'])
    await before.catalogues.read(base.slot, true)
    await before.catalogues.read(fake({ capabilityClass: sampling }, ['a', 'ask']).slot, false)
    base.now(['a', 'late'])
    await before.catalogues.read(base.slot, true)
    const known = since(before.catalogues, 'a', 'gone', 'ask', 'late', 'never')
    assert.deepEqual(known.map((each) => each?.isInitial), [true, true, false, false, undefined])
    const kept = before.kept.at(-1) ?? ''
    const { catalogues } = await restored(kept)
    assert.deepEqual(since(catalogues, 'a', 'gone', 'ask', 'late', 'never'), known)
    assert.deepEqual([...catalogues.claims.keys('tools')].toSorted(), ['a', 'ask', 'gone', 'late'])
    // What is listed from now on is later than all that, whatever the clock says.
    const ahead = Date.now() + 1e9
    const future = await restored(kept.replace(/\["late",\d+\]/, `["late",${ahead}]`))
    base.now(['a', 'late', 'latest'])
    await future.catalogues.read(base.slot, true)
    assert.deepEqual(since(future.catalogues, 'late', 'latest').map((each) => Number(each?.reading) - ahead), [0, 1])

    await t.test('what is damaged counts as if it were not there', async () => {
      for (const [claims, expected] of [
        ['5', [0, 0]],
        ['{"initial":"x","items":{}}', [0, 0]],
        ['{"initial":1e99,"items":{}}', [0, 0]],
        ['{"initial":7,"items":5}', [0, 0]],
        ['{"initial":7,"items":{"tools":5}}', [7, 7]],
        ['{"initial":7,"items":{"tools":[1,null,["a"],["a",-1],["a","9"],[2,2],["b",9]]}}', [7, 9]]
      ] as const) {
        const text = [...toCacheText('one', 'ann', new ItemClaims(), [catalogue()])].join('').replace(/"claims":.*/, `"claims":${claims}}`)
        assert.deepEqual(since((await restored(text)).catalogues, 'a', 'b').map((each) => each?.reading), expected, claims)
      }
    })
    await t.test('of another target: what is listed there as well stays, the rest is late or free', async () => {
      for (const at of ['restart', 'change'] as const) {
        const other = at === 'restart' ? await restored(kept, 'another') : make('another')
        // The claims are handed over, and belong to `other` from now on.
        if (at === 'change') other.catalogues.takeOver((await restored(kept)).catalogues)
        assert.deepEqual([other.catalogues.isKnown, other.catalogues.claims.isKnown], [false, true])
        assert.deepEqual(since(other.catalogues, 'a', 'gone', 'late'), since(before.catalogues, 'a', 'gone', 'late'), 'until it is read')
        other.catalogues.store()
        const again = await restored(other.kept.at(-1), 'another')
        base.now(['a', 'late', 'new'])
        for (const { catalogues } of [other, again]) {
          await catalogues.read(base.slot, true)
          assert.deepEqual(since(catalogues, 'a', 'gone', 'late'), [known[0], undefined, known[3]])
          assert.deepEqual(since(catalogues, 'new').map((each) => each?.isInitial), [false])
        }
      }
    })
    await t.test('what is read from the server sooner than from disk is published after it', async () => {
      const { catalogues } = make()
      let isOnDisk = (_: string): void => {}
      const onDisk = new Promise<string>((resolve) => { isOnDisk = resolve })
      const restored = catalogues.restoreFrom(async function * () { yield await onDisk })
      base.now(['a', 'late', 'new'])
      const reading = catalogues.read(base.slot, true)
      await turnsOfLoop(1)
      assert.equal(catalogues.isKnown, false)
      isOnDisk(kept)
      await Promise.all([restored, reading])
      assert.deepEqual(since(catalogues, 'a', 'gone', 'late'), [known[0], known[1], known[3]])
      assert.equal(since(catalogues, 'new')[0]?.isInitial, false)
      const unreadable = make()
      await unreadable.catalogues.restoreFrom(async function * () { throw new Error('no disk') })
      assert.match(unreadable.warnings.join(), /cannot be read/)
      await unreadable.catalogues.read(base.slot, true)
      assert.equal(unreadable.catalogues.isKnown, true)
    })
    await t.test('of another owner it is not used', async () => {
      const bobs = { owner: 'bob' }
      assert.equal((await restored(kept, 'another', bobs)).catalogues.claims.isKnown, false)
      const taken = make('another', bobs)
      taken.catalogues.takeOver(before.catalogues)
      assert.equal(taken.catalogues.claims.isKnown, false)
      assert.deepEqual(since(before.catalogues, 'a'), [known[0]])
    })
    await t.test('names that are not listed any more have a bound in size: the oldest are free again', async () => {
      const long = Array.from({ length: 200 }, (_, n) => `${n}-${'x'.repeat(1_000)}`.slice(0, 1_000))
      const base = fake({}, ['a', ...long])
      const { catalogues } = make()
      await catalogues.read(base.slot, true)
      base.now(['a'])
      await catalogues.read(base.slot, true)
      assert.deepEqual([...catalogues.claims.keys('tools')], ['a', ...long.slice(-Math.floor(gatewayLimits.formerItemsSize / 1_000))])
    })
    await t.test('what is not listed any more has a bound on disk, also where single clients were listed it', async () => {
      const own = fake({ key: 'session 1', affinity: 'session' }, [])
      const many = make('one', { owned: () => own.slot.catalogue ? [own.slot.catalogue] : [] })
      await many.catalogues.read(fake({}, ['a']).slot, true)
      own.now(Array.from({ length: gatewayLimits.formerItems + 10 }, (_, n) => n === 5 ? 'x'.repeat(gatewayLimits.formerItemKey + 1) : `own-${n}`))
      await many.catalogues.read(own.slot, false)
      const { claims } = (await restored(many.kept.at(-1))).catalogues
      const left = [...claims.keys('tools')]
      assert.deepEqual([left.length, left.includes('own-9'), left.includes('own-10')], [gatewayLimits.formerItems + 1, false, true])
      assert.ok(left.includes('a'))
    })
  })
  await t.test('what was kept is taken up again, for the same target only', async () => {
    const before = make()
    await before.catalogues.read(fake({}, ['a']).slot, true)
    await before.catalogues.read(fake({ capabilityClass: sampling }, ['ask']).slot, false)
    const kept = before.kept.at(-1) ?? ''
    const same = make()
    await same.catalogues.restoreFrom(() => cached(kept))
    assert.equal(same.catalogues.isKnown, true)
    assert.deepEqual([tools(same.catalogues.of(undefined, emptyCapabilityClass)), tools(same.catalogues.of(undefined, sampling))], [['a'], ['ask']])
    const other = make('another')
    await other.catalogues.restoreFrom(() => cached(kept))
    assert.deepEqual([other.catalogues.isKnown, other.catalogues.of(undefined, emptyCapabilityClass)], [false, undefined])
    for (const bad of [
      undefined, '', '{"owner":"ann",', '{"owner":"ann","target":"one"}', '{"owner":"ann","target":"one","claims":{},"catalogues":[1,null,{}]}',
      'null', '[]', '{"target":"one","catalogues":5}'
    ]) {
      const odd = make()
      await odd.catalogues.restoreFrom(() => cached(bad))
      assert.equal(odd.catalogues.of(undefined, emptyCapabilityClass), undefined, bad)
    }
  })
  await t.test('a large one is written in pieces and read in steps, and not read again where something newer is known', async () => {
    const items = Array.from({ length: 200 }, (_, n) => `t${n}`).map((name) => (
      { key: name, text: JSON.stringify({ name, text: 'x\u2028'.repeat(5_000) }) }
    ))
    const large = catalogue({ lists: { ...lists(), tools: items } })
    const pieces = [...toCacheText('one', 'ann', new ItemClaims(), [large, catalogue({ capabilityClass: sampling })])]
    assert.ok(Math.max(...pieces.map(({ length }) => length)) < 100_000, 'one piece is much larger than the others')
    const { catalogues } = make()
    let turns = 0
    let isOver = false
    const count = (): void => { turns++; if (!isOver) setImmediate(count) }
    setImmediate(count)
    const text = pieces.join('')
    // Pieces of a file end anywhere.
    await catalogues.restoreFrom(() => cached(...text.match(/[^]{1,65535}/g) ?? []))
    isOver = true
    assert.deepEqual(tools(catalogues.of(undefined, emptyCapabilityClass)), items.map(({ key }) => key))
    assert.deepEqual(tools(catalogues.of(undefined, sampling)), ['a', 'b'])
    assert.ok(turns > 1, 'nothing else ran meanwhile')
    await catalogues.restoreFrom(() => { throw new Error('it was read again') })
    const lines = text.split('\n')
    const withThird = (line: string): string => lines.with(3, line).join('\n')
    for (const damaged of [lines.slice(0, -2).join('\n'), text.slice(0, -3), withThird('{"tools":'), withThird('5')]) {
      const { catalogues } = make()
      await catalogues.restoreFrom(() => cached(damaged))
      assert.equal(catalogues.isKnown, false)
    }
  })
  await t.test('a slot without a link reads nothing', async () => {
    const { catalogues, listed } = make()
    await catalogues.read(slotOf(), true)
    assert.deepEqual([listed(), catalogues.isKnown], [0, false])
  })
})
