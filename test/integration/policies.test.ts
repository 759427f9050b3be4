// Policies and approvals on several replicas.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'tap'
import { openStorage } from '../../db/open.ts'
import type { Storage } from '../../db/store.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { manage, managed, startReplica, vault } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { admin, asks, callTool, idIn } from '../helpers/approvals.ts'
import { connected, KEY, Session, settings, text } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { bearerKey, until } from '../helpers/hub.ts'
import { openSession } from '../helpers/inject.ts'
import { addPolicy, loginTo, startWithPolicies } from '../helpers/policies.ts'

test('a policy counts at every replica, and its sessions are told', async (t) => {
  const { url } = await database(t)
  const upstream = await startUpstream(t, { tools: [tool('read'), tool('write')] })
  const one = await startReplica(t, url, { settings: settings({ up: { url: upstream.url } }) })
  const two = await startReplica(t, url)
  for (const hub of [one, two]) await connected(hub, 1)
  const session = await Session.open(`${two.url}/mcp`)
  const stream = await session.listen()
  assert.deepEqual(await session.tools(), ['up-read', 'up-write'])
  const denied = { name: 'p', when: 'tool.name == "write"', then: 'deny', message: 'Not here' }
  const { id } = await managed(one, 'POST', '/policies', denied)
  await until(async () => text(await session.call('up-write', {})) === 'Not here', 'it does not count at the other replica')
  await managed(one, 'PUT', `/policies/${String(id)}`, { ...denied, then: 'hide' })
  await stream.wait(({ method }) => method === 'notifications/tools/list_changed')
  assert.deepEqual(await session.tools(), ['up-read'])
  await manage(one, 'DELETE', `/policies/${String(id)}`)
  await until(async () => (await session.tools()).length === 2, 'it is hidden still')
})

test('an approval that one replica asked for and another one got is used once, whoever is called', async (t) => {
  const { url: dbUrl } = await database(t)
  const opened = async (): Promise<Storage> => await openStorage({
    settingsPath: join(await temporaryFolder(t), 'none.json'), dbUrl, startupTimeout: 30_000, vault: await vault(), warn: () => {}, info: () => {}
  })
  const one = await startWithPolicies(t, settings({}), { storage: await opened() })
  const key = { ...bearerKey(), kind: 'system' as const, accessType: 'all' as const }
  await one.app.settings.change(() => [{ entity: 'bearerKeys', key: key.id, value: key }])
  const two = await startWithPolicies(t, settings({}), { storage: await opened() })
  await addPolicy(one.api, asks)
  await admin(one)
  await until(async () => (await two.api('GET', '/policies')).body.data.length === 1)
  const eve = await loginTo(two.app, 'eve', 'Open-Sesame-1')
  const sessions = [await openSession(one.app, '/mcp', KEY), await openSession(two.app, '/mcp', KEY)] as const
  const id = idIn(await callTool(sessions[0]))
  assert.equal(idIn(await callTool(sessions[1])), id)
  assert.equal((await two.api('POST', `/approvals/${id}/approve`, undefined, eve)).status, 200)
  const all = await Promise.all([...sessions, ...sessions, ...sessions].map(async (session) => await callTool(session)))
  assert.deepEqual(all.filter((answer) => answer === 'ran delete'), ['ran delete'])
  assert.equal(one.up.reached.length + two.up.reached.length, 1)
})
