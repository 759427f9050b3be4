// The authorization server as whoever attacks it sees it: each refusal of the RFCs, where its error goes, and that no token came of it.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'tap'
import { register, request, type Visit } from '../helpers/oauth.ts'
import { admin, alice, basic, bob, callback, startWorld, type Answer, type Code, type Json } from '../helpers/oauth-world.ts'

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

/** A refusal in JSON (RFC 6749, section 5.2). */
function assertJson ({ status, body, headers }: Answer, [wanted, error]: [number, string], name: string): void {
  assert.deepEqual([status, body.error], [wanted, error], `${name}: ${status} ${JSON.stringify(body)}`)
  assert.match(headers.get('cache-control') ?? '', /no-store/, name)
  assert.equal(body.access_token, undefined, name)
}

test('the authorization endpoint refuses by a page, or by a redirect to the client', async (t) => {
  const world = await startWorld(t)
  const { base } = world
  const { client_id: clientId = '' } = await register(base)
  const { params } = request(clientId)
  const without = (name: string): Record<string, string> =>
    Object.fromEntries(Object.entries(params).filter(([each]) => each !== name))
  const twice = (name: string, value = params[name] ?? ''): URLSearchParams => {
    const query = new URLSearchParams(params)
    query.append(name, value)
    return query
  }

  await t.test('a page, where client or redirect URI are not certain', async () => {
    const pages: Array<[string, Record<string, string> | URLSearchParams]> = [
      ['no client', without('client_id')],
      ['an unknown client', { ...params, client_id: 'somebody' }],
      ['a client named twice', twice('client_id')],
      ['a client of the prototype', { ...params, client_id: '__proto__' }],
      ['no redirect URI', without('redirect_uri')],
      ['a redirect URI named twice', twice('redirect_uri')],
      ['a second, foreign redirect URI', twice('redirect_uri', 'https://evil.example/')],
      ...[
        'https://evil.example/callback',
        `${callback}/`,
        `${callback}?x=1`,
        `${callback}#fragment`,
        `${callback}/../other`,
        'http://127.0.0.1:8123/Callback',
        'http://127.0.0.1:8123/callback%00',
        'http://localhost:8123/callback',
        'https://127.0.0.1:8123/callback',
        'http://127.0.0.1:8123@evil.example/callback',
        'http://evil.example:8123/callback',
        'http://user@127.0.0.1:8123/callback',
        'javascript:alert(1)//',
        'data:text/html,hello',
        '/callback',
        ''
      ].map((uri): [string, Record<string, string>] => [`redirect to ${uri}`, { ...params, redirect_uri: uri }])
    ]
    for (const [name, query] of pages) assertPage(await world.authorize(query), name)
  })

  await t.test('for all else, a redirect to a client of an admin\'s, and for one that registered itself a page', async () => {
    const { id } = await world.client({ requireSecret: false })
    const redirects: Array<[string, Record<string, string> | URLSearchParams, string]> = [
      ['no response type', without('response_type'), 'invalid_request'],
      ...['token', 'id_token', 'code token', 'code id_token', 'none', 'password', 'CODE'].map((type): [string, Record<string, string>, string] =>
        [`response type ${type}`, { ...params, response_type: type }, 'unsupported_response_type']),
      ['a response type named twice', twice('response_type'), 'invalid_request'],
      ['implicit, and the fragment asked for', { ...params, response_type: 'token', response_mode: 'fragment' }, 'unsupported_response_type'],
      ['no PKCE', without('code_challenge'), 'invalid_request'],
      ['PKCE without a challenge or method', (({ code_challenge: _, code_challenge_method: __, ...rest }) => rest)(params), 'invalid_request'],
      ['PKCE without a method, which means plain', without('code_challenge_method'), 'invalid_request'],
      ['PKCE plain', { ...params, code_challenge_method: 'plain' }, 'invalid_request'],
      ['PKCE s256', { ...params, code_challenge_method: 's256' }, 'invalid_request'],
      ['an empty challenge', { ...params, code_challenge: '' }, 'invalid_request'],
      ['a challenge that is too short', { ...params, code_challenge: 'a'.repeat(42) }, 'invalid_request'],
      ['a challenge that is too long', { ...params, code_challenge: 'a'.repeat(129) }, 'invalid_request'],
      ['a challenge of other characters', { ...params, code_challenge: `${'a'.repeat(42)}+` }, 'invalid_request'],
      ['a challenge named twice', twice('code_challenge'), 'invalid_request'],
      ['a scope named twice', twiceOf({ ...params, scope: 'mcp' }, 'scope'), 'invalid_request'],
      ...[
        'https://elsewhere.example/mcp',
        'http://127.0.0.1:1/mcp',
        `${base}/mcp#fragment`,
        `${base}/mcp?query`,
        `${base}/health`,
        `${base}/mcp/../health`,
        `${base}/mcp/%2e%2e/..`,
        `${base}/mcp/..`,
        `${base}.evil.example/mcp`,
        base.replace('http:', 'https:'),
        'mcp'
      ].map((resource): [string, Record<string, string>, string] => [`resource ${resource}`, { ...params, resource }, 'invalid_target']),
      ['nobody asked, and nobody logged in', { ...params, prompt: 'none' }, 'login_required'],
      ['a prompt that contradicts itself', { ...params, prompt: 'none login' }, 'invalid_request'],
      ['no scope', { ...params, scope: '' }, 'invalid_scope'],
      ['scopes that nobody knows', { ...params, scope: 'everything root' }, 'invalid_scope'],
      ['a request object', { ...params, request: 'e30.e30.' }, 'request_not_supported'],
      ['a request by reference', { ...params, request_uri: 'https://evil.example/request' }, 'request_uri_not_supported']
    ]
    for (const [name, query, error] of redirects) {
      const visit = await world.authorize(query)
      assertPage(visit, name)
      assert.match(visit.text, new RegExp(`href="[^"]*error=${error}`), `${name}: no link to the client`)
      const ofAdmin = new URLSearchParams(query)
      ofAdmin.set('client_id', id)
      assertRedirect(await world.authorize(ofAdmin), error, name, { base })
    }
    // Only an admin's client can have it.
    assertPage(await world.authorize({ ...params, scope: 'manage' }), 'manage')
    assert.match((await world.authorize({ ...params, client_id: id, scope: 'manage' })).location ?? '', /interaction/)
  })

  await t.test('a state that is named twice is not given back', async () => {
    const { id } = await world.client({ requireSecret: false })
    const query = twice('state', 'another')
    query.set('client_id', id)
    assertRedirect(await world.authorize(query), 'invalid_request', 'state', { base, state: null })
  })

  await t.test('by POST as well', async () => {
    const browser = world.browser()
    assertPage(await browser.post('/oauth/authorize', { ...params, client_id: 'somebody' }), 'unknown client')
    assertPage(await browser.post('/oauth/authorize', without('code_challenge')), 'PKCE')
    const { id } = await world.client({ requireSecret: false })
    const post = async (query: Record<string, string>): Promise<Visit> => await browser.post('/oauth/authorize', { ...query, client_id: id })
    assertRedirect(await post(without('code_challenge')), 'invalid_request', 'PKCE', { base })
    assertRedirect(await post({ ...params, response_type: 'token' }), 'unsupported_response_type', 'implicit', { base })
  })

  await t.test('other ports of a loopback address are the same redirect URI (RFC 8252)', async () => {
    const visit = await world.authorize({ ...params, redirect_uri: 'http://127.0.0.1:50123/callback' })
    assert.match(visit.location ?? '', /\/oauth\/interaction\//, visit.text.slice(-500))
    // Clients use localhost in the same way, though RFC 8252 (section 7.3) speaks of addresses (DECISIONS §9: loopback ports may differ).
    const { client_id: id = '' } = await register(base, { redirect_uris: ['http://localhost:1/callback', 'http://[::1]/callback'] })
    for (const uri of ['http://localhost:50123/callback', 'http://[::1]:50123/callback']) {
      assert.match((await world.authorize({ ...params, client_id: id, redirect_uri: uri })).location ?? '', /interaction/, uri)
    }
    for (const uri of ['http://localhost:50123/other', 'http://127.0.0.1:50123/callback', 'https://localhost:50123/callback']) {
      assertPage(await world.authorize({ ...params, client_id: id, redirect_uri: uri }), uri)
    }
  })

  await t.test('what is too long or no form is refused as plainly', async () => {
    assertPage(await world.authorize({ ...params, client_id: 'x'.repeat(8_000) }), 'a long id')
    const big = await world.browser().post('/oauth/authorize', { ...params, state: 'x'.repeat(100_000) })
    assert.deepEqual([big.status, big.location], [413, undefined])
  })
})

function twiceOf (params: Record<string, string>, name: string): URLSearchParams {
  const query = new URLSearchParams(params)
  query.append(name, params[name] ?? '')
  return query
}

test('the token endpoint refuses', async (t) => {
  const world = await startWorld(t)
  const { base } = world
  const browser = world.browser()
  const { client_id: clientId = '' } = await register(base)
  const { client_id: stranger = '' } = await register(base)
  const fresh = async (more: Record<string, string> = {}, id = clientId): Promise<Code> => await world.code(alice, more, id, browser)

  await t.test('codes that are not presented as they were issued, and each of them is of no use after that', async () => {
    const other = 'b'.repeat(43)
    const cases: Array<[string, (code: Code) => Record<string, string>, string]> = [
      ['another verifier', (code) => ({ ...code, code_verifier: other }), 'invalid_grant'],
      ['the challenge as verifier', (code) => ({ ...code, code_verifier: createHash('sha256').update(code.code_verifier).digest('base64url') }), 'invalid_grant'],
      ['another redirect URI', (code) => ({ ...code, redirect_uri: 'http://127.0.0.1:8124/callback' }), 'invalid_grant'],
      ['another client', (code) => ({ ...code, client_id: stranger }), 'invalid_grant'],
      ['another resource', (code) => ({ ...code, resource: `${base}/mcp/other` }), 'invalid_target'],
      ['a foreign resource', (code) => ({ ...code, resource: 'https://elsewhere.example/' }), 'invalid_target']
    ]
    for (const [name, change, error] of cases) {
      const code = await fresh({ resource: `${base}/mcp` })
      assertJson(await world.token(change(code)), [400, error], name)
      assertJson(await world.token(code), [400, 'invalid_grant'], `${name}, then as it should be`)
    }
  })

  await t.test('requests that lack something, and the code is still good then', async () => {
    const code = await fresh()
    const without = (name: string): Record<string, string> =>
      Object.fromEntries(Object.entries(code).filter(([each]) => each !== name)) as Record<string, string>
    const cases: Array<[string, Record<string, string>, [number, string]]> = [
      ['no grant type', without('grant_type'), [400, 'invalid_request']],
      ['no code', without('code'), [400, 'invalid_request']],
      ['no redirect URI', without('redirect_uri'), [400, 'invalid_request']],
      ['a short verifier', { ...code, code_verifier: 'a'.repeat(42) }, [400, 'invalid_grant']],
      ['a long verifier', { ...code, code_verifier: 'a'.repeat(129) }, [400, 'invalid_grant']],
      ['a verifier of other characters', { ...code, code_verifier: `${'a'.repeat(43)}=` }, [400, 'invalid_grant']],
      ['no client', without('client_id'), [400, 'invalid_request']],
      ['an unknown client', { ...code, client_id: 'somebody' }, [401, 'invalid_client']],
      ['a secret that the client does not have', { ...code, client_secret: 'secret' }, [401, 'invalid_client']]
    ]
    for (const [name, fields, wanted] of cases) {
      const { status, body, headers } = await world.token(fields)
      // RFC 7636, section 4.6 wants `invalid_grant` for a verifier that does not fit; one that is none may be `invalid_request`.
      const isVerifier = name.includes('verifier')
      assert.ok(isVerifier ? ['invalid_grant', 'invalid_request'].includes(String(body.error)) : body.error === wanted[1], `${name} ${JSON.stringify(body)}`)
      assert.equal(status, wanted[0], name)
      assert.match(headers.get('cache-control') ?? '', /no-store/, name)
      assert.equal(body.access_token, undefined, name)
    }
  })

  await t.test('a code without its verifier', async () => {
    const { code_verifier: _, ...code } = await fresh()
    const { status, body } = await world.token(code)
    assert.deepEqual([status, body.error], [400, 'invalid_grant'])
  })

  await t.test('other grants', async () => {
    const cases: Array<Record<string, string>> = [
      { grant_type: 'password', username: 'alice', password: alice.password, client_id: clientId },
      { grant_type: 'client_credentials', client_id: clientId },
      { grant_type: 'implicit', client_id: clientId },
      { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: 'x', client_id: clientId },
      { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: 'x', client_id: clientId },
      { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: 'x', client_id: clientId },
      { grant_type: '__proto__', client_id: clientId }
    ]
    for (const fields of cases) assertJson(await world.token(fields), [400, 'unsupported_grant_type'], fields.grant_type ?? '')
  })

  await t.test('whatever is no plain form of single fields', async () => {
    const code = await fresh()
    const post = async (body: string, headers: Record<string, string>, query = ''): Promise<Answer> => {
      const reply = await fetch(`${base}/oauth/token${query}`, { method: 'POST', headers, body })
      return { status: reply.status, body: await reply.json() as Json, headers: reply.headers }
    }
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const text = new URLSearchParams(code).toString()
    assertJson(await post(JSON.stringify(code), { 'content-type': 'application/json' }), [400, 'invalid_request'], 'JSON')
    assertJson(await post(text, { 'content-type': 'text/plain' }), [400, 'invalid_request'], 'plain text')
    for (const name of Object.keys(code)) {
      assertJson(await post(`${text}&${name}=${code[name] ?? ''}`, type), [400, 'invalid_request'], `${name} twice`)
    }
    assertJson(await post(text, type, `?client_id=${clientId}`), [400, 'invalid_request'], 'a parameter in the query')
    assertJson(await post('', type, `?${text}`), [400, 'invalid_request'], 'all in the query')
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
      assertJson(answer, wanted, name)
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
    assertJson(await world.refresh('x'.repeat(43), clientId), [400, 'invalid_grant'], 'no token')
    assertJson(await world.refresh(refresh, stranger), [400, 'invalid_grant'], 'another client')
    assertJson(await world.refresh(refresh, clientId, { scope: 'mcp profile' }), [400, 'invalid_scope'], 'more')
    assertJson(await world.refresh(refresh, clientId, { scope: 'manage' }), [400, 'invalid_scope'], 'manage')
    assertJson(await world.refresh(refresh, clientId, { resource: `${base}/mcp/other` }), [400, 'invalid_target'], 'resource')
    assertJson(await world.refresh(refresh, clientId, { resource: base }), [400, 'invalid_target'], 'a wider resource')
    const { access } = await world.tokens(alice, {}, clientId)
    assertJson(await world.refresh(access, clientId), [400, 'invalid_grant'], 'an access token')
    assert.equal((await world.refresh(refresh, clientId)).status, 200)
  })
})

test('a code or a refresh token that is presented again ends all that was issued for it, at once', async (t) => {
  const world = await startWorld(t)
  const code = await world.code(alice)
  const { body } = await world.token(code)
  assert.ok(await world.isValid(String(body.access_token)))
  assertJson(await world.token(code), [400, 'invalid_grant'], 'the code again')
  assert.equal(await world.isValid(String(body.access_token)), false)
  assertJson(await world.refresh(String(body.refresh_token), code.client_id), [400, 'invalid_grant'], 'its refresh token')

  const first = await world.tokens(alice, {}, code.client_id)
  const second = await world.refresh(first.refresh, first.clientId)
  assert.equal(second.status, 200)
  const third = await world.refresh(String(second.body.refresh_token), first.clientId)
  assert.equal(third.status, 200)
  const live = [first.access, String(second.body.access_token), String(third.body.access_token)]
  for (const token of live) assert.ok(await world.isValid(token))
  assertJson(await world.refresh(first.refresh, first.clientId), [400, 'invalid_grant'], 'the first refresh token again')
  for (const token of live) assert.equal(await world.isValid(token), false)
  assertJson(await world.refresh(String(third.body.refresh_token), first.clientId), [400, 'invalid_grant'], 'the newest refresh token')
})

test('of 20 who redeem a code or refresh token at once, one gets tokens, and they end', async (t) => {
  const world = await startWorld(t)
  const code = await world.code(alice)
  const redeemed = await Promise.all(Array.from({ length: 20 }, async () => await world.token(code)))
  assert.deepEqual(redeemed.map(({ status }) => status).sort(), [200, ...Array<number>(19).fill(400)])
  const winner = redeemed.find(({ status }) => status === 200)
  assert.equal(await world.isValid(String(winner?.body.access_token)), false, 'the family lives on')

  const { refresh, clientId } = await world.tokens(alice, {}, code.client_id)
  const refreshed = await Promise.all(Array.from({ length: 20 }, async () => await world.refresh(refresh, clientId)))
  assert.deepEqual(refreshed.map(({ status }) => status).sort(), [200, ...Array<number>(19).fill(400)])
  const swapped = refreshed.find(({ status }) => status === 200)
  assert.equal(await world.isValid(String(swapped?.body.access_token)), false, 'the family lives on')
  assertJson(await world.refresh(String(swapped?.body.refresh_token), clientId), [400, 'invalid_grant'], 'the successor')
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
  assertJson(await world.refresh(refresh, clientId), [400, 'invalid_grant'], 'its refresh token')

  const again = await world.tokens(alice, {}, clientId)
  assert.equal((await world.revoke({ token: again.refresh, client_id: clientId })).status, 200)
  assert.equal(await world.isValid(again.access), false)
})

test('registration (RFC 7591) refuses what it must, and ignores what it does not know', async (t) => {
  const world = await startWorld(t)
  const good = { client_name: 'A client', redirect_uris: [callback], token_endpoint_auth_method: 'none' }
  const post = async (body: unknown): Promise<Answer> => await world.ask('POST', '/oauth/register', body)
  for (const uri of [
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://a.example/x',
    'about:blank',
    'ftp://a.example/',
    'ws://a.example/',
    'http://a.example/callback',
    'http://127.0.0.1.evil.example/',
    'http://localhost.evil.example/',
    'http://10.0.0.1/callback',
    'http://127.0.0.7/callback',
    'https://a.example/#fragment',
    'https://a.example/#',
    'https://user:pw@a.example/',
    'https://a.example/a b',
    'https://a.example/*',
    '//a.example/',
    '/callback',
    'callback',
    '',
    ' https://a.example/',
    'https://',
    'app:/callback',
    `https://a.example/${'x'.repeat(3_000)}`
  ]) {
    const { status, body } = await post({ ...good, redirect_uris: [callback, uri] })
    assert.deepEqual([status, body.error, body.client_id], [400, 'invalid_redirect_uri', undefined], uri)
  }
  for (const uris of [undefined, [], 'https://a.example/', [1], [null], {}, Array.from({ length: 100 }, (_, at) => `https://a.example/${at}`)]) {
    const { status, body } = await post({ ...good, redirect_uris: uris })
    assert.deepEqual([status, body.error], [400, 'invalid_redirect_uri'], JSON.stringify(uris))
  }
  for (const members of [
    { grant_types: ['implicit'] },
    { grant_types: ['refresh_token'] },
    { grant_types: 'authorization_code' },
    { response_types: ['token'] },
    { response_types: ['code', 'token'] },
    { response_types: [] },
    { token_endpoint_auth_method: 'private_key_jwt' },
    { token_endpoint_auth_method: 1 },
    { client_name: {} },
    { client_name: 'prototype' },
    { client_uri: 'javascript:alert(1)' },
    { logo_uri: 'data:image/png,x' },
    { tos_uri: 'x' },
    { policy_uri: 'x'.repeat(5_000) },
    { contacts: 'me' },
    { scope: ['mcp'] }
  ] as Json[]) {
    const { status, body, headers } = await post({ ...good, ...members })
    assert.deepEqual([status, body.error, body.client_id], [400, 'invalid_client_metadata', undefined], JSON.stringify(members))
    assert.equal(headers.get('cache-control'), 'no-store')
  }
  const long = (count: number, size: number): string[] => Array.from({ length: count }, (_, at) => `https://a.example/${at}${'x'.repeat(size)}`)
  for (const [members, error] of [
    [{ redirect_uris: long(21, 1) }, 'invalid_redirect_uri'],
    [{ redirect_uris: long(20, 500) }, 'invalid_client_metadata']
  ] as const) {
    const { status, body } = await post({ ...good, ...members })
    assert.deepEqual([status, body.error], [400, error], JSON.stringify(body))
  }
  assert.equal((await post({ ...good, surplus: 'x'.repeat(70_000) })).status, 413)
  for (const body of [[], 'text', 1, null]) {
    const answer = await post(body)
    assert.equal(answer.status, 400, JSON.stringify(body))
    assert.equal(typeof answer.body.error, 'string')
  }
  const broken = await fetch(`${world.base}/oauth/register`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' })
  assert.deepEqual([broken.status, typeof (await broken.json() as Json).error], [400, 'string'])
  const typeless = await fetch(`${world.base}/oauth/register`, { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{}' })
  assert.deepEqual([typeless.status, typeof (await typeless.json() as Json).error], [415, 'string'])
  assert.deepEqual((await world.as(admin, 'GET', '/api/oauth/clients')).body.data, [], 'what was refused is stored')

  const kept = await post({
    ...good,
    token_endpoint_auth_method: 'client_secret_post',
    redirect_uris: [callback, 'https://a.example/cb?x=1', 'com.example.app:/callback', 'http://[::1]/cb', 'http://localhost/'],
    client_id: 'mine',
    client_secret: 'mine',
    id_token_signed_response_alg: 'none',
    sector_identifier_uri: 'http://169.254.169.254/',
    jwks_uri: 'http://169.254.169.254/',
    __proto__: { admin: true },
    whatever: [{}]
  })
  assert.equal(kept.status, 201, JSON.stringify(kept.body))
  assert.notEqual(kept.body.client_id, 'mine')
  assert.notEqual(kept.body.client_secret, 'mine')
  assert.equal(kept.body.client_secret_expires_at, 0)
  assert.equal(typeof kept.body.client_id_issued_at, 'number')
  assert.equal(kept.body.whatever, undefined)
  assert.match(String(kept.body.registration_client_uri), /^http:\/\/127\.0\.0\.1:\d+\/oauth\/register\//)
  // What can be registered can be used.
  for (const uri of kept.body.redirect_uris as string[]) {
    const visit = await world.authorize({ ...request(String(kept.body.client_id)).params, redirect_uri: uri })
    assert.match(visit.location ?? '', /\/oauth\/interaction\//, `${uri}: ${visit.text.slice(-300)}`)
  }
})

test('the management of a registration (RFC 7592)', async (t) => {
  const world = await startWorld(t)
  const { base } = world
  const made = await register(base, { token_endpoint_auth_method: 'client_secret_basic' })
  const other = await register(base)
  const id = made.client_id ?? ''
  const path = `/oauth/register/${id}`
  const bearer = (token = ''): Record<string, string> => ({ authorization: `Bearer ${token}` })
  const own = bearer(made.registration_access_token)
  const whole = { client_id: id, redirect_uris: [callback], client_name: 'Renamed', token_endpoint_auth_method: 'client_secret_basic' }
  const { id: byAdmin } = await world.client()
  const { access } = await world.tokens(alice)
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const body = method === 'PUT' ? whole : undefined
    for (const [name, at, headers] of [
      ['no token', path, {}],
      ['a wrong token', path, bearer('x'.repeat(43))],
      ['an empty token', path, { authorization: 'Bearer ' }],
      ['another client\'s token', path, bearer(other.registration_access_token)],
      ['an access token', path, bearer(access)],
      ['a bearer key', path, bearer(`thk_${'a'.repeat(64)}`)],
      ['an unknown client', '/oauth/register/somebody', own],
      ['a client of an admin\'s', `/oauth/register/${byAdmin}`, own],
      ['the token in the query', `${path}?access_token=${made.registration_access_token ?? ''}`, {}]
    ] as Array<[string, string, Record<string, string>]>) {
      const answer = await world.ask(method, at, body, headers)
      assert.deepEqual([answer.status, answer.body.error], [401, 'invalid_token'], `${method} with ${name}`)
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer/, name)
    }
  }
  const unreadable = await fetch(`${base}${path}`, { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{' })
  assert.equal(unreadable.status, 401, 'the body is read before the token')
  for (const [name, body] of [
    ['another id', { ...whole, client_id: other.client_id }],
    ['no id', { ...whole, client_id: undefined }],
    ['another secret', { ...whole, client_secret: 'mine' }],
    ['a registration token', { ...whole, registration_access_token: made.registration_access_token }],
    ['an issue time', { ...whole, client_id_issued_at: 1 }],
    ['no redirect URIs', { ...whole, redirect_uris: undefined }],
    ['a bad redirect URI', { ...whole, redirect_uris: ['javascript:alert(1)'] }],
    ['no object', []]
  ] as Array<[string, unknown]>) {
    const answer = await world.ask('PUT', path, body, own)
    assert.equal(answer.status, 400, name)
    assert.ok(['invalid_request', 'invalid_redirect_uri', 'invalid_client_metadata'].includes(String(answer.body.error)), name)
  }
  const shown = await world.ask('GET', path, undefined, own)
  assert.deepEqual([shown.status, shown.body.client_name, shown.body.client_id], [200, 'A client', id])
  assert.equal(shown.headers.get('cache-control'), 'no-store')
  const changed = await world.ask('PUT', path, { ...whole, client_secret: made.client_secret }, own)
  assert.deepEqual([changed.status, changed.body.client_name, changed.body.client_id], [200, 'Renamed', id])

  const { access: token } = await world.tokens(bob, {}, String(other.client_id))
  assert.ok(await world.isValid(token))
  const gone = await world.ask('DELETE', `/oauth/register/${other.client_id ?? ''}`, undefined, bearer(other.registration_access_token))
  assert.equal(gone.status, 204)
  assert.equal(await world.isValid(token), false)
  const after = await world.ask('GET', `/oauth/register/${other.client_id ?? ''}`, undefined, bearer(other.registration_access_token))
  assert.deepEqual([after.status, after.body.error], [401, 'invalid_token'])
})
