// What guards find reaches neither side, nor any place that keeps something of calls, with a database.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { managed, startReplica } from '../fakes/replica.ts'
import { driverOf } from '../fakes/store-ports.ts'
import { connected, Session, settings, text, type Json } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { assertClean, email, guard, nested, token, upstreamOptions } from '../helpers/guards.ts'
import { until } from '../helpers/hub.ts'
import { modernRequest } from '../helpers/modern-request.ts'

/** All files of a gateway's folder, as text. */
function filesIn (folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1')).join('\n')
}

test('what a guard masks reaches neither the server nor the client, a record, a log, an original, or a file', async (t) => {
  const upstream = await startUpstream(t, upstreamOptions)
  const { url } = await database(t)
  const given = settings({ up: { url: upstream.url } }, {
    guards: [guard()],
    systemConfig: { toolResultCompression: { enabled: true, minTokens: 100, maxOutputTokens: 200 }, smartRouting: { enabled: true } }
  })
  const hub = await startReplica(t, url, { settings: given, env: { LOG_LEVEL: 'debug' } })
  await connected(hub, 1)
  const seen: string[] = []
  const note = (value: unknown): void => { seen.push(JSON.stringify(value)) }

  const session = await Session.open(`${hub.url}/mcp`)
  await session.request('logging/setLevel', { level: 'debug' })
  for (const name of ['echo', 'breaks', 'fails', 'long']) note(await session.request('tools/call', { name: `up-${name}`, arguments: nested }))
  const noisy = { jsonrpc: '2.0', id: 90, method: 'tools/call', params: { name: 'up-noisy', arguments: nested, _meta: { progressToken: 'p' } } }
  note((await session.post(noisy)).messages)
  note(await session.request('prompts/get', { name: 'up-greet', arguments: { who: email } }))
  note(await session.request('resources/read', { uri: 'test://one' }))
  note(await session.request('resources/read', { uri: `test://${email}` }))
  note(await session.request('completion/complete', {
    ref: { type: 'ref/prompt', name: 'up-greet' }, argument: { name: 'who', value: email }, context: { arguments: { x: token } }
  }))
  const smart = await Session.open(`${hub.url}/mcp/$smart`)
  note(await smart.request('tools/call', { name: 'search_tools', arguments: { query: `echo for ${email}` } }))
  note(await smart.request('tools/call', { name: 'call_tool', arguments: { toolName: 'up-echo', arguments: nested } }))
  const { headers, body } = modernRequest('tools/call', { params: { name: 'up-echo', arguments: nested }, capabilities: {} })
  note(await (await fetch(`${hub.url}/mcp`, { method: 'POST', headers, body })).json())
  const rest = await managed(hub, 'POST', '/tools/call/up', { toolName: 'echo', arguments: nested })
  note({ ...rest, arguments: undefined })
  note(await managed(hub, 'POST', '/resources/read', { uri: 'test://one' }))

  for (const [at, each] of seen.entries()) assertClean(each, `answer ${at}`)
  assert.match(seen.join('\n'), /\[email\].*\[card\].*\[secret\]/s)
  const sent = upstream.received.map(({ body, headers }) => body + JSON.stringify(headers)).join('\n')
  assertClean(sent, 'what the server got')
  assert.ok(sent.includes('"keep":"12345678901234567890"'))

  // Everything that keeps something of calls.
  let rows: Json[] = []
  await until(async () => {
    rows = await managed(hub, 'GET', '/activities?limit=100') as unknown as Json[]
    return rows.length >= 12
  }, () => JSON.stringify(rows).slice(0, 2_000))
  assertClean(JSON.stringify(rows), 'the records')
  const [found] = (rows.find(({ tool }) => tool === 'echo')?.guards ?? []) as Json[]
  assert.deepEqual([found?.id, found?.action, (found?.found as string[]).sort()], ['g1', 'mask', ['card', 'email', 'secrets']])
  const [, link] = (JSON.parse(seen[3] ?? '{}') as { result: { content: Json[] } }).result.content
  assert.equal(link?.type, 'resource_link', seen[3]?.slice(0, 500))
  const original = await session.request('resources/read', { uri: link.uri })
  assert.match(JSON.stringify(original), /line 9 of \[email\]/)
  assertClean(JSON.stringify(original), 'the original')
  assertClean(hub.output(), 'the log')
  assert.match(hub.output(), /a guard found content/)
  assertClean(JSON.stringify(await managed(hub, 'GET', '/logs')), 'the logs of the API')
  const metrics = await (await fetch(`${hub.url}/metrics`, { headers: { authorization: headers.authorization ?? '' } })).text()
  assert.match(metrics, /toolhub_guard_findings_total [1-9]/)
  assertClean(metrics, 'the metrics')
  const driver = await driverOf(t, url)
  const tables = await driver.db.execute(sql`select schemaname, tablename from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`)
  for (const { schemaname, tablename } of tables as unknown as Array<{ schemaname: string, tablename: string }>) {
    const table = sql`${sql.identifier(schemaname)}.${sql.identifier(tablename)}`
    const content = await driver.db.execute(sql`select row_to_json(x)::text as row from ${table} x`)
    assertClean(JSON.stringify(content), `the table ${tablename}`)
  }
  await hub.stop()
  assert.ok(statSync(hub.folder).isDirectory())
  assertClean(filesIn(hub.folder), 'a file')
})

test('what another member gets a call refused for leaves the records of its arguments masked', async (t) => {
  const guards = [guard({ on: 'arguments', action: 'refuse', detect: ['secrets'] }), guard({ id: 'g2', on: 'arguments' })]
  const upstream = await startUpstream(t, upstreamOptions)
  const { url } = await database(t)
  const hub = await startReplica(t, url, { settings: settings({ up: { url: upstream.url } }, { guards }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const { result } = await session.request('tools/call', { name: 'up-echo', arguments: nested, _meta: { note: token } })
  assert.match(text(result), /refuses this call: the arguments contain a secret/)
  let rows: Json[] = []
  await until(async () => {
    rows = await managed(hub, 'GET', '/activities?limit=10') as unknown as Json[]
    return rows.length > 0
  }, 'no record')
  assertClean(JSON.stringify(rows), 'the records')
  assert.ok(upstream.received.every(({ message }) => message.method !== 'tools/call'))
})
