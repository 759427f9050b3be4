import assert from 'node:assert/strict'
import { test } from 'tap'
import { ConflictError, InvalidChangeError, StorageError, type Change, type Snapshot, type Store } from '../../db/store.ts'
import { until, type Cleanup } from '../helpers/hub.ts'

/** A store under test, not loaded yet. */
export interface Opened {
  store: Store
  /** Closes the newest store and opens another one on the same data. */
  reopen: () => Promise<Store>
  /** Makes changes as somebody else would: by an editor, on another replica; by the store itself where nobody else can. */
  elsewhere: (changes: readonly Change[]) => Promise<void>
}
/** Opens a store, empty or with what a settings file says, that is closed and removed after the test. */
export type Open = (t: Cleanup, settings?: object) => Promise<Opened>

const newest = new WeakMap<Store, Snapshot>()

/** Works changes out from the newest snapshot until nobody was faster. */
export async function change (store: Store, work: (snapshot: Snapshot) => readonly Change[]): Promise<Snapshot> {
  let snapshot = newest.get(store) ?? await store.load()
  for (;;) {
    try {
      const next = await store.commit(work(snapshot), snapshot.version)
      if (next.version >= (newest.get(store)?.version ?? 0)) newest.set(store, next)
      return next
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error
      const known = newest.get(store)
      snapshot = known && known.version > snapshot.version ? known : await store.load()
    }
  }
}

const user = (key: string, isAdmin = false): Change => ({ entity: 'users', key, value: { username: key, isAdmin } })
const server = (key: string, description = ''): Change => ({ entity: 'mcpServers', key, value: { command: 'node', description } })
const group = (key: string, name: string, ...servers: string[]): Change => ({ entity: 'groups', key, value: { id: key, name, servers } })
const bearer = (key: string, ...allowedServers: string[]): Change => ({
  entity: 'bearerKeys',
  key,
  value: { id: key, name: key, allowedServers }
})
const prompt = (key: string, template: string): Change => ({
  entity: 'prompts',
  key,
  value: { id: key, name: `name of ${key}`, template, arguments: [{ name: 'who', required: true }], enabled: false }
})

const remove = (entity: Exclude<Change['entity'], 'systemConfig' | 'order'>, key: string): Change =>
  ({ entity, key, value: undefined }) as Change

/**
 * What every store does, whatever it keeps its data in.
 * @param alone nobody else can ever write there, so there is nothing to hear of
 */
export function storeContract (name: string, open: Open, { alone = false } = {}): void {
  const it = (what: string, run: (opened: Opened & { t: Cleanup }) => Promise<void>, settings?: object): void => {
    void test(`${name}: ${what}`, async (t) => { await run({ ...await open(t, settings), t }) })
  }

  it('a new store is empty, and can be written', async ({ store }) => {
    const snapshot = await store.load()
    assert.deepEqual(
      [snapshot.servers, snapshot.groups, snapshot.keys, snapshot.users, snapshot.prompts, snapshot.resources].map(({ size }) => size),
      [0, 0, 0, 0, 0, 0]
    )
    assert.deepEqual(snapshot.problems, [])
    assert.deepEqual(snapshot.system, {})
    assert.equal(store.health(), undefined)
  })

  it('what is written is there, in order, and after opening it again', async ({ store, reopen }) => {
    const first = await store.load()
    const next = await store.commit([
      user('root', true), server('b', '1'), server('a'), group('g', 'both', 'a', 'b'), bearer('k', 'a'),
      { entity: 'systemConfig', value: { nameSeparator: '__' } }
    ], first.version)
    assert.ok(next.version > first.version)
    assert.equal(first.servers.size, 0, 'a snapshot changed')
    const third = await store.commit([server('b', '2'), server('c'), remove('mcpServers', 'a')], next.version)
    assert.deepEqual([...third.servers.keys()], ['b', 'c'])
    for (const snapshot of [third, await (await reopen()).load()]) {
      assert.deepEqual([...snapshot.servers.values()], [
        { name: 'b', config: { command: 'node', description: '2' } },
        { name: 'c', config: { command: 'node', description: '' } }
      ])
      assert.deepEqual(snapshot.groups.get('g'), { id: 'g', name: 'both', members: [{ name: 'a' }, { name: 'b' }] })
      assert.deepEqual(snapshot.keys.get('k'), { id: 'k', name: 'k', allowedServers: ['a'] })
      assert.deepEqual(snapshot.users.get('root'), { username: 'root', isAdmin: true })
      assert.deepEqual(snapshot.system, { nameSeparator: '__' })
    }
  })

  it('what could not be read again is not written', async ({ store }) => {
    await change(store, () => [prompt('p', 'as it was')])
    const { version } = await store.load()
    for (const value of [{ id: 'p' }, { id: 'p', name: '', template: '' }, { id: 'p', name: 'n', template: 7 }]) {
      await assert.rejects(store.commit([{ entity: 'prompts', key: 'p', value: value as never }], version), InvalidChangeError)
    }
    for (const value of [{ id: 'r', uri: '', content: '' }, { id: 'r', uri: 'note://r' }]) {
      await assert.rejects(store.commit([{ entity: 'resources', key: 'r', value: value as never }], version), InvalidChangeError)
    }
    const snapshot = await store.load()
    assert.deepEqual([snapshot.prompts.get('p')?.template, snapshot.resources.size], ['as it was', 0])
  })

  it('changes worked out from an older snapshot are refused', async ({ store }) => {
    const { version } = await store.load()
    const next = await store.commit([server('a')], version)
    await assert.rejects(store.commit([server('b')], version), (error) => error instanceof ConflictError && !error.isFileEdit)
    assert.deepEqual([...(await store.commit([server('b')], next.version)).servers.keys()], ['a', 'b'])
  })

  it('one admin remains', async ({ store }) => {
    await change(store, () => [user('root', true), user('other', true), user('guest')])
    const results = await Promise.allSettled([change(store, () => [user('root')]), change(store, () => [remove('users', 'other')])])
    assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    assert.ok(results.some((result) => result.status === 'rejected' && result.reason instanceof InvalidChangeError))
    assert.equal([...(await store.load()).users.values()].filter(({ isAdmin }) => isAdmin).length, 1)
  })

  it('names that are taken are refused, whatever their spelling', async ({ store }) => {
    await change(store, () => [user('straße'), user('ﬁ'), group('1', 'tools')])
    for (const taken of [user('STRASSE'), user('Fi'), group('2', 'tools')]) await assert.rejects(change(store, () => [taken]), InvalidChangeError)
    await assert.rejects(change(store, () => [user('x'), user('X')]), InvalidChangeError)
    await change(store, () => [group('1', 'tools', 'a'), user('straße', true)])
    await change(store, () => [remove('groups', '1'), group('2', 'tools')])
    const results = await Promise.allSettled(
      Array.from({ length: 10 }, async (_, n) => await change(store, () => [group(`r${n}`, 'race')]))
    )
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
  })

  it('what could not be read again is refused', async ({ store }) => {
    const { version } = await store.load()
    const wrong = [
      { entity: 'users', key: 'a', value: { username: 'b' } },
      { entity: 'users', key: '', value: { username: '' } },
      { entity: 'users', key: 'a', value: { username: 'a', isAdmin: 'yes' } },
      { entity: 'groups', key: 'a', value: { id: 'a', name: 'a', servers: 'all' } },
      { entity: 'bearerKeys', key: 'a', value: { id: 'a', name: 'a', kind: 'odd' } },
      { entity: 'systemConfig', value: { nameSeparator: '' } }
    ] as unknown as Change[]
    for (const each of wrong) await assert.rejects(store.commit([each], version), InvalidChangeError, JSON.stringify(each))
    assert.equal((await store.load()).version, version)
  })

  it('a server is renamed in its place, in groups and in keys', async ({ store, reopen }) => {
    await change(store, () => [
      server('a'),
      server('b'),
      server('c'),
      group('1', 'one', 'a', 'b'),
      group('2', 'two', 'c'),
      bearer('k', 'b', 'c'),
      bearer('l', 'a'),
      { entity: 'groups', key: '3', value: { id: '3', name: 'three', servers: [{ name: 'b', tools: ['x'], alias: 'short' }] } }
    ])
    const before = await store.load()
    const after = await store.commit([{ entity: 'mcpServers', key: 'b', value: { command: 'new' }, rename: '__proto__' }], before.version)
    for (const snapshot of [after, await (await reopen()).load()]) {
      assert.deepEqual([...snapshot.servers.keys()], ['a', '__proto__', 'c'])
      assert.equal(snapshot.servers.get('__proto__')?.config.command, 'new')
      assert.deepEqual(snapshot.groups.get('1')?.members, [{ name: 'a' }, { name: '__proto__' }])
      assert.deepEqual(snapshot.groups.get('3')?.members, [{ name: '__proto__', tools: ['x'], alias: 'short' }])
      assert.deepEqual(snapshot.keys.get('k')?.allowedServers, ['__proto__', 'c'])
    }
    assert.equal(after.groups.get('2'), before.groups.get('2'))
    assert.equal(after.keys.get('l'), before.keys.get('l'))
  })

  it('odd names are names like any other', async ({ store, reopen }) => {
    const names = [
      '__proto__', 'constructor', 'toString', 'hasOwnProperty', 'ключ', '😀', 'a/b', '', ' ', '\u0000\u2028',
      'x'.repeat(3_000)
    ]
    await change(store, () => names.map((name) => server(name, name)))
    await change(store, () => names.filter(Boolean).flatMap((name) => [user(name), group(name, name, name), bearer(name, name)]))
    const snapshot = await (await reopen()).load()
    assert.deepEqual(
      [...snapshot.servers.values()].map(({ name, config }) => [name, config.description]),
      names.map((name) => [name, name])
    )
    assert.match(snapshot.servers.get('__proto__')?.problem ?? '', /name/)
    for (const map of [snapshot.users, snapshot.groups, snapshot.keys]) assert.deepEqual([...map.keys()], names.filter(Boolean))
    assert.equal(({} as Record<string, unknown>).command, undefined)
  })

  it('members that we do not know are kept', async ({ store, reopen }) => {
    await change(store, () => [
      { entity: 'mcpServers', key: 's', value: JSON.parse('{"url":"http://x","extra":{"deep":[1,null]},"__proto__":{"a":1}}') as object }
    ])
    await change(store, ({ system }) => [{ entity: 'systemConfig', value: { ...system, nameSeparator: '.' } }])
    const snapshot = await (await reopen()).load()
    assert.equal(JSON.stringify(snapshot.servers.get('s')?.config), '{"url":"http://x","extra":{"deep":[1,null]},"__proto__":{"a":1}}')
    assert.deepEqual(snapshot.system, { smartRouting: { enabled: false }, nameSeparator: '.' })
  }, { systemConfig: { smartRouting: { enabled: false } } })

  it('what was written does not change with the object that was given', async ({ store }) => {
    const value = { command: 'node', args: ['a'] }
    const { version } = await store.load()
    const snapshot = await store.commit([{ entity: 'mcpServers', key: 's', value }], version)
    value.args.push('b')
    assert.deepEqual(snapshot.servers.get('s')?.config.args, ['a'])
  })

  it('what a change does not touch stays the same object', async ({ store }) => {
    const before = await change(store, () => [server('a'), server('b'), group('g', 'g', 'a'), bearer('k'), user('u')])
    const after = await change(store, () => [server('a', 'new'), server('b')])
    assert.notEqual(after.servers.get('a'), before.servers.get('a'))
    assert.equal(after.servers.get('b'), before.servers.get('b'))
    assert.equal(after.groups, before.groups)
    assert.equal(after.keys, before.keys)
    assert.equal(after.users, before.users)
    assert.equal(after.system, before.system)
  })

  const itWithOthers: typeof it = alone ? () => {} : it

  itWithOthers(
    'what somebody else writes is told, once, and refuses what was worked out before',
    async ({ store, elsewhere }) => {
      const before = await change(store, () => [server('a'), server('b'), group('g', 'g', 'a')])
      const told: Snapshot[] = []
      store.onChange((snapshot) => { told.push(snapshot) })
      const end = store.onChange(() => { throw new Error('told after the end') })
      end()
      await elsewhere([server('b', 'new')])
      await until(() => told.length > 0, 'nothing was told')
      const [next] = told
      assert.ok(next && next.version > before.version)
      assert.equal(next.servers.get('b')?.config.description, 'new')
      assert.equal(next.servers.get('a'), before.servers.get('a'))
      assert.equal(next.groups.get('g'), before.groups.get('g'))
      await assert.rejects(store.commit([server('c')], before.version), ConflictError)
      await store.commit([server('c')], next.version)
      assert.equal(told.length, 1, 'told of its own change')
    }
  )

  itWithOthers(
    'a commit that meets what somebody else has just written is refused, and the next one keeps both',
    async ({ store, elsewhere, reopen }) => {
      const before = await change(store, () => [server('a')])
      await elsewhere([server('b')])
      await assert.rejects(store.commit([server('c')], before.version), ConflictError)
      await change(store, () => [server('c')])
      assert.deepEqual([...(await (await reopen()).load()).servers.keys()], ['a', 'b', 'c'])
    }
  )

  it(
    'a settings file of MCPHub, with odd entries in it',
    async ({ store, reopen }) => {
      const snapshot = await store.load()
      assert.deepEqual([...snapshot.servers.values()].map(({ name, problem }) => [name, problem === undefined]), [
        ['time', true], ['remote', true], ['wrong', false], ['nothing', false]
      ])
      assert.deepEqual(snapshot.groups.get('g1')?.members, [{ name: 'time' }, { name: 'remote', tools: ['a'] }])
      assert.deepEqual([...snapshot.users.keys()], ['admin', 'bob', 'BOB'])
      assert.deepEqual([...snapshot.keys.keys()], ['k'])
      assert.equal(snapshot.system.routing?.enableGlobalRoute, true)
      assert.equal(snapshot.problems.length, 8, snapshot.problems.join('\n'))
      // bob and BOB should not be two, and yet nothing else is held up by it.
      await change(store, () => [server('more'), user('bob'), group('g9', 'new')])
      await change(store, () => [remove('mcpServers', 'wrong')])
      assert.equal((await (await reopen()).load()).servers.size, 4)
    },
    {
      users: [
        { username: 'admin', password: '$2b$10$abcdefghijklmnopqrstuu', isAdmin: true },
        { username: 'bob', password: 'x' },
        { username: 'BOB' },
        { username: 5 },
        { username: 'bob', isAdmin: true }
      ],
      mcpServers: {
        time: { command: 'uvx', args: ['mcp-server-time'], enabled: false, owner: 'admin' },
        remote: { type: 'sse', url: 'http://localhost:1/sse', headers: {}, keepAliveInterval: 60000, options: {} },
        wrong: { command: 'x', args: 'y' },
        nothing: null
      },
      groups: [
        { id: 'g1', name: 'one', description: '', servers: ['time', { name: 'remote', tools: ['a'] }] },
        { id: 'g2', servers: [] }
      ],
      systemConfig: {
        routing: { enableGlobalRoute: true, enableGroupNameRoute: true, enableBearerAuth: true, bearerAuthKey: 'x' },
        install: { pythonIndexUrl: '', npmRegistry: '' }
      },
      bearerKeys: [
        { id: 'k', name: 'default', token: 'abc', enabled: true, accessType: 'all', allowedGroups: [], allowedServers: [] },
        'no key'
      ]
    }
  )

  it('the order of servers is stored, though names that are numbers come first in objects', async ({ store, reopen }) => {
    await store.load()
    const order = (snapshot: Snapshot): string[] => [...snapshot.servers.keys()]
    const wanted = ['b', '7', 'a', '0', '__proto__', '10', 'a-b']
    for (const name of wanted) assert.equal(order(await change(store, () => [server(name)])).at(-1), name)
    assert.deepEqual(order(await change(store, () => [server('7', 'changed'), user('x', true)])), wanted)
    const rename = { entity: 'mcpServers', key: 'a', value: { command: 'node' }, rename: '3' } as const
    assert.deepEqual(order(await change(store, () => [rename])), ['b', '7', '3', '0', '__proto__', '10', 'a-b'])
    const next = await reopen()
    assert.deepEqual(order(await next.load()), ['b', '7', '3', '0', '__proto__', '10', 'a-b'])
    assert.deepEqual(order(await change(next, () => [remove('mcpServers', '7')])), ['b', '3', '0', '__proto__', '10', 'a-b'])
    assert.deepEqual(order(await change(next, () => [server('7')])), ['b', '3', '0', '__proto__', '10', 'a-b', '7'])
    assert.deepEqual(order(await (await reopen()).load()), ['b', '3', '0', '__proto__', '10', 'a-b', '7'])
  })

  it('a list is put in another order, to which its entries keep', async ({ store, reopen }) => {
    const named = (key: string, template = key): Change => prompt(key, template)
    const order = (snapshot: Snapshot): string[] => [...snapshot.prompts.keys()]
    await change(store, () => ['a', 'b', 'c', 'd'].map((key) => named(key)))
    const ordered = { entity: 'order', of: 'prompts', keys: ['c', 'a', 'd', 'b'] } as const
    assert.deepEqual(order(await change(store, () => [ordered])), ['c', 'a', 'd', 'b'])
    assert.deepEqual(order(await change(store, () => [named('a', 'changed'), named('e')])), ['c', 'a', 'd', 'b', 'e'])
    const next = await reopen()
    assert.deepEqual(order(await next.load()), ['c', 'a', 'd', 'b', 'e'])
    assert.equal((await next.load()).prompts.get('a')?.template, 'changed')
    const partly = { entity: 'order', of: 'prompts', keys: ['e', 'gone'] } as const
    assert.deepEqual(order(await change(next, () => [partly, remove('prompts', 'a')])), ['e', 'c', 'd', 'b'])
    assert.deepEqual(order(await (await reopen()).load()), ['e', 'c', 'd', 'b'])
  })

  it('50 changes at once all arrive', async ({ store, reopen }) => {
    await Promise.all(Array.from({ length: 50 }, async (_, n) => await change(store, () => [server(`s${n}`)])))
    assert.equal((await (await reopen()).load()).servers.size, 50)
  })

  it('a closed store refuses', async ({ store }) => {
    const { version } = await store.load()
    await store.close()
    await assert.rejects(store.commit([server('a')], version), StorageError)
    assert.notEqual(store.health(), undefined)
  })
}

/** A store whose cleaning up is called by hand. */
export async function bounded (open: Open): Promise<{ opened: Opened, end: () => Promise<void> }> {
  const ends: Array<() => unknown> = []
  const opened = await open({ after: (end) => { ends.push(end) } })
  return { opened, end: async () => { for (const end of ends.reverse()) await end() } }
}
