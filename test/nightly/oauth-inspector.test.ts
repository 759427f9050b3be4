// The MCP inspector logs in at the authorization server, knowing an address of the gateway alone: on the command line, and as a page in
// Chromium. It needs Chromium, and npm to install the inspector, with the Node that it asks for, into .cache/inspector.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { openTab, picture, startBrowser } from '../helpers/chromium.ts'
import { text, within } from '../helpers/client.ts'
import { deadline, freePort, until, type Cleanup } from '../helpers/hub.ts'
import { allow, Browser } from '../helpers/oauth.ts'
import { admin, startWithOAuth } from '../helpers/oauth-hub.ts'
import { cachedPackages } from '../helpers/packages.ts'

// The one place that pins the inspector.
const packages = { node: '22.23.3', '@modelcontextprotocol/inspector': '2.12.0' }

interface Inspector { output: () => string, errors: () => string, exited: Promise<number | null> }

/** Starts the inspector with a home of its own, so that it knows nothing of former logins. */
async function startInspector (t: Cleanup, home: string, args: readonly string[], env: Record<string, string> = {}): Promise<Inspector> {
  const modules = await cachedPackages('inspector', packages)
  const launcher = join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
  const child = spawn(join(modules, '.bin/node'), [launcher, ...args], {
    env: { PATH: process.env.PATH ?? '', HOME: home, MCP_INSPECTOR_SECRET_STORE: 'file', ...env },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  let [output, errors] = ['', '']
  child.stdout.on('data', (chunk) => { output += String(chunk) })
  child.stderr.on('data', (chunk) => { errors += String(chunk) })
  const exited = new Promise<number | null>((resolve) => { child.once('exit', (code) => { resolve(code) }) })
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exited
  })
  return { output: () => output, errors: () => errors, exited }
}

test('the inspector on the command line logs in, calls a tool, and needs no second login', async (t) => {
  const hub = await startWithOAuth(t)
  const below = await startWithOAuth(t, { BASE_PATH: '/gate/way' })
  for (const [what, url, name] of [
    ['/mcp', `${hub.url}/mcp`, 'fake-greet'],
    ['/mcp/<server>, below a base path', `${below.url}/mcp/fake`, 'greet']
  ] as const) {
    await t.test(what, async (t) => {
      const home = await temporaryFolder(t)
      const call = ['--cli', url, '--transport', 'http', '--method', 'tools/call', '--tool-name', name, '--format', 'json', '--quiet']
      const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`
      // Without a terminal, it logs in only where it may open a browser; that one does nothing, and we go to the address that it prints.
      const env = { MCP_AUTO_OPEN_ENABLED: 'true', BROWSER: 'true' }
      const inspector = await startInspector(t, home, [...call, '--callback-url', callback], env)
      const address = (): string | undefined => /(http\S+\/oauth\/authorize\?\S+)/.exec(inspector.errors())?.[1]
      await until(() => address() !== undefined, () => `no address was printed: ${inspector.output()} ${inspector.errors()}`)
      const asked = new URL(address() ?? '')
      assert.equal(asked.searchParams.get('resource'), url)
      const browser = new Browser(asked.origin)
      assert.equal((await browser.get((await allow(browser, asked.href, admin)).href)).status, 200)
      assert.equal(await within('the end of the inspector', inspector.exited), 0, inspector.errors())
      assert.equal(text(resultOf(inspector.output())), 'greet')

      const again = await startInspector(t, home, [...call, '--stored-auth-only'])
      assert.equal(await within('the end of the inspector', again.exited), 0, again.errors())
      assert.equal(text(resultOf(again.output())), 'greet')
    })
  }
})

/** The result of a call, as the inspector prints it. */
function resultOf (output: string): unknown {
  const printed = JSON.parse(output) as { result?: unknown }
  return printed.result ?? printed
}

test('the inspector in Chromium logs in, and calls a tool', async (t) => {
  const hub = await startWithOAuth(t)
  const home = await temporaryFolder(t)
  const env = { MCP_AUTO_OPEN_ENABLED: 'false', CLIENT_PORT: String(await freePort()), MCP_SANDBOX_PORT: '0' }
  const inspector = await startInspector(t, home, ['--web', '--transport', 'http', '--server-url', `${hub.url}/mcp`], env)
  const address = (): string | undefined => /(http\S+MCP_INSPECTOR_API_TOKEN=\S+)/.exec(inspector.output())?.[1]
  await until(() => address() !== undefined, () => `no address was printed: ${inspector.output()} ${inspector.errors()}`)

  const { tab } = await openTab(t, await startBrowser(t), { viewport: { width: 1_400, height: 900 } })
  // The inspector's page takes long to begin.
  tab.setDefaultTimeout(3 * deadline)
  await tab.goto(address() ?? '')
  await tab.getByRole('switch', { name: /^Connect or disconnect/ }).click({ force: true })
  await tab.waitForURL(`${hub.url}/oauth/**`)
  await tab.locator('input[name=username]').fill(admin.username)
  await tab.locator('input[name=password]').fill(admin.password)
  await tab.keyboard.press('Enter')
  await tab.getByRole('button', { name: 'Allow' }).click()

  await tab.getByText('Tools', { exact: true }).first().click()
  await tab.getByText('fake-greet').first().click()
  await tab.getByRole('button', { name: 'Execute Tool' }).click()
  await until(() => hub.upstream.count('tools/call') > 0, () => `the tool was never called: ${inspector.errors()}`)
  await tab.getByText('Results').first().waitFor()
  await picture(tab, 'inspector')
})
