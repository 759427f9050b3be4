// The form of a group: all items of a server, or those that are ticked.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { fieldsOf, openConnected, openConsole } from '../../helpers/console.ts'
import { key } from '../../helpers/doors.ts'

void test('items that are ticked mean these, also where “All” was left as it was', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('other')] })
  const groups = [{ id: key.id, name: 'office', servers: ['fake'] }]
  const { app, browser } = await openConnected(t, { fake: { url: upstream.url } }, { groups })
  const path = `/groups/${key.id}`
  const open = async (): Promise<Record<string, string>> =>
    fieldsOf(await browser.post(path, { ...fieldsOf(await browser.get(path)), do: 'open:fake' }, path))
  const tools = (): unknown => app.settings.current.groups.get(key.id)?.members[0]?.tools

  const all = await open()
  assert.deepEqual([all['all:tools:fake'], all['tools:fake']], ['true', undefined], 'all, and nothing ticked')
  assert.equal((await browser.post(path, { ...all, 'tools:fake': 'echo' }, path)).status, 303)
  assert.deepEqual(tools(), ['echo'])
  const some = await open()
  assert.deepEqual([some['all:tools:fake'], some['tools:fake']], ['false', 'echo'])
  assert.equal((await browser.post(path, { ...some, 'all:tools:fake': 'true' }, path)).status, 303)
  assert.ok(!Array.isArray(tools()), 'the radio button counts where some were selected')
})

void test('aliases, the order, lists of servers that are off, and line breaks stay as they were', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const members = [
    'gone',
    { name: 'off', alias: 'x', tools: [], prompts: ['p'], resources: 'all' },
    { name: 'fake', alias: 'y', tools: ['echo'], prompts: 'all', resources: 'all' }
  ]
  const groups = [{ id: key.id, name: 'office', description: 'One.\nTwo.', servers: members }]
  const off = { command: 'node', enabled: false }
  const { app, browser } = await openConsole(t, { mcpServers: { fake: { url: upstream.url }, off, more: off }, groups })
  const path = `/groups/${key.id}`
  const shown = await browser.get(path)
  assert.match(shown.text, /value="gone" checked>[^]{0,400}No such server/)
  const { servers: _, description = '', ...fields } = fieldsOf(shown)
  const send = async (...servers: string[]): Promise<object | undefined> => {
    const payload = new URLSearchParams([
      ...Object.entries({ ...fields, revision: fieldsOf(await browser.get(path)).revision ?? '' }),
      ['description', description.replace('\n', '\r\n')],
      ...servers.map((name): [string, string] => ['servers', name])
    ])
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    assert.equal((await browser.ask({ method: 'POST', url: `/console${path}`, payload: payload.toString(), headers })).status, 303)
    const { description: text, servers: stored } = app.groups.get({ username: 'admin', isAdmin: true } as never, key.id)
    return [text, stored]
  }
  assert.deepEqual(await send('fake', 'off', 'gone'), ['One.\nTwo.', members])
  assert.deepEqual(await send('more', 'fake', 'gone'), ['One.\nTwo.', ['gone', members[2], 'more']])
  assert.deepEqual(await send('fake'), ['One.\nTwo.', [members[2]]])
})

void test('a removal names the keys that are limited to the group, by its name or its id', async (t) => {
  const keyOf = (at: number, name: string, group: string): object =>
    ({ ...key, id: `${at}1111111-1111-4111-8111-111111111111`, name, token: `${key.token}${at}`, accessType: 'groups', allowedGroups: [group] })
  const { browser } = await openConsole(t, {
    groups: [{ id: key.id, name: 'office', servers: [] }],
    bearerKeys: [keyOf(1, 'by name', 'office'), keyOf(2, 'by id', key.id), keyOf(3, 'of another', 'home')]
  })
  const { text } = await browser.get(`/groups/${key.id}/remove`)
  assert.deepEqual([...text.matchAll(/The key &quot;([^&]+)&quot; no longer opens it/g)].map(([, name]) => name), ['by name', 'by id'])
})
