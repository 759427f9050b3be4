// The authorization server as whoever attacks it sees it: each refusal of the RFCs, where its error goes, and that no token came of it.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'tap'
import { register, request, type Code, type Visit } from '../helpers/oauth.ts'
import { alice, answerOf, assertRefusal, basic, callback, changed, startWorld, type Answer, type Change } from '../helpers/oauth-world.ts'

/** The page of a refusal that no client is told of: nothing on it leads elsewhere. */
function assertPage (visit: Visit, name: string, status = 400): void {
  assert.equal(visit.location, undefined, `${name}: redirects to ${visit.location}`)
  assert.equal(visit.status, status, `${name}: ${visit.text.slice(0, 500)}`)
  assert.match(visit.headers.get('content-type') ?? '', /^text\/html/, name)
  assert.match(visit.headers.get('content-security-policy') ?? '', /default-src 'none'/, name)
  assert.match(visit.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/, name)
  assert.equal(visit.headers.get('cache-control'), 'no-store', name)
}

/** The redirect of a refusal: to the client, in the query, with the issuer and the state that it sent. */
function assertRedirect (visit: Visit, error: string, name: string, { base, state = 'a state' }: { base: string, state?: string | null }): void {
  assert.ok(visit.location !== undefined, `${name}: ${visit.status} ${visit.text.slice(-600)}`)
  assert.ok(visit.status === 302 || visit.status === 303, `${name}: ${visit.status}`)
  assert.ok(URL.canParse(visit.location), `${name}: ${visit.location}`)
  const url = new URL(visit.location)
  assert.equal(`${url.origin}${url.pathname}`, callback, name)
  assert.equal(url.hash, '', name)
  assert.equal(url.searchParams.get('error'), error, `${name}: ${url.href}`)
  assert.equal(url.searchParams.get('iss'), base, name)
  assert.equal(url.searchParams.get('state'), state, name)
  assert.equal(url.searchParams.get('code'), null, name)
}

test('the authorization endpoint refuses by a page, or by a redirect to the client', async (t) => {
  const world = await startWorld(t)
  const { base } = world
  const { client_id: clientId = '' } = await register(base)
  const { id } = await world.client({ requireSecret: false })
  const { params } = request(clientId, { scope: 'mcp' })
  const twice = (name: string, value = params[name] ?? ''): URLSearchParams => new URLSearchParams([...Object.entries(params), [name, value]])

  await t.test('a page, where client or redirect URI are not certain', async () => {
    for (const change of [
      ...[undefined, 'somebody', '__proto__', 'x'.repeat(8_000)].map((id): Change => ({ client_id: id })),
      ...[
        undefined, 'https://evil.example/callback', `${callback}/`, `${callback}?x=1`, `${callback}#fragment`, `${callback}/../other`,
        'http://127.0.0.1:8123/Callback', 'http://127.0.0.1:8123/callback%00', 'http://localhost:8123/callback', 'https://127.0.0.1:8123/callback',
        'http://127.0.0.1:8123@evil.example/callback', 'http://evil.example:8123/callback', 'http://user@127.0.0.1:8123/callback',
        'javascript:alert(1)//', 'data:text/html,hello', '/callback', ''
      ].map((uri): Change => ({ redirect_uri: uri }))
    ]) assertPage(await world.authorize(changed(params, change)), JSON.stringify(change))
    for (const query of [twice('client_id'), twice('redirect_uri'), twice('redirect_uri', 'https://evil.example/')]) {
      assertPage(await world.authorize(query), query.toString())
    }
  })

  await t.test('for all else, a redirect to a client of an admin\'s, and for one that registered itself a page', async () => {
    const cases: Record<string, readonly Change[]> = {
      invalid_request: [
        { response_type: undefined },
        // PKCE: none, the method that is meant by none, and challenges that are none.
        { code_challenge: undefined }, { code_challenge: undefined, code_challenge_method: undefined }, { code_challenge: '' },
        { code_challenge_method: undefined }, { code_challenge_method: 'plain' }, { code_challenge_method: 's256' },
        ...['a'.repeat(42), 'a'.repeat(129), `${'a'.repeat(42)}+`].map((challenge): Change => ({ code_challenge: challenge })),
        { prompt: 'none login' }
      ],
      unsupported_response_type: [
        ...['token', 'id_token', 'code token', 'code id_token', 'none', 'password', 'CODE'].map((type): Change => ({ response_type: type })),
        { response_type: 'token', response_mode: 'fragment' }
      ],
      invalid_target: [
        'https://elsewhere.example/mcp', 'http://127.0.0.1:1/mcp', `${base}/mcp#fragment`, `${base}/mcp?query`, `${base}/health`,
        `${base}/mcp/../health`, `${base}/mcp/%2e%2e/..`, `${base}/mcp/..`, `${base}.evil.example/mcp`, base.replace('http:', 'https:'), 'mcp'
      ].map((resource): Change => ({ resource })),
      login_required: [{ prompt: 'none' }],
      invalid_scope: [{ scope: 'everything root' }, { scope: 'mcp:tools' }],
      request_not_supported: [{ request: 'e30.e30.' }],
      request_uri_not_supported: [{ request_uri: 'https://evil.example/request' }]
    }
    const queries: Array<[string, URLSearchParams]> = Object.entries(cases).flatMap(([error, changes]) =>
      changes.map((change): [string, URLSearchParams] => [error, new URLSearchParams(changed(params, change))]))
    for (const name of ['response_type', 'code_challenge', 'scope']) queries.push(['invalid_request', twice(name)])
    for (const [error, query] of queries) {
      const name = `${error}: ${query.toString()}`
      const visit = await world.authorize(query)
      assertPage(visit, name)
      assert.match(visit.text, new RegExp(`href="[^"]*error=${error}`), `${name}: no link to the client`)
      query.set('client_id', id)
      assertRedirect(await world.authorize(query), error, name, { base })
    }
    // An empty scope is none (RFC 6749, section 3.3), and so is one of blanks.
    for (const scope of ['', ' ']) assert.match((await world.authorize({ ...params, scope })).location ?? '', /interaction/)
    // Only an admin's client can have it.
    assertPage(await world.authorize({ ...params, scope: 'manage' }), 'manage')
    assert.match((await world.authorize({ ...params, client_id: id, scope: 'manage' })).location ?? '', /interaction/)
  })

  await t.test('a state that is named twice is not given back', async () => {
    const query = twice('state', 'another')
    query.set('client_id', id)
    assertRedirect(await world.authorize(query), 'invalid_request', 'state', { base, state: null })
  })

  await t.test('by POST as well', async () => {
    const post = async (change: Change): Promise<Visit> => await world.browser().post('/oauth/authorize', changed(params, change))
    assertPage(await post({ client_id: 'somebody' }), 'unknown client')
    assertPage(await post({ code_challenge: undefined }), 'PKCE')
    assertRedirect(await post({ client_id: id, code_challenge: undefined }), 'invalid_request', 'PKCE', { base })
    assertRedirect(await post({ client_id: id, response_type: 'token' }), 'unsupported_response_type', 'implicit', { base })
    const big = await post({ state: 'x'.repeat(100_000) })
    assert.deepEqual([big.status, big.location], [413, undefined])
  })

  await t.test('other ports of a loopback address are the same redirect URI (RFC 8252)', async () => {
    const visit = await world.authorize({ ...params, redirect_uri: 'http://127.0.0.1:50123/callback' })
    assert.match(visit.location ?? '', /\/oauth\/interaction\//, visit.text.slice(-500))
    // Clients use localhost in the same way, though RFC 8252 (section 7.3) speaks of addresses: loopback ports may differ.
    const { client_id: id = '' } = await register(base, { redirect_uris: ['http://localhost:1/callback', 'http://[::1]/callback'] })
    for (const uri of ['http://localhost:50123/callback', 'http://[::1]:50123/callback']) {
      assert.match((await world.authorize({ ...params, client_id: id, redirect_uri: uri })).location ?? '', /interaction/, uri)
    }
    for (const uri of ['http://localhost:50123/other', 'http://127.0.0.1:50123/callback', 'https://localhost:50123/callback']) {
      assertPage(await world.authorize({ ...params, client_id: id, redirect_uri: uri }), uri)
    }
  })
})

test('the token endpoint refuses', async (t) => {
  const world = await startWorld(t)
  const { base } = world
  const browser = world.browser()
  const { client_id: clientId = '' } = await register(base)
  const { client_id: stranger = '' } = await register(base)
  const fresh = async (more: Record<string, string> = {}, id = clientId): Promise<Code> => await world.code(alice, more, id, browser)

  await t.test('codes that are not presented as they were issued, and each of them is of no use after that', async () => {
    const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')
    const cases: Array<[(code: Code) => Change, string]> = [
      [() => ({ code_verifier: 'b'.repeat(43) }), 'invalid_grant'],
      [(code) => ({ code_verifier: challengeOf(code.code_verifier) }), 'invalid_grant'],
      [() => ({ code_verifier: undefined }), 'invalid_grant'],
      [() => ({ redirect_uri: 'http://127.0.0.1:8124/callback' }), 'invalid_grant'],
      [() => ({ client_id: stranger }), 'invalid_grant'],
      [() => ({ resource: `${base}/mcp/other` }), 'invalid_target'],
      [() => ({ resource: 'https://elsewhere.example/' }), 'invalid_target']
    ]
    for (const [change, error] of cases) {
      const code = await fresh({ resource: `${base}/mcp` })
      const name = JSON.stringify(change(code))
      assertRefusal(await world.token(changed(code, change(code))), [400, error], name)
      assertRefusal(await world.token(code), [400, 'invalid_grant'], `${name}, then as it should be`)
    }
  })

  await t.test('requests that lack something, or name what is not there', async () => {
    const code = await fresh()
    const cases: Array<[Change, number, ...errors: string[]]> = [
      [{ grant_type: undefined }, 400, 'invalid_request'],
      [{ code: undefined }, 400, 'invalid_request'],
      [{ redirect_uri: undefined }, 400, 'invalid_request'],
      [{ client_id: undefined }, 400, 'invalid_request'],
      // RFC 7636, section 4.6 wants `invalid_grant` for a verifier that does not fit; one that is none may be `invalid_request`.
      ...['a'.repeat(42), 'a'.repeat(129), `${'a'.repeat(43)}=`].map((verifier): [Change, number, string, string] =>
        [{ code_verifier: verifier }, 400, 'invalid_grant', 'invalid_request']),
      [{ client_id: 'somebody' }, 401, 'invalid_client'],
      [{ client_secret: 'secret' }, 401, 'invalid_client']
    ]
    for (const [change, status, ...errors] of cases) {
      const answer = await world.token(changed(code, change))
      const error = String(answer.body.error)
      assert.ok(errors.includes(error), `${JSON.stringify(change)} ${error}`)
      assertRefusal(answer, [status, error], JSON.stringify(change))
    }
  })

  await t.test('other grants', async () => {
    const cases: Array<Record<string, string>> = [
      { grant_type: 'password', username: 'alice', password: alice.password, client_id: clientId },
      { grant_type: 'client_credentials', client_id: clientId }, { grant_type: 'implicit', client_id: clientId },
      { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: 'x', client_id: clientId },
      { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: 'x', client_id: clientId },
      { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: 'x', client_id: clientId },
      { grant_type: '__proto__', client_id: clientId }
    ]
    for (const fields of cases) assertRefusal(await world.token(fields), [400, 'unsupported_grant_type'], fields.grant_type ?? '')
  })

  await t.test('whatever is no plain form of single fields', async () => {
    const code = await fresh()
    const post = async (body: string, headers: Record<string, string>, query = ''): Promise<Answer> =>
      await answerOf(await fetch(`${base}/oauth/token${query}`, { method: 'POST', headers, body }))
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const text = new URLSearchParams(code).toString()
    assertRefusal(await post(JSON.stringify(code), { 'content-type': 'application/json' }), [400, 'invalid_request'], 'JSON')
    assertRefusal(await post(text, { 'content-type': 'text/plain' }), [400, 'invalid_request'], 'plain text')
    for (const name of Object.keys(code)) {
      assertRefusal(await post(`${text}&${name}=${code[name] ?? ''}`, type), [400, 'invalid_request'], `${name} twice`)
    }
    assertRefusal(await post(text, type, `?client_id=${clientId}`), [400, 'invalid_request'], 'a parameter in the query')
    assertRefusal(await post('', type, `?${text}`), [400, 'invalid_request'], 'all in the query')
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const { status, body } = await world.ask(method, `/oauth/token?${text}`)
      assert.ok(status === 404 || status === 405, `${method} ${status}`)
      assert.equal(body.access_token, undefined)
    }
    assert.equal((await world.token(code)).status, 200, 'the code was used up by what was no request')
  })

  await t.test('clients that authenticate otherwise than they should', async () => {
    const { id, secret } = await world.client()
    const code = await fresh({}, id)
    const { client_id: _, ...rest } = code
    const cases: Array<[string, Record<string, string>, Record<string, string>, [number, string]]> = [
      ['no secret', code, {}, [401, 'invalid_client']],
      ['a wrong secret', rest, basic(id, `${secret}x`), [401, 'invalid_client']],
      ['an empty secret', { ...code, client_secret: '' }, {}, [401, 'invalid_client']],
      ['the secret twice, in both ways', { ...code, client_secret: secret }, basic(id, secret), [400, 'invalid_request']],
      ['another id in the body', { ...rest, client_id: clientId }, basic(id, secret), [400, 'invalid_request']],
      ['no Basic', rest, { authorization: `Bearer ${secret}` }, [400, 'invalid_request']],
      ['the secret\'s hash', rest, basic(id, createHash('sha256').update(secret).digest('hex')), [401, 'invalid_client']]
    ]
    for (const [name, fields, headers, wanted] of cases) {
      const answer = await world.token(fields, headers)
      assertRefusal(answer, wanted, name)
      if (answer.status === 401 && headers.authorization !== undefined) assert.match(answer.headers.get('www-authenticate') ?? '', /^Basic /, name)
    }
    assert.equal((await world.token(rest, basic(id, secret))).status, 200)
  })

  await t.test('a wrong secret too often, even where it is right then', async () => {
    const { id, secret } = await world.client()
    const code = await fresh({}, id)
    const { client_id: _, ...rest } = code
    const seen = new Set<number>()
    for (let count = 0; count < 30; count++) seen.add((await world.token(rest, basic(id, `wrong ${count}`))).status)
    assert.deepEqual([...seen], [401, 429])
    const { status, headers } = await world.token(rest, basic(id, secret))
    assert.equal(status, 429)
    assert.ok(Number(headers.get('retry-after')) > 0)
    // Nobody else is kept out.
    assert.equal((await world.token(await fresh())).status, 200)
  })

  await t.test('refresh tokens of others, for more than was granted, or that were used', async () => {
    const { refresh } = await world.tokens(alice, { resource: `${base}/mcp`, scope: 'mcp' }, clientId)
    assertRefusal(await world.refresh('x'.repeat(43), clientId), [400, 'invalid_grant'], 'no token')
    assertRefusal(await world.refresh(refresh, stranger), [400, 'invalid_grant'], 'another client')
    assertRefusal(await world.refresh(refresh, clientId, { scope: 'mcp profile' }), [400, 'invalid_scope'], 'more')
    assertRefusal(await world.refresh(refresh, clientId, { scope: 'manage' }), [400, 'invalid_scope'], 'manage')
    assertRefusal(await world.refresh(refresh, clientId, { resource: `${base}/mcp/other` }), [400, 'invalid_target'], 'resource')
    assertRefusal(await world.refresh(refresh, clientId, { resource: base }), [400, 'invalid_target'], 'a wider resource')
    const { access } = await world.tokens(alice, {}, clientId)
    assertRefusal(await world.refresh(access, clientId), [400, 'invalid_grant'], 'an access token')
    assert.equal((await world.refresh(refresh, clientId)).status, 200)
  })
})

test('a hash of a settings file that is none matches nothing', async (t) => {
  const world = await startWorld(t, { clients: [{ clientId: 'edited', registrationTokenHash: 'é', redirectUris: [callback] }] })
  const answer = await world.ask('GET', '/oauth/register/edited', undefined, { authorization: 'Bearer guess' })
  assertRefusal(answer, [401, 'invalid_token'], 'a hash that is none')
})

test('revocation (RFC 7009)', async (t) => {
  const world = await startWorld(t)
  const { client_id: stranger = '' } = await register(world.base)
  const { access, refresh, clientId } = await world.tokens(alice)
  for (const [name, fields, wanted] of [
    ['no token', { client_id: clientId }, [400, 'invalid_request']],
    ['no client', { token: access }, [400, 'invalid_request']],
    ['an unknown client', { token: access, client_id: 'somebody' }, [401, 'invalid_client']]
  ] as Array<[string, Record<string, string>, [number, string]]>) {
    const { status, body } = await world.revoke(fields)
    assert.deepEqual([status, body.error], wanted, name)
  }
  const foreign = await world.revoke({ token: access, client_id: stranger })
  assert.ok([200, 400].includes(foreign.status), JSON.stringify(foreign.body))
  assert.ok(await world.isValid(access), 'a stranger revoked it')
  assert.equal((await world.revoke({ token: 'x'.repeat(43), client_id: clientId })).status, 200, 'an unknown token')
  assert.equal((await world.revoke({ token: access, client_id: clientId, token_type_hint: 'refresh_token' })).status, 200, 'a wrong hint')
  assert.equal(await world.isValid(access), false)
  assertRefusal(await world.refresh(refresh, clientId), [400, 'invalid_grant'], 'its refresh token')

  const again = await world.tokens(alice, {}, clientId)
  assert.equal((await world.revoke({ token: again.refresh, client_id: clientId })).status, 200)
  assert.equal(await world.isValid(again.access), false)
})
