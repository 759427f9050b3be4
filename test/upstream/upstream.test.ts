import assert from 'node:assert/strict'
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mock } from 'node:test'
import { test, type Test } from 'tap'
import { mockTimers } from '../helpers/clock.ts'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { UpstreamError } from '../../protocol/errors.ts'
import { PlainClient, type Client } from '../../protocol/exchange.ts'
import { plainClass } from '../../protocol/capabilities.ts'
import {
  kinds,
  listKinds,
  nextCatalogueId,
  sameCatalogue,
  type Catalogue,
  type Item,
  type ListKind
} from '../../protocol/lists.ts'
import type { Level } from '../../protocol/listener.ts'
import { killGroup } from '../../protocol/transports/process-group.ts'
import { LastWords } from '../../protocol/transports/last-words.ts'
import { shownLine } from '../../protocol/transports/printed-line.ts'
import { StdioTransport, type StdioOptions } from '../../protocol/transports/stdio.ts'
import { transportLimits } from '../../protocol/transports/transport.ts'
import { Claims } from '../../plugins/gateway/claims.ts'
import { limits } from '../../plugins/limits/index.ts'
import { attribute, type InboundMessage, type Target } from '../../plugins/upstream/inbound/attribution.ts'
import { backoff } from '../../plugins/upstream/links/backoff.ts'
import { cacheText, toCatalogue } from '../../plugins/upstream/catalogues/cache-text.ts'
import { Catalogues, type CataloguesDeps } from '../../plugins/upstream/catalogues/catalogues.ts'
import { CatalogueShares, fitting, sizeOf } from '../../plugins/upstream/catalogues/shares.ts'
import { readList } from '../../plugins/upstream/catalogues/read-list.ts'
import type { Link } from '../../plugins/upstream/links/link.ts'
import { baseKey, linkKey, listingKey, type Isolation, type LinkKey, type Sharer } from '../../plugins/upstream/links/link-key.ts'
import { Semaphore } from '../../plugins/limits/semaphore.ts'
import { ShareError } from '../../plugins/limits/shares.ts'
import { Children, Pool } from '../../plugins/upstream/links/pool.ts'
import { Slot } from '../../plugins/upstream/links/slot.ts'
import { TaskRegistry } from '../../plugins/upstream/links/task-registry.ts'
import { isRemote, transportKinds } from '../../plugins/upstream/links/transport.ts'
import { limitLines } from '../../plugins/upstream/links/line-limit.ts'
import { redactor } from '../../plugins/secrets/redact.ts'
import { StatusLog } from '../../plugins/upstream/status-log.ts'
import { path, until } from '../helpers/hub.ts'

const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31)
console.log(`fast-check: FC_SEED=${seed}`)

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  // What holds the event loop too long on a slow machine yields to it.
  await new Promise((resolve) => { setImmediate(resolve) })
}

// ── who shares a connection ──

const clients = {
  none: {},
  sampling: { sampling: {} },
  elicitation: { elicitation: { form: {}, url: {} } },
  roots: { roots: { listChanged: true } },
  extensions: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html'] } } }
} as const
type ClientKind = keyof typeof clients

/**
 * DECISIONS §7, "Isolation": who shares one connection with whom, among clients of the same kind.
 * all: everybody · user: the sessions of one user · own: a session of its own.
 */
const sharing = `
  isolation transport contested  none  sampling  elicitation  roots  extensions
  auto      remote    no         all   own       own          own    all
  auto      remote    yes        all   own       own          own    all
  auto      stdio     no         all   all       all          all    all
  auto      stdio     yes        all   own       own          own    all
  shared    remote    no         all   all       all          all    all
  shared    remote    yes        all   all       all          all    all
  shared    stdio     no         all   all       all          all    all
  shared    stdio     yes        all   all       all          all    all
  session   remote    no         own   own       own          own    own
  session   remote    yes        own   own       own          own    own
  session   stdio     no         own   own       own          own    own
  session   stdio     yes        own   own       own          own    own
  user      remote    no         user  user      user         user   user
  user      remote    yes        user  user      user         user   user
  user      stdio     no         user  user      user         user   user
  user      stdio     yes        user  user      user         user   user
`.trim().split('\n').map((line) => line.trim().split(/ +/))
const kindsOfClient = (sharing[0] ?? []).slice(3) as ClientKind[]
const servers = sharing.slice(1).map(([isolation, transport, contested, ...cells]) => ({
  server: { isolation: isolation as Isolation, remote: transport === 'remote', contested: contested === 'yes' },
  says: `${isolation}, ${transport}${contested === 'yes' ? ', contested' : ''}`,
  cells
}))

test('linkKey: who shares with whom', async (t) => {
  const sharer = (id: string, user: string, kind: ClientKind): Sharer => ({ id, user, capabilities: structuredClone(clients[kind]) })

  for (const { server, says, cells } of servers) {
    await t.test(says, async () => {
      kindsOfClient.forEach((kind, at) => {
        const cell = cells[at]
        assert.ok(cell === 'all' || cell === 'user' || cell === 'own')
        const key = (id: string, user: string): LinkKey => linkKey(server, sharer(id, user, kind))
        const first = key('s1', 'ann')
        assert.equal(key('s1', 'ann').key, first.key, `${kind}: one session has one connection`)
        assert.equal(key('s2', 'ann').key === first.key, cell !== 'own', `${kind}: two sessions of one user`)
        assert.equal(key('s3', 'bob').key === first.key, cell === 'all', `${kind}: sessions of two users`)
        assert.equal(first.affinity, { all: 'shared', user: 'user', own: 'session' }[cell], kind)
      })
    })
  }

  await t.test('upstreams are told what a client really can: clients that can other things never share', async () => {
    for (const { server, says } of servers) {
      for (const a of kindsOfClient) {
        for (const b of kindsOfClient.filter((kind) => kind !== a)) {
          const [one, other] = [linkKey(server, sharer('s1', 'ann', a)), linkKey(server, sharer('s2', 'ann', b))]
          assert.notEqual(one.key, other.key, `${says}: ${a} and ${b}`)
          assert.notEqual(one.capabilityClass, other.capabilityClass, `${says}: ${a} and ${b} see one catalogue`)
        }
      }
    }
  })

  await t.test('a client that cannot be asked and shares, shares the gateway\'s own', async () => {
    for (const isolation of ['auto', 'shared'] as const) {
      assert.deepEqual(linkKey({ isolation, remote: true, contested: false }, sharer('s', 'u', 'none')), baseKey)
    }
    assert.equal(baseKey.capabilityClass, plainClass)
  })

  // DECISIONS §15: passed-on headers. Against a client of ann's that sends `x`: what another request finds. same: its link · other: another
  // one.
  const passing = `
    isolation transport client   again  sessions  values  principals  nothing
    auto      each      none     same   same      other   other       other
    auto      each      asked    same   other     same    other       same
    auto      once      none     same   same      other   other       other
    auto      once      asked    same   other     other   other       other
    shared    each      asked    same   same      other   other       other
    shared    once      asked    same   same      other   other       other
    user      each      asked    same   same      other   other       other
    user      once      none     same   same      other   other       other
    session   each      none     same   other     same    other       same
    session   once      none     same   other     other   other       other
    session   each      rest     same   same      other   other       other
    auto      each      rest     same   same      other   other       other
  `.trim().split('\n').slice(1).map((line) => line.trim().split(/ +/))
  for (const [isolation, transport, client, ...cells] of passing) {
    await t.test(`passed-on headers: ${isolation}, ${transport === 'each' ? 'with each request' : 'at opening'}, ${client}`, async () => {
      const server = { isolation: isolation as Isolation, remote: true, contested: false }
      const rest = client === 'rest'
      const key = (session: string, principal: string, digest: string | undefined, user = 'ann'): LinkKey =>
        linkKey(
          server,
          sharer(rest ? `rest ${principal}` : session, user, client === 'asked' ? 'sampling' : 'none'),
          digest === undefined ? undefined : { principal, digest, session: !rest, eachRequest: transport === 'each' }
        )
      const first = key('s1', 'key 1', 'x')
      const others = [
        key('s1', 'key 1', 'x'),
        key('s2', 'key 1', 'x'),
        key('s1', 'key 1', 'y'),
        key('s3', 'key 2', 'x'),
        key('s1', 'key 1', undefined)
      ]
      assert.deepEqual(others.map((other) => other.key === first.key ? 'same' : 'other'), cells)
      assert.notEqual(key('s4', 'key 2', 'x', 'bob').key, first.key, 'another user')
      assert.notEqual(first.affinity, 'shared', 'nobody else hears what comes on it')
      assert.notEqual(first.key, baseKey.key)
    })
  }

  await t.test('lists are read by links of nobody, one for each class', async () => {
    assert.equal(listingKey(baseKey, plainClass), baseKey)
    const listing = listingKey(baseKey, '{"sampling":{}}')
    assert.deepEqual(listing, { key: 'listing {"sampling":{}}', affinity: 'shared', capabilityClass: '{"sampling":{}}' })
    for (const isolation of ['auto', 'shared', 'session', 'user'] as const) {
      assert.notEqual(linkKey({ isolation, remote: true, contested: false }, sharer('s', 'u', 'sampling')).key, listing.key)
    }
  })

  await t.test('who asks for connections of its own has them, whatever the server is set to', async () => {
    for (const isolation of ['auto', 'shared', 'session', 'user'] as const) {
      const alone = (id: string): string =>
        linkKey({ isolation, remote: false, contested: false }, { ...sharer(id, 'u', 'none'), ownLinks: true }).key
      assert.equal(alone('a'), alone('a'))
      assert.notEqual(alone('a'), alone('b'))
      assert.notEqual(alone('a'), linkKey({ isolation, remote: false, contested: false }, sharer('b', 'u', 'none')).key)
    }
  })

  await t.test('no choice of names makes two keys meet', async () => {
    const word = fc.oneof(fc.string(), fc.constantFrom('', '{}', '"', '" {}', 'shared {}', 'a" {}\nuser "b', 'session s', '__proto__'))
    fc.assert(fc.property(word, word, fc.constantFrom(...kindsOfClient), fc.constantFrom(...kindsOfClient), (a, b, one, other) => {
      const key = (isolation: Isolation, id: string, user: string, kind: ClientKind): string =>
        linkKey({ isolation, remote: true, contested: false }, sharer(id, user, kind)).key
      if (a !== b) {
        assert.notEqual(key('user', 's', a, one), key('user', 's', b, other))
        assert.notEqual(key('session', a, 'u', one), key('session', b, 'u', other))
      }
      assert.notEqual(key('user', 's', a, one), key('session', b, 'u', other))
      assert.notEqual(key('user', 's', a, one), key('shared', 's', 'u', other))
      assert.notEqual(key('session', a, 'u', one), key('shared', 's', 'u', other))
      const passed = (isolation: Isolation, id: string, principal: string, session: boolean): string =>
        linkKey({ isolation, remote: true, contested: false }, sharer(id, 'u', 'none'), {
          principal,
          digest: 'd',
          session,
          eachRequest: true
        }).key
      if (a !== b) {
        assert.notEqual(passed('shared', 's', a, true), passed('shared', 's', b, true))
        assert.notEqual(passed('session', a, 'p', false), passed('session', b, 'p', false))
      }
      assert.notEqual(passed('shared', a, 'p', true), passed('session', b, 'p', false))
      for (const isolation of ['shared', 'user'] as const) assert.notEqual(passed(isolation, 's', a, true), key(isolation, 's', b, one))
    }), { seed, numRuns: 500 })
  })
})

test('attribute: whom a question is for', async (t) => {
  interface FakeCall { id: number, by: string }
  const call = (id: number, by: string): FakeCall => ({ id, by })
  const [ann, annToo, bob] = [call(1, 'ann'), call(2, 'ann'), call(3, 'bob')]
  const table: Array<{ says: string; given: Partial<InboundMessage<FakeCall, string>>; target: Target<FakeCall, string> }> = [
    { says: 'the call on whose stream it came', given: { origin: ann, open: [ann] }, target: { kind: 'call', call: ann } },
    {
      says: 'that call before all others, several owners or not',
      given: { origin: ann, open: [ann, bob, annToo] },
      target: { kind: 'call', call: ann }
    },
    {
      says: 'that call before the session that owns the link',
      given: { origin: bob, open: [bob], owner: 'ann' },
      target: { kind: 'call', call: bob }
    },
    { says: 'nobody, where that call is over', given: { origin: 'over' }, target: { kind: 'over' } },
    {
      says: 'nobody, where that call is over: not the only one that is open',
      given: { origin: 'over', open: [bob] },
      target: { kind: 'over' }
    },
    {
      says: 'nobody, where that call is over: not the session that owns the link',
      given: { origin: 'over', open: [ann], owner: 'ann' },
      target: { kind: 'over' }
    },
    {
      says: 'nobody, where that call is over: no cause to call the link contested',
      given: { origin: 'over', open: [ann, bob] },
      target: { kind: 'over' }
    },
    { says: 'the only call open', given: { open: [bob] }, target: { kind: 'call', call: bob } },
    {
      says: 'the only call open before the session that owns the link',
      given: { open: [ann], owner: 'ann' },
      target: { kind: 'call', call: ann }
    },
    { says: 'one of the calls of their only owner: the latest', given: { open: [ann, annToo] }, target: { kind: 'call', call: annToo } },
    {
      says: 'of these best one that does not wait for an answer: the latest such',
      given: { open: [ann, call(4, 'ann'), annToo], isAsked: ({ id }) => id === 2 },
      target: { kind: 'call', call: call(4, 'ann') }
    },
    {
      says: 'the latest, where all of these wait',
      given: { open: [ann, annToo], isAsked: () => true },
      target: { kind: 'call', call: annToo }
    },
    {
      says: 'nobody, whichever of the calls of several wait',
      given: { open: [ann, bob], isAsked: ({ id }) => id === 1 },
      target: { kind: 'contested' }
    },
    { says: 'the session that owns the link, where no call is open', given: { owner: 'ann' }, target: { kind: 'owner', owner: 'ann' } },
    {
      says: 'the session that owns the link, where calls of several are open',
      given: { open: [ann, bob], owner: 'ann' },
      target: { kind: 'owner', owner: 'ann' }
    },
    {
      says: 'the only call open, though a task of its owner is under way',
      given: { open: [bob], workers: ['bob'] },
      target: { kind: 'call', call: bob }
    },
    { says: 'nobody: a task of another may be what it is about', given: { open: [bob], workers: ['ann'] }, target: { kind: 'contested' } },
    {
      says: 'the session that owns the link, though a task of another is under way',
      given: { open: [bob], workers: ['ann'], owner: 'bob' },
      target: { kind: 'owner', owner: 'bob' }
    },
    { says: 'nobody: a task is under way, and none is waiting', given: { workers: ['ann'] }, target: { kind: 'idle' } },
    { says: 'nobody: none is waiting', given: {}, target: { kind: 'idle' } },
    { says: 'nobody: several are', given: { open: [ann, bob] }, target: { kind: 'contested' } },
    { says: 'nobody: several are, whoever was first or last', given: { open: [ann, bob, annToo] }, target: { kind: 'contested' } }
  ]
  for (const { says, given, target } of table) {
    await t.test(says, async () => {
      assert.deepEqual(attribute({ origin: undefined, open: [], workers: [], owner: undefined, ownerOf: ({ by }) => by, ...given }), target)
    })
  }
  await t.test('it never guesses between two', async () => {
    fc.assert(fc.property(fc.array(fc.constantFrom('ann', 'bob', 'eve'), { minLength: 1, maxLength: 6 }), (owners) => {
      const open = owners.map((by, id) => call(id, by))
      const target = attribute({ origin: undefined, open, workers: [], owner: undefined, ownerOf: ({ by }) => by })
      assert.equal(target.kind, new Set(owners).size === 1 ? 'call' : 'contested')
    }), { seed })
  })
})

test('backoff: from 1 s doubling to 60 s, with jitter', async () => {
  for (const [failures, full] of [
    [0, 1_000],
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
    [4, 8_000],
    [5, 16_000],
    [6, 32_000],
    [7, 60_000],
    [8, 60_000],
    [5_000, 60_000]
  ] as const) {
    assert.equal(
      backoff(failures, () => 0),
      full / 2
    )
    assert.equal(
      backoff(failures, () => 0.5),
      full * 0.75
    )
    assert.ok(backoff(failures, () => 1 - Number.EPSILON) <= full)
    assert.ok(backoff(failures) >= full / 2 && backoff(failures) <= full)
  }
  assert.ok(new Set(Array.from({ length: 20 }, () => backoff(3))).size > 1, 'there is no jitter')
})

test('semaphore: so many at once, the others in order', async () => {
  const semaphore = new Semaphore({ places: 2 })
  const order: string[] = []
  const take = async (name: string): Promise<() => void> => { const done = await semaphore.take(); order.push(name); return done }
  const [a, b] = [await take('a'), await take('b')]
  const waiting = [take('c'), take('d'), take('e')]
  await settle()
  assert.deepEqual(order, ['a', 'b'])
  a()
  a()
  await settle()
  assert.deepEqual(order, ['a', 'b', 'c'], 'giving back twice gives one place')
  b()
  await settle()
  assert.deepEqual(order, ['a', 'b', 'c', 'd'])
  for (const done of await Promise.all(waiting.slice(0, 2))) done()
  await settle()
  assert.deepEqual(order, ['a', 'b', 'c', 'd', 'e'])
  ;(await Promise.all(waiting)).at(-1)?.()
  const again = [await take('f'), await take('g')]
  void take('h')
  await settle()
  assert.equal(order.at(-1), 'g', 'there are two places, not three')
  again[0]?.()
  await settle()
  assert.equal(order.at(-1), 'h')
})

const client = (id: string): Client => new PlainClient(id, id, id, false)

const slotOf = (more: Partial<LinkKey> = {}, user?: string): Slot => new Slot({ ...baseKey, ...more }, {}, { user })

test('slot: what outlives one connection', async (t) => {
  const leveled = (id: string, level: Level | undefined): Client => {
    return Object.assign(client(id), { listener: { view: undefined, level, deliver: () => {} } })
  }

  await t.test('the level upstream is the lowest that anyone wants', async () => {
    const slot = slotOf()
    const levelWith = (id: string, level: Level | undefined): Level | undefined => { slot.serve(leveled(id, level)); return slot.level }
    assert.equal(levelWith('d', undefined), undefined)
    slot.forget('d')
    assert.equal(levelWith('a', 'error'), 'error')
    assert.equal(levelWith('b', 'alert'), 'error')
    assert.equal(levelWith('c', 'debug'), 'debug')
    assert.equal(levelWith('c', 'emergency'), 'error')
    slot.forget('a')
    assert.equal(slot.level, 'alert')
    slot.serve(client('a caller that hears nothing'))
    assert.equal(slot.level, 'alert')
    slot.forget('b')
    slot.forget('c')
    assert.equal(slot.level, undefined)
  })

  await t.test('who said nothing of levels misses nothing because of others, and is told nothing more when they have gone', async () => {
    const slot = slotOf()
    const told: Level[] = []
    const link = {
      level: undefined,
      setLevel: async (level: Level) => {
        if (link.level !== level) told.push(level)
        link.level = level
      }
    } as unknown as Link
    slot.link = link
    const serve = (id: string, level?: Level): void => { slot.serve(leveled(id, level)); slot.updateLevel() }
    serve('a')
    assert.deepEqual(told, [])
    serve('b', 'emergency')
    serve('c', 'debug')
    slot.forget('c')
    assert.deepEqual(told, ['info', 'debug', 'info'])
    slot.forget('a')
    assert.deepEqual(told.splice(0), ['info', 'debug', 'info', 'emergency'])
    slot.forget('b')
    assert.deepEqual(told, [], 'nobody is left')
    serve('d')
    assert.deepEqual(told, ['info'])
  })

  const subscribe = (slot: Slot, uri: string, ...ids: string[]): void => {
    for (const id of ids) slot.subscriptions.add(uri, client(id))
  }
  const subscribersOf = (slot: Slot, uri: string): string[] => [...slot.subscriptions.subscribersOf(uri)].map(({ id }) => id).sort()

  await t.test('an update goes to who subscribed to the resource, or to one that it is a part of', async () => {
    const slot = slotOf()
    subscribe(slot, 'file:///a', 'ann')
    subscribe(slot, 'file:///a/b.txt', 'bob', 'eve')
    assert.deepEqual(subscribersOf(slot, 'file:///a'), ['ann'])
    assert.deepEqual(subscribersOf(slot, 'file:///a/b.txt'), ['ann', 'bob', 'eve'])
    assert.deepEqual(subscribersOf(slot, 'file:///a/c.txt'), ['ann'])
    assert.deepEqual(subscribersOf(slot, 'file:///'), [])
  })

  await t.test('a resource whose URI only begins alike is not a part of it', async () => {
    const slot = slotOf()
    subscribe(slot, 'test://static/resource/1', 'ann')
    assert.deepEqual(subscribersOf(slot, 'test://static/resource/10'), [])
  })

  await t.test('forgetting a client tells which URIs nobody wants any more', async () => {
    const slot = slotOf()
    subscribe(slot, 'a', 'ann')
    subscribe(slot, 'b', 'ann', 'bob')
    subscribe(slot, 'c', 'bob')
    assert.deepEqual(slot.forget('ann'), ['a'])
    assert.deepEqual([...slot.subscriptions.uris], ['b', 'c'])
    assert.deepEqual(slot.forget('ann'), [])
    assert.deepEqual(slot.forget('nobody'), [])
    assert.deepEqual(slot.forget('bob').sort(), ['b', 'c'])
    assert.equal(slot.subscriptions.size, 0)
  })

  await t.test('subscriptions have a bound for all slots together, with a share for each owner, in size and not in number', async () => {
    const [slot, other] = [slotOf(), slotOf()]
    const owned = (id: string, owner: string): Client => Object.assign(client(id), { owner })
    const uri = (n: number): string => `file:///${n}/${'x'.repeat(1024 * 1024)}`
    const add = (to: Slot, who: Client, from: number): number => {
      for (let n = from; ; n++) {
        try { to.subscriptions.add(uri(n), who) } catch (error) {
          assert.ok(error instanceof ShareError && error.isOwners)
          return n - from
        }
      }
    }
    const [first, second, bob] = [owned('s1', 'eve'), owned('s2', 'eve'), owned('s3', 'bob')]
    const most = add(slot, first, 0)
    assert.equal(most, Math.floor(limits.subscriptions.size * 3 / 4 / 1024 / 1024) - 1)
    assert.equal(add(other, second, 0), 0, 'the same owner')
    assert.ok(add(other, bob, 0) >= 2)
    other.takeOver(slot, first)
    assert.deepEqual([other.subscriptions.countOf('s1'), other.subscriptions.subscribersOf(`${uri(0)}/a`)[Symbol.iterator]().next().value], [most, bob])
    assert.equal(slot.forget('s1').length, most, 'it was copied')
    assert.equal(add(slot, second, 0), 0, 'and is counted once')
    other.subscriptions.clear()
    assert.equal(add(slot, second, 0), most)
    slot.forget('s2')
  })

  await t.test('it is idle while nobody would notice its link going', async () => {
    const slot = slotOf()
    assert.equal(slot.idle, true)
    slot.opening = new Promise(() => {})
    assert.equal(slot.idle, false)
    slot.opening = undefined
    subscribe(slot, 'a', 'ann')
    assert.equal(slot.idle, false)
    slot.forget('ann')
    for (const busy of [false, true]) {
      slot.link = { busy } as unknown as Link
      assert.equal(slot.idle, !busy)
    }
  })
})

test('task registry: whose a task is, and for how long', async (t) => {
  const session = (id: string, principal: string): Client => new PlainClient(id, principal, principal, false)
  const [one, again, stranger] = [session('s1', 'ann'), session('s2', 'ann'), session('s3', 'bob')]
  const [link, next] = [{}, {}] as Link[]
  assert.ok(link && next)
  const begun = (): TaskRegistry => {
    const pending = new TaskRegistry()
    pending.task({ taskId: 't', status: 'working', ttl: 60_000 }, link, one, { client: one, link, token: 7, clientToken: '"mine"' })
    return pending
  }
  const workers = (pending: TaskRegistry, on = link): string[] => pending.workersOn(on).map(({ id }) => id)

  await t.test('one that is over needs no connection, and is still found by its principal', async () => {
    const pending = begun()
    assert.deepEqual([pending.any, workers(pending), workers(pending, next)], [true, ['s1'], []])
    pending.task({ taskId: 't', status: 'completed' }, link)
    assert.deepEqual([pending.any, workers(pending)], [false, []])
    assert.deepEqual([one, again, stranger].map((client) => pending.hasTask('t', client)), [true, true, false])
    assert.equal(pending.hasTask('u', one), false)
  })

  await t.test('it is for who asked about it last; who has gone is told nothing and keeps nobody waiting', async () => {
    const pending = begun()
    pending.leave('s1')
    assert.deepEqual(
      [pending.any, workers(pending), pending.ownerOfTask('t'), pending.progressOf(link, 7)],
      [true, [], undefined, undefined]
    )
    pending.task({ taskId: 't', status: 'working' }, link, again)
    assert.deepEqual([workers(pending), pending.ownerOfTask('t')?.id], [['s2'], 's2'])
  })

  await t.test('progress is known by its token on that connection only', async () => {
    const pending = begun()
    assert.equal(pending.progressOf(link, 7)?.clientToken, '"mine"')
    assert.deepEqual([pending.progressOf(next, 7), pending.progressOf(link, 8)], [undefined, undefined])
    pending.task({ taskId: 't', status: 'working' }, link, again)
    assert.equal(pending.progressOf(link, 7)?.client.id, 's1', 'the token is that of the session that began it')
  })

  await t.test('beyond the bound those that are over go first; each is forgotten with its time', async () => {
    const pending = begun()
    for (let n = 0; n < limits.tasksPerConnection; n++) pending.task({ taskId: String(n), status: 'completed' }, link, one)
    assert.deepEqual([pending.knowsTask('t'), pending.knowsTask('0'), pending.knowsTask('1')], [true, false, true])
    pending.task({ taskId: 't', status: 'working', ttl: 1 }, link)
    await new Promise((resolve) => { setTimeout(resolve, 5) })
    assert.deepEqual([pending.any, pending.knowsTask('t')], [false, false])
  })

  await t.test('who begins tasks, or is sent to pages, without end loses his own, and nobody else anything', async () => {
    const pending = new TaskRegistry()
    const eves = ['e1', 'e2'].map((id) => new PlainClient(id, 'eve', 'eve', false, 'user eve'))
    pending.task({ taskId: 'anns', status: 'working' }, link, one)
    pending.task({ taskId: 'anns that is over', status: 'completed' }, link, one)
    pending.elicitation('anns', one)
    for (let n = 0; n < 2 * limits.tasksPerConnection; n++) {
      for (const eve of eves) pending.task({ taskId: `${eve.id} ${n}`, status: 'working' }, link, eve)
      for (const eve of eves) pending.elicitation(`${eve.id} ${n}`, eve)
    }
    assert.deepEqual([pending.ownerOfTask('anns')?.id, pending.hasTask('anns that is over', one)], ['s1', true])
    const last = 2 * limits.tasksPerConnection - 1
    assert.deepEqual(['anns', 'e1 0', `e2 ${last}`].map((id) => pending.elicited(id)?.id), ['s1', undefined, 'e2'])
    assert.deepEqual([pending.knowsTask('e1 0'), pending.knowsTask(`e1 ${last}`)], [false, true])
    assert.equal(workers(pending).length, limits.tasksPerConnection - 1)
    pending.task({ taskId: 'bobs', status: 'working' }, link, stranger)
    assert.deepEqual([pending.ownerOfTask('bobs')?.id, pending.ownerOfTask('anns')?.id], ['s3', 's1'])
  })

  await t.test('ids as long as a message are not remembered: a server that invents them would fill the memory', async () => {
    const pending = begun()
    for (const long of ['x'.repeat(limits.rememberedId + 1), 'ж'.repeat(limits.rememberedId / 2 + 1)]) {
      pending.task({ taskId: long, status: 'working' }, link, one)
      pending.elicitation(long, one)
      assert.deepEqual([pending.knowsTask(long), pending.elicited(long)], [false, undefined])
      pending.task({ taskId: 'u', status: 'working' }, link, one, { client: one, link, token: 8, clientToken: long })
    }
    assert.deepEqual([pending.knowsTask('u'), pending.progressOf(link, 8)], [true, undefined])
  })

  await t.test('news of what nobody began are nobody\'s', async () => {
    const pending = new TaskRegistry()
    pending.task({ taskId: 'x', status: 'working' }, link)
    pending.task({ status: 'working' }, link, one)
    assert.deepEqual([pending.any, pending.elicited('y')], [false, undefined])
  })
})

// ── catalogues ──

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
      ['resourceTemplates', 'resources/templates/list', 'resourceTemplates', 'uriTemplate']
    ]
    assert.deepEqual(kinds, table.map(([kind]) => kind))
    for (const [kind, method, member, key] of table) {
      const more = `${key === 'name' ? '' : ',"name":"n"'},"inputSchema":{"type":"object"}`
      const item = `{"${key}":"k"${more}}`
      const result = await read(kind, () => `{"other":[{"${key}":"no"${more}}],"${member}":[${item}]}`)
      assert.deepEqual([result.items, result.asked[0]?.[0]], [[{ key: 'k', text: item }], method])
    }
  })

  await t.test('no list, an empty one, or something else in its place', async () => {
    for (const result of ['{}', '{"tools":[]}', '{"tools":null}', '{"tools":{"a":1}}', '{"tools":"text"}', '[]', 'null']) {
      assert.deepEqual(names(await read('tools', () => result)), [], result)
    }
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
    assert.equal(ever.asked.length, limits.listPages)
    assert.equal(ever.items.length, limits.listPages)
    assert.match(ever.warnings.at(-1) ?? '', /pages/)
    const circle = await read('tools', (_cursor, at) => `{"tools":[],"nextCursor":"${at % 2}"}`)
    assert.ok(circle.asked.length <= limits.listPages)
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
      'null',
      '1',
      '"x"',
      '[]',
      '{}',
      '{"name":""}',
      '{"name":1,"inputSchema":{}}',
      '{"name":"x"}',
      '{"name":"x","inputSchema":null}',
      '{"name":"x","inputSchema":[]}',
      `{"name":"x","inputSchema":{},"pad":"${'x'.repeat(limits.itemSize)}"}`
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
    assert.deepEqual(items, [{ key: 'last', text: padded }], 'of a repeated member the last counts')
    assert.deepEqual(names(await read('prompts', () => '{"prompts":[{"name":"p"}]}')), ['p'], 'a prompt needs no schema')
  })

  await t.test('an item is left out where a known member is not what MCP says: clients refuse a whole list for one', async () => {
    const described = ['"title":5', '"description":5', '"icons":"x"', '"icons":[{}]', '"icons":[{"src":"x","sizes":"16x16"}]', '"_meta":5', '"_meta":[]']
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
          assert.match(result.warnings[0] ?? '', new RegExp(`^${kind}: "bad" is left out: "${/\w+/.exec(member)?.[0] ?? ''}`))
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
      assert.equal(await listed('resourceTemplates', `{"uriTemplate":"r:{a}","name":null${pad}}`), `{"uriTemplate":"r:{a}","name":"r:{a}"${pad}}`)
    }
  })

  await t.test('names like those of Object.prototype are names', async () => {
    const odd = ['__proto__', 'constructor', 'toString', 'ü\ud83d\ude00']
    const result = await read('tools', () => `{"tools":[${odd.map((name) => tool(name)).join(',')}]}`)
    assert.deepEqual(names(result), odd)
  })

  await t.test('a long description is cut, all else of the item stays', async () => {
    const long = 'd'.repeat(limits.description + 1)
    const { items: [item] } = await read('tools', () => `{"tools":[${tool('a', `,"description":"${long}","n":1e400`)}]}`)
    assert.equal(item?.text, tool('a', `,"description":"${'d'.repeat(limits.description)}","n":1e400`))
    const { items: [whole] } = await read('tools', () => `{"tools":[${tool('a', `,"description":"${'d'.repeat(limits.description)}"`)}]}`)
    assert.equal(whole?.text, tool('a', `,"description":"${'d'.repeat(limits.description)}"`))
  })

  await t.test('it is not cut through a character', async () => {
    const {
      items: [item]
    } = await read('tools', () => `{"tools":[${tool('a', `,"description":"${'d'.repeat(limits.description - 1)}😀 and more"`)}]}`)
    const { description } = JSON.parse(item?.text ?? '') as { description: string }
    assert.doesNotMatch(description, /[\ud800-\udbff]$/)
  })

  await t.test('more items than anyone needs are left out, with a warning', async () => {
    const result = await read(
      'prompts',
      (_cursor, at) =>
        `{"prompts":[${Array.from({ length: 20_000 }, (_, index) => `{"name":"${at}-${index}"}`).join(',')}],"nextCursor":"${at}"}`
    )
    assert.equal(result.items.length, limits.listItems)
    assert.match(result.warnings.at(-1) ?? '', /only the first/)
  })

  await t.test('a name with characters that are not seen, or that turn others round, is left out', async () => {
    for (const odd of ['line\nbreak', '\u{202e}txet', 'a\u{2066}b', 'a\u{200f}', 'a\u{e0041}\u{e007f}']) {
      const result = await read('tools', () => `{"tools":[${tool(odd)},${tool('plain')}]}`)
      assert.deepEqual(names(result), ['plain'], JSON.stringify(odd))
      assert.match(result.warnings.join(), /^tools: "[\w\u{fffd}]+" has control characters in its name and is left out$/u)
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
  resourceTemplates: []
})
const noExtras: Catalogue['extras'] = { tools: '{}', prompts: '{}', resources: '{}', resourceTemplates: '{}' }
const catalogue = (more: Partial<Catalogue> = {}): Catalogue => ({
  id: nextCatalogueId(),
  capabilityClass: plainClass,
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
    assert.equal(sameCatalogue(catalogue(), catalogue()), true, 'the id is ours alone')
    const differences: Array<Partial<Catalogue>> = [
      { serverInfo: '{"name":"x","version":"2"}' }, { instructions: 'do' }, { capabilities: { tools: { listChanged: true } } },
      { lists: lists(['a']) }, { lists: lists(['b', 'a']) }, { lists: lists(['a', 'b', 'c']) },
      { lists: { ...lists(['a', 'b']), tools: [{ key: 'a', text: '{"name":"a"}' }, { key: 'b', text: '{"name":"b" }' }] } },
      ...kinds.map((kind) => ({ extras: { ...noExtras, [kind]: '{"_meta":{}}' } })),
      ...kinds.filter((kind) => kind !== 'tools').map((kind) => ({ lists: { ...lists(['a', 'b']), [kind]: [{ key: 'k', text: '{}' }] } }))
    ]
    for (const difference of differences) {
      assert.equal(sameCatalogue(catalogue(), catalogue(difference)), false, JSON.stringify(difference))
      assert.equal(sameCatalogue(catalogue(difference), catalogue()), false)
    }
  })

  await t.test('the text on disk gives it back, under an id of its own; what is none gives nothing', async () => {
    const before = catalogue({
      instructions: 'say "hi"',
      lists: { ...lists(), resources: [{ key: 'a', text: '{"uri":"a","n":12345678901234567890}' }] }
    })
    const after = toCatalogue(JSON.parse(JSON.stringify(before)))
    assert.ok(after)
    assert.equal(sameCatalogue(before, after), true)
    assert.notEqual(after.id, before.id)
    assert.deepEqual({ ...after, id: 0 }, { ...before, id: 0 })
    const { id: _, ...whole } = JSON.parse(JSON.stringify(before)) as Record<string, unknown>
    for (const bad of [
      null,
      [],
      'x',
      {},
      ...Object.keys(whole)
        .filter((key) => !['version', 'instructions'].includes(key))
        .map((key) => ({ ...whole, [key]: undefined })),
      { ...whole, lists: { tools: [] } },
      { ...whole, extras: { ...noExtras, tools: 1 } }
    ]) {
      assert.equal(toCatalogue(bad), undefined, JSON.stringify(bad))
    }
    for (const item of [null, 'x', {}, { key: 1, text: '{}' }, { key: 'a' }, { key: 'a', text: 'no object' }]) {
      assert.equal(
        toCatalogue({ ...whole, lists: { ...(whole.lists as object), tools: [item] } }),
        undefined,
        `an item that is damaged: ${JSON.stringify(item)}`
      )
    }
  })
})

test('catalogues: by class, and for single clients where that differs', async (t) => {
  const sampling = '{"sampling":{}}'
  /** Text as a cache file gives it; undefined: there is no file. */
  async function * cached (...pieces: Array<string | undefined>): AsyncGenerator<string> {
    for (const piece of pieces) if (piece !== undefined) yield piece
  }
  interface Made { catalogues: Catalogues, listed: () => number, kept: string[], warnings: string[] }
  const make = (target = 'one', shares?: Partial<CataloguesDeps>): Made => {
    let listed = 0
    const kept: string[] = []
    const warnings: string[] = []
    return {
      catalogues: new Catalogues({
        room: () => Infinity,
        hold: () => {},
        owned: () => [],
        wait: () => 0,
        spend: () => {},
        owner: 'ann',
        ...shares,
        target,
        changed: () => {
          listed++
        },
        keep: (text) => {
          kept.push([...text].join(''))
        },
        warn: (sentence) => {
          warnings.push(sentence)
        }
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
    assert.equal(catalogues.of(undefined, plainClass), undefined)
    await catalogues.read(fake({}, ['a']).slot, true)
    assert.equal(catalogues.has(plainClass), true)
    assert.equal(catalogues.has(sampling), false)
    assert.deepEqual(tools(catalogues.of(undefined, sampling)), ['a'])
    await catalogues.read(fake({ capabilityClass: sampling }, ['a', 'ask']).slot, false)
    assert.deepEqual(tools(catalogues.of(undefined, sampling)), ['a', 'ask'])
    assert.deepEqual(tools(catalogues.of(undefined, plainClass)), ['a'])
  })

  await t.test('it is published and kept when it is news, and only then', async () => {
    const { catalogues, listed, kept } = make()
    const base = fake({}, ['a'])
    await catalogues.read(base.slot, true)
    assert.deepEqual([listed(), kept.length, catalogues.known], [1, 1, true])
    const first = catalogues.of(undefined, plainClass)
    await catalogues.read(base.slot, true)
    assert.deepEqual([listed(), kept.length], [1, 1])
    assert.equal(catalogues.of(undefined, plainClass), first, 'the same catalogue stays the same object')
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
      room: () => 6 * size,
      hold: (now) => { held = now },
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
    catalogues.recount()
    assert.equal(held, 3 * size)
    catalogues.close()
    catalogues.recount()
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
    assert.deepEqual(tools(catalogues.of(undefined, plainClass)), ['a'])
  })

  await t.test('nothing is read, for the first time neither, while its owner has used up what may be read', async () => {
    const { catalogues, listed } = make('one', { wait: (isFirst) => isFirst ? 60_000 : 0 })
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
    const first = catalogues.of(undefined, plainClass)
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
    mock.timers.tick(limits.freshLists.least - 1)
    assert.equal(catalogues.catchUp(base.slot, true), undefined)
    mock.timers.tick(1)
    ttlMs = 60_000
    base.now(['b'])
    await catalogues.catchUp(base.slot, true)?.done
    assert.deepEqual([base.asked(), listed(), tools(catalogues.of(undefined, plainClass))], [3, 2, ['b']])
  })

  await t.test('what a server lists to one user\'s login alone is shown to nobody else', async () => {
    for (const [cacheScope, seen] of [['private', undefined], ['public', ['a']]] as const) {
      const { catalogues, kept } = make()
      const [ann, bob] = ['ann', 'bob'].map((user) => fake({ key: user, affinity: 'user' }, ['a'], user))
      assert.ok(ann && bob)
      ann.caching = () => ({ ttlMs: 1, cacheScope })
      await catalogues.read(ann.slot, false)
      assert.deepEqual(tools(catalogues.of(ann.slot, plainClass)), ['a'])
      assert.deepEqual(tools(catalogues.of(bob.slot, plainClass)), seen, cacheScope)
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
      await settle()
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
        await settle()
      }
      return base.asked() - before
    }
    assert.ok(await run(20_000) <= 12)
    const late = await run(60_000)
    assert.ok(late >= 5 && late <= 7, `${late} times in a minute`)
    base.now(['b'])
    let waited = 0
    while (tools(catalogues.of(undefined, plainClass))?.[0] !== 'b') { await run(10); waited += 10 }
    assert.ok(waited <= 10_100, `${waited} ms`)
    base.now(['c'])
    await run(50)
    assert.deepEqual(tools(catalogues.of(undefined, plainClass)), ['c'], 'real news are quick again')
  })

  await t.test('a burst of news is one reading, after what was being read', async (t) => {
    mockTimers(t, 'setTimeout')
    const { catalogues, warnings } = make()
    const base = fake({}, ['a'])
    let release = (): void => {}
    const reading = new Promise<void>((resolve) => { release = resolve })
    base.slot.link = linkOf(plainClass, async () => { await reading; return ['old'] })
    const first = catalogues.read(base.slot, true)
    base.slot.link = fake({}, ['new']).slot.link
    for (let news = 0; news < 10; news++) { catalogues.refresh(base.slot, true); mock.timers.tick(5) }
    await settle()
    assert.equal(catalogues.of(undefined, plainClass), undefined)
    mock.timers.tick(1_000)
    await settle()
    release()
    await first
    await settle()
    assert.deepEqual(tools(catalogues.of(undefined, plainClass)), ['new'], 'what was read before the news is not the end')
    base.slot.link = linkOf(plainClass, () => { throw new UpstreamError('broken', 'gone') })
    catalogues.refresh(base.slot, true)
    mock.timers.tick(1_000)
    await settle()
    assert.match(warnings.join(), /gone/)
    assert.deepEqual(tools(catalogues.of(undefined, plainClass)), ['new'], 'the last known one stays')
    catalogues.refresh(base.slot, true)
    catalogues.close()
    mock.timers.tick(1_000)
    await settle()
    assert.equal(warnings.length, 1, 'nothing is read after the end')
  })

  await t.test('since when items are listed is kept with them', async (t) => {
    type Since = { isInitial: boolean, reading: number } | undefined
    const since = (of: Catalogues, ...keys: string[]): Since[] => keys.map((key) => of.claims.first('tools', key))
    const restored = async (kept: string | undefined, target?: string, more?: Partial<CataloguesDeps>): Promise<Made> => {
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

    await t.test('a text without it, as earlier versions wrote it: all was listed at first, before anything else', async () => {
      const earlier = `{"target":"one","catalogues":[${JSON.stringify(catalogue())}]}`
      const old = await restored(earlier)
      assert.deepEqual(tools(old.catalogues.of(undefined, plainClass)), ['a', 'b'])
      assert.deepEqual(since(old.catalogues, 'a', 'late'), [{ reading: 0, isInitial: true }, undefined])
      base.now(['a', 'b', 'late'])
      await old.catalogues.read(base.slot, true)
      assert.deepEqual(since((await restored(old.kept.at(-1))).catalogues, 'a', 'late').map((each) => each?.isInitial), [true, false])
      assert.equal((await restored('{"target":"one","catalogues":[]}')).catalogues.claims.isKnown, false)
    })

    await t.test('what is damaged counts as if it were not there', async () => {
      for (const [claims, expected] of [
        ['5', [0, 0]],
        ['{"initial":"x","items":{}}', [0, 0]],
        ['{"initial":1e99,"items":{}}', [0, 0]],
        ['{"initial":7,"items":5}', [0, 0]],
        ['{"initial":7,"items":{"tools":5}}', [7, 7]],
        ['{"initial":7,"items":{"tools":[1,null,["a"],["a",-1],["a","9"],[2,2],["b",9]]}}', [7, 9]]
      ] as const) {
        const text = `{"owner":"ann","target":"one","claims":${claims},"catalogues":[${JSON.stringify(catalogue())}]}`
        assert.deepEqual(since((await restored(text)).catalogues, 'a', 'b').map((each) => each?.reading), expected, claims)
      }
    })

    await t.test('of another target: what is listed there as well stays, the rest is late or free', async () => {
      for (const at of ['restart', 'change'] as const) {
        const other = at === 'restart' ? await restored(kept, 'another') : make('another')
        // The claims are handed over, and belong to `other` from now on.
        if (at === 'change') other.catalogues.takeOver((await restored(kept)).catalogues)
        assert.deepEqual([other.catalogues.known, other.catalogues.claims.isKnown], [false, true])
        assert.deepEqual(since(other.catalogues, 'a', 'gone', 'late'), since(before.catalogues, 'a', 'gone', 'late'), 'until it is read')
        other.catalogues.keep()
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
      await new Promise((resolve) => { setTimeout(resolve, 20) })
      assert.equal(catalogues.known, false)
      isOnDisk(kept)
      await Promise.all([restored, reading])
      assert.deepEqual(since(catalogues, 'a', 'gone', 'late'), [known[0], known[1], known[3]])
      assert.equal(since(catalogues, 'new')[0]?.isInitial, false)
      const unreadable = make()
      await unreadable.catalogues.restoreFrom(async function * () { throw new Error('no disk') })
      assert.match(unreadable.warnings.join(), /cannot be read/)
      await unreadable.catalogues.read(base.slot, true)
      assert.equal(unreadable.catalogues.known, true)
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
      assert.deepEqual([...catalogues.claims.keys('tools')], ['a', ...long.slice(-Math.floor(limits.formerItemsSize / 1_000))])
    })

    await t.test('what is not listed any more has a bound on disk, also where single clients were listed it', async () => {
      const own = fake({ key: 'session 1', affinity: 'session' }, [])
      const many = make('one', { owned: () => own.slot.catalogue ? [own.slot.catalogue] : [] })
      await many.catalogues.read(fake({}, ['a']).slot, true)
      own.now(Array.from({ length: limits.formerItems + 10 }, (_, n) => n === 5 ? 'x'.repeat(limits.formerItemKey + 1) : `own-${n}`))
      await many.catalogues.read(own.slot, false)
      const { claims } = (await restored(many.kept.at(-1))).catalogues
      const left = [...claims.keys('tools')]
      assert.deepEqual([left.length, left.includes('own-9'), left.includes('own-10')], [limits.formerItems + 1, false, true])
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
    assert.equal(same.catalogues.known, true)
    assert.deepEqual([tools(same.catalogues.of(undefined, plainClass)), tools(same.catalogues.of(undefined, sampling))], [['a'], ['ask']])
    const other = make('another')
    await other.catalogues.restoreFrom(() => cached(kept))
    assert.deepEqual([other.catalogues.known, other.catalogues.of(undefined, plainClass)], [false, undefined])
    for (const bad of [
      undefined,
      '',
      '{',
      '{"owner":"ann",',
      '{"owner":"ann","target":"one"}',
      '{"owner":"ann","target":"one","claims":{},"catalogues":[1,null,{}]}',
      'null',
      '[]',
      '{"target":"one"}',
      '{"target":"one","catalogues":[1,null,{}]}',
      '{"target":"one","catalogues":5}'
    ]) {
      const odd = make()
      await odd.catalogues.restoreFrom(() => cached(bad))
      assert.equal(odd.catalogues.of(undefined, plainClass), undefined, bad)
    }
  })

  await t.test('a large one is written in pieces and read in steps, and not read again where something newer is known', async () => {
    const items = Array.from({ length: 200 }, (_, n) => `t${n}`).map((name) => (
      { key: name, text: JSON.stringify({ name, text: 'x\u2028'.repeat(5_000) }) }
    ))
    const large = catalogue({ lists: { ...lists(), tools: items } })
    const pieces = [...cacheText('one', 'ann', new Claims(), [large, catalogue({ capabilityClass: sampling })])]
    assert.ok(Math.max(...pieces.map(({ length }) => length)) < 100_000, 'one piece is much larger than the others')
    const { catalogues } = make()
    let turns = 0
    const timer = setInterval(() => { turns++ }, 0)
    const text = pieces.join('')
    // Pieces of a file end anywhere.
    await catalogues.restoreFrom(() => cached(...text.match(/[^]{1,65535}/g) ?? []))
    clearInterval(timer)
    assert.deepEqual(tools(catalogues.of(undefined, plainClass)), items.map(({ key }) => key))
    assert.deepEqual(tools(catalogues.of(undefined, sampling)), ['a', 'b'])
    assert.ok(turns > 0, 'nothing else ran meanwhile')
    await catalogues.restoreFrom(() => { throw new Error('it was read again') })
    const lines = text.split('\n')
    const withThird = (line: string): string => lines.with(3, line).join('\n')
    for (const damaged of [lines.slice(0, -2).join('\n'), text.slice(0, -3), withThird('{"tools":'), withThird('5')]) {
      const { catalogues } = make()
      await catalogues.restoreFrom(() => cached(damaged))
      assert.equal(catalogues.known, false)
    }
    const earlier = make()
    const oneLine = JSON.stringify({ owner: 'ann', target: 'one', claims: { items: {} }, catalogues: [large] })
    await earlier.catalogues.restoreFrom(() => cached(oneLine))
    const names = items.map(({ key }) => key)
    assert.deepEqual(tools(earlier.catalogues.of(undefined, plainClass)), names, 'in one line, as versions before wrote it')
  })

  await t.test('a slot without a link reads nothing', async () => {
    const { catalogues, listed } = make()
    await catalogues.read(slotOf(), true)
    assert.deepEqual([listed(), catalogues.known], [0, false])
  })
})

test('transportKinds: which transports are tried', async () => {
  const table: Array<[Parameters<typeof transportKinds>[0], string[], boolean]> = [
    [{ command: 'x' }, ['stdio'], false],
    [{ url: 'http://x' }, ['streamable-http', 'sse'], true],
    [{ type: 'stdio', command: 'x' }, ['stdio'], false],
    [{ type: 'sse', url: 'http://x' }, ['sse'], true],
    [{ type: 'streamable-http', url: 'http://x' }, ['streamable-http'], true],
    [{ type: 'sse', url: 'http://x', command: 'x' }, ['sse'], true],
    [{ command: 'x', url: 'http://x' }, ['stdio'], false]
  ]
  for (const [config, expected, remote] of table) {
    assert.deepEqual(transportKinds(config), expected, JSON.stringify(config))
    assert.equal(isRemote(config), remote)
  }
  assert.deepEqual(Object.values(listKinds).map(({ capability }) => capability), ['tools', 'prompts', 'resources', 'resources'])
})

// ── real little children ──

const linux = process.platform === 'linux' ? false : 'needs /proc'

/** The processes, zombies left out, for which this holds. */
function processes (holds: (pid: number, stat: string[]) => boolean): number[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      const [state = '', ...rest] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
      return state !== 'Z' && holds(pid, rest)
    } catch { return false }
  })
}
const inGroup = (pgid: number): number[] => processes((_pid, [, group]) => Number(group) === pgid)
const marked = (mark: string): number[] =>
  processes((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark)
    } catch {
      return false
    }
  })

/** A command that no other process has. */
const uniqueSleep = (): string => `sleep 304.${randomInt(1e9)}`

/** The processes that run a command of two words. */
const running = (command: string): number[] =>
  processes((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1') === `${command.replace(' ', '\0')}\0`
    } catch {
      return false
    }
  })

test('killGroup: a process group ends as a whole', { skip: linux }, async (t) => {
  const start = async (script: string): Promise<{ pid: number, gone: Promise<void>, child: ChildProcess }> => {
    const child = spawn('sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
    const gone = new Promise<void>((resolve) => { child.once('exit', () => { resolve() }) })
    await once(child.stdout, 'data')
    const pid = child.pid ?? 0
    t.after(() => { try { process.kill(-pid, 'SIGKILL') } catch {} })
    return { pid, gone, child }
  }

  await t.test('those who listen end at once', async () => {
    const { pid, gone, child } = await start('sleep 61 & sleep 61 & echo ready; wait')
    assert.equal(inGroup(pid).length, 3)
    const done = killGroup(pid, gone, 5_000)
    await until(() => inGroup(pid).length === 0, 'the grace is waited out')
    await done
    assert.equal(child.signalCode, 'SIGTERM', 'nobody had to be killed')
  })

  await t.test('those who do not, are killed after the grace', async () => {
    const { pid, gone } = await start("trap '' TERM; sleep 61 & sleep 61 & echo ready; wait; wait; sleep 61")
    const begun = Date.now()
    await killGroup(pid, gone, 400)
    await until(() => inGroup(pid).length === 0, 'somebody is left')
    assert.ok(Date.now() - begun >= 390)
  })

  await t.test('a child that outlives its leader is not forgotten', async () => {
    const { pid, gone } = await start("(trap '' TERM; echo ready; sleep 61; sleep 61) & sleep 61")
    const begun = Date.now()
    await killGroup(pid, gone, 400)
    assert.ok(Date.now() - begun >= 390, 'its grace is not waited for')
    await until(() => inGroup(pid).length === 0, 'somebody is left')
  })

  await t.test('a group of which only a zombie is left', async (t) => {
    // A child leaves the group, and never reads the exit code of its own child, which stays there.
    const outside = uniqueSleep()
    const { pid, gone, child } = await start(`sh -c 'sleep 61 & exec setsid ${outside}' & echo ready; wait`)
    t.after(() => { for (const each of running(outside)) process.kill(each, 'SIGKILL') })
    await until(() => running(outside).length === 1, 'nobody has left the group')
    const begun = Date.now()
    await killGroup(pid, gone, 5_000)
    assert.ok(Date.now() - begun < 3_000, 'the grace is waited out')
    assert.equal(child.signalCode, 'SIGTERM')
    process.kill(-pid, 0)
  })

  await t.test('a group that is gone already', async () => {
    const { pid, gone } = await start('echo ready')
    await gone
    await killGroup(pid, gone, 5_000)
  })
})

interface Child {
  transport: StdioTransport
  heard: string[]
  lines: string[]
  closed: () => string | undefined
  send: (text: string, id?: number) => void
}

async function startChild (t: Test, command: string, args: string[], more: Partial<StdioOptions> = {}): Promise<Child> {
  const heard: string[] = []
  const lines: string[] = []
  let closed: string | undefined
  const transport = new StdioTransport({
    command,
    args,
    env: { PATH: process.env.PATH ?? '' },
    onLine: (line) => {
      lines.push(line.text())
    },
    grace: 500,
    ...more
  })
  t.after(async () => { await transport.close() })
  await transport.start({
    message: (message) => {
      heard.push(
        message.kind === 'response'
          ? `response ${message.id} ${message.resultText ?? message.errorText}`
          : `${message.kind} ${message.method} ${message.paramsText}`
      )
      return true
    },
    failed: (id, error) => {
      heard.push(`failed ${id} ${error.fault}: ${error.message}${error.detail}`)
    },
    paused: () => {},
    closed: (error) => {
      assert.equal(closed, undefined, 'closed is told twice')
      closed = `${error.message}${error.detail}`
      heard.push('closed')
    }
  })
  return { transport, heard, lines, closed: () => closed, send: (text, id) => { transport.send(text, { id }) } }
}
const sh = async (t: Test, script: string, more?: Partial<StdioOptions>): Promise<Child> =>
  await startChild(t, 'sh', ['-c', script], more)
const nodeScript = async (t: Test, script: string, more?: Partial<StdioOptions>): Promise<Child> =>
  await startChild(t, process.execPath, ['-e', script], more)

test('a request to a process that has just ended fails with its last words', async (t) => {
  // Whoever inherits its stderr holds it open: its end is noticed before its last words are read.
  const script = `
    require('node:child_process').spawn('sleep', ['3'], { stdio: ['ignore', 'ignore', 'inherit'], detached: true }).unref()
    console.error('dying of thirst')
    process.exit(3)`
  const child = await startChild(t, process.execPath, ['-e', script])
  await until(() => { try { return !process.kill(child.transport.pid ?? 0, 0) } catch { return true } })
  await new Promise((resolve) => setTimeout(resolve, 50))
  child.send('{"jsonrpc":"2.0","id":1,"method":"initialize"}', 1)
  const failed = (): string | undefined => child.heard.find((each) => each.startsWith('failed'))
  await until(() => failed() !== undefined)
  assert.equal(failed(), 'failed 1 unreachable: the process ended with exit code 3; its last lines:\ndying of thirst')
})

test('stdio: a child and its streams', async (t) => {
  await t.test('messages come as they were printed, in pieces or together; CRLF and empty lines are no matter', async (t) => {
    const child = await nodeScript(
      t,
      `
      const out = Buffer.from('{"jsonrpc":"2.0","method":"a","params":{"text":"é😀"}}\\r\\n\\n\\r\\n' +
        '{"jsonrpc":"2.0","id":1,"result":{"n":12345678901234567890}}\\n{"jsonrpc":"2.0","id":2,"method":"ask"}\\n')
      const step = (at) => { if (at < out.length) process.stdout.write(out.subarray(at, at + 7), () => setTimeout(step, 1, at + 7)) }
      step(0); setTimeout(() => {}, 5000)`
    )
    await until(() => child.heard.length === 3)
    assert.deepEqual(child.heard, ['notification a {"text":"é😀"}', 'response 1 {"n":12345678901234567890}', 'request ask {}'])
    assert.deepEqual(child.lines, [])
  })

  await t.test('what is sent in one turn, or in many, arrives in order, each message on one line', async (t) => {
    const child = await startChild(t, 'cat', [])
    const sent: string[] = []
    for (let n = 0; n < 500; n++) {
      child.send(`{"jsonrpc":"2.0","method":"m",\n"params":{"n":${n},\r\n"é":"${'x'.repeat(n % 7 === 0 ? 5_000 : 3)}"}}`)
      sent.push(`notification m {"n":${n},  "é":"${'x'.repeat(n % 7 === 0 ? 5_000 : 3)}"}`)
      if (n % 50 === 49) await new Promise((resolve) => { setImmediate(resolve) })
    }
    await until(() => child.heard.length === 500)
    assert.deepEqual(child.heard, sent)
  })

  await t.test('garbage is no end: it is noted, and messages around it arrive', async (t) => {
    const child = await nodeScript(t, `
      process.stdout.write('Loading... done\\n[]\\nnull\\n{"this is":"no JSON-RPC"}\\n{"broken": \\n')
      process.stdout.write(Buffer.from([0xff, 0xfe, 0x0a]))
      process.stdout.write('{"jsonrpc":"2.0","method":"still here"}\\n')
      setTimeout(() => {}, 5000)`)
    await until(() => child.heard.length > 0)
    assert.deepEqual(child.heard, ['notification still here {}'])
    assert.deepEqual(child.lines.slice(0, 5), ['Loading... done', '[]', 'null', '{"this is":"no JSON-RPC"}', '{"broken": '])
    assert.equal(child.lines.length, 6)
  })

  await t.test('a broken answer fails its request at once', async (t) => {
    const child = await sh(
      t,
      'printf \'{"jsonrpc":"2.0","id":7,"result":{"a":}}\\n{"jsonrpc":"2.0","result":{]},"id":8}\\n\'; exec sleep 60'
    )
    await until(() => child.heard.length === 2)
    assert.match(child.heard[0] ?? '', /^failed 7 broken: /)
    assert.match(child.heard[1] ?? '', /^failed 8 broken: /)
  })

  await t.test('the exit code and the last lines of stderr stand in the error', async (t) => {
    const child = await sh(
      t,
      'i=0; while [ $i -lt 30 ]; do echo "line $i" >&2; i=$((i+1)); done; echo "cannot read the licence file" >&2; exit 3'
    )
    await until(() => child.closed() !== undefined)
    assert.match(child.closed() ?? '', /exit code 3/)
    assert.match(child.closed() ?? '', /exit code 3; its last lines:\nline 21\n[^]*line 29\ncannot read the licence file$/)
    assert.doesNotMatch(child.closed() ?? '', /line 10\b/, 'only the last lines')
    assert.equal(child.lines.length, 31)
  })

  await t.test('so does a last line without its end', async (t) => {
    const child = await sh(t, 'printf "cannot read the licence file" >&2; exit 3')
    await until(() => child.closed() !== undefined)
    assert.match(child.closed() ?? '', /cannot read the licence file/)
  })

  await t.test('an answer that was printed before the end is an answer', async (t) => {
    for (let round = 0; round < 10; round++) {
      const child = await sh(t, 'read line; printf \'{"jsonrpc":"2.0","id":1,"result":{"n":"%050000d"}}\\n\' 0; exit 0')
      child.send('{"jsonrpc":"2.0","id":1,"method":"m"}', 1)
      await until(() => child.closed() !== undefined)
      assert.match(child.heard[0] ?? '', /^response 1 /)
      assert.equal(child.heard.at(-1), 'closed')
    }
  })

  await t.test('a signal is named; requests to what is gone fail at once', async (t) => {
    const child = await sh(t, 'kill -9 $$')
    await until(() => child.closed() !== undefined)
    assert.match(child.closed() ?? '', /SIGKILL/)
    await until(() => { child.heard.length = 0; child.send('{"jsonrpc":"2.0","id":1,"method":"m"}', 1); return child.heard.length > 0 })
    assert.match(child.heard[0] ?? '', /^failed 1 unreachable: /)
  })

  await t.test('a line without an end: a plain error, and the child is ended', { skip: linux }, async (t) => {
    const child = await nodeScript(
      t,
      "const b = 'x'.repeat(65536); const w = () => { while (process.stdout.write(b)); process.stdout.once('drain', w) }; w()"
    )
    const { pid = 0 } = child.transport
    await until(() => child.closed() !== undefined)
    assert.match(child.closed() ?? '', new RegExp(`line of more than ${transportLimits.message} bytes`))
    await until(() => inGroup(pid).length === 0)
    assert.ok(child.lines.every((line) => line.length <= 8 * 1024))
  })

  await t.test('a long line that ends is a message', async (t) => {
    const child = await nodeScript(
      t,
      'process.stdout.write(\'{"jsonrpc":"2.0","id":1,"result":"\' + \'x\'.repeat(15 * 1024 * 1024) + \'"}\\n\'); setTimeout(() => ' +
      '{}, 5000)'
    )
    await until(() => child.heard.length === 1)
    assert.equal(child.heard[0]?.length, 'response 1 ""'.length + 15 * 1024 * 1024)
  })

  await t.test('one that does not stop when told costs neither memory nor files', { skip: linux }, async () => {
    const babbler =
      "process.on('SIGTERM', () => {}); process.stdout.on('error', () => { process.exit() }); const b = 'x'.repeat(65536); const w = " +
      "() => { while (process.stdout.write(b)); process.stdout.once('drain', w) }; w()"
    // In a process of its own: what it costs must not fall on the other tests.
    const script = `
      import { readdirSync } from 'node:fs'
      import { getHeapStatistics } from 'node:v8'
      import { StdioTransport } from ${JSON.stringify(path('protocol/transports/stdio.ts'))}
      let files = 0, memory = 0
      const look = () => {
        memory = Math.max(memory, getHeapStatistics().external_memory)
        try { files = Math.max(files, readdirSync('/proc/self/fd').length) } catch { files = 1e9 }
      }
      const args = ['-e', ${JSON.stringify(babbler)}]
      const transport = new StdioTransport({ command: process.execPath, args, env: {}, onLine: () => {}, grace: 1500 })
      const closed = new Promise((resolve) => {
        transport.start({ message: () => {}, failed: () => {}, paused: () => {}, closed: resolve })
      })
      await closed
      const timer = setInterval(look, 20)
      await new Promise((resolve) => setTimeout(resolve, 2000))
      clearInterval(timer)
      look()
      process.stdout.write(JSON.stringify({ files, mebibytes: memory >> 20 }) + '\\n', () => process.exit())`
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
      cwd: path('.'),
      timeout: 30_000,
      maxBuffer: 1e8
    })
    const { files, mebibytes } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as { files: number, mebibytes: number }
    assert.ok(files < 200, `${files >= 1e9 ? 'all' : files} file descriptors are open`)
    assert.ok(mebibytes < 128, `${mebibytes} MiB are held`)
  })

  await t.test('stderr is drained, however much comes, and cut to lines of a bounded length', async (t) => {
    const child = await nodeScript(
      t,
      'process.stderr.write(\'y\'.repeat(20 * 1024 * 1024) + \'\\nafter\\n\', () => { process.stdout.write(\'{"jsonrpc":"2.0",' +
      '"method":"done"}\\n\') }); setTimeout(() => {}, 5000)'
    )
    await until(() => child.heard.length > 0)
    await until(() => child.lines.includes('after'))
    assert.equal(child.lines.length, 2)
    assert.ok((child.lines[0]?.length ?? 0) <= 8 * 1024)
  })

  await t.test('closing ends the child and all that it started, also what left its group', { skip: linux }, async (t) => {
    const mark = randomUUID()
    const child = await sh(t, 'setsid sleep 62 & sleep 62 & echo \'{"jsonrpc":"2.0","method":"ready"}\'; wait', {
      env: { PATH: process.env.PATH ?? '', TEST_MARK: mark }
    })
    await until(() => child.heard.length > 0 && marked(mark).length >= 3)
    await child.transport.close()
    await until(() => marked(mark).length === 0, 'somebody is left')
    assert.equal(child.closed(), undefined, 'an end of our own is not told')
  })

  await t.test('also what left its group and emptied its environment', { skip: linux }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'tool-hub-child-'))
    t.after(async () => { await rm(folder, { recursive: true }) })
    const file = join(folder, 'pid')
    const child = await sh(t, `env -i "$(command -v setsid)" sh -c 'echo $$ > ${file}; exec /bin/sleep 62' & echo '{"jsonrpc":"2.0","method":"ready"}'; wait`, {
      env: { PATH: process.env.PATH ?? '' }
    })
    const pid = async (): Promise<number> => Number(await readFile(file, 'utf8'))
    await until(async () => child.heard.length > 0 && await pid() > 0)
    await child.transport.close()
    const left = await pid()
    // A process that has ended has no command line, even if nobody has asked for its end.
    await until(async () => await readFile(`/proc/${left}/cmdline`, 'utf8').catch(() => '') === '', 'it is left')
  })

  await t.test('also what a process outside of its group started, once both have lost their parents', { skip: linux }, async (t) => {
    const name = uniqueSleep()
    const orphan = `setsid sh -c "env -i $(command -v setsid) ${name} & sleep 305; true" >/dev/null 2>&1 </dev/null &`
    const child = await sh(t, `(${orphan}); echo '{"jsonrpc":"2.0","method":"ready"}'; sleep 62`, { env: { PATH: process.env.PATH ?? '' } })
    await until(() => child.heard.length > 0 && running(name).length === 1)
    await child.transport.close()
    assert.equal(running(name).length, 0, 'it is left')
  })

  await t.test('also what a process outside of its group starts while the child has its time to end', { skip: linux }, async (t) => {
    const name = uniqueSleep()
    const late = `setsid sh -c "sleep 0.3; env -i $(command -v setsid) ${name} & sleep 305; true" >/dev/null 2>&1 </dev/null &`
    const child = await sh(t, `trap "" TERM; (${late}); echo '{"jsonrpc":"2.0","method":"ready"}'; while :; do sleep 62; done`, {
      env: { PATH: process.env.PATH ?? '' },
      grace: 1_000
    })
    await until(() => child.heard.length > 0)
    await child.transport.close()
    assert.equal(running(name).length, 0, 'it is left')
  })

  await t.test('also when the child ends by itself', { skip: linux }, async (t) => {
    const name = uniqueSleep()
    const orphan = `setsid sh -c "env -i $(command -v setsid) ${name} & sleep 305; true" >/dev/null 2>&1 </dev/null &`
    const child = await sh(t, `(${orphan}); sleep 0.5; exit 0`, { env: { PATH: process.env.PATH ?? '' } })
    await until(() => running(name).length === 1)
    await until(() => child.closed() !== undefined)
    await until(() => running(name).length === 0, 'it is left')
  })

  await t.test('so does the child\'s own end', { skip: linux }, async (t) => {
    const mark = randomUUID()
    const child = await sh(t, 'setsid sleep 62 & sleep 62 & exit 0', { env: { PATH: process.env.PATH ?? '', TEST_MARK: mark } })
    await until(() => child.closed() !== undefined)
    await until(() => marked(mark).length === 0, 'somebody is left')
  })

  await t.test('a command that cannot be started: a sentence that says why', async (t) => {
    const table: Array<[string, Partial<StdioOptions>, RegExp]> = [
      ['no-such-command-here', {}, /cannot start "no-such-command-here": no such command/],
      ['sh', { cwd: '/no/such/folder' }, /no folder "\/no\/such\/folder"/],
      [path('package.json'), {}, /not executable/]
    ]
    for (const [command, more, message] of table) {
      await assert.rejects(
        startChild(t, command, [], more),
        (error) => error instanceof UpstreamError && error.fault === 'unreachable' && message.test(error.message),
        command
      )
    }
  })

  await t.test('a child gets the environment it is given, and no more of ours', async (t) => {
    process.env.TEST_SECRET_OF_OURS = 'x'
    t.after(() => { delete process.env.TEST_SECRET_OF_OURS })
    const child = await nodeScript(
      t,
      'console.log(JSON.stringify({ jsonrpc: "2.0", method: "env", params: process.env })); setTimeout(() => {}, 5000)',
      { env: { PATH: process.env.PATH ?? '', GIVEN: '1' } }
    )
    await until(() => child.heard.length > 0)
    const { TOOL_HUB_CHILD: ours, ...env } = JSON.parse(child.heard[0]?.slice('notification env '.length) ?? '') as Record<string, string>
    assert.equal(typeof ours, 'string')
    assert.deepEqual(env, { PATH: process.env.PATH, GIVEN: '1' })
  })
})

test('the last words of a process, without the frames of its stack', async () => {
  const frames = Array.from({ length: 12 }, (_, n) => `    at step${n} (/srv/app/index.js:${n}:7)`)
  const cases: Array<readonly [printed: string[], wanted: string[]]> = [
    [
      [
        'reading the config', 'node:internal/modules/cjs/loader:1228', '  throw err;', '  ^', "Error: Cannot find module '/srv/app/x.js'", ...frames,
        '{', "  code: 'MODULE_NOT_FOUND',", '  requireStack: []', '}', 'Node.js v22.11.0'
      ],
      ['reading the config', "Error: Cannot find module '/srv/app/x.js'", '{', "  code: 'MODULE_NOT_FOUND',", '  requireStack: []', '}']
    ],
    [
      ['file:///srv/app/a.mjs:3', 'const port = settings.port', '             ^', "TypeError: Cannot read properties of undefined (reading 'port')"],
      ["TypeError: Cannot read properties of undefined (reading 'port')"]
    ],
    [
      [
        'Traceback (most recent call last):', '  File "/srv/app/main.py", line 3, in <module>', '    import missing', '    ^^^^^^^^^^^^^^',
        "ModuleNotFoundError: No module named 'missing'"
      ],
      ["ModuleNotFoundError: No module named 'missing'"]
    ],
    [
      ['Exception in thread "main" java.lang.IllegalStateException: no licence', '\tat app.Main.main(Main.java:5)', '\t... 12 more'],
      ['Exception in thread "main" java.lang.IllegalStateException: no licence']
    ],
    [['usage: server [--port N]', '  --port N  where to listen', '', 'at least one folder is needed'], ['usage: server [--port N]', '  --port N  where to listen', '', 'at least one folder is needed']],
    [['[eval]:1', "throw new Error('no licence file')", '^', 'Error: no licence file', ...frames], ['Error: no licence file']],
    [frames, []]
  ]
  for (const [printed, wanted] of cases) {
    const words = new LastWords((line) => line)
    for (const line of printed) words.add(line)
    assert.equal(words.detail, wanted.length === 0 ? '' : `; its last lines:\n${wanted.join('\n')}`)
  }
})

test('lines that nobody is shown are not searched for secrets, however many a process prints', async (t) => {
  mockTimers(t, 'Date')
  let searched = 0
  const text = 'x'.repeat(400)
  const line = { length: text.length, text: () => { searched += text.length; return text } }
  const passed: string[] = []
  const dropped: number[] = []
  const onLine = limitLines({ lines: 100, size: 32 * 1024 }, (each) => { passed.push(each) }, (count) => { dropped.push(count) })
  for (let n = 0; n < 100_000; n++) onLine(line)
  assert.ok(searched >= 32 * 1024 && searched <= 32 * 1024 + 400, `${searched} characters`)
  mock.timers.tick(1_000)
  for (let n = 0; n < 200; n++) onLine({ length: 1, text: () => 'y' })
  assert.deepEqual(dropped, [100_000 - 82])
  assert.equal(passed.length, 82 + 100)
  // A line that is too long by itself is shown.
  mock.timers.tick(1_000)
  onLine({ length: 60_000, text: () => 'z' })
  assert.deepEqual([passed.at(-1), dropped.at(-1)], ['z', 100])

  let shown = 0
  const words = new LastWords((each) => { shown++; return each })
  for (let n = 0; n < 100_000; n++) words.add(text)
  assert.equal(shown, 0)
  for (let n = 0; n < 3; n++) words.add('w'.repeat(30_000))
  assert.equal(words.detail, `; its last lines:\n${'w'.repeat(500)}\n${'w'.repeat(500)}`)
})

test('a secret is masked in what a process prints, also where something that controls a terminal stands within it', async () => {
  const redact = redactor({ env: { API_KEY: 's3cr3tABCDEFGHIJ' } })
  const within = ['\x1b[1m', '\x1b[0m', '\x00', '\x85', '\u202e', '\u2028', '\x1b]0;title\x07']
  for (const each of ['', ...within]) assert.equal(shownLine(`key\t${each}s3cr3tAB${each}CDEFGHIJ !`, redact), 'key\t••••GHIJ !')
  assert.equal(shownLine('a \x1b[31mred\x1b[0m word', redact), 'a red word')
  // A secret that holds such characters itself.
  assert.equal(shownLine('key s3cr3t\x1b[0mABCDEFGH', redactor({ env: { API_KEY: 's3cr3t\x1b[0mABCDEFGH' } })), 'key ••••EFGH')
})

test('what the log tells of a server: its failure once, a summary now and then, and its recovery', async (t) => {
  mockTimers(t, 'Date', 'setTimeout')
  mock.timers.setTime(Date.parse('2026-01-01T00:00:00Z'))
  const { summary, healthy } = limits.outages
  const lines: string[] = []
  const log = new StatusLog((level, sentence) => { lines.push(`${level} ${sentence}`) })
  const told = (): string[] => lines.splice(0)
  log.status('connected', null, '2026-07-28')
  assert.deepEqual(told(), ['info connected, speaks MCP 2026-07-28'])
  const fail = (times: number, pause: number): void => {
    for (let n = 0; n < times; n++) {
      log.status('connecting', 'as before')
      log.status('disconnected', 'refused\nbecause')
      mock.timers.tick(pause)
    }
  }
  fail(20, summary / 20)
  assert.deepEqual(told(), ['warn not connected: refused\nbecause'])
  fail(20, summary / 20)
  assert.deepEqual(told(), ['warn still not connected after 21 failures since 2026-01-01T00:00:00Z; the last one: refused\nbecause'])
  log.status('connected', null)
  assert.deepEqual(told(), ['info connected again since 2026-01-01T00:20:00Z, after 40 failures since 2026-01-01T00:00:00Z'])

  // It connects and breaks, again and again: that is told once, and once it has stayed.
  mock.timers.tick(5_000)
  log.status('disconnected', 'it closed its output')
  assert.deepEqual(told(), ['warn not connected again, 5 s after it was connected: it closed its output'])
  for (let n = 0; n < 8; n++) {
    log.status('connected', null)
    mock.timers.tick(healthy / 2)
    log.status('disconnected', 'it closed its output')
  }
  assert.deepEqual(told(), [])
  log.status('connected', null)
  mock.timers.tick(healthy)
  assert.deepEqual(told().map((line) => line.slice(0, 20)), ['info connected again'])
  log.status('disconnected', 'gone')
  assert.deepEqual(told(), ['warn not connected: gone'], 'a new failure')

  // A login that is wanted is another matter, and callers who try again and again do not fill the log.
  for (let n = 0; n < 100; n++) log.status('oauth_required', 'open the address')
  assert.deepEqual(told(), ['warn waiting for a login: open the address'])
  for (let n = 0; n < 100; n++) log.remark('warn', 'tools: "x" is listed twice')
  log.remark('info', 'x')
  log.remark('info', 'x')
  assert.deepEqual(told(), ['warn tools: "x" is listed twice', 'info x', 'info x'])
  mock.timers.tick(summary)
  log.remark('warn', 'tools: "x" is listed twice')
  assert.equal(told().length, 1)
  log.end()
})

test('what the servers of one user list has a bound together', async () => {
  const shares = new CatalogueShares()
  assert.equal(shares.room('a', undefined), Infinity, 'an admin has none')
  shares.hold('a', 'ann', limits.cataloguesPerUser - 300)
  assert.equal(shares.room('a', 'ann'), limits.cataloguesPerUser, 'its own size does not count against a server')
  assert.equal(shares.room('b', 'ann'), 300)
  assert.equal(shares.room('b', 'bob'), limits.cataloguesPerUser)
  const item = (key: string): Item => ({ key, text: 'x'.repeat(100) })
  const empty = { prompts: [], resources: [], resourceTemplates: [] }
  const catalogue = { lists: { tools: ['a', 'b', 'c', 'd', 'e'].map(item), ...empty }, instructions: undefined } as unknown as Catalogue
  const warnings: string[] = []
  const kept = fitting(catalogue, shares.room('b', 'ann'), (sentence) => { warnings.push(sentence) })
  assert.deepEqual([kept.lists.tools.map(({ key }) => key), warnings.length], [['a', 'b', 'c'], 1])
  assert.equal(fitting(catalogue, Infinity, assert.fail), catalogue)
  const wide = { lists: { tools: [{ key: 'a', text: 'ж'.repeat(100) }, item('b')], ...empty }, instructions: 'ж'.repeat(50) }
  const narrow = fitting(wide as unknown as Catalogue, 300, () => {})
  assert.deepEqual([sizeOf(wide as unknown as Catalogue), narrow.lists.tools.length], [400, 1], 'in bytes of memory')
  shares.hold('a', 'ann', 0)
  assert.equal(shares.room('b', 'ann'), limits.cataloguesPerUser)
})

test('how often one owner causes processes to be started has a bound', async (t) => {
  mockTimers(t, 'Date')
  const children = new Children()
  const options = { isProcess: true, children, idleTimeout: 60_000 }
  const [one, other] = ['one', 'other'].map((server) => new Pool({ ...options, server, base: baseKey }))
  const take = (pool: Pool | undefined, n: number, owner: string): Slot | undefined =>
    pool?.take({ key: `session ${n}`, affinity: 'session', capabilityClass: '{}' }, new PlainClient(`${owner} ${n}`, owner, owner, true, owner))
  const { burst, interval } = limits.childStarts
  for (let n = 0; n < burst; n++) take(n % 2 === 0 ? one : other, n, 'ann')
  const isFaster = { reason: 'share', message: /You cause processes of server "one" faster than one caller may/ }
  assert.throws(() => take(one, 100, 'ann'), isFaster)
  assert.ok(one && one.all.length === 1 + limits.childrenPerOwner, 'an idle one stays')
  take(one, 101, 'ben')
  mock.timers.tick(interval)
  take(one, 102, 'ann')
  assert.throws(() => take(one, 103, 'ann'), /faster/)
  assert.equal(take(one, 102, 'ann'), one.all.at(-1), 'what is there is used')
})

test('processes that clients cause are started some at a time: others of the same owner wait until these have answered', async (t) => {
  mockTimers(t, 'setTimeout')
  const children = new Children()
  const pool = new Pool({ isProcess: true, children, idleTimeout: 60_000, server: 'one', base: baseKey })
  const slots = (owner: string, count: number): Slot[] => Array.from({ length: count }, (_, n) => pool.take(
    { key: `session ${owner} ${n}`, affinity: 'session', capabilityClass: '{}' }, new PlainClient(`${owner} ${n}`, owner, owner, true, owner)
  ))
  const { perOwner, time } = limits.launches
  const settled = async (): Promise<void> => { await new Promise((resolve) => { setImmediate(resolve) }) }
  const started: string[] = []
  const ends: Array<() => void> = []
  const launch = (slot: Slot): void => {
    void pool.launch(slot).then((end) => { started.push(slot.countedTo); ends.push(end) })
  }
  slots('ann', perOwner + 2).forEach(launch)
  slots('ben', 1).forEach(launch)
  await settled()
  assert.deepEqual(started, [...Array.from({ length: perOwner }, () => 'ann'), 'ben'], 'another owner need not wait')
  ends[0]?.()
  ends[0]?.()
  await settled()
  assert.equal(started.filter((owner) => owner === 'ann').length, perOwner + 1, 'one has answered, and one more is started')
  mock.timers.tick(time)
  await settled()
  assert.equal(started.filter((owner) => owner === 'ann').length, perOwner + 2, 'those that never answer keep nobody waiting')
  launch(pool.base)
  await settled()
  assert.equal(started.at(-1), '', 'the one of the gateway does not wait')

  const remote = new Pool({ isProcess: false, children, idleTimeout: 60_000, server: 'two', base: baseKey })
  const unbounded = Array.from({ length: 10 }, () => remote.take({ key: 'session ann 1', affinity: 'session', capabilityClass: '{}' },
    new PlainClient('ann 1', 'ann', 'ann', true, 'ann')))
  await Promise.all(unbounded.map(async (slot) => await remote.launch(slot)))
})

test('an owner who has all of his connections in use is told that it is his share, all others that it is the bound', async () => {
  const { linksPerServer } = limits
  const pool = new Pool({ isProcess: false, children: new Children(), idleTimeout: 60_000, server: 'one', base: baseKey })
  const take = (owner: string): Slot => {
    const key = `session ${pool.all.length}`
    const slot = pool.take({ key, affinity: 'session', capabilityClass: '{}' }, new PlainClient(key, owner, owner, true, owner))
    // As while a call runs.
    Object.defineProperty(slot, 'idle', { value: false })
    return slot
  }
  while (pool.all.length < linksPerServer * 3 / 4) take('ann')
  assert.throws(() => take('ann'), { reason: 'share', message: /^You use as many connections to server "one"/ })
  for (let n = 0; pool.all.length < linksPerServer; n++) take(`other ${n}`)
  assert.throws(() => take('ben'), { reason: 'limit', message: /all in use/ })
})

test('where an owner has all of his connections in use, the one whose question was left unanswered for longest gives way', async (t) => {
  mockTimers(t, 'Date')
  const pool = new Pool({ isProcess: false, children: new Children(), idleTimeout: 60_000, server: 'one', base: baseKey })
  const ended: string[] = []
  /** With calls that wait for answers to questions, each since a time; undefined: it does not wait. */
  const take = (owner: string, ...asked: Array<number | undefined>): void => {
    const key = `session ${pool.all.length} ${ended.length}`
    const slot = pool.take({ key, affinity: 'session', capabilityClass: '{}' }, new PlainClient(key, owner, owner, true, owner))
    const openCalls = asked.map((askedSince) => ({
      askedSince,
      cancel: ({ message }: Error) => { ended.push(`${owner} ${askedSince}: ${message}`) }
    }))
    slot.link = { busy: true, lastUsed: 0, openCalls, close: async () => {} } as unknown as Link
  }
  const share = limits.linksPerServer * 3 / 4
  const { leftUnanswered } = limits
  take('ann', 5_000)
  take('ann', 1_000, 3_000)
  take('ann', 500, undefined)
  while (pool.all.length < share) take('ann', undefined)
  mock.timers.setTime(leftUnanswered + 2_000)
  assert.throws(() => { take('ann', undefined) }, { reason: 'share' }, 'its last question was put a moment ago')
  mock.timers.setTime(leftUnanswered + 3_000)
  take('ann', undefined)
  assert.equal(ended.length, 2, ended.join())
  assert.match(ended[0] ?? '', /^ann 1000: its question was not answered, and the caller has begun other calls since/)
  mock.timers.setTime(leftUnanswered + 6_000)
  take('ann', undefined)
  assert.match(ended[2] ?? '', /^ann 5000: /)
  assert.throws(() => { take('ann', undefined) }, { reason: 'share' }, 'a connection with a call that works stays')
})

test('how often lists are read again has a bound for each user, and for each server of an admin', async (t) => {
  mockTimers(t, 'Date')
  const { burst, perSecond } = limits.catalogueReads
  const shares = new CatalogueShares()
  shares.spend('a', 'ann', burst)
  assert.equal(shares.wait('a', 'ann'), 0)
  shares.spend('b', 'ann', 3 * perSecond)
  assert.deepEqual([shares.wait('a', 'ann'), shares.wait('a', 'bob'), shares.wait('a', undefined)], [3_000, 0, 0])
  shares.spend('a', undefined, burst + perSecond)
  assert.deepEqual([shares.wait('a', undefined), shares.wait('b', undefined)], [1_000, 0])
  mock.timers.tick(2_000)
  assert.deepEqual([shares.wait('a', 'ann'), shares.wait('a', undefined)], [1_000, 0])
})
