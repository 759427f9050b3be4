// What a view shows, against a rule that is written a second time, without the code that it checks.
import assert from 'node:assert/strict'
import fastify from 'fastify'
import fp from 'fastify-plugin'
import { test } from 'tap'
import type { Server, Snapshot, NormalizedGroup } from '../../../db/store.ts'
import access from '../../../plugins/settings/access/index.ts'
import type { KeyScope, Principal, View } from '../../../plugins/settings/access/view.ts'
import type { PublicToolsMode } from '../../../plugins/settings/access/visibility.ts'
import { Gateway } from '../../../plugins/gateway/gateway.ts'
import { gatewayClient } from '../../../protocol/exchange.ts'
import { makeStaticCatalogue } from '../../../protocol/lists.ts'
import type { Provider } from '../../../protocol/provider.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { bearerKey, startHub } from '../../helpers/hub.ts'
import { connected, send, settings } from '../../helpers/client.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { seeded } from '../../helpers/random.ts'
import { emptySnapshot } from '../../helpers/snapshot.ts'
import { tokenOf } from '../../helpers/token.ts'
import { shared } from '../../fakes/replica.ts'

const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)

class Random {
  readonly next: () => number

  constructor (seed: number) { this.next = seeded(seed) }

  chance (share: number): boolean { return this.next() < share }
  pick<Item> (items: readonly [Item, ...Item[]]): Item { return items[Math.floor(this.next() * items.length)] ?? items[0] }
  some<Item> (items: readonly Item[], share = 0.5): Item[] { return items.filter(() => this.chance(share)) }

  shuffled<Item> (items: readonly Item[]): Item[] {
    return items.map((item) => ({ item, at: this.next() })).sort((one, other) => one.at - other.at).map(({ item }) => item)
  }
}

const serverNames = ['s1', 's2', 's3', 's4', 's5'] as const
const groupNames = ['g1', 'g2', 'g3'] as const
const userNames = ['ann', 'bob', 'root'] as const

interface World { snapshot: Snapshot, principals: Principal[] }

/** @param version of the snapshot */
function worldOf (random: Random, version: number): World {
  const servers = serverNames.map((name): [string, Server] => {
    const owner = random.pick([undefined, 'admin', 'gone', ...userNames])
    const visibility = random.pick<ServerConfig['visibility']>([undefined, 'private', 'public', 'group'])
    const config: ServerConfig = {
      url: 'http://127.0.0.1:9/mcp',
      ...(owner === undefined ? {} : { owner }),
      ...(visibility === undefined ? {} : { visibility }),
      ...(random.chance(0.15) ? { enabled: false } : {})
    }
    return [name, { name, config }]
  })
  const groups = groupNames.map((name): [string, NormalizedGroup] => {
    const members = random.shuffled(random.some([...serverNames, 'no-such'])).map((member) => ({ name: member }))
    return [`id-${name}`, { id: `id-${name}`, name, members, owner: random.pick(['admin', ...userNames]) }]
  })
  const snapshot: Snapshot = {
    ...emptySnapshot,
    version,
    servers: new Map(servers),
    groups: new Map(groups),
    keys: new Map(),
    users: new Map(userNames.map((username) => [username, { username, isAdmin: username === 'root' }])),
  }
  const grantOf = (): KeyScope => ({
    accessType: random.pick(['groups', 'servers', 'custom']),
    groups: random.some([...groupNames, ...groupNames.map((name) => `id-${name}`)], 0.3),
    servers: random.some(serverNames)
  })
  const users = userNames.flatMap((username): Principal[] => {
    const of = { user: username, username, isAdmin: username === 'root' }
    return [
      { ...of, key: `user ${username}`, kind: 'user' },
      { ...of, key: `key of ${username}`, kind: 'user-key' },
      { ...of, key: `scoped key of ${username}`, kind: 'user-key', keyScope: grantOf() },
      { ...of, key: `another scoped key of ${username}`, kind: 'user-key', keyScope: grantOf() }
    ]
  })
  const systemKeys = ['one', 'two', 'three'].map((name): Principal =>
    ({ key: `key ${name}`, kind: 'system-key', user: `key ${name}`, isAdmin: true, ...(name === 'one' ? {} : { keyScope: grantOf() }) }))
  return { snapshot, principals: [...users, ...systemKeys, { key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }] }
}

type Word = { kind: 'all' } | { kind: 'server', name: string } | { kind: 'group', name: string }
interface Question { principal: Principal, open: boolean, word: Word }

/** The rule, as a person would check it by hand. @returns the servers, or that there is no such route */
function expected ({ snapshot }: World, { principal, open, word }: Question, reach: PublicToolsMode): string[] | 'refused' {
  const openToAll = ({ visibility }: ServerConfig): boolean => reach === 'all' || visibility === 'public'
  const accountSees = (config: ServerConfig): boolean => {
    if (principal.kind === 'anonymous') return openToAll(config)
    if (principal.kind === 'system-key' || principal.username === 'root') return true
    return config.visibility === 'public' || config.owner === principal.username
  }
  const group = word.kind === 'group' ? [...snapshot.groups.values()].find(({ name }) => name === word.name) : undefined
  const { keyScope: grant } = principal
  const listsGroup = group !== undefined && grant !== undefined && grant.accessType !== 'servers' &&
    (grant.groups.includes(group.id) || grant.groups.includes(group.name))
  const listsServer = (name: string): boolean => grant !== undefined && grant.accessType !== 'groups' && grant.servers.includes(name)
  const named: string[] = word.kind === 'all'
    ? [...serverNames]
    : word.kind === 'server' ? [word.name] : group?.members.map(({ name }) => name) ?? []
  const configured = named.filter((name) => snapshot.servers.has(name))
  const isRunning = (name: string): boolean => snapshot.servers.get(name)?.config.enabled !== false
  // The route of a group is there while its servers are disabled; that of a server is not.
  const exists = (seen: string[]): boolean =>
    word.kind === 'all' || (word.kind === 'group' ? seen : seen.filter(isRunning)).length > 0
  const configOf = (name: string): ServerConfig => snapshot.servers.get(name)?.config ?? {}
  if (open) {
    if (reach === 'off' && principal.kind === 'anonymous') return 'refused'
    const seen = configured.filter((name) => {
      if (reach !== 'off' && openToAll(configOf(name))) return true
      if (principal.kind === 'anonymous' || !accountSees(configOf(name))) return false
      return grant === undefined || listsGroup || listsServer(name)
    })
    return exists(seen) ? seen.filter(isRunning) : 'refused'
  }
  const seen = configured.filter((name) => accountSees(configOf(name)))
  if (grant !== undefined) {
    const isListed = word.kind === 'group'
      ? listsGroup || (named.length > 0 && named.every(listsServer))
      : word.kind === 'server' && listsServer(word.name)
    if (!isListed) return 'refused'
  }
  const isAdmin = principal.kind === 'system-key' || principal.username === 'root'
  return exists(seen) || (word.kind === 'group' && isAdmin) ? seen.filter(isRunning) : 'refused'
}

const wordOf = (word: Word): { name?: string, group?: string } => {
  if (word.kind === 'all') return {}
  return word.kind === 'group' ? { group: word.name } : { name: word.name }
}

test('a view shows what the rule says, whoever asked before', async (t) => {
  t.comment(`seed ${seed} (TEST_SEED=${seed} runs the same)`)
  const random = new Random(seed)
  const providers = new Map(serverNames.map((name): [string, Provider] => {
    const catalogue = makeStaticCatalogue({ name, version: '1', tools: [{ name: 'echo', inputSchema: { type: 'object' } }] })
    return [name, { name, catalogue: () => catalogue, call: async () => ({ kind: 'response', id: null, resultText: '{}' }) }]
  }))
  let count = 0
  for (let round = 0; round < 20; round++) {
    const reach = random.pick(['public', 'all', 'off'] as const)
    let world = worldOf(random, 1)
    const app = fastify()
    await app.register(fp(async (each) => { each.decorate('config', { env: { PUBLIC_TOOLS: reach } } as never) }, { name: 'config' }))
    await app.register(fp(async (each) => {
      each.decorate('settings', { get current () { return world.snapshot } } as never)
    }, { name: 'settings' }))
    await app.register(access)
    const gateway = new Gateway({ access: app.access, serverInfo: { name: 'hub', version: '1' }, logError: () => {} })
    gateway.addSource({ get: (name) => providers.get(name), connect: () => {} })
    for (const version of [1, 2]) {
      if (version === 2) world = worldOf(random, 2)
      const words: Word[] = [
        { kind: 'all' },
        ...serverNames.map((name): Word => ({ kind: 'server', name })),
        ...groupNames.map((name): Word => ({ kind: 'group', name }))
      ]
      const questions = world.principals.flatMap((principal) =>
        words.flatMap((word) => [true, false].map((open): Question => ({ principal, open, word }))))
      for (const question of random.shuffled(questions)) {
        const { principal, open, word } = question
        let view: View | undefined
        try {
          view = open ? app.access.viewOfOpenRoute(principal, wordOf(word), 'thing') : app.access.viewOfRoute(principal, wordOf(word))
        } catch { /* refused */ }
        const wanted = expected(world, question, reach)
        const what = `TEST_SEED=${seed}, round ${round}.${version}, PUBLIC_TOOLS=${reach}: ${JSON.stringify(question)}`
        const seen = view && [...gateway.surface(view, gatewayClient).parts.tools.targets.values()].map(({ provider }) => provider)
        assert.deepEqual(seen?.sort() ?? 'refused', wanted === 'refused' ? wanted : wanted.sort(), what)
        if (view) {
          const shown = gateway.sections(view, gatewayClient).map(({ server }) => server.name)
          assert.deepEqual(shown.sort(), seen, what)
          for (const name of serverNames) assert.equal(app.access.canSeeServer(view, principal, name), shown.includes(name), what)
        }
        count++
      }
    }
    await app.close()
  }
  t.comment(`${count} questions`)
})

test('a scoped user key shows no more than its owner sees, and opens nothing for others', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const scoped = `thk_${'c'.repeat(64)}`
  const server = (visibility: 'private' | 'public', owner: string): object => ({
    type: 'streamable-http', url: upstream.url, visibility, owner
  })
  const hub = await startHub(t, {
    env: { JWT_SECRET: shared.JWT_SECRET },
    settings: settings({ prv: server('private', 'ann'), own: server('private', 'bob') }, {
      users: [{ username: 'ann' }, { username: 'bob' }],
      groups: [{ id: 'g', name: 'both', servers: ['prv', 'own'] }],
      bearerKeys: [
        bearerKey(),
        bearerKey({
          id: '22222222-2222-4222-8222-222222222222',
          token: scoped,
          kind: 'user',
          owner: 'bob',
          accessType: 'custom',
          allowedServers: ['prv', 'own'],
          allowedGroups: ['both']
        })
      ]
    })
  })
  await connected(hub, 2)
  const login = { 'x-auth-token': tokenOf({ username: 'bob' }) }
  const status = async (path: string, options: { key?: string | null, headers?: Record<string, string> }): Promise<number> =>
    (await send(`${hub.url}${path}`, { method: 'GET', ...options })).status
  // The key asks first: the login of the same user must not get what was made for the key.
  for (const options of [{ key: scoped }, { key: null, headers: login }, { key: scoped }]) {
    for (const path of ['/api/tools/prv/echo?message=x', '/api/both/tools/prv/echo?message=x', '/api/tools/prv/echo?group=both&message=x',
      '/api/prv/openapi.json']) {
      assert.equal(await status(path, options), 404, `${path} ${JSON.stringify(options)}`)
    }
    for (const path of ['/api/tools/own/echo?message=x', '/api/both/tools/own/echo?message=x']) {
      assert.equal(await status(path, options), 200, `${path} ${JSON.stringify(options)}`)
    }
  }
  assert.equal(await status('/api/tools/own/echo?message=x', { key: null }), 404)
})
