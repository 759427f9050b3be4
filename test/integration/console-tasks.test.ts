// The daily tasks in the console, in a browser: wide, narrow, by keyboard alone and without JavaScript. It needs Chromium
// (helpers/chromium.ts).
import assert from 'node:assert/strict'
import type { BrowserContextOptions, Locator, Page as Tab } from 'playwright-core'
import { t as file, test, type Test } from 'tap'
import { startBareModern } from '../fakes/bare-modern.ts'
import { startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { openTab, signedIn, startBrowser } from '../helpers/chromium.ts'
import { connected, Session, text } from '../helpers/client.ts'
import { admin, alice, start } from '../helpers/doors.ts'
import { npmServer, spawnHub, startHub, until, type Hub } from '../helpers/hub.ts'

const browser = await startBrowser(file)

type Window = readonly [name: string, options: BrowserContextOptions]
const wide: Window = ['wide', { viewport: { width: 1280, height: 844 } }]
const narrow: Window = ['narrow', { viewport: { width: 390, height: 844 } }]
const plain: Window = ['narrow, without JavaScript', { viewport: { width: 390, height: 844 }, javaScriptEnabled: false }]

/** Presses Tab until the focus is on an element. */
async function tabTo (tab: Tab, selector: string): Promise<void> {
  for (let press = 0; press < 150; press++) {
    if (await tab.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)) return
    await tab.keyboard.press('Tab')
  }
  assert.fail(`the Tab key does not reach ${selector} at ${tab.url()}`)
}

/** Clicks on what a person can click on in a narrow window as well. */
async function press (tab: Tab, target: Locator | string): Promise<void> {
  const locator = typeof target === 'string' ? tab.locator(target).first() : target
  const size = tab.viewportSize()
  if (size !== null && size.width > 390) {
    await tab.setViewportSize({ ...size, width: 390 })
    await locator.click({ trial: true })
    await tab.setViewportSize(size)
  }
  await locator.click()
}

/** As at the start of each page: leaves the navigation out by the first link, and goes on from there. */
async function skipTo (tab: Tab, selector: string): Promise<void> {
  await tab.keyboard.press('Tab')
  assert.ok(await tab.evaluate("document.activeElement.matches('.skip')"), `the first link of ${tab.url()} leads to its content`)
  await tab.keyboard.press('Enter')
  await tabTo(tab, selector)
}

const inputSchema = { type: 'object', required: ['message'], properties: { message: { type: 'string' } } }
const requestedSchema = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } }, required: ['city'] }

/** A gateway for tasks. `away` is the server that cannot be reached. */
async function startTasks (): Promise<{ hub: Hub, away: Upstream }> {
  const two = await startUpstream(file, { tools: [tool('echo'), tool('other')] })
  const one = await startUpstream(file, { tools: [tool('echo')] })
  const asking = await startBareModern(file, [{ name: 'plan', inputSchema: { type: 'object' } }], ({ method, params }) => {
    if (method !== 'tools/call') return undefined
    const answers = JSON.stringify(params.inputResponses ?? '')
    const inputRequests = { where: { method: 'elicitation/create', params: { mode: 'form', message: 'Where to?', requestedSchema } } }
    return params.requestState === 'asked'
      ? { result: { resultType: 'complete', content: [{ type: 'text', text: `planned ${answers}` }] } }
      : { result: { resultType: 'input_required', inputRequests, requestState: 'asked' } }
  })
  const away = await startUpstream(file, { tools: [tool('echo')] })
  await away.close()
  const hub = await startHub(file, {
    settings: {
      users: [admin, alice],
      mcpServers: {
        fake: { url: two.url },
        asking: { url: asking.url },
        shared: { url: one.url, visibility: 'public' },
        hidden: { url: one.url },
        away: { url: away.url }
      }
    }
  })
  await connected(hub, 4)
  return { hub, away }
}

/** The link of a first start: once from the process that writes it down. */
async function firstLink (t: Test, isProcess: boolean): Promise<{ url: string, link: string }> {
  if (!isProcess) {
    const { app, url } = await start(t, { settings: { users: [admin], bearerKeys: [] } })
    return { url, link: `${url}/console/welcome?code=${app.console.welcome.createCode(admin)}` }
  }
  const hub = await spawnHub(t)
  await until(() => / add everything .*\n/.test(hub.firstWords()), hub.output)
  const link = /^http:\/\/127\.0\.0\.1:\d+\/console\/welcome\?code=\S+$/m.exec(hub.firstWords())?.[0]
  return { url: hub.url, link: link ?? '' }
}

const [scripted, unscripted] = [await startTasks(), await startTasks()]
const startedFor = ({ javaScriptEnabled }: BrowserContextOptions): typeof scripted =>
  javaScriptEnabled === false ? unscripted : scripted

const tabs = new Map<BrowserContextOptions, Promise<Tab>>()
/** The tab of the admin in a window. */
async function adminTab (options: BrowserContextOptions): Promise<Tab> {
  const tab = tabs.get(options) ?? signedIn(file, browser, startedFor(options).hub.url, options)
  tabs.set(options, tab)
  return await tab
}

// Parts that need scripts (copying, progress, answers within the page) are tested in each window.
for (const [name, options] of [wide, narrow, plain]) {
  void test(`from the first start to a call with an own key: ${name}`, async (t) => {
    // A real server and a process of the gateway once: they take longer than all else.
    const isReal = name === 'wide'
    const server = isReal ? npmServer('everything') : { url: (await startUpstream(t, { tools: [tool('echo', { inputSchema })] })).url }
    const { url, link } = await firstLink(t, isReal)
    const { tab } = await openTab(t, browser, options)
    if (options.javaScriptEnabled !== false) await tab.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await tab.goto(link)
    await tab.fill('#password', 'My-own-12')
    await tab.fill('#repeated', 'My-own-12')
    await tab.click('main button.primary')
    await tab.waitForURL('**/overview')
    await tab.click('#first-steps a.button[href$="add-a-server"]')
    await tab.fill('#text', JSON.stringify({ mcpServers: { all: server } }, undefined, 2))
    await tab.click('button[value=read]')
    await tab.waitForSelector('#name-0')
    await tab.click('button[value=test]')
    await tab.waitForSelector('.entry .banner.done')
    await tab.click('button[value=store]')
    await tab.waitForURL(/\/servers\/all/)
    await until(async () => {
      if (options.javaScriptEnabled === false) await tab.reload()
      return await tab.locator('tbody th a', { hasText: /^echo$/ }).count() === 1
    })
    await tab.locator('tbody th a', { hasText: /^echo$/ }).click()
    await tab.fill('[name="arg/message"]', 'from the page')
    await tab.click('button.primary[value=call]')
    await tab.waitForSelector('#result')
    assert.match(await tab.textContent('#result') ?? '', isReal ? /Echo: from the page/ : /from the page/)
    await tab.goto(`${url}/console/keys/new`)
    await tab.fill('#name', 'my agent')
    await tab.click('main button.primary')
    const snippet = tab.locator('.client', { hasText: 'Cursor' }).first()
    await snippet.locator('summary').click().catch(() => {})
    let config = await snippet.locator('pre').first().textContent() ?? ''
    if (options.javaScriptEnabled !== false) {
      await snippet.locator('[data-copy]').first().click()
      await until(async () => await tab.evaluate('navigator.clipboard.readText()') === config)
      config = String(await tab.evaluate('navigator.clipboard.readText()'))
    }
    const { mcpServers: { 'tool-hub': client } } = JSON.parse(config) as { mcpServers: { 'tool-hub': { url: string, headers: Record<string, string> } } }
    const session = await Session.open(client.url, { headers: { authorization: client.headers.Authorization ?? '' } })
    assert.equal(text(await session.call('all-echo', { message: 'hi' })), isReal ? 'Echo: hi' : 'hi')
  })

  void test(`a question of a server is answered in the playground: ${name}`, async () => {
    const { hub } = startedFor(options)
    const tab = await adminTab(options)
    await tab.goto(`${hub.url}/console/playground?route=asking&eyes=self&item=plan`)
    await tab.click('button.primary[value=call]')
    await tab.waitForSelector('.question')
    assert.match(await tab.textContent('.question') ?? '', /Where to\?/)
    await tab.fill('[name="arg/city"]', 'Oslo')
    await tab.fill('[name="arg/days"]', '2.5')
    await tab.click('.question button[value=accept]')
    await tab.waitForSelector('[id="arg/days-problem"]')
    assert.equal(await tab.inputValue('[name="arg/city"]'), 'Oslo')
    await tab.fill('[name="arg/days"]', '2')
    await tab.click('.question button[value=accept]')
    await tab.waitForSelector('#result')
    assert.match(await tab.textContent('#result') ?? '', /planned .*"city":"Oslo","days":2/)
    assert.match(await tab.textContent('main') ?? '', /sent\s+tools\/call/)
  })
}

// Wide with scripts, and narrow without; what is pressed with them could be pressed in a narrow window.
for (const [name, options] of [wide, plain]) {
  void test(`a failing server is mended from the overview: ${name}`, async () => {
    const { hub, away } = startedFor(options)
    const tab = await adminTab(options)
    const shown = async (text: string): Promise<void> => {
      await tab.goto(`${hub.url}/console/overview`)
      await until(async () => {
        if (options.javaScriptEnabled === false) await tab.reload()
        return await tab.locator('#problems').getByText(text).count() > 0
      })
    }
    await shown('away')
    assert.match(await tab.textContent('#problems .why') ?? '', /\w{5}/, 'the reason is there')
    await away.listen()
    await press(tab, tab.locator('#problems').getByText('Reload'))
    await tab.waitForURL('**/servers/away')
    await connected(hub, 5)
    await shown('Nothing is wrong')
  })

  void test(`a group is created, and seen through a key of its own: ${name}`, async () => {
    const { hub } = startedFor(options)
    const tab = await adminTab(options)
    await tab.goto(`${hub.url}/console/groups/new`)
    await tab.fill('#name', 'few')
    await press(tab, 'button[value="open:fake"]')
    await tab.waitForSelector('[name="tools:fake"]')
    assert.equal(await tab.inputValue('#name'), 'few')
    await tab.check('[name="all:tools:fake"][value="false"]')
    await tab.check('[name="tools:fake"][value=other]')
    await press(tab, 'text=Create group')
    await tab.waitForSelector('#seen-title')
    assert.match(await tab.textContent('main') ?? '', /1 of 2 tools/)
    await tab.goto(`${hub.url}/console/keys/new`)
    await tab.fill('#name', 'of the few')
    await tab.check('[name=accessType][value=custom]')
    await tab.check('[name=allowedGroups][value=few]')
    await press(tab, 'text=Create key')
    await tab.waitForSelector('.code pre')
    await tab.goto(`${hub.url}/console/playground`)
    await tab.selectOption('#route', 'few')
    await tab.selectOption('#eyes', { label: 'the key of the few' })
    await press(tab, 'text=Show list')
    await tab.waitForSelector('#list')
    assert.match(await tab.textContent('#list') ?? '', /1 tool .*other/s)
    assert.doesNotMatch(await tab.textContent('#list') ?? '', /echo/)
  })

  void test(`a template is imported, and a setting refused at its field: ${name}`, async () => {
    const { hub } = startedFor(options)
    const tab = await adminTab(options)
    await tab.goto(`${hub.url}/console/templates`)
    const servers = { imported: { url: 'https://mcp.example/mcp' } }
    await tab.fill('#template', JSON.stringify({ version: '1.0', servers, groups: [{ name: 'team', servers: ['imported'] }], requiredEnvVars: [] }))
    await press(tab, 'button[value=preview]')
    await tab.waitForSelector('button[value=import]')
    assert.match(await tab.textContent('main') ?? '', /imported[\s\S]*will be added/)
    await press(tab, 'button[value=import]')
    await tab.waitForURL('**/servers')
    assert.match(await tab.textContent('main') ?? '', /imported/)
    await tab.goto(`${hub.url}/console/settings`)
    await tab.fill('[name="routing.jsonBodyLimit"]', '5 apples')
    await press(tab, tab.locator('main button', { hasText: /^\s*Save/ }).first())
    await tab.waitForSelector('[id="routing.jsonBodyLimit-problem"]')
    assert.equal(await tab.inputValue('[name="routing.jsonBodyLimit"]'), '5 apples')
  })

  void test(`a user tries a shared tool, and makes a key: ${name}`, async (t) => {
    const { hub } = startedFor(options)
    const tab = await signedIn(t, browser, hub.url, options, 'alice')
    await tab.goto(`${hub.url}/console/overview`)
    assert.doesNotMatch(await tab.textContent('body') ?? '', /hidden/)
    for (const page of ['Users', 'Settings', 'Audit', 'Backup']) assert.equal(await tab.locator('nav a', { hasText: page }).count(), 0)
    await tab.goto(`${hub.url}/console/servers`)
    await press(tab, tab.locator('tbody th a', { hasText: 'shared' }))
    assert.equal(await tab.locator('button.switch:enabled').count(), 0, 'a server of somebody else')
    await press(tab, tab.locator('tbody th a', { hasText: 'echo' }))
    await press(tab, 'button.primary[value=call]')
    await tab.waitForSelector('#result')
    await tab.goto(`${hub.url}/console/keys/new`)
    assert.equal(await tab.locator('#owner').count(), 0)
    await tab.fill('#name', 'hers')
    await press(tab, 'text=Create key')
    const key = await tab.textContent('.code pre') ?? ''
    const session = await Session.open(`${hub.url}/mcp`, { headers: { authorization: `Bearer ${key}` } })
    assert.deepEqual(await session.tools(), ['shared-echo'])
  })
}

void test('by keyboard alone: sign in, add a server, call its tool, answer nothing by accident, and sign out', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const hub = await startHub(t, { settings: { users: [admin] } })
  const { tab } = await openTab(t, browser, { viewport: { width: 1280, height: 844 } })
  await tab.goto(`${hub.url}/console`)
  await tabTo(tab, '#username')
  await tab.keyboard.type('admin')
  await tabTo(tab, '#password')
  await tab.keyboard.type('Same-1234')
  await tab.keyboard.press('Enter')
  await tab.waitForURL('**/overview')
  await skipTo(tab, 'a[href$="/add-a-server"]')
  await tab.keyboard.press('Enter')
  await tab.waitForURL('**/add-a-server')
  await skipTo(tab, '#text')
  await tab.keyboard.type(upstream.url)
  await tabTo(tab, 'button[value=read]')
  await tab.keyboard.press('Enter')
  await tab.waitForSelector('#name-0')
  await tabTo(tab, '#name-0')
  await tab.keyboard.press('Control+A')
  await tab.keyboard.type('mine')
  await tabTo(tab, 'button[value=store]')
  await tab.keyboard.press('Enter')
  await tab.waitForURL(/\/servers\/mine/)
  await tab.waitForSelector('tbody th a')
  await skipTo(tab, 'tbody th a')
  await tab.keyboard.press('Enter')
  await tab.waitForURL('**/tools/echo')
  await skipTo(tab, 'button.primary[value=call]')
  await tab.keyboard.press('Enter')
  await tab.waitForSelector('#result')
  await tab.goto(`${hub.url}/console/groups/new`)
  await skipTo(tab, '[name=servers]')
  await tab.keyboard.press('Space')
  await tabTo(tab, '#name')
  await tab.keyboard.type('by keyboard')
  // Enter in a field saves, whatever buttons come before it.
  await tab.keyboard.press('Enter')
  await tab.waitForSelector('#seen-title')
  await tabTo(tab, 'form.who button')
  await tab.keyboard.press('Enter')
  await tab.waitForURL('**/login')
})
