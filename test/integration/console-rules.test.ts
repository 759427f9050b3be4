// Guards, quotas, usage and what waits for a person, in a browser: wide, and narrow without JavaScript. It needs Chromium
// (helpers/chromium.ts).
import assert from 'node:assert/strict'
import type { BrowserContextOptions } from 'playwright-core'
import { t as file, test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { assertFits, assertGood, signedIn, startBrowser } from '../helpers/chromium.ts'
import { connected, OTHER, otherKey, Session, text } from '../helpers/client.ts'
import { admin, alice } from '../helpers/doors.ts'
import { bearerKey, startHub, until } from '../helpers/hub.ts'

const browser = await startBrowser(file)
const windows: ReadonlyArray<readonly [name: string, options: BrowserContextOptions]> = [
  ['wide', { viewport: { width: 1280, height: 844 } }],
  ['narrow, dark, without JavaScript', { viewport: { width: 390, height: 844 }, colorScheme: 'dark', javaScriptEnabled: false }]
]

for (const [name, options] of windows) {
  // Without JavaScript, axe cannot be asked.
  const assertShown = options.javaScriptEnabled === false ? assertFits : assertGood

  const upstream = await startUpstream(file, { tools: [tool('echo')] })
  const asked = await startUpstream(file, { tools: [{ ...tool('echo'), description: 'Says it again' }] })
  const hub = await startHub(file, {
    settings: {
      users: [admin, alice, { ...alice, username: 'bob' }],
      bearerKeys: [bearerKey(), { ...otherKey(), kind: 'user', owner: 'alice' }],
      policies: [{ id: 'p', name: 'Ask', when: 'tool.server == "asked"', then: 'ask', approvers: ['bob'] }],
      mcpServers: { fake: { url: upstream.url, visibility: 'public' }, asked: { url: asked.url } }
    }
  })
  await connected(hub, 2)
  const tab = await signedIn(file, browser, hub.url, options)

  void test(`a guard and a quota are made, and bound calls; usage tells them: ${name}`, async (t) => {
    const assertPage = async (page: string): Promise<void> => { await assertShown(tab, page) }
    await tab.goto(`${hub.url}/console/guards`)
    await assertPage('guards, empty')
    await tab.click('text=Add a guard')
    await tab.fill('#name', 'No addresses')
    await tab.fill('#servers', 'fake')
    await tab.click('main button.primary')
    await tab.waitForSelector('#detect-problem')
    await assertPage('guards/new, refused')
    assert.equal(await tab.inputValue('#servers'), 'fake')
    await tab.check('[name=detect][value=email]')
    await tab.click('main button.primary')
    await tab.waitForSelector('#guards >> text=masks e-mail addresses')
    await assertPage('guards')
    await tab.goto(`${hub.url}/console/quotas/new`)
    await tab.fill('#name', 'Two')
    await tab.fill('#calls', '2')
    await tab.selectOption('[name="target.user"]', '*')
    await tab.click('main button.primary')
    await tab.waitForSelector('#quotas >> text=2 calls a day')
    await assertPage('quotas')
    const session = await Session.open(`${hub.url}/mcp`, { key: OTHER })
    const call = async (): Promise<string> => text(await session.call('fake-echo', { message: 'ada@example.com' }))
    assert.equal(await call(), '[email]')
    assert.equal(await call(), '[email]')
    assert.match(await call(), /"Two" is used up/)
    await tab.click('text=Turn off')
    await tab.waitForSelector('#quotas >> text=Turn on')
    assert.equal(await call(), '[email]')
    await tab.goto(`${hub.url}/console/usage`)
    await tab.waitForSelector('tbody tr:has-text("alice"):has-text("3")')
    await assertPage('usage')
    await tab.click('tbody th a')
    await tab.waitForSelector('h1 >> text=Usage: alice')
    await assertPage('usage of alice')
    const hers = await signedIn(t, browser, hub.url, options, 'alice')
    await hers.goto(`${hub.url}/console/usage`)
    await hers.waitForSelector('tbody tr:has-text("fake"):has-text("3")')
    for (const page of ['Guards', 'Quotas', 'Rules', 'Approvals']) {
      assert.equal(await hers.locator('nav a', { hasText: page }).count(), 0, page)
    }
  })

  void test(`the counts of the overview lead to where it is decided: ${name}`, async (t) => {
    const his = await signedIn(t, browser, hub.url, options, 'bob')
    await tab.goto(`${hub.url}/console/overview`)
    await his.goto(`${hub.url}/console/overview`)
    assert.equal(await tab.locator('text=Waiting for you').count(), 0)
    const session = await Session.open(`${hub.url}/mcp`)
    const call = async (): Promise<string> => text(await session.call('asked-echo', { message: 'hi' }))
    assert.match(await call(), /bob must allow it/)
    if (options.javaScriptEnabled === false) await his.reload()
    await his.click('#waiting a:has-text("Calls to approve or deny")')
    await his.waitForURL('**/approvals')
    await assertShown(his, 'approvals')
    await his.click('text=Approve')
    await his.waitForSelector('#pending >> text=Nothing is waiting')
    assert.equal(await call(), 'hi')

    asked.options.tools = [{ ...tool('echo'), description: 'Says it twice' }]
    await asked.broadcast('notifications/tools/list_changed')
    await until(async () => {
      if (options.javaScriptEnabled === false) await tab.reload()
      return await tab.locator('#waiting a:has-text("Changed definitions of asked")').count() === 1
    })
    await assertShown(tab, 'overview')
    await tab.click('#waiting a:has-text("Changed definitions of asked")')
    await tab.waitForURL('**/servers/asked/definitions')
    await tab.click('text=Accept')
    await tab.waitForSelector('text=Nothing has changed')
    await tab.goto(`${hub.url}/console/overview`)
    assert.equal(await tab.locator('text=Waiting for you').count(), 0)
  })
}
