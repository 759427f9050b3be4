import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { appFor } from '../helpers/app.ts'
import { KEY, settings, type Json } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'
import { ItemTexts, serializeApiResponse } from '../../plugins/management/servers/record-json.ts'
import type { Item } from '../../protocol/lists.ts'

const item = (key: string, description: string): Item =>
  ({ key, text: JSON.stringify({ name: key, description, big: 12345678901234567890n.toString() }) }) as Item
const server = { config: { tools: { b: { enabled: false, description: 'Ours "€"' } } } }

test('a small answer is text', async () => {
  const bare: Item = { key: 'c', text: '{"name":"c"}' }
  const tools = new ItemTexts([item('a', 'A'), item('b', 'B'), bare], server, 'tools')
  const answer = { name: 's', tools, prompts: new ItemTexts([], server, 'prompts') }
  assert.deepEqual(JSON.parse(String(serializeApiResponse(answer))), {
    name: 's',
    tools: [
      { name: 'a', description: 'A', big: '12345678901234567890', enabled: true },
      { name: 'b', description: 'Ours "€"', big: '12345678901234567890', overridden: true, enabled: false },
      { name: 'c', description: '', enabled: true }
    ],
    prompts: []
  })
})

test('a large answer is the same JSON as a stream of small pieces', async () => {
  const texts = ['x'.repeat(1_000_000), '€😀'.repeat(100_000), ...Array.from({ length: 2_000 }, (_, n) => `tool ${n} é`)]
  const items = texts.map((description, n) => item(`t${n}`, description))
  const answer = serializeApiResponse([{ name: 's', tools: new ItemTexts(items, server, 'tools') }])
  assert.ok(typeof answer === 'object')
  const pieces = await answer.toArray() as Buffer[]
  assert.ok(pieces.every(({ length }) => length < 4 * 64 * 1024))
  const [record] = JSON.parse(Buffer.concat(pieces).toString()) as [{ tools: Array<Record<'name' | 'description' | 'enabled', unknown>> }]
  assert.deepEqual(record.tools.map(({ description }) => description), texts)
  assert.ok(record.tools.every(({ name, enabled }, n) => name === `t${n}` && enabled))
})

test('an item without a description has an empty one, also after a reset', async (t) => {
  const bare = { name: 'bare', inputSchema: { type: 'object' } }
  const upstream = await startUpstream(t, { tools: [tool('echo'), bare], prompts: [{ name: 'p' }] })
  const app = await appFor(t, settings({ up: { url: upstream.url } }))
  await until(() => app.upstreams.get('up')?.status === 'connected')
  const ask = async (method: 'GET' | 'PUT' | 'DELETE', path: string, payload?: Json): Promise<Json> => {
    const answer = await app.inject({ method, url: `/api/servers/up${path}`, headers: { authorization: `Bearer ${KEY}` }, payload })
    assert.equal(answer.statusCode, 200, answer.body)
    return answer.json<{ data: Json }>().data
  }
  const { tools, prompts } = await ask('GET', '') as { tools: unknown, prompts: unknown }
  assert.deepEqual(tools, [{ ...tool('echo'), enabled: true }, { ...bare, description: '', enabled: true }])
  assert.deepEqual(prompts, [{ name: 'p', description: '', enabled: true }])
  assert.equal((await ask('PUT', '/tools/bare/description', { description: 'Ours' })).description, 'Ours')
  assert.deepEqual(await ask('DELETE', '/tools/bare/description'), { ...bare, description: '', enabled: true })
})

/** Two accounts, of whom the second is no admin. */
const password = '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234'
const [ada, bob] = [{ username: 'ada', password, isAdmin: true }, { username: 'bob', password, isAdmin: false }]

test('a server whose name nobody may give is disabled, and says why', async (t) => {
  const upstream = await startUpstream(t)
  const bad = ['bad/name', 'prototype', '__proto__']
  const config = { url: upstream.url, visibility: 'public' }
  const app = await appFor(t, settings(Object.fromEntries(['fine', ...bad].map((name) => [name, config])),
    { users: [ada, bob] }))
  const ask = async (who: typeof ada, method: 'GET' | 'POST' | 'PUT', path: string, payload?: Json): Promise<[number, Json]> => {
    const headers = { 'x-auth-token': app.auth.createLoginToken(who) }
    const { statusCode, body } = await app.inject({ method, url: `/api/servers${path}`, headers, payload })
    return [statusCode, JSON.parse(body) as Json]
  }
  await until(() => app.upstreams.get('fine')?.status === 'connected')
  for (const who of [ada, bob]) {
    const servers = (await ask(who, 'GET', ''))[1].data as Array<{ name: string, enabled: boolean, status: string, error: unknown }>
    for (const { name, enabled, status, error } of servers) {
      assert.deepEqual([name, enabled, status], [name, name === 'fine', name === 'fine' ? 'connected' : 'disabled'])
      if (name !== 'fine') assert.match(String(error), /^the name /)
    }
    assert.equal(servers.length, 4)
  }
  // Its config is kept as it is: only another name helps.
  const [status, told] = await ask(ada, 'POST', '/prototype/toggle', { enabled: true })
  assert.equal(status, 400)
  assert.match(String(told.message), /newName/)
  assert.equal((await ask(ada, 'PUT', '/prototype', { config, newName: 'prototypes' }))[0], 200)
  await until(() => app.upstreams.get('prototypes')?.status === 'connected')
  const [, { data }] = await ask(ada, 'GET', '/prototypes')
  assert.deepEqual([(data as Json).enabled, (data as Json).error], [true, null])
})

test('who may only see a server is told its type, also where the config does not say it', async (t) => {
  const app = await appFor(t, settings({
    remote: { url: 'http://127.0.0.1:9/mcp', visibility: 'public', enabled: false },
    local: { command: 'false', visibility: 'public', enabled: false },
    old: { type: 'sse', url: 'http://127.0.0.1:9/sse', visibility: 'public', enabled: false }
  }, { users: [ada, bob] }))
  const typesFor = async (who: typeof ada): Promise<unknown[]> => {
    const answer = await app.inject({ url: '/api/servers', headers: { 'x-auth-token': app.auth.createLoginToken(who) } })
    return answer.json<{ data: Array<{ config: Json }> }>().data.map(({ config }) => config.type)
  }
  assert.deepEqual(await typesFor(bob), ['streamable-http', 'stdio', 'sse'])
  // The config is what PUT takes back.
  assert.deepEqual(await typesFor(ada), [undefined, undefined, 'sse'])
})
