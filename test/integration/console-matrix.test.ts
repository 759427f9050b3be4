// Who may open which page and send which form: every route of the console, asked by everybody.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { appFor } from '../helpers/app.ts'
import { Browser } from '../helpers/console.ts'
import { admin, alice, key } from '../helpers/doors.ts'
import type { RouteRow } from '../../plugins/base/scopes/index.ts'

const principals = ['nobody', 'alice', 'admin', 'admin, read-only'] as const
type Who = typeof principals[number]

/** What answers something else than the rules say, and why. */
const exceptions: Readonly<Record<string, Readonly<Partial<Record<Who, number>>>>> = {
  // Without a code of the first start.
  'GET /console/welcome': { nobody: 403, alice: 403, admin: 403, 'admin, read-only': 403 },
  'POST /console/welcome': { nobody: 403, alice: 403, admin: 403, 'admin, read-only': 403 },
  // Without a login elsewhere.
  'GET /console/login/social': { nobody: 401, alice: 401, admin: 401, 'admin, read-only': 401 },
  'POST /console/login': { nobody: 401, alice: 401, admin: 401, 'admin, read-only': 401 },
  // Without a server, a name, a password.
  ...Object.fromEntries(['keys/new', 'add-a-server', 'groups/new', 'groups/:id'].map((form) => [`POST /console/${form}`, { alice: 400, admin: 400 }])),
  ...Object.fromEntries([
    'add-a-user', 'built-ins/skills/:id', 'built-ins/prompts/:id', 'built-ins/resources/:id', 'teams/new', 'rules', 'rules/:id', 'guards',
    'guards/:id', 'quotas', 'quotas/:id'
  ].map((form) => [`POST /console/${form}`, { admin: 400 }])),
  'POST /console/built-ins/skills/upload': { admin: 415 },
  // No rule names alice as an approver, and no call waits.
  'GET /console/approvals': { alice: 403 },
  'POST /console/approvals/:id/approve': { alice: 403, admin: 404 },
  'POST /console/approvals/:id/deny': { alice: 403, admin: 404 },
  // No tasks are running, and no client has a webhook.
  'POST /console/tasks-and-webhooks/:id/cancel': { alice: 404, admin: 404 },
  'POST /console/tasks-and-webhooks/webhooks/:id/remove': { alice: 404, admin: 404 },
  // The authorization server is off.
  'POST /console/oauth/consents/:id/remove': { alice: 404, admin: 404 },
  'GET /console/oauth/clients/:id/remove': { admin: 404, 'admin, read-only': 404 },
  'POST /console/oauth/clients/:id/remove': { admin: 404 },
  // Calls are not recorded without a database.
  'GET /console/calls/:id': { alice: 404, admin: 404, 'admin, read-only': 404 },
  // The wrong current password.
  'POST /console/account': { alice: 400, admin: 400 },
  // There is no such entry.
  'GET /console/add-a-server/market/:entry': { alice: 404, admin: 404, 'admin, read-only': 404 },
  'GET /console/add-a-server/registry/:entry': { alice: 502, admin: 502, 'admin, read-only': 502 },
  'GET /console/add-a-server/cloud/:entry': { alice: 400, admin: 400, 'admin, read-only': 400 },
  // It is no multipart form.
  'POST /console/add-a-server/bundle': { admin: 415 },
  // Without a name.
  'POST /console/servers/:name/definitions': { alice: 403, admin: 400 },
  'POST /console/servers/:name/rename': { alice: 400, admin: 400 },
  // The server is off, and lists none.
  ...Object.fromEntries(['tools', 'prompts', 'skills', 'resources', 'templates'].flatMap((kind) => [
    [`GET /console/servers/:name/${kind}/:item`, { alice: 404, admin: 404, 'admin, read-only': 404 }],
    [`POST /console/servers/:name/${kind}/:item`, { alice: 404, admin: 404, 'admin, read-only': 404 }]
  ]))
}

/** The server, the key and the group are alice's own; a prompt and a resource have the same id. */
const addressOf = (url: string): string =>
  url.replace('/console', '').replace(':name', 'hers').replace(':id', key.id).replace(':username', 'bob').replace('*', 'none.js')

/** Pages come before forms, and what ends something comes last. */
const rank = ({ method, url }: RouteRow): number =>
  url.endsWith('/sign-out') ? 3 : method === 'GET' ? 0 : url.endsWith('/remove') ? 2 : 1

function expected ({ method, scope, effect }: RouteRow, who: Who): 'shown' | number {
  if (who === 'admin, read-only' && effect === 'change') return 403
  if (scope === 'console-assets') return 404
  if (scope === 'console-open') return 'shown'
  if (who === 'nobody') return method === 'GET' ? 303 : 401
  return scope === 'console-admin' && who === 'alice' ? 404 : 'shown'
}

void test('every page and form of the console, asked by everybody', async (t) => {
  const settings = {
    users: [admin, alice, { ...alice, username: 'bob' }],
    policies: [{ id: key.id, name: 'p', when: 'false', then: 'deny' }],
    guards: [{ id: key.id, name: 'g', on: 'both', detect: ['card'], action: 'flag' }],
    quotas: [{ id: key.id, name: 'q', target: {}, per: 'day', calls: 1_000 }],
    prompts: [{ id: key.id, name: 'p', template: 'x' }],
    resources: [{ id: key.id, uri: 'note://x', content: 'x' }],
    skills: [{ id: key.id, name: 'x', frontmatter: { name: 'x', description: 'd' }, files: { 'SKILL.md': '' } }],
    teams: [{ name: 'hers', members: ['alice'] }],
    groups: [{ id: key.id, name: 'all-of-hers', servers: ['hers'], owner: 'alice' }],
    bearerKeys: [{ ...key, kind: 'user', owner: 'alice' }],
    mcpServers: {
      hers: { url: 'http://127.0.0.1:9/mcp', enabled: false, owner: 'alice' },
      his: { url: 'http://127.0.0.1:9/mcp', enabled: false }
    }
  }
  const wrong: string[] = []
  let asked = 0
  for (const who of principals) {
    const app = await appFor(t, settings, { READONLY: who === 'admin, read-only', REGISTRY_URL: 'http://127.0.0.1:9' })
    const browser = new Browser(app)
    if (who === 'nobody') await browser.get('/login')
    else await browser.signIn(who === 'alice' ? 'alice' : 'admin')
    const routeTable = app.routeTable.filter(({ scope }) => scope.startsWith('console'))
    if (who === 'alice') {
      const forAdmins = routeTable.filter(({ method, scope }) => method === 'GET' && scope === 'console-admin').map(({ url }) => url)
      assert.ok(forAdmins.length > 8)
      const links = [...(await browser.get('/overview')).text.matchAll(/ href="([^"]+)"/g)].map(([, href]) => href)
      assert.ok(links.includes('/console/servers'))
      assert.deepEqual(forAdmins.filter((url) => links.includes(url)), [], 'pages of admins are in no navigation of others')
    }
    const rows = routeTable.filter(({ method }) => method === 'GET' || method === 'POST').sort((one, other) => rank(one) - rank(other))
    for (const row of rows) {
      asked++
      const path = addressOf(row.url)
      if (who === 'alice' && row.url.includes(':name')) {
        const strangers = path.replace('/hers', '/his')
        const { status } = row.method === 'GET'
          ? await browser.get(strangers)
          : await browser.post(strangers, { enabled: 'false', kind: 'tools', key: 'none' })
        if (status !== 404) wrong.push(`${who}: ${row.method} ${strangers}: ${status}, and not 404`)
      }
      const csrf = await browser.csrf(who === 'nobody' ? '/login' : '/servers')
      const isStream = row.url.endsWith('/live')
      const answer = row.method === 'GET'
        ? await browser.get(path)
        : await browser.send(path, { _csrf: csrf, enabled: 'false', kind: 'tools', key: 'none' })
      const wanted = exceptions[`${row.method} ${row.url}`]?.[who] ?? expected(row, who)
      // A form with too little in it comes back; a stream of no page, and an item of no server, are not there.
      const isThere = [200, 303, 400].includes(answer.status) || isStream || row.url.endsWith('/items')
      if (wanted === 'shown' ? !isThere || answer.location.startsWith('/console/login?') : answer.status !== wanted) {
        wrong.push(`${who}: ${row.method} ${row.url}: ${answer.status} ${answer.location}, and not ${wanted}`)
      }
    }
    const undone = routeTable.filter(({ method, effect }) => method === 'POST' && effect === 'read')
    assert.deepEqual(undone, [], 'a form changes or runs something')
  }
  assert.deepEqual(wrong, [])
  assert.ok(asked > 40)
})
