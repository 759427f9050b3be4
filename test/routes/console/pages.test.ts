// What each page shows and what its forms do, beside who may open them (matrix.test.ts).
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import { SystemSections } from '../../../schemas/system.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { openConnected, openConsole, signedIn, type Answer, type Opened } from '../../helpers/console.ts'

const hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>'

/** A server that is connected, with these tools. */
const startWith = async (t: Test, tools: Array<Record<string, unknown>>): Promise<Opened> =>
  await openConnected(t, { fake: { url: (await startUpstream(t, { tools })).url } })

const isSafe = ({ text }: Answer): void => { assert.doesNotMatch(text, /<script>|<img src=x/) }

void test('a tool is called by the form made from its schema', async (t) => {
  const schema = { type: 'object', required: ['message'], properties: { message: { type: 'string', description: hostile }, n: { type: 'integer' } } }
  const { browser } = await startWith(t, [{ ...tool('echo'), inputSchema: schema, description: hostile }])
  assert.match((await browser.get('/servers/fake')).text, /state connected[\s\S]*href="\/console\/servers\/fake\/tools\/echo"/)
  const page = await browser.get('/servers/fake/tools/echo')
  assert.match(page.text, /name="arg\/message"/)
  isSafe(page)
  const refused = await browser.post('/servers/fake/tools/echo', { do: 'call', mode: 'form', 'arg/message': 'typed', 'arg/n': 'x' })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /id="arg\/n-problem"[\s\S]*This is not a number/)
  assert.match(refused.text, /name="arg\/message"[^>]*>\ntyped</)
  const called = await browser.post('/servers/fake/tools/echo', { do: 'call', mode: 'form', 'arg/message': hostile })
  assert.equal(called.status, 200)
  assert.match(called.text, />Result</)
  isSafe(called)
  const json = await browser.post('/servers/fake/tools/echo', { do: 'json', mode: 'form', 'arg/message': 'm', 'arg/n': '7' })
  assert.match(json.text, /&quot;n&quot;: 7/)
  const back = await browser.post('/servers/fake/tools/echo', { do: 'form', mode: 'json', json: '{"message": "from JSON"}' })
  assert.match(back.text, />\nfrom JSON</)
  assert.match((await browser.post('/servers/fake/tools/echo', { do: 'call', mode: 'json', json: '{' })).text, /id="json-problem"[\s\S]*not JSON/)
  assert.equal((await browser.get('/servers/fake/tools/none')).status, 404)
})

void test('a setting that is refused stands at its field, and only what was changed is sent', async (t) => {
  const { app, browser } = await openConsole(t)
  const refused = await browser.post('/settings', { 'routing.jsonBodyLimit': '5 apples', nameSeparator: '-' }, '/settings')
  assert.equal(refused.status, 400)
  assert.match(refused.text, /id="routing\.jsonBodyLimit-problem"/)
  assert.match(refused.text, /value="5 apples"/)
  const saved = await browser.post('/settings', {
    'routing.jsonBodyLimit': '5mb', 'routing.skipAuth': 'false', nameSeparator: '-', 'smartRouting.llmProviderApiKey': ''
  }, '/settings')
  assert.equal(saved.status, 303)
  assert.deepEqual(app.settings.current.system, { routing: { jsonBodyLimit: '5mb' } })
  await browser.post('/settings', { 'routing.jsonBodyLimit': '', 'smartRouting.llmProviderApiKey': 'secret-of-mine' }, '/settings')
  assert.ok(!(await browser.get('/settings')).text.includes('secret-of-mine'))
  assert.equal(app.settings.current.system.routing?.jsonBodyLimit, undefined)
})

void test('all settings that are refused are told at once, each at its field', async (t) => {
  const { app, browser } = await openConsole(t)
  const refused = await browser.post('/settings', {
    'routing.jsonBodyLimit': '5 apples', 'install.baseUrl': 'nowhere', nameSeparator: 'much too long a separator', 'routing.skipAuth': 'true'
  }, '/settings')
  assert.equal(refused.status, 400)
  for (const field of ['routing\\.jsonBodyLimit', 'install\\.baseUrl', 'nameSeparator']) {
    assert.match(refused.text, new RegExp(`id="${field}-problem"`))
  }
  assert.deepEqual(app.settings.current.system, {})
})

void test('a group has the servers and items that were chosen', async (t) => {
  const { app, browser } = await startWith(t, [tool('echo'), tool('other')])
  const made = await browser.post('/groups/new', {
    name: 'some', description: '', servers: 'fake', 'has:tools:fake': 'true', 'tools:fake': 'echo', 'has:prompts:fake': 'true', 'all:prompts:fake': 'true'
  }, '/groups/new')
  assert.match(made.location, /^\/console\/groups\//)
  const [group] = [...app.settings.current.groups.values()]
  assert.deepEqual(group?.members, [{ name: 'fake', tools: ['echo'] }])
  const page = await browser.get(made.location.replace('/console', ''))
  assert.match(page.text, /1 of 2 tools/)
  assert.match(page.text, /<strong class="numbers">1<\/strong> tools/)
  const refused = await browser.post(made.location.replace('/console', ''), { name: '', servers: 'fake', 'has:tools:fake': 'true', 'tools:fake': 'other' })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /name="tools:fake" value="other" checked/)
  assert.match((await browser.get('/groups')).text, />some</)
})

void test('among many servers, a form shows fifty, finds others by name, and keeps what was chosen', async (t) => {
  const names = Array.from({ length: 60 }, (_, at) => `server-${at}`)
  const { app, browser } = await openConsole(t, {
    mcpServers: Object.fromEntries(names.map((name) => [name, { url: 'http://127.0.0.1:9/mcp', enabled: false }])),
    groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'some', servers: [{ name: 'server-59', tools: ['one'] }] }]
  })
  const shownIn = ({ text }: Answer, field: string): string[] =>
    [...text.matchAll(new RegExp(`type="checkbox" name="${field}" value="([^"]+)"`, 'g'))].map(([, name = '']) => name)
  const path = '/groups/33333333-3333-4333-8333-333333333333'
  const page = await browser.get(path)
  assert.equal(shownIn(page, 'servers').length, 50)
  assert.equal(shownIn(page, 'servers')[0], 'server-59', 'what is chosen comes first')
  const fields = { name: 'typed', description: '', servers: 'server-59', 'has:tools:server-59': 'true', 'tools:server-59': 'one', found: '' }
  // By the button, and by Enter in the search.
  for (const more of [{ do: 'find' }, {}] as Array<Record<string, string>>) {
    const found = await browser.post(path, { ...fields, find: 'server-1', ...more }, path)
    assert.ok(!shownIn(found, 'servers').includes('server-59') && shownIn(found, 'servers').includes('server-15'))
    assert.match(found.text, /type="hidden" name="tools:server-59" value="one"/)
    assert.match(found.text, /value="typed"/)
  }
  const opened = await browser.post(path, { ...fields, find: '', do: 'open:server-59' }, path)
  assert.match(opened.text, /name="tools:server-59" value="one" checked/)
  assert.equal([...app.settings.current.groups.values()][0]?.name, 'some', 'nothing was saved by that')
  await browser.post(path, { ...fields, find: 'server-1', found: 'server-1' }, path)
  assert.deepEqual([...app.settings.current.groups.values()].map(({ name, members }) => [name, members]), [['typed', [{ name: 'server-59', tools: ['one'] }]]])
  const key = await browser.post('/keys/new', { name: 'k', accessType: 'custom', allowedServers: 'server-59', find: 'server-1', found: '' }, '/keys/new')
  assert.match(key.text, /type="hidden" name="allowedServers" value="server-59"/)
  assert.equal(shownIn(key, 'allowedServers')[0], 'server-1')
  const template = await browser.post('/templates/export', { name: 't', serverNames: 'server-59', find: 'server-1', found: '' }, '/templates')
  assert.match(template.text, /type="hidden" name="serverNames" value="server-59"/)
})

void test('an error without a code has a page, too', async (t) => {
  const { app, browser } = await openConsole(t)
  t.intercept(app.groups, 'listWithSelectors', { value: () => { throw new TypeError('broken') } })
  const { status, headers } = await browser.get('/groups')
  assert.deepEqual([status, headers['content-type']], [500, 'text/html; charset=utf-8'])
})

void test('of a query parameter that occurs several times, the first value counts', async (t) => {
  const { browser } = await openConsole(t)
  for (const page of ['keys', 'groups', 'users', 'teams', 'servers', 'logs', 'playground']) {
    const { status, text } = await browser.get(`/${page}?q=first&q=second&route=&eyes=self`)
    assert.deepEqual([status, /name="q"[^>]* value="first"/.test(text)], [200, true], page)
  }
})

void test('users are added, changed and removed; what is refused stands in the form', async (t) => {
  const { app, browser } = await openConsole(t)
  const refused = await browser.post('/add-a-user', { username: 'carol', password: 'x', isAdmin: 'false' }, '/add-a-user')
  assert.equal(refused.status, 400)
  assert.match(refused.text, /value="carol"/)
  assert.ok(!refused.text.includes('value="x"'))
  assert.equal((await browser.post('/add-a-user', { username: 'carol', password: 'Same-1234', isAdmin: 'false' }, '/add-a-user')).location, '/console/users')
  await browser.post('/users/carol', { password: '', isAdmin: 'true' })
  assert.equal(app.settings.current.users.get('carol')?.isAdmin, true)
  assert.match((await browser.get('/users/carol/remove')).text, /Remove carol\?/)
  await browser.post('/users/carol/remove', {})
  assert.equal(app.settings.current.users.has('carol'), false)
})

void test('a template is seen before it is stored', async (t) => {
  const { app, browser } = await openConsole(t)
  const template = JSON.stringify({
    version: '1.0', servers: { [hostile]: { url: 'http://127.0.0.1:9/mcp' } }, groups: [{ name: 'g', servers: [] }], requiredEnvVars: ['TOKEN']
  })
  const seen = await browser.post('/templates/import', { do: 'preview', template }, '/templates')
  assert.match(seen.text, /will be added/)
  assert.match(seen.text, /TOKEN/)
  isSafe(seen)
  assert.equal(app.settings.current.groups.size, 0)
  await browser.post('/templates/import', { do: 'import', template }, '/templates')
  assert.deepEqual([...app.settings.current.groups.values()].map(({ name }) => name), ['g'])
  assert.match((await browser.post('/templates/import', { do: 'preview', template: '{' }, '/templates')).text, /id="template-problem"[\s\S]*not JSON/)
  const exported = await browser.post('/templates/export', { name: 'mine' }, '/templates')
  assert.equal(exported.headers['content-disposition'], 'attachment; filename="mine.json"')
  assert.deepEqual(Object.keys(JSON.parse(exported.text) as object).includes('groups'), true)
})

void test('an import shows what the API remarks about each item, such as a bundle that is not here', async (t) => {
  const { app, browser } = await openConsole(t)
  const bundled = { command: 'node', args: ['/srv/other/bundles/notes/current/server.js'], enabled: false }
  const template = JSON.stringify({ version: '1.0', servers: { notes: bundled, plain: { url: 'http://127.0.0.1:9/mcp' } }, groups: [] })
  const done = await browser.post('/templates/import', { do: 'import', template }, '/templates')
  assert.match(done.text, /notes[\s\S]*added[\s\S]*The bundle &quot;notes&quot; does not exist on this gateway: upload it/)
  assert.equal(done.text.match(/warn-text/g)?.length, 1)
  assert.doesNotMatch(done.text, /value="import"/, 'it is done')
  assert.deepEqual([...app.settings.current.servers.keys()], ['notes', 'plain'])
})

void test('an import keeps the order of servers whose names are numbers', async (t) => {
  const { app, browser } = await openConsole(t)
  const servers = ['zed', '7', '3'].map((name) => `"${name}": {"url": "http://127.0.0.1:9/mcp", "enabled": false}`).join()
  await browser.post('/templates/import', { do: 'import', template: `{"version": "1.0", "servers": {${servers}}}` }, '/templates')
  assert.deepEqual([...app.settings.current.servers.keys()], ['zed', '7', '3'])
})

void test('each setting has a label in words, which the API describes, too', async (t) => {
  const { browser } = await openConsole(t)
  const { text } = await browser.get('/settings')
  const labels = [...text.matchAll(/<label for="([^"]+)">([^<]+)<\/label>/g)].map(([, name = '', label = '']) => [name, label])
  assert.ok(labels.length > 30)
  for (const [name = '', label = ''] of labels) {
    assert.match(label, /^[A-Z$n][\w$ .-]+$/, name)
    assert.notEqual(label.toLowerCase(), name.toLowerCase())
    assert.match(text, new RegExp(`<span class="mono">${name}</span>`))
  }
  assert.equal(new Set(labels.map(([, label]) => label)).size, labels.length, 'no two are the same')
  assert.equal(SystemSections.properties.routing.properties.skipAuth.title, 'Admin API without authentication')
})

void test('built-ins are added with their arguments, switched and removed', async (t) => {
  const { app, browser } = await openConsole(t)
  await browser.post('/built-ins/prompts', { name: 'review', title: '', description: '', template: 'Review {{code}}', arguments: 'lang, code*' })
  const [prompt] = [...app.settings.current.prompts.values()]
  assert.deepEqual(prompt?.arguments, [{ name: 'lang' }, { name: 'code', required: true }])
  const path = `/built-ins/prompts/${prompt?.id ?? ''}`
  assert.match((await browser.get(path)).text, /name="arguments"[^>]*>\s*lang\ncode\*\s*</)
  await browser.post(`${path}/toggle`, { enabled: 'false' })
  assert.match((await browser.get('/built-ins')).text, /review[\s\S]*Turn on/)
  await browser.post(`${path}/remove`, {})
  assert.equal(app.settings.current.prompts.size, 0)
})

void test('the audit log tells what was changed, without secrets', async (t) => {
  const { browser } = await openConsole(t)
  await browser.post('/add-a-user', { username: 'carol', password: 'Same-5678', isAdmin: 'false' }, '/add-a-user')
  const page = await browser.get('/audit?entity=user')
  assert.match(page.text, /added user <strong>carol<\/strong>/)
  assert.ok(!page.text.includes('Same-5678'))
  assert.match((await browser.get('/audit?username=nobody')).text, /No changes match/)
})

void test('lines of the log are text, and are filtered', async (t) => {
  const { app, browser } = await openConsole(t)
  app.logs.addGatewayLine('warn', hostile)
  app.logs.addGatewayLine('warn', 'a second line')
  const page = await browser.get('/logs?level=warn&q=second')
  assert.match(page.text, /a second line/)
  assert.ok(!page.text.includes('onerror'))
  isSafe(await browser.get('/logs'))
  app.logs.addChildLine('chatty', 'of a server')
  const all = (await browser.get('/logs')).text
  assert.ok(all.indexOf('of a server') < all.indexOf('a second line'), 'the newest first')
  const own = (await browser.get('/logs?server=%2F')).text
  assert.match(own, /a second line/)
  assert.doesNotMatch(own, /of a server/)
})

void test('the download of the settings is one of an admin', async (t) => {
  const { app, browser } = await openConsole(t)
  const file = await browser.get('/backup/settings')
  assert.match(String(file.headers['content-disposition']), /attachment/)
  assert.ok(Object.hasOwn(JSON.parse(file.text) as object, 'users'))
  const other = await signedIn(app, 'alice')
  assert.equal((await other.get('/backup/settings')).status, 404)
})

void test('downloads keep the order of servers, also of those whose names are numbers', async (t) => {
  const names = ['zed', '7', '3']
  const { app, browser } = await openConsole(t)
  for (const key of names) {
    await app.settings.change(() => [{ entity: 'mcpServers', key, value: { url: 'http://127.0.0.1:9/mcp', enabled: false } }])
  }
  const inOrder = (text: string): string[] => [...text.matchAll(/"(zed|7|3)": \{/g)].map(([, name = '']) => name)
  assert.deepEqual(inOrder((await browser.get('/backup/settings')).text), names)
  assert.deepEqual(inOrder((await browser.post('/templates/export', { name: 'all' }, '/templates')).text), names)
})

void test('a server is shared with a team, and an admin sees what a member sees', async (t) => {
  const { app, browser } = await startWith(t, [tool('echo')])
  const made = await browser.post('/teams/new', { name: 'web', description: hostile, members: 'alice\n\n ghost ', claims: 'eng' }, '/teams/new')
  assert.match(made.location, /^\/console\/teams/)
  assert.deepEqual([...app.settings.current.teams.values()], [{ name: 'web', description: hostile, members: ['alice', 'ghost'], claims: ['eng'] }])
  const list = await browser.get('/teams')
  assert.match(list.text, /The users &quot;ghost&quot; do not exist yet[\s\S]*alice, ghost/)
  isSafe(list)
  const refused = await browser.post('/teams/new', { name: '@web', members: 'alice' }, '/teams/new')
  assert.equal(refused.status, 400)
  assert.match(refused.text, /must not begin with &quot;@&quot;[\s\S]*>\nalice</)
  assert.match((await browser.get('/users/alice/view')).text, /No servers/)
  assert.match((await browser.get('/servers/fake/configuration')).text, /Others who may use it/)
  await app.settings.change(({ servers }) => [{
    entity: 'mcpServers', key: 'fake', value: { ...servers.get('fake')?.config, sharedWithUsers: ['@web'] }
  }])
  const form = await browser.get('/servers/fake/configuration')
  assert.match(form.text, /value="@web"/)
  const seen = await browser.get('/users/alice/view')
  assert.match(seen.text, /As alice sees it[\s\S]*state connected[\s\S]*echo/)
  assert.match((await browser.get('/users')).text, /\/users\/alice\/view"/)
  const member = await signedIn(app, 'alice')
  assert.match((await member.get('/teams')).text, />web</)
  assert.doesNotMatch((await member.get('/teams')).text, /eng|teams\/new/)
  await browser.post('/teams/web', { description: '', members: '', claims: '' })
  assert.doesNotMatch((await member.get('/teams')).text, />web</)
  await browser.post('/teams/web/remove', {})
  assert.equal(app.settings.current.teams.size, 0)
})
