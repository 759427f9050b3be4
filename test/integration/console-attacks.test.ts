// Attacks on the console, in a browser: markup and addresses that others write, forms of other sites, frames, sessions, and what is left
// behind. It needs Chromium (helpers/chromium.ts).
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Page as Tab } from 'playwright-core'
import { t as file, test, type Test } from 'tap'
import type { Activities } from '../../db/ports/activities.ts'
import { Refusal, startUpstream, type Upstream } from '../fakes/fault-http.ts'
import { startBareModern } from '../fakes/bare-modern.ts'
import { appFor } from '../helpers/app.ts'
import { assertFits, assertGoodInWindows, openTab, signIn, startBrowser } from '../helpers/chromium.ts'
import { admin, alice, key, secret, start } from '../helpers/doors.ts'
import { until, type Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { register } from '../helpers/oauth.ts'

const browser = await startBrowser(file)
/** The navigation is beside the page. */
const wide = { viewport: { width: 1280, height: 844 } }
const second = { ...admin, username: 'second' }

/** What an attacker writes where a text is expected. Each would run, or ask another host. */
const markup = '"\'><b data-planted></b><script>alert(1)</script><img src=https://evil.example/x onerror=alert(1)>' +
  '<a href="javascript:alert(1)">here</a><iframe srcdoc="<script>parent.alert(1)</script>"></iframe><form action=https://evil.example>' +
  '<svg onload=alert(1)></svg></textarea></title></style><base href=https://evil.example><%= alert(1) %>{{alert(1)}}'
const address = 'javascript:alert(1)//"><b data-planted></b>'
const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>').toString('base64')

/** A tab in which nothing may happen that the console did not write. @returns it, and what happened all the same */
async function openWatched (
  t: Test, origin: string, options: Parameters<typeof openTab>[2] = {}
): Promise<{ tab: Tab, happened: string[] }> {
  const { tab, complaints } = await openTab(t, browser, { ...wide, ...options })
  const happened: string[] = []
  tab.on('dialog', (dialog) => {
    happened.push(`dialog ${dialog.message()}`)
    void dialog.dismiss()
  })
  tab.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) happened.push(`request ${url}`)
  })
  tab.on('close', () => { happened.push(...complaints.filter((each) => !/status of 40\d|^\[DOM\]/.test(each))) })
  return { tab, happened }
}

/**
 * Finds injected content in the page: elements, handlers, and addresses that no page leads to. Without
 * `noscript`, a browser without scripts reads the same page.
 */
const planted = `[
  ...document.querySelectorAll('[data-planted], noscript, iframe, object, embed, base, foreignObject'),
  ...document.querySelectorAll('meta[http-equiv], style, [style], [srcdoc]'),
  ...[...document.querySelectorAll('script')].filter((each) => !each.src.startsWith(location.origin) || each.text !== ''),
  ...[...document.querySelectorAll('*')].filter((each) =>
    [...each.attributes].some(({ name }) => /^(?:on|hx-(?:on|vals|headers|ext))/.test(name) && !name.startsWith('hx-on--'))),
  ...[...document.querySelectorAll('a, area, form, button, input, image, use')].filter((each) =>
    ['href', 'action', 'formaction', 'xlink:href'].some((name) => {
      const value = each.getAttribute(name)
      if (value === null) return false
      if (each.matches('a[download]') && value.startsWith('data:application/octet-stream;')) return false
      const { protocol, origin } = new URL(value, location.href)
      return each.matches('a') ? !/^(?:https?|cursor|vscode):$/.test(protocol) : origin !== location.origin
    })),
  ...[...document.querySelectorAll('a[target=_blank]')].filter((each) => !each.relList.contains('noopener')),
  ...[...document.querySelectorAll('img, audio, video, source')].filter((each) => !/^data:(?:image.(?:png|jpeg|gif|webp)|audio.)/.test(each.src))
].map((each) => each.outerHTML.slice(0, 300))`

/** The text that the page shows. */
const shown = `document.body.innerText +
  [...document.querySelectorAll('input, textarea')].map((each) => each.value).join() +
  [...document.querySelectorAll('details, option, pre')].map((each) => each.textContent).join()`

/** Nothing of what others wrote has become a part of the page, and the text is there: the page was looked at. */
async function assertInert (tab: Tab, name: string, isShown = true): Promise<void> {
  const isThere = isShown ? `(${shown}).includes('data-planted')` : 'true'
  const [elements, hasText] = await tab.evaluate(`[${planted}, ${isThere}]`) as [string[], boolean]
  assert.deepEqual(elements, [], name)
  assert.ok(hasText, `${name} does not show what was written`)
}

const schema = {
  type: 'object',
  title: markup,
  description: markup,
  required: [markup],
  properties: {
    [markup]: { type: 'string', title: markup, description: markup, default: markup },
    __proto__: { type: 'string' },
    constructor: { type: 'string', default: markup },
    choice: { enum: [markup, address, { [markup]: markup }], default: markup },
    either: { oneOf: [{ title: markup, type: 'object', properties: { [markup]: { const: markup } } }, { description: markup, type: 'array', items: { type: 'string' } }] },
    list: { type: 'array', items: { type: 'object', properties: { [address]: { type: 'integer', description: markup } } } },
    any: { description: markup, default: { [markup]: [markup] } }
  }
}

/** A result with each type of content, and types that are none. */
const results = {
  content: [
    { type: 'text', text: markup },
    { type: 'text', text: JSON.stringify({ [markup]: markup }) },
    { type: 'image', data: svg, mimeType: 'image/svg+xml' },
    { type: 'image', data: 'x" onerror="alert(1)', mimeType: 'image/png' },
    { type: 'image', data: 'AAAA', mimeType: 'image/png" onerror="alert(1)' },
    { type: 'image', data: 'AAAA', mimeType: 'text/html' },
    { type: 'audio', data: 'AAAA', mimeType: `audio/wav"${markup}` },
    { type: 'resource_link', uri: address, name: markup, description: markup },
    { type: 'resource_link', uri: 'data:text/html,<script>alert(1)</script>', name: 'a page' },
    { type: 'resource_link', uri: 'https://evil.example/"onclick="alert(1)', name: markup },
    { type: 'resource_link', uri: ' javascript:alert(1)', name: 'with a space before' },
    { type: 'resource', resource: { uri: address, mimeType: 'text/html', text: markup } },
    { type: 'resource', resource: { uri: address, mimeType: 'image/svg+xml', blob: svg } },
    { type: markup, [markup]: markup },
    markup
  ],
  structuredContent: { [markup]: [markup] }
}

async function startHostileServer (t: Cleanup): Promise<Upstream> {
  const icons = [{ src: address }, { src: `data:image/svg+xml;base64,${svg}` }]
  const words = { title: markup, description: markup, icons, annotations: { title: markup, [markup]: true } }
  return await startUpstream(t, {
    tools: [
      { name: 'results', ...words, inputSchema: schema },
      { name: 'fails', ...words, inputSchema: { type: 'object' } },
      { name: markup.slice(0, 100), ...words, inputSchema: schema }
    ],
    prompts: [{ name: markup, ...words, arguments: [{ name: markup, description: markup, required: true }] }],
    resources: [{ uri: address, name: markup, ...words, mimeType: markup }],
    resourceTemplates: [{ uriTemplate: `${address}{x}`, name: markup, ...words }],
    serverInfo: { name: markup, version: markup, title: markup, icons, websiteUrl: address },
    instructions: markup,
    on: ({ method, params }) => {
      switch (method) {
        case 'tools/call': return params.name === 'fails' ? new Refusal(-32000, markup, { [markup]: markup }) : results
        case 'prompts/get': return { messages: [{ role: markup, content: { type: 'text', text: markup } }] }
        case 'resources/read': return { contents: [{ uri: params.uri, mimeType: markup, text: markup }] }
        default: return undefined
      }
    }
  })
}

const recorded = {
  id: '00000000-0000-4000-8000-000000000001',
  timestamp: Date.now(),
  server: markup,
  tool: markup,
  duration: 1,
  status: 'error' as const,
  username: 'alice',
  errorMessage: markup,
  input: JSON.stringify({ [markup]: markup }),
  output: markup
}
const activities = {
  list: async () => ({ activities: [recorded], total: 1, approximate: false }),
  find: async () => recorded,
  listFilterValues: async () => ({ servers: [markup], tools: [markup], groups: [markup], usernames: [markup], keyNames: [markup] }),
  stats: async () => ({ total: 1, errors: 1, duration: 1 }),
  series: async () => [{ total: 1, errors: 1 }],
  durationQuantile: async () => 1,
  lastUses: async () => new Map(),
  append: async () => {},
  removeBefore: async () => 0,
  removeSomeBefore: async () => 0
} satisfies Activities as Activities

/** As long as the names of policies may be. */
const short = markup.slice(0, 200)
const unbroken = 'a-name-without-a-break-that-is-longer-than-a-narrow-window'
const id = '33333333-3333-4333-8333-333333333333'

/** A program that prints it. Encoded, since the words of arguments, variables and headers are masked in what a server prints. */
const prints = `console.error(Buffer.from('${Buffer.from(markup).toString('base64')}', 'base64').toString()); process.exit(3)`

/** A gateway in which everything that others can write is hostile. */
async function startHostile (t: Cleanup): Promise<{ app: FastifyInstance, url: string }> {
  const { url: upstream } = await startHostileServer(t)
  const app = await appFor(t, {
    users: [admin, alice],
    mcpServers: {
      hostile: { url: upstream, description: markup, visibility: 'public', headers: { 'X-Key': 'secret-of-mine-1234' } },
      prints: { command: 'node', args: ['-e', prints], description: markup, env: { TOKEN: 'secret-of-mine-1234' } },
      [`<b data-planted>${address}`]: { url: address, description: markup, enabled: false }
    },
    groups: [{ id, name: 'some', description: markup, servers: ['hostile'] }],
    policies: [
      { id, name: short, when: `tool.name == ${JSON.stringify(markup)}`, then: 'deny', mode: 'observe' },
      { id: key.id, name: unbroken, when: `tool.name == "${unbroken}"`, then: 'deny', mode: 'observe' }
    ],
    guards: [
      { id, name: short, on: 'both', servers: [markup], detect: ['card'], action: 'flag' },
      {
        id: key.id,
        name: unbroken,
        on: 'both',
        servers: [unbroken],
        detect: ['card'],
        action: 'mask',
        webhook: { url: `https://${unbroken}.example/`, secret: unbroken, whenAway: 'deny' }
      }
    ],
    quotas: [{ id, name: short, target: { user: '*', server: unbroken }, per: 'day', calls: 1_000_000, resultTokens: 1_000_000 }],
    bearerKeys: [{ ...key, name: markup }],
    prompts: [{ id, name: 'p', title: markup, description: markup, template: markup, arguments: [{ name: 'a', description: markup }] }],
    resources: [{ id, uri: address, name: markup, description: markup, mimeType: 'text/html', content: markup }],
    systemConfig: { oauthServer: { enabled: true, dynamicRegistration: { enabled: true } } }
  }, { JWT_SECRET: secret, REGISTRY_URL: 'http://127.0.0.1:9' }, { wrap: (opened) => ({ ...opened, activities }) })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as { port: number }
  const url = `http://127.0.0.1:${port}`
  await register(url, { client_name: markup, redirect_uris: ['https://evil.example/%22%3E%3Cb%20data-planted%3E'], client_uri: 'https://evil.example/' })
  app.logs.addGatewayLine('warn', markup)
  await until(() => app.upstreams.countByStatus().connected === 1)
  await until(() => app.logs.list().some(({ processId }) => processId === 'prints'))
  return { app, url }
}

/** Words without a place to break, and texts of the other direction, one of which turns what stands after it. */
const odds = { long: 'unbroken'.repeat(30), rtl: '\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd', turning: '\u202eturned' }

const { app: hostileApp, url: hostileUrl } = await startHostile(file)
await hostileApp.settings.change((current) => [
  ...Object.values(odds).map((name) => ({
    entity: 'mcpServers' as const, key: name, value: { ...current.servers.get('prints')?.config, description: name, enabled: false }
  })),
  { entity: 'groups', key: id, value: { id, name: odds.rtl, description: odds.turning, servers: ['hostile', odds.long, odds.rtl] } },
  { entity: 'users', key: odds.long, value: { ...alice, username: odds.long } },
  { entity: 'teams', key: odds.turning, value: { name: odds.turning, description: odds.long, members: [odds.long] } }
])
for (const name of Object.values(odds)) hostileApp.logs.addGatewayLine('error', `${name} ${markup}`)

const text = encodeURIComponent(markup)
const odd = encodeURIComponent(markup.slice(0, 100))
const link = encodeURIComponent(address)
const template = encodeURIComponent(`${address}{x}`)
/** The pages of the console; false: the page does not show what others wrote. */
const pages: ReadonlyArray<readonly [path: string, isShown?: false]> = [
  ['overview', false], ['servers'], [`servers?q=${text}`], ['servers/hostile'], ['servers/hostile?view=prompts'],
  ['servers/hostile?view=resources'], ['servers/hostile?view=configuration'], ['servers/hostile?view=users', false],
  ['servers/prints?view=output'], ['servers/prints/configuration'], ['servers/prints/rename', false],
  [`servers/${encodeURIComponent(`<b data-planted>${address}`)}`], [`servers/${encodeURIComponent(odds.long)}`, false],
  ['servers/hostile/definitions', false], ['servers/hostile/remove', false], ['servers/hostile/tools/results'],
  [`servers/hostile/tools/${odd}`], [`servers/hostile/prompts/${text}`], [`servers/hostile/resources/${link}`],
  [`servers/hostile/templates/${template}`],
  ['add-a-server', false], ['add-a-server/market', false], ['add-a-server/market/atlassian', false], ['add-a-server/registry', false],
  ['add-a-server/cloud', false], ['add-a-server/bundle', false],
  ['groups'], [`groups/${id}`], ['groups/new'], [`groups/${id}/remove`, false], ['keys'], ['keys/new'], [`keys/${key.id}/remove`],
  ['users', false], ['add-a-user', false], [`users/${encodeURIComponent(odds.long)}/view`, false], [`users/${text}`],
  ['teams', false], [`teams/${encodeURIComponent(odds.turning)}`, false], ['oauth'],
  ['rules'], ['rules/new', false], ['approvals', false], ['guards'], ['guards/new', false], [`guards/${id}`], ['quotas'], ['quotas/new', false],
  ['playground', false], ['playground?route=&eyes=self'], [`playground?route=&eyes=self&q=${text}`],
  ['playground?route=&eyes=self&kind=prompts'], ['playground?route=hostile&eyes=self&item=results'],
  ['search-lab', false], [`search-lab?query=${text}&route=`], ['search-lab?query=results+planted&route='],
  ['calls'], [`calls/${recorded.id}`], [`calls/compare?id=${recorded.id}&id=${recorded.id}`], [`calls?tool=${text}`],
  ['usage', false], ['usage?by=tool', false], ['logs', false], ['logs?server=prints'], [`logs?q=${text}`], ['audit'],
  [`audit?username=${text}`], ['built-ins'], ['built-ins/prompts/new', false], [`built-ins/prompts/${id}`], [`built-ins/resources/${id}`],
  ['templates'], ['settings', false], ['backup', false], ['account', false], [text, false]
]
/** Of each part of the console, the page with most of what others wrote. */
const pagesWithoutScripts = [
  'servers', 'servers/hostile?view=prompts', 'servers/prints?view=output', 'servers/hostile/tools/results', `groups/${id}`, 'oauth', 'rules',
  'playground?route=hostile&eyes=self&item=results', `calls/${recorded.id}`, 'logs', 'audit', `built-ins/prompts/${id}`
]

/** The windows in which a page is looked at, page after page: each begins where the last one ended. */
const windows = [
  [[1280, 'dark'], [390, 'light']], [[390, 'light'], [1280, 'dark']],
  [[1280, 'light'], [390, 'dark']], [[390, 'dark'], [1280, 'light']]
] as const

/** Changes something that an audit entry tells. */
async function describeGroup (tab: Tab, note: string): Promise<void> {
  await tab.goto(`${hostileUrl}/console/groups/${id}`)
  await tab.fill('#description', `${markup} ${odds.turning} ${odds.long} ${note}`)
  await Promise.all([tab.waitForResponse((response) => response.request().method() === 'POST'), tab.click('text=Save')])
}

void test('what others write is text on every page and breaks no layout, and axe finds nothing: wide and narrow, light and dark', async (t) => {
  const { tab, happened } = await openWatched(t, hostileUrl)
  for (const [at, [path, isShown]] of ([['login', false], ...pages] as typeof pages).entries()) {
    await t.test(path, async () => {
      await tab.goto(`${hostileUrl}/console/${path}`)
      await assertInert(tab, path, isShown)
      await tab.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")
      await assertGoodInWindows(tab, path, windows[at % windows.length] ?? [])
      await assertInert(tab, path, false)
    })
    if (path !== 'login') continue
    await signIn(tab, hostileUrl)
    await describeGroup(tab, 'with scripts')
  }
  await tab.close()
  assert.deepEqual(happened, [])
})

void test('without JavaScript, what others write is text and breaks no narrow layout', async (t) => {
  const narrow = { width: 390, height: 844 }
  const { tab, happened } = await openWatched(t, hostileUrl, { javaScriptEnabled: false, viewport: narrow })
  await signIn(tab, hostileUrl)
  await describeGroup(tab, 'without scripts')
  for (const path of pagesWithoutScripts) {
    await t.test(path, async () => {
      await tab.goto(`${hostileUrl}/console/${path}`)
      await assertInert(tab, path)
      await assertFits(tab, path)
    })
  }
  await tab.close()
  assert.deepEqual(happened, [])
})

void test('results of each type, errors, and what is pasted or imported are shown as what they are', async (t) => {
  const url = hostileUrl
  const { tab, happened } = await openWatched(t, url)
  await signIn(tab, url)
  for (const path of ['servers/hostile/tools/results', 'servers/hostile/tools/fails', 'playground?route=hostile&eyes=self&item=results', 'playground?route=hostile&eyes=self&item=fails']) {
    await tab.goto(`${url}/console/${path}`)
    await tab.click('button[value=json]')
    await tab.waitForSelector('#json')
    await tab.fill('#json', JSON.stringify({ [markup]: markup }))
    await tab.click('button.primary[value=call]')
    await tab.waitForSelector('#result, .banner.error, .problem')
    await assertInert(tab, path)
    // Back to the form, which takes the values over; then the buttons of its lists.
    await tab.click('button[value=form]')
    await assertInert(tab, path, false)
  }
  for (const path of [`servers/hostile/prompts/${text}`, `servers/hostile/templates/${template}`]) {
    await tab.goto(`${url}/console/${path}`)
    await tab.fill('[name^="arg/"]', 'x')
    await tab.click('.actions button[value=call]')
    await tab.waitForSelector('#result')
    await assertInert(tab, path)
    await assertGoodInWindows(tab, `the result of ${path}`, windows[0])
  }
  await tab.setViewportSize(wide.viewport)
  await tab.goto(`${url}/console/servers/hostile/tools/results`)
  await tab.click('button[value^="add:"]')
  await tab.waitForSelector('button[value^="remove:"]')
  await assertInert(tab, 'the form with an item')
  const config = { mcpServers: { [markup]: { url: address }, mine: { command: markup, args: [markup], env: { [markup]: markup } } } }
  for (const pasted of [JSON.stringify(config), `claude mcp add "${markup}" -- ${markup}`, markup, address]) {
    await tab.goto(`${url}/console/add-a-server`)
    await tab.fill('#text', pasted)
    await tab.click('button[value=read]')
    await tab.waitForSelector('#name-0, .problem, .banner.error')
    await assertInert(tab, `pasted ${pasted}`, false)
  }
  const pack = {
    version: '1.0', name: markup, description: markup, servers: { [markup]: { url: address } }, groups: [{ name: markup, servers: [markup] }], requiredEnvVars: [markup]
  }
  for (const what of ['preview', 'import']) {
    await tab.goto(`${url}/console/templates`)
    await tab.fill('#template', JSON.stringify(pack))
    await tab.click('button[value=preview]')
    await tab.waitForSelector('button[value=import]')
    if (what === 'import') {
      await tab.click('button[value=import]')
      await tab.waitForSelector('body:not(:has(button[value=import])) table')
    }
    await assertInert(tab, `${what} of a template`)
  }
  await tab.goto(`${url}/console/keys/new`)
  await tab.fill('#name', markup.slice(0, 60))
  await tab.click('text=Create key')
  await tab.waitForSelector('.code pre')
  await assertInert(tab, 'a key that was made', false)
  await tab.close()
  assert.deepEqual(happened, [])
})

void test('what a server asks in the playground is text, and its address is no link that runs', async (t) => {
  const inputRequests = {
    [markup]: { method: 'elicitation/create', params: { mode: 'form', message: markup, requestedSchema: schema } },
    address: { method: 'elicitation/create', params: { mode: 'url', message: markup, url: address, elicitationId: markup } },
    sampling: { method: 'sampling/createMessage', params: { systemPrompt: markup, maxTokens: 9, messages: [{ role: markup, content: { type: 'text', text: markup } }] } },
    roots: { method: 'roots/list' }
  }
  const server = await startBareModern(t, [{ name: 'asks', inputSchema: { type: 'object' } }], ({ method }) =>
    method === 'tools/call' ? { result: { resultType: 'input_required', inputRequests, requestState: markup } } : undefined)
  const { app, url } = await start(t, { settings: { mcpServers: { s: { url: server.url } } } })
  await until(() => app.upstreams.countByStatus().connected === 1)
  const { tab, happened } = await openWatched(t, url)
  await signIn(tab, url)
  await tab.goto(`${url}/console/playground?route=s&eyes=self&item=asks`)
  await tab.click('button.primary[value=call]')
  await tab.waitForSelector('.question')
  await assertInert(tab, 'questions')
  await tab.close()
  assert.deepEqual(happened, [])
})

/** A page of somebody else, at another port (which is the same site for cookies) and under another name. */
async function startForeign (t: Test, html: (query: URLSearchParams) => string): Promise<string[]> {
  const port = await listen(t, createServer(({ url = '/' }, reply) => {
    reply.writeHead(200, { 'content-type': 'text/html' }).end(html(new URL(url, 'http://x').searchParams))
  }))
  return [`http://127.0.0.1:${port}`, `http://evil.example:${port}`]
}

/** Every form of the console, by its address with names of things that are there. */
async function formsOf (app: FastifyInstance, url: string): Promise<string[]> {
  await fetch(`${url}/console/login`)
  const routeTable = app.routeTable.filter(({ scope }) => scope.startsWith('console'))
  return routeTable.filter(({ method }) => method === 'POST').map((row) =>
    row.url.replace(':name', 'one').replace(':tool', 'echo').replace(':id', key.id).replace(':username', 'alice').replace('*', 'none'))
}

void test('no form of the console can be sent by another site, with the session and a token of somebody else', async (t) => {
  const { app, url } = await start(t, { settings: { mcpServers: { one: { url: 'http://127.0.0.1:9/mcp', enabled: false } } } })
  const fields = { _csrf: '', enabled: 'true', kind: 'tools', key: 'x', theme: 'dark', name: 'x', username: 'x', password: 'Other-1234', do: 'import', text: '{}' }
  const foreign = await startForeign(t, (query) => {
    const inputs = Object.entries({ ...fields, _csrf: query.get('csrf') ?? '' }).map(([name, value]) => `<input name="${name}" value="${value}">`)
    return `<form method=post action="${query.get('to') ?? ''}">${inputs.join('')}<button>Win</button></form>`
  })
  const attacker = await openTab(t, browser, wide)
  await signIn(attacker.tab, url, 'alice')
  await attacker.tab.goto(`${url}/console/overview`)
  const csrf = await attacker.tab.getAttribute('[name=_csrf]', 'value') ?? ''
  assert.ok(csrf)
  const { tab } = await openTab(t, browser, wide)
  await signIn(tab, url)
  const before = app.settings.current
  const forms = await formsOf(app, url)
  assert.ok(forms.length > 30)
  for (const site of foreign) {
    for (const form of ['/console/theme', '/console/sign-out', '/console/servers/one/toggle', '/console/users/alice/remove']) {
      await tab.goto(`${site}/?${new URLSearchParams({ to: `${url}${form}`, csrf }).toString()}`)
      const [answer] = await Promise.all([tab.waitForResponse((response) => response.url().startsWith(`${url}/`)), tab.click('button')])
      assert.ok([401, 403].includes(answer.status()), `${site} ${form}: ${answer.status()}`)
    }
    await tab.goto(site)
    // The answers are refused to the page; the requests arrive all the same.
    const arrived = new Set<string>()
    tab.on('request', (request) => { arrived.add(new URL(request.url()).pathname) })
    await tab.evaluate(`Promise.all(${JSON.stringify(forms)}.map((form) => fetch('${url}' + form, {
      method: 'POST', mode: 'no-cors', credentials: 'include', body: new URLSearchParams(${JSON.stringify({ ...fields, _csrf: csrf })})
    }).catch(() => {})))`)
    assert.deepEqual(forms.filter((form) => !arrived.has(form)), [], site)
  }
  assert.equal(app.settings.current, before, 'nothing was changed')
  await tab.goto(`${url}/console/overview`)
  assert.match(tab.url(), /overview$/, 'nor was anybody signed out')
  // The console's own page, with the token of another session, and with none.
  for (const token of [csrf, 'x', '']) {
    await tab.goto(`${url}/console/servers/one`)
    await tab.evaluate(`for (const each of document.querySelectorAll('[name=_csrf]')) each.value = '${token}'`)
    const [answer] = await Promise.all([tab.waitForResponse(/toggle/), tab.click('text=Turn on')])
    assert.equal(answer.status(), 403)
  }
  assert.equal(app.settings.current, before)
})

void test('no page of the console shows in a frame, and none is read by another site', async (t) => {
  const { url } = await start(t)
  const foreign = await startForeign(t, () => `<iframe src="${url}/console/servers"></iframe><iframe src="${url}/console/login"></iframe>`)
  const { tab } = await openTab(t, browser, wide)
  await signIn(tab, url)
  for (const site of foreign) {
    await tab.goto(site, { waitUntil: 'load' })
    const frames = tab.frames().slice(1)
    assert.equal(frames.length, 2)
    for (const frame of frames) assert.equal(await frame.locator('main').count(), 0)
    const read = await tab.evaluate(`fetch('${url}/console/servers', { credentials: 'include' }).then((r) => r.text(), () => 'refused')`)
    assert.equal(read, 'refused')
  }
})

void test('after signing out, the back button and the history show nothing', async (t) => {
  const { url } = await start(t, { settings: { mcpServers: { 'secret-name': { url: 'http://127.0.0.1:9/mcp', enabled: false } } } })
  const { tab } = await openTab(t, browser, wide)
  await signIn(tab, url)
  await tab.goto(`${url}/console/servers/secret-name`)
  await tab.goto(`${url}/console/servers`)
  assert.match(await tab.textContent('main') ?? '', /secret-name/)
  await tab.click('text=Sign out')
  await tab.waitForURL('**/login')
  for (let back = 1; back <= 2; back++) {
    await tab.goBack({ waitUntil: 'load' })
    await tab.waitForURL('**/login?*')
    assert.doesNotMatch(await tab.textContent('main') ?? '', /secret-name/)
  }
})

void test('an open page ends at once with demotion, deletion and another password', async (t) => {
  const third = { ...admin, username: 'third' }
  const { app, url } = await start(t, { settings: { users: [admin, alice, second, third] } })
  const by = { key: 'test', kind: 'user', user: 'admin', username: 'admin', isAdmin: true } as const
  const ends = [
    ['second', 'users', async () => await app.users.update(by, 'second', { isAdmin: false })],
    ['alice', 'servers', async () => await app.users.update(by, 'alice', { newPassword: 'Other-1234' })],
    ['third', 'servers', async () => { await app.users.remove(by, 'third') }]
  ] as const
  // At once: each page asks again after seconds.
  await Promise.all(ends.map(async ([username, path, end]) => {
    const { tab } = await openTab(t, browser, wide)
    await signIn(tab, url, username)
    await tab.goto(`${url}/console/${path}`)
    await end()
    await tab.waitForURL('**/login?*')
    await tab.goto(`${url}/console/overview`)
    assert.match(tab.url(), /\/login\?/)
  }))
})
