// What the forms of the console have in common: how names stand in a field, and what is said of a value that is refused.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { fieldsOf, openConnected, openConsole } from '../../helpers/console.ts'
import { namesIn } from '../../../plugins/management/index.ts'

const off = { command: 'node', enabled: false, owner: 'admin' }

void test('names are parted by commas and new lines, and spaces where no name has them', async () => {
  assert.deepEqual(namesIn(' ada, bob\r\ncarol dave,,\n'), ['ada', 'bob', 'carol', 'dave'])
  assert.deepEqual(namesIn('a tool,\n other , a tool', true), ['a tool', 'other'])
  assert.deepEqual(namesIn(' \n,'), [])
})

void test('each form that takes names takes them with commas and with new lines', async (t) => {
  const { app, browser } = await openConsole(t, { mcpServers: { off } })
  await browser.post('/teams/new', { name: 'web', description: '', members: 'alice, admin', claims: 'cn=a,dc=b\r\nc' })
  const { members, claims } = app.settings.current.teams.get('web') ?? {}
  assert.deepEqual([members, claims], [['alice', 'admin'], ['cn=a,dc=b', 'c']])
  await browser.post('/rules', { name: 'ask', when: 'true', then: 'ask', mode: 'enforce', approvers: 'alice\r\nadmin', message: '' })
  assert.deepEqual([...app.settings.current.policies.values()][0]?.approvers, ['alice', 'admin'])
  const webhook = { 'webhook.url': '', 'webhook.secret': '', 'webhook.timeoutMs': '', 'webhook.whenAway': 'deny' }
  await browser.post('/guards', { name: 'g', on: 'both', servers: 'off, up', tools: ', ', detect: 'card', action: 'mask', ...webhook })
  const [guard] = [...app.settings.current.guards.values()]
  assert.deepEqual([guard?.servers, guard?.tools], [['off', 'up'], undefined])
  for (const path of ['/teams/new', '/rules/new', '/guards/new', '/built-ins/prompts/new']) {
    assert.match((await browser.get(path)).text, /separated by commas or new lines/, path)
  }
})

void test('a server is shared with several names of one field, with nobody by an empty one, and teams are told of', async (t) => {
  const { app, browser } = await openConsole(t, { mcpServers: { off }, teams: [{ name: 'web', members: ['alice'] }] })
  const path = '/servers/off/configuration'
  const share = async (first: string): Promise<string> => {
    const fields = Object.entries(fieldsOf(await browser.get(path))).filter(([name]) => !name.startsWith('arg/sharedWithUsers'))
    const sent = await browser.post(path, { ...Object.fromEntries(fields), do: 'save', 'arg/sharedWithUsers/0': first }, path)
    assert.equal(sent.status, 303)
    return (await browser.get(path)).text
  }
  const shared = (): unknown => app.settings.current.servers.get('off')?.config.sharedWithUsers
  await share('alice, admin')
  assert.deepEqual(shared(), ['alice', 'admin'])
  await share('')
  assert.deepEqual(shared(), undefined)
  assert.match(await share('web'), /&quot;web&quot; is a team: to share the server with it, write &quot;@web&quot;/)
  assert.doesNotMatch(await share('@web'), /is a team: write/)
})

void test('what is refused stands at its field in words, and what was typed stays', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const { browser } = await openConnected(t, { up: { url: upstream.url } }, { mcpServers: { off, up: { url: upstream.url } } })
  const any = { 'target.user': '', 'target.team': '', 'target.key': '', 'target.server': '', 'target.tool': '' }
  const { text: quota } = await browser.post('/quotas', { name: 'q', per: 'day', calls: '-5', resultTokens: '1.5', ...any })
  assert.match(quota, /id="calls-problem"[^§]*?<span>Must be at least 0</)
  assert.match(quota, /id="resultTokens-problem"[^§]*?<span>Must be a whole number</)

  const override = '/servers/up/tools/echo/override'
  for (const [size, status] of [[100_000, 400], [1_500_000, 413]] as const) {
    const answer = await browser.post(override, { description: 'd'.repeat(size) }, '/servers/up/tools/echo')
    assert.equal(answer.status, status)
    assert.match(answer.text, /id="description-problem"/)
    assert.ok(answer.text.includes(`>\n${'d'.repeat(size)}</textarea>`), 'what was typed')
  }
  const huge = await browser.post(override, { description: 'd'.repeat(2_500_000) }, '/servers/up/tools/echo')
  assert.match(huge.text, /Go back: your browser kept what you typed/)

  const json = JSON.stringify({ command: 'node', userVariables: [{ name: '1-x' }] })
  const { text: named } = await browser.post('/servers/off/configuration', { mode: 'json', do: 'save', json })
  assert.match(named, /userVariables\.0\.name: expected at most 64 letters, digits and/)
})

void test('settings that are lists or objects are JSON fields, with their errors at the field', async (t) => {
  const { app, browser } = await openConsole(t)
  const page = await browser.get('/settings')
  const shown = fieldsOf(page)
  assert.deepEqual(JSON.parse(shown['notifications.events'] ?? ''), ['approval', 'change', 'quota'])
  await browser.post('/settings', shown, '/settings')
  assert.deepEqual(app.settings.current.system, {}, 'what is as it was shown is not stored')
  const stored = await browser.post('/settings', { ...shown, 'notifications.events': '["quota"]' }, '/settings')
  assert.equal(stored.status, 303)
  assert.deepEqual(app.settings.current.system.notifications?.events, ['quota'])
  for (const [field, text, problem] of [
    ['notifications.events', '["quota",', /This is not JSON/],
    ['notifications.events', '["meals"]', /[eE]xpected one of approval, change, quota/],
    ['oauthServer.dynamicRegistration', '{"enabled": 7}', /enabled: expected boolean/]
  ] as const) {
    const { status, text: refused } = await browser.post('/settings', { [field]: text }, '/settings')
    assert.equal(status, 400, text)
    const [, said = ''] = new RegExp(`id="${field.replace('.', '\\.')}-problem"([^§]*?)</p>`).exec(refused) ?? []
    assert.match(said, problem)
    assert.ok(refused.includes(text.replaceAll('"', '&quot;')), 'what was typed')
  }
  await browser.post('/settings', { 'notifications.events': '' }, '/settings')
  assert.equal(app.settings.current.system.notifications?.events, undefined)
})

void test('a server that is connecting has no count of tools, and its page shows them when they come', async (t) => {
  const silent = { command: process.execPath, args: ['-e', 'setInterval(() => {}, 1e6)'] }
  const { browser } = await openConsole(t, { mcpServers: { up: silent } })
  const { text } = await browser.get('/servers/up')
  assert.match(text, /<nav class="tabs" id="views" data-live/)
  assert.match(text, /view=tools" aria-current="page">Tools<\/a>/)
  assert.match(text, /<h2>Connecting…<[^§]*?appear here once it has listed them/)
})
