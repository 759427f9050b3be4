// A gateway with something on every page of the console, for its pictures.
import { randomUUID } from 'node:crypto'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { openStorage } from '../../db/open.ts'
import type { Activity } from '../../db/ports/activities.ts'
import type { UsageCount } from '../../db/ports/usage.ts'
import { openVault } from '../../plugins/base/secrets/vault.ts'
import { Passwords } from '../../plugins/base/secrets/hash.ts'
import { manage } from '../../test/fakes/replica.ts'
import { connected, Session, settings } from '../../test/helpers/client.ts'
import { pglite } from '../../test/helpers/database.ts'
import { startHub, until, type Cleanup, type Hub } from '../../test/helpers/hub.ts'
import { listen } from '../../test/helpers/listen.ts'

/** Of each user of the demo. */
export const password = 'Same-1234'

const minute = 60_000
const packages = 'node_modules/@modelcontextprotocol'

/** The folder that the file server shows; pictures contain its path. */
const documents = '/tmp/documents'
const files = { command: 'node', args: [`${packages}/server-filesystem/dist/index.js`, documents] }

/** Starts it. @param folder for its data */
export async function startDemo (t: Cleanup, folder: string): Promise<Hub> {
  const hash = await new Passwords().hash(password)
  const user = (username: string, isAdmin = false): object => ({ username, password: hash, isAdmin })
  const group = (name: string, description: string, servers: unknown[]): object =>
    ({ id: randomUUID(), name, description, servers })
  const prompt = (name: string, title: string, template: string): object => ({ id: randomUUID(), name, title, template })
  const policy = (name: string, when: string, decision: string, more = {}): object =>
    ({ id: randomUUID(), name, when, then: decision, ...more })
  const calendar = await startLoginServer(t)
  const given = settings({
    everything: { command: 'node', args: [`${packages}/server-everything/dist/index.js`], visibility: 'public' },
    files: { ...files, description: 'Documents' },
    memory: { command: 'node', args: [`${packages}/server-memory/dist/index.js`], sharedWithUsers: ['@desk'] },
    calendar: { url: calendar, owner: 'carol', visibility: 'public' },
    notes: { command: 'node', args: ['-e', "console.error('Error: NOTES_TOKEN is not set'); process.exit(1)"] },
    tickets: { url: 'https://tickets.example.com/mcp', headers: { Authorization: 'Bearer tickets-token-0123456789' }, enabled: false }
  }, {
    users: [user('admin', true), user('carol'), user('dave')],
    teams: [{ name: 'desk', description: 'People who answer customers', members: ['carol', 'dave'] }],
    groups: [
      group('research', 'Reads documents and notes', [
        { name: 'files', tools: ['read_file', 'list_directory', 'search_files'] }, 'memory'
      ]),
      group('support', 'Tools for the support desk', ['everything', 'tickets'])
    ],
    policies: [
      policy('Search is free', 'tool.name.startsWith("search")', 'allow'),
      policy('Writing needs a second person', 'tool.server == "memory" && !tool.annotations.readOnlyHint', 'ask', { approvers: ['admin'] }),
      policy('Nobody moves files', 'tool.server == "files" && tool.name == "move_file"', 'deny', { message: 'Ask the desk to move files.' }),
      policy('No sums at night', 'tool.name == "get-sum" && now.getHours("Europe/Berlin") < 7', 'deny', { mode: 'observe' })
    ],
    guards: [
      { id: randomUUID(), name: 'No secrets', on: 'both', detect: ['secrets'], action: 'mask' },
      { id: randomUUID(), name: 'No cards to the tickets', on: 'arguments', servers: ['tickets'], detect: ['card', 'iban'], action: 'refuse' },
      { id: randomUUID(), name: 'Addresses are noted', on: 'results', detect: ['email', 'phone'], action: 'flag', enabled: false }
    ],
    quotas: [
      { id: randomUUID(), name: 'Fair share', target: { user: '*' }, per: 'day', calls: 1_000 },
      { id: randomUUID(), name: 'The desk', target: { team: 'desk', server: 'files' }, per: 'minute', calls: 60, resultTokens: 50_000 }
    ],
    prompts: [
      prompt('review', 'Review a change', 'Review {{change}} as a colleague would.'), prompt('standup', 'Standup', 'Summarise {{notes}}.')
    ],
    resources: [{
      id: randomUUID(), name: 'Style guide', uri: 'hub://style-guide', mimeType: 'text/markdown', content: '# Style guide'
    }],
    systemConfig: {
      install: { baseUrl: 'https://hub.example.com' }, oauthServer: { enabled: true }, toolResultCompression: { enabled: true }
    }
  })
  cpSync('docs', documents, { recursive: true, filter: (path) => !path.includes('console/') })
  t.after(() => { rmSync(documents, { recursive: true, force: true }) })
  const { url } = await pglite(t)
  await record(url, folder)
  const settingsPath = join(folder, 'mcp_settings.json')
  writeFileSync(settingsPath, JSON.stringify(given))
  const hub = await startHub(t, { folder, env: { DB_URL: url, DATA_DIR: join(folder, 'data') } })
  await connected(hub, 3)
  await change(hub)
  await askForApproval(hub)
  const session = await Session.open(`${hub.url}/mcp`)
  await session.call('everything-echo', { message: 'Good morning' })
  await session.call('files-list_directory', { path: documents })
  await session.call('everything-get-sum', { a: 'nineteen', b: 23 })
  return hub
}

/** An MCP server that wants a login. @returns its address */
async function startLoginServer (t: Cleanup): Promise<string> {
  let base = ''
  const server = createServer((request, response) => {
    const answer = (status: number, body: object, headers = {}): void => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
    }
    const { url = '' } = request
    if (url.startsWith('/.well-known/oauth-protected-resource')) {
      answer(200, { resource: `${base}/mcp`, authorization_servers: [base] })
    } else if (url.startsWith('/.well-known/')) {
      answer(200, {
        issuer: base,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        registration_endpoint: `${base}/register`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256']
      })
    } else if (url === '/register') {
      answer(201, { client_id: 'tool-hub', redirect_uris: [] })
    } else {
      const metadata = `${base}/.well-known/oauth-protected-resource`
      answer(401, { error: 'invalid_token' }, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` })
    }
  })
  base = `http://127.0.0.1:${await listen(t, server)}`
  return `${base}/mcp`
}

/** Records calls of the last day, most of them of the last hour. */
async function record (dbUrl: string, folder: string): Promise<void> {
  const storage = await openStorage({
    settingsPath: join(folder, 'none.json'),
    dbUrl,
    startupTimeout: 60_000,
    vault: await openVault({ dataDir: join(folder, 'data') }),
    warn: () => {},
    info: () => {}
  })
  const tools: ReadonlyArray<readonly [server: string, tool: string]> = [
    ['files', 'read_file'], ['everything', 'echo'], ['files', 'search_files'], ['memory', 'search_nodes'], ['memory', 'create_entities'],
    ['everything', 'get-sum']
  ]
  const people = [['carol', 'editor'], ['dave', 'desktop'], ['carol', undefined], ['admin', 'nightly']] as const
  const calls = Array.from({ length: 140 }, (_, n): Activity => {
    const [server, tool] = tools[(n * 7) % tools.length] ?? ['', '']
    const [username, keyName] = people[(n * 5) % people.length] ?? ['admin']
    const isFailed = n % 23 === 4
    const age = n < 60 ? (n * n * 37 % 59 + 1) * minute : (n * 53 % 1_380 + 60) * minute
    return {
      id: randomUUID(),
      timestamp: Date.now() - age,
      server,
      tool,
      duration: 4 + (n * 61 % 240) * (n % 9 === 0 ? 6 : 1),
      status: isFailed ? 'error' : 'success',
      username,
      keyName,
      sourceIp: '192.0.2.7',
      input: JSON.stringify({ path: `docs/guide-${n % 7}.md` }),
      ...n % 46 === 4 && { refused: true, policy: { id: randomUUID(), name: 'Nobody moves files', mode: 'enforce', decision: 'deny' } } as const,
      output: JSON.stringify({ content: [{ type: 'text', text: isFailed ? 'No such file' : 'Done' }], isError: isFailed }),
      errorMessage: n % 46 === 4 ? 'Ask the desk to move files.' : isFailed ? 'ENOENT: no such file or directory, open docs/guide.md' : undefined
    }
  })
  await storage.activities?.append(calls)
  await storage.usage.add(usageOf(tools))
  for (const [at, tool] of ['trigger-long-running-operation', 'trigger-long-running-operation', 'simulate-research-query'].entries()) {
    const createdAt = Date.now() - (at + 2) * 3 * minute
    await storage.tasks.put({
      id: randomUUID(),
      owner: `key ${at}`,
      principal: `key ${at}`,
      user: 'carol',
      username: at === 0 ? 'dave' : 'carol',
      keyName: at === 0 ? 'desktop' : 'editor',
      route: { scope: { kind: 'global' }, presentation: 'merged' },
      handle: 'h',
      server: 'everything',
      tool,
      state: at === 2 ? 'input_required' : 'working',
      createdAt,
      updatedAt: createdAt + minute,
      ttl: 60 * minute
    }, 24 * 60 * minute)
  }
  await storage.store.close()
}

/** Usage of the last four weeks: less at weekends. */
function usageOf (tools: ReadonlyArray<readonly [server: string, tool: string]>): UsageCount[] {
  return Array.from({ length: 28 }, (_, at) => new Date(Date.now() - at * 24 * 60 * minute)).flatMap((date, at) =>
    ['carol', 'dave', 'admin'].flatMap((user, who) => tools.map(([server, tool], which): UsageCount => {
      const calls = Math.round((40 + (at * 37 + which * 13) % 50) / (who + 1) / (date.getUTCDay() % 6 === 0 ? 5 : 1))
      return {
        day: date.toISOString().slice(0, 10), user, key: '', server, tool, calls, errors: Math.round(calls / 30), resultTokens: calls * (90 + which * 160)
      }
    })))
}

/** Makes a call that waits for an admin. */
async function askForApproval (hub: Hub): Promise<void> {
  const { body } = await manage(hub, 'POST', '/auth/keys', { name: 'notebook', kind: 'user', owner: 'carol', accessType: 'all' })
  const { data: { token } } = body as { data: { token: string } }
  const entities = [{ name: 'Release 2', entityType: 'release', observations: ['It ships on Friday'] }]
  // The lists of a new caller may still be on their way.
  await until(async () => {
    const session = await Session.open(`${hub.url}/mcp`, { key: token })
    await session.call('memory-create_entities', { entities })
    return true
  })
}

/** Changes through the API, which the audit log shows. */
async function change (hub: Hub): Promise<void> {
  for (const [method, route, body] of [
    ['POST', '/auth/keys', { name: 'editor', kind: 'user', owner: 'carol', accessType: 'all' }],
    ['POST', '/auth/keys', { name: 'desktop', kind: 'user', owner: 'dave', accessType: 'custom', allowedGroups: ['support'] }],
    ['POST', '/auth/keys', { name: 'nightly', kind: 'user', owner: 'admin', accessType: 'custom', allowedServers: ['files', 'memory'] }],
    ['POST', '/oauth/clients', {
      name: 'Dashboard', redirectUris: ['https://dashboard.example.com/callback'], scopes: ['mcp', 'profile']
    }],
    ['PUT', '/system-config', { toolResultCompression: { minTokens: 3_000 } }],
    ['PUT', '/servers/files', { config: { ...files, description: 'Documents of the team' } }]
  ] as const) {
    const { status, text } = await manage(hub, method, route, body)
    if (status >= 300) process.stderr.write(`${method} ${route}: ${status} ${text}\n`)
  }
}
