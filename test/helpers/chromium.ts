// Chromium for tests of pages: Debian's `chromium-headless-shell`, which takes half of the CPU time of `chromium`, or that one.
// Pictures of the pages are left in .cache/pages.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { chromium, type Browser, type BrowserContextOptions, type Page as Tab } from 'playwright-core'
import { deadline, path, type Cleanup } from './hub.ts'

const executablePath = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((each) => existsSync(each))
const pictures = path('.cache/pages')
const axe = readFileSync(path('node_modules/axe-core/axe.min.js'), 'utf8')

/** A browser; the names of clients on the web (`*.example`) lead to this machine. */
export async function startBrowser (t: Cleanup): Promise<Browser> {
  assert.ok(executablePath, 'these tests need Chromium: apt-get install chromium-headless-shell')
  mkdirSync(pictures, { recursive: true })
  const args = [
    '--host-resolver-rules=MAP *.example 127.0.0.1',
    // A page is left before the code of axe that was optimised for it has paid.
    '--js-flags=--no-turbofan --no-maglev',
    // Chromium's own sandbox refuses to run as root.
    ...(process.geteuid?.() === 0 ? ['--no-sandbox'] : [])
  ]
  const browser = await chromium.launch({ executablePath, args, timeout: deadline })
  t.after(async () => { await browser.close() })
  return browser
}

/** A tab without cookies. @returns it, and what it complains of: violations of the policy, mostly */
export async function openTab (
  t: Cleanup, browser: Browser, options: BrowserContextOptions = {}
): Promise<{ tab: Tab, complaints: string[] }> {
  const context = await browser.newContext({ viewport: { width: 800, height: 900 }, ...options })
  t.after(async () => { await context.close() })
  const tab = await context.newPage()
  tab.setDefaultTimeout(deadline)
  const complaints: string[] = []
  tab.on('console', (message) => { complaints.push(message.text()) })
  tab.on('pageerror', (error) => { complaints.push(error.message) })
  return { tab, complaints }
}

/** Keeps a picture of a page. */
export async function picture (tab: Tab, name: string): Promise<void> {
  await tab.screenshot({ path: `${pictures}/${name}.png`, fullPage: true })
}

/** Signs in without a look at the page that asks for it. @returns when the tab has a session of the console */
export async function signIn (tab: Tab, url: string, username = 'admin', password = 'Same-1234'): Promise<void> {
  const { request } = tab.context()
  const page = await (await request.get(`${url}/console/login`)).text()
  const form = { _csrf: /name="_csrf" value="([^"]+)"/.exec(page)?.[1] ?? '', username, password }
  const answer = await request.post(`${url}/console/login`, { form, maxRedirects: 0 })
  assert.equal(answer.status(), 303, `${username} cannot sign in`)
}

/** A tab of somebody who has signed in, at no page yet. */
export async function signedIn (
  t: Cleanup, browser: Browser, url: string, options: BrowserContextOptions = {}, username = 'admin'
): Promise<Tab> {
  const { tab } = await openTab(t, browser, options)
  await signIn(tab, url, username)
  return tab
}

export type Window = readonly [width: number, colorScheme: 'light' | 'dark']

/** The rules of axe whose verdict can hang on the width or the colours of the window: what is hidden or scrolls there. */
const rulesOfWindows = [
  'color-contrast', 'button-name', 'link-name', 'summary-name', 'label', 'select-name', 'label-content-name-mismatch',
  'link-in-text-block', 'scrollable-region-focusable', 'skip-link', 'region', 'empty-table-header', 'empty-heading', 'heading-order'
]

/**
 * The page that a tab has is good in windows of other widths and colours, which load nothing anew: all rules of axe in
 * the first one, and in the others those that hang on the window.
 */
export async function assertGoodInWindows (tab: Tab, name: string, windows: readonly Window[]): Promise<void> {
  for (const [at, [width, colorScheme]] of windows.entries()) {
    await tab.setViewportSize({ width, height: 844 })
    await tab.emulateMedia({ colorScheme })
    await assertGood(tab, `${name} at ${width}`, at === 0 ? undefined : rulesOfWindows)
  }
}

/** Tabs whose pages have axe. */
const withAxe = new WeakSet<Tab>()

/** What is read of an answer of axe: all of it takes longer to send than to find. */
const summary = `({ violations, passes }) => ({
  violations: violations.map(({ id, impact, nodes }) => [id, impact, nodes.map(({ html }) => html)]),
  hasLooked: passes.some(({ id }) => id === 'color-contrast')
})`

/** axe finds nothing wrong with a page. @param rules some of axe's; none: all */
export async function assertAccessible (tab: Tab, name: string, rules?: readonly string[]): Promise<void> {
  if (!withAxe.has(tab)) {
    withAxe.add(tab)
    // The pages after this one have it from their start: a script that the browser has compiled already.
    await tab.addInitScript({ content: axe })
    await tab.evaluate(axe)
  }
  // For rules that pass, it reports one element each. The rule that reads style sheets is not on by default.
  const only = rules !== undefined && { runOnly: rules }
  const options = { resultTypes: ['violations'], preload: { assets: ['media'] }, ...only }
  const { violations, hasLooked } = await tab.evaluate(`axe.run(${JSON.stringify(options)}).then(${summary})`) as
    { violations: unknown[], hasLooked: boolean }
  assert.ok(hasLooked, `${name}: axe did not look at it`)
  assert.deepEqual(violations, [], name)
}

/** axe finds nothing wrong with a page, and nothing is wider than the window. */
export async function assertGood (tab: Tab, name: string, rules?: readonly string[]): Promise<void> {
  await assertAccessible(tab, name, rules)
  await assertFits(tab, name)
}

export async function assertFits (tab: Tab, name: string): Promise<void> {
  assert.equal(await tab.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, `${name} is wider than the window`)
}
