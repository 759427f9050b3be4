// Who may do what: every route of the live table, asked by every kind of principal, about things of every owner and visibility.
// What is expected is computed by the rules below.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import bcrypt from 'bcryptjs'
import type { FastifyInstance } from 'fastify'
import type { Change } from '../../db/store.ts'
import type { Principal, View } from '../../plugins/settings/access/view.ts'
import type { RouteRow } from '../../plugins/base/scopes/index.ts'
import { sha256 } from '../../plugins/base/secrets/hash.ts'
import { PlainHttpExchange } from '../../plugins/downstream/tools/exchange.ts'
import { appFor } from '../helpers/app.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { initialize } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'

const principals = [
  'nobody', 'alice', 'bob', 'admin', 'system key', 'scoped key', 'user key', 'guest', 'admin, read-only',
  'system key, read-only', 'key of a former admin', 'scoped key of a former admin', 'key for a former admin',
  'user key for an admin, by a former one', 'team key'
] as const
type Who = typeof principals[number]
const owners = ['alice', 'admin'] as const
const visibilities = ['private', 'public', 'group'] as const
/** Private, and shared: with bob; with a team of bob's and of the `team key`; with that team after bob has left it. */
const shares = ['shared', 'shared with a team', 'shared with a former team'] as const
/** Who is asked about what is shared. alice owns it, or is a stranger. */
const sharers: readonly Who[] = ['nobody', 'alice', 'bob', 'admin', 'scoped key', 'user key', 'team key']
/** What a route speaks of. `group`: one of the server's owner whose only member is the server. `own …`: alice's. */
type Target =
  'nothing' | 'off' | 'metrics' | 'server' | 'managed server' | 'own values' | 'group' | 'managed group' | 'approvals' | 'no approval' | 'own team' | 'own view' | 'own key' | 'own route' | 'own route of a server' | 'global route' | 'registering' | 'own password'

interface Place { readonly target: Target, readonly body?: unknown, readonly query?: string }
interface Asked {
  readonly row: RouteRow
  readonly target: Target
  readonly who: Who
  readonly owner: (typeof owners)[number]
  readonly visibility: (typeof visibilities | typeof shares)[number]
}
type Expected = 'yes' | 401 | 403 | 404

// ---- the rules ------------------------------------------------------------------------------------

const isReadonly = (who: Who): boolean => who.endsWith('read-only')
const withoutMode = (who: Who): Who => who === 'admin, read-only' ? 'admin' : who === 'system key, read-only' ? 'system key' : who

/** Which credentials count on which class of routes. */
function isKnown (scope: RouteRow['scope'], who: Who): boolean {
  if (scope === 'public' || scope === 'docs' || scope === 'open' || scope === 'oauth' || scope === 'social') return true
  // A system key counts while its maker and its owner are admins.
  const onMcp: Who[] = ['system key', 'scoped key', 'user key', 'team key']
  const onApi: Who[] = ['alice', 'bob', 'admin', 'system key', 'guest']
  return (scope === 'mcp' ? onMcp : onApi).includes(withoutMode(who))
}

/** Everybody whom visibility does not bind. A scoped key sees all, and is bound by its scope instead. */
const isAdmin = (who: Who): boolean => ['admin', 'system key', 'guest', 'scoped key'].includes(withoutMode(who))
/** Whose servers a principal owns, if anybody's. */
const userOf = (who: Who): string | undefined => {
  if (who === 'user key' || who === 'alice') return 'alice'
  return who === 'bob' ? 'bob' : undefined
}

/** The routes of alice are for her keys, and for unscoped system keys. */
const isStranger = (who: Who): boolean => who === 'scoped key' || who === 'team key' || userOf(who) === 'admin'

const manages = ({ who, owner }: Asked): boolean => isAdmin(who) || userOf(who) === owner
const isSharedWith = ({ who, visibility }: Asked): boolean =>
  who === 'bob' ? visibility === 'shared' || visibility === 'shared with a team' : who === 'team key' && /team/.test(visibility)
const sees = (asked: Asked): boolean =>
  manages(asked) || isSharedWith(asked) || (asked.visibility === 'public' && asked.who !== 'nobody')
/** Who is a guest on the management API is nobody here. */
const isOpenTo = (asked: Asked): boolean => asked.visibility === 'public' || (asked.who !== 'guest' && sees(asked))

function expected (asked: Asked): Expected {
  const { row: { scope, effect, method }, target, who } = asked
  if (isReadonly(who) && effect !== 'run' && !['GET', 'HEAD', 'OPTIONS'].includes(method)) return 403
  if (!isKnown(scope, who)) return 401
  if (scope === 'admin' && !isAdmin(who)) return 403
  switch (target) {
    case 'nothing': return 'yes'
    // The authorization server, with `oauthServer.enabled` false; the record of calls and social login, without a database; a task and a
    // webhook, of which there are none.
    case 'off': return 404
    // METRICS is not set. `routing.skipAuth`, by which guests come, is of the management API.
    case 'metrics': return !isKnown('api', who) || who === 'guest' ? 401 : isAdmin(who) ? 'yes' : 403
    // ALLOW_REGISTRATION is off: admins only; keys that the management API does not know are nobody's.
    case 'registering': return !isKnown('api', who) ? 401 : isAdmin(who) ? 'yes' : 403
    // Who has no password has none to change.
    case 'own password': return ['alice', 'bob', 'admin'].includes(who) ? 'yes' : 403
    case 'own key': return isAdmin(who) || userOf(who) === 'alice' ? 'yes' : 403
    // No policy names approvers.
    case 'approvals': return isAdmin(who) ? 'yes' : 403
    case 'no approval': return isAdmin(who) ? 404 : 403
    // A scoped key lists the server, and no more.
    case 'global route': return who === 'scoped key' ? 403 : 'yes'
    case 'own route': return isStranger(who) ? 403 : 'yes'
    case 'own route of a server': return isStranger(who) ? 403 : sees(asked) ? 'yes' : 404
    // Who has no user can give no values for a server.
    case 'own values': return !sees(asked) ? 404 : ['alice', 'bob', 'admin'].includes(withoutMode(who)) ? 'yes' : 403
    // alice is a member, and it is her view.
    case 'own team': return isAdmin(who) || userOf(who) === 'alice' ? 'yes' : 404
    case 'own view': return isAdmin(who) || userOf(who) === 'alice' ? 'yes' : 403
    // Who exports a group manages it, as who asks for a server's users does.
    case 'managed group': case 'managed server': return !sees(asked) ? 404 : manages(asked) ? 'yes' : 403
    case 'server': case 'group':
      if (scope === 'open') return isOpenTo(asked) ? 'yes' : 404
      if (!sees(asked)) return 404
      return effect === 'change' && !manages(asked) ? 403 : 'yes'
  }
}

// ---- the places of the routes ---------------------------------------------------------------------

const server = (body?: unknown): Place => ({ target: 'server', body })
const group = (body?: unknown): Place => ({ target: 'group', body })
const nothing = (body?: unknown): Place => ({ target: 'nothing', body })
const ids = {
  group: '33333333-3333-4333-8333-333333333333',
  system: '11111111-1111-4111-8111-111111111111',
  scoped: '22222222-2222-4222-8222-222222222222',
  user: '44444444-4444-4444-8444-444444444444',
  own: '55555555-5555-4555-8555-555555555555',
  made: '66666666-6666-4666-8666-666666666666',
  madeScoped: '77777777-7777-4777-8777-777777777777',
  owned: '88888888-8888-4888-8888-888888888888',
  given: '99999999-9999-4999-8999-999999999999',
  ofTeam: 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
}
const guard = { name: 'A guard', enabled: false, on: 'both' as const, detect: ['email' as const], action: 'flag' as const }
const quota = { name: 'A quota', enabled: false, target: {}, per: 'day' as const, calls: 1 }
const policy = { name: 'NEW', when: 'false', then: 'deny' }
/** Of what stands under an id, a body that makes one, and one that changes one. */
const entries: Readonly<Record<string, readonly [made: object, change: object]>> = {
  prompts: [{ name: 'NEW', template: 'x' }, { title: 'x' }],
  resources: [{ uri: 'note://new', content: 'x' }, { name: 'x' }],
  skills: [{ content: '---\nname: new\ndescription: d\n---\n' }, { global: false }],
  guards: [guard, guard],
  quotas: [quota, quota],
  policies: [policy, policy]
}
const call: Place = { target: 'server', query: '?message=hi' }
const config = { url: 'http://127.0.0.1:9/mcp', enabled: false }

/** What is served with a database only: `test/extensions/activities` asks these routes. */
const records = [
  'GET /api/activities', 'GET /api/activities/stats', 'GET /api/activities/filters', 'GET /api/activities/:id',
  'DELETE /api/activities/cleanup'
]

const authorizationServer = [
  'GET /.well-known/oauth-authorization-server', 'GET /.well-known/oauth-authorization-server/*',
  'GET /.well-known/oauth-protected-resource', 'GET /.well-known/oauth-protected-resource/*', 'GET /oauth/authorize',
  'GET /oauth/authorize/:uid', 'POST /oauth/authorize', 'POST /oauth/token', 'POST /oauth/revoke',
  'GET /oauth/interaction/:uid', 'GET /oauth/interaction/:uid/social', 'POST /oauth/interaction/:uid/login',
  'POST /oauth/interaction/:uid/consent', 'POST /oauth/interaction/:uid/logout', 'POST /oauth/register',
  'GET /oauth/register/:clientId', 'PUT /oauth/register/:clientId', 'DELETE /oauth/register/:clientId',
  'GET /oauth/userinfo', 'POST /oauth/userinfo', 'GET /api/oauth/consents', 'DELETE /api/oauth/consents/:clientId',
  'GET /api/oauth/clients', 'POST /api/oauth/clients', 'GET /api/oauth/clients/:clientId',
  'PUT /api/oauth/clients/:clientId', 'DELETE /api/oauth/clients/:clientId',
  'POST /api/oauth/clients/:clientId/regenerate-secret'
]

/** The services behind them are away here, or not set up: who may ask is told so. */
const catalogues = [
  'market/servers', 'market/servers/search', 'market/servers/:entry', 'market/categories',
  'market/categories/:category', 'market/tags', 'market/tags/:tag', 'cloud/servers', 'cloud/servers/:name',
  'cloud/servers/:name/tools', 'registry/servers', 'registry/servers/:serverName/versions',
  'registry/servers/:serverName/versions/:version'
]

const socialLogin = [
  'GET /api/auth/better/signIn/social', 'GET /api/auth/better/callback/:provider',
  'POST /api/auth/better/sign-in/social', 'GET /api/auth/better/session', 'GET /api/auth/better/get-session',
  'POST /api/auth/better/signOut', 'POST /api/auth/better/sign-out', 'GET /api/social-auth/user'
]

/** Every route outside of MCP, with what it speaks of and a body that it takes. */
const places: Readonly<Record<string, Place>> = {
  ...Object.fromEntries(
    ['/health', '/health/live', '/health/ready', '/config', '/public-config'].map((path) => [`GET ${path}`, nothing()])
  ),
  'GET /': nothing(),
  'GET /favicon.ico': nothing(),
  'GET /metrics': { target: 'metrics' },
  // The guard of this one is the sealed address: nobody's credential opens another.
  'POST /webhooks/events/:token': { target: 'off', body: {} },
  'GET /oauth/callback': nothing(),
  'GET /oauth/login/:ticket': nothing(),
  'GET /oauth/login/:ticket/continue': nothing(),
  'POST /oauth/login/:ticket': nothing(),
  // `install.baseUrl` is not https.
  'GET /client-metadata.json': { target: 'off' },
  'POST /api/auth/login': nothing({ username: 'dave', password: 'Dave-1234' }),
  'POST /api/auth/register': { target: 'registering', body: { username: 'newcomer', password: 'New-12345' } },
  'GET /api/auth/user': nothing(),
  'POST /api/auth/change-password': { target: 'own password', body: { currentPassword: 'Same-1234', newPassword: 'Other-1234' } },
  'GET /api/servers': nothing(),
  'POST /api/servers': nothing({ name: 'NEW', config }),
  'POST /api/servers/batch': nothing({ servers: [{ name: 'NEW', config }] }),
  'POST /api/servers/test': nothing({ config }),
  'GET /api/servers/:name': server(),
  'PUT /api/servers/:name': server({ config }),
  'DELETE /api/servers/:name': server(),
  'POST /api/servers/:name/toggle': server({ enabled: false }),
  'POST /api/servers/:name/reload': server(),
  'GET /api/servers/:name/changes': server(),
  // Nothing has changed.
  'POST /api/servers/:name/changes/accept': { target: 'off', body: { kind: 'tool', item: 'nothing' } },
  'DELETE /api/servers/:name/oauth': server(),
  'GET /api/servers/:name/my-variables': { target: 'own values' },
  'PUT /api/servers/:name/my-variables': { target: 'own values', body: { values: {} } },
  'DELETE /api/servers/:name/my-variables': { target: 'own values' },
  'GET /api/servers/:name/variables': { target: 'managed server' },
  ...Object.fromEntries(['tools/:toolName', 'prompts/:promptName', 'resources/:resourceUri', 'skills/:skillUri'].flatMap((item) => [
    [`POST /api/servers/:serverName/${item}/toggle`, server({ enabled: false })],
    [`PUT /api/servers/:serverName/${item}/description`, server({ description: 'x' })],
    [`DELETE /api/servers/:serverName/${item}/description`, server()]
  ])),
  'GET /api/settings': nothing(),
  'GET /api/mcp-settings/export': nothing(),
  'GET /api/system-config': nothing(),
  'GET /api/settings/problems': nothing(),
  'PUT /api/system-config': nothing({ nameSeparator: '-' }),
  'GET /api/audit': nothing(),
  'POST /api/mcpb/upload': nothing(),
  'POST /api/skills/upload': nothing(),
  'GET /api/logs': nothing(),
  'DELETE /api/logs': nothing(),
  'GET /api/logs/stream': nothing(),
  'GET /api/activities/available': nothing(),
  'GET /api/events/failed': nothing(),
  'GET /api/events/subscriptions': nothing(),
  'DELETE /api/events/subscriptions/:id': { target: 'off' },
  'GET /api/tasks': nothing(),
  'POST /api/tasks/:id/cancel': { target: 'off' },
  'GET /api/groups': nothing(),
  'POST /api/groups': nothing({ name: 'NEW', servers: [] }),
  'GET /api/groups/:id': group(),
  'PUT /api/groups/:id': group({ description: 'x' }),
  'DELETE /api/groups/:id': group(),
  'POST /api/groups/:id/servers': group({ serverName: 'thing' }),
  'DELETE /api/groups/:id/servers/:serverName': group(),
  'PUT /api/groups/:id/servers/batch': group({ servers: [] }),
  'GET /api/groups/:id/server-configs': group(),
  'PUT /api/groups/:id/server-configs/:serverName/tools': group({ tools: 'all' }),
  'GET /api/auth/keys': nothing(),
  'POST /api/auth/keys': nothing({ name: 'NEW' }),
  'GET /api/auth/keys/:id': { target: 'own key' },
  'PUT /api/auth/keys/:id': { target: 'own key', body: { name: 'renamed' } },
  'DELETE /api/auth/keys/:id': { target: 'own key' },
  'GET /api/users': nothing(),
  'GET /api/users-stats': nothing(),
  'GET /api/users/:username/view': { target: 'own view' },
  'GET /api/servers/:name/users': { target: 'managed server' },
  'GET /api/teams': nothing(),
  'GET /api/teams/:name': { target: 'own team' },
  'POST /api/teams': nothing({ name: 'newcomers' }),
  'PUT /api/teams/:name': nothing({ description: 'x' }),
  'DELETE /api/teams/:name': nothing(),
  'GET /api/users/:username': nothing(),
  'POST /api/users': nothing({ username: 'newcomer', password: 'New-12345' }),
  'PUT /api/users/:username': nothing({ isAdmin: false }),
  'DELETE /api/users/:username': nothing(),
  'POST /api/tools/call/:server': server({ toolName: 'echo', arguments: {} }),
  'POST /api/mcp/:serverName/prompts/:promptName': server({}),
  // Built-ins are for everybody to read.
  ...Object.fromEntries(Object.entries(entries).flatMap(([kind, [made, change]]) => [
    [`GET /api/${kind}`, nothing()],
    [`GET /api/${kind}/:id`, nothing()],
    [`POST /api/${kind}`, nothing(made)],
    [`PUT /api/${kind}/:id`, nothing(change)],
    [`DELETE /api/${kind}/:id`, nothing()]
  ])),
  ...Object.fromEntries(['guards', 'quotas', 'policies'].map((kind) => [`PUT /api/${kind}/order`, nothing({ ids: [ids.group] })])),
  'GET /api/usage': { target: 'nothing', query: '?by=user' },
  'POST /api/resources/read': server({ uri: 'test://one' }),
  'POST /api/policies/test': nothing({ server: 'thing', tool: 'echo' }),
  'GET /api/approvals': { target: 'approvals' },
  'POST /api/approvals/:id/approve': { target: 'no approval' },
  'POST /api/approvals/:id/deny': { target: 'no approval' },
  'POST /api/templates/export': nothing({ name: 'x' }),
  'GET /api/templates/export/groups/:id': { target: 'managed group' },
  'POST /api/templates/import': nothing({ version: '1.0', servers: { NEW: config } }),
  'GET /api/openapi.json': nothing(),
  'GET /api/openapi.yaml': nothing(),
  'GET /api/openapi/servers': nothing(),
  'GET /api/openapi/stats': nothing(),
  'GET /api/:name/openapi.json': group(),
  'GET /api/:name/openapi.yaml': group(),
  ...Object.fromEntries(catalogues.map((path) => [`GET /api/${path}`, nothing()])),
  ...Object.fromEntries([...authorizationServer, ...records, ...socialLogin].map((route) => [route, { target: 'off' }])),
  'GET /api/tools/:server/:tool': call,
  'POST /api/tools/:server/:tool': server({}),
  'GET /api/:name/tools/:server/:tool': { target: 'group', query: '?message=hi' },
  'POST /api/:name/tools/:server/:tool': group({})
}

/** HEAD is GET without its body. */
const routeOf = ({ method, url }: RouteRow): string => `${method === 'HEAD' ? 'GET' : method} ${url}`

/** Preflights of browsers, which are answered before anybody is asked: test/integration/oauth-origins.test.ts and test/api/http.test.ts. */
const exceptions: ReadonlySet<string> = new Set([
  '*', '/.well-known/oauth-authorization-server', '/.well-known/oauth-authorization-server/*', '/.well-known/oauth-protected-resource',
  '/.well-known/oauth-protected-resource/*', '/oauth/token', '/oauth/revoke', '/oauth/userinfo', '/api/openapi.json',
  '/api/:name/openapi.json', '/api/openapi.yaml', '/api/:name/openapi.yaml'
].map((url) => `OPTIONS ${url}`))

/** What MCP routes speak of; those with `$smart` in them as those without. */
const mcpPlaces: Readonly<Record<string, Target>> = {
  '/mcp': 'global route',
  '/api/mcp': 'global route',
  '/mcp/:name': 'server',
  '/api/mcp/:name': 'server',
  '/api/mcp/group/:group': 'group',
  '/:user/mcp': 'own route',
  '/:user/mcp/:name': 'own route of a server',
  '/sse': 'global route',
  '/sse/:name': 'server',
  '/:user/sse': 'own route',
  '/:user/sse/:name': 'own route of a server',
  '/messages': 'nothing'
}
function placeOf (row: RouteRow): Place | undefined {
  const { method, url, scope } = row
  if (scope === 'docs') return nothing()
  if (scope !== 'mcp') return Object.hasOwn(places, routeOf(row)) ? places[routeOf(row)] : undefined
  const target = mcpPlaces[url.replace('/$smart', '')]
  return target && { target, body: method === 'POST' ? initialize() : undefined }
}

// ---- the world ------------------------------------------------------------------------------------

const tokens = {
  'system key': `thk_${'a'.repeat(64)}`,
  'scoped key': `thk_${'b'.repeat(64)}`,
  'user key': `thk_${'c'.repeat(64)}`,
  'key of a former admin': `thk_${'e'.repeat(64)}`,
  'scoped key of a former admin': `thk_${'f'.repeat(64)}`,
  'key for a former admin': `thk_${'1'.repeat(64)}`,
  'user key for an admin, by a former one': `thk_${'2'.repeat(64)}`,
  'team key': `thk_${'3'.repeat(64)}`
}
const password = (text: string): string => bcrypt.hashSync(text, 4)
const users = {
  admin: { username: 'admin', password: password('Same-1234'), isAdmin: true },
  alice: { username: 'alice', password: password('Same-1234'), isAdmin: false },
  bob: { username: 'bob', password: password('Same-1234'), isAdmin: false },
  carol: { username: 'carol', password: password('Same-1234'), isAdmin: false },
  dave: { username: 'dave', password: password('Dave-1234'), isAdmin: false }
}
const key = (id: string, token: string, more: object) => ({
  id,
  name: id,
  tokenHash: sha256(token),
  tokenMask: 'thk_...',
  kind: 'system' as const,
  accessType: 'all' as const,
  allowedGroups: [],
  allowedServers: [],
  enabled: true,
  ...more
})
const keys = [
  key(ids.system, tokens['system key'], {}),
  key(ids.scoped, tokens['scoped key'], { accessType: 'servers', allowedServers: ['thing'] }),
  key(ids.user, tokens['user key'], { kind: 'user', owner: 'alice' }),
  key(ids.own, `thk_${'d'.repeat(64)}`, { kind: 'user', owner: 'alice' }),
  key(ids.made, tokens['key of a former admin'], { createdBy: 'bob' }),
  key(ids.madeScoped, tokens['scoped key of a former admin'], { createdBy: 'bob', accessType: 'servers', allowedServers: ['thing'] }),
  key(ids.owned, tokens['key for a former admin'], { createdBy: 'admin', owner: 'bob' }),
  key(ids.given, tokens['user key for an admin, by a former one'], { kind: 'user', createdBy: 'bob', owner: 'admin' }),
  key(ids.ofTeam, tokens['team key'], { kind: 'user', createdBy: 'admin', owner: '@crew' })
]

const start = async (t: Test, env: { READONLY?: boolean }, routing: object): Promise<FastifyInstance> =>
  await appFor(t, { users: Object.values(users), bearerKeys: keys, systemConfig: { routing } },
    { ...env, LOG_LEVEL: 'silent', REGISTRY_URL: 'http://127.0.0.1:9' })

/** These entries, and no others of their kind. */
const only = (entity: Change['entity'], stored: ReadonlyMap<string, unknown>, entries: Readonly<Record<string, object>>): Change[] => [
  ...Object.entries(entries),
  ...[...stored.keys()].filter((key) => !Object.hasOwn(entries, key)).map((key) => [key, undefined] as const)
].map(([key, value]) => ({ entity, key, value }) as Change)

/** Everything as it should be before a request. What is there already, and the same, is not written. */
function reset (upstream: string, owner: string, visibility: Asked['visibility']) {
  const shown = visibilities.some((each) => each === visibility)
    ? { visibility }
    : { visibility: 'private', sharedWithUsers: visibility === 'shared' ? ['bob'] : ['@crew'] }
  const members = visibility === 'shared with a team' ? ['bob'] : []
  const { group: id } = ids
  const skill = { id, name: 'built-in', frontmatter: { name: 'built-in', description: 'd' }, files: { 'SKILL.md': '' } }
  return (now: FastifyInstance['settings']['current']): Change[] => [
    ...only('prompts', now.prompts, { [id]: { id, name: 'built in', template: 'x' } }),
    ...only('resources', now.resources, { [id]: { id, uri: 'note://built-in', content: 'x' } }),
    ...only('policies', now.policies, { [id]: { id, name: 'rule', when: 'false', then: 'deny' } }),
    ...only('skills', now.skills, { [id]: skill }),
    ...only('guards', now.guards, { [id]: { id, ...guard } }),
    ...only('quotas', now.quotas, { [id]: { id, ...quota } }),
    ...only('mcpServers', now.servers, { thing: { type: 'streamable-http', url: upstream, owner, ...shown } }),
    ...only('groups', now.groups, { [id]: { id, name: 'team', servers: ['thing'], owner } }),
    ...only('teams', now.teams, { thing: { name: 'thing', members: ['alice'] }, crew: { name: 'crew', members } }),
    ...only('users', now.users, users),
    ...only('bearerKeys', now.keys, Object.fromEntries(keys.map((each) => [each.id, each])))
  ]
}

/** What is for admins alone, of any method, or to change. What else is expected here follows from the scope that a route has. */
const ofAdmins = /^\/api\/(?:users(?!\/:username\/view)|guards|quotas|policies|audit|logs|system-config|mcpb|oauth\/clients|activities\/cleanup|settings\/problems|servers\/:name\/changes)/
const changedByAdmins = /^\/api\/(?:prompts|resources(?!\/read)|skills|teams)/

const words: Readonly<Record<string, string>> = {
  ':name': 'thing',
  ':serverName': 'thing',
  ':server': 'thing',
  ':id': ids.group,
  ':group': ids.group,
  ':user': 'alice',
  ':username': 'carol',
  ':tool': 'echo',
  ':toolName': 'echo',
  ':promptName': 'greet',
  ':entry': 'fetch',
  ':category': 'Web',
  ':tag': 'git',
  ':resourceUri': encodeURIComponent('test://one'),
  ':skillUri': encodeURIComponent('skill://one/SKILL.md'),
  '*': 'index.css'
}

function addressOf ({ url }: RouteRow, { target, query = '' }: Place): string {
  const path = url.replace(/:[A-Za-z]+|\*/g, (word) => words[word] ?? word)
  if (target === 'own view') return path.replace('carol', 'alice') + query
  if (target === 'own key') return path.replace(ids.group, ids.own) + query
  // The word before an open route is a group's here.
  return (target === 'group' ? path.replace('/api/thing/', `/api/${ids.group}/`) : path) + query
}

async function ask (app: FastifyInstance, row: RouteRow, place: Place, who: Who): Promise<number> {
  const as = withoutMode(who)
  const headers: Record<string, string> = {}
  if (as in tokens) headers.authorization = `Bearer ${tokens[as as keyof typeof tokens]}`
  if (as in users) headers['x-auth-token'] = app.auth.createLoginToken(users[as as keyof typeof users])
  if (place.body !== undefined) headers['content-type'] = 'application/json'
  if (row.scope === 'mcp') headers.accept = 'application/json, text/event-stream'
  // Some answers are streams without an end: it is enough that they begin.
  const reply = await app.inject({
    method: row.method as 'GET',
    url: addressOf(row, place),
    headers,
    payloadAsStream: true,
    ...place.body === undefined ? {} : { payload: JSON.stringify(place.body) }
  })
  reply.stream().destroy()
  return reply.statusCode
}

test('every route, asked by everybody, about everything', async (t) => {
  const upstream = await startUpstream(t, {
    tools: [tool('echo')],
    prompts: [{ name: 'greet' }],
    resources: [{ uri: 'test://one', name: 'one' }],
    capabilities: { tools: {}, prompts: {}, resources: {}, extensions: { 'io.modelcontextprotocol/skills': {} } },
    on: ({ method, params }) => method === 'resources/read'
      ? { contents: [{ uri: params.uri, text: 'x' }] }
      : method === 'skills/list'
        ? { skills: [{ uri: 'skill://one/SKILL.md', frontmatter: { name: 'one', description: 'd' }, resources: 'dynamic' }] }
        : undefined
  })
  const plain = await start(t, {}, {})
  const open = await start(t, {}, { skipAuth: true })
  for (const app of [plain, open]) await app.annexes.openAll()
  const readonly = await start(t, { READONLY: true }, {})
  // test/routes/console/matrix.test.ts asks the console's.
  const rows = plain.routeTable.filter(({ scope }) => !scope.startsWith('console'))
  assert.deepEqual(open.routeTable, plain.routeTable)

  const unplaced = rows.filter((row) => !placeOf(row) && !exceptions.has(routeOf(row)))
    .map(({ method, url }) => `${method} ${url}`)
  assert.deepEqual(unplaced, [], 'routes that this test does not know: say what they speak of')
  const isForAdmins = ({ method, url }: RouteRow): boolean =>
    ofAdmins.test(url) || (changedByAdmins.test(url) && !['GET', 'HEAD'].includes(method))
  assert.deepEqual(rows.filter((row) => isForAdmins(row) !== (row.scope === 'admin')).map(routeOf), [], 'for admins, or for all, against what is said above')
  const run = rows.filter(({ scope, effect }) => (scope === 'api' || scope === 'admin') && effect === 'run').map(routeOf)
  assert.deepEqual(run.sort(), ['POST /api/mcp/:serverName/prompts/:promptName', 'POST /api/resources/read', 'POST /api/tools/call/:server'],
    'READONLY leaves these open')

  const known = new Set(rows.map(({ method, url }) => `${method} ${url}`))
  assert.deepEqual([...Object.keys(places), ...exceptions].filter((route) => !known.has(route)), [],
    'places of routes that are not there')

  const wrong: string[] = []
  let count = 0
  for (const owner of owners) {
    for (const visibility of [...visibilities, ...shares]) {
      // `group` is private, whoever the owner is.
      if (owner === 'admin' && visibility === 'group') continue
      const asking = shares.some((each) => each === visibility) ? sharers : principals
      const first = owner === owners[0] && visibility === visibilities[0]
      const work = reset(upstream.url, owner, visibility)
      for (const app of [plain, open, readonly]) {
        await app.settings.change(work)
        await until(() => app.upstreams.get('thing')?.status === 'connected', 'the server never connected')
      }
      for (const row of rows) {
        const place = placeOf(row)
        if (!place) continue
        const { target } = place
        const bound = target === 'server' || target === 'managed server' || target === 'own values' || target === 'group' || target === 'managed group' || target === 'own route of a server'
        if ((!bound || row.method === 'HEAD') && !first) continue
        for (const who of asking) {
          // Whose a thing is makes no difference to what READONLY refuses.
          if (isReadonly(who) && !first) continue
          const world = who === 'guest' ? open : isReadonly(who) ? readonly : plain
          const asked: Asked = { row, target, who, owner, visibility }
          const wanted = expected(asked)
          const status = await ask(world, row, place, who)
          count++
          // A log-in that is refused for its body has been let in.
          const got = status === 401 || status === 403 || status === 404 ? status : 'yes'
          if (got !== wanted) {
            wrong.push(`${who}: ${row.method} ${row.url}${bound ? ` (${visibility}, ${owner}'s)` : ''}: ${status}, expected ${wanted}`)
          }
          if (row.effect === 'read' || wanted !== 'yes') continue
          await world.settings.change(work)
          if (bound) await until(() => world.upstreams.get('thing')?.status === 'connected', 'the server never came back')
        }
      }
    }
  }
  t.comment(`${count} requests to ${rows.length} routes`)
  assert.deepEqual(wrong, [])
  assert.ok(count > 2_000, `only ${count}`)
})

// ---- $smart ---------------------------------------------------------------------------------------

/** Every kind of principal that comes to MCP routes, and the servers that it sees by the rules above. */
const callers: ReadonlyArray<{ readonly principal: Principal, readonly sees: (owner: string, visibility: string) => boolean }> = [
  { principal: { key: 'k', kind: 'system-key', user: 'system', isAdmin: true }, sees: () => true },
  ...(['user-key', 'access-token', 'user'] as const).flatMap((kind) => ['alice', 'bob'].map((username) => ({
    principal: { key: `${kind} ${username}`, kind, user: username, username, isAdmin: false },
    sees: (owner: string, visibility: string) => owner === username || visibility === 'public'
  }))),
  {
    principal: { key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false },
    sees: (_owner, visibility) => visibility === 'public'
  }
]

test('what a caller does not see, $smart neither finds, names, suggests, counts nor calls', async (t) => {
  const marked = (name: string): Record<string, unknown> => tool(name, { description: `A thing of use, ${name}` })
  const upstream = await startUpstream(t, { tools: [marked('open'), marked('shut'), marked('unselected')] })
  const app = await appFor(t, { users: Object.values(users) }, { LOG_LEVEL: 'silent' })
  const all = owners.flatMap((owner) => visibilities.map((visibility) => ({ owner, visibility, name: `${owner}_${visibility}` })))
  await app.settings.change(() => [
    ...all.map(({ owner, visibility, name }): Change => {
      const value = { type: 'streamable-http' as const, url: upstream.url, owner, tools: { shut: { enabled: false } }, visibility }
      return { entity: 'mcpServers', key: name, value }
    }),
    {
      entity: 'groups',
      key: ids.group,
      value: { id: ids.group, name: 'team', owner: 'admin', servers: all.map(({ name }) => ({ name, tools: ['open'] })) }
    }
  ])
  await until(() => all.every(({ name }) => app.upstreams.get(name)?.status === 'connected'))
  const run = async (view: View, method: string, params: Record<string, unknown>): Promise<Record<string, unknown>> => {
    const result = await app.gateway.handle(new PlainHttpExchange(view, method, params, { headers: {}, address: '::1' }))
    return JSON.parse(typeof result === 'string' ? result : String(await result.bytes())) as Record<string, unknown>
  }
  const call = async (view: View, name: string, args: object): Promise<Record<string, unknown>> =>
    await run(view, 'tools/call', { name, arguments: args })
  const errorOf = async (view: View, name: string, args: object): Promise<string> =>
    await call(view, name, args).then(() => 'none', (error: unknown) => error instanceof Error ? error.message : '?')

  for (const progressiveDisclosure of [false, true]) {
    await app.settings.change(({ system }) => [{ entity: 'systemConfig', value: { ...system, smartRouting: { progressiveDisclosure } } }])
    for (const { principal, sees } of callers) {
      for (const word of [{}, { name: 'team' }, { name: 'admin_public' }]) {
        const who = `${principal.key} ${JSON.stringify(word)}`
        const view = app.access.viewOfRoute(principal, { ...word, smart: true })
        const inScope = all.filter(({ name }) => word.name !== 'admin_public' || name === word.name)
        const seen = inScope.filter(({ owner, visibility }) => sees(owner, visibility)).map(({ name }) => name)
        const tools = word.name === 'team' ? ['open'] : ['open', 'unselected']
        const visible = seen.flatMap((server) => tools.map((each) => `${server}-${each}`))
        const hidden = all.flatMap(({ name }) => ['open', 'shut', 'unselected'].map((each) => `${name}-${each}`))
          .filter((name) => !visible.includes(name))
        const found = await call(view, 'search_tools', { query: 'a thing of use', limit: 100 })
        const { tools: results } = found.structuredContent as { tools: Array<{ name: string, serverName: string }> }
        assert.deepEqual(results.map(({ name }) => name).sort(), visible.sort(), who)
        const list = JSON.stringify(await run(view, 'tools/list', {}))
        const said = `${list}${JSON.stringify(found)}`
        for (const { name } of all) if (!seen.includes(name)) assert.ok(!said.includes(name), `${who} is told of ${name}`)
        assert.ok(!/\bmore\b/.test(list), 'others are not counted')
        for (const name of [...hidden.slice(0, 6), 'admin_private-open']) {
          if (visible.includes(name)) continue
          const unknown = (await errorOf(view, 'call_tool', { toolName: 'nothing-here' })).replace('nothing-here', name)
          assert.equal(await errorOf(view, 'call_tool', { toolName: name }), unknown, `${who} ${name}`)
          if (progressiveDisclosure) assert.equal(await errorOf(view, 'describe_tool', { toolName: name }), unknown, `${who} ${name}`)
        }
        const [first = ''] = visible
        if (first !== '') assert.ok((await call(view, 'call_tool', { toolName: first })).content, who)
      }
    }
  }
  assert.throws(() => app.access.viewOfRoute({ key: 'x', kind: 'user-key', user: 'bob', username: 'bob', isAdmin: false }, { name: 'alice_private', smart: true }))

  // Not even scores tell of what is hidden.
  const bob = callers.find(({ principal }) => principal.key === 'user-key bob')?.principal
  assert.ok(bob)
  const before = JSON.stringify(await call(app.access.viewOfRoute(bob, { smart: true }), 'search_tools', { query: 'thing of use', limit: 100 }))
  await app.settings.change(() => all.filter(({ visibility }) => visibility !== 'public')
    .map(({ name }): Change => ({ entity: 'mcpServers', key: name, value: undefined })))
  assert.equal(JSON.stringify(await call(app.access.viewOfRoute(bob, { smart: true }), 'search_tools', { query: 'thing of use', limit: 100 })), before)
})
