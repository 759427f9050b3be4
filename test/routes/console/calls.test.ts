// Recorded calls, which need a database: one in memory here.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { appFor } from '../../helpers/app.ts'
import { Browser } from '../../helpers/console.ts'
import { admin, alice } from '../../helpers/doors.ts'
import { until } from '../../helpers/hub.ts'
import type { Activities, Activity } from '../../../db/ports/activities.ts'

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

void test('calls are listed, shown in full, and compared; a user sees the own ones', async (t) => {
  const app = await appFor(t, { users: [admin, alice] }, {}, { wrap: (opened) => ({ ...opened, activities: recorded }) })
  const browser = new Browser(app)
  await browser.signIn('admin')
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
  const user = new Browser(app)
  await user.signIn('alice')
  assert.doesNotMatch((await user.get('/calls')).text, /tool3/)
  assert.equal((await user.get(`/calls/${calls[2]?.id ?? ''}`)).status, 404)
})

void test('an open page is told of calls that its filters let through, and that the caller may see', async (t) => {
  const app = await appFor(t, { users: [admin, alice] }, {}, { wrap: (opened) => ({ ...opened, activities: recorded }) })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => { calls.splice(3) })
  const heard = new Map<string, string>()
  const controller = new AbortController()
  t.after(() => { controller.abort() })
  const follow = async (username: string, query: string): Promise<void> => {
    const browser = new Browser(app)
    await browser.signIn(username)
    const { text } = await browser.get(`/calls${query}`)
    const address = /data-live-stream="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const { body } = await fetch(`${url}${address}`, { headers: { cookie }, signal: controller.signal })
    const name = `${username}${query}`
    heard.set(name, '')
    void (async () => {
      for await (const part of body ?? []) heard.set(name, `${heard.get(name) ?? ''}${Buffer.from(part).toString()}`)
    })().catch(() => {})
  }
  for (const [username, query] of [['admin', ''], ['admin', '?status=error'], ['alice', '']] as const) await follow(username, query)
  const isTold = (name: string): boolean => heard.get(name)?.includes('event: changed') ?? false
  await until(() => [...heard.values()].every((text) => text.includes('event: hello')))
  calls.push(call(4, { username: 'admin' }))
  await until(() => isTold('admin'))
  assert.deepEqual(['admin?status=error', 'alice'].map(isTold), [false, false])
  calls.push(call(5, { status: 'error' }))
  await until(() => isTold('admin?status=error') && isTold('alice'))
  const browser = new Browser(app)
  await browser.signIn('admin')
  assert.match((await browser.get('/calls')).text, /data-live-stream/)
  for (const query of ['?page=2', '?endDate=2020-01-01']) {
    assert.doesNotMatch((await browser.get(`/calls${query}`)).text, /data-live-stream/, `${query}: nothing new comes there`)
  }
})
