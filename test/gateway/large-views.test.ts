// own process: its garbage collector is looked at
// What views of large catalogues cost: memory that goes when it is not needed any more, and work that stays short.
import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import type { Snapshot } from '../../db/store.ts'
import { makeView, type Principal, type View } from '../../plugins/settings/access/view.ts'
import { Notifier } from '../../plugins/gateway/notifier.ts'
import type { PresentationInput } from '../../plugins/gateway/surfaces.ts'
import type { ProviderTable } from '../../plugins/gateway/providers.ts'
import { ResourceLinks } from '../../plugins/gateway/resource-links.ts'
import { ItemResolver } from '../../plugins/gateway/resolve.ts'
import type { ViewSection } from '../../plugins/gateway/section.ts'
import { findResourceTarget, type Surface } from '../../plugins/gateway/surface.ts'
import { Surfaces } from '../../plugins/gateway/surfaces.ts'
import { ToolSearch, type SemanticSearch } from '../../plugins/extensions/smart-routing/search.ts'
import { NonMcpClient, type Client } from '../../protocol/exchange.ts'
import type { Catalogue } from '../../protocol/lists.ts'
import type { Listener } from '../../protocol/listener.ts'
import { exposedName } from '../../plugins/settings/access/item-names.ts'
import { holdClock, turnsOfLoop } from '../helpers/clock.ts'
import { until } from '../helpers/hub.ts'
import { setLimits } from '../helpers/patient.ts'
import { catalogueOf, fold as foldSections, section } from '../helpers/surface.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Waits until garbage collection has taken it. */
async function collected (reference: WeakRef<object>): Promise<void> {
  await until(() => { collect(); return reference.deref() === undefined }, 'it is kept')
}

const admin: Principal = { key: 'key 1', kind: 'system-key', user: 'key 1', isAdmin: true }
const itemsOf = (count: number, key: (n: number) => string): Array<{ name: string }> =>
  Array.from({ length: count }, (_, n) => ({ name: key(n) }))
const sectionOf = (catalogue: Catalogue): ViewSection => ({ ...section('s', undefined), catalogue })
const fold = (catalogue: Catalogue, isRaw: boolean, before?: Surface): Surface => foldSections([sectionOf(catalogue)], { isRaw }, before)

type SearchGateway = ConstructorParameters<typeof ToolSearch>[0]
/** No embeddings. */
const off: SemanticSearch = { isEnabled: false, embedInBackground () {}, compareWithTools: async () => ({ reason: '' }) }

for (const raw of [true, false]) {
  test(`a ${raw ? 'single server\'s' : 'merged'} surface does not keep the one before it`, async () => {
    let first: Surface | undefined = fold(catalogueOf({ tools: itemsOf(10, (n) => `t${n}`) }), raw)
    const gone = new WeakRef(first)
    const second = fold(catalogueOf({ tools: itemsOf(11, (n) => `t${n}`) }), raw, first)
    first = undefined
    await collected(gone)
    assert.equal(second.parts.tools.targets.size, 11)
  })
}

test('a surface of $smart does not keep the one before it', async () => {
  const search = new ToolSearch({} as unknown as SearchGateway, off, () => ({ hasStaticModel: false }), () => {})
  const merged = fold(catalogueOf({ tools: itemsOf(3, (n) => `t${n}`) }), false)
  const present = (before?: Surface): Surface => search.presentView({ merged, before, key: 'k' } satisfies PresentationInput, false)
  let first: Surface | undefined = present()
  const gone = new WeakRef(first)
  const second = present(first)
  first = undefined
  await collected(gone)
  assert.ok(second.parts.tools.targets.size > 0)
})

/** Surfaces of views that see one server with one catalogue. */
function surfacesOf (
  catalogue: Catalogue
): { surfaces: Surfaces, providers: ProviderTable, view: (name: string) => View, client: NonMcpClient } {
  const provider = { name: 's', catalogue: () => catalogue, catalogues: () => [catalogue] }
  const providers = { get: () => provider, catalogueKey: () => '', generation: 1, usedBy: () => [] } as unknown as ProviderTable
  const snapshot = { system: {}, servers: new Map() } as unknown as Snapshot
  const access = { snapshot, visibleServers: () => [sectionOf(catalogue)] } as unknown as ConstructorParameters<typeof Surfaces>[0]
  return {
    surfaces: new Surfaces(access, providers),
    providers,
    view: (name) => makeView({ ...admin, key: name }, { kind: 'group', id: name, name } as unknown as Parameters<typeof makeView>[1]),
    client: new NonMcpClient('c', 'u')
  }
}

test('of surfaces with many items together, those folded longest ago go', async (t) => {
  setLimits(t, gatewayLimits, { surfaceItems: 25 })
  const { surfaces, view, client } = surfacesOf(catalogueOf({ tools: itemsOf(10, (n) => `t${n}`) }))
  const [a, b] = ['a', 'b'].map((name) => new WeakRef(surfaces.of(view(name), client)))
  assert.ok(a && b)
  await turnsOfLoop(5)
  collect()
  assert.ok(a.deref() && b.deref(), 'two fit')
  surfaces.of(view('c'), client)
  await collected(a)
  assert.ok(b.deref(), 'the newer one stays')
  // The one that is wanted stays, however large it is.
  setLimits(t, gatewayLimits, { surfaceItems: 1 })
  const large = surfaces.of(view('d'), client)
  assert.ok(surfaces.of(view('d'), client) === large)
})

test('surfaces of former catalogues go once clients were notified of the change', async (t) => {
  const { surfaces, providers, view, client } = surfacesOf(catalogueOf({ tools: itemsOf(10, (n) => `t${n}`) }))
  const gone = new WeakRef(surfaces.of(view('a'), client))
  const news = new Notifier(providers, surfaces, {} as unknown as ItemResolver, () => {})
  t.teardown(() => { news.close() })
  Object.assign(providers, { generation: 2 })
  const kept = surfaces.of(view('b'), client)
  news.scheduleNotifications()
  await collected(gone)
  assert.equal(surfaces.of(view('b'), client), kept)
})

test('classes of clients to which all servers list the same have one surface, and others their own', async () => {
  const catalogue = catalogueOf({ tools: itemsOf(3, (n) => `t${n}`) }, { id: 1 })
  const other = catalogueOf({ tools: itemsOf(4, (n) => `t${n}`) }, { id: 2 })
  const lists = (client: Client): Catalogue => client.id === 'other' ? other : catalogue
  const provider = { name: 's', catalogue: lists, catalogues: () => [catalogue, other] }
  const source = { get: () => provider, catalogueKey: ({ id }: Client) => id, generation: 1 }
  const snapshot = { system: {}, servers: new Map() } as unknown as Snapshot
  const access = { snapshot, visibleServers: () => [sectionOf(catalogue)] } as unknown as ConstructorParameters<typeof Surfaces>[0]
  const surfaces = new Surfaces(access, source as unknown as ProviderTable)
  const view = makeView(admin, { kind: 'global' })
  const of = (id: string, capabilities: Client['capabilities'] = {}): Surface => surfaces.of(view, Object.assign(new NonMcpClient(id, 'u'), { capabilities }))
  const one = of('one')
  assert.ok(of('two', { sampling: {} }) === one)
  assert.equal(of('other').parts.tools.targets.size, 4)
  // What an app's tools show depends on the client as well.
  assert.ok(of('shows apps', { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } }) !== one)
  assert.ok(surfaces.of(makeView(admin, { kind: 'server', name: 's' }), new NonMcpClient('one', 'u')) !== one)
  source.generation++
  assert.ok(of('two') !== one)
})

test('a name that looks cut is compared with the hashes of a bounded number of tools', async () => {
  const catalogue = catalogueOf({ tools: itemsOf(40_000, (n) => `${'n'.repeat(70)}${n}`) })
  const { surfaces, providers } = surfacesOf(catalogue)
  const resolver = new ItemResolver(surfaces, providers, new ResourceLinks())
  const view = makeView(admin, { kind: 'server', name: 's' })
  const surface = fold(catalogue, true)
  for (const name of ['_deadbeef', `s-${'n'.repeat(53)}_deadbeef`]) assert.equal(resolver.lookUpName(view, surface, 'tools', name), undefined)
  // Those behind the bound are not found by such a name.
  const found = [100, 30_000].map((n) => {
    const key = `${'n'.repeat(70)}${n}`
    return resolver.lookUpName(view, surface, 'tools', exposedName('s', '-', key))?.key === key
  })
  assert.deepEqual(found, [true, false])
  // Those that there are stay known.
  const few = catalogueOf({ tools: itemsOf(3, (n) => `${'n'.repeat(70)}${n}`) })
  const merged = fold(few, false)
  for (const [name, { key }] of merged.parts.tools.targets) {
    assert.equal(resolver.lookUpName(view, fold(few, true), 'tools', name)?.key, key)
  }
})

test('hostile templates take a bounded time of a URI; thousands of ordinary ones are all tried', async () => {
  const hostile = (n: number): string => `x:{a}${'x'.repeat(2_000)}y${'x'.repeat(2_000)}{b${n}}`
  const template = (count: number, of: (n: number) => string): Surface => fold(catalogueOf({
    resourceTemplates: Array.from({ length: count }, (_, n) => ({ uriTemplate: of(n), name: 'x' }))
  }), false)
  // A template that fits is not tried any more behind them.
  for (const [count, provider] of [[0, 's'], [400, undefined]] as const) {
    const surface = template(count + 1, (n) => n < count ? hostile(n) : 'x:{a}x{b}')
    assert.equal(findResourceTarget(surface, `x:${'x'.repeat(8_100)}`)?.provider, provider, `${count} of them`)
  }
  const usual = template(5_000, (n) => `doc://h1/{a}/p${n}/{b}`)
  for (const n of [0, 4_999]) assert.equal(findResourceTarget(usual, `doc://h1/one/p${n}/two`)?.provider, 's')
})

test('sessions are notified one by one, each by what it saw', async (t) => {
  const clock = holdClock(t)
  const catalogue = catalogueOf({ tools: itemsOf(2, (n) => `t${n}`) })
  const former = fold(catalogue, false)
  let current = former
  let [inTurn, most, looks] = [0, 0, 0]
  const surfaces = {
    filtered: (view: View) => view,
    dropStale: () => {},
    of: () => {
      looks++
      most = Math.max(most, ++inTurn)
      clock.at += 6
      return current
    }
  } as unknown as Surfaces
  const logged: string[] = []
  const logError = (error: unknown, sentence: string): void => { logged.push(`${sentence}: ${String(error)}`) }
  const news = new Notifier({} as unknown as ProviderTable, surfaces, {} as unknown as ItemResolver, logError)
  const told: string[] = []
  const clients = Array.from({ length: 5 }, (_, n) => {
    const deliver = (method: string): void => {
      told.push(`${n} ${method}`)
      if (n === 1) throw new Error('it is full')
    }
    const listener = { view: makeView(admin, { kind: 'global' }), deliver } as unknown as Listener<View>
    const client = new NonMcpClient(`c${n}`, 'u')
    news.addListener(listener, client)
    return { listener, client }
  })
  let isTicking = true
  const tick = (): void => {
    inTurn = 0
    if (isTicking) setImmediate(tick)
  }
  tick()
  most = inTurn = looks = 0
  news.scheduleNotifications()
  await until(() => looks === clients.length)
  await turnsOfLoop(50)
  assert.deepEqual(told, [], 'nothing has changed')
  current = fold(catalogueOf({ tools: itemsOf(3, (n) => `t${n}`) }), false)
  news.scheduleNotifications()
  await until(() => told.length === clients.length)
  isTicking = false
  news.close()
  assert.deepEqual(told, clients.map((_, n) => `${n} notifications/tools/list_changed`))
  assert.deepEqual(logged, ['a client could not be notified of changed lists: Error: it is full'], 'and the others are notified')
  assert.equal(most, 1, 'others get a turn after each that takes long')
  // Lists that are collected count as changed, whatever they were.
  assert.notEqual(current, former)
})
