// `/api/oauth/clients`: how admins make, see, change and remove the clients of the authorization server.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { register } from '../helpers/oauth.ts'
import { admin, alice, basic, callback, scopeOf, startWorld, type Answer, type Json } from '../helpers/oauth-world.ts'

const path = '/api/oauth/clients'
const members = { name: 'Dashboard', redirectUris: [callback] }

test('/api/oauth/clients is for admins, and shows a secret once', async (t) => {
  const world = await startWorld(t)
  const ask = async (method: string, at = '', body?: unknown): Promise<Answer> => await world.as(admin, method, `${path}${at}`, body)
  const made = await ask('POST', '', members)
  const { clientId, clientSecret: secret, createdAt, ...rest } = made.body.data as Json
  const own = `/${String(clientId)}`
  const dataOf = ({ body }: Answer): Json => body.data as Json

  await t.test('a client is made with a secret, which no answer shows again', async () => {
    assert.equal(made.status, 201)
    assert.deepEqual(rest, {
      name: 'Dashboard',
      redirectUris: [callback],
      grants: ['authorization_code', 'refresh_token'],
      scopes: ['mcp', 'manage', 'profile', 'openid'],
      requireSecret: true,
      origin: 'admin'
    })
    assert.ok(typeof secret === 'string' && secret.length >= 43)
    assert.equal(new Date(String(createdAt)).toISOString(), createdAt)
    for (const at of ['', own]) {
      const { status, body } = await ask('GET', at)
      assert.equal(status, 200)
      for (const hidden of [secret, '"clientSecret"']) assert.ok(!JSON.stringify(body).includes(hidden))
    }
    await ask('POST', '', { ...members, name: 'Second' })
    const { body: { data, pagination } } = await ask('GET', '?page=2&limit=1')
    assert.deepEqual([(data as Json[]).map(({ name }) => name), pagination], [['Second'], { page: 2, limit: 1, total: 2, totalPages: 2 }])
  })

  await t.test('others are refused, and so are an admin\'s clients without the scope', async () => {
    const { access } = await world.tokens(admin)
    for (const [method, at, sent] of [
      ['GET', ''], ['POST', '', members], ['GET', own], ['PUT', own, { name: 'x' }], ['DELETE', own], ['POST', `${own}/regenerate-secret`]
    ] as Array<[string, string, unknown]>) {
      const route = `${path}${at}`
      assert.equal((await world.as(alice, method, route, sent)).status, 403, `${method} ${at}`)
      assert.equal((await world.ask(method, route, sent)).status, 401, `${method} ${at}`)
      if (method !== 'GET') assert.equal((await world.by(access, method, route, sent)).body.code, 'TH_INSUFFICIENT_SCOPE', `${method} ${at}`)
    }
  })

  await t.test('what makes no client, and clients that are not there', async () => {
    for (const wrong of [
      { redirectUris: undefined }, { redirectUris: [] }, { redirectUris: ['javascript:alert(1)'] }, { scopes: ['nonsense'] },
      { grants: ['implicit'] }, { grants: ['refresh_token'] }, { name: '' }, { name: undefined }, { requireSecret: 'no' }
    ]) assert.equal((await ask('POST', '', { ...members, ...wrong })).status, 400, JSON.stringify(wrong))
    const calls: Array<[string, string, unknown?]> = [['GET', ''], ['PUT', '', { name: '' }], ['DELETE', ''], ['POST', '/regenerate-secret']]
    for (const [method, at, sent] of calls) { assert.equal((await ask(method, `/somebody${at}`, sent)).status, 404, method) }
    const { status, body } = await ask('POST', '', { ...members, scopes: [] })
    assert.deepEqual([status, /"scopes" is empty/.test(String(body.message))], [400, true], JSON.stringify(body))
  })

  await t.test('a change leaves the rest, and the secret works in either place', async () => {
    const { name, scopes, redirectUris } = dataOf(await ask('PUT', own, { name: 'Renamed', scopes: ['mcp'] }))
    assert.deepEqual([name, scopes, redirectUris], ['Renamed', ['mcp'], [callback]])
    const [id, known] = [String(clientId), String(secret)]
    for (const [fields, headers] of [[{ client_id: id, client_secret: known }, {}], [{}, basic(id, known)]]) {
      const { client_id: _, ...code } = await world.code(alice, {}, id)
      assert.equal((await world.token({ ...code, ...fields }, headers)).status, 200)
    }
  })

  await t.test('a change that changes nothing, or cannot be, is refused in the words of this route', async () => {
    for (const [sent, said] of [
      [{}, /nothing to change.*redirectUris/], [{ name: '  ' }, /"name" must not be blank/],
      [{ name: 'prototype' }, /"name" must not be "prototype"/], [{ grants: ['refresh_token'] }, /"grants" must contain/],
      [{ redirectUris: Array(60).fill(callback) }, /"redirectUris" may contain/], [{ scopes: ['nonsense'] }, /"scopes".*nonsense/],
      [{ scopes: [] }, /"scopes" is empty/]
    ] as Array<[Json, RegExp]>) {
      const { status, body } = await ask('PUT', own, sent)
      assert.equal(status, 400, JSON.stringify(sent))
      assert.match(String(body.message), said)
    }
  })

  await t.test('what is not stated stays, also where the settings would not allow it any more', async () => {
    await world.configure({ allowedScopes: ['profile'], requireClientSecret: true })
    assert.deepEqual(dataOf(await ask('PUT', own, { name: 'Again' })).scopes, ['mcp'])
    assert.match(String((await ask('PUT', own, { requireSecret: false })).body.message), /"requireSecret" cannot be false/)
    await world.configure({ allowedScopes: null, requireClientSecret: false })
    assert.equal((await ask('DELETE', own)).status, 200)
    assert.equal((await ask('GET', own)).status, 404)
  })

  await t.test('the audit log has all of it, and no secret', async () => {
    const other = await world.client({ name: 'Other' })
    assert.equal((await ask('POST', `/${other.id}/regenerate-secret`)).status, 200)
    const { body: audit } = await world.as(admin, 'GET', '/api/audit?entity=oauthClient&limit=100')
    const entries = audit.data as Array<{ username: string, action: string, name: string, before?: Json, after?: Json }>
    assert.deepEqual(entries.slice(0, 3).map(({ action, name }) => [action, name]), [['update', 'Other'], ['create', 'Other'], ['delete', 'Again']])
    assert.equal(entries[0]?.after?.secretChanged, true)
    assert.deepEqual(new Set(entries.map(({ username }) => username)), new Set(['admin']))
    const renamed = entries.find(({ before, after }) => before?.name === 'Dashboard' && after?.name === 'Renamed')
    assert.deepEqual([renamed?.before?.scope, renamed?.after?.scope], ['mcp manage profile openid', 'mcp'])
    for (const hidden of [String(secret), other.secret, 'ecretHash']) assert.ok(!JSON.stringify(entries).includes(hidden))
  })
})

test('what an admin changes of a client that registered itself leaves the rest of it', async (t) => {
  const world = await startWorld(t)
  const made = await register(world.base, { client_uri: 'https://client.example/', token_endpoint_auth_method: 'client_secret_post' })
  const id = made.client_id ?? ''
  assert.equal((await world.as(admin, 'PUT', `${path}/${id}`, { name: 'Renamed' })).status, 200)
  const shown = await world.ask('GET', `/oauth/register/${id}`, undefined, { authorization: `Bearer ${made.registration_access_token ?? ''}` })
  assert.deepEqual(
    [shown.status, shown.body.client_name, shown.body.client_uri, shown.body.token_endpoint_auth_method],
    [200, 'Renamed', 'https://client.example/', 'client_secret_post']
  )
  // It is still one that registered itself, whatever an admin adds.
  const { body } = await world.as(admin, 'PUT', `${path}/${id}`, { scopes: ['mcp', 'manage'] })
  const { client_id: _, ...code } = await world.code(admin, { scope: 'mcp manage' }, id)
  const answer = await world.token({ ...code, client_id: id, client_secret: made.client_secret ?? '' })
  assert.ok(!scopeOf(answer).includes('manage'), JSON.stringify(body))
  assert.match(String(body.message), /registered itself cannot have "manage"/)
  // An entry of a settings file says little: a client without a secret stays public.
  const file = await startWorld(t, { clients: [{ clientId: 'old', name: 'Old', redirectUris: [callback], grants: ['authorization_code'], scopes: ['mcp'] }] })
  const changed = await file.as(admin, 'PUT', `${path}/old`, { name: 'New' })
  const { clientSecret, requireSecret, grants } = changed.body.data as Json
  assert.deepEqual([changed.status, clientSecret, requireSecret, grants], [200, undefined, false, ['authorization_code']])
})
