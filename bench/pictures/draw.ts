// Draws the pages of the console: `node --import tsx bench/pictures/draw.ts [name …]` writes docs/console/<name>.png, and the same
// with -dark, -narrow and -narrow-dark, of all pages or of those that are named. Whole pages are left in .cache/console. It needs
// Chromium (test/helpers/chromium.ts).
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page as Tab } from 'playwright-core'
import { startBrowser } from '../../test/helpers/chromium.ts'
import { path, spawnHub, until } from '../../test/helpers/hub.ts'
import { password, startDemo } from './demo.ts'
import { writeSmall } from './small-png.ts'

/** A page below the console, and what is done there before the picture is taken. */
type Picture = readonly [path: string, act?: (tab: Tab) => Promise<unknown>]

const press = (selector: string) => async (tab: Tab): Promise<void> => {
  await tab.click(selector)
  await tab.waitForLoadState('load')
}
/** Waits until the page shows that the server which cannot start has failed. */
const hasFailed = async (tab: Tab): Promise<unknown> => await tab.waitForSelector('.state.failed')
/** A variable in a text. */
const variable = (name: string): string => '$' + `{${name}}`
const pasted = JSON.stringify({
  inputs: [{ id: 'api-key', description: 'API key of the desk', password: true }],
  servers: { desk: { url: 'https://desk.example.com/mcp', headers: { 'X-Key': variable('input:api-key') } } }
}, undefined, 2)
const template = JSON.stringify({
  version: '1.0',
  name: 'Desk',
  servers: {
    desk: { url: 'https://desk.example.com/mcp', headers: { 'X-Key': variable('DESK_KEY') } }, files: { command: 'node' }
  },
  groups: [{ name: 'support', servers: ['desk'] }],
  requiredEnvVars: ['DESK_KEY']
}, undefined, 2)

const pictures: Readonly<Record<string, Picture>> = {
  overview: ['overview', hasFailed],
  servers: ['servers', hasFailed],
  server: ['servers/everything'],
  'server-failed': ['servers/notes?view=output'],
  'server-resources': ['servers/everything?view=resources'],
  'server-definitions': ['servers/everything/definitions'],
  'server-configuration': ['servers/files/configuration'],
  'server-remove': ['servers/files/remove'],
  tool: ['servers/everything/tools/get-sum', async (tab) => {
    await tab.fill('[name="arg/a"]', '19')
    await tab.fill('[name="arg/b"]', '23')
    await tab.click('button[value=call].primary')
    await tab.waitForSelector('#result')
  }],
  prompt: ['servers/everything/prompts/args-prompt'],
  'add-a-server': ['add-a-server', async (tab) => {
    await tab.fill('#text', pasted)
    await press('button[value=read]')(tab)
    await tab.waitForSelector('#name-0')
  }],
  catalogue: ['add-a-server/market'],
  'catalogue-entry': ['add-a-server/market', async (tab) => { await press('.found a.button, .found a')(tab) }],
  bundle: ['add-a-server/bundle'],
  groups: ['groups'],
  group: ['groups', async (tab) => { await press('tbody th a')(tab) }],
  keys: ['keys'],
  'key-new': ['keys/new'],
  users: ['users'],
  user: ['users/carol'],
  'user-view': ['users/carol/view'],
  teams: ['teams'],
  team: ['teams/desk'],
  oauth: ['oauth'],
  rules: ['rules'],
  rule: ['rules', async (tab) => { await press('tbody th a >> nth=1')(tab) }],
  approvals: ['approvals'],
  guards: ['guards'],
  guard: ['guards', async (tab) => { await press('tbody th a >> nth=1')(tab) }],
  quotas: ['quotas'],
  quota: ['quotas', async (tab) => { await press('tbody th a')(tab) }],
  usage: ['usage'],
  tasks: ['tasks-and-webhooks'],
  playground: ['playground?route=&eyes=self&item=everything-echo'],
  'search-lab': ['search-lab?query=add+two+numbers&route='],
  calls: ['calls'],
  call: ['calls?status=error', async (tab) => { await press('tbody td a')(tab) }],
  'calls-compared': ['calls', async (tab) => {
    await tab.locator('tbody input').nth(0).check()
    await tab.locator('tbody input').nth(2).check()
    await press('#calls footer button')(tab)
  }],
  logs: ['logs'],
  audit: ['audit', async (tab) => { await tab.click('details.client >> nth=1') }],
  'built-ins': ['built-ins'],
  templates: ['templates', async (tab) => {
    await tab.fill('#template', template)
    await press('button[value=preview]')(tab)
  }],
  settings: ['settings'],
  backup: ['backup'],
  account: ['account'],
  error: ['servers/none']
}

const variants = [
  ['', 1280, 800, 'light'], ['-dark', 1280, 800, 'dark'], ['-narrow', 390, 844, 'light'], ['-narrow-dark', 390, 844, 'dark']
] as const

const asked = process.argv.slice(2)
const isAsked = (name: string): boolean => asked.length === 0 || asked.includes(name)
const whole = path('.cache/console')
mkdirSync(whole, { recursive: true })
const ends: Array<() => unknown> = []
const t = { after: (end: () => unknown) => { ends.unshift(end) } }

async function draw (tab: Tab, name: string): Promise<void> {
  await tab.evaluate('document.fonts.ready')
  await tab.evaluate('document.activeElement?.blur(); scrollTo(0, 0)')
  await tab.mouse.move(0, 0)
  writeSmall(path(`docs/console/${name}.png`), await tab.screenshot())
  await tab.screenshot({ path: join(whole, `${name}.png`), fullPage: true })
}

try {
  const browser = await startBrowser(t)
  const folder = mkdtempSync(join(tmpdir(), 'tool-hub-pictures-'))
  t.after(() => { rmSync(folder, { recursive: true, force: true }) })
  const demo = await startDemo(t, folder)
  const begun = isAsked('welcome') ? await spawnHub(t) : undefined
  if (begun) await until(() => begun.firstWords().includes('welcome?code='))
  for (const [suffix, width, height, colorScheme] of variants) {
    const context = await browser.newContext({
      viewport: { width, height }, colorScheme, deviceScaleFactor: width > 400 ? 0.75 : 1, reducedMotion: 'reduce'
    })
    const tab = await context.newPage()
    if (begun) {
      const [link = ''] = /http:\S+welcome\?code=\S+/.exec(begun.firstWords()) ?? []
      await tab.goto(link)
      await draw(tab, `welcome${suffix}`)
    }
    await tab.goto(`${demo.url}/console/login`)
    if (isAsked('login')) await draw(tab, `login${suffix}`)
    await tab.fill('#username', 'admin')
    await tab.fill('#password', password)
    await tab.click('main button.primary')
    await tab.waitForURL('**/overview')
    for (const [name, [address, act]] of Object.entries(pictures)) {
      if (!isAsked(name)) continue
      await tab.goto(`${demo.url}/console/${address}`, { waitUntil: 'load' })
      await act?.(tab)
      await draw(tab, `${name}${suffix}`)
    }
    if (isAsked('menu') && width < 400) {
      await tab.goto(`${demo.url}/console/overview`)
      await tab.click('text=Menu')
      await draw(tab, `menu${suffix}`)
    }
    if (isAsked('key-made')) {
      await tab.goto(`${demo.url}/console/keys/new`)
      await tab.fill('#name', `laptop ${variants.findIndex(([each]) => each === suffix) + 1}`)
      await tab.click('form button.primary')
      await tab.waitForSelector('#token-title')
      await draw(tab, `key-made${suffix}`)
    }
    await context.close()
  }
} finally {
  for (const end of ends) await end()
}
