// What a client was allowed ends with the rights that it was allowed under: consents that are remembered, and what is open on a token.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { open, Session, within, type Stream } from '../../helpers/client.ts'
import { modernRequest } from '../../helpers/modern-request.ts'
import type { Person } from '../../helpers/oauth.ts'
import { admin, alice, startServers, startWorld, type Json, type World } from '../../helpers/oauth-world.ts'

/** The streams that stay open: a legacy session's, a modern subscription, and one of HTTP with SSE before its session. */
async function listen (world: World, token: string): Promise<Array<[string, Stream]>> {
  const session = await Session.open(`${world.base}/mcp`, { key: token })
  const params = { notifications: { toolsListChanged: true } }
  const subscription = await open(`${world.base}/mcp`, modernRequest('subscriptions/listen', { key: token, params }))
  await subscription.wait(() => true)
  const sse = await open(`${world.base}/sse`, { method: 'GET', key: token, headers: { accept: 'text/event-stream' } })
  return [['the stream of a session', await session.listen()], ['a subscription', subscription], ['an SSE stream', sse]]
}

test('what is open on a token ends with its scope, its time, and the rights of its user', async (t) => {
  const world = await startWorld(t, { servers: await startServers(t) })
  const { id } = await world.client({ requireSecret: false, scopes: ['mcp', 'manage'] })
  const isEnd: Record<string, (token: string) => Promise<unknown>> = {
    'the scope is allowed to nobody any more': async () => { await world.configure({ allowedScopes: ['profile'] }) },
    'the token has expired': async (token) => {
      const found = await world.app.accessTokens.find(token)
      assert.ok(found)
      world.app.accessTokens.emit('expired', found.family)
    },
    'it was revoked': async (token) => await world.revoke({ token, client_id: id }),
    'its user is an admin now': async () => await world.as(admin, 'PUT', '/api/users/alice', { isAdmin: true }),
    'its user has another password': async () => await world.as(admin, 'PUT', '/api/users/alice', { newPassword: 'Other-1234' }),
    'the authorization server is off': async () => { await world.configure({ enabled: false }) }
  }
  let who: Person = alice
  for (const [says, end] of Object.entries(isEnd)) {
    const { access } = await world.tokens(who, { scope: 'mcp' }, id)
    const streams = await listen(world, access)
    await end(access)
    for (const [what, stream] of streams) await within(`the end of ${what}, since ${says}`, stream.done)
    if (says.includes('scope')) await world.configure({ allowedScopes: ['mcp', 'manage', 'profile', 'openid'] })
    if (says.includes('password')) who = { ...alice, password: 'Other-1234' }
  }
})

test('a consent holds for the rights and the password that its user had then', async (t) => {
  const world = await startWorld(t)
  const { id } = await world.client({ requireSecret: false, scopes: ['mcp', 'manage'] })
  let who: Person = alice
  /** Whether the user is asked. */
  const isAsked = async (scope: string): Promise<boolean> => {
    const browser = world.browser()
    await world.code(who, { scope }, id, browser)
    return browser.visits.some(({ text }) => text.includes('name="decision"'))
  }
  const change = async (body: Json): Promise<void> => {
    assert.equal((await world.as(admin, 'PUT', '/api/users/alice', body)).status, 200)
  }
  const consents = async (): Promise<unknown> => {
    const { body } = await world.as(alice, 'GET', '/api/oauth/consents')
    return (body.data as Json[]).map(({ scopes }) => scopes)
  }
  assert.deepEqual([await isAsked('mcp'), await isAsked('mcp')], [true, false])
  await change({ isAdmin: true })
  assert.deepEqual(await consents(), [], 'one of another time is none')
  assert.deepEqual([await isAsked('mcp manage'), await isAsked('mcp manage'), await isAsked('mcp')], [true, false, false])
  assert.deepEqual(await consents(), [['mcp', 'manage']])

  await change({ isAdmin: false })
  assert.deepEqual(await consents(), [])
  assert.equal(await isAsked('mcp'), true, 'what an admin allowed was allowed by an admin')
  assert.deepEqual(await consents(), [['mcp']])
  assert.equal(await isAsked('mcp manage'), true, 'and is not added to what is allowed now')
  await change({ isAdmin: true })
  assert.equal(await isAsked('mcp'), true)

  assert.equal(await isAsked('mcp'), false)
  await change({ newPassword: 'Other-1234' })
  who = { ...alice, password: 'Other-1234' }
  assert.deepEqual([await isAsked('mcp'), await isAsked('mcp')], [true, false])
})

test('what a user allowed stays ended when the user is an admin for a while', async (t) => {
  const world = await startWorld(t)
  const { id } = await world.client({ requireSecret: false, scopes: ['mcp', 'manage'] })
  const browser = world.browser()
  await world.code(alice, { scope: 'mcp' }, id, browser)
  const { access, refresh } = await world.tokens(alice, { scope: 'mcp' }, id)
  for (const isAdmin of [true, false]) {
    assert.equal((await world.as(admin, 'PUT', '/api/users/alice', { isAdmin })).status, 200)
    assert.equal(await world.isValid(access), false)
    assert.equal((await world.refresh(refresh, id)).body.error, 'invalid_grant')
    assert.deepEqual((await world.as(alice, 'GET', '/api/oauth/consents')).body.data, [])
  }
})

test('what an admin allowed stays ended when the user is an admin again, also where nothing could be revoked', async (t) => {
  const world = await startWorld(t, {
    wrap: (storage) => {
      // As a gateway that ends right after it has stored the demotion.
      storage.tokens.revoke = async () => { throw new Error('it is gone') }
      return storage
    }
  })
  const { id } = await world.client({ requireSecret: false, scopes: ['mcp', 'manage'] })
  const setAdmin = async (isAdmin: boolean): Promise<void> => {
    assert.equal((await world.as(admin, 'PUT', '/api/users/alice', { isAdmin })).status, 200)
  }
  const consents = async (): Promise<Json[]> => (await world.as(alice, 'GET', '/api/oauth/consents')).body.data as Json[]
  await setAdmin(true)
  const { access, refresh } = await world.tokens(alice, { scope: 'mcp manage' }, id)
  assert.deepEqual([await world.isValid(access), (await consents()).length], [true, 1])
  await setAdmin(false)
  await setAdmin(true)
  assert.deepEqual([await world.isValid(access), await consents()], [false, []])
  assert.equal((await world.refresh(refresh, id)).body.error, 'invalid_grant')
  const browser = world.browser()
  await world.code(alice, { scope: 'mcp' }, id, browser)
  assert.ok(browser.visits.some(({ text }) => text.includes('name="decision"')), 'the user is asked')
})
