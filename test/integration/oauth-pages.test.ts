// People in Chromium log in for a client, allow it, and deny it, on the pages of a gateway that runs. Run by `npm run test:system`; it
// needs Chromium (apt-get install chromium), and leaves pictures of the pages in .cache/pages.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import axe, { type AxeResults } from 'axe-core'
import { chromium, type Page as Tab } from 'playwright-core'
import { before, test } from 'tap'
import { settings } from '../helpers/client.ts'
import { path, spawnHub, until, type Cleanup, type ProcessHub } from '../helpers/hub.ts'
import { form, register, request } from '../helpers/oauth.ts'

const executablePath = '/usr/bin/chromium'
const pictures = path('.cache/pages')
const timeout = 120_000
const person = { username: 'admin', password: 'Correct-Horse-1' }

before(() => {
  assert.ok(existsSync(executablePath), 'these tests need Chromium: apt-get install chromium')
  mkdirSync(pictures, { recursive: true })
})

interface Arrival { path: string, headers: IncomingHttpHeaders }
/** A client on loopback, and all that its pages were asked for. */
interface ClientSite { url: string, arrivals: Arrival[] }

/** @param answer what the page at `/callback` does */
async function startClient (t: Cleanup, answer: (reply: ServerResponse, port: number) => void): Promise<ClientSite> {
  const arrivals: Arrival[] = []
  const server = createServer(({ url = '', headers }, reply) => {
    if (url === '/favicon.ico') { reply.writeHead(204).end(); return }
    arrivals.push({ path: url, headers })
    if (url.startsWith('/callback')) answer(reply, port)
    else reply.setHeader('content-type', 'text/html').end('<!doctype html><title>The end</title>')
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  const { port } = server.address() as AddressInfo
  t.after(() => { server.close(); server.closeAllConnections() })
  return { url: `http://127.0.0.1:${port}`, arrivals }
}

/** A tab without cookies. `*.example` leads to this machine. @returns it, and what it complains of: violations of the policy, mostly */
async function openTab (t: Cleanup): Promise<{ tab: Tab, complaints: string[] }> {
  // Chromium's own sandbox refuses to run as root.
  const args = ['--host-resolver-rules=MAP *.example 127.0.0.1', ...(process.geteuid?.() === 0 ? ['--no-sandbox'] : [])]
  const browser = await chromium.launch({ executablePath, args })
  t.after(async () => { await browser.close() })
  const tab = await browser.newPage({ viewport: { width: 800, height: 900 } })
  const complaints: string[] = []
  tab.on('console', (message) => { complaints.push(message.text()) })
  tab.on('pageerror', (error) => { complaints.push(error.message) })
  return { tab, complaints }
}

/** Keeps a picture of a page, and has axe look at it. */
async function look (tab: Tab, name: string): Promise<void> {
  await tab.screenshot({ path: `${pictures}/live-${name}.png`, fullPage: true })
  await tab.evaluate(axe.source)
  const { violations, passes } = await tab.evaluate('axe.run()') as AxeResults
  assert.ok(passes.some(({ id }) => id === 'color-contrast'))
  assert.deepEqual(violations.map(({ id, impact, nodes }) => [id, impact, nodes.map(({ html }) => html)]), [], name)
}

async function logIn (tab: Tab, password = person.password): Promise<void> {
  await tab.locator('input[name=username]').fill(person.username)
  await tab.locator('input[name=password]').fill(password)
  await tab.keyboard.press('Enter')
}

interface Asked { address: string, clientId: string, verifier: string, redirectUri: string }

/** A client that asks for access. */
async function ask (hub: ProcessHub, site: ClientSite): Promise<Asked> {
  const redirectUri = `${site.url}/callback`
  const { client_id: clientId = '' } = await register(hub.url, { client_name: 'Notes', redirect_uris: [redirectUri] })
  const { verifier, params } = request(clientId, { redirect_uri: redirectUri, resource: `${hub.url}/mcp` })
  return { address: `${hub.url}/oauth/authorize?${new URLSearchParams(params).toString()}`, clientId, verifier, redirectUri }
}

const start = async (t: Cleanup): Promise<ProcessHub> => await spawnHub(t, {
  settings: settings({}, { systemConfig: { oauthServer: { enabled: true } } }),
  env: { ADMIN_PASSWORD: person.password }
})

test('a person logs in, and allows a client', { timeout }, async (t) => {
  const hub = await start(t)
  const site = await startClient(t, (reply) => { reply.setHeader('content-type', 'text/html').end('<!doctype html><title>Connected</title>') })
  const asked = await ask(hub, site)
  const { tab, complaints } = await openTab(t)

  await tab.goto(asked.address)
  assert.match(await tab.locator('body').innerText(), /Notes/)
  await look(tab, 'login')

  // Chromium writes the status of each answer that is an error.
  await logIn(tab, 'Wrong-Guess-1')
  await tab.getByText('The username or the password is wrong').waitFor()
  await look(tab, 'login-failed')
  assert.equal(complaints.splice(0).filter((each) => !each.includes('401')).length, 0)

  await logIn(tab)
  await tab.getByRole('button', { name: 'Allow' }).waitFor()
  const said = await tab.locator('body').innerText()
  for (const expected of ['Notes', '127.0.0.1', 'admin']) assert.ok(said.includes(expected), said)
  await look(tab, 'consent')

  await tab.getByRole('button', { name: 'Allow' }).click()
  await until(async () => await tab.title() === 'Connected', () => `${tab.url()} ${complaints.join('\n')}`)
  const [arrival] = site.arrivals
  assert.equal(arrival?.headers.referer, undefined)
  assert.equal(arrival?.headers.cookie?.includes('session'), undefined, 'a site on another port of this host gets no cookie of the login')
  const code = new URL(arrival?.path ?? '', site.url).searchParams.get('code') ?? ''
  const fields = { grant_type: 'authorization_code', client_id: asked.clientId, redirect_uri: asked.redirectUri, code_verifier: asked.verifier }
  assert.equal((await form(`${hub.url}/oauth/token`, { ...fields, code })).status, 200)
  assert.deepEqual(complaints, [])

  await t.test('who is logged in is asked for the next client only, and denies it', async () => {
    const other = await startClient(t, (reply) => { reply.setHeader('content-type', 'text/html').end('<!doctype html><title>Denied</title>') })
    await tab.goto((await ask(hub, other)).address)
    await look(tab, 'consent-again')
    await tab.getByRole('button', { name: 'Deny' }).click()
    await until(async () => await tab.title() === 'Denied', () => `${tab.url()} ${complaints.join('\n')}`)
    const { searchParams } = new URL(tab.url())
    assert.deepEqual([searchParams.get('error'), searchParams.get('code'), searchParams.get('state')], ['access_denied', null, 'a state'])
    assert.deepEqual(complaints, [])
  })
})

// The form's `form-action` counts for each redirect after it, so the browser leaves by a page (`pages.leave`).
test('the redirect reaches a client that sends the browser on to another origin', { timeout }, async (t) => {
  const hub = await start(t)
  const site = await startClient(t, (reply, port) => { reply.writeHead(302, { location: `http://onward.example:${port}/end` }).end() })
  const { tab, complaints } = await openTab(t)
  await tab.goto((await ask(hub, site)).address)
  await logIn(tab)
  await tab.getByRole('button', { name: 'Allow' }).click()
  await until(async () => await tab.title() === 'The end', () => `${tab.url()} ${complaints.join('\n')}`)
  assert.equal(new URL(tab.url()).hostname, 'onward.example')
  assert.deepEqual(site.arrivals.map(({ headers }) => headers.referer), [undefined, undefined])
  assert.deepEqual(complaints, [])
})

test('a request that no client can be told of shows a page, and goes nowhere', { timeout }, async (t) => {
  const hub = await start(t)
  const site = await startClient(t, (reply) => { reply.end() })
  const { address } = await ask(hub, site)
  const { tab } = await openTab(t)
  const foreign = new URL(address)
  foreign.searchParams.set('redirect_uri', `${site.url}/elsewhere`)
  const answer = await tab.goto(foreign.href)
  assert.equal(answer?.status(), 400)
  await look(tab, 'problem')
  assert.deepEqual(site.arrivals, [])
})
