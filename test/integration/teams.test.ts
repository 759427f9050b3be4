// Teams on a database: memberships by logins at a real OpenID provider, on two replicas; and the last use of a server.
import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Configuration } from 'oidc-provider'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { loggedIn, manage, managed, startReplica } from '../fakes/replica.ts'
import { at, open, Session, settings, within, type Json } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { localUsers, logIn, socialHub, type Claims, type IdentityProvider } from '../helpers/identity-provider.ts'
import { until, type Hub } from '../helpers/hub.ts'
import { modernRequest } from '../helpers/modern-request.ts'
import type { Browser } from '../helpers/oauth.ts'

const password = 'Same-1234'
/** The provider states groups in the ID token, or at its userinfo endpoint only. */
const stated = (conformIdTokenClaims: boolean): Configuration => ({
  conformIdTokenClaims,
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] }
})
const env = { SOCIAL_AUTH_OIDC_GROUPS_CLAIM: 'groups' }

/** A login of ada with these groups. */
async function enter (hub: Hub, idp: IdentityProvider, groups: unknown, subject = 'ada-1'): Promise<Browser> {
  const claims: Claims = { email: `${subject}@example.com`, email_verified: true, ...(groups === undefined ? {} : { groups }) }
  idp.people.set(subject, claims)
  idp.current = subject
  const { browser, end } = await logIn(hub, idp)
  assert.equal(end.status, 302, end.text)
  return browser
}

for (const inToken of [true, false]) {
  test(`memberships by the groups of a login, which are in ${inToken ? 'the ID token' : 'userinfo'}`, async (t) => {
    const { hub, idp, query } = await socialHub(t, { env, idp: stated(!inToken) })
    const admin = await loggedIn(hub, 'admin', password)
    const team = async (name: string): Promise<unknown> => (await managed(hub, 'GET', `/teams/${name}`, undefined, admin)).members
    const all = async (): Promise<unknown> => [await team('web'), await team('ops')]
    const ada = 'ada-1@example.com'
    await managed(hub, 'POST', '/teams', { name: 'web', claims: ['eng/web', 'eng'] }, admin)
    await managed(hub, 'POST', '/teams', { name: 'ops', members: [ada], claims: ['ops'] }, admin)
    const browser = await enter(hub, idp, ['eng', 'ops', 'unknown-to-the-hub', 7, ''])
    assert.deepEqual(await all(), [[ada], [ada]])
    assert.equal((JSON.parse((await browser.get('/api/teams')).text) as { data: unknown[] }).data.length, 2)
    assert.deepEqual((await managed(hub, 'GET', '/teams', undefined, admin) as unknown as Json[]).map(({ name }) => name), ['web', 'ops'], 'no team is made')
    const rows = JSON.stringify(await query?.('select * from users'))
    assert.ok(!rows.includes('unknown-to-the-hub'), 'groups that no team names are not kept')
    // Who reads the members and sends them back makes none of them permanent.
    await managed(hub, 'PUT', '/teams/web', { members: await team('web') }, admin)
    await enter(hub, idp, ['eng/web'])
    assert.deepEqual(await all(), [[ada], [ada]], 'made by hand, she stays in ops')
    for (const [none, what] of [[[], 'no groups'], [undefined, 'no claim'], [['ENG'], 'another case'], [{ eng: true }, 'no list']] as const) {
      await enter(hub, idp, ['eng'])
      assert.deepEqual(await all(), [[ada], [ada]], what)
      await enter(hub, idp, none)
      assert.deepEqual(await all(), [[], [ada]], what)
    }
    await enter(hub, idp, 'eng')
    assert.deepEqual(await all(), [[ada], [ada]], 'a single group as a text')
    // The login of somebody else, and one with a password, say nothing about her.
    await enter(hub, idp, [], 'bea')
    await loggedIn(hub, 'bob', password)
    assert.deepEqual(await all(), [[ada], [ada]])
    await managed(hub, 'PUT', '/teams/web', { claims: ['other'] }, admin)
    assert.deepEqual(await all(), [[], [ada]], 'an admin takes the claim back')
    await managed(hub, 'PUT', '/teams/web', { claims: ['eng'] }, admin)
    assert.deepEqual(await all(), [[ada], [ada]])
    assert.equal((await manage(hub, 'DELETE', `/users/${ada}`, undefined, admin)).status, 200)
    assert.deepEqual(await all(), [[], []])
    await enter(hub, idp, [])
    assert.deepEqual(await all(), [[], []], 'a later account of the name inherits nothing')
  })
}

test('without the variable, a login changes no membership', async (t) => {
  const { hub, idp } = await socialHub(t, { idp: stated(false) })
  const admin = await loggedIn(hub, 'admin', password)
  await managed(hub, 'POST', '/teams', { name: 'web', claims: ['eng'] }, admin)
  await enter(hub, idp, ['eng'])
  assert.deepEqual((await managed(hub, 'GET', '/teams/web', undefined, admin)).members, [])
})

test('a membership that ends at one replica ends at the other within 5 s, with what is open there', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('wait')], on: ({ method, params }) => method === 'tools/call' && params.name === 'wait' ? 'never' : undefined })
  const { url } = await database(t)
  const content = settings({ s: { url: upstream.url, owner: 'admin', sharedWithUsers: ['@web'] } }, { users: localUsers })
  const here = await startReplica(t, url, { settings: content })
  const there = await startReplica(t, url, { settings: content })
  const [admin, bob] = [await loggedIn(here, 'admin', password), await loggedIn(here, 'bob', password)]
  await managed(here, 'POST', '/teams', { name: 'web', members: ['bob'] }, admin)
  const { token } = await managed(here, 'POST', '/auth/keys', { name: 'k' }, bob)
  const ofTeam = await managed(here, 'POST', '/auth/keys', { name: 'k', kind: 'user', owner: '@web' }, admin)
  const key = String(token)
  await until(async () => (await manage(there, 'GET', '/servers/s', undefined, bob)).status === 200)
  const session = await Session.open(`${there.url}/mcp`, { key })
  await until(async () => (await session.tools()).length === 2)
  const single = await open(`${there.url}/mcp/s`, modernRequest('subscriptions/listen', { key, params: { notifications: { toolsListChanged: true } } }))
  await single.wait(() => true)
  const call = session.request('tools/call', { name: 's-wait', arguments: {} })
  call.catch(() => {})
  await until(() => upstream.count('tools/call') > 0)
  await managed(here, 'PUT', '/teams/web', { members: [] }, admin)
  assert.match((await within('the answer to the call', call)).error?.message ?? '', /access was withdrawn/)
  await within('the end of the stream', single.done)
  assert.deepEqual(await session.tools(), [])
  assert.equal((await manage(there, 'GET', '/servers/s', undefined, bob)).status, 404)
  // The key of the team ends with the team.
  const discover = async (): Promise<number> => (await open(`${there.url}/mcp`, modernRequest('server/discover', { key: String(ofTeam.token) }))).status
  assert.equal(await discover(), 200)
  assert.equal((await manage(here, 'DELETE', '/teams/web', undefined, admin)).status, 200)
  await until(async () => await discover() === 401)
})

test('the users of a server, with the last recorded call of each', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const { url } = await database(t)
  const shared = { url: upstream.url, owner: 'admin', sharedWithUsers: ['bob'] }
  const hub = await startReplica(t, url, { settings: settings({ s: shared, other: shared }, { users: localUsers }) })
  const [admin, bob] = [await loggedIn(hub, 'admin', password), await loggedIn(hub, 'bob', password)]
  await until(async () => (await manage(hub, 'POST', '/tools/call/s', { toolName: 'echo', arguments: {} }, bob)).status === 200)
  const users = async (server: string): Promise<Json[]> => await managed(hub, 'GET', `/servers/${server}/users`, undefined, admin) as unknown as Json[]
  await until(async () => (await users('s'))[1]?.lastUsedAt !== undefined, 'the call is not recorded')
  const [owner, user] = await users('s')
  assert.deepEqual([owner, user?.username, user?.via], [{ username: 'admin', via: 'owner' }, 'bob', 'shared'])
  const { body } = await manage(hub, 'GET', '/activities?username=bob', undefined, admin)
  assert.equal(user?.lastUsedAt, at(body, 'data', 0, 'timestamp'))
  assert.deepEqual((await users('other')).map(({ lastUsedAt }) => lastUsedAt), [undefined, undefined])
})
