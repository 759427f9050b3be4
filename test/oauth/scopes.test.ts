// What the scopes of an access token keep it from, on every way to the management API, and when a scope is taken away.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { problemsOf } from '../../plugins/oauth/settings.ts'
import { register, request } from '../helpers/oauth.ts'
import { admin, callback, startWorld } from '../helpers/oauth-world.ts'

const account = (username: string): object => ({ username, password: 'Passw0rd!9', isAdmin: true })

test('a token of an admin changes nothing without the scope for it, on the open routes of the management API either', async (t) => {
  const world = await startWorld(t)
  for (const scope of ['profile', 'mcp profile']) {
    const { access } = await world.tokens(admin, { scope })
    for (const [method, path, body] of [
      ['POST', '/api/auth/register', account('mallory')],
      ['POST', '/api/users', account('mallory')],
      ['POST', '/api/auth/change-password', { currentPassword: 'Same-1234', newPassword: 'Passw0rd!9' }],
      ['POST', '/api/auth/keys', { name: 'mine' }]
    ] as const) {
      const { status, headers } = await world.by(access, method, path, body)
      assert.equal(status, 403, `${scope}: ${method} ${path}`)
      assert.match(headers.get('www-authenticate') ?? '', /error="insufficient_scope".*scope="manage"/)
    }
    assert.equal(world.app.users.get('mallory'), undefined)
  }
})

test('manage ends at once where it is taken away: from the client, and from the settings', async (t) => {
  const world = await startWorld(t)
  const { id } = await world.client({ requireSecret: false, scopes: ['mcp', 'manage'] })
  const ask = async (access: string): Promise<number> =>
    (await world.by(access, 'POST', '/api/groups', { name: `g${Math.random()}`, servers: [] })).status
  const ofClient = await world.tokens(admin, { scope: 'mcp manage' }, id)
  assert.equal(await ask(ofClient.access), 201)
  assert.equal((await world.as(admin, 'PUT', `/api/oauth/clients/${id}`, { scopes: ['mcp'] })).status, 200)
  assert.equal(await ask(ofClient.access), 401, 'its tokens have ended')
  assert.equal((await world.refresh(ofClient.refresh, id)).status, 400)

  const other = await world.client({ requireSecret: false, scopes: ['mcp', 'manage'] })
  const { access } = await world.tokens(admin, { scope: 'mcp manage' }, other.id)
  assert.equal(await ask(access), 201)
  await world.configure({ allowedScopes: ['mcp', 'profile'] })
  assert.equal(await ask(access), 403)
  assert.equal(await world.isValid(access), true, 'what is left counts on')
})

test('where clients register with an admin\'s credential, documents of strangers are no way around it', async (t) => {
  const world = await startWorld(t)
  await world.configure({ dynamicRegistration: { requiresAuthentication: true } })
  await assert.rejects(register(world.base))
  const visit = await world.authorize(request('https://client.example/metadata.json', { redirect_uri: callback }).params)
  assert.equal(visit.status, 400, visit.location)
  const { body } = await world.ask('GET', '/.well-known/oauth-authorization-server')
  assert.notEqual(body.client_id_metadata_document_supported, true)
})

test('settings that another program wrote wrong are told of, since their defaults count', async () => {
  const told = problemsOf({
    install: { baseUrl: 'http://hub.example.com' },
    oauthServer: { enabled: true, requireClientSecret: 'true', accessTokenLifetime: 0, dynamicRegistration: { enabled: 'no' } }
  })
  assert.deepEqual(
    told.map((sentence) => sentence.split(' is ')[0]),
    ['oauthServer.accessTokenLifetime', 'oauthServer.requireClientSecret', 'oauthServer.dynamicRegistration.enabled', 'install.baseUrl']
  )
  assert.deepEqual(problemsOf({ oauthServer: { enabled: true, odd: 1 } }), [])
  assert.deepEqual(problemsOf({}), [])
})
