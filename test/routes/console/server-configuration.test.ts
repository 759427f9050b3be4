// The configuration of a stored server, as a form and as JSON: what is not touched stays, what is refused stands at its field.
import assert from 'node:assert/strict'
import type { FastifyInstance } from 'fastify'
import { test, type Test } from 'tap'
import { decoded, fieldsOf, openConsole, type Opened } from '../../helpers/console.ts'
import { key } from '../../helpers/doors.ts'

const path = '/servers/mine/configuration'
const mine = {
  command: 'node',
  args: ['-e', '0'],
  env: { TOKEN: 'secret-of-mine-1234', MODE: 'fast' },
  enabled: false,
  owner: 'admin',
  visibility: 'private',
  tools: { echo: { enabled: false } },
  custom: { kept: [1] }
}

const start = async (t: Test, config: object = mine): Promise<Opened> => await openConsole(t, {
  mcpServers: { mine: config, other: { ...mine, args: [] } },
  groups: [{ id: key.id, name: 'office', servers: ['mine'] }],
  bearerKeys: [{ ...key, name: 'my agent', accessType: 'servers', allowedServers: ['mine'] }]
})

const stored = (app: FastifyInstance): Record<string, unknown> => ({ ...app.settings.current.servers.get('mine')?.config })

void test('the form has the fields of the transport, with the words of the schema, and masks secrets', async (t) => {
  const { browser } = await start(t)
  const page = await browser.get(path)
  const fields = fieldsOf(page)
  assert.equal(fields['arg/command'], 'node')
  assert.deepEqual([fields['arg/args/0'], fields['arg/args/1']], ['-e', '0'])
  assert.deepEqual([fields['arg/env/0/name'], fields['arg/env/0/value']], ['TOKEN', '••••1234'])
  assert.equal(fields['arg/url'], undefined)
  assert.match(page.text, /Working directory of the command/)
  assert.doesNotMatch(page.text, /secret-of-mine/)
})

void test('an argument of several lines keeps them', async (t) => {
  const args = ['-c', 'export A=1\nexec node x.mjs']
  const { app, browser } = await start(t, { ...mine, args })
  const fields = fieldsOf(await browser.get(path))
  const [argument = ''] = [fields['arg/args/1']]
  const done = await browser.send(path, { ...fields, do: 'save', 'arg/args/1': argument.replace('\n', '\r\n'), 'arg/description': 'Mine' })
  assert.equal(done.status, 303)
  assert.deepEqual([stored(app).args, stored(app).description], [args, 'Mine'])
})

void test('what is saved replaces what the form shows; secrets, overrides and unknown members stay', async (t) => {
  const { app, browser } = await start(t)
  const done = await browser.send(path, { ...fieldsOf(await browser.get(path)), do: 'save', 'arg/args/1': '1', 'arg/description': 'Mine', 'arg/options/timeout': '5000' })
  assert.deepEqual([done.status, done.location], [303, `/console${path}`])
  const { args, env, description, options, tools, custom, cwd } = stored(app)
  assert.deepEqual({ args, env, description, options, tools, custom, cwd }, {
    args: ['-e', '1'], env: mine.env, description: 'Mine', options: { timeout: 5000 }, tools: mine.tools, custom: mine.custom, cwd: undefined
  })
})

void test('an override that was set while the form was open stays', async (t) => {
  const { app, browser } = await start(t)
  const sent = fieldsOf(await browser.get(path))
  await browser.post('/servers/mine/items', { kind: 'tools', key: 'echo', enabled: 'true' })
  assert.equal((await browser.send(path, { ...sent, do: 'save' })).status, 303)
  assert.equal(stored(app).tools, undefined)
})

void test('entries are added and taken away without JavaScript, and nothing is stored by that', async (t) => {
  const { app, browser } = await start(t)
  const sent = fieldsOf(await browser.get(path))
  const added = fieldsOf(await browser.send(path, { ...sent, do: 'add:arg/env' }))
  assert.equal(added['arg/env/2/name'], '')
  const taken = fieldsOf(await browser.send(path, { ...added, do: 'remove:arg/env/0', 'arg/env/2/name': 'NEW', 'arg/env/2/value': 'n' }))
  assert.deepEqual([taken['arg/env/0/name'], taken['arg/env/1/name']], ['MODE', 'NEW'])
  assert.deepEqual(stored(app).env, mine.env)
  await browser.send(path, { ...taken, do: 'save' })
  assert.deepEqual(stored(app).env, { MODE: 'fast', NEW: 'n' })
})

void test('another type has other fields, and what was typed is there again with the former one', async (t) => {
  const { app, browser } = await start(t)
  const sent = { ...fieldsOf(await browser.get(path)), 'arg/command': 'deno' }
  const remote = await browser.send(path, { ...sent, do: 'choose:type', 'arg/type': '2' })
  const fields = fieldsOf(remote)
  assert.deepEqual([fields['arg/url'], fields['arg/command']], ['', undefined])
  assert.equal(fieldsOf(await browser.send(path, { ...fields, do: 'choose:type', 'arg/type': '0' }))['arg/command'], 'deno')
  const wrong = await browser.send(path, { ...fields, do: 'save', 'arg/env/0/name': '' })
  assert.equal(wrong.status, 400)
  assert.match(wrong.text, /id="arg\/url-problem"[\s\S]*needs a &quot;url&quot;/)
  await browser.send(path, { ...fields, do: 'save', 'arg/url': 'http://127.0.0.1:9/mcp' })
  const { type, url, command, env } = stored(app)
  assert.deepEqual({ type, url, command, env }, { type: 'streamable-http', url: 'http://127.0.0.1:9/mcp', command: undefined, env: undefined })
})

void test('what the API refuses stands at its field, and what was typed stays', async (t) => {
  const { app, browser } = await start(t, { url: 'http://127.0.0.1:9/mcp', enabled: false })
  const sent = fieldsOf(await browser.get(path))
  const ofUrl = await browser.send(path, { ...sent, do: 'save', 'arg/url': 'ftp://"><b>' })
  assert.equal(ofUrl.status, 400)
  assert.match(ofUrl.text, /id="arg\/url-problem"[\s\S]*must be an absolute http or https address/)
  assert.equal(fieldsOf(ofUrl)['arg/url'], 'ftp://"><b>')
  const ofOptions = await browser.send(path, { ...sent, do: 'save', 'arg/keepAliveInterval': '5' })
  assert.match(ofOptions.text, /id="arg\/keepAliveInterval-problem"/)
  const ofNumber = await browser.send(path, { ...sent, do: 'save', 'arg/keepAliveInterval': 'often' })
  assert.match(ofNumber.text, /id="arg\/keepAliveInterval-problem"[\s\S]*not a number/)
  const ofOwner = await browser.send(path, { ...sent, do: 'save', 'arg/owner': 'nobody-here' })
  assert.match(ofOwner.text, /id="arg\/owner-problem"[\s\S]*there is no user named/)
  const ofMasks = await browser.send(path, { ...sent, do: 'save', 'arg/headers/0/name': 'A', 'arg/headers/0/value': '••••1234' })
  assert.match(ofMasks.text, /id="arg\/headers\/0\/value-problem"[\s\S]*this is a mask, not a value/)
  assert.equal(stored(app).url, 'http://127.0.0.1:9/mcp')
})

void test('names stand in errors as they are written, and several errors at once', async (t) => {
  const { app, browser } = await start(t)
  const refused = await browser.post(path, {
    mode: 'json', do: 'save', json: JSON.stringify({ ...mine, headers: { Authorization: ['x'] }, args: [{}], autoApprove: true })
  }, path)
  assert.equal(refused.status, 400)
  const text = decoded(refused.text)
  assert.match(text, /headers\.Authorization: /)
  assert.match(text, /args\.0: /)
  assert.doesNotMatch(text, /Headers\.|Args\.|"AutoApprove"/)
  assert.deepEqual(stored(app), { ...stored(app), ...mine })
  const { capitalizeMessage } = await import('../../../plugins/management/console/sentences.ts')
  assert.deepEqual(
    ['must not be empty', '"autoApprove" has no effect', 'headers.Authorization is wrong', 'env: expected', 'npx is not there', 'the end'].map(capitalizeMessage),
    ['Must not be empty', '"autoApprove" has no effect', 'headers.Authorization is wrong', 'env: expected', 'npx is not there', 'The end']
  )
})

void test('as JSON: the same config, the same checks, and back to the form with what was typed', async (t) => {
  const { app, browser } = await start(t)
  const sent = { ...fieldsOf(await browser.get(path)), 'arg/description': 'typed in the form' }
  const json = fieldsOf(await browser.send(path, { ...sent, do: 'json' }))
  const config = JSON.parse(json.json ?? '') as Record<string, unknown>
  assert.deepEqual([config.description, config.custom, config.env as object], ['typed in the form', mine.custom, { TOKEN: '••••1234', MODE: '••••' }])
  const broken = await browser.send(path, { ...json, do: 'save', json: '{"command": ' })
  assert.match(broken.text, /id="json-problem"[\s\S]*not JSON/)
  assert.equal(fieldsOf(broken).json, '{"command": ')
  const refused = await browser.send(path, { ...json, do: 'save', json: JSON.stringify({ ...config, args: 'x' }) })
  assert.match(refused.text, /id="json-problem"[\s\S]*args: expected array/)
  const lossy = await browser.send(path, { ...json, do: 'form', json: JSON.stringify({ ...config, args: 'x' }) })
  assert.match(lossy.text, /id="json-problem"[\s\S]*The form cannot show this/)
  const back = fieldsOf(await browser.send(path, { ...json, do: 'form', json: JSON.stringify({ ...config, cwd: '/srv' }) }))
  assert.equal(back['arg/cwd'], '/srv')
  await browser.send(path, { ...json, do: 'save', json: JSON.stringify({ ...config, cwd: '/srv' }) })
  const { cwd, env, custom } = stored(app)
  assert.deepEqual({ cwd, env, custom }, { cwd: '/srv', env: mine.env, custom: mine.custom })
})

void test('a test connects with what was typed and the stored secrets, and stores nothing', async (t) => {
  const { app, browser } = await start(t)
  const sent = fieldsOf(await browser.get(path))
  const page = await browser.send(path, { ...sent, do: 'test', 'arg/args/1': 'process.exit(3)' })
  assert.match(page.text, /banner error[\s\S]*It does not connect[\s\S]*Nothing was stored/)
  assert.equal(fieldsOf(page)['arg/args/1'], 'process.exit(3)')
  assert.deepEqual(stored(app).args, mine.args)
})

void test('renaming says what changes with it, follows in groups and keys, and keeps what was refused', async (t) => {
  const { app, browser } = await start(t, { url: 'http://127.0.0.1:9/mcp', enabled: false, env: { A: 'secret-of-mine-1234' } })
  const page = await browser.get('/servers/mine/rename')
  for (const part of ['mine-…', '/mcp/mine', 'The group &quot;office&quot;', 'The key &quot;my agent&quot;']) assert.ok(page.text.includes(part), part)
  const refused = await browser.post('/servers/mine/rename', { newName: 'other' })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /value="other"/)
  assert.match(refused.text, /There is already a server named &quot;other&quot;/)
  assert.match((await browser.post('/servers/mine/rename', { newName: 'a/b' })).text, /id="newName-problem"/)
  const done = await browser.post('/servers/mine/rename', { newName: 'tickets' })
  assert.deepEqual([done.status, done.location], [303, '/console/servers/tickets'])
  const { servers, groups, keys } = app.settings.current
  assert.deepEqual(servers.get('tickets')?.config.env, { A: 'secret-of-mine-1234' })
  assert.deepEqual([...groups.values()].map(({ members }) => members.map(({ name }) => name)), [['tickets']])
  assert.deepEqual([...keys.values()].map(({ allowedServers }) => allowedServers), [['tickets']])
})

void test('removing names the groups, keys and logins that it ends', async (t) => {
  const { app, browser } = await start(t, { url: 'http://127.0.0.1:9/mcp' })
  const page = await browser.get('/servers/mine/remove')
  for (const part of ['The group &quot;office&quot;', 'The key &quot;my agent&quot;', 'Logins at it are removed']) assert.ok(page.text.includes(part), part)
  assert.doesNotMatch((await browser.get('/servers/other/remove')).text, /office|my agent|logins/)
  await browser.post('/servers/mine/remove', {})
  assert.equal(app.settings.current.servers.has('mine'), false)
})
