/* eslint-disable no-template-curly-in-string */
// Adding servers by what people have: see what will be stored, test it, store it, and correct what was refused.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { decoded, openConsole, type Answer, type Browser } from '../../helpers/console.ts'

const send = async (browser: Browser, fields: Record<string, string>): Promise<Answer> =>
  await browser.post('/add-a-server', fields, '/add-a-server')
/** The fields of one entry, as the page sends them. */
const entry = (config: object, more: Record<string, string> = {}): Record<string, string> =>
  ({ text: 'x', chosen: '0', 'name-0': 'mine', 'config-0': JSON.stringify(config), ...more })

void test('what will be stored is shown, and nothing is stored by that', async (t) => {
  const { app, browser } = await openConsole(t)
  const text = JSON.stringify({ mcpServers: { notes: { command: 'npx', args: ['notes'], autoApprove: ['x'] }, web: { url: 'https://x.example/mcp' } } })
  const page = await send(browser, { do: 'read', text })
  assert.equal(page.status, 200)
  for (const part of ['name="name-0"', 'value="notes"', 'npx notes', 'value="web"', 'streamable-http', 'autoApprove', 'Add selected']) {
    assert.ok(page.text.includes(part), part)
  }
  assert.equal(app.settings.current.servers.size, 0)
})

void test('a name that is taken or refused is told before anything is stored', async (t) => {
  const { browser } = await openConsole(t, { mcpServers: { notes: { url: 'https://x.example/mcp', enabled: false } } })
  const text = JSON.stringify({ mcpServers: { notes: { command: 'npx' }, 'a/b': { command: 'npx' }, free: { command: 'npx' } } })
  const page = await send(browser, { do: 'read', text })
  assert.equal(page.status, 200)
  assert.match(page.text, /id="name-0-problem"[^]*There is already a server named &quot;notes&quot;/)
  assert.match(page.text, /id="name-1-problem"/)
  assert.doesNotMatch(page.text, /id="name-2-problem"/)
})

void test('the fields of inputs are for secrets, and what was typed stays', async (t) => {
  const { app, browser } = await openConsole(t)
  const text = JSON.stringify({ servers: { a: { url: 'http://127.0.0.1:9/mcp', headers: { 'X-Key': '${input:key}' } } } })
  const page = await send(browser, { do: 'read', text })
  assert.match(page.text, /name="value-0-0" type="password" value=""/)
  const fields = { text, chosen: '0', 'name-0': 'a', ...hiddenFieldsOf(page.text), 'value-0-0': 'typed-secret-1234' }
  const tested = await send(browser, { do: 'test', ...fields })
  assert.match(tested.text, /name="value-0-0" type="password" value="typed-secret-1234"/)
  await send(browser, { do: 'store', ...fields })
  assert.deepEqual(app.settings.current.servers.get('a')?.config.headers, { 'X-Key': 'typed-secret-1234' })
})

/** The config and the variables of the first entry. */
const hiddenFieldsOf = (text: string): Record<string, string> => ({
  'config-0': decoded(/name="config-0"[^>]*>\n([^<]*)</.exec(text)?.[1] ?? ''),
  'variables-0': decoded(/name="variables-0" value="([^"]*)"/.exec(text)?.[1] ?? '')
})

void test('a text that is nothing stays, with the reason at its field', async (t) => {
  const { browser } = await openConsole(t)
  const page = await send(browser, { do: 'read', text: '{"a": "<b>"}' })
  assert.equal(page.status, 400)
  assert.match(page.text, /id="text-problem"[\s\S]*This JSON contains no servers/)
  assert.match(page.text, /\{&quot;a&quot;: &quot;&lt;b&gt;&quot;\}<\/textarea>/)
})

void test('a test connects and stores nothing', async (t) => {
  const { app, browser } = await openConsole(t)
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  assert.match((await send(browser, { do: 'test', ...entry({ url: upstream.url }) })).text, /banner done[\s\S]*It connects, and lists 1 tools/)
  assert.match((await send(browser, { do: 'test', ...entry({ url: 'http://127.0.0.1:9/mcp' }) })).text, /banner error[\s\S]*It does not connect/)
  assert.equal(app.settings.current.servers.size, 0)
})

void test('what is chosen is stored, and leads to its page', async (t) => {
  const { app, browser } = await openConsole(t)
  const done = await send(browser, {
    do: 'store', ...entry({ url: 'http://127.0.0.1:9/mcp', enabled: false }), 'name-1': 'other', 'config-1': '{"url": "http://127.0.0.1:9/x"}'
  })
  assert.deepEqual([done.status, done.location], [303, '/console/servers/mine'])
  assert.deepEqual([...app.settings.current.servers.keys()], ['mine'])
  assert.match((await browser.get('/servers/mine')).text, /Added: &quot;mine&quot;/)
})

void test('what was refused stands at its field, and what was typed stays', async (t) => {
  const { app, browser } = await openConsole(t)
  const wrongJson = await send(browser, { do: 'store', ...entry({}, { 'config-0': '{"url": ' }) })
  assert.equal(wrongJson.status, 400)
  assert.match(wrongJson.text, /id="config-0-problem"[\s\S]*not JSON/)
  const wrongName = await send(browser, { do: 'store', ...entry({ url: 'http://127.0.0.1:9/mcp' }, { 'name-0': 'a/b' }) })
  assert.match(wrongName.text, /id="name-0-problem"/)
  assert.match(wrongName.text, /name="name-0"[^>]* value="a\/b"/)
  assert.match((await send(browser, { do: 'store', ...entry({ command: 1 }) })).text, /id="config-0-problem"[\s\S]*command/)
  const header = await send(browser, { do: 'store', ...entry({ url: 'https://x.example/mcp', headers: { 'a/~b': {} } }) })
  assert.match(header.text, /id="config-0-problem"[\s\S]*headers\.a\/~b: /)
  assert.match((await send(browser, { do: 'store', ...entry({ url: 'x' }), chosen: '7' })).text, /Choose a server first/)
  await send(browser, { do: 'store', ...entry({ url: 'http://127.0.0.1:9/mcp' }) })
  const twice = await send(browser, { do: 'store', ...entry({ url: 'http://127.0.0.1:9/mcp' }) })
  assert.match(twice.text, /There is already a server named &quot;mine&quot;\./)
  assert.deepEqual([...app.settings.current.servers.keys()], ['mine'])
})

void test('one that is refused does not keep the others from it', async (t) => {
  const { app, browser } = await openConsole(t)
  const page = await browser.ask({
    method: 'POST',
    url: '/console/add-a-server',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams([
      ['_csrf', await browser.csrf('/add-a-server')], ['do', 'store'], ['text', 'x'], ['chosen', '0'], ['chosen', '1'],
      ['name-0', 'a/b'], ['config-0', '{"url": "http://127.0.0.1:9/mcp"}'], ['name-1', 'good'], ['config-1', '{"url": "http://127.0.0.1:9/mcp"}']
    ]).toString()
  })
  assert.match(page.text, /Added: &quot;good&quot;/)
  assert.match(page.text, /value="a\/b"/)
  assert.ok(!page.text.includes('value="good"'))
  assert.deepEqual([...app.settings.current.servers.keys()], ['good'])
})

void test('values of variables are filled in once, and what they name is not', async (t) => {
  const { app, browser } = await openConsole(t)
  const variables = (...keys: string[]): string => JSON.stringify({ variables: keys.map((key) => ({ key })) })
  const store = async (args: readonly string[], more: Record<string, string>): Promise<Answer> =>
    await send(browser, { do: 'store', ...entry({ command: 'x', args, enabled: false }, more) })
  await store(['-${a}-${b}'], { 'variables-0': variables('a', 'b'), 'value-0-0': '${b}${b}', 'value-0-1': 'v' })
  assert.deepEqual(app.settings.current.servers.get('mine')?.config.args, ['-${b}${b}-v'])
  // Each use counts, in the configs of all servers together.
  const large = { 'variables-0': variables('a'), 'value-0-0': 'v'.repeat(10_000), 'name-0': 'large' }
  const refused = await store(Array<string>(300).fill('${a}'), large)
  assert.equal(refused.status, 400)
  assert.match(refused.text, /id="config-0-problem"[\s\S]*use a variable less often/)
  assert.ok(refused.text.length < 200_000, 'it is not shown with its values')
  assert.deepEqual([...app.settings.current.servers.keys()], ['mine'])
})

void test('the link back leads to a page of this host', async (t) => {
  const { browser } = await openConsole(t)
  const sourceOf = (back: string): Record<string, string> => ({ source: JSON.stringify({ title: 'Notes', text: 'x', back }) })
  const show = async (back: string): Promise<boolean> =>
    (await send(browser, { do: 'test', ...entry({}), chosen: '', ...sourceOf(back) })).text.includes(`href="${back}"`)
  for (const back of ['//x.example/', '/\\x.example/', '/\t/x.example/', '/\n/x.example/', 'https://x.example/']) assert.equal(await show(back), false, back)
  assert.equal(await show('/console/add-a-server/market'), true)
})
