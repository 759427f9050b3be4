// The record of calls: what is recorded of a call, who sees it, and what happens while the database is slow. On PostgreSQL; PGlite has the
// same port (test/integration/ports.test.ts).
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test } from 'tap'
import { sql } from 'drizzle-orm'
import type { Activity } from '../../db/ports/activities.ts'
import { filterValuesStatement, activitySumsStatement, intervalCountsStatement } from '../../db/postgres/ports/activity-sums.ts'
import { activityCountStatement, activityPageStatement } from '../../db/postgres/ports/activities.ts'
import { truncateBytes } from '../../plugins/extensions/activities/describe.ts'
import { ActivityRecorder, type RecorderDeps } from '../../plugins/extensions/activities/recorder.ts'
import type { FinishedCall } from '../../plugins/gateway/hooks.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { loggedIn, manage, managed, startReplica } from '../fakes/replica.ts'
import { driverOf } from '../fakes/store-ports.ts'
import { at, connected, KEY, Session, settings, type Json } from '../helpers/client.ts'
import { mockTimers } from '../helpers/clock.ts'
import { database } from '../helpers/database.ts'
import { startHub, until, type Hub } from '../helpers/hub.ts'

const SECRET = 'canary-of-the-echo-server-1'
const ADA = `thk_${'c'.repeat(64)}`
const adaKey = { id: '33333333-3333-4333-8333-333333333333', name: 'ada\'s laptop', token: ADA, kind: 'user', owner: 'ada', enabled: true }
const ids = { group: '55555555-5555-4555-8555-555555555555', test: '11111111-1111-4111-8111-111111111111' }

/** Activities, once as many as expected are there. */
async function list (hub: Hub, query: string, count: number, headers?: Record<string, string>): Promise<Json[]> {
  let body: unknown
  await until(async () => {
    ({ body } = await manage(hub, 'GET', `/activities?${query}`, undefined, headers))
    return (at(body, 'data') as Json[]).length >= count
  }, () => JSON.stringify(body).slice(0, 2_000))
  return at(body, 'data') as Json[]
}

test('a text is cut at a number of bytes, between characters', async () => {
  for (const [text, max, wanted] of [
    ['', 3, ''], ['abc', 3, 'abc'], ['abcd', 3, 'abc'], ['aä', 2, 'a'], ['aä', 3, 'aä'], ['€€', 5, '€'],
    ['😀😀', 7, '😀'], ['😀', 3, ''], ['a\ud800b', 9, 'a\ufffdb']
  ] as const) assert.equal(truncateBytes(text, max), wanted, `${text} at ${max}`)
})

test('the recorder', async (t) => {
  const call = (length = 0): FinishedCall => ({ exchange: { paramsText: '' }, output: 'x'.repeat(length) }) as unknown as FinishedCall
  let made = 0
  const describe = ({ output }: FinishedCall): Activity => ({ id: String(made++), output }) as unknown as Activity
  const recorder = (more: Partial<RecorderDeps>): { recorder: ActivityRecorder, logged: string[] } => {
    const logged: string[] = []
    return {
      logged,
      recorder: new ActivityRecorder({
        store: { append: async () => {} },
        describe,
        isStorageAway: () => false,
        bounds: { entries: 100, size: 1_000_000 },
        log: (level, sentence) => { logged.push(`${level}: ${sentence}`) },
        ...more
      })
    }
  }
  const turns = async (): Promise<void> => { for (let n = 0; n < 20; n++) await new Promise((resolve) => { setImmediate(resolve) }) }

  await t.test('describes a call after it was answered, and writes it when it closes', async () => {
    const batches: Array<readonly Activity[]> = []
    const { recorder: it } = recorder({ store: { append: async (batch) => { batches.push(batch) } } })
    const before = made
    it.record(call())
    assert.equal(made, before, 'nothing is done while the caller waits')
    await it.close(1_000)
    assert.deepEqual([batches.map(({ length }) => length), it.writtenCount, it.shedCount, it.waitingCount], [[1], 1, 0, 0])
    it.record(call())
    assert.equal(it.shedCount, 1, 'it takes nothing more')
  })

  await t.test('sheds and counts what is beyond its bounds, in number and size', async () => {
    const append = async (): Promise<void> => await new Promise(() => {})
    const { recorder: many } = recorder({ store: { append } })
    for (let n = 0; n < 130; n++) many.record(call())
    await turns()
    for (let n = 0; n < 20; n++) many.record(call())
    assert.deepEqual([many.waitingCount, many.shedCount], [100, 50])
    const { recorder: large } = recorder({ store: { append } })
    for (let n = 0; n < 5; n++) large.record(call(400_000))
    assert.deepEqual([large.waitingCount, large.shedCount], [3, 2])
    await turns()
    large.record(call(1))
    assert.deepEqual([large.waitingCount, large.shedCount], [3, 3])
    const { recorder: wide } = recorder({ store: { append } })
    for (let n = 0; n < 5; n++) wide.record({ exchange: { paramsText: 'ж'.repeat(200_000) }, output: 'x'.repeat(200_000) } as unknown as FinishedCall)
    assert.deepEqual([wide.waitingCount, wide.shedCount], [2, 3], 'in bytes of memory')
    await wide.close(10)
    await large.close(10)
    assert.deepEqual([large.waitingCount, large.shedCount], [0, 6], 'what the database did not take in time')
  })

  await t.test('keeps what could not be written until it can; says so once', async () => {
    let isAway = true
    const seen = new Set<string>()
    const { recorder: it, logged } = recorder({
      isStorageAway: () => isAway,
      store: {
        append: async (batch) => {
          if (isAway) throw new Error('away')
          for (const { id } of batch) seen.add(id)
        }
      }
    })
    for (let n = 0; n < 10; n++) it.record(call())
    await until(() => logged.length === 1)
    assert.deepEqual([it.waitingCount, it.shedCount], [10, 0])
    isAway = false
    await until(() => it.writtenCount === 10)
    assert.deepEqual([seen.size, it.waitingCount], [10, 0])
    assert.deepEqual(logged, ['warn: calls cannot be recorded now: away', 'info: calls are recorded again; 0 were not recorded since the start'])
    await it.close(1_000)
  })

  await t.test('what the database refuses is tried five times, then shed, and says so', async (t) => {
    mockTimers(t, 'setTimeout')
    let tries = 0
    const { recorder: it, logged } = recorder({ store: { append: async () => { tries++; throw new Error('refused') } } })
    it.record(call())
    while (it.shedCount === 0) {
      await turns()
      mock.timers.tick(5_000)
    }
    assert.deepEqual([tries, it.shedCount, it.waitingCount], [5, 1, 0])
    assert.deepEqual(logged.at(-1), 'warn: 1 calls were not recorded: the database rejected them')
  })

  await t.test('a description that fails is shed, and harms no other', async () => {
    const { recorder: it } = recorder({ describe: (each) => { if (each.output === 'x') throw new Error('odd'); return describe(each) } })
    for (const length of [0, 1, 0]) it.record(call(length))
    await it.close(1_000)
    assert.deepEqual([it.writtenCount, it.shedCount], [2, 1])
  })
})

test('with a settings file there is no record', async (t) => {
  const hub = await startHub(t, { settings: settings({}) })
  assert.deepEqual(await managed(hub, 'GET', '/activities/available'), { available: false })
  assert.equal((await manage(hub, 'GET', '/activities?limit=0')).status, 404, 'before what the query says')
})

test('on PostgreSQL', async (t) => {
  const { url, query } = await database(t)
  const upstream = await startUpstream(t, {
    tools: [tool('echo'), tool('leak'), tool('fails')],
    prompts: [{ name: 'greet' }],
    resources: [{ uri: 'test://one', name: 'one' }],
    on: ({ method, params }) => {
      if (method === 'prompts/get') return { messages: [] }
      if (method === 'resources/read') return { contents: [] }
      if (method !== 'tools/call') return undefined
      if (params.name === 'leak') return { content: [{ type: 'text', text: `it is ${SECRET}, truly` }] }
      if (params.name === 'fails') return { content: [{ type: 'text', text: `broken, with ${SECRET}` }], isError: true }
      return undefined
    }
  })
  const config = { url: upstream.url, headers: { 'x-key': SECRET }, visibility: 'public' }
  const given = settings({ echo: config })
  const options = {
    settings: {
      ...given,
      users: [
        { username: 'admin', password: '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234', isAdmin: true },
        { username: 'ada', password: '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234', isAdmin: false }
      ],
      groups: [{ id: ids.group, name: 'team', servers: ['echo'], owner: 'admin' }],
      bearerKeys: [...given.bearerKeys as Json[], adaKey]
    }
  }
  const hub = await startReplica(t, url, options)
  await connected(hub, 1)
  // A public server of a settings file is private in the database it is imported to.
  await managed(hub, 'PUT', '/servers/echo', { config })
  await managed(hub, 'POST', '/users', { username: 'ben', password: 'Ben-has-1-too' })
  await managed(hub, 'PUT', '/users/ada', { newPassword: 'Ada-has-1-too' })
  const ada = await loggedIn(hub, 'ada', 'Ada-has-1-too')
  const ben = await loggedIn(hub, 'ben', 'Ben-has-1-too')

  await t.test('a call over MCP, with all that is known of it', async () => {
    assert.deepEqual(await managed(hub, 'GET', '/activities/available'), { available: true })
    const before = Date.now()
    const session = await Session.open(`${hub.url}/mcp/team`, { key: ADA })
    await session.call('echo-echo', { message: 'hi 😀', n: 12345678901234567890n.toString() })
    const [row] = await list(hub, 'tool=echo', 1)
    const { id, timestamp, duration, sourceIp, ...rest } = row ?? {}
    assert.match(String(id), /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
    assert.ok(Date.parse(String(timestamp)) >= before - 1 && Date.parse(String(timestamp)) <= Date.now())
    assert.ok(Number(duration) > 0)
    assert.match(String(sourceIp), /127\.0\.0\.1$/)
    const { input, output, ...fields } = rest
    assert.deepEqual(JSON.parse(String(input)), { message: 'hi 😀', n: '12345678901234567890' })
    assert.deepEqual(at(JSON.parse(String(output)), 'content', '0', 'text'), 'hi 😀')
    assert.deepEqual(fields, {
      server: 'echo', tool: 'echo', status: 'success', group: 'team', username: 'ada', keyId: adaKey.id, keyName: adaKey.name
    })
    assert.deepEqual(await managed(hub, 'GET', `/activities/${String(id)}`), row)
  })

  await t.test('over REST and the open routes, prompts and resources', async () => {
    await managed(hub, 'POST', '/tools/call/echo', { toolName: 'echo', arguments: { message: 'rest' } })
    assert.equal((await fetch(`${hub.url}/api/tools/echo/echo?message=open`)).status, 200)
    const session = await Session.open(`${hub.url}/mcp/echo`)
    await session.request('prompts/get', { name: 'greet' })
    await session.request('resources/read', { uri: 'test://one' })
    await session.request('tools/list', {})
    const rows = await list(hub, '', 5)
    const said = rows.map(({ tool, username, keyName, input }) => [tool, username, keyName, input]).sort()
    assert.deepEqual(said.filter(([tool, username]) => tool !== 'echo' || username !== 'ada'), [
      ['echo', 'system', 'test', '{"message":"rest"}'], ['echo', undefined, undefined, '{"message":"open"}'],
      ['prompts/get', 'system', 'test', '{"name":"greet"}'],
      ['resources/read', 'system', 'test', '{"uri":"test://one"}']
    ].sort())
    assert.equal(rows.length, 5, 'a list is no call')
  })

  await t.test('errors: of a tool, of its server, of the gateway; no secret of a config', async () => {
    const session = await Session.open(`${hub.url}/mcp/echo`)
    await session.call('leak', {})
    await session.call('fails', {})
    const rows = await list(hub, 'status=error', 1)
    assert.deepEqual(rows.map(({ tool, errorMessage }) => [tool, errorMessage]), [['fails', 'broken, with ••••er-1']])
    const [leak] = await list(hub, 'tool=leak', 1)
    assert.equal(at(JSON.parse(String(leak?.output)), 'content', '0', 'text'), 'it is ••••er-1, truly')
    assert.ok(!JSON.stringify(await query('SELECT * FROM activities')).includes(SECRET), 'not in the table either')
  })

  await t.test('what is large is cut', async () => {
    const session = await Session.open(`${hub.url}/mcp/echo`)
    const message = '€'.repeat(50_000)
    await session.call('echo', { message })
    const [row] = await list(hub, '', 8)
    for (const text of [String(row?.input), String(row?.output)]) {
      const { length } = Buffer.from(text)
      assert.ok(length <= 100 * 1024 && length > 100 * 1024 - 4, String(length))
      assert.ok(text.endsWith('€'))
    }
  })

  await t.test('filters, pages, sums, and values to filter by', async () => {
    const totals = async (query: string): Promise<unknown> => at((await manage(hub, 'GET', `/activities?${query}`)).body, 'pagination', 'total')
    assert.deepEqual(
      await Promise.all([
        '', 'server=echo', 'server=none', 'tool=echo', 'status=error', 'group=team', 'username=ada', `keyId=${ids.test}`, 'keyName=test',
        'keyName=test&status=error', 'startDate=2000-01-01&endDate=2100-01-01', 'endDate=2000-01-01', 'startDate=2100-01-01T00:00:00Z'
      ].map(totals)),
      [8, 8, 0, 4, 1, 1, 1, 6, 6, 1, 8, 0, 0]
    )
    const pages = await Promise.all([1, 2, 3].map(async (page) => (await manage(hub, 'GET', `/activities?limit=3&page=${page}`)).body))
    assert.deepEqual(at(pages[0], 'pagination'), { page: 1, limit: 3, total: 8, totalPages: 3 })
    const all = pages.flatMap((page) => at(page, 'data') as Json[])
    assert.deepEqual([all.length, new Set(all.map(({ id }) => id)).size], [8, 8])
    const { avgDuration, ...stats } = await managed(hub, 'GET', '/activities/stats')
    assert.deepEqual(stats, { totalCalls: 8, successCount: 7, errorCount: 1 })
    assert.ok(Number(avgDuration) > 0)
    assert.equal((await managed(hub, 'GET', '/activities/stats?tool=echo')).totalCalls, 4)
    assert.deepEqual(await managed(hub, 'GET', '/activities/filters'), {
      servers: ['echo'],
      tools: ['echo', 'fails', 'leak', 'prompts/get', 'resources/read'],
      groups: ['team'],
      usernames: ['ada', 'system'],
      keyNames: ['ada\'s laptop', 'test']
    })
    for (const query of ['limit=0', 'limit=101', 'page=0', 'page=1001&limit=101', 'page=2000&limit=100', 'status=odd', 'startDate=yesterday', 'endDate=2026-13-01', 'startDate=2026-02-30', 'servers=echo']) {
      assert.equal((await manage(hub, 'GET', `/activities?${query}`)).status, 400, query)
    }
    for (const path of ['stats?servers=echo', 'stats?endDate=2025-02-29T00:00:00Z', 'filters?server=echo']) {
      assert.equal((await manage(hub, 'GET', `/activities/${path}`)).status, 400, path)
    }
  })

  await t.test('users see their own', async () => {
    const own = await list(hub, '', 1, ada)
    assert.deepEqual(own.map(({ username }) => username), ['ada'])
    assert.deepEqual([(await list(hub, 'username=system', 0, ada)).length, (await list(hub, '', 0, ben)).length], [0, 0])
    assert.equal((await managed(hub, 'GET', '/activities/stats', undefined, ada)).totalCalls, 1)
    assert.equal((await managed(hub, 'GET', '/activities/stats?username=system', undefined, ada)).totalCalls, 0)
    assert.deepEqual(
      await managed(hub, 'GET', '/activities/filters', undefined, ada),
      { servers: ['echo'], tools: ['echo'], groups: ['team'], usernames: ['ada'], keyNames: [adaKey.name] }
    )
    const [other] = await list(hub, 'username=system', 1)
    const path = `/activities/${String(other?.id)}`
    assert.deepEqual(
      [(await manage(hub, 'GET', path)).status, (await manage(hub, 'GET', path, undefined, ada)).status],
      [200, 404]
    )
    const unknown = await manage(hub, 'GET', '/activities/019e0b6e-53a1-7d8c-8b3f-0a9d0d6c1f42', undefined, ada)
    const named = unknown.text.replace('019e0b6e-53a1-7d8c-8b3f-0a9d0d6c1f42', String(other?.id))
    assert.equal((await manage(hub, 'GET', path, undefined, ada)).text, named)
    assert.equal((await manage(hub, 'GET', `/activities/${String(own[0]?.id)}`, undefined, ada)).status, 200)
    for (const headers of [ada, ben]) assert.equal((await manage(hub, 'DELETE', '/activities/cleanup', undefined, headers)).status, 403)
    assert.equal((await manage(hub, 'GET', '/activities', undefined, {})).status, 401)
  })

  await t.test('a later account of the same name does not see them', async () => {
    for (const query of ['_=1', `token=${ada['x-auth-token']}`]) await list(hub, query, 1, ada)
    for (const query of ['sourceIp=none', 'id=x']) assert.equal((await manage(hub, 'GET', `/activities?${query}`, undefined, ada)).status, 400)
    await managed(hub, 'DELETE', '/users/ada')
    await managed(hub, 'POST', '/users', { username: 'ada', password: 'Ada-has-1-too' })
    const later = await loggedIn(hub, 'ada', 'Ada-has-1-too')
    assert.equal((await list(hub, '', 0, later)).length, 0)
    assert.equal((await managed(hub, 'GET', '/activities/stats', undefined, later)).totalCalls, 0)
    const [former] = await list(hub, 'username=ada', 1)
    assert.equal((await manage(hub, 'GET', `/activities/${String(former?.id)}`, undefined, later)).status, 404)
  })

  await t.test('the metrics count them', async () => {
    const text = await (await fetch(`${hub.url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })).text()
    assert.match(text, /^toolhub_activities_written_total 8$/m)
    assert.match(text, /^toolhub_activities_shed_total 0$/m)
  })

  await t.test('cleanup; what is there when the process ends is written; payloads may stay out', async () => {
    for (const query of ['days=0', 'daysOld=0&x=1', 'daysold=0']) {
      const { status, body } = await manage(hub, 'DELETE', `/activities/cleanup?${query}`)
      assert.equal(status, 400, query)
      assert.match(JSON.stringify(body), /is not known; (?:there is|did you mean)/)
    }
    assert.deepEqual(await managed(hub, 'DELETE', '/activities/cleanup'), { deletedCount: 0 })
    assert.deepEqual(await managed(hub, 'DELETE', '/activities/cleanup?daysOld=0'), { deletedCount: 8 })
    const session = await Session.open(`${hub.url}/mcp/echo`)
    await session.call('echo', { message: `my key is ${KEY}` })
    await hub.stop()
    // What looks like a credential of the gateway is not kept.
    const [sealed] = await query<{ sealed: string }>('SELECT * FROM activities')
    assert.match(sealed?.sealed ?? '', /^v1\.[0-9a-f]{8}\./)
    assert.ok(!/thk_|my key/.test(JSON.stringify(sealed)), 'what calls say is sealed')

    const again = await startReplica(t, url, { ...options, env: { ACTIVITY_PAYLOADS: 'false' } })
    await connected(again, 1)
    assert.deepEqual((await list(again, '', 1)).map(({ input }) => input), ['{"message":"my key is thk_••••"}'])
    const next = await Session.open(`${again.url}/mcp/echo`)
    await next.call('fails', { message: 'not to be kept' })
    const [row] = await list(again, 'status=error', 1)
    assert.deepEqual([row?.input, row?.output, row?.errorMessage], [undefined, undefined, 'The tool failed'])
    await again.stop()

    // What is older than it is kept goes at the start, and then each minute; kept for no time, nothing is recorded.
    await query("UPDATE activities SET timestamp = timestamp - 86400000 * 31::bigint WHERE tool = 'echo'")
    const third = await startReplica(t, url, options)
    await until(async () => (await query('SELECT 1 FROM activities')).length === 1)
    await third.stop()
    const off = await startReplica(t, url, { ...options, env: { ACTIVITY_RETENTION: '0' } })
    assert.deepEqual(await managed(off, 'GET', '/activities/available'), { available: false })
    const refused = await manage(off, 'GET', '/activities')
    assert.deepEqual([refused.status, at(refused.body, 'message')], [404, 'Calls are not recorded: ACTIVITY_RETENTION is 0'])
    await until(async () => (await query('SELECT 1 FROM activities')).length === 0)
  })

  await t.test('the audit log is that of all replicas, with filters', async (t) => {
    const [a, b] = [await startReplica(t, url, options), await startReplica(t, url, options)]
    await managed(a, 'POST', '/groups', { name: 'one', servers: [] })
    await managed(b, 'POST', '/groups', { name: 'two', servers: [] })
    await managed(b, 'PUT', '/system-config', { nameSeparator: '_' })
    const entries = async (hub: Hub, query: string): Promise<unknown[]> =>
      ((await managed(hub, 'GET', `/audit?${query}`)) as unknown as Json[]).map(({ action, entity, name }) => `${action} ${entity} ${name}`)
    const newest = ['update systemConfig systemConfig', 'create group two', 'create group one']
    // The replica that has changed something last is asked first: it waits for what it has not written yet.
    for (const hub of [b, a]) assert.deepEqual(await entries(hub, 'limit=3'), newest)
    for (const [query, wanted] of [
      ['entity=group', newest.slice(1)],
      ['entity=activities', ['delete activities activities', 'delete activities activities']],
      ['action=delete', [...Array<string>(2).fill('delete activities activities'), 'delete key ada\'s laptop', 'delete user ada']],
      ['entity=user&action=create', ['create user ada', 'create user ben']]
    ] as const) assert.deepEqual(await entries(a, query), wanted, query)
    for (const query of ['entity=odd', 'startDate=odd', 'cursor=odd']) assert.equal((await manage(a, 'GET', `/audit?${query}`)).status, 400)
  })
})

test('among 100,000 calls, pages, filters and sums are found by an index', async (t) => {
  const { url, query } = await database(t)
  const driver = await driverOf(t, url)
  await query(`INSERT INTO activities (id, timestamp, server, tool, duration, status, "group", username, key_id, key_name, sealed)
    SELECT gen_random_uuid(), 1790000000000 + n * 1000, 's' || n % 50, 't' || n % 500, 1, CASE WHEN n % 50 = 0 THEN 'error' ELSE 'success' END,
      CASE WHEN n % 10 = 0 THEN 'g' || n % 30 END, 'u' || n % 100, CASE WHEN n % 2 = 0 THEN 'k' || n % 200 END,
      CASE WHEN n % 2 = 0 THEN 'name ' || n % 200 END, repeat('x', 200)
    FROM generate_series(1, 100000) AS n`)
  await query('VACUUM ANALYZE activities')
  const planOf = async (select: Parameters<typeof sql>[1]): Promise<string> => {
    const rows = await driver.db.execute(sql`explain (costs off) ${select}`)
    return [...rows as unknown as Iterable<Record<string, string>>].map((row) => row['QUERY PLAN']).join('\n')
  }
  for (const [filter, index] of [
    [{}, 'activities_timestamp'],
    [{ server: 's7' }, 'activities_server'],
    [{ tool: 't77' }, 'activities_tool'],
    [{ server: 's27', tool: 't77' }, 'activities_tool'],
    [{ status: 'error' }, 'activities_errors'],
    [{ server: 's7', status: 'error' }, 'activities_errors_server'],
    [{ tool: 't77', status: 'error' }, 'activities_errors_tool'],
    [{ username: 'u33', status: 'error' }, 'activities_errors_username'],
    [{ keyName: 'name 20', status: 'error' }, 'activities_errors_key_name'],
    [{ status: 'success' }, 'activities_timestamp'],
    [{ group: 'g20' }, 'activities_group'],
    [{ username: 'u33' }, 'activities_username'],
    [{ keyId: 'k20' }, 'activities_key'],
    [{ keyName: 'name 20' }, 'activities_key_name'],
    [{ from: 1790000000000, to: 1790000100000 }, 'activities_timestamp']
  ] as const) {
    for (const page of [1, 2]) {
      const plan = await planOf(activityPageStatement(driver.db, filter, page, 100))
      assert.match(plan, new RegExp(`using ${index} `), `${JSON.stringify(filter)}:\n${plan}`)
      assert.doesNotMatch(plan, /Seq Scan/, plan)
    }
  }
  for (const filter of [
    { server: 's7' }, { username: 'u33' }, { tool: 't77' }, { status: 'error' }, { group: 'g20' }, { keyId: 'k20' }, { keyName: 'name 20' },
    { from: 1790000000000, to: 1790000100000 }, { username: 'u33', status: 'error' }, { server: 's7', keyName: 'name 20' }
  ] as const) assert.doesNotMatch(await planOf(activityCountStatement(driver.db, filter)), /Seq Scan/, JSON.stringify(filter))
  // A tool of a server is found in one index, without a look at its calls.
  assert.match(await planOf(activityCountStatement(driver.db, { server: 's27', tool: 't77' })), /Index Only Scan using activities_tool/)
  // Whole hours come from their sums: of the calls, those of the hours at the ends are read.
  const summed = await planOf(activitySumsStatement(driver.db, { from: 1790000000001, to: 1790050000001 }))
  assert.equal(summed.match(/activities_timestamp/g)?.length, 2, summed)
  assert.doesNotMatch(summed, /Seq Scan on activities\b/, summed)
  // With parts that are subqueries, PostgreSQL would read all of them in one process.
  const hour = 3_600_000
  const spans = intervalCountsStatement({ from: 1790000000001 }, { from: Math.floor(1790000000001 / hour) * hour, length: hour, count: 24 })
  assert.doesNotMatch(summed, /Subquery Scan/, summed)
  const spanned = await planOf(spans)
  assert.doesNotMatch(spanned, /Seq Scan on activities\b/, spanned)
  // All values to filter by are found by an index, one after the other.
  for (const name of ['server', 'tool', 'group', 'username', 'keyName'] as const) {
    const plan = await planOf(filterValuesStatement({}, name))
    assert.doesNotMatch(plan, /Seq Scan/, plan)
  }
})
