// What an access token is good for, and what ends it.
import assert from 'node:assert/strict'
import { test } from 'tap'
import type { OAuthTokens } from '../../db/ports/tokens.ts'
import { Session } from '../helpers/client.ts'
import { allow, register, request } from '../helpers/oauth.ts'
import {
  admin, alice, assertRefusal, basic, bob, callback, challengeOf, password, scopeOf, startServers, startWorld, until,
  type Answer, type Json, type World
} from '../helpers/oauth-world.ts'

test('"manage" is for clients of an admin\'s that ask for it', async (t) => {
  const world = await startWorld(t)
  const own = await register(world.base, { scope: 'mcp manage' })
  assert.equal(own.scope, 'mcp')
  const changed = await world.ask('PUT', `/oauth/register/${own.client_id ?? ''}`, {
    client_id: own.client_id, redirect_uris: [callback], token_endpoint_auth_method: 'none', scope: 'mcp manage profile'
  }, { authorization: `Bearer ${own.registration_access_token ?? ''}` })
  assert.deepEqual([changed.status, changed.body.scope], [200, 'mcp profile'])
  const code = await world.code(admin, { scope: 'mcp manage' }, own.client_id)
  const answer = await world.token(code)
  assert.deepEqual(scopeOf(answer), ['mcp'])
  const again = await world.refresh(String(answer.body.refresh_token), code.client_id)
  assert.deepEqual(scopeOf(again), ['mcp'])
  const third = await world.refresh(String(again.body.refresh_token), code.client_id, { scope: 'mcp manage' })
  assert.ok(third.status === 400 || !scopeOf(third).includes('manage'))

  const client = await world.client({ scopes: ['mcp', 'manage'], requireSecret: false })
  assert.deepEqual(scopeOf(await world.token(await world.code(admin, { scope: 'mcp manage' }, client.id))), ['manage', 'mcp'])
  assert.deepEqual(scopeOf(await world.token(await world.code(bob, {}, client.id))), ['mcp'], 'not asked for')
  const narrow = await world.client({ scopes: ['mcp'], requireSecret: false })
  assert.deepEqual(scopeOf(await world.token(await world.code(admin, { scope: 'mcp manage' }, narrow.id))), ['mcp'])
})

test('what a token may do', async (t) => {
  const world = await startWorld(t, { servers: await startServers(t) })
  const { base } = world
  const client = await world.client({ scopes: ['mcp', 'manage', 'profile', 'openid'], requireSecret: false })
  const scoped = async (scope: string, who = alice, more: Record<string, string> = {}): Promise<string> =>
    (await world.tokens(who, { scope, ...more }, client.id)).access
  const profile = await scoped('profile')
  const mcp = await scoped('mcp')
  const manage = await scoped('manage')
  const make = { name: 'made', url: 'https://203.0.113.1/mcp', enabled: false }
  await until(async () => JSON.stringify((await world.by(mcp, 'GET', '/api/servers')).body).includes('connected'), 'no server')
  const run = ['POST', '/api/tools/call/own', { toolName: 'mine', arguments: {} }] as const

  await t.test('on the management API', async () => {
    for (const token of [profile, mcp, manage]) assert.equal((await world.by(token, 'GET', '/api/servers')).status, 200)
    for (const token of [profile, manage]) assertScope(await world.by(token, ...run), 'mcp')
    assert.equal((await world.by(mcp, ...run)).status, 200)
    for (const token of [profile, mcp]) {
      assertScope(await world.by(token, 'POST', '/api/servers', { name: 'made', config: make }), 'manage')
      assertScope(await world.by(token, 'DELETE', '/api/servers/own'), 'manage')
      assertScope(await world.by(token, 'DELETE', `/api/oauth/consents/${client.id}`), 'manage')
    }
    const made = await world.by(manage, 'POST', '/api/servers', { name: 'made', config: { url: make.url, enabled: false } })
    assert.equal(made.status, 200, JSON.stringify(made.body))
    // With its user's rights, and no others.
    assert.equal((await world.by(manage, 'PUT', '/api/system-config', { nameSeparator: '_' })).status, 403)
    assert.equal((await world.by(manage, 'GET', '/api/users')).status, 403)
  })

  await t.test('secrets are exported for those who may change things', async () => {
    const reading = await scoped('mcp profile', admin)
    assertScope(await world.by(reading, 'GET', '/api/mcp-settings/export?includeSecrets=true'), 'manage')
    assert.equal((await world.by(reading, 'GET', '/api/mcp-settings/export')).status, 200)
    assert.equal((await world.by(await scoped('manage', admin), 'GET', '/api/mcp-settings/export?includeSecrets=true')).status, 200)
  })

  await t.test('on the open routes, a token without the scope runs nothing of its user\'s', async () => {
    assert.equal((await world.by(mcp, 'GET', '/api/tools/own/mine')).status, 200)
    const { status } = await world.by(profile, 'GET', '/api/tools/own/mine')
    assert.ok(status === 403 || status === 404, String(status))
    assert.equal((await world.by(profile, 'GET', '/api/tools/open/echo?message=x')).status, (await world.ask('GET', '/api/tools/open/echo?message=x')).status)
  })

  await t.test('on MCP: the scope, and the resource that it is for', async () => {
    assert.equal((await world.mcp(mcp)).status, 200)
    for (const token of [profile, manage]) {
      const answer = await world.mcp(token)
      assert.equal(answer.status, 403)
      assert.deepEqual(challengeOf(answer), {
        error: 'insufficient_scope', scope: 'mcp', resource_metadata: `${base}/.well-known/oauth-protected-resource/mcp`
      })
    }
    // On the management API and for tools over plain HTTP: for the gateway as a whole.
    const cases: Array<[resource: string, whole: boolean, open: string[], closed: string[]]> = [
      ['', true, ['/mcp', '/mcp/open', '/alice/mcp', '/api/mcp'], ['/bob/mcp']],
      ['/mcp', true, ['/mcp', '/mcp/open', '/mcp/', '/api/mcp', '/api/mcp/open'], ['/alice/mcp', '/mcpx/mcp']],
      ['/mcp/open', false, ['/mcp/open', '/api/mcp/open'], ['/mcp', '/mcp/own', '/mcp/%6fpen2', '/api/mcp/own']],
      ['/api/mcp/open', false, ['/mcp/open', '/api/mcp/open'], ['/mcp', '/mcp/own']],
      ['/alice/mcp', false, ['/alice/mcp', '/alice/mcp/own'], ['/mcp', '/bob/mcp']],
      ['/api', true, [], ['/mcp', '/mcp/open']],
      ['/mcp/own', false, ['/mcp/own'], []],
      ['/mcp/%24smart', false, ['/mcp/$smart', '/mcp/%24smart'], ['/mcp']],
      ['/sse', false, [], ['/mcp']]
    ]
    for (const [resource, isWhole, open, closed] of cases) {
      const token = await scoped('mcp', alice, { resource: `${base}${resource}` })
      for (const path of open) assert.equal((await world.mcp(token, path)).status, 200, `${resource} on ${path}`)
      for (const path of closed) assert.ok([401, 403].includes((await world.mcp(token, path)).status), `${resource} on ${path}`)
      const listed = await world.by(token, 'GET', '/api/servers')
      assert.equal(listed.status, isWhole ? 200 : 401, resource)
      if (!isWhole) assert.equal(challengeOf(listed).error, 'invalid_token')
      const { status } = await world.by(token, 'GET', '/api/tools/own/mine')
      assert.ok(isWhole ? status === 200 : status === 403 || status === 404, `${resource}: ${status}`)
    }
  })

  await t.test('in the header only, and nothing else is one', async () => {
    const stream = { accept: 'text/event-stream' }
    const login = world.login(alice)
    for (const [path, headers] of [
      ...['access_token', 'token'].flatMap((name) => ['/api/servers', '/oauth/userinfo', '/mcp'].map((path) => [`${path}?${name}=${mcp}`, stream])),
      ['/api/servers', { 'x-auth-token': mcp }], ['/oauth/userinfo', { 'x-auth-token': mcp }],
      ['/api/servers', { cookie: `tool-hub-session=${mcp}; token=${mcp}; access_token=${mcp}` }],
      ...['/mcp', '/api/servers', '/oauth/userinfo'].map((path) => [path, { ...stream, authorization: `Bearer ${login}` }]),
      ['/oauth/userinfo', { authorization: `Bearer thk_${'a'.repeat(64)}` }]
    ] as Array<[string, Record<string, string>]>) {
      assert.equal((await world.ask('GET', path, undefined, headers)).status, 401, `${path} ${Object.keys(headers).join()}`)
    }
    // Two ways at once (RFC 6750, section 2).
    const both = await world.by(mcp, 'GET', `/oauth/userinfo?access_token=${mcp}`)
    assert.deepEqual([both.status, both.body.error], [400, 'invalid_request'])
  })

  await t.test('a message of an SSE client is refused with the resource of its stream', async () => {
    for (const [path, at] of [['%2Fsse%2Fopen', '/sse/open'], ['%2Fsse%22%0d', ''], ['//evil.example', '']]) {
      const answer = await world.ask('POST', `/messages?sessionId=x&path=${path}`, {})
      assert.equal(challengeOf(answer).resource_metadata, `${base}/.well-known/oauth-protected-resource${at}`)
    }
  })

  await t.test('beside a renamed header of keys', async () => {
    await world.configure({}, { routing: { bearerAuthHeaderName: 'X-Hub-Key' } })
    assert.equal((await world.mcp(mcp)).status, 200)
    assert.equal((await world.ask('POST', '/mcp', {}, { 'x-hub-key': mcp })).status, 401)
    await world.configure({}, { routing: { bearerAuthHeaderName: null } })
  })

  await t.test('a bad token is told so', async () => {
    for (const answer of [await world.mcp('x'.repeat(43)), await world.by('x'.repeat(43), 'GET', '/oauth/userinfo')]) {
      assert.deepEqual([answer.status, challengeOf(answer).error], [401, 'invalid_token'])
    }
    // No credentials, no error (RFC 6750, section 3.1).
    const { error, scope, resource_metadata: address } = challengeOf(await world.ask('POST', '/mcp', {}))
    assert.deepEqual([error, scope, address], [undefined, 'mcp', `${base}/.well-known/oauth-protected-resource/mcp`])
    const none = await world.ask('GET', '/oauth/userinfo')
    assert.deepEqual([none.status, none.headers.get('www-authenticate')], [401, 'Bearer'])
  })
})

function assertScope (answer: Answer, scope: string): void {
  assert.deepEqual([answer.status, answer.body.code], [403, 'TH_INSUFFICIENT_SCOPE'], JSON.stringify(answer.body))
  assert.deepEqual(challengeOf(answer), { error: 'insufficient_scope', scope })
}

test('what a client leaves out, or names in another form', async (t) => {
  const world = await startWorld(t)
  const { base } = world
  const { client_id: clientId = '' } = await register(base)

  await t.test('a grant for the whole gateway may be used for one of its resources, and stays what it was', async () => {
    const code = await world.code(alice, {}, clientId)
    const first = await world.token({ ...code, resource: `${base}/mcp/files` })
    const second = await world.refresh(String(first.body.refresh_token), clientId, { resource: `${base}/mcp` })
    const third = await world.refresh(String(second.body.refresh_token), clientId)
    const statuses = await Promise.all([first, second, third].map(async ({ body }) => (await world.mcp(String(body.access_token))).status))
    assert.deepEqual(statuses, [401, 200, 200])
    assert.equal((await world.by(String(third.body.access_token), 'GET', '/api/servers')).status, 200)
  })

  await t.test('the same resource, with a slash at the end or without', async () => {
    for (const [held, asked] of [[`${base}/mcp`, `${base}/mcp/`], [`${base}/`, base], [`${base}/mcp/`, `${base}/mcp`]] as const) {
      const { refresh } = await world.tokens(alice, { resource: held }, clientId)
      const { status, body } = await world.refresh(refresh, clientId, { resource: asked })
      assert.deepEqual([status, await world.isValid(String(body.access_token))], [200, true], `${held}, ${asked}`)
    }
  })

  await t.test('scopes that do not exist, when it refreshes as when it asked', async () => {
    const scope = 'mcp email offline_access'
    const { refresh } = await world.tokens(alice, { scope }, clientId)
    const answer = await world.refresh(refresh, clientId, { scope })
    assert.deepEqual([answer.status, scopeOf(answer)], [200, ['mcp']])
    assertRefusal(await world.refresh(String(answer.body.refresh_token), clientId, { scope: 'email' }), [400, 'invalid_scope'], 'none')
  })

  await t.test('prompt=select_account asks who it is, even in a browser that is logged in', async () => {
    const browser = world.browser()
    await world.code(alice, {}, clientId, browser)
    const { params } = request(clientId, { prompt: 'select_account consent' })
    const { location = '' } = await browser.get(world.authorizeUrl(params))
    assert.match((await browser.get(location)).text, /name="password"/)
    const { searchParams } = await allow(browser, world.authorizeUrl(params), bob)
    assert.ok(searchParams.has('code'), searchParams.toString())
  })
})

test('each client authenticates as it was registered, and in no other way', async (t) => {
  const world = await startWorld(t)
  const browser = world.browser()
  for (const method of [undefined, 'client_secret_basic', 'client_secret_post', 'none']) {
    const client = await register(world.base, { token_endpoint_auth_method: method })
    const { client_id: id = '', client_secret: secret = 'guess', token_endpoint_auth_method: registered = '' } = client
    assert.equal(registered, method ?? 'client_secret_basic')
    const ways: Record<string, [Record<string, string>, Record<string, string>]> = {
      client_secret_basic: [{}, basic(id, secret)],
      client_secret_post: [{ client_id: id, client_secret: secret }, {}],
      none: [{ client_id: id }, {}]
    }
    for (const [way, [fields, headers]] of Object.entries(ways)) {
      const { client_id: _, ...code } = await world.code(alice, {}, id, browser)
      const { status, body } = await world.token({ ...code, ...fields }, headers)
      // A secret is taken in either place.
      const isRight: boolean = (way === 'none') === (registered === 'none')
      assert.deepEqual([status, body.error], isRight ? [200, undefined] : [401, 'invalid_client'], `${registered} by ${way}`)
    }
  }
})

test('/oauth/userinfo, and a user of the same name', async (t) => {
  const world = await startWorld(t)
  const { access } = await world.tokens(alice)
  const shown = await world.by(access, 'GET', '/oauth/userinfo')
  assert.deepEqual({ ...shown.body, sub: '' }, { sub: '', username: 'alice', preferred_username: 'alice', isAdmin: false })
  assert.match(shown.headers.get('content-type') ?? '', /^application\/json/)
  assert.equal(shown.headers.get('cache-control'), 'no-store')
  const posted = await fetch(`${world.base}/oauth/userinfo`, { method: 'POST', headers: { authorization: `Bearer ${access}` } })
  assert.deepEqual(await posted.json(), shown.body)
  const { access: second } = await world.tokens(alice)
  assert.equal((await world.by(second, 'GET', '/oauth/userinfo')).body.sub, shown.body.sub)
  const { access: others } = await world.tokens(bob)
  assert.notEqual((await world.by(others, 'GET', '/oauth/userinfo')).body.sub, shown.body.sub)

  assert.equal((await world.as(admin, 'DELETE', '/api/users/alice')).status, 200)
  assert.equal((await world.as(admin, 'POST', '/api/users', { username: 'alice', password })).status, 201)
  assert.equal((await world.by(access, 'GET', '/oauth/userinfo')).status, 401)
  const { access: later } = await world.tokens(alice)
  const { body } = await world.by(later, 'GET', '/oauth/userinfo')
  assert.equal(body.username, 'alice')
  assert.notEqual(body.sub, shown.body.sub)
})

const switchAdmin = async (world: World): Promise<Answer> =>
  await world.as(admin, 'PUT', '/api/users/alice', { isAdmin: world.app.users.get('alice')?.isAdmin !== true })

/** The ways to end what a user allowed a client; `login`: whether the browser stays logged in. */
const ends: Readonly<Record<string, { end: (world: World, clientId: string) => Promise<Answer>, login: boolean }>> = {
  'the consent is withdrawn': { end: async (world, id) => await world.as(alice, 'DELETE', `/api/oauth/consents/${id}`), login: true },
  'the client is removed': { end: async (world, id) => await world.as(admin, 'DELETE', `/api/oauth/clients/${id}`), login: true },
  'the password is changed by its user': {
    end: async (world) => await world.as(alice, 'POST', '/api/auth/change-password', { currentPassword: password, newPassword: password }), login: false
  },
  'the password is changed by an admin': {
    end: async (world) => await world.as(admin, 'PUT', '/api/users/alice', { newPassword: password }), login: false
  },
  'its user becomes an admin': { end: async (world) => await switchAdmin(world), login: false },
  'its user is an admin no more': { end: async (world) => await switchAdmin(world), login: false },
  'the user is removed, and made again': {
    end: async (world) => {
      await world.as(admin, 'DELETE', '/api/users/alice')
      return await world.as(admin, 'POST', '/api/users', { username: 'alice', password })
    },
    login: false
  }
}

test('what ends a token ends its stream, its refresh token and the logins behind it', async (t) => {
  const world = await startWorld(t)
  const cases: Array<[string, (clientId: string, made: { access: string, refresh: string }) => Promise<Answer>, boolean]> = [
    ['revocation of the access token', async (id, { access }) => await world.revoke({ token: access, client_id: id }), true],
    ['revocation of the refresh token', async (id, { refresh }) => await world.revoke({ token: refresh, client_id: id }), true],
    ...Object.entries(ends).map(([name, { end, login }]): typeof cases[number] => [name, async (id) => await end(world, id), login])
  ]
  for (const [name, end, login] of cases) {
    const { client_id: clientId = '' } = await register(world.base)
    const browser = world.browser()
    const code = await world.code(alice, {}, clientId, browser)
    const pending = await world.code(alice, {}, clientId, browser)
    const { body } = await world.token(code)
    const made = { access: String(body.access_token), refresh: String(body.refresh_token) }
    const other = await world.tokens(bob)
    const stream = await (await Session.open(`${world.base}/mcp`, { key: made.access })).listen()
    const { status, body: told } = await end(clientId, made)
    assert.ok(status < 300, `${name}: ${JSON.stringify(told)}`)
    assert.equal(await world.isValid(made.access), false, name)
    assert.equal((await world.by(made.access, 'GET', '/api/servers')).status, 401, name)
    const again = await world.refresh(made.refresh, clientId)
    assert.ok(['invalid_grant', 'invalid_client'].includes(String(again.body.error)), `${name}: ${JSON.stringify(again.body)}`)
    await until(() => stream.ended, `${name}: the stream lives on`)
    assert.ok(await world.isValid(other.access), `${name}: somebody else's token ended`)
    if (!name.startsWith('revocation')) {
      assert.equal((await world.token(pending)).body.access_token, undefined, `${name}: the code that was under way`)
    }
    if (name.includes('client')) continue
    const visit = await browser.get((await browser.get(world.authorizeUrl(request(clientId).params))).location ?? '')
    assert.equal(visit.text.includes('name="password"'), !login, `${name}: the login of the browser`)
  }
})

type Step = () => Promise<unknown>

/** A storage of tokens that is overtaken: something happens right before, or right after, tokens are written. */
class Overtaken {
  before: Step | undefined
  after: Step | undefined
  /** How often something happened. */
  times = 0

  wrap (tokens: OAuthTokens): OAuthTokens {
    const run = async <Result>(write: () => Promise<Result>): Promise<Result> => {
      const { before, after } = this
      this.before = this.after = undefined
      if (before ?? after) this.times++
      await before?.()
      const result = await write()
      await after?.()
      return result
    }
    return {
      put: async (authorization, issued) => { await run(async () => { await tokens.put(authorization, issued) }) },
      // Without successors, it tells of a token that is known to be used.
      rotate: async (hash, issued) => {
        const swap = async (): ReturnType<OAuthTokens['rotate']> => await tokens.rotate(hash, issued)
        return issued.length === 0 ? await swap() : await run(swap)
      },
      find: async (hash) => await tokens.find(hash),
      hasTokens: async (family) => await tokens.hasTokens(family),
      listRevokedWithin: async (time) => await tokens.listRevokedWithin(time),
      revoke: async (target) => { await tokens.revoke(target) }
    } as Partial<OAuthTokens> as OAuthTokens
  }
}

test('tokens that are stored while their user or client goes are of no use', async (t) => {
  const tokens = new Overtaken()
  const world = await startWorld(t, { wrap: (storage) => ({ ...storage, tokens: tokens.wrap(storage.tokens) }) })
  const browser = world.browser()
  for (const [what, { end }] of Object.entries(ends)) {
    for (const when of ['before', 'after'] as const) {
      for (const grant of ['code', 'refresh token'] as const) {
        // Once a refresh token was swapped, its successors are tokens like all others.
        if (when === 'after' && grant === 'refresh token') continue
        const name = `${what} right ${when} the tokens for a ${grant} are stored`
        const { client_id: clientId = '' } = await register(world.base)
        const code = await world.code(alice, {}, clientId, browser)
        const first = grant === 'code' ? undefined : await world.token(code)
        tokens.times = 0
        tokens[when] = async () => {
          const { status, body } = await end(world, clientId)
          assert.ok(status < 300, `${name}: ${JSON.stringify(body)}`)
        }
        const { status, body } = first === undefined
          ? await world.token(code)
          : await world.refresh(String(first.body.refresh_token), clientId)
        assert.equal(tokens.times, 1, name)
        assert.ok(status === 200 || status === 400, `${name}: ${status} ${JSON.stringify(body)}`)
        for (const issued of [first?.body, body]) {
          if (issued?.access_token === undefined) continue
          const access = String(issued.access_token)
          assert.equal(await world.isValid(access), false, name)
          for (const path of ['/api/servers', '/oauth/userinfo']) assert.equal((await world.by(access, 'GET', path)).status, 401, name)
          const again = await world.refresh(String(issued.refresh_token), clientId)
          assert.ok(again.status >= 400 && again.body.access_token === undefined, `${name}: ${JSON.stringify(again.body)}`)
        }
      }
    }
  }
})

test('a new secret ends the tokens of its client, and the old one', async (t) => {
  const world = await startWorld(t)
  const { id, secret } = await world.client()
  const { client_id: _, ...code } = await world.code(alice, {}, id)
  const { body } = await world.token(code, basic(id, secret))
  assert.ok(await world.isValid(String(body.access_token)))
  const { status, body: told } = await world.as(admin, 'POST', `/api/oauth/clients/${id}/regenerate-secret`)
  assert.equal(status, 200)
  const fresh = String((told.data as Json).clientSecret)
  assert.notEqual(fresh, secret)
  assert.equal(await world.isValid(String(body.access_token)), false)
  const refresh = { grant_type: 'refresh_token', refresh_token: String(body.refresh_token) }
  assert.equal((await world.token(refresh, basic(id, secret))).body.error, 'invalid_client')
  assert.equal((await world.token(refresh, basic(id, fresh))).body.error, 'invalid_grant')
  const { client_id: __, ...next } = await world.code(alice, {}, id)
  assert.equal((await world.token(next, basic(id, fresh))).status, 200)
})
