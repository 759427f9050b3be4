// Two gateways that list each other: neither shows its own items again, however often they are read.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { KEY, listed, names, Session, settings } from '../helpers/client.ts'
import { freePort, spawnHub, until } from '../helpers/hub.ts'

test('two gateways that list each other stop growing', async (t) => {
  const [one, two] = [await startUpstream(t, { tools: [tool('x')] }), await startUpstream(t, { tools: [tool('y')] })]
  const [first, second] = [await freePort(), await freePort()]
  const authorization = { headers: { Authorization: `Bearer ${KEY}` } }
  const a = await spawnHub(t, { env: { PORT: String(first) }, settings: settings({ one: { url: one.url }, b: { url: `http://127.0.0.1:${second}/mcp`, ...authorization } }) })
  const b = await spawnHub(t, { env: { PORT: String(second) }, settings: settings({ two: { url: two.url }, a: { url: `http://127.0.0.1:${first}/mcp`, ...authorization } }) })
  await listed(a, ['one'])
  await listed(b, ['two'])
  const toolsOf = async (url: string): Promise<string[]> => {
    const session = await Session.open(`${url}/mcp`)
    return names((await session.request('tools/list')).result?.tools).sort()
  }
  const reload = async (url: string, server: string): Promise<void> => {
    await fetch(`${url}/api/servers/${server}/reload`, { method: 'POST', headers: authorization.headers })
  }
  for (let round = 0; round < 4; round++) {
    await reload(a.url, 'b')
    await until(async () => (await toolsOf(a.url)).includes('b-two-y'), 'a never listed b')
    await reload(b.url, 'a')
    await until(async () => (await toolsOf(b.url)).includes('a-one-x'), 'b never listed a')
  }
  assert.deepEqual(await toolsOf(a.url), ['b-two-y', 'one-x'])
  assert.deepEqual(await toolsOf(b.url), ['a-one-x', 'two-y'])
  const session = await Session.open(`${a.url}/mcp`)
  assert.equal((await session.call('b-two-y')).isError, undefined)
})
