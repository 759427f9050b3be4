// The HTML pages in a browser: what is seen, what the keyboard reaches, what a form sends, and where a redirect of it may go. Run by
// `npm run test:system`; it needs Chromium (apt-get install chromium), and leaves pictures of the pages in .cache/pages.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import axe, { type AxeResults } from 'axe-core'
import { chromium, type Browser, type Page as Tab } from 'playwright-core'
import { before, test } from 'tap'
import { checkOrigin, originRules } from '../../plugins/auth/origin.ts'
import { describeScopes, type ConsentPage, type LoginPage, type Page } from '../../plugins/pages/index.ts'
import { loadPages } from '../../plugins/pages/pages.ts'
import { path, until, type Cleanup } from '../helpers/hub.ts'

const executablePath = '/usr/bin/chromium'
const pictures = path('.cache/pages')
const timeout = 120_000
const pages = await loadPages()

before(() => {
  assert.ok(existsSync(executablePath), 'these tests need Chromium: apt-get install chromium')
  mkdirSync(pictures, { recursive: true })
})

/** A browser for one test, to which the names of clients on the web lead to this machine. */
async function startBrowser (t: Cleanup): Promise<Browser> {
  // Chromium's own sandbox refuses to run as root.
  const args = ['--host-resolver-rules=MAP *.example 127.0.0.1', ...(process.geteuid?.() === 0 ? ['--no-sandbox'] : [])]
  const browser = await chromium.launch({ executablePath, args })
  t.after(async () => { await browser.close() })
  return browser
}

interface Asked { method: string, host: string, path: string, headers: IncomingHttpHeaders, form: URLSearchParams }
interface Answer { status?: number, headers?: Readonly<Record<string, string>>, html?: string }

/** A server on loopback that is everybody in these tests: the gateway, and its clients under other names. */
interface Site { url: string, port: number, asked: Asked[] }

/** @param answer what to answer; undefined: 404 */
async function startSite (t: Cleanup, answer: (request: Asked) => Answer | undefined): Promise<Site> {
  const asked: Asked[] = []
  const server = createServer((request, reply) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => { chunks.push(chunk) }).on('end', () => {
      const one = {
        method: request.method ?? '',
        host: request.headers.host ?? '',
        path: request.url ?? '',
        headers: request.headers,
        form: new URLSearchParams(Buffer.concat(chunks).toString())
      }
      asked.push(one)
      const { status = 200, headers = { 'content-type': 'text/html' }, html = '<title>Here</title>' } = answer(one) ?? { status: 404 }
      reply.writeHead(status, headers).end(html)
    })
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.after(() => { server.close(); server.closeAllConnections() })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, asked }
}

const form = { csrf: 'c-1', action: '/oauth/authorize', hidden: { request: 'r-1' } }
const long = 'An application whose name is as long as names may be, and-without-any-space-in-it'
const client = { name: long, redirectUri: `https://${'a-rather-long-host-name.'.repeat(4)}example/callback` }
const login: LoginPage = { ...form, client, others: [{ name: 'Code Host', href: '/api/social/codehost' }] }
const consent: ConsentPage = {
  ...form,
  username: 'alice',
  client: { ...client, id: 'https://notes.example/oauth/client-metadata.json', uri: 'https://notes.example/' },
  isSelfRegistered: true,
  scopes: [...describeScopes(['mcp', 'manage', 'profile', 'openid']), { name: 'other' }],
  resource: 'https://hub.example/mcp/a-server-with-a-long-name',
  logoutAction: '/oauth/logout'
}
const everyPage: Record<string, Page> = {
  login: pages.login(login),
  'login-failed': pages.login({ ...login, username: 'alice', error: 'The username or the password is wrong.' }),
  consent: pages.consent(consent),
  // Shown without its refresh, which would leave at once.
  leave: withoutRefresh(pages.leave({ client, href: '/done' })),
  problem: pages.problem({ title: 'This request is not valid', text: 'The application is not known here. Start again from it.', status: 400 }),
  start: pages.start({ server: 'a-server', whose: 'the user alice', href: '/oauth/login/t/continue?proof=p', url: client.redirectUri }),
  refused: pages.refused({
    title: 'This request cannot be answered',
    text: 'The scope is not known.',
    status: 400,
    client,
    href: `${client.redirectUri}?error=invalid_scope`
  }),
  done: pages.done({ title: 'Connected', text: 'You can close this page.' })
}
function withoutRefresh (page: Page): Page {
  return { ...page, html: page.html.replace(/<meta http-equiv="refresh"[^>]*>/, '') }
}

/** Expressions for the browser; the types of its globals are not those of this program. */
const inPage = {
  /** Elements with content that does not fit into them. */
  cutOff: `[...document.querySelectorAll('html, body *')]
    .filter((each) => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline' && !each.closest('svg'))
    .map((each) => each.outerHTML.slice(0, 200))`,
  /** All that can be pressed or typed into. */
  controls: "[...document.querySelectorAll('a[href], button, input:not([type=hidden])')].map((each) => each.outerHTML)",
  hasFocus: 'document.activeElement !== document.body',
  focused: '[document.activeElement.outerHTML, getComputedStyle(document.activeElement).outlineStyle]'
}

/** A new tab, and what it complains of: violations of the policy, mostly. */
async function openTab (
  t: Cleanup,
  browser: Browser,
  options: Parameters<Browser['newContext']>[0] = {}
): Promise<{ tab: Tab, complaints: string[] }> {
  const context = await browser.newContext(options)
  t.after(async () => { await context.close() })
  const tab = await context.newPage()
  const complaints: string[] = []
  tab.on('console', (message) => { complaints.push(message.text()) })
  tab.on('pageerror', (error) => { complaints.push(error.message) })
  return { tab, complaints }
}

/** A site that shows every page at `/<name>`, with 200: the browser would complain of another status. */
const gallery = async (t: Cleanup): Promise<Site> => await startSite(t, ({ path: asked }) => {
  const page = everyPage[asked.slice(1)]
  return page && { ...page, status: 200 }
})

for (const colorScheme of ['light', 'dark'] as const) {
  test(`every page, ${colorScheme}`, { timeout }, async (t) => {
    const browser = await startBrowser(t)
    const site = await gallery(t)
    for (const name of Object.keys(everyPage)) {
      await t.test(name, async (t) => {
        const { tab, complaints } = await openTab(t, browser, { colorScheme, viewport: { width: 800, height: 900 } })
        await tab.goto(`${site.url}/${name}`)
        await tab.screenshot({ path: `${pictures}/${name}-${colorScheme}.png`, fullPage: true })
        // The style was accepted: the policy has its hash.
        assert.equal(await tab.evaluate('getComputedStyle(document.body).maxWidth'), '544px')
        assert.deepEqual(complaints, [])

        await tab.evaluate(axe.source)
        const { violations, passes } = await tab.evaluate('axe.run()') as AxeResults
        assert.ok(passes.some(({ id }) => id === 'color-contrast'))
        assert.deepEqual(violations.map(({ id, impact, nodes }) => [id, impact, nodes.map(({ html }) => html)]), [])
      })
    }
  })
}

test('at 320 pixels, at 200 %, and with letters twice as large, nothing is cut off', { timeout }, async (t) => {
  const browser = await startBrowser(t)
  const site = await gallery(t)
  for (const [what, options, letters] of [
    ['320 pixels', { viewport: { width: 320, height: 640 } }, '100%'],
    ['1,280 pixels at 200 %', { viewport: { width: 640, height: 480 }, deviceScaleFactor: 2 }, '100%'],
    ['letters twice as large', { viewport: { width: 320, height: 640 } }, '200%']
  ] as const) {
    await t.test(what, async (t) => {
      const { tab } = await openTab(t, browser, options)
      for (const name of Object.keys(everyPage)) {
        await tab.goto(`${site.url}/${name}`)
        await tab.evaluate(`document.documentElement.style.fontSize = '${letters}'`)
        assert.deepEqual(await tab.evaluate(inPage.cutOff), [], name)
        if (letters === '100%' && options.viewport.width === 320) await tab.screenshot({ path: `${pictures}/${name}-320.png`, fullPage: true })
      }
    })
  }
})

test('the keyboard alone reaches everything, and what has the focus is seen', { timeout }, async (t) => {
  const browser = await startBrowser(t)
  const site = await gallery(t)
  const { tab } = await openTab(t, browser)
  for (const name of Object.keys(everyPage)) {
    await tab.goto(`${site.url}/${name}`)
    const there = await tab.evaluate(inPage.controls) as string[]
    // A page may begin with the focus on a field: back to its start.
    while (await tab.evaluate(inPage.hasFocus)) await tab.keyboard.press('Shift+Tab')
    const reached: string[] = []
    for (let n = 0; n < there.length; n++) {
      await tab.keyboard.press('Tab')
      const [html, outline] = await tab.evaluate(inPage.focused) as [string, string]
      reached.push(html)
      assert.equal(outline, 'solid', html)
    }
    assert.deepEqual(reached, there, name)
  }
})

/** A gateway that answers the pages, and a decision with a redirect to the client. */
async function startFlow (t: Cleanup, pageOf: (port: number) => Page, redirectUri: (port: number) => string): Promise<Site> {
  const site: Site = await startSite(t, ({ method, path: asked, host }) => {
    if (asked.startsWith('/callback') && host.startsWith('hops.')) return { status: 307, headers: { location: `http://onward.example:${site.port}/end` } }
    if (asked === '/page') return pageOf(site.port)
    if (method === 'POST' || asked === '/resume') return { status: 303, headers: { location: redirectUri(site.port) } }
    return {}
  })
  return site
}
const arrivedAt = (site: Site, place: string) => async (): Promise<boolean> => site.asked.some(({ host, path: asked }) => `${host}${asked}`.startsWith(place))

test('a form by keyboard sends what was typed and pressed, with the gateway\'s own origin', { timeout }, async (t) => {
  const browser = await startBrowser(t)
  const redirectUri = (port: number): string => `http://notes.example:${port}/callback?code=1`
  const pageOf = (of: 'login' | 'consent') => (port: number): Page => of === 'login'
    ? pages.login({ ...login, client: { name: 'Notes', redirectUri: redirectUri(port) } })
    : pages.consent({ ...consent, client: { ...consent.client, redirectUri: redirectUri(port) } })
  const rules = originRules('127.0.0.1', '', '')

  for (const [what, of, keys, expected] of [
    ['login', 'login', ['Tab', 'alice', 'Tab', 'secret', 'Enter'], { request: 'r-1', csrf: 'c-1', username: 'alice', password: 'secret' }],
    ['Allow', 'consent', ['Tab', 'Enter'], { request: 'r-1', csrf: 'c-1', decision: 'allow' }],
    ['Deny', 'consent', ['Tab', 'Tab', ' '], { request: 'r-1', csrf: 'c-1', decision: 'deny' }]
  ] as const) {
    await t.test(what, async (t) => {
      const site = await startFlow(t, pageOf(of), redirectUri)
      const { tab, complaints } = await openTab(t, browser)
      await tab.goto(`${site.url}/page`)
      for (const key of keys) key.length === 1 || /^(Tab|Enter)$/.test(key) ? await tab.keyboard.press(key) : await tab.keyboard.type(key)
      await until(arrivedAt(site, `notes.example:${site.port}/callback`), () => complaints.join('\n'))
      const posted = site.asked.find(({ method }) => method === 'POST')
      assert.deepEqual(Object.fromEntries(posted?.form ?? []), expected)
      assert.equal(posted?.headers.origin, site.url)
      checkOrigin(rules, posted?.host, posted?.headers.origin, undefined)
      // The client learns nothing of the request that led to it.
      assert.equal(site.asked.find(({ host }) => host.startsWith('notes.'))?.headers.referer, undefined)
      assert.deepEqual(complaints, [])
    })
  }

  await t.test('no-referrer would have made the origin "null"', async (t) => {
    const page = pageOf('consent')
    const site = await startFlow(t, (port) => ({ ...page(port), headers: { ...page(port).headers, 'referrer-policy': 'no-referrer' } }), redirectUri)
    const { tab } = await openTab(t, browser)
    await tab.goto(`${site.url}/page`)
    await tab.getByRole('button', { name: 'Allow' }).click()
    await until(arrivedAt(site, `notes.example:${site.port}/callback`), () => '')
    const origin = site.asked.find(({ method }) => method === 'POST')?.headers.origin
    t.comment(`With Referrer-Policy: no-referrer, this Chromium sends Origin: ${origin}`)
    assert.throws(() => { checkOrigin(rules, '127.0.0.1', origin, undefined) }, { code: 'TH_FOREIGN_ORIGIN' })
  })
})

test('the redirect after a decision', { timeout }, async (t) => {
  const browser = await startBrowser(t)
  /** Presses Allow on the consent page of a client with this redirect URI. @param policy changes the page's policy */
  async function allow (
    t: Cleanup,
    redirectUri: (port: number) => string,
    policy = (it: string) => it
  ): Promise<{ site: Site, complaints: string[], tab: Tab }> {
    const site = await startFlow(t, (port) => {
      const page = pages.consent({ ...consent, client: { ...consent.client, redirectUri: redirectUri(port) } })
      return { ...page, headers: { ...page.headers, 'content-security-policy': policy(page.headers['content-security-policy'] ?? '') } }
    }, redirectUri)
    const { tab, complaints } = await openTab(t, browser)
    await tab.goto(`${site.url}/page`)
    await tab.getByRole('button', { name: 'Allow' }).click()
    await until(async () => site.asked.some(({ method }) => method === 'POST'), () => 'the form was not sent')
    return { site, complaints, tab }
  }
  const onlySelf = (policy: string): string => policy.replace(/form-action [^;]*/, "form-action 'self'")
  /** Waits until the browser has refused a redirect, or some time in which it would have. */
  const refused = async (complaints: string[]): Promise<boolean> =>
    await until(async () => complaints.some((each) => each.includes('form-action')), () => '').then(() => true, () => false)

  for (const [what, host] of [['on the web', 'notes.example'], ['on this computer', 'localhost']] as const) {
    await t.test(`reaches a client ${what}`, async (t) => {
      const { site, complaints } = await allow(t, (port) => `http://${host}:${port}/callback?code=1`)
      await until(arrivedAt(site, `${host}:${site.port}/callback?code=1`), () => complaints.join('\n'))
      assert.deepEqual(complaints, [])
    })
  }

  await t.test('is handed to an app on the device', async (t) => {
    const { complaints, tab } = await allow(t, () => 'notes-app://callback?code=1')
    assert.equal(await refused(complaints), false, complaints.join('\n'))
    assert.equal(new URL(tab.url()).pathname, '/page')
  })

  await t.test('would be refused, had the policy named the gateway alone', async (t) => {
    for (const redirectUri of [(port: number) => `http://notes.example:${port}/callback`, () => 'notes-app://callback']) {
      const { complaints } = await allow(t, redirectUri, onlySelf)
      t.comment(`With form-action 'self', this Chromium ${await refused(complaints) ? 'refuses' : 'follows'} the redirect to ${redirectUri(80)}`)
    }
  })

  await t.test('of a client that redirects on: only the page that leaves gets through', async (t) => {
    const redirectUri = (port: number): string => `http://hops.example:${port}/callback?code=1`
    const { complaints } = await allow(t, redirectUri)
    t.comment(`After a form, this Chromium ${await refused(complaints) ? 'refuses' : 'follows'} a client's own redirect to another origin`)

    const site = await startFlow(t, (port) => pages.leave({ client: { name: 'Hops', redirectUri: redirectUri(port) }, href: '/resume' }), redirectUri)
    const { tab, complaints: more } = await openTab(t, browser)
    await tab.goto(`${site.url}/page`, { waitUntil: 'commit' })
    await until(arrivedAt(site, `onward.example:${site.port}/end`), () => more.join('\n'))
    assert.deepEqual(site.asked.filter(({ host }) => host.endsWith(`.example:${site.port}`)).map(({ headers }) => headers.referer), [undefined, undefined])
    assert.deepEqual(more, [])
  })

  await t.test('of the page that leaves is handed to an app on the device', async (t) => {
    const redirectUri = (): string => 'notes-app://callback?code=1'
    const site = await startFlow(t, () => pages.leave({ client: { name: 'App', redirectUri: redirectUri() }, href: '/resume' }), redirectUri)
    const { tab, complaints } = await openTab(t, browser)
    await tab.goto(`${site.url}/page`, { waitUntil: 'commit' })
    await until(async () => site.asked.some(({ path: asked }) => asked === '/resume'), () => complaints.join('\n'))
    assert.equal(await refused(complaints), false, complaints.join('\n'))
    assert.match(await tab.title(), /^Back to the application/)
  })
})

test('a client in a browser that opened a window for the login still has it afterwards', { timeout }, async (t) => {
  const browser = await startBrowser(t)
  const redirectUri = (port: number): string => `http://notes.example:${port}/callback?code=1`
  const pageOf = (port: number): Page => pages.consent({ ...consent, client: { ...consent.client, redirectUri: redirectUri(port) } })
  const site = await startFlow(t, pageOf, redirectUri)
  const { tab } = await openTab(t, browser)
  await tab.goto(`http://notes.example:${site.port}/start`)
  const [popup] = await Promise.all([tab.waitForEvent('popup'), tab.evaluate(`void open('${site.url}/page')`)])
  await popup.getByRole('button', { name: 'Allow' }).click()
  await popup.waitForURL('**/callback?code=1')
  assert.equal(await popup.evaluate('opener !== null'), true)
})
