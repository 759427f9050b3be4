// Servers from catalogues and bundles: what they need is asked for, and the rest is as with a pasted one.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import type { Env } from '../../../schemas/env.ts'
import { entry, mcpRegistry } from '../../fakes/mcp-registry.ts'
import { zip } from '../../fakes/zip.ts'
import { decoded, openConsole, signedIn, type Answer, type Browser, type Opened } from '../../helpers/console.ts'

const start = async (t: Test, env: Partial<Env> = {}): Promise<Opened> =>
  await openConsole(t, {}, { REGISTRY_URL: 'http://127.0.0.1:9', OUTBOUND_ALLOW: '127.0.0.1', ...env })
const hiddenIn = ({ text }: Answer): Record<string, string> =>
  Object.fromEntries([...text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [name, decoded(value)]))
const configIn = ({ text }: Answer, index = 0): string =>
  decoded(new RegExp(`<textarea[^>]*name="config-${index}"[^>]*>\n([^<]*)<`).exec(text)?.[1] ?? '')

void test('the market: search, an entry, and the variables that it needs', async (t) => {
  const { app, browser } = await start(t)
  const list = await browser.get('/add-a-server/market?q=jira')
  assert.match(list.text, /href="\/console\/add-a-server\/market\/atlassian"/)
  assert.doesNotMatch(list.text, /market\/fetch"/)
  assert.match((await browser.get('/add-a-server/market?q=nothing-like-it')).text, /Nothing matches/)
  const page = await browser.get('/add-a-server/market/atlassian')
  assert.match(page.text, /JIRA_URL[\s\S]*Address of Jira[\s\S]*name="value-0-0"/)
  const sent = { ...hiddenIn(page), chosen: '0', 'name-0': 'jira', 'config-0': configIn(page), 'value-0-0': 'https://x.example/"$&', 'value-0-2': 'token' }
  const refused = await browser.send('/add-a-server', { ...sent, do: 'store', 'name-0': 'a/b' })
  assert.equal(refused.status, 400)
  for (const part of ['id="name-0-problem"', 'value="https://x.example/&quot;$&amp;"', 'Choose another']) assert.ok(refused.text.includes(part), part)
  const done = await browser.send('/add-a-server', { ...hiddenIn(refused), ...sent, do: 'store' })
  assert.equal(done.location, '/console/servers/jira')
  // eslint-disable-next-line no-template-curly-in-string
  assert.deepEqual(app.settings.current.servers.get('jira')?.config.env, { JIRA_URL: 'https://x.example/"$&', JIRA_USERNAME: '${JIRA_USERNAME}', JIRA_API_TOKEN: 'token' })
})

void test('the registry: its pages, the ways to run an entry, and what cannot be added', async (t) => {
  const many = Array.from({ length: 31 }, (_, at) => entry(`com.example/server-${at}`, { packages: [] }))
  const weather = entry('com.example/weather', {
    title: 'Weather <b>',
    packages: [
      { registryType: 'npm', identifier: '@example/weather', version: '1.0.0', transport: { type: 'stdio' }, environmentVariables: [{ name: 'API_KEY', isRequired: true, isSecret: true, description: 'Its key' }] },
      { registryType: 'nuget-of-nowhere', identifier: 'x', version: '1', transport: { type: 'stdio' } }
    ],
    remotes: [{ type: 'streamable-http', url: 'https://weather.example/mcp' }]
  })
  const registry = await mcpRegistry(t, [weather, ...many])
  const { app, browser } = await start(t, { REGISTRY_URL: registry.api.url })
  const first = await browser.get('/add-a-server/registry')
  assert.match(first.text, /Weather &lt;b&gt;/)
  const next = /href="([^"]+)" rel="next"/.exec(first.text)?.[1] ?? ''
  assert.match((await browser.get(decoded(next).replace('/console', ''))).text, /First page/)
  assert.match((await browser.get('/add-a-server/registry?q=server-3')).text, /server-30/)
  const page = await browser.get(`/add-a-server/registry/${encodeURIComponent('com.example/weather')}`)
  assert.match(page.text, /name="name-2"/)
  const [, index = ''] = /API_KEY[\s\S]*?Its key[\s\S]*?name="value-(\d)-0"/.exec(page.text) ?? []
  const fields = { chosen: index, [`name-${index}`]: 'weather', [`config-${index}`]: configIn(page, Number(index)), [`value-${index}-0`]: 'k' }
  const done = await browser.send('/add-a-server', { ...hiddenIn(page), ...fields, do: 'store' })
  assert.equal(done.location, '/console/servers/weather')
  assert.deepEqual(app.settings.current.servers.get('weather')?.config.env, { API_KEY: 'k' })
  registry.failWith = (response) => { response.writeHead(500).end() }
  assert.match((await browser.get('/add-a-server/registry?q=later')).text, /No answer/)
})

void test('the cloud says what it needs', async (t) => {
  const { browser } = await start(t)
  assert.match((await browser.get('/add-a-server/cloud')).text, /No answer[\s\S]*mcpRouter/)
})

const manifest = {
  manifest_version: '0.3',
  name: 'weather',
  version: '1.2.0',
  server: { type: 'node', entry_point: 'index.js', mcp_config: { command: 'node', args: ['${__dirname}/index.js', '${user_config.folders}', '-f=${user_config.folders}'], env: { KEY: '${user_config.key}' } } }, // eslint-disable-line no-template-curly-in-string
  user_config: {
    key: { type: 'string', title: 'API key', description: 'From the site', required: true, sensitive: true },
    folders: { type: 'directory', title: 'Folders', required: true, multiple: true }
  }
}
const bundle = (): Buffer => zip([{ name: 'manifest.json', data: JSON.stringify(manifest) }, { name: 'index.js', data: '0' }])

const upload = async (browser: Browser, csrf: string, file: Buffer): Promise<Answer> =>
  await browser.upload('/add-a-server/bundle', csrf, 'mcpbFile', file)

void test('a bundle is uploaded, asks for what it needs, and is added', async (t) => {
  const { app, browser } = await start(t)
  const csrf = await browser.csrf('/add-a-server/bundle')
  const page = await upload(browser, csrf, bundle())
  assert.equal(page.status, 200)
  assert.match(page.text, /API key[\s\S]*From the site[\s\S]*name="value-0-\d"/)
  assert.equal(app.settings.current.servers.size, 0)
  const at = (title: string): string => /name="(value-0-\d)"/.exec(page.text.slice(page.text.indexOf(title)))?.[1] ?? ''
  const sent = { ...hiddenIn(page), chosen: '0', 'name-0': 'weather', 'config-0': configIn(page), [at('API key')]: '', [at('Folders')]: '/a\r\n/b b\r\n' }
  assert.match((await browser.send('/add-a-server', { ...sent, do: 'store' })).text, /value-0-\d-problem[\s\S]*Enter a value/)
  const done = await browser.send('/add-a-server', { ...sent, [at('API key')]: 'k', do: 'store' })
  assert.equal(done.location, '/console/servers/weather')
  const { args = [], env } = app.settings.current.servers.get('weather')?.config ?? {}
  assert.deepEqual([args.slice(1), env], [['/a', '/b b', '-f=/a,/b b'], { KEY: 'k' }])
})

void test('an upload needs the token of the form, an admin, and a bundle', async (t) => {
  const { app, browser } = await start(t)
  const csrf = await browser.csrf('/add-a-server/bundle')
  assert.equal((await upload(browser, 'wrong', bundle())).status, 403)
  const refused = await upload(browser, csrf, Buffer.from('no zip'))
  assert.equal(refused.status, 400)
  assert.match(refused.text, /id="mcpbFile-problem"/)
  const other = await signedIn(app, 'alice')
  assert.equal((await upload(other, await other.csrf('/overview'), bundle())).status, 404)
  assert.doesNotMatch((await other.get('/add-a-server')).text, /add-a-server\/bundle/)
})
