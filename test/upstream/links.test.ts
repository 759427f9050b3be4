// Who shares which connection to a server, whom its questions are for, and what outlives a connection.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test } from 'tap'
import { mockTimers } from '../helpers/clock.ts'
import fc from 'fast-check'
import { NonMcpClient, type Client } from '../../protocol/exchange.ts'
import { emptyCapabilityClass } from '../../protocol/capabilities.ts'
import { allListKinds, listChangedMethod, listKinds } from '../../protocol/lists.ts'
import type { LogLevel } from '../../protocol/listener.ts'
import { findMessageRecipient, type RecipientFacts, type MessageRecipient } from '../../plugins/upstream/inbound/attribution.ts'
import { backoffDelay } from '../../plugins/upstream/links/heartbeat.ts'
import type { Link } from '../../plugins/upstream/links/link.ts'
import {
  gatewayLinkKey, linkKey, listingKey, type Isolation, type LinkKey, type LinkClient
} from '../../plugins/upstream/links/link-key.ts'
import { seed } from '../helpers/json-texts.ts'
import { ShareError } from '../../plugins/base/limits/shares.ts'
import { Slot } from '../../plugins/upstream/links/slot.ts'
import { TaskAndElicitationRegistry } from '../../plugins/upstream/links/task-registry.ts'
import { isRemote, transportTypesToTry } from '../../plugins/upstream/links/transport.ts'
import { isRestrictedConfig } from '../../plugins/settings/index.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { isRestrictedType } from '../../schemas/transports.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'

const clients = {
  none: {},
  sampling: { sampling: {} },
  elicitation: { elicitation: { form: {}, url: {} } },
  roots: { roots: { listChanged: true } },
  extensions: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html'] } } }
} as const
type ClientKind = keyof typeof clients
/**
 * Isolation: who shares one connection with whom, among clients of the same kind.
 * all: everybody · user: the sessions of one user · own: a session of its own.
 */
const sharing = `
  isolation transport contested  none  sampling  elicitation  roots  extensions
  auto      remote    no         all   own       own          own    all
  auto      remote    yes        all   own       own          own    all
  auto      stdio     no         all   all       all          all    all
  auto      stdio     yes        all   own       own          own    all
  shared    remote    no         all   all       all          all    all
  shared    stdio     yes        all   all       all          all    all
  session   remote    no         own   own       own          own    own
  session   stdio     yes        own   own       own          own    own
  user      remote    no         user  user      user         user   user
  user      stdio     yes        user  user      user         user   user
`.trim().split('\n').map((line) => line.trim().split(/ +/))

const kindsOfClient = (sharing[0] ?? []).slice(3) as ClientKind[]
const servers = sharing.slice(1).map(([isolation, transport, contested, ...cells]) => ({
  server: { isolation: isolation as Isolation, remote: transport === 'remote', contested: contested === 'yes' },
  says: `${isolation}, ${transport}${contested === 'yes' ? ', contested' : ''}`,
  cells
}))

test('linkKey: who shares with whom', async (t) => {
  const sharer = (id: string, user: string, kind: ClientKind): LinkClient => ({ id, user, capabilities: structuredClone(clients[kind]) })

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
      assert.deepEqual(linkKey({ isolation, remote: true, contested: false }, sharer('s', 'u', 'none')), gatewayLinkKey)
    }
    assert.equal(gatewayLinkKey.capabilityClass, emptyCapabilityClass)
  })

  // Passed-on headers. Against a client of ann's that sends `x`: what another request finds. same: its link · other: another
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
        linkKey(server, sharer(rest ? `rest ${principal}` : session, user, client === 'asked' ? 'sampling' : 'none'),
          digest === undefined ? undefined : { principal, digest, session: !rest, eachRequest: transport === 'each' })
      const first = key('s1', 'key 1', 'x')
      const others = [
        key('s1', 'key 1', 'x'), key('s2', 'key 1', 'x'), key('s1', 'key 1', 'y'), key('s3', 'key 2', 'x'),
        key('s1', 'key 1', undefined)
      ]
      assert.deepEqual(others.map((other) => other.key === first.key ? 'same' : 'other'), cells)
      assert.notEqual(key('s4', 'key 2', 'x', 'bob').key, first.key, 'another user')
      assert.notEqual(first.affinity, 'shared', 'nobody else hears what comes on it')
      assert.notEqual(first.key, gatewayLinkKey.key)
    })
  }

  await t.test('lists are read by links of nobody, one for each class', async () => {
    assert.equal(listingKey(gatewayLinkKey, emptyCapabilityClass), gatewayLinkKey)
    const listing = listingKey(gatewayLinkKey, '{"sampling":{}}')
    assert.deepEqual(listing, { key: 'listing {"sampling":{}}', affinity: 'shared', capabilityClass: '{"sampling":{}}' })
    for (const isolation of ['auto', 'shared', 'session', 'user'] as const) {
      assert.notEqual(linkKey({ isolation, remote: true, contested: false }, sharer('s', 'u', 'sampling')).key, listing.key)
    }
  })
  await t.test('who asks for connections of its own has them, whatever the server is set to', async () => {
    for (const isolation of ['auto', 'shared', 'session', 'user'] as const) {
      const alone = (id: string): string =>
        linkKey({ isolation, remote: false, contested: false }, { ...sharer(id, 'u', 'none'), hasOwnLinks: true }).key
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
  type Row = [says: string, given: Partial<RecipientFacts<FakeCall, string>>, target: MessageRecipient<FakeCall, string>]
  const of = (each: FakeCall): Row[2] => ({ kind: 'call', call: each })
  const owner = (each: string): Row[2] => ({ kind: 'owner', owner: each })
  const table: Row[] = [
    ['the call on whose stream it came', { origin: ann, open: [ann] }, of(ann)],
    ['that call before all others, several owners or not', { origin: ann, open: [ann, bob, annToo] }, of(ann)],
    ['that call before the session that owns the link', { origin: bob, open: [bob], owner: 'ann' }, of(bob)],
    ['nobody, where that call is over', { origin: 'over', open: [ann], owner: 'ann' }, { kind: 'over' }],
    ['the only call open', { open: [bob] }, of(bob)],
    ['the only call open before the session that owns the link', { open: [ann], owner: 'ann' }, of(ann)],
    ['one of the calls of their only owner: the latest', { open: [ann, annToo] }, of(annToo)],
    ['of these best one that does not wait for an answer: the latest such',
      { open: [ann, call(4, 'ann'), annToo], isAsked: ({ id }) => id === 2 }, of(call(4, 'ann'))],
    ['the latest, where all of these wait', { open: [ann, annToo], isAsked: () => true }, of(annToo)],
    ['nobody, whichever of the calls of several wait',
      { open: [ann, bob], isAsked: ({ id }) => id === 1 }, { kind: 'contested' }],
    ['the session that owns the link, where no call is open', { owner: 'ann' }, owner('ann')],
    ['the session that owns the link, where calls of several are open',
      { open: [ann, bob], owner: 'ann' }, owner('ann')],
    ['the only call open, though a task of its owner is under way', { open: [bob], taskOwners: ['bob'] }, of(bob)],
    ['nobody: a task of another may be what it is about', { open: [bob], taskOwners: ['ann'] }, { kind: 'contested' }],
    ['the session that owns the link, though a task of another is under way',
      { open: [bob], taskOwners: ['ann'], owner: 'bob' }, owner('bob')],
    ['nobody: a task is under way, and none is waiting', { taskOwners: ['ann'] }, { kind: 'idle' }],
    ['nobody: none is waiting', {}, { kind: 'idle' }],
    ['nobody: several are', { open: [ann, bob] }, { kind: 'contested' }]
  ]
  for (const [says, given, target] of table) {
    const all = { origin: undefined, open: [], taskOwners: [], owner: undefined, ownerOf: ({ by }: FakeCall) => by, ...given }
    assert.deepEqual(findMessageRecipient(all), target, says)
  }
  await t.test('it never guesses between two', async () => {
    fc.assert(fc.property(fc.array(fc.constantFrom('ann', 'bob', 'eve'), { minLength: 1, maxLength: 6 }), (owners) => {
      const open = owners.map((by, id) => call(id, by))
      const target = findMessageRecipient({ origin: undefined, open, taskOwners: [], owner: undefined, ownerOf: ({ by }) => by })
      assert.equal(target.kind, new Set(owners).size === 1 ? 'call' : 'contested')
    }), { seed })
  })
})

test('backoff: from 1 s doubling to 60 s, with jitter', async () => {
  for (const [failures, full] of [[0, 1_000], [1, 1_000], [2, 2_000], [6, 32_000], [7, 60_000], [5_000, 60_000]] as const) {
    assert.equal(backoffDelay(failures, () => 0), full / 2)
    assert.equal(backoffDelay(failures, () => 0.5), full * 0.75)
    assert.ok(backoffDelay(failures, () => 1 - Number.EPSILON) <= full)
    assert.ok(backoffDelay(failures) >= full / 2 && backoffDelay(failures) <= full)
  }
  assert.ok(new Set(Array.from({ length: 20 }, () => backoffDelay(3))).size > 1, 'there is no jitter')
})

const client = (id: string): Client => new NonMcpClient(id, id, id, false)
const slotOf = (more: Partial<LinkKey> = {}, user?: string): Slot => new Slot({ ...gatewayLinkKey, ...more }, {}, { user })

test('slot: what outlives one connection', async (t) => {
  const leveled = (id: string, level: LogLevel | undefined): Client => {
    return Object.assign(client(id), { listener: { view: undefined, level, deliver: () => {} } })
  }

  await t.test('the level upstream is the lowest that anyone wants', async () => {
    const slot = slotOf()
    const levelWith = (id: string, level: LogLevel | undefined): LogLevel | undefined => {
      slot.registerClient(leveled(id, level))
      return slot.level
    }
    assert.equal(levelWith('d', undefined), undefined)
    slot.removeClient('d')
    assert.equal(levelWith('a', 'error'), 'error')
    assert.equal(levelWith('b', 'alert'), 'error')
    assert.equal(levelWith('c', 'debug'), 'debug')
    assert.equal(levelWith('c', 'emergency'), 'error')
    slot.removeClient('a')
    assert.equal(slot.level, 'alert')
    slot.registerClient(client('a caller that hears nothing'))
    assert.equal(slot.level, 'alert')
    slot.removeClient('b')
    slot.removeClient('c')
    assert.equal(slot.level, undefined)
  })
  await t.test('who said nothing of levels misses nothing because of others, and is told nothing more when they have gone', async () => {
    const slot = slotOf()
    const told: LogLevel[] = []
    const link = {
      level: undefined,
      setLevel: async (level: LogLevel) => {
        if (link.level !== level) told.push(level)
        link.level = level
      }
    } as unknown as Link
    slot.link = link
    const serve = (id: string, level?: LogLevel): void => { slot.registerClient(leveled(id, level)); slot.updateLevel() }
    serve('a')
    assert.deepEqual(told, [])
    serve('b', 'emergency')
    serve('c', 'debug')
    slot.removeClient('c')
    assert.deepEqual(told, ['info', 'debug', 'info'])
    slot.removeClient('a')
    assert.deepEqual(told.splice(0), ['info', 'debug', 'info', 'emergency'])
    slot.removeClient('b')
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
    // Once, and not for a URI that only begins alike.
    for (const uri of ['file:///a/', 'file:///a/b.txt', 'test://resource/1']) subscribe(slot, uri, 'ann')
    assert.deepEqual(subscribersOf(slot, 'file:///a/b.txt'), ['ann', 'bob', 'eve'])
    assert.deepEqual(subscribersOf(slot, 'test://resource/10'), [])
  })
  await t.test('forgetting a client tells which URIs nobody wants any more', async () => {
    const slot = slotOf()
    subscribe(slot, 'a', 'ann')
    subscribe(slot, 'b', 'ann', 'bob')
    subscribe(slot, 'c', 'bob')
    assert.deepEqual(slot.removeClient('ann'), ['a'])
    assert.deepEqual([...slot.subscriptions.uris], ['b', 'c'])
    assert.deepEqual(slot.removeClient('ann'), [])
    assert.deepEqual(slot.removeClient('nobody'), [])
    assert.deepEqual(slot.removeClient('bob').sort(), ['b', 'c'])
    assert.equal(slot.subscriptions.size, 0)
  })
  await t.test('subscriptions have a bound for all slots together, with a share for each owner, in size and not in number', async () => {
    const [slot, other] = [slotOf(), slotOf()]
    const owned = (id: string, owner: string): Client => Object.assign(client(id), { owner })
    const uri = (n: number): string => `file:///${n}/${'x'.repeat(1024 * 1024)}`
    const add = (to: Slot, who: Client, from: number): number => {
      for (let n = from; ; n++) {
        try { to.subscriptions.add(uri(n), who) } catch (error) {
          assert.ok(error instanceof ShareError && error.isOwnerLimit)
          return n - from
        }
      }
    }
    const [first, second, bob] = [owned('s1', 'eve'), owned('s2', 'eve'), owned('s3', 'bob')]
    const most = add(slot, first, 0)
    assert.equal(most, Math.floor(gatewayLimits.subscriptions.size * 3 / 4 / 1024 / 1024) - 1)
    assert.equal(add(other, second, 0), 0, 'the same owner')
    assert.ok(add(other, bob, 0) >= 2)
    other.takeOver(slot, first)
    assert.deepEqual([other.subscriptions.countOf('s1'), other.subscriptions.subscribersOf(`${uri(0)}/a`)[Symbol.iterator]().next().value], [most, bob])
    assert.equal(slot.removeClient('s1').length, most, 'it was copied')
    assert.equal(add(slot, second, 0), 0, 'and is counted once')
    other.subscriptions.clear()
    assert.equal(add(slot, second, 0), most)
    slot.removeClient('s2')
  })
  await t.test('it is idle while nobody would notice its link going', async () => {
    const slot = slotOf()
    assert.equal(slot.isIdle, true)
    slot.opening = new Promise(() => {})
    assert.equal(slot.isIdle, false)
    slot.opening = undefined
    subscribe(slot, 'a', 'ann')
    assert.equal(slot.isIdle, false)
    slot.removeClient('ann')
    for (const busy of [false, true]) {
      slot.link = { busy } as unknown as Link
      assert.equal(slot.isIdle, !busy)
    }
  })
})

test('task registry: whose a task is, and for how long', async (t) => {
  const session = (id: string, principal: string): Client => new NonMcpClient(id, principal, principal, false)
  const [one, again, stranger] = [session('s1', 'ann'), session('s2', 'ann'), session('s3', 'bob')]
  const [link, next] = [{}, {}] as Link[]
  assert.ok(link && next)
  const begun = (): TaskAndElicitationRegistry => {
    const pending = new TaskAndElicitationRegistry()
    pending.recordTask({ taskId: 't', status: 'working', ttl: 60_000 }, link, one, { progress: { client: one, link, token: 7, clientToken: '"mine"' } })
    return pending
  }
  const workers = (pending: TaskAndElicitationRegistry, on = link): string[] => pending.taskClientsOn(on).map(({ id }) => id)

  await t.test('one that is over needs no connection, and is still found by its principal', async () => {
    const pending = begun()
    assert.deepEqual([pending.hasAny, workers(pending), workers(pending, next)], [true, ['s1'], []])
    pending.recordTask({ taskId: 't', status: 'completed' }, link)
    assert.deepEqual([pending.hasAny, workers(pending)], [false, []])
    assert.deepEqual([one, again, stranger].map((client) => pending.hasTask('t', client)), [true, true, false])
    assert.equal(pending.hasTask('u', one), false)
  })
  await t.test('it is for who asked about it last; who has gone is told nothing and keeps nobody waiting', async () => {
    const pending = begun()
    pending.removeClient('s1')
    assert.deepEqual([pending.hasAny, workers(pending), pending.ownerOfTask('t'), pending.progressOf(link, 7)],
      [true, [], undefined, undefined])
    pending.recordTask({ taskId: 't', status: 'working' }, link, again)
    assert.deepEqual([workers(pending), pending.ownerOfTask('t')?.id], [['s2'], 's2'])
  })
  await t.test('who began it is known, whoever asks for it; who only asks begins none', async () => {
    const pending = begun()
    pending.recordTask({ taskId: 't', status: 'working' }, link, stranger)
    pending.recordTask({ taskId: 'u', status: 'working' }, link, stranger)
    assert.deepEqual(['t', 'u'].map((id) => pending.beginOf(id)?.principal), ['ann', undefined])
    pending.recordTask({ taskId: 't', status: 'working', ttlMs: 60_000 }, next, stranger, { progress: undefined })
    assert.equal(pending.beginOf('t')?.principal, 'bob')
    assert.deepEqual([link, next].map((on) => pending.mayRunOn(on, 't')), [false, true])
  })
  await t.test('progress is known by its token on that connection only', async () => {
    const pending = begun()
    assert.equal(pending.progressOf(link, 7)?.clientToken, '"mine"')
    assert.deepEqual([pending.progressOf(next, 7), pending.progressOf(link, 8)], [undefined, undefined])
    pending.recordTask({ taskId: 't', status: 'working' }, link, again)
    assert.equal(pending.progressOf(link, 7)?.client.id, 's1', 'the token is that of the session that began it')
  })
  await t.test('beyond the bound those that are over go first; each is forgotten with its time', async (t) => {
    mockTimers(t, 'Date')
    const pending = begun()
    for (let n = 0; n < upstreamLimits.tasksPerConnection; n++) pending.recordTask({ taskId: String(n), status: 'completed' }, link, one)
    assert.deepEqual([pending.knowsTask('t'), pending.knowsTask('0'), pending.knowsTask('1')], [true, false, true])
    pending.recordTask({ taskId: 't', status: 'working', ttl: 1 }, link)
    mock.timers.tick(2)
    assert.deepEqual([pending.hasAny, pending.knowsTask('t')], [false, false])
  })
  await t.test('who begins tasks, or is sent to pages, without end loses his own, and nobody else anything', async () => {
    const pending = new TaskAndElicitationRegistry()
    const eves = ['e1', 'e2'].map((id) => new NonMcpClient(id, 'eve', 'eve', false, 'user eve'))
    pending.recordTask({ taskId: 'anns', status: 'working' }, link, one)
    pending.recordTask({ taskId: 'anns that is over', status: 'completed' }, link, one)
    pending.recordElicitation('anns', one)
    for (let n = 0; n < 2 * upstreamLimits.tasksPerConnection; n++) {
      for (const eve of eves) pending.recordTask({ taskId: `${eve.id} ${n}`, status: 'working' }, link, eve)
      for (const eve of eves) pending.recordElicitation(`${eve.id} ${n}`, eve)
    }
    assert.deepEqual([pending.ownerOfTask('anns')?.id, pending.hasTask('anns that is over', one)], ['s1', true])
    const last = 2 * upstreamLimits.tasksPerConnection - 1
    assert.deepEqual(['anns', 'e1 0', `e2 ${last}`].map((id) => pending.completeElicitation(id)?.id), ['s1', undefined, 'e2'])
    assert.deepEqual([pending.knowsTask('e1 0'), pending.knowsTask(`e1 ${last}`)], [false, true])
    assert.equal(workers(pending).length, upstreamLimits.tasksPerConnection - 1)
    pending.recordTask({ taskId: 'bobs', status: 'working' }, link, stranger)
    assert.deepEqual([pending.ownerOfTask('bobs')?.id, pending.ownerOfTask('anns')?.id], ['s3', 's1'])
  })
  await t.test('ids as long as a message are not remembered: a server that invents them would fill the memory', async () => {
    const pending = begun()
    for (const long of ['x'.repeat(gatewayLimits.rememberedId + 1), 'ж'.repeat(gatewayLimits.rememberedId / 2 + 1)]) {
      pending.recordTask({ taskId: long, status: 'working' }, link, one)
      pending.recordElicitation(long, one)
      assert.deepEqual([pending.knowsTask(long), pending.completeElicitation(long)], [false, undefined])
      pending.recordTask({ taskId: 'u', status: 'working' }, link, one, { progress: { client: one, link, token: 8, clientToken: long } })
    }
    assert.deepEqual([pending.knowsTask('u'), pending.progressOf(link, 8)], [true, undefined])
  })
  await t.test('news of what nobody began are nobody\'s', async () => {
    const pending = new TaskAndElicitationRegistry()
    pending.recordTask({ taskId: 'x', status: 'working' }, link)
    pending.recordTask({ status: 'working' }, link, one)
    assert.deepEqual([pending.hasAny, pending.completeElicitation('y')], [false, undefined])
  })
})

test('transportKinds: which transports are tried', async () => {
  const table: Array<[Parameters<typeof transportTypesToTry>[0], string[], boolean]> = [
    [{ command: 'x' }, ['stdio'], false],
    [{ url: 'http://x' }, ['streamable-http', 'sse'], true],
    [{ type: 'stdio', command: 'x' }, ['stdio'], false],
    [{ type: 'sse', url: 'http://x' }, ['sse'], true],
    [{ type: 'streamable-http', url: 'http://x' }, ['streamable-http'], true],
    [{ type: 'sse', url: 'http://x', command: 'x' }, ['sse'], true],
    [{ command: 'x', url: 'http://x' }, ['stdio'], false]
  ]
  for (const [config, expected, remote] of table) {
    assert.deepEqual(transportTypesToTry(config), expected, JSON.stringify(config))
    assert.equal(isRemote(config), remote)
  }
  assert.deepEqual(Object.values(listKinds).map(({ capability }) => capability), ['tools', 'prompts', 'resources', 'resources', 'resources', 'events'])
  assert.deepEqual(allListKinds.map(listChangedMethod), ['tools', 'prompts', 'resources', 'resources', 'resources', 'events'].map((name) => `notifications/${name}/list_changed`))
})

test('only admins may store servers that run commands, that are described, or whose type is not known', async () => {
  const types = ['stdio', 'openapi', 'ftp', 'constructor', 'sse', 'streamable-http']
  assert.deepEqual(types.map(isRestrictedType), [true, true, true, true, false, false])
  const configs = [{ command: 'x' }, { type: 'sse', command: 'x' }, { type: 'ftp', url: 'http://x' }, { url: 'http://x' }, {}]
  assert.deepEqual(configs.map((config) => isRestrictedConfig(config as ServerConfig)), [true, true, true, false, false])
})
