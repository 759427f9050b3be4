// Servers in the console, in a browser: configuration, catalogues, bundles, trials with progress. It needs Chromium (helpers/chromium.ts).
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { t as file, test } from 'tap'
import { startUpstream, tool, type Call } from '../fakes/fault-http.ts'
import { zip } from '../fakes/zip.ts'
import { assertAccessible, signedIn, startBrowser } from '../helpers/chromium.ts'
import { connected, type Json } from '../helpers/client.ts'
import { admin } from '../helpers/doors.ts'
import { startHub, until } from '../helpers/hub.ts'

const browser = await startBrowser(file)
const hostile = '"><script>document.title="run"</script><img src=x onerror="document.title=1">'

const calls: Call[] = []
/** Its tool answers when the test says so. */
const upstream = await startUpstream(file, {
  tools: [tool('slow')],
  on: (call) => {
    if (call.method !== 'tools/call') return undefined
    calls.push(call)
    return 'never'
  }
})
const off = { command: 'node', args: ['-e', '0'], env: { TOKEN: 'secret-of-mine-1234' }, enabled: false }
const hub = await startHub(file, {
  settings: { users: [admin], mcpServers: { fake: { url: upstream.url }, 'with-scripts': off, 'without-scripts': off, typed: off } }
})
await connected(hub, 1)

const storedIn = async (name: string): Promise<Json> =>
  (JSON.parse(await readFile(hub.settingsPath, 'utf8')) as { mcpServers: Record<string, Json> }).mcpServers[name] ?? {}

for (const javaScriptEnabled of [true, false]) {
  void test(`a configuration is edited as a form and as JSON, ${javaScriptEnabled ? 'with' : 'without'} JavaScript`, async (t) => {
    const name = javaScriptEnabled ? 'with-scripts' : 'without-scripts'
    const tab = await signedIn(t, browser, hub.url, { javaScriptEnabled, viewport: { width: 1280, height: 844 } })
    await tab.goto(`${hub.url}/console/servers/${name}`)
    await tab.click('text=Configuration')
    await tab.click('button[value="add:arg/args"]')
    await tab.fill('[name="arg/args/2"]', '--verbose')
    await tab.click('button[value="remove:arg/args/1"]')
    await tab.click('summary:has-text("More")')
    await tab.fill('[name="arg/owner"]', 'nobody-here')
    await tab.click('.narrow button.primary')
    await tab.waitForSelector('[id="arg/owner-problem"]')
    assert.equal(await tab.inputValue('[name="arg/args/1"]'), '--verbose')
    await tab.fill('[name="arg/owner"]', 'admin')
    await tab.click('.narrow button[value=json]')
    const config = JSON.parse(await tab.inputValue('#json')) as Json
    assert.deepEqual([config.args, config.env], [['-e', '--verbose'], { TOKEN: '••••1234' }])
    await tab.fill('#json', JSON.stringify({ ...config, args: 7 }))
    await tab.click('.narrow button.primary')
    await tab.waitForSelector('#json-problem')
    await tab.fill('#json', JSON.stringify({ ...config, cwd: '/srv' }))
    await tab.click('.narrow button.primary')
    await tab.waitForSelector('.banner.done')
    const { args, cwd, env } = await storedIn(name)
    assert.deepEqual({ args, cwd, env }, { args: ['-e', '--verbose'], cwd: '/srv', env: { TOKEN: 'secret-of-mine-1234' } })
  })
}

void test('Enter in a field saves; another type has other fields', async (t) => {
  const tab = await signedIn(t, browser, hub.url, { viewport: { width: 390, height: 844 } })
  await tab.goto(`${hub.url}/console/servers/typed/configuration`)
  await tab.fill('[name="arg/cwd"]', '/tmp')
  await tab.press('[name="arg/cwd"]', 'Enter')
  await tab.waitForSelector('.banner.done')
  await tab.selectOption('[name="arg/type"]', { label: 'streamable-http' })
  await tab.click('button[value="choose:type"]')
  await tab.fill('[name="arg/url"]', 'http://127.0.0.1:9/mcp')
  await tab.click('.narrow button.primary')
  await tab.waitForSelector('.banner.done')
  const { type, url, command } = await storedIn('typed')
  assert.deepEqual({ type, url, command }, { type: 'streamable-http', url: 'http://127.0.0.1:9/mcp', command: undefined })
})

void test('a server from the market, and one from a bundle, without JavaScript', async (t) => {
  const tab = await signedIn(t, browser, hub.url, { javaScriptEnabled: false, viewport: { width: 1280, height: 844 } })
  await tab.goto(`${hub.url}/console/add-a-server`)
  await tab.click('.tabs >> text=Market')
  await tab.fill('#q', 'jira')
  await tab.click('.search button')
  await tab.click('.found a >> text=Atlassian')
  await tab.fill('#value-0-0', 'https://x.example')
  await tab.click('button[value=store]')
  await tab.waitForURL(/\/servers\/atlassian/)
  assert.equal(((await storedIn('atlassian')).env as Json).JIRA_URL, 'https://x.example')
  await tab.goto(`${hub.url}/console/add-a-server/bundle`)
  const manifest = {
    manifest_version: '0.3',
    name: 'weather',
    version: '1.0.0',
    server: { type: 'node', entry_point: 'index.js', mcp_config: { command: 'node', args: ['${__dirname}/index.js'], env: { KEY: '${user_config.key}' } } }, // eslint-disable-line no-template-curly-in-string
    user_config: { key: { type: 'string', title: 'API key', description: hostile, required: true, sensitive: true } }
  }
  const buffer = zip([{ name: 'manifest.json', data: JSON.stringify(manifest) }, { name: 'index.js', data: '0' }])
  await tab.setInputFiles('#mcpbFile', { name: 'weather.mcpb', mimeType: 'application/zip', buffer })
  await tab.click('main button.primary')
  await tab.fill('#value-0-0', 'key-of-mine')
  await tab.click('button[value=store]')
  await tab.waitForURL(/\/servers\/weather/)
  assert.deepEqual((await storedIn('weather')).env, { KEY: 'key-of-mine' })
})

void test('a call shows its progress, and its result in the same page; one that is cancelled ends at the server', async (t) => {
  const tab = await signedIn(t, browser, hub.url, { viewport: { width: 1280, height: 844 } })
  await tab.goto(`${hub.url}/console/servers/fake/tools/slow`)
  await tab.click('.actions button[value=call]')
  await until(() => calls.length === 1, 'it was never called')
  const [call] = calls
  assert.ok(call)
  call.notify('notifications/progress', { progressToken: (call.params._meta as Json).progressToken, progress: 3, total: 4, message: hostile })
  await tab.waitForSelector('#calling p:has-text("3 of 4")')
  assert.equal(await tab.evaluate("document.querySelector('progress').value"), 3)
  await assertAccessible(tab, 'a call in progress')
  call.res.end(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: call.id, result: { content: [{ type: 'text', text: 'of the call' }] } })}\n\n`)
  await tab.waitForSelector('#result:focus:has-text("of the call")')
  await tab.click('.actions button[value=call]')
  await until(() => calls.length === 2, 'it was never called again')
  await tab.click('[data-cancel]')
  await tab.waitForSelector('#result:focus:has-text("Cancelled.")')
  await until(() => upstream.cancelled.length === 1, 'it was never cancelled')
  assert.notEqual(await tab.title(), 'run')
})
