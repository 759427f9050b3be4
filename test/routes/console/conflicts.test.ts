// Two tabs of one form: the second that is saved says that the entry was changed meanwhile, and shows what was typed.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import type { FastifyInstance } from 'fastify'
import { fieldsOf, openConnected, openConsole, type Answer, type Opened } from '../../helpers/console.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { alice, key } from '../../helpers/doors.ts'

const mine = { command: 'node', args: ['-e', '0'], enabled: false, owner: 'admin', visibility: 'private' }
const policy = { id: key.id, name: 'no', when: 'false', then: 'deny' }
const prompt = { id: key.id, name: 'hello', template: 'Hello' }

const start = async (t: Test): Promise<Opened> => await openConsole(t, {
  mcpServers: { mine, other: mine },
  groups: [{ id: key.id, name: 'office', servers: ['mine'] }],
  prompts: [prompt],
  policies: [policy],
  teams: [{ name: 'crew', members: ['admin'] }]
})

void test('two tabs with the description of a tool: the second is told of the first', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const { app, browser } = await openConnected(t, { fake: { url: upstream.url } })
  const path = '/servers/fake/tools/echo'
  const stored = (): unknown => app.settings.current.servers.get('fake')?.config.tools?.echo?.description
  const revisionIn = ({ text }: Answer): string => /name="revision" value="([^"]+)"/.exec(text)?.[1] ?? ''
  const opened = { revision: revisionIn(await browser.get(path)) }
  assert.equal((await browser.post(`${path}/override`, { ...opened, description: 'first' }, path)).status, 303)
  const refused = await browser.post(`${path}/override`, { ...opened, description: 'second' }, path)
  assert.equal(refused.status, 412)
  assert.match(refused.text, /changed in the meantime[\s\S]*Currently stored[\s\S]*first[\s\S]*>\nsecond</)
  assert.equal(stored(), 'first')
  assert.equal((await browser.post(`${path}/override`, { revision: revisionIn(refused), description: 'second' }, path)).status, 303)
  assert.equal(stored(), 'second')
})

interface Form {
  readonly name: string
  readonly path: string
  /** What each tab changes. */
  readonly first: Readonly<Record<string, string>>
  readonly second: Readonly<Record<string, string>>
  readonly typed: RegExp
  readonly stored: RegExp
  readonly isOverwritten: (app: FastifyInstance) => boolean
  /** What the form that came back does not hold. */
  readonly again?: Readonly<Record<string, string>>
}

const forms: readonly Form[] = [
  {
    name: 'of the settings',
    path: '/settings',
    first: { nameSeparator: '.' },
    second: { 'routing.jsonBodyLimit': '7mb' },
    typed: /value="7mb"/,
    stored: /nameSeparator: \./,
    isOverwritten: ({ settings: { current: { system } } }: FastifyInstance) => system.routing?.jsonBodyLimit === '7mb'
  },
  {
    name: 'of a server',
    path: '/servers/mine/configuration',
    first: { do: 'save', 'arg/description': 'of the first tab' },
    second: { do: 'save', 'arg/description': 'of the second tab' },
    typed: />\nof the second tab<|value="of the second tab"/,
    stored: /&quot;description&quot;: &quot;of the first tab&quot;/,
    isOverwritten: ({ settings: { current } }: FastifyInstance) =>
      current.servers.get('mine')?.config.description === 'of the second tab'
  },
  {
    name: 'of a group',
    path: `/groups/${key.id}`,
    first: { servers: 'other' },
    second: { description: 'of the second tab' },
    typed: /value="of the second tab"/,
    stored: /&quot;servers&quot;: \[\s*&quot;other&quot;/,
    isOverwritten: ({ settings: { current } }: FastifyInstance) =>
      current.groups.get(key.id)?.description === 'of the second tab'
  },
  {
    name: 'of a built-in prompt',
    path: `/built-ins/prompts/${key.id}`,
    first: { template: 'Hello of the first tab' },
    second: { template: 'Hello of the second tab' },
    typed: /Hello of the second tab/,
    stored: /Hello of the first tab/,
    isOverwritten: ({ settings: { current } }: FastifyInstance) =>
      current.prompts.get(key.id)?.template === 'Hello of the second tab'
  },
  {
    name: 'of a rule',
    path: `/rules/${key.id}`,
    first: { message: 'of the first tab' },
    second: { message: 'of the second tab', then: 'ask' },
    typed: /value="ask" selected[\s\S]*value="of the second tab"/,
    stored: /&quot;message&quot;: &quot;of the first tab&quot;/,
    isOverwritten: ({ settings: { current } }: FastifyInstance) => current.policies.get(key.id)?.then === 'ask'
  },
  {
    name: 'of a team',
    path: '/teams/crew',
    first: { members: 'admin\nalice' },
    second: { description: 'of the second tab' },
    typed: /value="of the second tab"/,
    stored: /&quot;members&quot;: \[\s*&quot;admin&quot;,\s*&quot;alice&quot;/,
    isOverwritten: (app: FastifyInstance) => app.settings.current.teams.get('crew')?.description === 'of the second tab'
  },
  {
    name: 'of a user',
    path: '/users/alice',
    first: { isAdmin: 'true' },
    second: { isAdmin: 'true', password: 'Other-1234' },
    typed: /value="true" checked/,
    stored: /Rights: Admin/,
    isOverwritten: ({ settings: { current } }: FastifyInstance) => current.users.get('alice')?.password !== alice.password,
    again: { password: 'Other-1234' }
  }
]

for (const { name, path, first, second, typed, stored, isOverwritten, again: added } of forms) {
  void test(`two tabs of the form ${name}: the second is told of the first`, async (t) => {
    const { app, browser } = await start(t)
    const opened = fieldsOf(await browser.get(path))
    assert.ok(opened.revision, 'the form has the revision of the record')
    assert.equal((await browser.post(path, { ...opened, ...first }, path)).status, 303)
    const refused = await browser.post(path, { ...opened, ...second }, path)
    assert.equal(refused.status, 412)
    assert.match(refused.text, /changed in the meantime/)
    assert.match(refused.text, typed)
    assert.match(refused.text, stored)
    assert.ok(!isOverwritten(app))
    const again = await browser.post(path, { ...fieldsOf(refused), ...added, do: 'save' }, path)
    assert.equal(again.status, 303)
    assert.ok(isOverwritten(app))
  })
}

void test('the search in the form of a group does not take the revision of a change in between', async (t) => {
  const { browser } = await start(t)
  const path = `/groups/${key.id}`
  const opened = fieldsOf(await browser.get(path))
  await browser.post(path, { ...opened, description: 'of the first tab' }, path)
  const found = await browser.post(path, { ...opened, do: 'find' }, path)
  assert.equal(found.status, 200)
  assert.equal((await browser.post(path, fieldsOf(found), path)).status, 412)
})
