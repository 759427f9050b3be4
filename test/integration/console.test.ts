// The console in a browser: what axe finds, what changes while one looks, and what works without JavaScript (console-tasks.test.ts: the
// daily tasks). It needs Chromium (helpers/chromium.ts).
import assert from 'node:assert/strict'
import { t as file, test, type Test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { assertGood, inWindows, openTab, signedIn, signIn, startBrowser } from '../helpers/chromium.ts'
import { connected } from '../helpers/client.ts'
import { admin, alice } from '../helpers/doors.ts'
import { startHub, until, type Hub } from '../helpers/hub.ts'

const browser = await startBrowser(file)
const hostile = '"><script>document.title="run"</script><img src=x onerror="document.title=1">'
const id = 'f0e6c1de-7f4c-4b1e-9a55-0a4b2f1f1d10'
const long = 'a-name-without-a-break-that-is-longer-than-a-narrow-window'
const schema = { type: 'object', required: ['message'], properties: { message: { type: 'string' }, times: { type: 'integer' } } }

/** A gateway with a server that answers and one that does not. */
async function startConsole (t: Test): Promise<{ hub: Hub, upstream: { url: string } }> {
  const upstream = await startUpstream(t, { tools: [{ ...tool('echo'), inputSchema: schema, description: hostile }] })
  const hub = await startHub(t, {
    settings: {
      users: [admin, alice],
      mcpServers: { fake: { url: upstream.url, description: hostile }, broken: { command: 'node', args: ['-e', 'process.exit(3)'] } },
      groups: [{ id, name: 'some', servers: ['fake'] }],
      policies: [{ id, name: long, when: `tool.name == "${long}"`, then: 'deny', mode: 'observe' }],
      guards: [{ id, name: long, on: 'both', servers: [long], detect: ['card'], action: 'mask', webhook: { url: `https://${long}.example/`, secret: long, whenAway: 'deny' } }],
      quotas: [{ id, name: hostile, target: { user: '*', server: long }, per: 'day', calls: 1_000_000, resultTokens: 1_000_000 }]
    }
  })
  await connected(hub, 1)
  return { hub, upstream }
}

const pages = [
  'overview', 'servers', 'servers/fake', 'servers/broken?view=output', 'servers/fake?view=configuration', 'servers/fake/tools/echo',
  'servers/fake/remove', 'add-a-server', 'groups', 'groups/new', 'keys', 'keys/new', 'playground', 'playground?route=&eyes=self&item=fake-echo',
  'playground?route=&eyes=self&kind=prompts', 'search-lab', 'search-lab?query=echo&route=', 'calls', 'logs', 'audit',
  'servers/fake?view=users', 'rules', 'rules/new', 'approvals', 'guards', 'guards/new', `guards/${id}`, 'quotas', 'quotas/new', 'usage', 'usage?by=tool',
  'users', 'add-a-user', 'oauth', 'built-ins', 'built-ins/prompts/new', 'templates', 'settings', 'backup', 'account', 'nothing'
]

void test('axe finds nothing on any page, wide and narrow, light and dark; nothing is wider than the window, and no markup of others runs', async (t) => {
  const { hub } = await startConsole(t)
  const { tab, complaints } = await openTab(t, browser, { viewport: { width: 1280, height: 844 } })
  for (const page of ['login', ...pages]) {
    await tab.goto(`${hub.url}/console/${page}`)
    await inWindows(tab, [[1280, 'light'], [390, 'dark']], async (width) => { await assertGood(tab, `${page} at ${width}`) })
    assert.notEqual(await tab.title(), 'run', page)
    if (page === 'login') await signIn(tab, hub.url)
  }
  assert.deepEqual(complaints.filter((each) => !/status of 404|^\[DOM\]/.test(each)), [])
})

void test('states change while one looks, switches change in place, and a search needs no button', async (t) => {
  const { hub, upstream } = await startConsole(t)
  const tab = await signedIn(t, browser, hub.url, { viewport: { width: 1280, height: 844 } })
  await tab.goto(`${hub.url}/console/servers`)
  const other = await signedIn(t, browser, hub.url)
  await other.goto(`${hub.url}/console/servers/fake`)
  await other.click('text=Turn off')
  await tab.waitForSelector('tr:has-text("fake") .state.off')
  await tab.fill('#q', 'brok')
  await tab.waitForURL('**/servers?*q=brok*')
  await until(async () => await tab.locator('tbody th').count() === 1)
  assert.ok(upstream.url)
})

void test('the theme is chosen and kept', async (t) => {
  const { hub } = await startConsole(t)
  const tab = await signedIn(t, browser, hub.url, { colorScheme: 'light' })
  await tab.goto(`${hub.url}/console/overview`)
  await tab.click('text=Menu')
  await tab.click('.theme button[value=dark]')
  await until(async () => await tab.evaluate('document.documentElement.dataset.theme') === 'dark')
  await tab.reload()
  assert.equal(await tab.evaluate('document.documentElement.dataset.theme'), 'dark')
})

void test('without JavaScript: sign in, search, switch a tool off, call it, and the menu of a narrow window', async (t) => {
  const { hub } = await startConsole(t)
  const { tab } = await openTab(t, browser, { javaScriptEnabled: false, viewport: { width: 390, height: 844 } })
  await tab.goto(`${hub.url}/console`)
  await tab.fill('#username', 'admin')
  await tab.fill('#password', 'Same-1234')
  await tab.click('main button')
  await tab.waitForURL('**/overview')
  await tab.click('text=Menu')
  await tab.click('nav >> text=Servers')
  await tab.fill('#q', 'fake')
  await tab.click('.search button')
  await tab.waitForURL('**/servers?*q=fake*')
  await tab.click('tbody th a')
  await tab.click('button.switch')
  await tab.waitForSelector('button.switch[aria-checked=false]')
  await tab.click('button.switch')
  await tab.waitForSelector('button.switch[aria-checked=true]')
  await tab.click('tbody th a')
  await tab.fill('[name="arg/message"]', 'x')
  await tab.click('button.primary[value=call]')
  await tab.waitForSelector('#result')
  await tab.click('text=Menu')
  await tab.click('.theme button[value=dark]')
  await tab.waitForSelector('html[data-theme=dark]')
})

void test('the first page with its files is at most 120 KB', async (t) => {
  const { hub } = await startConsole(t)
  const tab = await signedIn(t, browser, hub.url)
  await tab.goto(`${hub.url}/console/overview`, { waitUntil: 'load' })
  const files = await tab.evaluate("[...document.querySelectorAll('link[rel=stylesheet], script[src]')].map((each) => each.href || each.src)") as string[]
  const all = await Promise.all([`${hub.url}/console/login`, ...files].map(async (url) => (await (await fetch(url)).arrayBuffer()).byteLength))
  assert.ok(all.reduce((sum, size) => sum + size, 0) < 120 * 1024, String(all))
})
