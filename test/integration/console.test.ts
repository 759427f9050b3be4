// The console in a browser: what changes while one looks, and what works without JavaScript (console-attacks.test.ts: what axe finds on
// all pages; console-tasks.test.ts: the daily tasks). It needs Chromium (helpers/chromium.ts).
import assert from 'node:assert/strict'
import { t as file, test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { assertGoodInWindows, openTab, signedIn, startBrowser } from '../helpers/chromium.ts'
import { connected } from '../helpers/client.ts'
import { admin, alice } from '../helpers/doors.ts'
import { startHub, until } from '../helpers/hub.ts'

const browser = await startBrowser(file)
const inputSchema = { type: 'object', required: ['message'], properties: { message: { type: 'string' } } }
const upstream = await startUpstream(file, { tools: [tool('echo', { inputSchema })] })
const mcpServers = { fake: { url: upstream.url }, broken: { command: 'node', args: ['-e', 'process.exit(3)'] } }
const hub = await startHub(file, { settings: { users: [admin, alice], mcpServers } })
await connected(hub, 1)

void test('axe finds nothing on pages with nothing to show, and nothing is wider than the window', async (t) => {
  const tab = await signedIn(t, browser, hub.url, { viewport: { width: 1280, height: 844 } })
  for (const page of ['keys', 'calls', 'audit', 'rules']) {
    await tab.goto(`${hub.url}/console/${page}`)
    await assertGoodInWindows(tab, page, [[1280, 'light'], [390, 'dark']])
  }
})

void test('states change while one looks, switches change in place, and a search needs no button', async (t) => {
  const tab = await signedIn(t, browser, hub.url, { viewport: { width: 1280, height: 844 } })
  await tab.goto(`${hub.url}/console/servers`)
  const other = await signedIn(t, browser, hub.url)
  await other.goto(`${hub.url}/console/servers/fake`)
  await other.click('text=Turn off')
  await tab.waitForSelector('tr:has-text("fake") .state.off')
  await other.click('text=Turn on')
  await connected(hub, 1)
  await tab.fill('#q', 'brok')
  await tab.waitForURL('**/servers?*q=brok*')
  await until(async () => await tab.locator('tbody th').count() === 1)
})

void test('a switch that gets no answer says so', async (t) => {
  const tab = await signedIn(t, browser, hub.url, { viewport: { width: 1280, height: 844 } })
  await tab.goto(`${hub.url}/console/servers/fake`)
  await tab.route('**/items', async (route) => { await route.abort() })
  const button = tab.locator('[role=switch]').first()
  await button.click()
  await tab.waitForSelector('#not-sent', { state: 'visible' })
  assert.equal(await button.getAttribute('aria-checked'), 'true')
  await tab.unroute('**/items')
  for (const isOn of ['false', 'true']) {
    await button.click()
    await until(async () => await button.getAttribute('aria-checked') === isOn)
    assert.equal(await tab.isVisible('#not-sent'), false)
  }
})

void test('a search is answered though its list changes during the request', async (t) => {
  const tab = await signedIn(t, browser, hub.url, { viewport: { width: 1280, height: 844 } })
  await tab.goto(`${hub.url}/console/servers`)
  let letGo = (): void => {}
  const held = new Promise<void>((resolve) => { letGo = resolve })
  await tab.route(/servers\?.*q=/, async (route) => { await held; await route.continue() })
  const asked = tab.waitForRequest(/servers\?.*q=/)
  await tab.fill('#q', 'broken')
  await asked
  const other = await signedIn(t, browser, hub.url)
  await other.goto(`${hub.url}/console/servers/fake`)
  await other.click('text=Turn off')
  await tab.waitForSelector('tr:has-text("fake") .state.off')
  letGo()
  await tab.waitForURL('**/servers?*q=broken*')
  await until(async () => await tab.locator('tbody th').count() === 1)
  await other.click('text=Turn on')
  await connected(hub, 1)
})

void test('the theme is chosen and kept', async (t) => {
  const tab = await signedIn(t, browser, hub.url, { colorScheme: 'light' })
  await tab.clock.install()
  await tab.goto(`${hub.url}/console/overview`)
  await tab.click('text=Menu')
  await tab.click('.theme button[value=dark]')
  await until(async () => await tab.evaluate('document.documentElement.dataset.theme') === 'dark')
  await tab.clock.runFor(1_000)
  assert.equal(await tab.locator('.theme [aria-busy]').count(), 0, 'its button does not wait for a page')
  await tab.reload()
  assert.equal(await tab.evaluate('document.documentElement.dataset.theme'), 'dark')
})

void test('the theme is chosen by the form itself if the request of the script is refused', async (t) => {
  const tab = await signedIn(t, browser, hub.url, { colorScheme: 'light' })
  await tab.goto(`${hub.url}/console/overview`)
  let refused = 0
  await tab.route('**/console/theme', async (route) => {
    refused++
    await (refused > 1 ? route.continue() : route.fulfill({ status: 429, body: 'too many requests' }))
  })
  await tab.click('text=Menu')
  await tab.click('.theme button[value=dark]')
  await tab.waitForSelector('html[data-theme=dark]')
  await tab.reload()
  assert.equal(await tab.evaluate('document.documentElement.dataset.theme'), 'dark')
})

void test('without JavaScript: sign in, search, switch a tool off, call it, and the menu of a narrow window', async (t) => {
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
  const tab = await signedIn(t, browser, hub.url)
  await tab.goto(`${hub.url}/console/overview`, { waitUntil: 'load' })
  const files = await tab.evaluate("[...document.querySelectorAll('link[rel=stylesheet], script[src]')].map((each) => each.href || each.src)") as string[]
  const all = await Promise.all([`${hub.url}/console/login`, ...files].map(async (url) => (await (await fetch(url)).arrayBuffer()).byteLength))
  assert.ok(all.reduce((sum, size) => sum + size, 0) < 120 * 1024, String(all))
})
