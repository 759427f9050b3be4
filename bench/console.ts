import { existsSync } from 'node:fs'
import postgres from 'postgres'
import { startUpstream } from '../test/fakes/fault-http.ts'
import { Cluster } from '../test/helpers/database.ts'
import { until } from '../test/helpers/hub.ts'
import { type Bench, type Gateway, type Measurement, startGateway, statusOf } from './gateway.ts'
import { readTools } from './search/questions.ts'
import { cell, spread, table } from './statistics.ts'

/**
 * The pages of the console with much in it: 500 servers, 5,000 tools and 1,000,000 recorded calls (CONSOLE_CALLS) of 30 days in PostgreSQL,
 * asked for one after the other as an admin. Chromium, where it is installed, loads the first page with an empty cache.
 */
export const consolePages: Measurement = { title: 'The console', run }

const serverCount = 500
const toolsPerServer = 10
/** Upstreams with different tools; servers share them. */
const upstreamCount = 50
const password = 'Same-1234'
const chromium = '/usr/bin/chromium'
const day = 86_400_000

async function run (bench: Bench): Promise<string> {
  const { processes, quick, log } = bench
  const calls = Number(process.env.CONSOLE_CALLS ?? 1_000_000)
  const after: Array<() => unknown> = []
  const cluster = await Cluster.create({ fsync: 'off', synchronous_commit: 'off', max_wal_size: '4GB', shared_buffers: '256MB' })
  try {
    const { tools } = readTools()
    const upstreams = await Promise.all(Array.from({ length: upstreamCount }, async (_, n) => await startUpstream(
      { after: (close) => { after.push(close) } },
      {
        tools: tools.slice(n * toolsPerServer, (n + 1) * toolsPerServer).map(({ ownName: name, description, inputSchema }) =>
          ({ name, description, inputSchema }))
      }
    )))
    const mcpServers = Object.fromEntries(Array.from({ length: serverCount }, (_, n) =>
      [`server-${n}`, { type: 'streamable-http', url: upstreams[n % upstreamCount]?.url, owner: 'admin' }]))
    const url = await cluster.make('console')
    const gateway = await startGateway(bench, { mcpServers, env: { DB_URL: url, ADMIN_PASSWORD: password } })
    await until(async () => await statusOf(gateway.port, '/health/ready') === 200)
    log(`recording ${calls} calls`)
    await fill(url, calls, log)
    await until(async () => await connectedServers(gateway) === serverCount)
    const visitor = await Visitor.signIn(gateway)
    const rows: string[][] = []
    const paths = await pathsOf(visitor)
    // The first list of the playground makes the gateway read the lists of all servers for the capabilities of its client.
    for (const path of paths) await visitor.get(path)
    log('all pages visited once')
    for (const path of paths) {
      const times: number[] = []
      let [size, status] = [0, 0]
      for (let round = 0; round <= (quick ? 5 : 20); round++) {
        const since = performance.now()
        const page = await visitor.get(path)
        if (round > 0) times.push(performance.now() - since);
        [size, status] = [page.text.length, page.status]
      }
      if (status !== 200) throw new Error(`${path}: ${status}`)
      log(`${path}: ${cell(times, 0)} ms, ${Math.ceil(size / 1_024)} KiB`)
      rows.push([`/console/${path}`, spread(times).median.toFixed(0), spread(times).max.toFixed(0), `${Math.ceil(size / 1_024)}`])
    }
    const first = existsSync(chromium) ? await loadFirstPage(gateway, quick ? 3 : 7) : 'Chromium is not installed.'
    return `${serverCount} servers, ${serverCount * toolsPerServer} tools, ${calls.toLocaleString('en')} calls; ` +
      `one request after the other:\n\n${table(['page', 'ms, median', 'ms, max', 'KiB'], rows)}\n\n${first}`
  } finally {
    // Before the database, so that they do not wait for it.
    await processes.stopAll()
    for (const close of after) await close()
    await cluster.remove()
  }
}

async function connectedServers ({ port }: Gateway): Promise<number> {
  const health = await (await fetch(`http://127.0.0.1:${port}/health`)).json() as { servers: { connected: number } }
  return health.servers.connected
}

/** Records calls of the last 30 days, with the sums of their hours. */
async function fill (url: string, calls: number, log: Bench['log']): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  const first = Date.now() - 30 * day
  const step = 250_000
  for (let from = 0; from < calls; from += step) {
    await sql.unsafe(`
      INSERT INTO activities (id, timestamp, server, tool, duration, status, "group", username, key_id, key_name, source_ip, sealed)
      SELECT (lpad(to_hex(n), 12, '0') || substr(md5(n::text), 1, 20))::uuid, ${first} + n::bigint * ${Math.floor(30 * day / calls)},
        'server-' || n % ${serverCount}, 'tool-' || n % ${serverCount} % 50 * 10 + n / 200 % 10, n % 1000 / 10.0,
        CASE WHEN n % 50 = 0 THEN 'error' ELSE 'success' END, CASE WHEN n % 10 = 0 THEN 'g' || n % 30 END, 'u' || n % 200,
        CASE WHEN n % 2 = 0 THEN 'k' || n % 200 END, CASE WHEN n % 2 = 0 THEN 'name ' || n % 200 END, '192.0.2.7', repeat('x', 160)
      FROM generate_series(${from}, ${Math.min(from + step, calls) - 1}) AS n`)
    log(`${Math.min(from + step, calls)} calls`)
  }
  await sql.unsafe(`
    INSERT INTO activity_hours (hour, hash, server, tool, status, "group", username, key_id, key_name, calls, duration)
    SELECT timestamp / 3600000,
      encode(sha256(convert_to(json_build_array(server, tool, status, "group", username, key_id, key_name)::text, 'UTF8')), 'hex'),
      server, tool, status, "group", username, key_id, key_name, count(*), sum(duration)
    FROM activities GROUP BY 1, server, tool, status, "group", username, key_id, key_name`)
  for (const name of ['activities', 'activity_hours']) await sql.unsafe(`VACUUM ANALYZE ${name}`)
  await sql.end()
}

interface Page { readonly status: number, readonly text: string, readonly location: string }

/** An admin who has signed in. */
class Visitor {
  readonly #base: string
  readonly #cookies = new Map<string, string>()

  private constructor (base: string) {
    this.#base = base
  }

  static async signIn ({ port }: Gateway): Promise<Visitor> {
    const visitor = new Visitor(`http://127.0.0.1:${port}/console/`)
    const { text } = await visitor.get('login')
    const [, csrf = ''] = /name="_csrf" value="([^"]+)"/.exec(text) ?? []
    const { status } = await visitor.#send('login', new URLSearchParams({ _csrf: csrf, username: 'admin', password }))
    if (status !== 303) throw new Error(`signing in: ${status}`)
    return visitor
  }

  async get (path: string): Promise<Page> {
    return await this.#send(path)
  }

  async #send (path: string, body?: URLSearchParams): Promise<Page> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(`${this.#base}${path}`, {
      method: body ? 'POST' : 'GET', headers: { cookie }, body, redirect: 'manual'
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      this.#cookies.set(name, value)
    }
    return { status: response.status, text: await response.text(), location: response.headers.get('location') ?? '' }
  }
}

/** The pages in the navigation, and some behind each. */
async function pathsOf (visitor: Visitor): Promise<string[]> {
  const { text } = await visitor.get('overview')
  const [, nav = ''] = /<nav class="pages"([\s\S]*?)<\/nav>/.exec(text) ?? []
  const pages = [...nav.matchAll(/<a href="[^"]*\/console\/([^"]+)"/g)].map(([, path = '']) => path)
  const calls = await visitor.get('calls')
  const [, call = ''] = /\/console\/(calls\/[0-9a-f-]{36})"/.exec(calls.text) ?? []
  const server = await visitor.get('servers/server-7')
  const [, tool = ''] = /\/console\/(servers\/server-7\/tools\/[^"]+)"/.exec(server.text) ?? []
  return [
    ...pages, call, 'calls?server=server-7', 'calls?status=error', 'calls?tool=tool-73&username=u33', 'calls?page=200',
    `calls?startDate=${new Date(Date.now() - 29 * day).toISOString().slice(0, 10)}`, 'servers?q=server-4&page=2', 'servers/server-7', tool,
    'servers/server-7/configuration', 'servers/server-7?view=output', 'servers/server-7/remove', 'groups/new', 'keys/new', 'add-a-user',
    'add-a-server/market', 'playground?route=&eyes=self&q=file', 'search-lab?query=read+a+file&route='
  ].filter((path) => path !== '')
}

/**
 * How much the browser takes over the wire for the first page, and when pages can be used: when their scripts have run. The overview is
 * measured from the redirect on, since signing in hashes the password. An almost empty page says what the browser itself takes.
 */
async function loadFirstPage ({ port }: Gateway, rounds: number): Promise<string> {
  const { chromium: browsers } = await import('playwright-core')
  const browser = await browsers.launch({ executablePath: chromium, args: ['--no-sandbox'] })
  try {
    const [sizes, floors, times, signIns, overviews]: [number[], number[], number[], number[], number[]] = [[], [], [], [], []]
    for (let round = 0; round < rounds; round++) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
      const tab = await context.newPage()
      const look = async (): Promise<{ size: number, ready: number, redirected: number }> => await tab.evaluate(`(() => {
        const [page] = performance.getEntriesByType('navigation')
        return {
          size: [page, ...performance.getEntriesByType('resource')].reduce((sum, { transferSize }) => sum + transferSize, 0),
          ready: page.domContentLoadedEventEnd,
          redirected: page.redirectEnd
        }
      })()`)
      // The browser starts its process for the address.
      for (const into of [[], floors]) {
        await tab.goto(`http://127.0.0.1:${port}/health`, { waitUntil: 'load' })
        into.push((await look()).ready)
      }
      await tab.goto(`http://127.0.0.1:${port}/console/login`, { waitUntil: 'load' })
      const login = await look()
      await tab.fill('#username', 'admin')
      await tab.fill('#password', password)
      await tab.click('main button.primary')
      await tab.waitForURL('**/overview', { waitUntil: 'load' })
      const overview = await look()
      sizes.push((login.size + overview.size) / 1_024)
      times.push(login.ready)
      signIns.push(overview.redirected)
      overviews.push(overview.ready - overview.redirected)
      await context.close()
    }
    return `The login and then the overview, with an empty cache: ${cell(sizes, 0)} KiB over the wire; the login can be used after ` +
      `${cell(times, 0)} ms; signing in takes ${cell(signIns, 0)} ms, and then the overview can be used after ${cell(overviews, 0)} ms. ` +
      `This browser takes ${cell(floors, 0)} ms for the page /health.`
  } finally {
    await browser.close()
  }
}
