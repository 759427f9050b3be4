// What the servers and connections of one owner may take, and what the log tells of a server.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test } from 'tap'
import { holdClock, mockTimers } from '../helpers/clock.ts'
import { NonMcpClient } from '../../protocol/exchange.ts'
import type { Catalogue, Item } from '../../protocol/lists.ts'
import { CatalogueShares, fitCatalogue, catalogueSize } from '../../plugins/upstream/catalogues/shares.ts'
import type { Link } from '../../plugins/upstream/links/link.ts'
import { gatewayLinkKey } from '../../plugins/upstream/links/link-key.ts'
import { ChildCounts, SlotPool } from '../../plugins/upstream/links/pool.ts'
import type { Slot } from '../../plugins/upstream/links/slot.ts'
import { StatusLog } from '../../plugins/upstream/status-log.ts'
import { baseLimits } from '../../plugins/base/limits/limits.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'

type PoolOptions = ConstructorParameters<typeof SlotPool>[0]
const poolOf = (more: Partial<PoolOptions> = {}): SlotPool =>
  new SlotPool({ isProcess: false, children: new ChildCounts(), idleTimeout: 60_000, server: 'one', base: gatewayLinkKey, ...more })
/** A slot for a session of an owner. @param id another session's is another slot */
const takeFor = (pool: SlotPool, owner: string, id: string | number = pool.all.length): Slot =>
  pool.take({ key: `session ${id}`, affinity: 'session', capabilityClass: '{}' }, new NonMcpClient(`${owner} ${id}`, owner, owner, true, owner))

test('what the log tells of a server: its failure once, a summary now and then, and its recovery', async (t) => {
  mockTimers(t, 'Date', 'setTimeout')
  mock.timers.setTime(Date.parse('2026-01-01T00:00:00Z'))
  const { summary, healthy } = baseLimits.outages
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
  assert.deepEqual(told(), ['warn not connected again, 5 s after the recovery: it closed its output'])
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
  assert.equal(shares.remainingSize('a', undefined), Infinity, 'an admin has none')
  shares.setHeldSize('a', 'ann', upstreamLimits.cataloguesPerUser - 300)
  assert.equal(shares.remainingSize('a', 'ann'), upstreamLimits.cataloguesPerUser, 'its own size does not count against a server')
  assert.equal(shares.remainingSize('b', 'ann'), 300)
  assert.equal(shares.remainingSize('b', 'bob'), upstreamLimits.cataloguesPerUser)
  const item = (key: string): Item => ({ key, text: 'x'.repeat(100) })
  const empty = { prompts: [], resources: [], resourceTemplates: [], skills: [], events: [] }
  const catalogue = { lists: { tools: ['a', 'b', 'c', 'd', 'e'].map(item), ...empty }, instructions: undefined } as unknown as Catalogue
  const warnings: string[] = []
  const kept = fitCatalogue(catalogue, shares.remainingSize('b', 'ann'), (sentence) => { warnings.push(sentence) })
  assert.deepEqual([kept.lists.tools.map(({ key }) => key), warnings.length], [['a', 'b', 'c'], 1])
  assert.equal(fitCatalogue(catalogue, Infinity, assert.fail), catalogue)
  const wide = { lists: { tools: [{ key: 'a', text: 'ж'.repeat(100) }, item('b')], ...empty }, instructions: 'ж'.repeat(50) }
  const narrow = fitCatalogue(wide as unknown as Catalogue, 300, () => {})
  assert.deepEqual([catalogueSize(wide as unknown as Catalogue), narrow.lists.tools.length], [400, 1], 'in bytes of memory')
  shares.setHeldSize('a', 'ann', 0)
  assert.equal(shares.remainingSize('b', 'ann'), upstreamLimits.cataloguesPerUser)
})

test('how often one owner causes processes to be started has a bound', async (t) => {
  const clock = holdClock(t)
  const children = new ChildCounts()
  const [one, other] = [poolOf({ isProcess: true, children }), poolOf({ isProcess: true, children, server: 'other' })]
  const { burst, interval } = upstreamLimits.childStarts
  for (let n = 0; n < burst; n++) takeFor(n % 2 === 0 ? one : other, 'ann', n)
  const isFaster = { reason: 'share', message: /You start processes of server "one" faster than one caller may/ }
  assert.throws(() => takeFor(one, 'ann', 100), isFaster)
  assert.ok(one.all.length === 1 + upstreamLimits.childrenPerOwner, 'an idle one stays')
  takeFor(one, 'ben', 101)
  clock.at += interval
  takeFor(one, 'ann', 102)
  assert.throws(() => takeFor(one, 'ann', 103), /faster/)
  assert.equal(takeFor(one, 'ann', 102), one.all.at(-1), 'what is there is used')
})

test('an owner who has all of his connections in use is told that it is his share, all others that it is the bound', async () => {
  const { linksPerServer } = upstreamLimits
  const pool = poolOf()
  // As while a call runs.
  const take = (owner: string): Slot => Object.defineProperty(takeFor(pool, owner), 'isIdle', { value: false })
  while (pool.all.length < linksPerServer * 3 / 4) take('ann')
  assert.throws(() => take('ann'), { reason: 'share', message: /^You have reached your limit of connections to server "one"/ })
  for (let n = 0; pool.all.length < linksPerServer; n++) take(`other ${n}`)
  assert.throws(() => take('ben'), { reason: 'limit', message: /all in use/ })
})

test('an idle place without a connection gives way before an idle connection', async () => {
  const pool = poolOf({ isProcess: true })
  const take = (lastUsed: number | undefined): Slot => {
    const slot = takeFor(pool, 'ann')
    if (lastUsed !== undefined) slot.link = { busy: false, lastUsed, openCalls: [], close: async () => {} } as unknown as Link
    return slot
  }
  const empty = take(undefined)
  const open = Array.from({ length: upstreamLimits.childrenPerOwner - 1 }, (_, n) => take(n + 1))
  take(undefined)
  assert.deepEqual([empty.hasEnded, open.filter(({ hasEnded }) => hasEnded).length], [true, 0])
})

test('where an owner has all of his connections in use, the one whose question was left unanswered for longest gives way', async (t) => {
  mockTimers(t, 'Date')
  const pool = poolOf()
  const ended: string[] = []
  /** With calls that wait for answers to questions, each since a time; undefined: it does not wait. */
  const take = (owner: string, ...asked: Array<number | undefined>): void => {
    const slot = takeFor(pool, owner, `${pool.all.length} ${ended.length}`)
    const openCalls = asked.map((awaitingClientSince) => ({
      awaitingClientSince,
      cancel: ({ message }: Error) => { ended.push(`${owner} ${awaitingClientSince}: ${message}`) }
    }))
    slot.link = { busy: true, lastUsed: 0, openCalls, close: async () => {} } as unknown as Link
  }
  const share = upstreamLimits.linksPerServer * 3 / 4
  const { leftUnanswered } = upstreamLimits
  take('ann', 5_000)
  take('ann', 1_000, 3_000)
  take('ann', 500, undefined)
  while (pool.all.length < share) take('ann', undefined)
  mock.timers.setTime(leftUnanswered + 2_000)
  assert.throws(() => { take('ann', undefined) }, { reason: 'share' }, 'its last question was put a moment ago')
  mock.timers.setTime(leftUnanswered + 3_000)
  take('ann', undefined)
  assert.equal(ended.length, 2, ended.join())
  assert.match(ended[0] ?? '', /^ann 1000: its request was not answered, and its connection was needed for other calls/)
  mock.timers.setTime(leftUnanswered + 6_000)
  take('ann', undefined)
  assert.match(ended[2] ?? '', /^ann 5000: /)
  assert.throws(() => { take('ann', undefined) }, { reason: 'share' }, 'a connection with a call that works stays')
})

test('how often lists are read again has a bound for each user, and for each server of an admin', async (t) => {
  const clock = holdClock(t)
  const { burst, perSecond } = upstreamLimits.catalogueReads
  const shares = new CatalogueShares()
  shares.recordRead('a', 'ann', burst)
  assert.equal(shares.waitTime('a', 'ann'), 0)
  shares.recordRead('b', 'ann', 3 * perSecond)
  assert.deepEqual([shares.waitTime('a', 'ann'), shares.waitTime('a', 'bob'), shares.waitTime('a', undefined)], [3_000, 0, 0])
  shares.recordRead('a', undefined, burst + perSecond)
  assert.deepEqual([shares.waitTime('a', undefined), shares.waitTime('b', undefined)], [1_000, 0])
  clock.at += 2_000
  assert.deepEqual([shares.waitTime('a', 'ann'), shares.waitTime('a', undefined)], [1_000, 0])
})
