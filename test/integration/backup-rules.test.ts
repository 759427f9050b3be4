// Backup and restore of teams, policies, guards, quotas and skills; what is only of a moment, such as an approval, stays behind.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { mainFile } from '../fakes/skills.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { manage, managed } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { connected, Session, settings, text, type Json } from '../helpers/client.ts'
import { maintain } from '../helpers/cli.ts'
import { database } from '../helpers/database.ts'
import { startHub, type Hub } from '../helpers/hub.ts'

const ENCRYPTION_KEY = '1'.repeat(64)

async function run (command: 'backup' | 'restore', folder: string, args: string[], env: Record<string, string>): Promise<void> {
  const { code, told } = await maintain(command, folder, args, { ENCRYPTION_KEY, ...env })
  assert.equal(code, 0, told)
}

const kinds = ['teams', 'policies', 'guards', 'quotas', 'skills'] as const
/** All entries of these kinds, as the management API shows them. */
const entriesOf = async (hub: Hub): Promise<Json[]> => await Promise.all(kinds.map(async (kind) => await managed(hub, 'GET', `/${kind}`)))

async function addAll (hub: Hub): Promise<void> {
  await managed(hub, 'POST', '/users', { username: 'ada', password: 'Open-Sesame-1' })
  await managed(hub, 'POST', '/teams', { name: 'web', description: 'The web team', members: ['ada', 'ghost'], claims: ['eng/web'] })
  for (const name of ['second', 'first']) {
    await managed(hub, 'POST', '/policies', { name, when: 'tool.name == "delete" && "web" in principal.teams', then: 'ask', approvers: ['ada'], message: 'Careful' })
  }
  const policies = await managed(hub, 'GET', '/policies') as unknown as Json[]
  await managed(hub, 'PUT', '/policies/order', { ids: policies.map(({ id }) => id).reverse() })
  await managed(hub, 'POST', '/policies', { name: 'asks', when: 'tool.name == "ask"', then: 'ask' })
  await managed(hub, 'POST', '/guards', { name: 'No mail', on: 'both', detect: ['email'], action: 'mask', webhook: { url: 'http://127.0.0.1:9/', secret: 'canary-secret', whenAway: 'allow' } })
  await managed(hub, 'POST', '/quotas', { name: 'Fair', target: { user: '*', server: 'up' }, per: 'day', calls: 2 })
  await managed(hub, 'POST', '/skills', { content: mainFile('release-notes'), files: { 'a.md': Buffer.from('é').toString('base64') } })
}

const call = async (hub: Hub, name: string, args: Json = {}): Promise<string> =>
  text((await (await Session.open(`${hub.url}/mcp`)).request('tools/call', { name: `up-${name}`, arguments: args })).result)

/** @param where the environment of the gateway that is backed up, and of the one that gets the backup */
async function restores (t: Test, where: readonly [Record<string, string>, Record<string, string>]): Promise<void> {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('ask')], on: ({ method, params }) => method === 'tools/call' ? { content: [{ type: 'text', text: `got ${JSON.stringify(params.arguments)}` }] } : undefined })
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url } }), env: { ENCRYPTION_KEY, ...where[0] } })
  await connected(hub, 1)
  await addAll(hub)
  const before = await entriesOf(hub)
  assert.match(await call(hub, 'ask'), /an admin must allow it/)
  assert.equal((await managed(hub, 'GET', '/approvals') as unknown as Json[]).length, 1)
  for (let n = 0; n < 2; n++) assert.equal(await call(hub, 'echo', { to: 'canary@secret-domain.org' }), 'got {"to":"[email]"}')
  assert.match(await call(hub, 'echo'), /The quota "Fair" is used up/)
  const file = join(hub.folder, 'backup.zip')
  await run('backup', hub.folder, [file], where[0])
  await hub.stop()
  const folder = await temporaryFolder(t)
  await run('restore', folder, [file], where[1])
  const restored = await startHub(t, { folder, env: { ENCRYPTION_KEY, ...where[1] } })
  await connected(restored, 1)
  assert.deepEqual(await entriesOf(restored), before)
  assert.deepEqual((before[1] as unknown as Json[]).map(({ name }) => name), ['first', 'second', 'asks'])
  // They do what they did, and begin anew where they count.
  assert.equal(await call(restored, 'echo', { to: 'canary@secret-domain.org' }), 'got {"to":"[email]"}')
  const skill = await (await Session.open(`${restored.url}/mcp`)).request('resources/read', { uri: 'skill://release-notes/a.md' })
  assert.match(JSON.stringify(skill.result), /é/)
  assert.deepEqual(await managed(restored, 'GET', '/approvals'), [])
  assert.match(await call(restored, 'ask'), /an admin must allow it/)
  // A mask that is sent back is the secret, which is the one that was stored.
  const [guard] = before[2] as unknown as Json[]
  const { id, ...sent } = guard ?? {}
  assert.equal((await manage(restored, 'PUT', `/guards/${String(id)}`, sent)).status, 200)
}

test('a settings file', async (t) => { await restores(t, [{}, {}]) })

test('a database', async (t) => {
  const [one, other] = [await database(t), await database(t, undefined, { tables: false })]
  await restores(t, [{ DB_URL: one.url }, { DB_URL: other.url }])
  assert.doesNotMatch(JSON.stringify(await other.query('select * from guards')), /canary-secret/)
})

test('a settings file, restored into a database', async (t) => {
  await restores(t, [{}, { DB_URL: (await database(t, undefined, { tables: false })).url }])
})
