// A config has bounds in what is known of it, and in what is not.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { appFor } from '../helpers/app.ts'
import { at, KEY, settings } from '../helpers/client.ts'

const indices = (count: number): number[] => Array.from({ length: count }, (_, at) => at)
const mapOf = <Value>(count: number, value: (at: number) => Value): Record<string, Value> =>
  Object.fromEntries(indices(count).map((at) => [`x-name-${at}`, value(at)]))
const secret = (at: number): string => `Bearer secret-${at * 7_919}-of-mine`

const bounded = {
  headers: mapOf(401, secret),
  env: mapOf(401, secret),
  args: indices(401).map(String),
  passthroughHeaders: indices(401).map((at) => `x-${at}`),
  tools: mapOf(401, () => ({ enabled: false })),
  prompts: mapOf(401, () => ({ enabled: false })),
  resources: mapOf(401, () => ({ enabled: false }))
}

test('a config has at most 400 entries of a kind', async (t) => {
  const many = { url: 'http://127.0.0.1:9/', headers: mapOf(50_000, secret), description: 'kept' }
  const full = { url: 'http://127.0.0.1:9/', enabled: false, tools: mapOf(400, () => ({ enabled: false })) }
  const app = await appFor(t, settings({ many, full, fine: { url: 'http://127.0.0.1:9/', headers: mapOf(400, secret) } }))
  const ask = async (method: 'GET' | 'POST' | 'PUT', url: string, payload?: object) =>
    await app.inject({ method, url: `/api${url}`, payload, headers: { authorization: `Bearer ${KEY}` } })

  await t.test('a stored one with more is kept and not connected, and says why', async () => {
    assert.match(app.settings.current.problems.join('\n'), /server "many" is not connected: "headers": .*no more than 400/)
    assert.equal(app.upstreams.get('many'), undefined)
    const answer = await ask('GET', '/servers/many')
    const record = at(answer.json(), 'data')
    assert.equal(at(record, 'config', 'description'), 'kept')
    assert.match(String(at(record, 'error')), /no more than 400/)
    assert.ok(app.upstreams.get('fine'))
  })

  await t.test('one that is sent with more is refused', async () => {
    for (const [member, value] of Object.entries(bounded)) {
      const answer = await ask('POST', '/servers', { name: 'new', config: { url: 'http://127.0.0.1:9/', [member]: value } })
      assert.equal(answer.statusCode, 400, member)
      assert.match(answer.json<{ message: string }>().message, new RegExp(`config\\.${member}.*400`))
    }
    const config = { type: 'openapi', openapi: { schema: {}, passthroughHeaders: bounded.passthroughHeaders } }
    assert.equal((await ask('POST', '/servers', { name: 'new', config })).statusCode, 400)
  })

  await t.test('overrides one by one do not pass it', async () => {
    const more = await ask('POST', '/servers/full/tools/another/toggle', { enabled: false })
    assert.equal(more.statusCode, 400)
    assert.match(more.json<{ message: string }>().message, /at most 400 overrides/)
    assert.equal((await ask('POST', '/servers/full/tools/x-name-1/toggle', { enabled: true })).statusCode, 200)
    assert.equal((await ask('POST', '/servers/full/tools/another/toggle', { enabled: false })).statusCode, 200)
    assert.equal(app.settings.current.servers.get('full')?.problem, undefined)
  })
})

test('what nobody knows in a config is bounded too, and told before it is looked at', async (t) => {
  const app = await appFor(t, settings({}))
  const store = async (config: object): Promise<{ status: number, message: string }> => {
    const answer = await app.inject({
      method: 'POST',
      url: '/api/servers',
      payload: { name: 'new', config: { url: 'http://127.0.0.1:9/', enabled: false, ...config } },
      headers: { authorization: `Bearer ${KEY}` }
    })
    return { status: answer.statusCode, message: String(at(answer.json(), 'message')) }
  }
  assert.deepEqual(await store(mapOf(12_000, secret)), { status: 400, message: 'An object in the body has more than 10000 members' })
  assert.deepEqual(await store({ mine: indices(10_001) }), { status: 400, message: '"config" has more than 10000 values' })
  assert.deepEqual(await store({ openapi: { mine: indices(10_001) } }), { status: 400, message: '"config" has more than 10000 values' })
  const message = 'The strings in "config" have more than 4000 words and URL parameters'
  for (const config of [
    { url: `http://127.0.0.1:9/?${'a=b&'.repeat(4_100)}` },
    { env: { LONG: 'secret '.repeat(4_100) } },
    { headers: { one: 'secret '.repeat(2_100), two: 'secret\t'.repeat(2_100) } }
  ]) assert.deepEqual(await store(config), { status: 400, message })
  assert.equal(
    (await store({ mine: indices(9_000), openapi: { schema: { known: indices(30_000) } }, description: 'a '.repeat(5_000) })).status,
    200
  )
})
