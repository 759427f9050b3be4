// A person in Chromium logs in for a client, allows it, and denies the next one, on the pages of a gateway that runs. Run by
// `npm run test:system`; it needs Chromium (helpers/chromium.ts). test/integration/pages.test.ts looks at every page by itself.
import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { test } from 'tap'
import { assertAccessible, openTab, picture, startBrowser } from '../helpers/chromium.ts'
import { until, type Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { form, register, request } from '../helpers/oauth.ts'
import { admin, startWithOAuth } from '../helpers/oauth-hub.ts'

interface Arrival { path: string, headers: IncomingHttpHeaders }

/** A client on loopback that sends browsers on to another origin, and all that it was asked for. */
async function startClient (t: Cleanup): Promise<{ url: string, arrivals: Arrival[] }> {
  const arrivals: Arrival[] = []
  const server = createServer(({ url = '', headers }, reply) => {
    if (url === '/favicon.ico') { reply.writeHead(204).end(); return }
    arrivals.push({ path: url, headers })
    if (url.startsWith('/callback')) reply.writeHead(302, { location: `http://onward.example:${port}/end` }).end()
    else reply.setHeader('content-type', 'text/html').end('<!doctype html><title>The end</title>')
  })
  const port = await listen(t, server)
  return { url: `http://127.0.0.1:${port}`, arrivals }
}

test('a person logs in, allows a client, and denies the next one', async (t) => {
  const hub = await startWithOAuth(t)
  const site = await startClient(t)
  const redirectUri = `${site.url}/callback`
  const { tab, complaints } = await openTab(t, await startBrowser(t))
  /** A client asks for access. */
  const ask = async (): Promise<{ fields: Record<string, string> }> => {
    const { client_id: clientId = '' } = await register(hub.url, { client_name: 'Notes', redirect_uris: [redirectUri] })
    const { verifier, params } = request(clientId, { redirect_uri: redirectUri, resource: `${hub.url}/mcp` })
    await tab.goto(`${hub.url}/oauth/authorize?${new URLSearchParams(params).toString()}`)
    return { fields: { grant_type: 'authorization_code', client_id: clientId, redirect_uri: redirectUri, code_verifier: verifier } }
  }
  const logIn = async (password: string): Promise<void> => {
    await tab.locator('input[name=username]').fill(admin.username)
    await tab.locator('input[name=password]').fill(password)
    await tab.keyboard.press('Enter')
  }
  /** Waits until the browser has come to the client and on from there. @returns the parameters that it brought */
  const arrived = async (): Promise<URLSearchParams> => {
    await until(() => site.arrivals.some(({ path }) => path === '/end'), () => `${tab.url()} ${complaints.join('\n')}`)
    const [arrival, ...others] = site.arrivals.splice(0)
    assert.deepEqual(others.map(({ path, headers }) => [path, headers.host?.split(':')[0]]), [['/end', 'onward.example']])
    for (const each of [arrival, ...others]) assert.equal(each?.headers.referer, undefined)
    assert.equal(arrival?.headers.cookie?.includes('session'), undefined, 'a site on another port of this host gets no cookie of the login')
    assert.deepEqual(complaints, [])
    return new URL(arrival?.path ?? '', site.url).searchParams
  }

  const { fields } = await ask()
  assert.match(await tab.locator('body').innerText(), /Notes/)
  await logIn('Wrong-Guess-1')
  await tab.getByText('The username or the password is wrong').waitFor()
  // Chromium writes the status of each answer that is an error.
  assert.deepEqual(complaints.splice(0).filter((each) => !each.includes('401')), [])

  await logIn(admin.password)
  await tab.getByRole('button', { name: 'Allow' }).waitFor()
  const said = await tab.locator('body').innerText()
  for (const expected of ['Notes', '127.0.0.1', 'admin']) assert.ok(said.includes(expected), said)
  await picture(tab, 'live-consent')
  await assertAccessible(tab, 'consent')
  await tab.getByRole('button', { name: 'Allow' }).click()
  const code = (await arrived()).get('code') ?? ''
  assert.equal((await form(`${hub.url}/oauth/token`, { ...fields, code })).status, 200)

  await t.test('who is logged in is asked for the next client only', async () => {
    await ask()
    await tab.getByRole('button', { name: 'Deny' }).click()
    const returned = await arrived()
    assert.deepEqual(['error', 'code', 'state'].map((name) => returned.get(name)), ['access_denied', null, 'a state'])
  })
})
