// Credentials and configured headers of OpenAPI servers, and where they go.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { UpstreamError } from '../../protocol/errors.ts'
import { configProblem, type ServerConfig } from '../../schemas/server.ts'
import { json, restApi, type Seen } from '../fakes/rest-api.ts'
import { ok, op, openapi, restClient } from '../fakes/rest-client.ts'

const refused =
  (pattern: RegExp) =>
    (error: unknown): boolean => error instanceof UpstreamError && (assert.match(error.detail || error.message, pattern), true)

test('credentials', async (t) => {
  const api = await restApi(t)
  const schemes = {
    key: { type: 'apiKey', name: 'X-Key', in: 'header' },
    flow: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: `${api.url}/token`, scopes: {} } } }
  }
  const paths = {
    '/get': { get: op('get') },
    '/open': { get: op('open', [], { security: [] }) },
    '/elsewhere': {
      servers: [{ url: 'http://localhost:{port}/other', variables: { port: { default: String(api.port) } } }],
      get: op('elsewhere')
    }
  }
  const schema = openapi(paths, { components: { securitySchemes: schemes }, servers: [{ url: `${api.url}/documented` }] })
  const connect = async (security: object, more: ServerConfig = {}, passed?: () => Record<string, string>) => {
    const config = { type: 'openapi' as const, url: api.url, ...more, openapi: { schema, security, ...more.openapi } } as ServerConfig
    assert.equal(configProblem(config), undefined)
    return await restClient(t, config, { passed })
  }

  await t.test('each kind goes where it belongs, in both spellings', async () => {
    const basic = `Basic ${Buffer.from('me:p:w').toString('base64')}`
    for (const [security, url, headers] of [
      [{ type: 'none' }, '/get', {}],
      [{ type: 'apiKey', value: 'k 1' }, '/get', { 'x-key': 'k 1' }],
      [{ type: 'apiKey', name: 'Other', in: 'header', value: 'k' }, '/get', { other: 'k' }],
      [{ type: 'apiKey', name: 'key', in: 'query', value: 'k 1&' }, '/get?key=k%201%26', {}],
      [{ type: 'apiKey', apiKey: { name: 'key', in: 'cookie', value: 'k 1' } }, '/get', { cookie: 'key=k%201' }],
      [{ type: 'http', scheme: 'bearer', token: 'tok' }, '/get', { authorization: 'Bearer tok' }],
      [{ type: 'http', scheme: 'basic', username: 'me', password: 'p:w' }, '/get', { authorization: basic }],
      [{ type: 'http', http: { scheme: 'basic', credentials: basic.slice(6) } }, '/get', { authorization: basic }],
      [{ type: 'http', http: { scheme: 'Token', credentials: 'abc' } }, '/get', { authorization: 'Token abc' }],
      [{ type: 'oauth2', oauth2: { token: 'given' } }, '/get', { authorization: 'Bearer given' }],
      [{ type: 'openIdConnect', openIdConnect: { url: 'http://unused.test', token: 'id' } }, '/get', { authorization: 'Bearer id' }]
    ] as Array<[object, string, Record<string, string>]>) {
      const client = await connect(security)
      await client.call('get')
      const { url: asked, headers: sent } = api.last()
      assert.equal(asked, url)
      for (const name of ['authorization', 'x-key', 'other', 'cookie']) {
        assert.equal(sent[name], headers[name], `${JSON.stringify(security)}: ${name}`)
      }
      await client.call('open')
      assert.equal(api.last().url, '/open')
      for (const name of ['authorization', 'x-key', 'other', 'cookie']) assert.equal(api.last().headers[name], undefined)
    }
  })
  await t.test('what is lacking is said when it is stored', async () => {
    for (const [security, says] of [
      [{ type: 'apiKey' }, /needs a "value"/],
      [{ type: 'http', scheme: 'bearer' }, /needs a "token"/],
      [{ type: 'http', scheme: 'digest', credentials: 'x' }, /digest/],
      [{ type: 'http', credentials: 'x' }, /"scheme"/],
      [{ type: 'oauth2', clientId: 'x' }, /"clientSecret"/]
    ] as const) assert.match(configProblem({ type: 'openapi', openapi: { schema, security } }) ?? '', says)
    assert.match(configProblem({ type: 'openapi' }) ?? '', /needs a "url"/)
    assert.match(configProblem({ type: 'openapi', openapi: { url: 'file:///etc/passwd' } }) ?? '', /"openapi.url" must be/)
  })
  await t.test(
    "headers: the configured ones win over arguments, the client's own over credentials; another origin gets none of them",
    async () => {
      let passed: Record<string, string> = { authorization: 'Bearer mine' }
      const client = await connect({ type: 'http', scheme: 'bearer', token: 'tok' },
        { headers: { 'X-Fixed': 'f', Cookie: 'a=b' } }, () => passed)
      await client.call('get')
      assert.deepEqual([api.last().headers.authorization, api.last().headers['x-fixed'], api.last().headers.cookie],
        ['Bearer mine', 'f', 'a=b'])
      passed = {}
      await client.call('get')
      assert.equal(api.last().headers.authorization, 'Bearer tok')
      const before = api.seen.length
      const refusal = await client.call('elsewhere')
      assert.equal(refusal.isError, true)
      assert.match(String(refusal.content[0]?.text), /for another server than this operation/)
      assert.doesNotMatch(String(refusal.content[0]?.text), /localhost/, 'its clients are not told which')
      assert.match(client.warnings.join(), /operations at http:\/\/localhost:\d+, which cannot be called/)
      assert.equal(api.seen.length, before)
      const bare = await connect({ type: 'none' }, { headers: { 'X-Fixed': 'f', Cookie: 'a=b' } }, () => ({ authorization: 'Bearer mine' }))
      await bare.call('elsewhere')
      const { headers, url } = api.last()
      assert.deepEqual([url, headers.host, headers.authorization, headers['x-fixed'], headers.cookie],
        ['/other/elsewhere', `localhost:${api.port}`, undefined, undefined, undefined])
    }
  )

  await t.test('a description that is fetched chooses no other origin for what is configured', async () => {
    const away = `http://localhost:${api.port}`
    const describe = (servers: unknown, tokenUrl: string, operation: object = {}): void => {
      const flow = { type: 'oauth2', flows: { clientCredentials: { tokenUrl, scopes: {} } } }
      const described = { '/get': { get: { operationId: 'get', ...ok, ...operation } }, '/open': paths['/open'] }
      const document = openapi(described, { components: { securitySchemes: { flow } }, servers })
      api.at('/fetched.json', (_request, response) => { json(response, document) })
    }
    const url = `${api.url}/fetched.json`
    const bearer = { type: 'http', scheme: 'bearer', token: 'canary' }
    const configOf = (security: object, more: ServerConfig = {}): ServerConfig =>
      ({ type: 'openapi', url, headers: { 'X-Fixed': 'canary' }, ...more, openapi: { security, ...more.openapi } }) as ServerConfig
    const isTold = (): boolean => JSON.stringify(api.seen).includes('canary')
    api.seen.length = 0
    for (const server of [`${away}/v1`, `//localhost:${api.port}/v1`]) {
      describe([{ url: server }], '/token')
      await assert.rejects(restClient(t, configOf(bearer)), refused(/has the server http:\/\/localhost:\d+, .* set "url" to the address of the API/))
      const bare = await restClient(t, configOf({ type: 'none' }))
      await bare.call('get')
      assert.equal(api.last().headers.host, `localhost:${api.port}`)
      assert.ok(!isTold(), 'calls go there, configured headers do not')
      const word = await restClient(t, configOf(bearer, { url: `${away}/v1`, openapi: { url } }))
      await word.call('get')
      assert.deepEqual([api.last().headers.authorization, api.last().headers['x-fixed']], ['Bearer canary', 'canary'], "with an admin's word")
      api.seen.length = 0
    }
    describe([{ url: '/v1' }], '/token', { servers: [{ url: away }] })
    const one = await restClient(t, configOf(bearer))
    assert.equal((await one.call('get')).isError, true)
    await one.call('open')
    assert.deepEqual([api.seen.length, api.last().url, api.last().headers['x-fixed']], [1, '/v1/open', 'canary'])
    api.seen.length = 0
    describe([{ url: '/v1' }], `${away}/token`)
    const flowing = await restClient(t, configOf({ type: 'oauth2', clientId: 'id', clientSecret: 'canary' }, { headers: {} }))
    await assert.rejects(flowing.call('get'), refused(/needs a "tokenUrl": the description has none on the server's own origin/))
    assert.equal(api.seen.length, 0)
  })
  await t.test('configured headers go as UTF-8; one that cannot be sent is told of, and nothing is', async () => {
    const utf8 = (value: string | string[] | undefined): string => Buffer.from(String(value), 'latin1').toString()
    const client = await connect({ type: 'apiKey', name: 'X-K', in: 'header', value: 'ключ' },
      { headers: { 'X-B': 'ю', Cookie: 'c=ю', 'X-Latin': 'é' } })
    await client.call('get')
    const { headers } = api.last()
    assert.deepEqual([utf8(headers['x-k']), utf8(headers['x-b']), utf8(headers.cookie), headers['x-latin']], ['ключ', 'ю', 'c=ю', 'é'])
    await (await connect({ type: 'http', scheme: 'bearer', token: 'ключ' })).call('get')
    assert.equal(utf8(api.last().headers.authorization), 'Bearer ключ')
    api.at('/headers.json', (_request, response) => { json(response, schema) })
    await restClient(t, { url: `${api.url}/headers.json`, headers: { 'X-B': 'ю' } })
    const before = api.seen.length
    await assert.rejects(connect({ type: 'none' }, { headers: { 'X-Ключ': 'a' } }),
      refused(/"X-Ключ" is not a valid header name: check "headers" and "openapi.security"/))
    await assert.rejects(connect({ type: 'none' }, { headers: { 'X-A': 'a\nb' } }), refused(/the header "X-A" contains a control character/))
    for (const [security, says] of [
      [{ type: 'apiKey', name: 'X K', value: 'a' }, /"X K" is not a valid header name/],
      [{ type: 'http', scheme: 'bearer', token: 'a\rb' }, /"authorization" contains a control character/]
    ] as const) { await assert.rejects((await connect(security)).call('get'), refused(says)) }
    assert.equal(api.seen.length, before)
  })
  await t.test('without an address of its own, the description says where the API is, and that is trusted', async () => {
    const client = await connect({ type: 'http', scheme: 'bearer', token: 'tok' }, { url: undefined })
    await client.call('get')
    assert.equal(api.last().url, '/documented/get')
    await client.call('elsewhere')
    assert.equal(api.last().headers.authorization, 'Bearer tok')
  })
  await t.test('client credentials: fetched once for all, kept, renewed once on 401', async () => {
    let count = 0
    const asked: Seen[] = []
    let good = ''
    api.at('/token', (request, response) => {
      asked.push(request)
      good = `t${++count}`
      setTimeout(() => { json(response, { access_token: good, token_type: 'Bearer', expires_in: 3_600 }) }, 20)
    })
    api.answer(({ headers }, response) => {
      json(response, { auth: headers.authorization }, headers.authorization === `Bearer ${good}` ? 200 : 401)
    })
    const client = await connect({ type: 'oauth2', clientId: 'i d', clientSecret: 's:1', scopes: ['a', 'b'] })
    await Promise.all([client.call('get'), client.call('get'), client.call('get')])
    assert.equal(count, 1)
    assert.deepEqual([asked[0]?.method, asked[0]?.body.toString(), asked[0]?.headers.authorization],
      ['POST', 'grant_type=client_credentials&scope=a+b', `Basic ${Buffer.from('i+d:s%3A1').toString('base64')}`])
    good = 'revoked'
    const again = await Promise.all([client.call('get'), client.call('get')])
    assert.equal(count, 2)
    assert.deepEqual(again.map(({ structuredContent }) => structuredContent), [{ auth: 'Bearer t2' }, { auth: 'Bearer t2' }])
    api.answer((_request, response) => { json(response, {}, 401) })
    const before = api.seen.length
    assert.equal((await client.call('get')).isError, true)
    assert.deepEqual([count, api.seen.length - before], [3, 2])
    await client.call('open')
    assert.equal(api.last().headers.authorization, undefined)
  })
  await t.test('an endpoint that wants the secret in the body gets it there; a short-lived token is renewed in time', async () => {
    let count = 0
    const bodies: string[] = []
    api.at('/token', ({ headers, body }, response) => {
      bodies.push(body.toString())
      if (headers.authorization !== undefined) json(response, { error: 'invalid_client' }, 401)
      else json(response, { access_token: `b${++count}`, expires_in: '0' })
    })
    api.answer(({ headers }, response) => { json(response, { auth: headers.authorization }) })
    const client = await connect({ type: 'oauth2', tokenUrl: `${api.url}/token`, clientId: 'id', clientSecret: 'secret' })
    assert.deepEqual((await client.call('get')).structuredContent, { auth: 'Bearer b1' })
    assert.deepEqual((await client.call('get')).structuredContent, { auth: 'Bearer b2' })
    assert.deepEqual(bodies.map((body) => body.includes('client_secret=secret')), [false, true, true])
  })
  await t.test('OpenID Connect finds its token endpoint', async () => {
    api.at('/issuer/.well-known/openid-configuration', (_request, response) => { json(response, { token_endpoint: `${api.url}/token` }) })
    api.at('/token', (_request, response) => { json(response, { access_token: 'oidc' }) })
    api.answer(({ headers }, response) => { json(response, { auth: headers.authorization }) })
    const client = await connect({ type: 'openIdConnect', url: `${api.url}/issuer/`, clientId: 'id', clientSecret: 'secret' })
    assert.deepEqual((await client.call('get')).structuredContent, { auth: 'Bearer oidc' })
  })
  await t.test(
    'the description says what the configuration does not: relative to its first server, and of several schemes the one that it asks for',
    async () => {
      api.at('/v2/token', (_request, response) => { json(response, { access_token: 'relative' }) })
      api.at('/oidc/.well-known/openid-configuration', (_request, response) => {
        json(response, { token_endpoint: `${api.url}/v2/token` })
      })
      api.answer(({ headers, url }, response) => { json(response, { auth: headers.authorization ?? url }) })
      const of = async (security: object, securitySchemes: object): Promise<unknown> => {
        const document = openapi({ '/get': { get: op('get') } }, {
          servers: [{ url: '/v2/' }], components: { securitySchemes }, security: [{ asked: [] }]
        })
        const all = { clientId: 'id', clientSecret: 'secret', ...security }
        const client = await restClient(t, { url: `${api.url}/v1`, openapi: { schema: document, security: all } } as never)
        return (await client.call('get')).structuredContent
      }
      const flow = (tokenUrl: string): object => ({ type: 'oauth2', flows: { clientCredentials: { tokenUrl, scopes: {} } } })
      const oidc = { type: 'openIdConnect', openIdConnectUrl: '/oidc/.well-known/openid-configuration' }
      const key = (place: string, name: string): object => ({ type: 'apiKey', in: place, name })
      for (const [security, schemes, answer] of [
        ...['token', '/v2/token', `${api.url}/v2/token`].map((url) => [{ type: 'oauth2' }, { asked: flow(url) }, { auth: 'Bearer relative' }] as const),
        [{ type: 'openIdConnect' }, { asked: oidc }, { auth: 'Bearer relative' }],
        [{ type: 'oauth2' }, { other: flow('/nowhere'), asked: flow('token') }, { auth: 'Bearer relative' }],
        [{ type: 'apiKey', value: 'k' }, { other: key('header', 'x-other'), asked: key('query', 'key') }, { auth: '/v1/get?key=k' }]
      ] as const) assert.deepEqual(await of(security, schemes), answer, JSON.stringify(schemes))
    }
  )
  await t.test('no token: the error says what to check, and never what the endpoint said', async () => {
    api.at('/token', (_request, response) => { json(response, { error: 'invalid_client', error_description: 'leak' }, 400) })
    const client = await connect({ type: 'oauth2', clientId: 'id', clientSecret: 'secret' })
    for (let n = 0; n < 2; n++) {
      await assert.rejects(client.call('get'), (error: UpstreamError) => {
        assert.match(error.messageForClients, /^the gateway could not get credentials for it: .* find the reason in the log$/)
        assert.match(error.detail, /returned no token \(HTTP 400\): check "clientId"/)
        assert.doesNotMatch(error.detail, /leak|secret"?:/)
        return true
      })
    }
    assert.deepEqual(client.warnings, [`an operation could not be called: the token endpoint ${api.url.replace(/\/v1$/, '')}/token returned no token (HTTP 400): check "clientId", "clientSecret" and "scopes"`], 'logged once')
    const untrusted = await connect({ type: 'oauth2', clientId: 'id', clientSecret: 'secret', tokenUrl: 'http://169.254.169.254/latest' })
    await assert.rejects(untrusted.call('get'), refused(/token endpoint http:\/\/169\.254\.169\.254\/latest failed: .*to such addresses only if/))
  })
})

test('a parameter that the configuration sets is not an argument', async (t) => {
  const api = await restApi(t)
  const away = `http://localhost:${api.port}`
  const operations = (name: string, place: string): object => {
    const parameters = [{ name, in: place, required: true, schema: { type: 'string' } }]
    return {
      '/get': { get: op('get', parameters) },
      '/open': { get: op('open', parameters, { security: [] }) },
      '/away': { get: op('away', parameters, { servers: [{ url: away }] }) }
    }
  }
  const argumentsOf = async (schema: object, more: ServerConfig): Promise<object> => {
    const client = await restClient(t, { openapi: { schema }, ...more } as ServerConfig)
    await client.call('get', {})
    return Object.fromEntries([...await client.tools()].map(([name, { inputSchema }]) => [name, Object.keys(inputSchema.properties)]))
  }
  const servers = [{ url: api.url }]
  for (const [name, place, sent] of [['appid', 'query', '/get?appid=k'], ['X-Key', 'header', 'k'], ['sid', 'cookie', 'sid=k']] as const) {
    const schema = openapi(operations(name, place), { servers, components: { securitySchemes: { key: { type: 'apiKey', name, in: place } } } })
    const security = { type: 'apiKey' as const, value: 'k' }
    assert.deepEqual(await argumentsOf(schema, { openapi: { schema, security } }), { get: [], open: [name], away: [name] })
    const { url, headers } = api.last()
    assert.equal({ query: url, header: headers['x-key'], cookie: headers.cookie }[place], sent)
  }
  const schema = openapi(operations('X-Tenant', 'header'), { servers })
  const headers = { 'x-tenant': 'acme' }
  assert.deepEqual(await argumentsOf(schema, { headers }), { get: [], open: [], away: ['X-Tenant'] })
  assert.equal(api.last().headers['x-tenant'], 'acme')
  api.at('/fetched.json', (_request, response) => { json(response, openapi(operations('X-Tenant', 'header'), { servers: [{ url: away }] })) })
  const fetched = await restClient(t, { url: `${api.url}/fetched.json`, headers })
  assert.deepEqual((await fetched.tools()).get('get')?.inputSchema.required, ['X-Tenant'], 'the header is not sent there')
})

test('an argument brings no credential of the gateway into a header or a cookie', async (t) => {
  const api = await restApi(t)
  const parameter = (name: string, location: string, type: object = { type: 'string' }): object => ({ name, in: location, schema: type })
  const schema = openapi({
    '/get': { get: op('get', [parameter('X-Key', 'header'), parameter('list', 'cookie', { type: 'array', items: { type: 'string' } }), parameter('q', 'query')]) }
  }, { servers: [{ url: api.url }] })
  const client = await restClient(t, { type: 'openapi', openapi: { schema } } as ServerConfig)
  const secret = `thk_${'a1b2c3d4'.repeat(8)}`
  const before = api.seen.length
  for (const args of [
    { 'X-Key': secret }, { 'X-Key': `Basic ${Buffer.from(`u:${secret}`).toString('base64')}` }, { list: ['a', secret] }, { list: [`=${secret}`] }
  ]) {
    const { isError, content } = await client.call('get', args)
    assert.equal(isError, true)
    assert.match(content[0]?.text ?? '', /contains a credential of this gateway/)
  }
  assert.equal(api.seen.length, before, 'it was not called')
  await client.call('get', { 'X-Key': 'other', list: ['a'] })
  assert.equal(api.last().headers['x-key'], 'other')
})
