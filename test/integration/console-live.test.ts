// Open pages of the console in a browser: what comes by their stream, and what they say while it is cut off. It needs Chromium
// (helpers/chromium.ts).
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { Page as Tab } from 'playwright-core'
import { t as file, test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { signedIn, startBrowser } from '../helpers/chromium.ts'
import { connected, Session, settings } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { admin, alice } from '../helpers/doors.ts'
import { freePort, startHub, until } from '../helpers/hub.ts'

const browser = await startBrowser(file)

const wide = { viewport: { width: 1280, height: 844 } }
const low = { viewport: { width: 1280, height: 600 } }

void test('a page says that the gateway is away, and goes on by itself when it is back', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, n) =>
    [`server-${n}`, { command: 'node', args: ['-e', '0'], enabled: false, owner: 'admin' }]))
  const env = { PORT: String(await freePort()) }
  const hub = await startHub(t, { settings: { users: [admin, alice], mcpServers: many }, env })
  const tab = await signedIn(t, browser, hub.url, wide)
  await tab.goto(`${hub.url}/console/servers?q=server-77`)
  await tab.waitForSelector('tr:has-text("server-77")')
  assert.equal(await tab.isVisible('#cut-off'), false)
  await hub.stop()
  await tab.waitForSelector('#cut-off', { state: 'visible' })
  assert.ok(await tab.isVisible('tr:has-text("server-77")'), 'what was last known stays')
  // Sessions are beside the settings.
  const stored = JSON.parse(await readFile(hub.settingsPath, 'utf8')) as { mcpServers: object }
  const mcpServers = { ...stored.mcpServers, 'server-777': { command: 'node', args: ['-e', '0'], enabled: false } }
  await startHub(t, { folder: hub.folder, settings: { ...stored, mcpServers }, env })
  await tab.waitForSelector('#cut-off', { state: 'hidden' })
  await tab.waitForSelector('tr:has-text("server-777")')
})

void test('a stream that a proxy refuses is asked for again', async (t) => {
  const hub = await startHub(t, { settings: { users: [admin, alice] } })
  const tab = await signedIn(t, browser, hub.url, wide)
  let refused = 0
  await tab.route('**/console/live?*', async (route) => {
    refused++
    await (refused > 1 ? route.continue() : route.fulfill({ status: 502, body: 'starting' }))
  })
  await tab.goto(`${hub.url}/console/servers`)
  await tab.waitForSelector('#cut-off', { state: 'visible' })
  await tab.waitForSelector('#cut-off', { state: 'hidden' })
  await until(() => refused === 2)
})

const rows = 'tbody tr:not(.reason)'

/** Waits in the page until it has exactly this number of rows. */
async function hasRows (tab: Tab, count: number): Promise<void> {
  await tab.locator(rows).nth(count - 1).waitFor()
  assert.equal(await tab.locator(rows).count(), count)
}

void test('new calls come to an open page, marked; what is read and chosen keeps its place, and filters hold', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('other')] })
  const { url } = await database(t)
  const hub = await startHub(t, { settings: settings({ fake: { url: upstream.url } }, { users: [admin, alice] }), env: { DB_URL: url } })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const call = async (name: string, times = 1): Promise<void> => {
    for (let n = 0; n < times; n++) await session.call(`fake-${name}`, { message: String(n) })
  }
  const tab = await signedIn(t, browser, hub.url, low)
  const others = await signedIn(t, browser, hub.url, wide)
  await tab.goto(`${hub.url}/console/calls`)
  await tab.waitForSelector('text=Nobody has called anything yet')
  await call('echo')
  await tab.waitForSelector(rows)
  await call('echo', 19)
  await hasRows(tab, 20)
  assert.ok(await tab.locator(`${rows}.new`).count() >= 1, 'they are marked')
  assert.match(await tab.innerText('#turn'), /\b20 calls/)

  await tab.reload()
  assert.equal(await tab.locator('.new').count(), 0)
  await others.goto(`${hub.url}/console/calls?tool=other`)
  await others.waitForSelector('text=No calls match')
  const last = tab.locator(rows).nth(15)
  await last.locator('input').check()
  await tab.mouse.move(5, 5)
  const before = await last.boundingBox()
  assert.ok(await tab.evaluate('scrollY > 0'), 'the row is further down')
  const key = await last.getAttribute('data-row') ?? ''
  await call('other', 3)
  await hasRows(tab, 23)
  const row = tab.locator(`[data-row="${key}"]`)
  assert.deepEqual(await row.boundingBox(), before)
  assert.ok(await row.locator('input').isChecked())
  assert.equal(await tab.locator(`${rows}.new`).count(), 3)
  assert.match(await tab.innerText('#turn'), /\b23 calls/)
  await hasRows(others, 3)
  await call('echo')
  await hasRows(tab, 24)
  assert.equal(await others.locator(rows).count(), 3, 'the filter holds')
})

void test('a row under the pointer or with the focus keeps its place, too', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const { url } = await database(t)
  const hub = await startHub(t, { settings: settings({ fake: { url: upstream.url } }, { users: [admin, alice] }), env: { DB_URL: url } })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  for (let n = 0; n < 20; n++) await session.call('fake-echo', { message: String(n) })
  const tab = await signedIn(t, browser, hub.url, low)
  await until(async () => {
    await tab.goto(`${hub.url}/console/calls`)
    return await tab.locator(rows).count() === 20
  })
  const link = tab.locator(`${rows} a`).first()
  const path = await link.getAttribute('href') ?? ''
  await link.focus()
  const same = tab.locator(`a[href="${path}"]`)
  const before = await same.boundingBox()
  await session.call('fake-echo', { message: 'new' })
  await hasRows(tab, 21)
  assert.deepEqual(await same.boundingBox(), before)
  assert.equal(await tab.evaluate('document.activeElement.getAttribute("href")'), path)
})

void test('lines of the log come to an open page, and the line that is read stays', async (t) => {
  const prints = 'setInterval(() => { for (let n = 0; n < 40; n++) console.error(n, Date.now()) }, 1e3)'
  const hub = await startHub(t, { settings: { users: [admin, alice], mcpServers: { chatty: { command: 'node', args: ['-e', prints] } } } })
  const tab = await signedIn(t, browser, hub.url, wide)
  await tab.goto(`${hub.url}/console/logs?server=chatty`)
  await tab.locator('.log li.new').nth(29).waitFor({ state: 'attached' })
  await tab.evaluate("document.querySelector('.log').scrollTop = 300")
  const read = await tab.evaluate(`(() => {
    const top = document.querySelector('.log').getBoundingClientRect().top
    const line = [...document.querySelectorAll('.log li')].find((each) => each.getBoundingClientRect().top >= top)
    return [line.dataset.row, line.getBoundingClientRect().top]
  })()`) as [string, number]
  const first = await tab.getAttribute('.log li', 'data-row') ?? ''
  await tab.waitForSelector(`.log li:first-child:not([data-row="${first}"])`, { state: 'attached' })
  const top = Number(await tab.evaluate(`document.querySelector('[data-row="${read[0]}"]').getBoundingClientRect().top`))
  assert.ok(Math.abs(top - read[1]) < 1, `${top}, and ${read[1]} before: boxes scroll by whole pixels`)
})
