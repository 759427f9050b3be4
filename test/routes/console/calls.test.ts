// Recorded calls, which need a database: one in memory here.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { follow, openConsole, signedIn, streamOf } from '../../helpers/console.ts'
import type { Activities, Activity } from '../../../db/ports/activities.ts'
import type { Storage } from '../../../db/store.ts'

const call = (at: number, more: Partial<Activity> = {}): Activity => ({
  id: `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`,
  timestamp: Date.now() - at * 1_000,
  server: 's',
  tool: `tool${at}`,
  duration: at,
  status: 'success',
  username: 'alice',
  ...more
})
const calls = [
  call(1, { input: '{"a":1}', output: '<b>bold</b>' }), call(2, {
    status: 'error',
    refused: true,
    errorMessage: 'It failed <i>',
    policy: { id: 'p', name: 'Night', mode: 'enforce', decision: 'deny' },
    guards: [{ id: 'g', name: 'Cards', action: 'mask', found: ['card'] }],
    clientId: 'c',
    clientName: 'Dashboard'
  }),
  call(3, { username: 'admin' })
]

/** Calls in memory, filtered by user and status alone. */
const recorded = {
  list: async ({ username, status }, page, limit) => {
    const found = calls.filter((each) =>
      (username === undefined || each.username === username) && (status === undefined || each.status === status))
    return { activities: found.slice((page - 1) * limit, page * limit), total: found.length, approximate: false }
  },
  find: async (id) => calls.find((each) => each.id === id),
  listFilterValues: async () => ({ servers: ['s'], tools: [], groups: [], usernames: ['alice'], keyNames: [] }),
  stats: async () => ({ total: 1, errors: 0, duration: 1 }),
  series: async () => [{ total: 1, errors: 1 }],
  durationQuantile: async () => 42,
  lastUses: async () => new Map(),
  append: async () => {},
  removeBefore: async () => 0,
  removeSomeBefore: async () => 0
} satisfies Activities as Activities
const wrap = (opened: Storage): Storage => ({ ...opened, activities: recorded })

void test('calls are listed, shown in full, and compared; a user sees the own ones', async (t) => {
  const { app, browser } = await openConsole(t, {}, {}, { wrap })
  assert.match((await browser.get('/overview')).text, /42 ms/)
  const list = await browser.get('/calls')
  for (const each of calls) assert.match(list.text, new RegExp(each.tool))
  assert.match(list.text, /It failed &lt;i&gt;/)
  assert.doesNotMatch((await browser.get('/calls?status=error')).text, /tool1</)
  const one = await browser.get(`/calls/${calls[0]?.id ?? ''}`)
  assert.match(one.text, /&lt;b&gt;bold/)
  assert.match(list.text, /tool2[^§]*?Refused[^§]*?It failed/)
  const refused = (await browser.get(`/calls/${calls[1]?.id ?? ''}`)).text
  for (const fact of ['Refused', 'Night denies', 'Cards: card (mask)', 'Dashboard']) assert.ok(refused.includes(fact), fact)
  const none = await browser.get('/calls/none')
  assert.equal(none.status, 404)
  assert.match(none.text, /href="\/console\/calls">Go to Calls</)
  assert.match(none.text, /There is no call|[Cc]all: &quot;none/)
  assert.doesNotMatch(none.text, /activity:/)
  const two = await browser.get(`/calls/compare?id=${calls[0]?.id ?? ''}&id=${calls[1]?.id ?? ''}`)
  assert.match(two.text, /tool1.*tool2/s)
  const user = await signedIn(app, 'alice')
  assert.doesNotMatch((await user.get('/calls')).text, /tool3/)
  assert.equal((await user.get(`/calls/${calls[2]?.id ?? ''}`)).status, 404)
})

void test('an open page is told of calls that its filters let through, and that the caller may see', async (t) => {
  const { app, browser } = await openConsole(t, {}, {}, { wrap })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => { calls.splice(3) })
  const [all, failed, hers] = await Promise.all((['admin', 'admin?status=error', 'alice'] as const).map(async (each) => {
    const [username = '', query] = each.split('?')
    const reader = await signedIn(app, username)
    const followed = await follow(t, reader, `${url}${streamOf(await reader.get(`/calls${query === undefined ? '' : `?${query}`}`))}`)
    await followed.told('hello')
    return followed
  }))
  assert.ok(all && failed && hers)
  calls.push(call(4, { username: 'admin' }))
  await all.told('changed')
  for (const { stream } of [failed, hers]) assert.doesNotMatch(stream.body, /changed/)
  calls.push(call(5, { status: 'error' }))
  await Promise.all([failed.told('changed'), hers.told('changed')])
  assert.match((await browser.get('/calls')).text, /data-live-stream/)
  for (const query of ['?page=2', '?endDate=2020-01-01']) {
    assert.doesNotMatch((await browser.get(`/calls${query}`)).text, /data-live-stream/, `${query}: nothing new comes there`)
  }
})
