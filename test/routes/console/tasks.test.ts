// The page of tasks and webhooks: what it shows to whom, what its forms do, and that it is told of changes.
import assert from 'node:assert/strict'
import { test } from 'tap'
import type { EventSubscription } from '../../../db/ports/event-webhooks.ts'
import type { TaskRecord } from '../../../db/ports/tasks.ts'
import type { Storage } from '../../../db/store.ts'
import { serverFingerprint } from '../../../plugins/gateway/index.ts'
import { makeView } from '../../../plugins/settings/index.ts'
import { NonMcpClient } from '../../../protocol/exchange.ts'
import { appFor } from '../../helpers/app.ts'
import { otherKey } from '../../helpers/client.ts'
import { follow, signedIn, streamOf, type Browser } from '../../helpers/console.ts'
import { admin, alice, start } from '../../helpers/doors.ts'
import { bearerKey } from '../../helpers/hub.ts'

const day = 24 * 60 * 60_000
const task = (id: string, more: Partial<TaskRecord> = {}): TaskRecord => ({
  id,
  owner: 'key k',
  principal: 'key k',
  user: 'alice',
  username: 'alice',
  keyName: 'laptop',
  route: { scope: { kind: 'group', id: 'g', name: 'daily' }, presentation: 'merged' },
  handle: 'h',
  server: 'builds',
  tool: 'run_build',
  state: 'working',
  createdAt: Date.now(),
  updatedAt: Date.now(),
  ...more
})
const subscription = (id: string, user: string, keyId: string, server: string): EventSubscription => ({
  id,
  owner: `key ${keyId}`,
  user,
  credential: { keyId },
  route: { scope: { kind: 'global' }, presentation: 'merged' },
  name: 'pager-incident.created',
  event: { provider: 'pager', server, key: 'incident.created' },
  argumentsText: '{"a":"an argument"}',
  url: `https://agent.example/${user}?<b>`,
  secrets: [{ secret: 'whsec_of-the-client' }],
  own: { token: 't', secret: 'whsec_of-the-gateway' },
  expiresAt: Date.now() + day
})

void test('running tasks and webhooks are shown to their users, and all to admins', async (t) => {
  let storage: Storage | undefined
  const [hersKey, hisKey] = [bearerKey({ kind: 'user', owner: 'alice' }), otherKey({ kind: 'user', owner: 'admin' })]
  const app = await appFor(t, {
    users: [admin, alice, { ...alice, username: 'bob' }],
    bearerKeys: [hersKey, hisKey],
    mcpServers: { pager: { url: 'http://127.0.0.1:9/mcp', visibility: 'public' } }
  }, {}, { wrap: (opened) => (storage = opened) })
  const pager = serverFingerprint('pager', app.settings.current.servers.get('pager')?.config)
  await storage?.tasks.put(task('hers', { tool: `<script>\u202e${'y'.repeat(500)}` }), day)
  await storage?.tasks.put(task('ended', { tool: 'ended_tool', state: 'completed' }), day)
  await storage?.tasks.put(task('operators', { username: undefined, keyName: 'system', tool: 'sweep', state: 'input_required', ttl: 5_400_000 } as never), day)
  await storage?.eventWebhooks.add(subscription('sub_hers', 'alice', String(hersKey.id), pager))
  await storage?.eventWebhooks.add(subscription('sub_his', 'admin', String(hisKey.id), pager))
  const pageOf = async (username: string): Promise<[Browser, string]> => {
    const browser = await signedIn(app, username)
    return [browser, (await browser.get('/tasks-and-webhooks')).text]
  }
  const [hers, seen] = await pageOf('alice')
  assert.match(seen, /&lt;script&gt;\\u\{202e\}y{91}…<[\s\S]*builds · \/mcp\/daily · hers[\s\S]*alice[\s\S]*laptop[\s\S]*working[\s\S]*no limit/)
  assert.doesNotMatch(seen, /<script>|sweep|ended_tool|agent\.example\/admin|an argument|whsec/)
  assert.match(seen, /incident\.created[\s\S]*agent\.example\/alice\?&lt;b&gt;/)
  const [his, all] = await pageOf('admin')
  assert.match(all, /sweep[\s\S]*waiting for an answer[\s\S]*1\.5 h/)
  assert.match(all, /agent\.example\/alice[\s\S]*agent\.example\/admin|agent\.example\/admin[\s\S]*agent\.example\/alice/)
  const [bobs, none] = await pageOf('bob')
  assert.match(none, /No tasks are running[\s\S]*No client has registered a webhook/)

  assert.equal((await bobs.post('/tasks-and-webhooks/hers/cancel', {})).status, 404)
  assert.equal((await bobs.post('/tasks-and-webhooks/webhooks/sub_hers/remove', {})).status, 404)
  assert.equal((await hers.post('/tasks-and-webhooks/webhooks/sub_his/remove', {})).status, 404)
  // Its server is not there any more.
  assert.equal((await hers.post('/tasks-and-webhooks/hers/cancel', {})).status, 409)
  const removed = await hers.post('/tasks-and-webhooks/webhooks/sub_hers/remove', {})
  assert.deepEqual([removed.status, removed.location], [303, '/console/tasks-and-webhooks'])
  assert.doesNotMatch((await his.get('/tasks-and-webhooks')).text, /agent\.example\/alice/)
  const readonly = await appFor(t, { users: [admin] }, { READONLY: true }, { wrap: () => storage as Storage })
  assert.match((await (await signedIn(readonly)).get('/tasks-and-webhooks')).text, /<button[^>]* disabled[^>]*>Cancel/)
})

void test('an open page is told of tasks that begin and end', async (t) => {
  const { app, url } = await start(t)
  const browser = await signedIn(app)
  const page = await browser.get('/tasks-and-webhooks')
  assert.match(page.text, /<section class="sheet" id="tasks" data-live/)
  const { told } = await follow(t, browser, `${url}${streamOf(page)}`)
  const view = makeView({ key: 'ann', kind: 'user-key', user: 'ann', isAdmin: false }, { kind: 'global' })
  const target = { provider: 'builds', server: 'i', tool: 'run_build', id: '1', run: '' }
  for (const [at, [status, row]] of ([['working', /run_build/], ['completed', /No tasks are running/]] as const).entries()) {
    await app.gateway.tasks.recordState(view, new NonMcpClient('c', 'ann'), target, 'h', JSON.stringify({ status }))
    await told('changed', at + 1)
    assert.match((await browser.get('/tasks-and-webhooks', { headers: { 'x-console-refresh': '1' } })).text, row)
  }
})
