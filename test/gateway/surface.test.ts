// What a view shows: names of tools and prompts, capabilities, instructions, and the items of MCP Apps.
import assert from 'node:assert/strict'
import { test } from 'tap'
import fc from 'fast-check'
import { allListKinds } from '../../protocol/lists.ts'
import { supportsMcpApps, withoutMcpAppMetadata } from '../../plugins/gateway/section.ts'
import { ItemClaimsByServer } from '../../plugins/gateway/claims.ts'
import { exposedName, alternativeItemName, alternativeName } from '../../plugins/settings/access/item-names.ts'
import type { ViewSection } from '../../plugins/gateway/section.ts'
import type { Surface } from '../../plugins/gateway/surface.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { GroupMember } from '../../schemas/settings.ts'
import {
  bodyOf, catalogueOf, claimsWith, fold, keys, leadsTo, listed, meanings, section, type Lists
} from '../helpers/surface.ts'

const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31)
console.log(`fast-check: FC_SEED=${seed}`)

test('exposedName and otherName', async (t) => {
  /** With the `u` flag a surrogate that is one of a pair is not one. */
  const halfCharacter = /[\ud800-\udfff]/u
  await t.test('what fits is kept as it is', async () => {
    assert.equal(exposedName('server', '-', 'tool'), 'server-tool')
    assert.equal(exposedName('s', '__', 't'), 's__t')
    assert.equal(exposedName('a'.repeat(32), '-', 'b'.repeat(31)), `${'a'.repeat(32)}-${'b'.repeat(31)}`)
  })
  await t.test('what is longer than 64 is cut, with a hash that tells two apart', async () => {
    const long = (end: string): string => exposedName('server', '-', `${'x'.repeat(100)}${end}`)
    assert.equal(long('1').length, 64)
    assert.ok(long('1').startsWith('server-xxx'))
    assert.notEqual(long('1'), long('2'))
    assert.match(long('1'), /_[0-9a-f]{8}$/)
    // The same for as long as the configuration is the same: across releases, too.
    assert.equal(exposedName('server', '-', 'y'.repeat(100)), `server-${'y'.repeat(48)}_a8ddff4d`)
  })
  const word = fc.string({ unit: fc.constantFrom('a', 'b', '-', '😀', 'é', '中'), minLength: 1, maxLength: 80 })
  await t.test('never longer than 64, never half a character, always the same', async () => {
    fc.assert(fc.property(word, fc.constantFrom('-', '__', '::'), word, (label, separator, name) => {
      for (const made of [exposedName(label, separator, name), alternativeName(`${label}${separator}${name}`, label), alternativeName(name, label)]) {
        assert.ok(made.length <= 64, made)
        assert.doesNotMatch(made, halfCharacter)
      }
      assert.equal(exposedName(label, separator, name), exposedName(label, separator, name))
      assert.equal(alternativeName(name, label), alternativeName(name, label))
      assert.notEqual(alternativeName(name, label), name)
    }), { seed, numRuns: 1_000 })
    for (let before = 50; before < 60; before++) {
      assert.doesNotMatch(exposedName('s', '-', `${'x'.repeat(before)}${'😀'.repeat(20)}`), halfCharacter)
    }
  })
  await t.test('otherName tells apart by whom it is', async () => {
    assert.notEqual(alternativeName('a-b', 'server 1'), alternativeName('a-b', 'server 2'))
    assert.match(alternativeName('a-b', 'x'), /^a-b_[0-9a-f]{8}$/)
  })
})

test('tools and prompts under the server\'s name, resources under their URIs, in the order of configuration', async () => {
  const surface = fold([
    section('z', { tools: [{ name: 'b' }, { name: 'a' }], prompts: [{ name: 'p' }], resources: [{ uri: 'file:///z' }] }),
    section('a', { tools: [{ name: 'a' }], resources: [{ uri: 'file:///a' }], resourceTemplates: [{ uriTemplate: 'x://{id}' }] })
  ], { separator: '::' })
  assert.deepEqual(await keys(surface, 'tools'), ['z_b', 'z_a', 'a_a'])
  assert.deepEqual(await keys(surface, 'prompts'), ['z_p'])
  assert.deepEqual(await keys(surface, 'resources'), ['file:///z', 'file:///a'])
  assert.deepEqual(await keys(surface, 'resourceTemplates'), ['x://{id}'])
  assert.deepEqual([...surface.parts.tools.targets], [
    ['z_b', { provider: 'z', key: 'b', item: { key: 'b', text: '{"name":"b"}' } }],
    ['z_a', { provider: 'z', key: 'a', item: { key: 'a', text: '{"name":"a"}' } }],
    ['a_a', { provider: 'a', key: 'a', item: { key: 'a', text: '{"name":"a"}' } }]
  ])
  assert.deepEqual(surface.providers, ['z', 'a'])
})

test('only the name of an item is changed; the rest is passed on to the byte', async () => {
  const text = '{ "name" : "n" , "x":1e400,"inputSchema":{"maximum":12345678901234567890},"_meta":{"a":1.50}, "__proto__" : {"y":1} }'
  const merged = fold([section('s', { tools: [text] })])
  assert.equal(
    await bodyOf(merged),
    '{"tools":[{"name" : "s-n","x":1e400,"inputSchema":{"maximum":12345678901234567890},"_meta":{"a":1.50},"__proto__" : {"y":1}}]}'
  )
  assert.equal(await bodyOf(fold([section('s', { tools: [text] })], { isRaw: true })), `{"tools":[${text}]}`)
})

test('a single-server route has raw names, the server\'s own identity, and what else stood in its lists', async () => {
  const extras = { tools: '{"_meta":{"ttl":1e400},"x":1}', prompts: '{}', resources: '{}', resourceTemplates: '{}', skills: '{}', events: '{}' }
  const one = [
    section(
      's', { tools: [{ name: 'a' }] },
      { extras, serverInfo: '{"name":"own","version":"9","x":1}', instructions: 'do', capabilities: { tools: {}, tasks: { list: {} } } }
    )
  ]
  const single = fold(one, { isRaw: true })
  assert.equal(await bodyOf(single), '{"_meta":{"ttl":1e400},"x":1,"tools":[{"name":"a"}]}')
  assert.deepEqual(
    [single.serverInfo, single.instructions, single.announced],
    ['{"name":"own","version":"9","x":1}', 'do', { tools: { listChanged: true }, tasks: { list: {} } }]
  )
  const merged = fold(one)
  assert.equal(await bodyOf(merged), '{"tools":[{"name":"s-a"}]}')
  assert.deepEqual([merged.serverInfo, merged.instructions, merged.announced], [undefined, '# s\n\ndo', { tools: { listChanged: true }, tasks: { list: {} } }])
})

test('capabilities and instructions are those of all that is behind it', async () => {
  const surface = fold([
    section('a', {}, { capabilities: { tools: {}, resources: { subscribe: true } }, instructions: 'first' }),
    section('b', {}, { capabilities: { resources: {}, logging: {} } }),
    section('c', {}, { capabilities: {}, instructions: 'third', member: { alias: 'see' } })
  ])
  assert.deepEqual(surface.announced, { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {} })
  assert.equal(surface.instructions, '# a\n\nfirst\n\n# see\n\nthird')
})

test('a server of which nothing is known yet is behind it, but lists nothing', async () => {
  const surface = fold([section('a', undefined), section('b', { tools: [{ name: 't' }] })])
  assert.deepEqual(surface.providers, ['a', 'b'])
  assert.deepEqual([...surface.capabilities.keys()], ['b'])
  assert.deepEqual(await keys(surface, 'tools'), ['b-t'])
  const nothing = fold([section('a', undefined)], { isRaw: true })
  assert.deepEqual([nothing.serverInfo, await keys(nothing, 'tools')], [undefined, []])
  for (const kind of allListKinds) assert.equal(await bodyOf(fold([]), kind), `{"${kind}":[]}`)
})

test('a group\'s selectors hold bare names, its aliases take the server\'s place', async () => {
  const lists: Lists = {
    tools: [{ name: 'a' }, { name: 'b' }],
    prompts: [{ name: 'p' }, { name: 'q' }],
    resources: [{ uri: 'r:1' }, { uri: 'r:2' }],
    resourceTemplates: [{ uriTemplate: 'r:{n}' }, { uriTemplate: 's:{n}' }]
  }
  const seen = async (member: Partial<GroupMember>): Promise<unknown[][]> => {
    const surface = fold([section('s', lists, { member })])
    return await Promise.all(allListKinds.filter((kind) => kind !== 'events').map(async (kind) => await keys(surface, kind)))
  }
  assert.deepEqual(await seen({}), [['s-a', 's-b'], ['s-p', 's-q'], ['r:1', 'r:2'], ['r:{n}', 's:{n}'], []])
  assert.deepEqual(await seen({ tools: 'all', prompts: 'all', resources: 'all' }), await seen({}))
  assert.deepEqual(await seen({ tools: ['b'], prompts: [], resources: ['r:2', 's:{n}', 'gone'] }), [['s-b'], [], ['r:2'], ['s:{n}'], []])
  assert.deepEqual(await seen({ tools: ['s-a', 'A'] }).then(([tools]) => tools), [], 'neither exposed names nor another case')
  assert.deepEqual(await seen({ alias: 'other', tools: ['a'] }).then(([tools]) => tools), ['other-a'])
})

test('what an admin disabled is not there, what an admin described is', async () => {
  const config: ServerConfig = {
    tools: { a: { enabled: false }, b: { description: 'from the "admin"' }, c: { enabled: true }, gone: { enabled: false } },
    prompts: { p: { enabled: false } },
    resources: { 'r:1': { enabled: false }, 'r:{n}': { enabled: false }, 'r:2': { description: 'd' } }
  }
  const lists: Lists = {
    tools: [{ name: 'a' }, '{"name":"b","description":"from upstream","x":1e400}', { name: 'c' }],
    prompts: [{ name: 'p' }],
    resources: [{ uri: 'r:1' }, { uri: 'r:2' }],
    resourceTemplates: [{ uriTemplate: 'r:{n}' }]
  }
  for (const raw of [false, true]) {
    const surface = fold([section('s', lists, { config })], { isRaw: raw })
    assert.equal(
      await bodyOf(surface),
      raw
        ? '{"tools":[{"name":"b","description":"from the \\"admin\\"","x":1e400},{"name":"c"}]}'
        : '{"tools":[{"name":"s-b","description":"from the \\"admin\\"","x":1e400},{"name":"s-c"}]}'
    )
    assert.deepEqual(
      [await keys(surface, 'prompts'), await keys(surface, 'resources'), await keys(surface, 'resourceTemplates')],
      [[], ['r:2'], []]
    )
    assert.equal(surface.parts.tools.targets.size, 2)
    assert.deepEqual(surface.templates, [])
    assert.equal((await listed(surface, 'resources'))[0]?.description, 'd')
  }
})

test('names of Object.prototype are names: nothing is inherited', async () => {
  const odd = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
  const surface = fold([
    section('s', { tools: odd.map((name) => JSON.stringify({ name })) }, { config: { tools: { x: { enabled: false } } } })
  ])
  assert.deepEqual(await keys(surface, 'tools'), odd.map((name) => `s-${name}`))
  for (const name of odd) assert.deepEqual(leadsTo(surface.parts.tools.targets.get(`s-${name}`)), { provider: 's', key: name })
})

test('of two that would bear one name both are there, each under its own, and lead where they should', async () => {
  const surface = fold([section('a', { tools: [{ name: 'b-c' }] }), section('a-b', { tools: [{ name: 'c' }] })])
  const [first, second] = await keys(surface, 'tools') as string[]
  assert.equal(first, 'a-b-c')
  assert.match(second ?? '', /^a-b-c_[0-9a-f]{8}$/)
  assert.deepEqual(
    [leadsTo(surface.parts.tools.targets.get(first ?? '')), leadsTo(surface.parts.tools.targets.get(second ?? ''))],
    [{ provider: 'a', key: 'b-c' }, { provider: 'a-b', key: 'c' }]
  )
})

test('a name stays with its server while that is away, lists less, or lists it again', async () => {
  const one = (tools: string[]): Lists => ({ tools: tools.map((name) => ({ name })) })
  const [a, ab] = [section('a', undefined), section('a-b', undefined)]
  const claimsOf = claimsWith(new ItemClaimsByServer())
  const now = (listsOfA: Lists | undefined, listsOfAb: Lists | undefined): Array<[string, string]> => {
    const sections = [{ ...a, catalogue: listsOfA && catalogueOf(listsOfA) }, { ...ab, catalogue: listsOfAb && catalogueOf(listsOfAb) }]
    return [...meanings(fold(sections, { claimsOf }), 'tools')]
  }
  const other = (name: string, key: string): string => alternativeItemName(name, 'a-b', key)
  assert.deepEqual(now(undefined, one(['c', 'd'])), [[other('a-b-c', 'c'), 'a-b/c'], [other('a-b-d', 'd'), 'a-b/d']], 'before it is known')
  assert.deepEqual(now(one(['b-c']), one(['c', 'd'])), [['a-b-c', 'a/b-c'], [other('a-b-c', 'c'), 'a-b/c'], ['a-b-d', 'a-b/d']])
  assert.deepEqual(now(one([]), one(['c', 'd'])), [[other('a-b-c', 'c'), 'a-b/c'], ['a-b-d', 'a-b/d']], 'it lists less')
  assert.deepEqual(now(undefined, one(['c'])), [[other('a-b-c', 'c'), 'a-b/c']], 'it is away')
  assert.deepEqual(
    now(one(['b-c', 'b-d']), one(['c', 'd'])),
    [['a-b-c', 'a/b-c'], [alternativeItemName('a-b-d', 'a', 'b-d'), 'a/b-d'], [other('a-b-c', 'c'), 'a-b/c'], ['a-b-d', 'a-b/d']],
    'what was free meanwhile stays with who had it'
  )
  assert.deepEqual(now(one(['b-d']), undefined), [[alternativeItemName('a-b-d', 'a', 'b-d'), 'a/b-d']], 'also while that is away')
})

test('a user\'s server never has a name that an admin\'s could have, known or not', async () => {
  const user: ServerConfig = { owner: 'ann' }
  for (const lists of [undefined, {}, { tools: [{ name: 'b-c' }] }]) {
    const surface = fold([section('a', lists), section('a-b', { tools: [{ name: 'c' }], prompts: [{ name: 'p' }] }, { config: user })])
    assert.notEqual(surface.parts.tools.targets.get('a-b-c')?.provider, 'a-b')
    assert.equal(surface.parts.tools.targets.get(alternativeItemName('a-b-c', 'a-b', 'c'))?.provider, 'a-b')
    assert.equal(surface.parts.prompts.targets.get('a-b-p'), undefined)
  }
  const longer = fold([section('a-b', {}), section('a', { tools: [{ name: 'b-c' }, { name: 'x' }] }, { config: user })])
  assert.deepEqual([...meanings(longer, 'tools').values()], ['a/b-c', 'a/x'])
  assert.deepEqual([...meanings(longer, 'tools').keys()].slice(1), ['a-x'], 'others are named as ever')
  assert.equal(longer.parts.tools.targets.get('a-b-c'), undefined)
})

test('a plain name never looks like another server\'s name with a hash', async () => {
  const hashed = alternativeItemName('a-b-c', 'a-b', 'c')
  const surface = fold([section('a', { tools: [{ name: 'b-c' }, { name: hashed.slice(2) }] }), section('a-b', undefined)])
  assert.equal(surface.parts.tools.targets.get(hashed), undefined)
  assert.equal(surface.parts.tools.targets.size, 2)
  assert.deepEqual(await keys(fold([section('s', { tools: [{ name: 'of_20240101' }] })]), 'tools'), ['s-of_20240101'])
})

test('a name that gets shorter once more is known is good in its former form', async () => {
  const surface = fold([section('a', {}), section('a-b', { tools: [{ name: 'c' }] })])
  assert.deepEqual([...surface.parts.tools.targets.keys()], ['a-b-c'])
  assert.equal(surface.parts.tools.aliases.get(alternativeItemName('a-b-c', 'a-b', 'c'))?.provider, 'a-b')
})

test('a name of half a megabyte of separators costs nothing', async () => {
  // What grows with the square of its length takes hours.
  const surface = fold([section('a', { tools: [{ name: '-'.repeat(500_000) }] }), section('b'.repeat(128), {})])
  assert.equal(surface.parts.tools.targets.size, 1)
})

test('whatever comes and goes, no name changes its meaning, and no URI goes to a later server', async () => {
  const part = fc.string({ unit: fc.constantFrom('a', 'b', '-'), minLength: 1, maxLength: 4 })
  const servers = fc.uniqueArray(
    fc.record({ name: part, ofUser: fc.boolean() }), { selector: ({ name }) => name, minLength: 2, maxLength: 4 }
  )
  const lists = fc.option(fc.record({ tools: fc.uniqueArray(part, { maxLength: 4 }), uris: fc.uniqueArray(fc.nat(5), { maxLength: 4 }) }))
  const steps = fc.array(fc.array(lists, { minLength: 4, maxLength: 4 }), { minLength: 2, maxLength: 8 })
  fc.assert(fc.property(servers, steps, (given, all) => {
    const ranked = [...given.filter(({ ofUser }) => !ofUser), ...given.filter(({ ofUser }) => ofUser)]
    const sections = ranked.map(({ name, ofUser }) => section(name, undefined, { config: ofUser ? { owner: 'ann' } : {} }))
    const claimsOf = claimsWith(new ItemClaimsByServer())
    const known = new Map<string, string>()
    const rankOf = new Map(ranked.map(({ name }, at) => [name, at]))
    const owners = new Map<string, number>()
    for (const step of all) {
      const surface = fold(sections.map((each, at) => {
        const found = step[at]
        const catalogue = found && catalogueOf({
          tools: found.tools.map((name) => ({ name })),
          resources: found.uris.map((n) => ({ uri: `x:${n}` }))
        })
        return { ...each, catalogue: catalogue ?? undefined }
      }), { claimsOf })
      for (const [name, meaning] of meanings(surface, 'tools')) {
        assert.equal(known.get(name) ?? meaning, meaning, name)
        known.set(name, meaning)
      }
      for (const [uri, { provider }] of surface.parts.resources.targets) {
        const at = rankOf.get(provider) ?? -1
        assert.ok(at <= (owners.get(uri) ?? Infinity), `${uri} went to ${provider}`)
        owners.set(uri, at)
      }
    }
  }), { seed, numRuns: 1_000 })
})

test('whatever servers and tools there are: names are unique, at most 64 long, and lead back', async () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '-', '_'), minLength: 1, maxLength: 6 })
  const tools = fc.uniqueArray(fc.oneof(name, name.map((each) => each.repeat(15))), { maxLength: 6 })
  await fc.assert(fc.asyncProperty(fc.uniqueArray(fc.tuple(name, tools), { selector: ([each]) => each, maxLength: 5 }), async (list) => {
    const make = (): Surface => fold(list.map(([server, names]) => section(server, { tools: names.map((each) => ({ name: each })) })))
    const surface = make()
    const exposed = await keys(surface, 'tools') as string[]
    assert.equal(new Set(exposed).size, exposed.length)
    assert.ok(exposed.every((each) => each.length <= 64))
    assert.deepEqual([...surface.parts.tools.targets.keys()], exposed)
    assert.deepEqual(
      [...surface.parts.tools.targets.values()].map(leadsTo),
      list.flatMap(([provider, names]) => names.map((key) => ({ provider, key })))
    )
    assert.deepEqual(await keys(make(), 'tools'), exposed)
  }), { seed, numRuns: 300 })
})

test('a part that came out equal keeps its identity, others do not', async () => {
  const input = (tool: string): ViewSection[] => [section('s', { tools: [{ name: tool }], prompts: [{ name: 'p' }] })]
  const before = fold(input('a'))
  const same = fold(input('a'), {}, before)
  for (const kind of allListKinds) assert.equal(same.parts[kind].list, before.parts[kind].list, kind)
  const other = fold(input('b'), {}, before)
  assert.notEqual(other.parts.tools.list, before.parts.tools.list)
  for (const kind of allListKinds.filter((each) => each !== 'tools')) assert.equal(other.parts[kind].list, before.parts[kind].list, kind)
  // The same bytes from another server lead there.
  const moved = fold([section('t', { tools: [{ name: 'a' }] }, { member: { alias: 's' } })], {}, before)
  assert.equal(moved.parts.tools.list, before.parts.tools.list)
  assert.deepEqual(leadsTo(moved.parts.tools.targets.get('s-a')), { provider: 't', key: 'a' })
})

test('MCP Apps', async (t) => {
  await t.test('supportsMcpApps', async () => {
    const table: Array<[Record<string, unknown>, boolean]> = [
      [{}, false],
      [{ extensions: {} }, false],
      [{ extensions: { 'io.modelcontextprotocol/ui': {} } }, true],
      [{ extensions: { other: {} } }, false],
      [{ extensions: null }, false],
      [{ 'io.modelcontextprotocol/ui': {} }, false]
    ]
    for (const [client, expected] of table) assert.equal(supportsMcpApps(client), expected, JSON.stringify(client))
  })
  const table: Array<[string, string | undefined, string]> = [
    ['{"name":"a"}', '{"name":"a"}', 'no metadata'],
    ['{"name":"a","_meta":{"x":1e400}}', '{"name":"a","_meta":{"x":1e400}}', 'other metadata'],
    ['{"name":"a","description":"\\"ui\\"","_meta":{"x":1}}', '{"name":"a","description":"\\"ui\\"","_meta":{"x":1}}', 'the word elsewhere'],
    ['{"name":"a","_meta":{"ui":{"resourceUri":"ui://x"},"n":1e400},"z":1.50}', '{"name":"a","_meta":{"n":1e400},"z":1.50}', 'a view beside other metadata'],
    ['{"name":"a","_meta":{"ui":{"resourceUri":"ui://x"},"ui/resourceUri":"ui://x"},"z":1}', '{"name":"a","z":1}', 'a view alone, in both spellings'],
    ['{"name":"a","_meta":{"ui/resourceUri":"ui://x"}}', '{"name":"a"}', 'the older spelling'],
    ['{"name":"a","_meta":{"ui":{"visibility":["app"]}}}', undefined, 'for the App only'],
    ['{"name":"a","_meta":{"ui":{"visibility":["model","app"]},"x":1}}', '{"name":"a","_meta":{"x":1}}', 'for both'],
    ['{"name":"a","_meta":{"ui":{"visibility":[]}}}', undefined, 'for nobody'],
    ['{"name":"a","_meta":"\\"ui"}', '{"name":"a","_meta":"\\"ui"}', 'no object']
  ]
  for (const [text, without, says] of table) {
    await t.test(
      `${says}: ${without === undefined ? 'hidden from' : without === text ? 'unchanged for' : 'stripped for'} a client without Apps`,
      async () => {
        assert.equal(withoutMcpAppMetadata(text), without)
        assert.deepEqual(
          await listed(fold([section('s', { tools: [text] })], { isRaw: true }), 'tools'),
          without === undefined ? [] : [JSON.parse(without)]
        )
        assert.equal(
          await bodyOf(fold([section('s', { tools: [text] })], { isRaw: true, supportsApps: true })), `{"tools":[${text}]}`,
          'a client with Apps gets all of it'
        )
      }
    )
  }
})
