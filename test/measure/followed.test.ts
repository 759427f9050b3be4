// How soon a replica follows another one: values of users, and policies. Both count within 5 s.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import { managed, startReplica } from '../fakes/replica.ts'
import { admin, as, keyOf, settingsOf, startValueServers } from '../fakes/value-servers.ts'
import { Session, text } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { until, type Hub } from '../helpers/hub.ts'
import { median } from '../helpers/measured.ts'

const bound = 5

/** Two replicas with a server that wants values, which ann and bob have given. */
async function pair (t: Test): Promise<readonly [Hub, Hub]> {
  const { configs: { header } } = await startValueServers(t)
  const { url } = await database(t)
  const one = await startReplica(t, url, { settings: settingsOf({ header }) })
  const other = await startReplica(t, url)
  const { config } = await managed(one, 'GET', '/servers/header', undefined, admin)
  await managed(one, 'PUT', '/servers/header', { config: { ...config as object, visibility: 'public' } }, admin)
  for (const user of ['ann', 'bob'] as const) {
    await managed(one, 'PUT', '/servers/header/my-variables', { values: { TOKEN: `first-of-${user}` } }, await as(one, user))
  }
  await until(async () => /first-of-bob/.test(await tell(other)), other.output)
  return [one, other]
}

async function tell (hub: Hub): Promise<string> {
  const session = await Session.open(`${hub.url}/mcp/header`, { key: keyOf.bob })
  const { result, error } = await session.request('tools/call', { name: 'tell', arguments: {} })
  return error?.message ?? text(result)
}

/** The time until calls at a replica are answered so, in s. */
async function timeUntil (hub: Hub, answer: RegExp): Promise<number> {
  const begun = performance.now()
  await until(async () => answer.test(await tell(hub)), hub.output)
  return (performance.now() - begun) / 1_000
}

test('values that are given at one replica count at the other', async (t) => {
  const [one, other] = await pair(t)
  const bob = await as(one, 'bob')
  let round = 0
  const time = await median(t, 's until another value counts', async () => {
    const TOKEN = `value-${++round}`
    await managed(one, 'PUT', '/servers/header/my-variables', { values: { TOKEN } }, bob)
    return await timeUntil(other, new RegExp(TOKEN))
  })
  assert.ok(time <= bound, `${time} s`)
})

test('a policy that is stored at one replica counts at the other', async (t) => {
  const [one, other] = await pair(t)
  const { id } = await managed(one, 'POST', '/policies', { name: 'p', when: 'false', then: 'deny', message: 'none' }, admin)
  let round = 0
  const time = await median(t, 's until another policy counts', async () => {
    const message = `Denied ${++round}`
    await managed(one, 'PUT', `/policies/${String(id)}`, { name: 'p', when: 'tool.name == "tell"', then: 'deny', message }, admin)
    return await timeUntil(other, new RegExp(message))
  })
  assert.ok(time <= bound, `${time} s`)
})
