// The HTML pages in a browser: what is seen, what the keyboard reaches, what a form sends, and where a redirect of it may go. Run by
// `npm run test:system`; it needs Chromium (helpers/chromium.ts).
import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { Page as Tab } from 'playwright-core'
import { t as file, test } from 'tap'
import { checkOrigin, readOriginRules } from '../../plugins/identity/auth/origin.ts'
import { loadPages, type ConsentPage, type HtmlPage as Page, type LoginPage } from '../../plugins/base/pages/pages.ts'
import { describeScopes } from '../../plugins/base/pages/scopes.ts'
import { assertAccessible, openTab, picture, startBrowser } from '../helpers/chromium.ts'
import { until, type Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'

const pages = loadPages()
const browser = await startBrowser(file)

interface Asked { method: string, host: string, path: string, headers: IncomingHttpHeaders, form: URLSearchParams }
interface Answer { status?: number, headers?: Readonly<Record<string, string>>, html?: string }

/** A server on loopback that is everybody in these tests: the gateway, and its clients under other names. */
interface Site { url: string, port: number, asked: Asked[] }

/** @param answer what to answer; undefined: 404 */
async function startSite (t: Cleanup, answer: (request: Asked) => Answer | undefined): Promise<Site> {
  const asked: Asked[] = []
  const server = createServer((request, reply) => {
    const { method = '', url: path = '', headers } = request
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => { chunks.push(chunk) }).on('end', () => {
      const one = { method, host: headers.host ?? '', path, headers, form: new URLSearchParams(Buffer.concat(chunks).toString()) }
      asked.push(one)
      const { status = 200, headers: sent = { 'content-type': 'text/html' }, html = '<title>Here</title>' } = answer(one) ?? { status: 404 }
      reply.writeHead(status, sent).end(html)
    })
  })
  const port = await listen(t, server)
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
const unclear = { title: 'This request cannot be answered', text: 'The scope is not known.', status: 400 }
const everyPage: Record<string, Page> = {
  login: pages.login(login),
  'login-failed': pages.login({ ...login, username: 'alice', error: 'The username or the password is wrong.' }),
  consent: pages.consent(consent),
  // Shown without its refresh, which would leave at once.
  leave: withoutRefresh(pages.leave({ client, href: '/done' })),
  problem: pages.problem({ ...unclear, text: 'The application is not known here. Start again from it.' }),
  start: pages.upstreamLogin({ server: 'a-server', whose: 'the user alice', href: '/oauth/login/t/continue?proof=p', url: client.redirectUri }),
  values: pages.userValues({
    ...form,
    server: 'a-server',
    whose: 'the user alice',
    destination: 'https://mcp.example.com',
    error: 'Fill in TOKEN as well; nothing was stored',
    variables: [
      { name: 'TOKEN', title: 'Your token', description: 'From your profile', secret: true, required: true, isSet: false },
      { name: 'NOTE', secret: false, required: false, isSet: true }
    ]
  }),
  refused: pages.refused({ ...unclear, client, href: `${client.redirectUri}?error=invalid_scope` }),
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
  /** Whether the field with which the page begins, if any, has had the focus. */
  hasBegun: "(document.querySelector('[autofocus]') ?? document.body) === document.activeElement",
  focused: '[document.activeElement.outerHTML, getComputedStyle(document.activeElement).outlineStyle]'
}

test('every page is accessible in both colour schemes, by keyboard alone, on narrow screens and with large letters', async (t) => {
  // It shows every page at `/<name>`, with 200: the browser would complain of another status.
  const site = await startSite(t, ({ path }) => {
    const page = everyPage[path.slice(1)]
    return page && { ...page, status: 200 }
  })
  const { tab, complaints } = await openTab(t, browser)
  for (const name of Object.keys(everyPage)) {
    await t.test(name, async () => {
      await tab.setViewportSize({ width: 800, height: 900 })
      await tab.emulateMedia({ colorScheme: 'light' })
      await tab.goto(`${site.url}/${name}`)
      // The style was accepted: the policy has its hash.
      assert.equal(await tab.evaluate('getComputedStyle(document.body).maxWidth'), '544px')
      assert.deepEqual(complaints, [])
      await assertReachable(tab)
      await picture(tab, `${name}-light`)
      await assertAccessible(tab, name)
      await tab.emulateMedia({ colorScheme: 'dark' })
      await picture(tab, `${name}-dark`)
      await assertAccessible(tab, name, ['color-contrast'])
      for (const [what, size, letters] of [
        ['320 pixels', { width: 320, height: 640 }, '100%'],
        ['1,280 pixels at 200 %', { width: 640, height: 480 }, '100%'],
        ['letters twice as large', { width: 320, height: 640 }, '200%']
      ] as const) {
        await tab.setViewportSize(size)
        await tab.evaluate(`document.documentElement.style.fontSize = '${letters}'`)
        assert.deepEqual(await tab.evaluate(inPage.cutOff), [], what)
      }
    })
  }
})

/** The Tab key reaches every control of a page in its order, and what has the focus is seen. */
async function assertReachable (tab: Tab): Promise<void> {
  const there = await tab.evaluate(inPage.controls) as string[]
  await until(async () => await tab.evaluate(inPage.hasBegun) as boolean, 'the field with which the page begins has no focus')
  // A page may begin with the focus on a field: back to its start.
  while (await tab.evaluate(inPage.hasFocus)) await tab.keyboard.press('Shift+Tab')
  const reached: string[] = []
  while (reached.length < there.length) {
    await tab.keyboard.press('Tab')
    const [html, outline] = await tab.evaluate(inPage.focused) as [string, string]
    reached.push(html)
    assert.equal(outline, 'solid', html)
  }
  assert.deepEqual(reached, there)
}

type Address = (port: number) => string
const notes: Address = (port) => `http://notes.example:${port}/callback?code=1`
const consentFor = (redirectUri: Address) => (port: number): Page =>
  pages.consent({ ...consent, client: { ...consent.client, redirectUri: redirectUri(port) } })

/** A gateway that answers the pages, and a decision with a redirect to the client. */
async function startFlow (t: Cleanup, pageOf: (port: number) => Page, redirectUri: Address): Promise<Site> {
  const site: Site = await startSite(t, ({ method, path, host }) => {
    if (path.startsWith('/callback') && host.startsWith('hops.')) return { status: 307, headers: { location: `http://onward.example:${site.port}/end` } }
    if (path === '/page') return pageOf(site.port)
    if (method === 'POST' || path === '/resume') return { status: 303, headers: { location: redirectUri(site.port) } }
    return {}
  })
  return site
}
const arrivedAt = (site: Site, place: string) => (): boolean => site.asked.some(({ host, path }) => `${host}${path}`.startsWith(place))

test('a form by keyboard sends what was typed and pressed, with the gateway\'s own origin', async (t) => {
  const loginFor = (port: number): Page => pages.login({ ...login, client: { name: 'Notes', redirectUri: notes(port) } })
  for (const [what, pageOf, keys, expected] of [
    ['login', loginFor, ['Tab', 'alice', 'Tab', 'secret', 'Enter'], { username: 'alice', password: 'secret' }],
    ['Allow', consentFor(notes), ['Tab', 'Enter'], { decision: 'allow' }],
    ['Deny', consentFor(notes), ['Tab', 'Tab', ' '], { decision: 'deny' }]
  ] as const) {
    await t.test(what, async (t) => {
      const site = await startFlow(t, pageOf, notes)
      const { tab, complaints } = await openTab(t, browser)
      await tab.goto(`${site.url}/page`)
      for (const key of keys) key.length === 1 || /^(Tab|Enter)$/.test(key) ? await tab.keyboard.press(key) : await tab.keyboard.type(key)
      await until(arrivedAt(site, `notes.example:${site.port}/callback`), () => complaints.join('\n'))
      const posted = site.asked.find(({ method }) => method === 'POST')
      assert.deepEqual(Object.fromEntries(posted?.form ?? []), { request: 'r-1', csrf: 'c-1', ...expected })
      // A policy of `no-referrer` would have made it "null".
      assert.equal(posted?.headers.origin, site.url)
      checkOrigin(readOriginRules('127.0.0.1', '', ''), posted?.host, posted?.headers.origin, undefined)
      // The client learns nothing of the request that led to it.
      assert.equal(site.asked.find(({ host }) => host.startsWith('notes.'))?.headers.referer, undefined)
      assert.deepEqual(complaints, [])
    })
  }
})

test('the redirect after a decision', async (t) => {
  interface Opened { site: Site, tab: Tab, complaints: string[] }
  const open = async (t: Cleanup, pageOf: (port: number) => Page, redirectUri: Address): Promise<Opened> => {
    const site = await startFlow(t, pageOf, redirectUri)
    const { tab, complaints } = await openTab(t, browser)
    await tab.goto(`${site.url}/page`, { waitUntil: 'commit' })
    return { site, tab, complaints }
  }
  const leaveFor = (redirectUri: Address) => (port: number): Page => pages.leave({ client: { name: 'App', redirectUri: redirectUri(port) }, href: '/resume' })
  const app: Address = () => 'notes-app://callback?code=1'
  const hops: Address = (port) => `http://hops.example:${port}/callback?code=1`

  for (const host of ['notes.example', 'localhost']) {
    await t.test(`reaches a client at ${host}`, async (t) => {
      const redirectUri: Address = (port) => `http://${host}:${port}/callback?code=1`
      const { site, tab, complaints } = await open(t, consentFor(redirectUri), redirectUri)
      await tab.getByRole('button', { name: 'Allow' }).click()
      await until(arrivedAt(site, `${host}:${site.port}/callback?code=1`), () => complaints.join('\n'))
      assert.deepEqual(complaints, [])
    })
  }

  for (const [what, pageOf] of [['a form', consentFor(app)], ['the page that leaves', leaveFor(app)]] as const) {
    await t.test(`of ${what} is handed to an app on the device`, async (t) => {
      const { tab, complaints } = await open(t, pageOf, app)
      const handed = tab.waitForRequest(/^notes-app:/)
      if (what === 'a form') await tab.getByRole('button', { name: 'Allow' }).click({ noWaitAfter: true })
      await handed
      assert.deepEqual(complaints, [])
    })
  }

  // `form-action` counts for each redirect after a form, so the browser leaves by a page.
  await t.test('of a client that redirects on gets through from the page that leaves', async (t) => {
    const { site, complaints } = await open(t, leaveFor(hops), hops)
    await until(arrivedAt(site, `onward.example:${site.port}/end`), () => complaints.join('\n'))
    assert.deepEqual(site.asked.filter(({ host }) => host.endsWith(`.example:${site.port}`)).map(({ headers }) => headers.referer), [undefined, undefined])
    assert.deepEqual(complaints, [])
  })
})

test('a client in a browser that opened a window for the login still has it afterwards', async (t) => {
  const site = await startFlow(t, consentFor(notes), notes)
  const { tab } = await openTab(t, browser)
  await tab.goto(`http://notes.example:${site.port}/start`)
  const [popup] = await Promise.all([tab.waitForEvent('popup'), tab.evaluate(`void open('${site.url}/page')`)])
  await popup.getByRole('button', { name: 'Allow' }).click()
  await popup.waitForURL('**/callback?code=1')
  assert.equal(await popup.evaluate('opener !== null'), true)
})
