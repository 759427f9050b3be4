// Chromium for tests of pages: Debian's `chromium-headless-shell`, which takes half of the CPU time of `chromium`, or that one.
// Pictures of the pages are left in .cache/pages.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import axe, { type AxeResults } from 'axe-core'
import { chromium, type Browser, type BrowserContextOptions, type Page as Tab } from 'playwright-core'
import { deadline, path, type Cleanup } from './hub.ts'

const executablePath = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((each) => existsSync(each))
const pictures = path('.cache/pages')

/** A browser; the names of clients on the web (`*.example`) lead to this machine. */
export async function startBrowser (t: Cleanup): Promise<Browser> {
  assert.ok(executablePath, 'these tests need Chromium: apt-get install chromium-headless-shell')
  mkdirSync(pictures, { recursive: true })
  // Chromium's own sandbox refuses to run as root.
  const args = ['--host-resolver-rules=MAP *.example 127.0.0.1', ...(process.geteuid?.() === 0 ? ['--no-sandbox'] : [])]
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

/** axe finds nothing wrong with a page. @param rules some of axe's; none: all */
export async function assertAccessible (tab: Tab, name: string, rules?: readonly string[]): Promise<void> {
  await tab.evaluate(axe.source)
  const options = rules === undefined ? {} : { runOnly: rules }
  const { violations, passes } = await tab.evaluate(`axe.run(${JSON.stringify(options)})`) as AxeResults
  assert.ok(passes.some(({ id }) => id === 'color-contrast'), `${name}: axe did not look at it`)
  assert.deepEqual(violations.map(({ id, impact, nodes }) => [id, impact, nodes.map(({ html }) => html)]), [], name)
}
