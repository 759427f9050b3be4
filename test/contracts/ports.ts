import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test, type Test } from 'tap'
import type { AuditEntry } from '../../db/audit-trail.ts'
import { maxClientIdleTime, touchInterval, type OAuthClient } from '../../db/ports/clients.ts'
import type { Activities, Activity } from '../../db/ports/activities.ts'
import type { BrowserState } from '../../db/ports/login-states.ts'
import { recordCollections } from '../../db/records.ts'
import type { Storage } from '../../db/store.ts'
import type { Cleanup } from '../helpers/hub.ts'
import {
  minute, hour, hashOf, fresh, soon, issued, authorization, client, fullClient, consent, activity, race, counted
} from './ports-data.ts'

export * from './ports-data.ts'

/** Storage under test, its store loaded. */
export interface OpenedPorts {
  storage: Storage
  /** Another one on the same data: at the same time where that can be, else once the newest is closed. */
  another: () => Promise<Storage>
  /** Lets so many ms pass for what expires: the clock goes on, or what a database keeps grows older. */
  pass: (ms: number) => Promise<void>
  /** The time of the ports, in ms since 1970. */
  now: () => number
}
export type OpenPorts = (t: Cleanup) => Promise<OpenedPorts>

/** What a text may hold and PostgreSQL cannot, or only in quotes. */
const odd = 'a\0b\ud800c "{,}\\ \' ü 😀'

/** What all ports do, whatever they keep their data in. @param database whether it keeps activities */
export function portsContract (name: string, open: OpenPorts, { database }: { database: boolean }): void {
  void test(name, async (t) => { await suite(t, open, database) })
}

/** One storage serves all of these tests: opening a database takes longer than most of them. */
async function suite (t: Test, open: OpenPorts, database: boolean): Promise<void> {
  let opened = await open(t)
  const it = (what: string, run: (storage: Storage, reopen: () => Promise<Storage>) => Promise<void>): void => {
    void t.test(what, async () => {
      const { storage, another } = opened
      await run(storage, async () => {
        await storage.store.close()
        opened = { ...opened, storage: await another() }
        return opened.storage
      })
    })
  }

  // ---- counters and usage -----------------------------------------------------------------------

  it('a counter is taken as often as its maximum says, and what is given back can be taken again', async ({ counters }) => {
    const key = fresh()
    const take = async (): Promise<boolean> => (await counters.take(key, 1, minute, 10)).isTaken
    const taken = await Promise.all(Array.from({ length: 40 }, take))
    assert.equal(taken.filter(Boolean).length, 10)
    const { count, left } = await counters.read(key)
    assert.equal(count, 10)
    assert.ok(left > 0 && left <= minute)
    await counters.giveBack(key, 1)
    assert.deepEqual([await take(), await take()], [true, false])
    assert.deepEqual(await counters.take(fresh(), 1, minute, 0), { isTaken: false, count: 0, left: minute })
    assert.equal((await counters.take(key, 5_000_000_000, minute)).isTaken, true)
    assert.equal(await take(), false)
    assert.deepEqual(await counters.read(fresh()), { count: 0, left: 0 })
  })

  it('usage of one day and caller adds up, whoever counts at the same time', async ({ usage }) => {
    const count = { day: '2026-11-30', user: odd.replace('\ud800', ''), key: '', server: 's', tool: 't', calls: 1, errors: 0, resultTokens: 5 }
    await Promise.all(Array.from({ length: 8 }, async () => { await usage.add([count, { ...count, day: '2026-11-29' }]) }))
    assert.deepEqual(await usage.list(['2026-11-30']), [{ ...count, calls: 8, resultTokens: 40 }])
    assert.equal((await usage.list(['2026-11-29', '2026-11-30'])).length, 2)
    assert.deepEqual(await usage.list(['2026-11-28']), [])
  })

  // ---- grants -----------------------------------------------------------------------------------

  it('a grant is taken once; who comes later is told its family', async ({ grants }) => {
    const [one, other] = [fresh(), fresh()]
    const value = { code_challenge: 'x', nested: [1.5, null, { [odd]: odd.replace('\ud800', '') }], list: [] }
    await grants.put(one, 'family-1', value, soon())
    await grants.put(other, 'family-2', 'a text', soon())
    assert.deepEqual(await grants.take(one), { first: true, family: 'family-1', value })
    for (let again = 0; again < 2; again++) assert.deepEqual(await grants.take(one), { first: false, family: 'family-1' })
    assert.deepEqual(await grants.take(other), { first: true, family: 'family-2', value: 'a text' })
    assert.equal(await grants.take(fresh()), undefined)
  })

  it('a grant that has expired is gone; one that was taken in time is remembered beyond that', async ({ grants }) => {
    const [late, taken] = [fresh(), fresh()]
    await grants.put(late, 'late', {}, Date.now() - 1)
    assert.equal(await grants.take(late), undefined)
    await grants.put(taken, 'taken', {}, opened.now() + 10 * minute)
    assert.equal((await grants.take(taken))?.first, true)
    await opened.pass(11 * minute)
    assert.deepEqual(await grants.take(taken), { first: false, family: 'taken' })
  })

  it('of 20 who take a grant at once, one is the first', async ({ grants }) => {
    for (let round = 0; round < 5; round++) {
      const hash = fresh()
      await grants.put(hash, 'family', round, soon())
      const taken = await race(20, async () => await grants.take(hash))
      assert.deepEqual(taken.filter((each) => each?.first === true), [{ first: true, family: 'family', value: round }])
      assert.equal(taken.filter((each) => each?.first === false && each.family === 'family').length, 19)
    }
  })

  // ---- tokens -----------------------------------------------------------------------------------

  it('a token is found as it was put, until it expires', async ({ tokens }) => {
    const [full, bare] = [authorization(), authorization({ username: undefined })]
    const [access, refresh, late, plain] = [
      issued('access', { resource: 'https://hub.example.com/mcp' }),
      issued('refresh'),
      issued('access', { expiresAt: Date.now() - 1 }),
      issued('access', { scope: '' })
    ]
    await tokens.put(full, [access, refresh, late])
    await tokens.put(bare, [plain])
    assert.deepEqual(await tokens.find(access.hash), { ...full, ...access })
    assert.deepEqual(await tokens.find(refresh.hash), { ...full, ...refresh })
    assert.deepEqual(await tokens.find(plain.hash), { family: bare.family, clientId: 'client', ...plain })
    assert.deepEqual([await tokens.find(late.hash), await tokens.find(fresh())], [undefined, undefined])
    const brief = issued('access', { expiresAt: opened.now() + 10 * minute })
    await tokens.put(full, [brief])
    assert.deepEqual(await tokens.find(brief.hash), { ...full, ...brief })
    await opened.pass(11 * minute)
    assert.deepEqual([await tokens.find(brief.hash), await tokens.find(access.hash) !== undefined], [undefined, true])
  })

  it('a refresh token is swapped once; reuse ends its family, and no other', async ({ tokens }) => {
    const [own, other] = [authorization(), authorization()]
    const [access, first, stranger] = [issued('access'), issued('refresh'), issued('refresh')]
    await tokens.put(own, [access, first])
    await tokens.put(other, [stranger])
    const [nextAccess, second] = [issued('access', { scope: 'mcp' }), issued('refresh')]
    assert.equal(await tokens.rotate(first.hash, [nextAccess, second]), 'swapped')
    assert.equal(await tokens.find(first.hash), undefined)
    assert.deepEqual(await tokens.find(nextAccess.hash), { ...own, ...nextAccess })
    assert.deepEqual(await tokens.find(second.hash), { ...own, ...second })
    assert.deepEqual(await tokens.find(access.hash), { ...own, ...access }, 'an access token lives on when its refresh token is swapped')

    const [none, never] = [issued('access'), issued('refresh')]
    assert.equal(await tokens.rotate(first.hash, [none]), 'reused')
    for (const { hash } of [access, nextAccess, second, none]) assert.equal(await tokens.find(hash), undefined)
    assert.deepEqual([await tokens.rotate(first.hash, []), await tokens.rotate(second.hash, [never])], ['reused', 'unknown'])
    await tokens.put(own, [never])
    assert.deepEqual(
      [await tokens.find(never.hash), await tokens.rotate(never.hash, [])],
      [undefined, 'unknown'],
      'what comes late to a revoked family is of no use'
    )
    assert.deepEqual(await tokens.find(stranger.hash), { ...other, ...stranger })
  })

  it('what is no refresh token in force is not swapped', async ({ tokens }) => {
    const [access, late, next] = [issued('access'), issued('refresh', { expiresAt: Date.now() - 1 }), issued('access')]
    await tokens.put(authorization(), [access, late])
    for (const hash of [access.hash, late.hash, fresh()]) assert.equal(await tokens.rotate(hash, [next]), 'unknown')
    assert.equal(await tokens.find(next.hash), undefined)
    assert.deepEqual(await tokens.find(access.hash) !== undefined, true)
  })

  it('of 20 who swap a token at once, one has swapped, and the family is revoked', async ({ tokens }) => {
    for (let round = 0; round < 5; round++) {
      const [own, refresh] = [authorization(), issued('refresh')]
      await tokens.put(own, [refresh])
      const next = Array.from({ length: 20 }, () => [issued('access'), issued('refresh')])
      assert.deepEqual(counted(await race(20, async (n) => await tokens.rotate(refresh.hash, next[n] ?? []))), { reused: 19, swapped: 1 })
      for (const { hash } of next.flat()) assert.equal(await tokens.find(hash), undefined)
    }
  })

  it('who reuses a token at the moment when its successor is swapped ends that one, too', async ({ tokens }) => {
    for (let round = 0; round < 20; round++) {
      const [first, second, third] = [issued('refresh'), issued('refresh'), issued('refresh')]
      await tokens.put(authorization(), [first])
      await tokens.rotate(first.hash, [second])
      const [, reuse] = await Promise.all([tokens.rotate(second.hash, [third]), tokens.rotate(first.hash, [])])
      assert.equal(reuse, 'reused')
      for (const { hash } of [second, third]) assert.equal(await tokens.find(hash), undefined)
    }
  })

  it('tokens are revoked one by one, by family, by client and by user', async ({ tokens }) => {
    const [ann, bob] = [authorization({ username: 'ann', clientId: 'c1' }), authorization({ username: 'bob', clientId: 'c2' })]
    const [again, third] = [authorization({ username: 'ann', clientId: 'c2' }), authorization({ username: 'carl', clientId: 'c3' })]
    const all = await Promise.all([ann, bob, again, third].map(async (each) => {
      const both = [issued('access'), issued('refresh')] as const
      await tokens.put(each, both)
      return both
    }))
    const left = async (): Promise<string> =>
      (await Promise.all(all.flat().map(async ({ hash }) => ((await tokens.find(hash)) === undefined ? '-' : 'x')))).join('')
    assert.equal(await left(), 'xxxxxxxx')
    await tokens.revoke({ hash: all[0]?.[0].hash ?? '' })
    assert.equal(await left(), '-xxxxxxx')
    await tokens.revoke({ username: 'ann' })
    assert.equal(await left(), '--xx--xx')
    await tokens.revoke({ clientId: 'c2' })
    assert.equal(await left(), '------xx')
    await tokens.revoke({ family: third.family })
    assert.equal(await left(), '--------')
    for (const what of [{ hash: fresh() }, { username: 'nobody' }, { clientId: 'none' }]) await tokens.revoke(what)
    // A family that has no tokens yet: its code was taken twice, and the first one is still on the way.
    const [late, token] = [authorization(), issued('access')]
    await tokens.revoke({ family: late.family })
    await tokens.put(late, [token])
    assert.equal(await tokens.find(token.hash), undefined)
  })

  it('tokens are revoked by client and user together', async ({ tokens }) => {
    const owners = ['ann', 'bob'].flatMap((username) => ['both-1', 'both-2'].map((clientId) => authorization({ username, clientId })))
    const all = owners.map(() => issued('access'))
    for (const [n, owner] of owners.entries()) await tokens.put(owner, all.slice(n, n + 1))
    await tokens.revoke({ username: 'ann', clientId: 'both-2' })
    const found = await Promise.all(all.map(async ({ hash }) => await tokens.find(hash) !== undefined))
    assert.deepEqual(found, [true, false, true, true])
  })

  it('tokens of a user are revoked by the mark that they were issued with', async ({ tokens }) => {
    const username = randomUUID()
    const owners = ['a', 'b', undefined].map((mark) => authorization({ username, ...(mark !== undefined && { mark }) }))
    const all = owners.map(() => issued('refresh'))
    for (const [n, owner] of owners.entries()) await tokens.put(owner, all.slice(n, n + 1))
    await tokens.revoke({ username, mark: 'a' })
    const found = await Promise.all(all.map(async ({ hash }) => await tokens.find(hash) !== undefined))
    assert.deepEqual(found, [false, true, true])
  })

  it('families that were revoked lately are listed, and no others', async ({ tokens }) => {
    const [one, other, kept] = [authorization({ username: randomUUID() }), authorization(), authorization()]
    for (const each of [one, other, kept]) await tokens.put(each, [issued('access')])
    await tokens.revoke({ username: one.username ?? '' })
    await tokens.revoke({ family: other.family })
    const families = await tokens.listRevokedWithin(10 * minute)
    assert.deepEqual([one, other, kept].map(({ family }) => families.includes(family)), [true, true, false])
    await opened.pass(11 * minute)
    assert.equal((await tokens.listRevokedWithin(10 * minute)).includes(one.family), false)
  })

  it('any text may stand in a token', async ({ tokens }) => {
    const own = authorization({ clientId: odd, username: odd })
    const token = issued('access', { scope: odd, resource: odd })
    await tokens.put(own, [token])
    assert.deepEqual(await tokens.find(token.hash), { ...own, ...token })
    await tokens.revoke({ clientId: odd, username: odd })
    assert.equal(await tokens.find(token.hash), undefined)
  })

  it('names of 128 letters beyond the BMP may stand in labels, and are read from them', async ({ tokens, upstreamTokens }) => {
    const name = '𐐀'.repeat(128)
    const [own, token] = [authorization({ username: name }), issued('access')]
    await tokens.put(own, [token])
    await tokens.revoke({ username: name })
    assert.equal(await tokens.find(token.hash), undefined)
    const version = await upstreamTokens.swap(name, `user ${name}`, 'any', 1)
    const changes = (await upstreamTokens.listChangedWithin(hour)).filter((each) => each.server === name)
    assert.deepEqual(changes, [{ server: name, holder: `user ${name}`, version }])
  })

  it('a used token that is revoked by itself still tells of its reuse', async ({ tokens }) => {
    const [first, second] = [issued('refresh'), issued('refresh')]
    await tokens.put(authorization(), [first])
    await tokens.rotate(first.hash, [second])
    await tokens.revoke({ hash: first.hash })
    assert.equal(await tokens.rotate(first.hash, []), 'reused')
    assert.equal(await tokens.find(second.hash), undefined)
  })

  it('tokens, what was used and what was revoked are there after a restart', async ({ tokens }, reopen) => {
    const [own, other, gone] = [authorization(), authorization(), authorization()]
    const [first, second, kept, lost] = [
      issued('refresh'), issued('refresh'), issued('access', { resource: 'https://hub.example.com' }), issued('access')
    ]
    await tokens.put(own, [first])
    await tokens.put(other, [kept])
    await tokens.put(gone, [lost])
    await tokens.rotate(first.hash, [second])
    await tokens.revoke({ family: gone.family })
    const { tokens: after } = await reopen()
    assert.deepEqual(await after.find(second.hash), { ...own, ...second })
    assert.deepEqual(await after.find(kept.hash), { ...other, ...kept })
    assert.deepEqual([await after.find(first.hash), await after.find(lost.hash)], [undefined, undefined])
    assert.equal(await after.rotate(first.hash, []), 'reused')
    assert.equal(await after.find(second.hash), undefined)
  })

  // ---- clients ----------------------------------------------------------------------------------

  it('a client is found as it was created, and replaced, and listed by age', async ({ clients }) => {
    const [full, bare] = [fullClient({ createdAt: Date.now() - 5_000 }), client({ createdAt: Date.now() - 9_000, scope: '' })]
    const strange = fullClient({
      clientId: odd,
      name: odd,
      redirectUris: [odd],
      grantTypes: [odd],
      scope: odd,
      contacts: [odd, ''],
      softwareId: odd
    })
    const long = client({ clientId: `https://client.example.com/${'x'.repeat(1_900)}` })
    for (const each of [full, bare, strange, long]) assert.equal(await clients.create(each), true)
    for (const each of [full, bare, strange, long]) assert.deepEqual(await clients.find(each.clientId), each)
    for (const unknown of [randomUUID(), '', '\0']) assert.equal(await clients.find(unknown), undefined)
    const listed = (await clients.list()).filter(({ clientId }) => [full, bare, strange].some((each) => each.clientId === clientId))
    assert.deepEqual(listed, [bare, full, strange])
    const all = await clients.list()
    assert.equal(await clients.count(), all.length)
    assert.deepEqual(await clients.list({ offset: 1, limit: 2 }), all.slice(1, 3))
    assert.deepEqual(await clients.list({ offset: all.length, limit: 2 }), [])

    const { contacts, registrationTokenHash, ...rest } = full
    const changed = { ...rest, name: 'another name', secretHash: fresh(), origin: 'admin' as const }
    const asGiven: OAuthClient[] = []
    assert.deepEqual(await clients.replace(full.clientId, (former) => {
      asGiven.push(former)
      return { ...changed, clientId: 'not to be changed', contacts: undefined }
    }), changed)
    assert.deepEqual([asGiven, await clients.find(full.clientId)], [[full], changed])
    assert.equal(await clients.replace(randomUUID(), (former) => former), undefined)
    await assert.rejects(clients.replace(bare.clientId, () => { throw new RangeError('no') }), (error) => error instanceof RangeError)
    assert.deepEqual(await clients.find(bare.clientId), bare)
    for (const each of [full, bare, strange, long]) {
      assert.deepEqual([await clients.remove(each.clientId), await clients.remove(each.clientId)], [true, false])
      assert.equal(await clients.find(each.clientId), undefined)
    }
  })

  it('of 20 who create a client at once, one does; of 20 changes at once, none is lost', async ({ clients }) => {
    const clientId = randomUUID()
    const created = await race(20, async (n) => await clients.create(client({ clientId, name: `${n}` })))
    assert.deepEqual(counted(created.map(String)), { false: 19, true: 1 })
    assert.equal((await clients.find(clientId))?.name, `${created.indexOf(true)}`)
    const changed = await race(20, async (n) => await clients.replace(clientId, (former) => ({
      ...former,
      redirectUris: [...former.redirectUris, `https://${n}.example.com/`]
    })))
    const redirectUris = new Set((await clients.find(clientId))?.redirectUris)
    assert.equal(redirectUris.size, 21)
    assert.deepEqual(changed.map((each) => each?.redirectUris.length).sort((a, b) => (a ?? 0) - (b ?? 0)), changed.map((_, n) => n + 2))
    assert.deepEqual(counted((await race(20, async () => await clients.remove(clientId))).map(String)), { false: 19, true: 1 })
    assert.equal(await clients.replace(clientId, (former) => former), undefined)
  })

  it('a client that is removed takes its tokens and consents with it, and no others', async ({ clients, consents, tokens }) => {
    const [own, other] = [client({ clientId: `own ${odd}` }), client()]
    const kept = [own, other].map(({ clientId }) => ({
      token: issued('refresh'),
      authorization: authorization({ clientId }),
      consent: consent({ clientId })
    }))
    for (const each of [own, other]) await clients.create(each)
    for (const each of kept) {
      await tokens.put(each.authorization, [each.token])
      await consents.put(each.consent)
    }
    await clients.remove(own.clientId)
    const found = async (): Promise<unknown> => await Promise.all(kept.map(async ({ token, consent: { username, clientId } }) => [
      await tokens.find(token.hash) !== undefined,
      await consents.find(username, clientId) !== undefined
    ]))
    assert.deepEqual(await found(), [[false, false], [true, true]])
    assert.equal(await clients.create(own), true, 'whoever gets the id later gets none of that')
    assert.deepEqual(await found(), [[false, false], [true, true]])
  })

  it('a client that registered itself goes when it was unused for too long; an admin\'s stays', async ({ clients, tokens }) => {
    const longAgo = Date.now() - maxClientIdleTime - 1_000
    const [idle, used, admins] = [
      fullClient({ createdAt: longAgo, lastUsedAt: undefined }),
      fullClient({ createdAt: longAgo, lastUsedAt: Date.now() - maxClientIdleTime + 60_000 }),
      client({ createdAt: longAgo, lastUsedAt: longAgo })
    ]
    const [own, token] = [authorization({ clientId: idle.clientId }), issued('access')]
    await clients.create(idle)
    await tokens.put(own, [token])
    for (const each of [used, admins]) await clients.create(each)
    assert.equal(await tokens.find(token.hash), undefined)
    const found = [await clients.find(idle.clientId), await clients.find(used.clientId), await clients.find(admins.clientId)]
    assert.deepEqual(found, [undefined, used, admins])
    assert.ok(!(await clients.list()).some(({ clientId }) => clientId === idle.clientId))
    assert.equal(await clients.replace(idle.clientId, (former) => former), undefined)
    await clients.touch(idle.clientId, Date.now())
    assert.equal(await clients.find(idle.clientId), undefined, 'too late')
    assert.equal(await clients.create(idle), true)
  })

  it('when a client was last used is written once an hour', async ({ clients }) => {
    const start = Date.now() - 10 * touchInterval
    const own = client({ createdAt: start })
    await clients.create(own)
    const touched: Array<number | undefined> = []
    for (const at of [start + 5, start + 6, start + touchInterval, start + touchInterval + 5, start + 3 * touchInterval]) {
      await clients.touch(own.clientId, at)
      const { lastUsedAt } = await clients.find(own.clientId) ?? {}
      touched.push(lastUsedAt === undefined ? undefined : lastUsedAt - start)
    }
    assert.deepEqual(touched, [5, 5, 5, touchInterval + 5, 3 * touchInterval])
    const changed = await clients.replace(own.clientId, (former) => ({ ...former, name: 'new' }))
    assert.deepEqual(changed, { ...own, name: 'new', lastUsedAt: start + 3 * touchInterval })
    await clients.touch(randomUUID(), start)
  })

  it('clients, consents and what was removed are there after a restart', async ({ clients, consents }, reopen) => {
    const [own, gone] = [fullClient({ name: odd }), client()]
    const [given, withdrawn] = [consent({ username: odd, clientId: odd, resource: 'https://hub.example.com/mcp' }), consent()]
    for (const each of [own, gone]) await clients.create(each)
    for (const each of [given, withdrawn]) await consents.put(each)
    await clients.remove(gone.clientId)
    await consents.remove(withdrawn.username, withdrawn.clientId)
    const after = await reopen()
    assert.deepEqual([await after.clients.find(own.clientId), await after.clients.find(gone.clientId)], [own, undefined])
    assert.deepEqual(await after.consents.find(odd, odd), given)
    assert.equal(await after.consents.find(withdrawn.username, withdrawn.clientId), undefined)
    await after.consents.remove(odd, odd)
  })

  // ---- consents ---------------------------------------------------------------------------------

  it('a consent is found by user and client, replaced, listed and withdrawn', async ({ consents }) => {
    const [ann, bob, first, second] = [`ann-${odd}`, randomUUID(), randomUUID(), `${odd}-${randomUUID()}`]
    const old = consent({ username: ann, clientId: first, resource: odd, mark: odd, grantedAt: 1_000 })
    const later = consent({ username: ann, clientId: first, scope: odd, grantedAt: 2_000 })
    const other = consent({ username: ann, clientId: second, grantedAt: 3_000 })
    const others = consent({ username: bob, clientId: second })
    await consents.put(old)
    assert.deepEqual(await consents.find(ann, first), old)
    for (const each of [later, other, others]) await consents.put(each)
    assert.deepEqual(await consents.find(ann, first), later)
    assert.deepEqual([await consents.list(ann), await consents.list(bob), await consents.list('\0')], [[other, later], [others], []])
    assert.deepEqual([await consents.find(bob, first), await consents.find(first, ann)], [undefined, undefined])
    assert.deepEqual([await consents.remove(ann, first), await consents.remove(ann, first), await consents.remove(bob, first)], [
      true,
      false,
      false
    ])
    assert.deepEqual([await consents.list(ann), await consents.list(bob)], [[other], [others]])
    await consents.put(later)
    await consents.removeAll({ clientId: second })
    assert.deepEqual([await consents.list(ann), await consents.list(bob)], [[later], []])
    await consents.removeAll({ username: ann })
    assert.deepEqual(await consents.list(ann), [])
  })

  it('of too many consents of a user, the oldest goes', async ({ consents }) => {
    const [username, other] = [randomUUID(), consent()]
    await consents.put(other)
    const all = Array.from({ length: recordCollections.consents.maxPerOwner + 2 }, (_, n) => consent({ username, grantedAt: 1_000 + n }))
    for (const each of all) await consents.put(each)
    assert.deepEqual(await consents.list(username), all.slice(2).reverse())
    assert.deepEqual(await consents.find(other.username, other.clientId), other)
    await consents.removeAll({ username })
  })

  it('20 consents of a user at once are all there', async ({ consents }) => {
    const username = randomUUID()
    const all = Array.from({ length: 20 }, (_, n) => consent({ username, grantedAt: 1_000 + n }))
    await race(20, async (n) => { for (const each of all.slice(n, n + 1)) await consents.put(each) })
    assert.deepEqual(await consents.list(username), [...all].reverse())
  })

  // ---- login sessions ---------------------------------------------------------------------------

  it('a login at an upstream is swapped by its version, and is its server and holder\'s', async ({ upstreamTokens: logins }, reopen) => {
    const [server, other, holder] = [`server ${randomUUID()}`, `server ${randomUUID()}`, `user ${randomUUID()}`]
    const value = { accessToken: fresh(), nested: [1.5, null, { [odd]: odd.replace('\ud800', '') }] }
    assert.equal(await logins.find(server, holder), undefined)
    assert.equal(await logins.swap(server, holder, { version: randomUUID() }, value), undefined)
    const first = await logins.swap(server, holder, undefined, value) ?? ''
    assert.deepEqual(await logins.find(server, holder), { version: first, value })
    assert.equal(await logins.swap(server, holder, undefined, 'late'), undefined)
    const swapped = await race(10, async (n) => await logins.swap(server, holder, { version: first }, n))
    assert.equal(swapped.filter((each) => each !== undefined).length, 1)
    const version = swapped.find((each) => each !== undefined) ?? ''
    assert.deepEqual(await logins.find(server, holder), { version, value: swapped.indexOf(version) })
    await logins.swap(other, holder, 'any', 'other')
    await logins.swap(other, holder, 'any', 'another')
    await logins.swap(other, 'shared', undefined, 'shared')
    const again = (await reopen()).upstreamTokens
    assert.equal((await again.find(other, holder))?.value, 'another')
    assert.deepEqual([await again.remove(server, holder), await again.remove(server, holder)], [true, false])
    assert.equal(await again.find(server, holder), undefined)
    assert.ok(await again.swap(server, holder, undefined, 'new'))
    await again.removeAll({ holder })
    assert.deepEqual([await again.find(server, holder), await again.find(other, holder)], [undefined, undefined])
    assert.equal((await again.find(other, 'shared'))?.value, 'shared')
    await again.removeAll({ server: other })
    assert.equal(await again.find(other, 'shared'), undefined)
    const changes = (await again.listChangedWithin(hour)).filter((each) => each.server === other)
    assert.deepEqual(changes.map(({ holder, version }) => [holder, version]).sort(), [['shared', undefined], [holder, undefined]])
  })

  it('of all who want to refresh a login one may, until it has, or its time is over', async ({ upstreamTokens: logins }) => {
    const [server, holder] = [`server ${randomUUID()}`, 'shared']
    assert.equal(await logins.claim(server, holder, randomUUID(), 1_000), false)
    const version = await logins.swap(server, holder, undefined, 1) ?? ''
    const claims = await race(10, async () => await logins.claim(server, holder, version, 10 * minute))
    assert.equal(claims.filter(Boolean).length, 1)
    await logins.releaseClaim(server, holder, version)
    assert.equal(await logins.claim(server, holder, version, 10 * minute), true)
    assert.equal(await logins.claim(server, holder, version, 10 * minute), false)
    await opened.pass(11 * minute)
    assert.equal(await logins.claim(server, holder, version, hour), true)
    const next = await logins.swap(server, holder, { version }, 2) ?? ''
    assert.equal(await logins.claim(server, holder, version, hour), false)
    assert.equal(await logins.claim(server, holder, next, hour), true)
    assert.deepEqual((await logins.listChangedWithin(hour)).filter((each) => each.server === server), [{ server, holder, version: next }])
  })

  it('of all who use a state at once, one is the first; the others learn with what, and how long ago', async ({ usedStates }) => {
    const [one, other] = [fresh(), fresh()]
    const answers = await race(20, async (n) => (await usedStates.recordUse(one, `answers-${n % 4}`, soon())).answers)
    const [first = ''] = answers
    assert.deepEqual(new Set(answers), new Set([first]), 'all learn what the first one used it with')
    await opened.pass(10 * minute)
    const { age, ...late } = await usedStates.recordUse(one, 'others', soon())
    assert.deepEqual(late, { answers: first })
    assert.ok(age >= 10 * minute && age < 20 * minute, String(age))
    const { age: fresher, ...unused } = await usedStates.recordUse(other, 'mine', soon())
    assert.deepEqual(unused, { answers: 'mine' })
    assert.ok(fresher < minute, String(fresher))
  })

  it('a login session is found until it expires, is removed, or its user is', async ({ loginStates }) => {
    const value = { text: odd.replace('\ud800', ''), list: [1.5, null] }
    const session: BrowserState = { kind: 'session', uid: fresh(), username: `ann-${odd}`, value, createdAt: 1_000 }
    const interaction: BrowserState = { kind: 'interaction', value, createdAt: 1_000 }
    const [one, two, late, brief, other] = [fresh(), fresh(), fresh(), fresh(), fresh()]
    await loginStates.put(one, { ...session, uid: fresh() }, soon())
    await loginStates.put(two, session, soon())
    await loginStates.put(late, { ...session, uid: fresh() }, Date.now() - 1)
    await loginStates.put(brief, { ...session, uid: fresh() }, opened.now() + 10 * minute)
    await loginStates.put(other, interaction, soon())
    assert.deepEqual([await loginStates.find(two), await loginStates.find(other)], [session, interaction])
    assert.deepEqual([await loginStates.findByUid(session.uid ?? ''), await loginStates.findByUid(fresh())], [session, undefined])
    assert.deepEqual([await loginStates.find(late), await loginStates.find(fresh())], [undefined, undefined])
    assert.notEqual(await loginStates.find(brief), undefined)
    await opened.pass(11 * minute)
    assert.equal(await loginStates.find(brief), undefined)
    await loginStates.remove(one)
    await loginStates.remove(one)
    assert.deepEqual([await loginStates.find(one), await loginStates.find(two)], [undefined, session])
    await loginStates.put(two, { ...session, value: 'new' }, soon())
    assert.equal((await loginStates.find(two))?.value, 'new')
    await loginStates.removeAll(session.username ?? '')
    assert.deepEqual([await loginStates.find(two), await loginStates.findByUid(session.uid ?? '')], [undefined, undefined])
    assert.deepEqual(await loginStates.find(other), interaction)
  })

  it('a session of the console ends when it is not used, or is ended', async ({ consoleSessions }) => {
    const session = { username: `ann-${odd}`, mark: 'password and rights' }
    const [one, two, three] = [fresh(), fresh(), fresh()]
    for (const hash of [one, two]) await consoleSessions.begin(hash, session, 10 * minute)
    await consoleSessions.begin(three, { ...session, username: 'other' }, 60 * minute)
    const { age, ...found } = await consoleSessions.find(one) ?? {}
    assert.deepEqual(found, session)
    assert.ok(age !== undefined && age < minute, String(age))
    assert.equal(await consoleSessions.find(fresh()), undefined)
    await opened.pass(6 * minute)
    const later = (await consoleSessions.find(one))?.age ?? 0
    assert.ok(later >= 6 * minute && later < 8 * minute, String(later))
    await consoleSessions.renew(one, 10 * minute)
    await opened.pass(6 * minute)
    assert.deepEqual([(await consoleSessions.find(one))?.mark, await consoleSessions.find(two)], [session.mark, undefined])
    await consoleSessions.end(one)
    await consoleSessions.renew(one, 10 * minute)
    assert.equal(await consoleSessions.find(one), undefined, 'what has ended is not renewed')
    assert.equal((await consoleSessions.find(three))?.username, 'other')
  })

  it('of too many login sessions of a user, the oldest ends', async ({ loginStates }) => {
    const username = randomUUID()
    const hashes = Array.from({ length: recordCollections.loginStates.maxPerOwner + 2 }, fresh)
    for (const [n, hash] of hashes.entries()) {
      await loginStates.put(hash, { kind: 'session', username, value: '', createdAt: 1_000 + n }, soon())
    }
    const found = await Promise.all(hashes.map(async (hash) => await loginStates.find(hash) !== undefined))
    assert.deepEqual(found, hashes.map((_, n) => n >= 2))
    await loginStates.removeAll(username)
  })

  it('login sessions: a restart ends them without a database', async ({ loginStates }, reopen) => {
    const [hash, session] = [fresh(), { kind: 'session', username: 'ann', value: 'v', createdAt: 1_000 } as const]
    await loginStates.put(hash, session, soon())
    assert.deepEqual(await (await reopen()).loginStates.find(hash), database ? session : undefined)
  })

  // ---- vectors ----------------------------------------------------------------------------------

  it('vectors: what is there, what is nearest, what is kept', async ({ vectors }) => {
    const ids = ['east', 'north', 'northeast', odd, 'x'.repeat(10_000)]
    const embeddings = [[2, 0], [0, 3], [1, 1], [-1, 0], [-1, -0.5]]
    await vectors.put('c', ids.map((id, at) => ({ id, hash: hashOf(id), embedding: embeddings[at] ?? [] })))
    await vectors.put('c', [{ id: 'long', hash: 'l', embedding: [1, 0, 0] }])
    await vectors.put('d', [{ id: 'east', hash: 'other', embedding: [0, 1] }])
    assert.deepEqual(await vectors.findHashes('c', [...ids, 'none']), new Map(ids.map((id) => [id, hashOf(id)])))
    assert.deepEqual(
      [await vectors.findHashes('d', ['east', 'north']), await vectors.findHashes('none', ids), await vectors.findHashes('c', [])],
      [new Map([['east', 'other']]), new Map(), new Map()]
    )

    const found = await vectors.findNearest('c', [10, 1], [...ids, 'long', 'none'], 3)
    assert.deepEqual(found.map(({ id }) => id), ['east', 'northeast', 'north'])
    found.forEach(({ score }, at) => {
      assert.ok(Math.abs(score - ([10, 11 / Math.SQRT2, 1][at] ?? 0) / Math.hypot(10, 1)) < 1e-6, `${score}`)
    })
    assert.deepEqual((await vectors.findNearest('c', [-1, 0], ids, 2)).map(({ id }) => id), [odd, ids[4]], 'ids come back as they were given')
    assert.deepEqual(
      (await vectors.findNearest('c', [1, 0], ['north', 'northeast', 'northeast'], 9)).map(({ id }) => id),
      ['northeast', 'north'],
      'those that were asked for, and no others'
    )
    assert.deepEqual([await vectors.findNearest('c', [1, 0], [], 9), await vectors.findNearest('none', [1, 0], ids, 9)], [[], []])

    await vectors.put('c', [{ id: 'north', hash: 'before', embedding: [1, 2] }, { id: 'north', hash: 'new', embedding: [9, 0] }])
    assert.equal((await vectors.findHashes('c', ids)).get('north'), 'new')
    assert.ok(((await vectors.findNearest('c', [1, 0], ['north'], 1))[0]?.score ?? 0) > 0.999)
    await opened.pass(hour)
    await vectors.markUsed('c', ['north', 'none'])
    await vectors.put('c', [{ id: 'east', hash: 'again', embedding: [1, 0] }])
    assert.equal(await vectors.removeUnused(2 * hour, 100), 0, 'not as old as that')
    assert.equal(await vectors.removeUnused(hour / 2, 2), 2, 'in small steps')
    assert.equal(await vectors.removeUnused(hour / 2, 100), 3, 'of all collections')
    assert.equal(await vectors.removeUnused(hour / 2, 100), 0)
    assert.deepEqual([...(await vectors.findHashes('c', [...ids, 'long'])).keys()].sort(), ['east', 'north'])
    assert.equal((await vectors.findHashes('d', ['east'])).size, 0)
  })

  it('vectors: many at once; one without a direction is refused, and none of its batch is put', async ({ vectors }) => {
    const many = Array.from({ length: 1_050 }, (_, n) => ({
      id: `tool-${n}`,
      hash: `${n}`,
      embedding: Array.from({ length: 64 }, (_, at) => Math.sin(n * 64 + at))
    }))
    await vectors.put('many', many)
    const ids = many.map(({ id }) => id)
    assert.equal((await vectors.findHashes('many', ids)).size, 1_050)
    assert.equal((await vectors.findNearest('many', many[1_001]?.embedding ?? [], ids, 5))[0]?.id, 'tool-1001')
    for (const embedding of [[], [0, 0], [1, Number.NaN], [1, Infinity]]) {
      await assert.rejects(vectors.put('odd', [{ id: 'good', hash: 'h', embedding: [1] }, { id: 'bad', hash: 'h', embedding }]), RangeError)
      await assert.rejects(vectors.findNearest('odd', embedding, ['good'], 1), RangeError)
    }
    assert.equal((await vectors.findHashes('odd', ['good', 'bad'])).size, 0)
  })

  // ---- activities -------------------------------------------------------------------------------

  if (!database) {
    it('keeps no activities', async ({ activities, auditTrail }) => { assert.deepEqual([activities, auditTrail], [undefined, undefined]) })
    return
  }
  const record = (what: string, run: (activities: Activities) => Promise<void>): void => {
    it(what, async ({ activities }) => {
      assert.ok(activities)
      await activities.removeBefore(Number.MAX_SAFE_INTEGER)
      await run(activities)
    })
  }
  const ids = (list: readonly Activity[]): string[] => list.map(({ id }) => id)

  record('an activity is found as it was recorded; one that was recorded already is not recorded again', async (activities) => {
    const full = activity({
      input: '{"path":"/x"}',
      output: 'y'.repeat(100 * 1024),
      group: 'team',
      username: 'ann',
      keyId: 'k',
      keyName: 'key',
      sourceIp: '::1',
      errorMessage: 'none',
      refused: true,
      clientId: 'of another gateway',
      status: 'error',
      duration: 0.1
    })
    const bare = activity()
    await activities.append([full, bare])
    await activities.append([full, activity({ ...bare, tool: 'another' })])
    await activities.append([])
    assert.deepEqual(
      [await activities.find(full.id), await activities.find(bare.id), await activities.find(full.id.toUpperCase())],
      [full, bare, full]
    )
    assert.equal((await activities.list({}, 1, 10)).total, 2)
    for (const id of [randomUUID(), 'x', '', '\0']) assert.equal(await activities.find(id), undefined)
    const strange = activity({ input: odd, server: odd, errorMessage: odd })
    await activities.append([strange])
    assert.equal((await activities.find(strange.id))?.input, odd)
    assert.deepEqual(ids((await activities.list({ server: odd }, 1, 10)).activities), [strange.id])
    // Shortened within a character.
    const long = activity({ tool: `a${'😀'.repeat(150)}` })
    await activities.append([activity(), long])
    assert.deepEqual(ids((await activities.list({ tool: long.tool }, 1, 10)).activities), [long.id])
  })

  record('activities come newest first, in pages, and are filtered', async (activities) => {
    const batch = Array.from({ length: 1_200 }, (_, n) =>
      activity({
        timestamp: 1_000 + Math.floor(n / 2),
        server: n % 3 === 0 ? 'files' : 'web',
        tool: `t${n % 4}`,
        status: n % 10 === 0 ? 'error' : 'success',
        group: n % 2 === 0 ? 'team' : undefined,
        username: n % 5 === 0 ? 'ann' : undefined,
        keyId: n % 6 === 0 ? 'k1' : undefined,
        keyName: n % 12 === 0 ? 'one' : undefined,
        duration: n
      })
    )
    await activities.append(batch)
    const newest = [...batch].sort((one, other) => other.timestamp - one.timestamp || (other.id < one.id ? -1 : 1))
    for (const [page, limit] of [[1, 100], [2, 100], [12, 100], [13, 100], [240, 5]] as const) {
      const { activities: found, total, approximate } = await activities.list({}, page, limit)
      assert.deepEqual([ids(found), total, approximate], [ids(newest.slice((page - 1) * limit, page * limit)), 1_200, false], `page ${page} of ${limit}`)
    }
    for (const filter of [
      { server: 'files' }, { tool: 't1' }, { status: 'error' }, { group: 'team' }, { username: 'ann' }, { keyId: 'k1' },
      { keyName: 'one' }, { status: 'success' }, { server: 'files', status: 'error', username: 'ann' },
      { server: 'none' }, { server: undefined }
    ] as const) {
      const wanted = newest.filter((each) =>
        Object.entries(filter).every(([name, value]) => value === undefined || each[name as 'server'] === value)
      )
      const { activities: found, total } = await activities.list(filter, 1, 100)
      assert.deepEqual([ids(found), total], [ids(wanted.slice(0, 100)), wanted.length], JSON.stringify(filter))
      const mean = wanted.length === 0 ? 0 : wanted.reduce((sum, { duration }) => sum + duration, 0) / wanted.length
      const { duration, ...counts } = await activities.stats(filter)
      assert.deepEqual(counts, { total: wanted.length, errors: wanted.filter(({ status }) => status === 'error').length })
      assert.ok(Math.abs(duration - mean) < 1e-6, `${duration} and not ${mean}`)
      const longest = await activities.durationQuantile(filter, 1)
      assert.equal(longest, wanted.length === 0 ? undefined : Math.max(...wanted.map((each) => each.duration)))
    }
    assert.deepEqual(
      [(await activities.list({ from: 1_010, to: 1_012 }, 1, 100)).total, (await activities.list({ to: 1_001 }, 1, 100)).total],
      [4, 2]
    )
  })

  record('what there is to filter by, and what is cleaned up', async (activities) => {
    assert.deepEqual(await activities.listFilterValues({}), { servers: [], tools: [], groups: [], usernames: [], keyNames: [] })
    assert.deepEqual(await activities.stats({}), { total: 0, errors: 0, duration: 0 })
    await activities.append([
      activity({ timestamp: 1, server: 'b', tool: 'x', group: 'g', username: 'ann', keyId: 'k1', keyName: 'one' }),
      activity({ timestamp: 2, server: 'a', tool: 'x', username: 'bob', keyId: 'k2' }),
      activity({ timestamp: 3, server: 'a', tool: 'y' })
    ])
    assert.deepEqual(await activities.listFilterValues({}), {
      servers: ['a', 'b'],
      tools: ['x', 'y'],
      groups: ['g'],
      usernames: ['ann', 'bob'],
      keyNames: ['one']
    })
    assert.deepEqual(await activities.listFilterValues({ username: 'bob' }), {
      servers: ['a'],
      tools: ['x'],
      groups: [],
      usernames: ['bob'],
      keyNames: []
    })
    // From a time within an hour, and to one, only what was called then.
    assert.deepEqual(await activities.listFilterValues({ from: 2 }), {
      servers: ['a'],
      tools: ['x', 'y'],
      groups: [],
      usernames: ['bob'],
      keyNames: []
    })
    assert.deepEqual((await activities.listFilterValues({ from: 2, to: 3 })).tools, ['x'])
    assert.equal(await activities.removeBefore(3), 2)
    assert.deepEqual((await activities.list({}, 1, 10)).activities.map(({ timestamp }) => timestamp), [3])
    assert.equal(await activities.removeBefore(3), 0)
    await activities.append(Array.from({ length: 2_001 }, () => activity({ timestamp: 1 })))
    assert.equal(await activities.removeSomeBefore(2), 1_000, 'a step')
    assert.equal((await activities.stats({})).total, 1_002)
    assert.equal(await activities.removeBefore(2), 1_001)
    assert.equal((await activities.list({}, 1, 10)).total, 1)
    assert.deepEqual(
      [await activities.removeSomeBefore(2), await activities.removeSomeBefore(4), (await activities.stats({})).total], [0, 1, 0]
    )
    assert.deepEqual((await activities.listFilterValues({})).servers, [], 'of what is gone nothing is left to filter by')
  })

  record('calls are counted in spans of time, of whole hours and of minutes', async (activities) => {
    const hour = 3_600_000
    const from = 100 * hour
    await activities.append([
      activity({ timestamp: from - 1 }), activity({ timestamp: from, username: 'ann' }),
      activity({ timestamp: from + hour - 1, status: 'error' }),
      activity({ timestamp: from + hour, username: 'ann' }), activity({ timestamp: from + 3 * hour + 60_000 }), activity({ timestamp: from + 4 * hour })
    ])
    const none = { total: 0, errors: 0 }
    assert.deepEqual(await activities.series({}, { from, length: hour, count: 4 }), [
      { total: 2, errors: 1 }, { total: 1, errors: 0 }, none, { total: 1, errors: 0 }
    ])
    const long = await activities.series({}, { from, length: 2 * hour, count: 2 })
    assert.deepEqual(long, [{ total: 3, errors: 1 }, { total: 1, errors: 0 }])
    const ofAnn = await activities.series({ username: 'ann' }, { from, length: hour, count: 2 })
    assert.deepEqual(ofAnn, [{ total: 1, errors: 0 }, { total: 1, errors: 0 }])
    const later = await activities.series({ from: from + 1 }, { from, length: hour, count: 2 })
    assert.deepEqual(later, [{ total: 1, errors: 1 }, { total: 1, errors: 0 }])
    assert.deepEqual(await activities.series({}, { from: from + 3 * hour, length: 60_000, count: 2 }), [none, { total: 1, errors: 0 }])
    assert.deepEqual(await activities.series({ status: 'error' }, { from: 0, length: hour, count: 2 }), [none, none])
  })

  record('sums are those of the calls, whatever part of an hour is asked for', async (activities) => {
    const hour = 3_600_000
    const batch = Array.from({ length: 400 }, (_, n) =>
      activity({ timestamp: 1_000 * hour + n * 77_777, duration: n, status: n % 7 === 0 ? 'error' : 'success', server: n % 2 === 0 ? 'a' : 'b' })
    )
    await activities.append(batch)
    const start = 1_000 * hour
    for (const [from, to] of [
      [undefined, undefined], [start, start + hour], [start + 1, start + 5 * hour - 1],
      [start + 100_000, start + 300_000], [start + hour - 1, start + hour + 1], [start + 2 * hour + 7, undefined],
      [undefined, start + 3 * hour + 7], [start + 5, start + 4], [0, start + 100 * hour]
    ]) {
      for (const server of [undefined, 'a']) {
        const wanted = batch.filter((each) =>
          each.timestamp >= (from ?? 0) && each.timestamp < (to ?? Infinity) && (server === undefined || each.server === server)
        )
        const mean = wanted.length === 0 ? 0 : wanted.reduce((sum, { duration }) => sum + duration, 0) / wanted.length
        const { total, errors, duration } = await activities.stats({ from, to, server })
        assert.deepEqual([total, errors], [wanted.length, wanted.filter(({ status }) => status === 'error').length], `${from} to ${to}`)
        assert.ok(Math.abs(duration - mean) < 1e-6, `${duration} and not ${mean}`)
        assert.equal((await activities.list({ from, to, server }, 1, 1)).total, wanted.length)
      }
    }
  })

  record('beyond 10,000 the total is an estimate; a page holds 8 MiB of payloads, and an activity of its own has all', async (activities) => {
    await activities.append(Array.from({ length: 10_050 }, (_, n) => activity({ timestamp: n })))
    const { total, approximate, activities: found } = await activities.list({ server: 'files' }, 100, 100)
    assert.deepEqual([total > 10_000 && total < 20_000, approximate, found.length], [true, true, 100], String(total))
    assert.deepEqual(await activities.list({ server: 'none' }, 1, 1), { activities: [], total: 0, approximate: false })
    const output = 'x'.repeat(100 * 1024)
    const large = Array.from({ length: 100 }, (_, n) => activity({ timestamp: 20_000 - n, output }))
    await activities.append(large)
    const page = await activities.list({}, 1, 100)
    assert.deepEqual(ids(page.activities), ids(large))
    assert.equal(page.activities.filter((each) => each.output === output).length, 81)
    assert.equal((await activities.find(large.at(-1)?.id ?? ''))?.output, output)
  })

  // ---- the audit log ----------------------------------------------------------------------------

  it('audit entries are found as they were added, newest first, in pages, by filters; the oldest go', async ({ auditTrail }) => {
    assert.ok(auditTrail)
    const entry = (n: number, more: Partial<AuditEntry> = {}): AuditEntry => ({
      id: randomUUID(), timestamp: n, username: n % 2 === 0 ? 'ann' : odd, action: 'update', entity: 'server', name: `${odd} ${n}`, ...more
    })
    const all = [
      ...Array.from({ length: 8 }, (_, n) => entry(n)),
      entry(8, { action: 'create', entity: 'user', after: JSON.stringify({ name: odd }) }),
      entry(9, { action: 'delete', before: `{"x":"${odd}"}`, name: 'gone' })
    ]
    await auditTrail.append(all)
    await auditTrail.append(all.slice(3, 5))
    const newest = all.toReversed()
    assert.deepEqual(await auditTrail.list({}, 100), newest)
    assert.deepEqual(await auditTrail.list({}, 3, newest[3]?.id), newest.slice(4, 7))
    assert.equal(await auditTrail.list({}, 3, randomUUID()), undefined)
    assert.equal(await auditTrail.list({}, 3, 'x'), undefined)
    for (const filter of [{ username: odd }, { action: 'create' }, { entity: 'server' }, { name: 'gone' }] as const) {
      const [[key, value] = ['', '']] = Object.entries(filter)
      assert.deepEqual(await auditTrail.list(filter, 100), newest.filter((each) => each[key as 'name'] === value), key)
    }
    assert.deepEqual(await auditTrail.list({ from: 3, to: 5 }, 100), newest.filter(({ timestamp }) => timestamp === 3 || timestamp === 4))
    assert.deepEqual([await auditTrail.trim(10), await auditTrail.trim(4), await auditTrail.trim(4)], [0, 6, 0])
    assert.deepEqual(await auditTrail.list({}, 100), newest.slice(0, 4))
    await auditTrail.trim(0)
  })
}
