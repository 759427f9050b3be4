import assert from 'node:assert/strict'
import { test } from 'tap'
import fc from 'fast-check'
import type { Server, Snapshot, StoredGroup } from '../../db/store.ts'
import { plainClass } from '../../protocol/capabilities.ts'
import { kinds, nextCatalogueId, type Catalogue, type Item, type ListKind } from '../../protocol/lists.ts'
import { limits } from '../../plugins/limits/index.ts'
import { showsApps, withoutApps } from '../../plugins/gateway/apps.ts'
import { ClaimsByServer, type Claims } from '../../plugins/gateway/claims.ts'
import { convertArguments } from '../../plugins/json-schema/arguments.ts'
import { hiddenKey } from '../../plugins/gateway/hidden-resources.ts'
import { exposedName, itemOtherName, otherName } from '../../plugins/gateway/names.ts'
import type { Section } from '../../plugins/gateway/section.ts'
import { foldSurface, isHidden, readerOf, type Surface, type SurfaceInput, type Target } from '../../plugins/gateway/surface.ts'
import { ResourceLinks } from '../../plugins/gateway/resource-links.ts'
import { TaskOwners } from '../../plugins/gateway/task-owners.ts'
import { literalsOf, matches } from '../../plugins/gateway/templates.ts'
import { makeView, type Grant, type Principal, type Scope } from '../../plugins/access/view.ts'
import { admits, canSee, toScope, visibleServers, type PublicReach } from '../../plugins/access/visibility.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { GroupMember, SystemConfig } from '../../schemas/settings.ts'

const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31)
console.log(`fast-check: FC_SEED=${seed}`)

interface Given {
  servers?: Record<string, ServerConfig & { problem?: string }>
  groups?: Array<{ id: string; name: string; owner?: string; members: Array<string | GroupMember> }>
  admins?: string[]
  users?: string[]
  system?: SystemConfig
}

function snapshotOf ({ servers = {}, groups = [], admins = [], users = [], system = {} }: Given): Snapshot {
  return {
    version: 1,
    servers: new Map(Object.entries(servers).map(([name, { problem, ...config }]): [string, Server] => [name, { name, config, problem }])),
    groups: new Map(
      groups.map(({ members, ...group }): [string, StoredGroup] => [
        group.id,
        { ...group, members: members.map((member) => (typeof member === 'string' ? { name: member } : member)) }
      ])
    ),
    keys: new Map(),
    users: new Map(
      [...admins.map((username) => ({ username, isAdmin: true })), ...users.map((username) => ({ username }))].map((user) => [
        user.username,
        user
      ])
    ),
    prompts: new Map(),
    resources: new Map(),
    system,
    problems: []
  }
}

const principals = {
  admin: { key: 'key 1', kind: 'system-key', user: 'key 1', isAdmin: true },
  root: { key: 'key 2', kind: 'user-key', user: 'root', username: 'root', isAdmin: true },
  ann: { key: 'key 3', kind: 'user-key', user: 'ann', username: 'ann', isAdmin: false },
  bob: { key: 'key 4', kind: 'user-key', user: 'bob', username: 'bob', isAdmin: false },
  nobody: { key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }
} as const satisfies Record<string, Principal>
type Who = keyof typeof principals

// ── who may see what ──

test('canSee: SPEC "Visibility", DECISIONS §8', async (t) => {
  const snapshot = snapshotOf({ admins: ['root', 'admin'], users: ['ann', 'bob'] })
  const configs: Record<string, ServerConfig> = {
    'public, of root': { visibility: 'public', owner: 'root' },
    'public, of ann': { visibility: 'public', owner: 'ann' },
    'private, of root': { visibility: 'private', owner: 'root' },
    'private, of ann': { visibility: 'private', owner: 'ann' },
    'group, of root': { visibility: 'group', owner: 'root' },
    'group, of ann': { visibility: 'group', owner: 'ann' },
    'defaulted, of root': { visibility: 'private', visibilityDefaulted: true, owner: 'root' },
    'defaulted, of ann': { visibility: 'private', visibilityDefaulted: true, owner: 'ann' },
    'none given, of root': { owner: 'root' },
    'none given, of ann': { owner: 'ann' },
    'none given, of admin': { owner: 'admin' },
    'none given, of nobody': {},
    'none given, of one who is gone': { owner: 'gone' },
    'explicit, the mark says so': { visibility: 'private', visibilityDefaulted: false, owner: 'root' }
  }
  const table = `
                                    admin  root  ann  bob  nobody:default  off  public  all
    public, of root                 +      +     +    +    +               +    +       +
    public, of ann                  +      +     +    +    +               +    +       +
    private, of root                +      +     -    -    -               -    -       +
    private, of ann                 +      +     +    -    -               -    -       +
    group, of root                  +      +     -    -    -               -    -       +
    group, of ann                   +      +     +    -    -               -    -       +
    defaulted, of root              +      +     -    -    +               +    -       +
    defaulted, of ann               +      +     +    -    -               -    -       +
    none given, of root             +      +     -    -    +               +    -       +
    none given, of ann              +      +     +    -    -               -    -       +
    none given, of admin            +      +     -    -    +               +    -       +
    none given, of nobody           +      +     -    -    +               +    -       +
    none given, of one who is gone  +      +     -    -    -               -    -       +
    explicit, the mark says so      +      +     -    -    -               -    -       +
  `.split('\n').filter((line) => line.trim() !== '').slice(1).map((line) => line.trim().split(/ {2,}/))
  assert.equal(table.length, Object.keys(configs).length)
  for (const [name = '', ...cells] of table) {
    await t.test(name, async () => {
      const config = configs[name]
      assert.ok(config)
      const columns: Array<[Who, PublicReach[]]> = [
        ...(['admin', 'root', 'ann', 'bob'] as const).map((who): [Who, PublicReach[]] => [who, ['default', 'off', 'public', 'all']]),
        ...(['default', 'off', 'public', 'all'] as const).map((publicTools): [Who, PublicReach[]] => ['nobody', [publicTools]])
      ]
      columns.forEach(([who, settings], at) => {
        for (const publicTools of settings) {
          assert.equal(
            canSee(snapshot, principals[who], { name: 'x', config }, publicTools) ? '+' : '-', cells[at],
            `${who}, PUBLIC_TOOLS=${publicTools}`
          )
        }
      })
    })
  }
})

test('visibleServers: the servers behind a view', async (t) => {
  const snapshot = snapshotOf({
    servers: {
      z: { visibility: 'public' },
      off: { enabled: false, visibility: 'public' },
      broken: { visibility: 'public', problem: 'no command' },
      a: { visibility: 'private', owner: 'ann' },
      10: { visibility: 'public' }
    },
    groups: [
      { id: 'g', name: 'team', members: [{ name: 'a', alias: 'mine', tools: ['x'] }, 'gone', 'off', 'z'] },
      { id: 'e', name: 'empty', members: [] }
    ]
  })
  const names = (who: Who, scope: Scope): string[] =>
    visibleServers(snapshot, makeView(principals[who], scope), 'default').map(({ label }) => label)
  const group = (id: string): Scope => ({ kind: 'group', id, name: 'any' })

  await t.test('in the order of configuration, neither disabled nor unusable', async () => {
    assert.deepEqual(names('admin', { kind: 'global' }), [...snapshot.servers.keys()].filter((name) => !['off', 'broken'].includes(name)))
    assert.deepEqual(names('bob', { kind: 'global' }), names('admin', { kind: 'global' }).filter((name) => name !== 'a'))
  })
  await t.test('admins\' servers first, whatever stands where, within each the order of configuration', async () => {
    const mixed = snapshotOf({
      admins: ['root'],
      servers: {
        u1: { owner: 'ann' }, r: { owner: 'root' }, u2: { owner: 'gone' }, none: {}, admin: { owner: 'admin' }
      },
      groups: [{ id: 'g', name: 'g', members: ['u2', 'none', 'u1', 'r'] }]
    })
    const shown = (scope: Scope): string[] =>
      visibleServers(mixed, makeView(principals.admin, scope), 'default').map(({ label, ofAdmin }) => `${label}${ofAdmin ? '' : ' of a user'}`)
    assert.deepEqual(shown({ kind: 'global' }), ['r', 'none', 'admin', 'u1 of a user', 'u2 of a user'])
    assert.deepEqual(shown(group('g')), ['none', 'r', 'u2 of a user', 'u1 of a user'])
  })
  await t.test('a group in its own order, under its aliases, without what is gone or not to be seen', async () => {
    assert.deepEqual(names('admin', group('g')), ['z', 'mine'])
    assert.deepEqual(names('bob', group('g')), ['z'])
    assert.deepEqual(names('admin', group('e')), [])
    assert.deepEqual(names('admin', group('no such')), [])
    assert.deepEqual(visibleServers(snapshot, makeView(principals.admin, group('g')), 'default')[1]?.member.tools, ['x'])
  })
  await t.test('a single server', async () => {
    assert.deepEqual(names('ann', { kind: 'server', name: 'a' }), ['a'])
    for (const [who, name] of [
      ['bob', 'a'], ['admin', 'off'], ['admin', 'broken'], ['admin', 'gone']
    ] as const) { assert.deepEqual(names(who, { kind: 'server', name }), [], `${who}, ${name}`) }
  })
})

test('toScope: a group by id, then by name, then a server', async () => {
  const given: Given = {
    servers: { s: {}, both: {}, g1: {} },
    groups: [
      { id: 'g1', name: 'team', members: [] }, { id: 'g2', name: 'g1', members: [] },
      { id: 'g3', name: 'both', members: [] }
    ]
  }
  const table: Array<[string, Scope | undefined, Scope | undefined]> = [
    // word, names allowed, ids only
    ['g1', { kind: 'group', id: 'g1', name: 'team' }, { kind: 'group', id: 'g1', name: 'team' }],
    ['g2', { kind: 'group', id: 'g2', name: 'g1' }, { kind: 'group', id: 'g2', name: 'g1' }],
    ['team', { kind: 'group', id: 'g1', name: 'team', byName: true }, undefined],
    ['both', { kind: 'group', id: 'g3', name: 'both', byName: true }, { kind: 'server', name: 'both' }],
    ['s', { kind: 'server', name: 's' }, { kind: 'server', name: 's' }],
    ['S', undefined, undefined], ['', undefined, undefined], ['__proto__', undefined, undefined], ['constructor', undefined, undefined]
  ]
  for (const [word, byName, byId] of table) {
    assert.deepEqual(toScope(snapshotOf(given), word, true), byName, word)
    assert.deepEqual(toScope(snapshotOf(given), word, false), byId, word)
  }
})

test('toScope: of a group and a server of one name the server, where the group is of somebody else who is no admin', async () => {
  const table: Array<[ofGroup: string | undefined, ofServer: string | undefined, kind: string]> = [
    ['bob', undefined, 'server'], ['bob', 'admin', 'server'], ['bob', 'root', 'server'], ['bob', 'ann', 'server'],
    ['gone', 'ann', 'server'], ['bob', 'bob', 'group'], ['root', 'ann', 'group'], ['admin', 'ann', 'group'],
    [undefined, 'ann', 'group']
  ]
  for (const [ofGroup, ofServer, kind] of table) {
    const snapshot = snapshotOf({
      servers: { both: { owner: ofServer }, s: {} },
      groups: [{ id: 'g1', name: 'both', owner: ofGroup, members: ['s'] }],
      admins: ['root'],
      users: ['ann', 'bob']
    })
    assert.equal(toScope(snapshot, 'both', true)?.kind, kind, `group of ${ofGroup}, server of ${ofServer}`)
    assert.equal(toScope(snapshot, 'g1', true)?.kind, 'group', 'by its id in any case')
  }
})

test('admits: what a scoped key opens (DECISIONS §4)', async (t) => {
  const snapshot = snapshotOf({
    servers: { a: {}, b: {}, c: {} },
    groups: [
      { id: 'g1', name: 'team', members: ['a', 'b'] }, { id: 'g2', name: 'others', members: ['b', 'c'] },
      { id: 'g3', name: 'empty', members: [] }, { id: 'g4', name: 'a', members: ['c'] }
    ]
  })
  const routes: Record<string, Scope> = {
    global: { kind: 'global' },
    a: { kind: 'server', name: 'a' },
    b: { kind: 'server', name: 'b' },
    c: { kind: 'server', name: 'c' },
    'g1 team': { kind: 'group', id: 'g1', name: 'team' },
    'g2 others': { kind: 'group', id: 'g2', name: 'others' },
    'g3 empty': { kind: 'group', id: 'g3', name: 'empty' },
    'g4 a': { kind: 'group', id: 'g4', name: 'a' }
  }
  const grant = (accessType: Grant['accessType'], groups: string[], servers: string[]): Grant => ({ accessType, groups, servers })
  const table: Array<[string, Grant | undefined, string[]]> = [
    ['all: everything', undefined, Object.keys(routes)],
    ['groups: by id', grant('groups', ['g1'], []), ['g1 team']],
    ['groups: by name', grant('groups', ['others', 'g3'], []), ['g2 others', 'g3 empty']],
    ['groups: nothing else, whatever servers it lists', grant('groups', ['g1'], ['a', 'b', 'c']), ['g1 team']],
    ['groups: none', grant('groups', [], ['a']), []],
    ['servers: those listed', grant('servers', [], ['a']), ['a']],
    ['servers: a group of which every member is listed', grant('servers', [], ['a', 'b']), ['a', 'b', 'g1 team']],
    ['servers: and not one of which one is not; nor an empty one', grant('servers', [], ['b', 'c']), ['b', 'c', 'g2 others', 'g4 a']],
    ['servers: nothing else, whatever groups it lists', grant('servers', ['g1', 'others', 'g3', 'global'], ['a']), ['a']],
    ['servers: a group is not entered by a server of its name', grant('servers', [], ['a', 'g4']), ['a']],
    ['custom: either', grant('custom', ['g2', 'empty'], ['a']), ['a', 'g2 others', 'g3 empty']],
    ['custom: a group of which every member is listed', grant('custom', [], ['a', 'b']), ['a', 'b', 'g1 team']],
    [
      'custom: an empty group needs to be listed',
      grant('custom', ['g1'], ['a', 'b', 'c']),
      ['a', 'b', 'c', 'g1 team', 'g2 others', 'g4 a']
    ],
    ['custom: none', grant('custom', [], []), []]
  ]
  for (const [says, given, opened] of table) {
    await t.test(says, async () => {
      assert.deepEqual(
        Object.entries(routes).filter(([, scope]) => admits(snapshot, { ...principals.admin, grant: given }, scope))
          .map(([name]) => name),
        opened
      )
    })
  }
})

test('makeView: equal keys see the same, others need not', async () => {
  const scopes: Scope[] = [
    { kind: 'global' }, { kind: 'server', name: 'a' }, { kind: 'server', name: 'global' },
    { kind: 'group', id: 'a', name: 'a' }, { kind: 'group', id: 'global', name: 'b' }
  ]
  const keys = (who: Principal): string[] => scopes.map((scope) => makeView(who, scope).key)
  const all = [
    ...keys(principals.admin),
    ...keys(principals.ann),
    ...keys(principals.bob),
    ...keys(principals.nobody),
    ...keys({ ...principals.ann, username: 'anyone' }),
    ...keys({ ...principals.ann, username: 'all' })
  ]
  assert.equal(new Set(all).size, all.length)
  assert.deepEqual(keys(principals.root), keys(principals.admin), 'admins see the same')
  assert.deepEqual(keys({ ...principals.ann, key: 'another key of hers' }), keys(principals.ann))
})

// ── names ──

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
      for (const made of [exposedName(label, separator, name), otherName(`${label}${separator}${name}`, label), otherName(name, label)]) {
        assert.ok(made.length <= 64, made)
        assert.doesNotMatch(made, halfCharacter)
      }
      assert.equal(exposedName(label, separator, name), exposedName(label, separator, name))
      assert.equal(otherName(name, label), otherName(name, label))
      assert.notEqual(otherName(name, label), name)
    }), { seed, numRuns: 1_000 })
    for (let before = 50; before < 60; before++) {
      assert.doesNotMatch(exposedName('s', '-', `${'x'.repeat(before)}${'😀'.repeat(20)}`), halfCharacter)
    }
  })
  await t.test('otherName tells apart by whom it is', async () => {
    assert.notEqual(otherName('a-b', 'server 1'), otherName('a-b', 'server 2'))
    assert.match(otherName('a-b', 'x'), /^a-b_[0-9a-f]{8}$/)
  })
})

// ── surfaces ──

type Lists = Partial<Record<ListKind, Array<Record<string, unknown> | string>>>
const keyOf: Record<ListKind, string> = { tools: 'name', prompts: 'name', resources: 'uri', resourceTemplates: 'uriTemplate' }

function catalogueOf (given: Lists, more: Partial<Catalogue> = {}): Catalogue {
  const items = (kind: ListKind): Item[] => (given[kind] ?? []).map((item) => {
    const text = typeof item === 'string' ? item : JSON.stringify(item)
    return { key: String((JSON.parse(text) as Record<string, unknown>)[keyOf[kind]]), text }
  })
  return {
    id: nextCatalogueId(),
    capabilityClass: plainClass,
    version: '2025-11-25',
    serverInfo: '{"name":"up","version":"1"}',
    instructions: undefined,
    capabilities: { tools: {}, resources: {} },
    lists: {
      tools: items('tools'),
      prompts: items('prompts'),
      resources: items('resources'),
      resourceTemplates: items('resourceTemplates')
    },
    extras: { tools: '{}', prompts: '{}', resources: '{}', resourceTemplates: '{}' },
    ...more
  }
}
const section = (
  name: string,
  lists: Lists | undefined,
  { config = {}, member = {}, ...more }: { config?: ServerConfig; member?: Partial<GroupMember> } & Partial<Catalogue> = {}
): Section => ({
  server: { name, config },
  label: member.alias ?? name,
  member: { name, ...member },
  ofAdmin: config.owner === undefined || config.owner === 'admin',
  provider: undefined,
  catalogue: lists && catalogueOf(lists, more)
})
/** Claims of what servers list now, and, where it is given, of what they listed before. */
const claimsWith = (book: ClaimsByServer) => ({ server, catalogue }: Section): Claims => {
  const claims = book.of(server)
  claims.note(catalogue ? [catalogue] : [])
  return claims
}
const fold = (sections: Section[], more: Partial<SurfaceInput> = {}, before?: Surface): Surface =>
  foldSurface({ raw: false, separator: '-', apps: false, sections, claimsOf: claimsWith(new ClaimsByServer()), ...more }, before)
/** Where a name leads, without the item itself. */
const leadsTo = (target: Target | undefined): Omit<Target, 'item'> | undefined =>
  target && { provider: target.provider, key: target.key }
const bodyOf = async (surface: Surface, kind: ListKind = 'tools'): Promise<string> => String(await surface.parts[kind].list.bytes())
const listed = async (surface: Surface, kind: ListKind): Promise<Array<Record<string, unknown>>> =>
  (JSON.parse(await bodyOf(surface, kind)) as Record<ListKind, Array<Record<string, unknown>>>)[kind]
const keys = async (surface: Surface, kind: ListKind): Promise<unknown[]> => (await listed(surface, kind)).map((item) => item[keyOf[kind]])

test('foldSurface: what a view sees', async (t) => {
  await t.test('tools and prompts under the server\'s name, resources under their URIs, in the order of configuration', async () => {
    const surface = fold([
      section('z', { tools: [{ name: 'b' }, { name: 'a' }], prompts: [{ name: 'p' }], resources: [{ uri: 'file:///z' }] }),
      section('a', { tools: [{ name: 'a' }], resources: [{ uri: 'file:///a' }], resourceTemplates: [{ uriTemplate: 'x://{id}' }] })
    ], { separator: '::' })
    assert.deepEqual(await keys(surface, 'tools'), ['z::b', 'z::a', 'a::a'])
    assert.deepEqual(await keys(surface, 'prompts'), ['z::p'])
    assert.deepEqual(await keys(surface, 'resources'), ['file:///z', 'file:///a'])
    assert.deepEqual(await keys(surface, 'resourceTemplates'), ['x://{id}'])
    assert.deepEqual([...surface.parts.tools.targets], [
      ['z::b', { provider: 'z', key: 'b', item: { key: 'b', text: '{"name":"b"}' } }],
      ['z::a', { provider: 'z', key: 'a', item: { key: 'a', text: '{"name":"a"}' } }],
      ['a::a', { provider: 'a', key: 'a', item: { key: 'a', text: '{"name":"a"}' } }]
    ])
    assert.deepEqual(surface.providers, ['z', 'a'])
  })

  await t.test('only the name of an item is changed; the rest is passed on to the byte', async () => {
    const text = '{ "name" : "n" , "x":1e400,"inputSchema":{"maximum":12345678901234567890},"_meta":{"a":1.50}, "__proto__" : {"y":1} }'
    const merged = fold([section('s', { tools: [text] })])
    assert.equal(
      await bodyOf(merged),
      '{"tools":[{"name" : "s-n","x":1e400,"inputSchema":{"maximum":12345678901234567890},"_meta":{"a":1.50},"__proto__" : {"y":1}}]}'
    )
    assert.equal(await bodyOf(fold([section('s', { tools: [text] })], { raw: true })), `{"tools":[${text}]}`)
  })

  await t.test('a single-server route has raw names, the server\'s own identity, and what else stood in its lists', async () => {
    const extras = { tools: '{"_meta":{"ttl":1e400},"x":1}', prompts: '{}', resources: '{}', resourceTemplates: '{}' }
    const one = [
      section(
        's', { tools: [{ name: 'a' }] },
        { extras, serverInfo: '{"name":"own","version":"9","x":1}', instructions: 'do', capabilities: { tools: {}, tasks: { list: {} } } }
      )
    ]
    const single = fold(one, { raw: true })
    assert.equal(await bodyOf(single), '{"_meta":{"ttl":1e400},"x":1,"tools":[{"name":"a"}]}')
    assert.deepEqual(
      [single.serverInfo, single.instructions, single.shown],
      ['{"name":"own","version":"9","x":1}', 'do', { tools: { listChanged: true }, tasks: { list: {} } }]
    )
    const merged = fold(one)
    assert.equal(await bodyOf(merged), '{"tools":[{"name":"s-a"}]}')
    assert.deepEqual([merged.serverInfo, merged.instructions, merged.shown], [undefined, '# s\n\ndo', { tools: { listChanged: true } }])
  })

  await t.test('capabilities and instructions are those of all that is behind it', async () => {
    const surface = fold([
      section('a', {}, { capabilities: { tools: {}, resources: { subscribe: true } }, instructions: 'first' }),
      section('b', {}, { capabilities: { resources: {}, logging: {} } }),
      section('c', {}, { capabilities: {}, instructions: 'third', member: { alias: 'see' } })
    ])
    assert.deepEqual(surface.shown, { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {} })
    assert.equal(surface.instructions, '# a\n\nfirst\n\n# see\n\nthird')
  })

  await t.test('a server of which nothing is known yet is behind it, but lists nothing', async () => {
    const surface = fold([section('a', undefined), section('b', { tools: [{ name: 't' }] })])
    assert.deepEqual(surface.providers, ['a', 'b'])
    assert.deepEqual([...surface.capabilities.keys()], ['b'])
    assert.deepEqual(await keys(surface, 'tools'), ['b-t'])
    const nothing = fold([section('a', undefined)], { raw: true })
    assert.deepEqual([nothing.serverInfo, await keys(nothing, 'tools')], [undefined, []])
    for (const kind of kinds) assert.equal(await bodyOf(fold([]), kind), `{"${kind}":[]}`)
  })

  await t.test('a group\'s selectors hold bare names, its aliases take the server\'s place', async () => {
    const lists: Lists = {
      tools: [{ name: 'a' }, { name: 'b' }],
      prompts: [{ name: 'p' }, { name: 'q' }],
      resources: [{ uri: 'r:1' }, { uri: 'r:2' }],
      resourceTemplates: [{ uriTemplate: 'r:{n}' }, { uriTemplate: 's:{n}' }]
    }
    const seen = async (member: Partial<GroupMember>): Promise<unknown[][]> => {
      const surface = fold([section('s', lists, { member })])
      return await Promise.all(kinds.map(async (kind) => await keys(surface, kind)))
    }
    assert.deepEqual(await seen({}), [['s-a', 's-b'], ['s-p', 's-q'], ['r:1', 'r:2'], ['r:{n}', 's:{n}']])
    assert.deepEqual(await seen({ tools: 'all', prompts: 'all', resources: 'all' }), await seen({}))
    assert.deepEqual(await seen({ tools: ['b'], prompts: [], resources: ['r:2', 's:{n}', 'gone'] }), [['s-b'], [], ['r:2'], ['s:{n}']])
    assert.deepEqual(await seen({ tools: ['s-a', 'A'] }).then(([tools]) => tools), [], 'neither exposed names nor another case')
    assert.deepEqual(await seen({ alias: 'other', tools: ['a'] }).then(([tools]) => tools), ['other-a'])
  })

  await t.test('what an admin disabled is not there, what an admin described is', async () => {
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
      const surface = fold([section('s', lists, { config })], { raw })
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

  await t.test('names of Object.prototype are names: nothing is inherited', async () => {
    const odd = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
    const surface = fold([
      section('s', { tools: odd.map((name) => JSON.stringify({ name })) }, { config: { tools: { x: { enabled: false } } } })
    ])
    assert.deepEqual(await keys(surface, 'tools'), odd.map((name) => `s-${name}`))
    for (const name of odd) assert.deepEqual(leadsTo(surface.parts.tools.targets.get(`s-${name}`)), { provider: 's', key: name })
  })

  await t.test('of two that would bear one name both are there, each under its own, and lead where they should', async () => {
    const surface = fold([section('a', { tools: [{ name: 'b-c' }] }), section('a-b', { tools: [{ name: 'c' }] })])
    const [first, second] = await keys(surface, 'tools') as string[]
    assert.equal(first, 'a-b-c')
    assert.match(second ?? '', /^a-b-c_[0-9a-f]{8}$/)
    assert.deepEqual(
      [leadsTo(surface.parts.tools.targets.get(first ?? '')), leadsTo(surface.parts.tools.targets.get(second ?? ''))],
      [{ provider: 'a', key: 'b-c' }, { provider: 'a-b', key: 'c' }]
    )
  })

  /** The meaning of each name of a fold: `<provider>/<own name>`. */
  const meanings = (surface: Surface, kind: ListKind): Map<string, string> =>
    new Map([...surface.parts[kind].targets].map(([name, { provider, key }]) => [name, `${provider}/${key}`]))

  await t.test('a name stays with its server while that is away, lists less, or lists it again', async () => {
    const one = (tools: string[]): Lists => ({ tools: tools.map((name) => ({ name })) })
    const [a, ab] = [section('a', undefined), section('a-b', undefined)]
    const claimsOf = claimsWith(new ClaimsByServer())
    const now = (listsOfA: Lists | undefined, listsOfAb: Lists | undefined): Array<[string, string]> => {
      const sections = [{ ...a, catalogue: listsOfA && catalogueOf(listsOfA) }, { ...ab, catalogue: listsOfAb && catalogueOf(listsOfAb) }]
      return [...meanings(fold(sections, { claimsOf }), 'tools')]
    }
    const other = (name: string, key: string): string => itemOtherName(name, 'a-b', key)
    assert.deepEqual(now(undefined, one(['c', 'd'])), [[other('a-b-c', 'c'), 'a-b/c'], [other('a-b-d', 'd'), 'a-b/d']], 'before it is known')
    assert.deepEqual(now(one(['b-c']), one(['c', 'd'])), [['a-b-c', 'a/b-c'], [other('a-b-c', 'c'), 'a-b/c'], ['a-b-d', 'a-b/d']])
    assert.deepEqual(now(one([]), one(['c', 'd'])), [[other('a-b-c', 'c'), 'a-b/c'], ['a-b-d', 'a-b/d']], 'it lists less')
    assert.deepEqual(now(undefined, one(['c'])), [[other('a-b-c', 'c'), 'a-b/c']], 'it is away')
    assert.deepEqual(
      now(one(['b-c', 'b-d']), one(['c', 'd'])),
      [['a-b-c', 'a/b-c'], [itemOtherName('a-b-d', 'a', 'b-d'), 'a/b-d'], [other('a-b-c', 'c'), 'a-b/c'], ['a-b-d', 'a-b/d']],
      'what was free meanwhile stays with who had it'
    )
    assert.deepEqual(now(one(['b-d']), undefined), [[itemOtherName('a-b-d', 'a', 'b-d'), 'a/b-d']], 'also while that is away')
  })

  await t.test('a user\'s server never has a name that an admin\'s could have, known or not', async () => {
    const user: ServerConfig = { owner: 'ann' }
    for (const lists of [undefined, {}, { tools: [{ name: 'b-c' }] }]) {
      const surface = fold([section('a', lists), section('a-b', { tools: [{ name: 'c' }], prompts: [{ name: 'p' }] }, { config: user })])
      assert.notEqual(surface.parts.tools.targets.get('a-b-c')?.provider, 'a-b')
      assert.equal(surface.parts.tools.targets.get(itemOtherName('a-b-c', 'a-b', 'c'))?.provider, 'a-b')
      assert.equal(surface.parts.prompts.targets.get('a-b-p'), undefined)
    }
    const longer = fold([section('a-b', {}), section('a', { tools: [{ name: 'b-c' }, { name: 'x' }] }, { config: user })])
    assert.deepEqual([...meanings(longer, 'tools').values()], ['a/b-c', 'a/x'])
    assert.deepEqual([...meanings(longer, 'tools').keys()].slice(1), ['a-x'], 'others are named as ever')
    assert.equal(longer.parts.tools.targets.get('a-b-c'), undefined)
  })

  await t.test('a plain name never looks like another server\'s name with a hash', async () => {
    const hashed = itemOtherName('a-b-c', 'a-b', 'c')
    const surface = fold([section('a', { tools: [{ name: 'b-c' }, { name: hashed.slice(2) }] }), section('a-b', undefined)])
    assert.equal(surface.parts.tools.targets.get(hashed), undefined)
    assert.equal(surface.parts.tools.targets.size, 2)
    assert.deepEqual(await keys(fold([section('s', { tools: [{ name: 'of_20240101' }] })]), 'tools'), ['s-of_20240101'])
  })

  await t.test('a name that gets shorter once more is known is good in its former form', async () => {
    const surface = fold([section('a', {}), section('a-b', { tools: [{ name: 'c' }] })])
    assert.deepEqual([...surface.parts.tools.targets.keys()], ['a-b-c'])
    assert.equal(surface.parts.tools.aliases.get(itemOtherName('a-b-c', 'a-b', 'c'))?.provider, 'a-b')
  })

  await t.test('a name of half a megabyte of separators costs nothing', async () => {
    const begun = performance.now()
    fold([section('a', { tools: [{ name: '-'.repeat(500_000) }] }), section('b'.repeat(128), {})])
    assert.ok(performance.now() - begun < 500)
  })

  await t.test('a URI stays with the server that listed it, template or not, and is read nowhere else', async () => {
    const lists = (uris: string[], templates: string[] = []): Lists =>
      ({ resources: uris.map((uri) => ({ uri })), resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate })) })
    const [a, b] = [section('a', undefined), section('b', undefined)]
    const claimsOf = claimsWith(new ClaimsByServer())
    const at = (ofA: Lists | undefined, ofB: Lists | undefined): Surface => fold(
      [{ ...a, catalogue: ofA && catalogueOf(ofA) }, { ...b, catalogue: ofB && catalogueOf(ofB) }], { claimsOf }
    )
    const readers = (surface: Surface, ...uris: string[]): unknown[] => uris.map((uri) => readerOf(surface, uri)?.provider)
    const ofB = lists(['x:1', 'x:2'], ['x:{n}', 'y:{n}'])
    assert.deepEqual(readers(at(lists(['x:1'], ['y:{n}']), ofB), 'x:1', 'x:2', 'x:3', 'y:1'), ['a', 'b', 'b', 'a'])
    for (const ofA of [lists([]), undefined]) {
      const surface = at(ofA, ofB)
      assert.deepEqual(readers(surface, 'x:1', 'x:2', 'x:3', 'y:1'), [undefined, 'b', 'b', undefined])
      assert.deepEqual(await keys(surface, 'resources'), ['x:2'])
      assert.deepEqual(await keys(surface, 'resourceTemplates'), ['x:{n}'])
      assert.deepEqual([isHidden(surface, 'b', 'x:1'), isHidden(surface, 'a', 'x:1'), isHidden(surface, 'b', 'x:9')], [true, false, false])
    }
    const late = at(lists(['x:1', 'x:2'], ['x:3{n}', 'y:{n}']), ofB)
    assert.deepEqual(readers(late, 'x:1', 'x:2', 'x:31', 'y:1'), ['a', 'b', 'b', 'a'], 'what comes late takes nothing')
    // With another configuration all begins anew.
    const anew = fold([section('a', lists([])), section('b', ofB)], { claimsOf })
    assert.deepEqual(readers(anew, 'x:1', 'y:1'), ['b', 'b'])
  })

  await t.test('a user\'s server takes no URI that an admin\'s lists or has a template for', async () => {
    const user: ServerConfig = { owner: 'ann' }
    const surface = fold([
      section('a', { resources: [{ uri: 'x:1' }], resourceTemplates: [{ uriTemplate: 'x:a/{n}' }, { uriTemplate: '{+all}' }] }),
      section(
        'u',
        {
          resources: [{ uri: 'x:1' }, { uri: 'x:a/b/c' }, { uri: 'x:2' }],
          resourceTemplates: [{ uriTemplate: 'x:a/b/{n}' }, { uriTemplate: 'x:a/{n}' }, { uriTemplate: 'x:{n}' }]
        },
        { config: user }
      )
    ])
    assert.deepEqual(
      ['x:1', 'x:a/b/c', 'x:a/b/d', 'x:2', 'x:3'].map((uri) => readerOf(surface, uri)?.provider),
      ['a', 'a', 'a', 'u', 'u']
    )
    assert.deepEqual(await keys(surface, 'resources'), ['x:1', 'x:2'])
  })

  await t.test('whatever comes and goes, no name changes its meaning, and no URI goes to a later server', async () => {
    const part = fc.string({ unit: fc.constantFrom('a', 'b', '-'), minLength: 1, maxLength: 4 })
    const servers = fc.uniqueArray(
      fc.record({ name: part, ofUser: fc.boolean() }), { selector: ({ name }) => name, minLength: 2, maxLength: 4 }
    )
    const lists = fc.option(fc.record({ tools: fc.uniqueArray(part, { maxLength: 4 }), uris: fc.uniqueArray(fc.nat(5), { maxLength: 4 }) }))
    const steps = fc.array(fc.array(lists, { minLength: 4, maxLength: 4 }), { minLength: 2, maxLength: 8 })
    fc.assert(fc.property(servers, steps, (given, all) => {
      const ranked = [...given.filter(({ ofUser }) => !ofUser), ...given.filter(({ ofUser }) => ofUser)]
      const sections = ranked.map(({ name, ofUser }) => section(name, undefined, { config: ofUser ? { owner: 'ann' } : {} }))
      const claimsOf = claimsWith(new ClaimsByServer())
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

  await t.test('a URI that two list is the first one\'s, and read there', async () => {
    const surface = fold([
      section('a', { resources: [{ uri: 'x:1', name: 'of a' }], resourceTemplates: [{ uriTemplate: 'x:{n}', name: 'of a' }] }),
      section('b', {
        resources: [{ uri: 'x:1', name: 'of b' }, { uri: 'x:2' }],
        resourceTemplates: [{ uriTemplate: 'x:{n}', name: 'of b' }]
      })
    ])
    assert.deepEqual(await listed(surface, 'resources'), [{ uri: 'x:1', name: 'of a' }, { uri: 'x:2' }])
    assert.deepEqual(await listed(surface, 'resourceTemplates'), [{ uriTemplate: 'x:{n}', name: 'of a' }])
    assert.equal(readerOf(surface, 'x:1')?.provider, 'a')
    assert.equal(readerOf(surface, 'x:2')?.provider, 'b', 'what is listed comes before what fits a template')
    assert.equal(readerOf(surface, 'x:3')?.provider, 'a')
    assert.equal(readerOf(surface, 'y:3'), undefined)
  })

  await t.test('a resource that an admin disabled is not read through a template of its server either', async () => {
    const surface = fold([
      section(
        's', { resources: [{ uri: 'x:secret' }, { uri: 'x:1' }], resourceTemplates: [{ uriTemplate: 'x:{n}' }] },
        { config: { resources: { 'x:secret': { enabled: false } } } }
      )
    ])
    assert.equal(readerOf(surface, 'x:1')?.provider, 's')
    assert.equal(readerOf(surface, 'x:secret'), undefined)
  })

  await t.test('what is hidden is read through no template of its server; through another server\'s it may be', async () => {
    const lists: Lists = { resources: [{ uri: 'x:1' }, { uri: 'x:2' }], resourceTemplates: [{ uriTemplate: 'x:{n}' }] }
    const off: ServerConfig = { resources: { 'x:1': { enabled: false }, 'x:3': { enabled: false }, 'x:4': { description: 'd' } } }
    const table: Array<[string, Section[], Record<string, string | undefined>]> = [
      ['disabled, listed or not', [section('s', lists, { config: off })], { 'x:1': undefined, 'x:2': 's', 'x:3': undefined, 'x:4': 's' }],
      ['not selected', [section('s', lists, { member: { resources: ['x:2', 'x:{n}'] } })], { 'x:1': undefined, 'x:2': 's', 'x:3': 's' }],
      [
        'the template not selected',
        [section('s', lists, { member: { resources: ['x:2'] } })],
        { 'x:1': undefined, 'x:2': 's', 'x:3': undefined }
      ],
      ['nothing selected', [section('s', lists, { member: { resources: [] } })], { 'x:1': undefined, 'x:2': undefined, 'x:3': undefined }],
      [
        'hidden on one server, not on the other',
        [section('s', lists, { config: off }), section('t', { resourceTemplates: [{ uriTemplate: 'x:{other}' }] })],
        { 'x:1': 't', 'x:2': 's', 'x:3': 't', 'x:4': 's' }
      ],
      [
        'disabled on a server of which nothing is known yet',
        [section('s', undefined, { config: off }), section('t', lists)],
        { 'x:1': 't', 'x:3': 't' }
      ]
    ]
    for (const [says, list, readers] of table) {
      for (const raw of list.length === 1 ? [false, true] : [false]) {
        const surface = fold(list, { raw })
        for (const [uri, server] of Object.entries(readers)) {
          assert.equal(readerOf(surface, uri)?.provider, server, `${says}${raw ? ', alone' : ''}: ${uri}`)
        }
      }
    }
    assert.deepEqual(
      [...fold([section('s', lists, { config: off, member: { resources: ['x:1'] } })]).hidden.keys],
      ['x:1', 'x:3', 'x:2'].map((uri) => hiddenKey('s', uri))
    )
  })

  await t.test('what an admin disabled on his server is not a user\'s, listed there or matched by a template', async () => {
    const lists: Lists = { resources: [{ uri: 'x:1' }, { uri: 'x:2' }] }
    const off: ServerConfig = { resources: { 'x:1': { enabled: false } } }
    const ofUser = section('u', { resources: [{ uri: 'x:1' }, { uri: 'x:3' }], resourceTemplates: [{ uriTemplate: 'x:{n}' }] }, { config: { owner: 'ann' } })
    for (const known of [lists, undefined]) {
      const surface = fold([section('s', known, { config: off }), ofUser])
      assert.equal(readerOf(surface, 'x:1'), undefined)
      assert.ok(isHidden(surface, 'u', 'x:1') && !isHidden(surface, 'u', 'x:3'))
      assert.deepEqual(await keys(surface, 'resources'), known ? ['x:2', 'x:3'] : ['x:3'])
      assert.equal(readerOf(surface, 'x:3')?.provider, 'u')
    }
    // On the user's own route it is his.
    assert.equal(readerOf(fold([ofUser], { raw: true }), 'x:1')?.provider, 'u')
  })

  await t.test('a file that is hidden is read under no spelling with more slashes; what is listed under one is another resource', async () => {
    const off: ServerConfig = { resources: { 'file:///etc/x': { enabled: false }, 'notes://a/b//c': { enabled: false } } }
    const lists: Lists = {
      resources: [{ uri: 'file:///etc/x' }, { uri: 'file:////etc//x' }],
      resourceTemplates: [{ uriTemplate: 'file://{+path}' }, { uriTemplate: 'notes://{+path}' }]
    }
    const ofAdmin = section('s', lists, { config: off })
    const ofUser = section('u', lists, { config: { owner: 'ann' } })
    const spellings = [
      'file:///etc//x', 'file:////etc/x', 'file://localhost//etc/x', 'file:////etc/./%78', 'FILE:///etc///x//', 'file:///etc/x/', 'file:///etc%2F%2fx',
      'file:///usr//../etc//x', 'file:///usr/..//etc/x', 'file:///etc/y%2f..%2fx', 'file:////etc//x?', 'notes://a//b/c', 'notes://a/b/c'
    ]
    for (const [raw, sections] of [[true, [ofAdmin]], [false, [ofAdmin]], [false, [ofAdmin, ofUser]]] as const) {
      const surface = fold([...sections], { raw })
      for (const uri of spellings) {
        assert.equal(readerOf(surface, uri), undefined, uri)
        for (const { server } of sections) assert.ok(isHidden(surface, server.name, uri), uri)
      }
      for (const uri of ['file:////etc//x', 'file:///etc//y', 'file:///etc/x/y', 'file:///x', 'notes://a/b/c?d=//e']) {
        assert.equal(readerOf(surface, uri)?.provider, 's', uri)
        assert.ok(!isHidden(surface, 's', uri), uri)
      }
    }
    // A file of two slashes that is disabled does not hide the one that is listed with one.
    const other = fold([section('s', lists, { config: { resources: { 'file:////etc//x': { enabled: false } } } })])
    assert.deepEqual(['file:///etc/x', 'file:////etc//x', 'file:///etc//x'].map((uri) => readerOf(other, uri)?.provider), ['s', undefined, undefined])
    assert.deepEqual(await keys(other, 'resources'), ['file:///etc/x'])
  })

  await t.test('a URI without end is looked for at no cost, and taken for hidden where anything is', async () => {
    const many = section('s', {
      resources: [{ uri: 'x:1' }],
      resourceTemplates: Array.from({ length: 20_000 }, (_, n) => ({ uriTemplate: `http://a/${n}/{n}` }))
    })
    const surface = fold([many, section('t', {}, { config: { resources: { 'x:2': { enabled: false } } } })])
    const begun = performance.now()
    for (const uri of [`http://a/${'%41'.repeat(330_000)}`, `http://a/b${'%41'.repeat(100)}`]) {
      assert.equal(readerOf(surface, uri), undefined)
    }
    assert.ok(performance.now() - begun < 200)
    const longUri = `x:${'./'.repeat(330_000)}1`
    assert.deepEqual(
      [isHidden(surface, 't', longUri), isHidden(fold([many]), 's', longUri), isHidden(surface, 't', 'x:2'), isHidden(surface, 't', 'x:3')],
      [true, false, true, false]
    )
  })

  await t.test('of templates that fit the most telling reads; among several servers, one without a scheme reads nothing', async () => {
    const table: Array<[string, Array<[string, string[]]>, Record<string, string | undefined>]> = [
      [
        'the longest literals first, whoever lists first',
        [['a', ['file:///{path}']], ['b', ['file:///b/{path}']], ['c', ['file:///b/{path}/end']]],
        { 'file:///x': 'a', 'file:///b/x': 'b', 'file:///b/x/end': 'c', 'file:///c/end': 'a' }
      ],
      ['of equally long ones the first in configuration', [['a', ['x:{a}']], ['b', ['x:{b}']]], { 'x:1': 'a' }],
      [
        'no literal scheme',
        [['greedy', ['{+uri}', '{scheme}://{host}', '/{path}', 'x{y}:z', '1x:{y}', '']], ['b', ['x://{id}']]],
        { 'x://1': 'b', 'y://1': undefined, '/a': undefined, 'xa:z': undefined, '1x:a': undefined, '': undefined }
      ],
      ['a scheme is one in any case and with its signs', [['a', ['HTTP://{x}', 'a+b.c-1:{x}']]], { 'HTTP://1': 'a', 'a+b.c-1:2': 'a' }]
    ]
    for (const [says, list, readers] of table) {
      const surface = fold(
        list.map(([name, templates]) => section(name, { resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate })) }))
      )
      for (const [uri, server] of Object.entries(readers)) assert.equal(readerOf(surface, uri)?.provider, server, `${says}: ${uri}`)
    }
    const greedy = section('s', { resourceTemplates: [{ uriTemplate: '{+uri}' }, { uriTemplate: 'x://{id}' }] })
    assert.deepEqual(
      ['x://1', 'anything'].map((uri) => readerOf(fold([greedy], { raw: true }), uri)?.key), ['x://{id}', '{+uri}'],
      'alone it reads whatever it likes'
    )
    assert.deepEqual(
      await keys(fold([greedy]), 'resourceTemplates'), ['{+uri}', 'x://{id}'],
      'they are listed all the same, in their order'
    )
  })

  await t.test('whatever servers and tools there are: names are unique, at most 64 long, and lead back', async () => {
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

  await t.test('a part that came out equal keeps its identity, others do not', async () => {
    const input = (tool: string): Section[] => [section('s', { tools: [{ name: tool }], prompts: [{ name: 'p' }] })]
    const before = fold(input('a'))
    const same = fold(input('a'), {}, before)
    for (const kind of kinds) assert.equal(same.parts[kind].list, before.parts[kind].list, kind)
    const other = fold(input('b'), {}, before)
    assert.notEqual(other.parts.tools.list, before.parts.tools.list)
    for (const kind of kinds.filter((each) => each !== 'tools')) assert.equal(other.parts[kind].list, before.parts[kind].list, kind)
    // The same bytes from another server lead there.
    const moved = fold([section('t', { tools: [{ name: 'a' }] }, { member: { alias: 's' } })], {}, before)
    assert.equal(moved.parts.tools.list, before.parts.tools.list)
    assert.deepEqual(leadsTo(moved.parts.tools.targets.get('s-a')), { provider: 't', key: 'a' })
  })
})

test('MCP Apps', async (t) => {
  await t.test('showsApps', async () => {
    const table: Array<[Record<string, unknown>, boolean]> = [
      [{}, false],
      [{ extensions: {} }, false],
      [{ extensions: { 'io.modelcontextprotocol/ui': {} } }, true],
      [{ extensions: { other: {} } }, false],
      [{ extensions: null }, false],
      [{ 'io.modelcontextprotocol/ui': {} }, false]
    ]
    for (const [client, expected] of table) assert.equal(showsApps(client), expected, JSON.stringify(client))
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
        assert.equal(withoutApps(text), without)
        assert.deepEqual(
          await listed(fold([section('s', { tools: [text] })], { raw: true }), 'tools'),
          without === undefined ? [] : [JSON.parse(without)]
        )
        assert.equal(
          await bodyOf(fold([section('s', { tools: [text] })], { raw: true, apps: true })), `{"tools":[${text}]}`,
          'a client with Apps gets all of it'
        )
      }
    )
  }
})

test('templates: which URIs fit', async (t) => {
  const fits = (template: string, uri: string): boolean => matches(literalsOf(template), uri)
  await t.test('a table', async () => {
    const table: Array<[string, string, boolean]> = [
      ['file:///a', 'file:///a', true], ['file:///a', 'file:///ab', false], ['file:///a', '', false],
      ['x://{id}', 'x://1', true], ['x://{id}', 'x://', true], ['x://{id}', 'y://1', false],
      ['x://{id}/end', 'x://1/end', true], ['x://{id}/end', 'x://1/end/', false], ['x://{id}/end', 'x:///end', true],
      ['x://{id}/end', 'x://end', false], ['{a}', 'anything', true], ['{a}', '', true], ['', '', true],
      ['', 'a', false], ['a{x}b{y}c', 'abc', true], ['a{x}b{y}c', 'a1b2c', true], ['a{x}b{y}c', 'ac', false],
      ['a{x}b{y}c', 'a1c2b', false], ['a{x}b{y}b', 'a1b', false], ['a{x}b{y}b', 'abb', true], ['a{x}a', 'a', false],
      ['ab{x}ba', 'aba', false], ['x{?q,r}', 'x?q=1&r=2', true], ['x{/path*}', 'x/a/b', true],
      ['x{+y}.txt', 'xa/b.txt', true], ['a.c{x}', 'abc1', false], ['a*{x}', 'aaa', false], ['(a+)+{x}', '(a+)+1', true],
      ['é{x}中', 'é😀中', true], ['a{x', 'a{x', true], ['a}x', 'a}x', true], ['a{b{c}d}e', 'a{b1d}e', true]
    ]
    for (const [template, uri, expected] of table) assert.equal(fits(template, uri), expected, `${template} and ${uri}`)
  })
  await t.test('every expansion fits', async () => {
    const piece = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.'), maxLength: 4 })
    fc.assert(fc.property(fc.array(fc.tuple(piece, piece), { maxLength: 5 }), piece, (list, last) => {
      assert.equal(
        fits(
          `${list.map(([literal], at) => `${literal}{v${at}}`).join('')}${last}`,
          `${list.map(([literal, value]) => literal + value).join('')}${last}`
        ),
        true
      )
    }), { seed, numRuns: 1_000 })
  })
  await t.test('it says what the same template as a regular expression says', async () => {
    const piece = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 2 })
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 4 }),
        fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 8 }),
        (literals, uri) => {
          assert.equal(matches(literals, uri), new RegExp(`^${literals.join('.*')}$`, 's').test(uri))
        }
      ),
      { seed, numRuns: 2_000 }
    )
  })

  const spent = (template: string, uri: string): number => {
    const begun = performance.now()
    fits(template, uri)
    return performance.now() - begun
  }
  await t.test('never slow: many expressions, long literals, braces without end, 100 KB of each', async () => {
    const size = 100_000
    const hostile: Record<string, [string, string]> = {
      'an expression after each letter': ['{x}a'.repeat(size / 4), 'a'.repeat(size)],
      'and no end': [`${'{x}a'.repeat(size / 4)}b`, 'a'.repeat(size)],
      'a long literal that almost fits': [`x{a}${'a'.repeat(size / 2)}b{c}`, `x${'a'.repeat(size)}`],
      'opening braces': ['{'.repeat(size), '{'.repeat(size)],
      'pairs of them': ['{}'.repeat(size / 2), 'a'.repeat(size)],
      'open ones and one that closes': [`${'{a'.repeat(size / 2)}}`, 'a'.repeat(size)]
    }
    for (const [says, [template, uri]] of Object.entries(hostile)) assert.ok(spent(template, uri) < 200, says)
  })
  await t.test('never slow: a literal that fits again and again but for its beginning', async () => {
    // Within what one item and one request may be: 1 MiB each.
    const size = 60_000
    const uri = `x${`b${'a'.repeat(size - 1)}`.repeat(9)}z`
    assert.ok(spent(`x{v}b${'a'.repeat(size)}{w}`, uri) < 500, 'it is not linear in the URI')
  })
})

test('convertArguments: a text is what the schema takes', async (t) => {
  const literal = { anyOf: [{ type: 'integer' }, { type: 'string', enum: ['auto'] }] }
  const table: Array<[says: string, schema: unknown, given: unknown, expected: unknown]> = [
    ['a text among others stays one', { type: ['string', 'integer'] }, '5', '5'],
    ['a text among others stays one, by a choice', { anyOf: [{ type: 'integer' }, { type: 'string' }] }, '5', '5'],
    ['a number beside named texts', literal, '5', 5],
    ['a named text', literal, 'auto', 'auto'],
    ['neither', literal, 'else', 'else'],
    ['beside a constant', { oneOf: [{ type: 'number' }, { const: 'auto' }] }, '1.5', 1.5],
    ['by reference', { anyOf: [{ $ref: '#/$defs/word' }, { type: 'boolean' }] }, 'true', true],
    ['by reference, a named text', { anyOf: [{ $ref: '#/$defs/word' }, { type: 'boolean' }] }, 'on', 'on'],
    ['named values of several types', { enum: [1, 'a', true] }, '1', 1],
    ['named values of several types, another', { enum: [1, 'a', true] }, 'true', true],
    ['named values of several types, a text', { enum: [1, 'a', true] }, 'a', 'a'],
    ['a type, and named values of it', { type: ['boolean', 'string'], enum: [true, 'auto'] }, 'true', true],
    ['what fits counts, not what comes first', { enum: [true, 2] }, '1', true],
    ['a number before the 1 of booleans', { type: ['boolean', 'integer'] }, '1', 1],
    ['null', { enum: [null, 'a'] }, 'null', null],
    ['allOf narrows', { allOf: [{ type: ['string', 'integer'] }, { enum: ['x', 7] }] }, '7', 7],
    ['one of a list', { type: 'array', items: literal }, '1,auto', [1, 'auto']],
    [
      'elements that fit one of two lists',
      { anyOf: [{ type: 'array', items: { type: 'integer' } }, { type: 'array', items: { type: 'string' } }] },
      ['007', '1'],
      ['007', '1']
    ],
    [
      'elements that fit neither of two lists',
      { anyOf: [{ type: 'array', items: { type: 'integer' } }, { type: 'array', items: { type: 'boolean' } }] },
      ['7', 'true'],
      [7, true]
    ],
    [
      'elements by their places', { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'number' } },
      ['5', '6', '7'], ['5', 6, 7]
    ],
    ['elements of which nothing is said', { type: 'array' }, ['5'], ['5']],
    ['what fits nothing is of the right type', { type: 'integer', enum: [1, 2] }, '3', 3],
    ['a circle', { $ref: '#/$defs/circle' }, '5', '5'],
    ['a list of lists of itself', { $ref: '#/$defs/lists' }, '5,6', ['5', '6']]
  ]
  for (const [says, schema, given, expected] of table) {
    await t.test(says, async () => {
      const root = {
        type: 'object',
        properties: { v: schema },
        $defs: {
          word: { type: 'string', enum: ['on', 'off'] },
          circle: { anyOf: [{ $ref: '#/$defs/circle' }] },
          lists: { type: 'array', items: { $ref: '#/$defs/lists' } }
        }
      }
      assert.deepEqual(convertArguments(root, { v: given }), { v: expected })
    })
  }
  const doubling = {
    $defs: Object.fromEntries(
      Array.from({ length: 40 }, (_, n) => [
        `d${n}`,
        n === 39 ? { const: 'x' } : { anyOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] }
      ])
    ),
    properties: { v: { $ref: '#/$defs/d0' } }
  }
  assert.deepEqual(convertArguments(doubling, { v: '5' }), { v: '5' })
})

test('tasks: who may ask about one, and where', async (t) => {
  const result = (taskId: unknown): string => JSON.stringify({ task: { taskId, status: 'working' } })
  await t.test('its principal only, and on its server only', async () => {
    const tasks = new TaskOwners()
    tasks.note(result('t1'), { principal: 'ann', provider: 's' })
    assert.equal(tasks.providerOf('t1', 'ann', ['s', 'hostile']), 's')
    assert.equal(tasks.providerOf('t1', 'bob', ['s', 'hostile']), undefined)
    assert.equal(tasks.providerOf('t2', 'ann', ['s', 'hostile']), undefined)
    assert.equal(tasks.owns('t1', 'ann', 's'), true)
    assert.equal(tasks.owns('t1', 'ann', 'other'), false)
    assert.equal(tasks.owns('t1', 'bob', 's'), false)
    for (const odd of [undefined, null, 1, {}, ['t1'], '']) assert.equal(tasks.providerOf(odd, 'ann', ['s', 'hostile']), undefined)
  })
  await t.test('an unknown task is nobody\'s, whatever is asked', async () => {
    assert.equal(new TaskOwners().owns('t', 'ann', 's'), false)
    assert.equal(new TaskOwners().providerOf('__proto__', 'ann', ['s', 'hostile']), undefined)
  })
  await t.test('a result that announces none is none', async () => {
    const tasks = new TaskOwners()
    for (const text of [
      '{}',
      '{"content":[{"text":"\\"taskId\\""}]}',
      result(1),
      result(null),
      '{"taskId":"t"}',
      '{"task":null,"x":"taskId"}',
      '{"task":null,"taskId":1}',
      '{"task":"taskId"}',
      '["taskId"]',
      '{"task":{"taskId":{"a":1}}}'
    ]) { tasks.note(text, { principal: 'ann', provider: 's' }) }
    for (const id of ['t', '1', 'null', 'taskId']) assert.equal(tasks.providerOf(id, 'ann', ['s', 'hostile']), undefined)
  })
  await t.test('of more than can be remembered the oldest is forgotten', async () => {
    const tasks = new TaskOwners()
    for (let n = 0; n <= limits.tasks; n++) tasks.note(result(`t${n}`), { principal: 'ann', provider: 's' })
    assert.equal(tasks.providerOf('t0', 'ann', ['s', 'hostile']), undefined)
    assert.equal(tasks.providerOf('t1', 'ann', ['s', 'hostile']), 's')
    assert.equal(tasks.providerOf(`t${limits.tasks}`, 'ann', ['s', 'hostile']), 's')
  })
  await t.test('who begins tasks without end makes the gateway forget his own, and nobody else\'s', async () => {
    const tasks = new TaskOwners()
    tasks.note(result('t1'), { principal: 'ann', provider: 's' })
    for (let n = 1; n <= limits.tasks; n++) tasks.note(result(`t${n}`), { principal: 'eve', provider: 's' })
    assert.deepEqual([tasks.owns('t1', 'ann', 's'), tasks.owns('t1', 'eve', 's')], [true, false])
    const links = new ResourceLinks()
    const link = (n: number): object => ({ type: 'resource_link', name: 'x', uri: `x://${n}` })
    links.note(JSON.stringify({ content: [link(1)] }), 'ann', 's')
    links.note(JSON.stringify({ content: Array.from({ length: limits.resourceLinks }, (_, n) => link(n + 1)) }), 'eve', 's')
    assert.deepEqual(['ann', 'eve'].map((each) => links.providerOf('x://1', each)), ['s', undefined])
  })
  await t.test('ids and URIs that take more than a KiB are not remembered', async () => {
    const [tasks, links] = [new TaskOwners(), new ResourceLinks()]
    for (const [text, isKept] of [['x'.repeat(1_000), true], ['x'.repeat(1_025), false], ['ж'.repeat(500), true], ['ж'.repeat(513), false]] as const) {
      tasks.note(result(text), { principal: 'ann', provider: 's' })
      links.note(JSON.stringify({ content: [{ type: 'resource_link', name: 'x', uri: text }] }), 'ann', 's')
      assert.deepEqual([tasks.owns(text, 'ann', 's'), links.providerOf(text, 'ann') === 's'], [isKept, isKept], String(text.length))
    }
  })
  await t.test('a task id that another server announces, too, is not taken away from its owner', async () => {
    const tasks = new TaskOwners()
    tasks.note(result('t1'), { principal: 'ann', provider: 's' })
    tasks.note(result('t1'), { principal: 'bob', provider: 'hostile' })
    assert.equal(tasks.providerOf('t1', 'ann', ['s', 'hostile']), 's')
    assert.equal(tasks.providerOf('t1', 'bob', ['s', 'hostile']), 'hostile')
    assert.deepEqual([tasks.owns('t1', 'ann', 'hostile'), tasks.owns('t1', 'bob', 's')], [false, false])
  })
  await t.test('on a route only the servers behind it are asked about it, in their order', async () => {
    const tasks = new TaskOwners()
    for (const provider of ['s', 't']) tasks.note(result('t1'), { principal: 'ann', provider })
    const table: Array<[string[], string | undefined]> = [
      [['s', 't'], 's'], [['t', 's'], 't'], [['t'], 't'], [['other'], undefined], [[], undefined]
    ]
    for (const [providers, provider] of table) assert.equal(tasks.providerOf('t1', 'ann', providers), provider, providers.join())
  })
})
