// What GET gave can be sent back by PUT: it changes nothing, and no mask takes the place of a secret.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { at, type Json } from '../helpers/client.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import { type Answer, canary, fine, list, MASK, NOTE, offers, refused, started, stored, STDIO } from '../helpers/management.ts'

/** A server of each kind, with every member that a config may have. @param secrets by what they are for */
function everyConfig (url: string, secrets: Readonly<Record<string, string>>): Record<string, Json> {
  const remote = new URL(url)
  remote.username = 'user'
  remote.password = secrets.user ?? ''
  remote.searchParams.set('api_key', secrets.query ?? '')
  return {
    remote: {
      type: 'streamable-http',
      url: remote.href,
      description: 'every member',
      headers: { Authorization: `Bearer ${secrets.header}`, 'X-Plain': 'plain', 'X-None': '', 'X-Variable': '${' + 'NAME}' },
      keepAliveInterval: 30_000,
      enableKeepAlive: false,
      enabled: false,
      visibility: 'public',
      sharedWithUsers: ['bob'],
      passthroughHeaders: ['x-tenant'],
      isolation: 'session',
      options: { timeout: 5_000, resetTimeoutOnProgress: false, maxTotalTimeout: 50_000 },
      proxy: { url: `http://me:${secrets.proxy}@127.0.0.1:9`, noProxy: '127.0.0.1' },
      oauth: {
        clientId: 'me',
        clientSecret: secrets.client,
        scopes: ['a', 'b'],
        redirectUri: 'https://hub.example.com/oauth/callback',
        resource: 'https://mcp.example.com',
        authorizationEndpoint: 'https://id.example.com/a',
        tokenEndpoint: 'https://id.example.com/t',
        dynamicRegistration: { enabled: false }
      },
      tools: { echo: { enabled: false, description: 'Ours' }, __proto: { enabled: true } },
      prompts: { greet: { enabled: false } },
      resources: { [NOTE]: { description: 'Ours', enabled: true } },
      ofAnotherVersion: { kept: ['yes'] }
    },
    live: { url, headers: { 'X-Api-Key': secrets.header } },
    local: {
      type: 'stdio',
      ...STDIO,
      args: [...STDIO.args, `--api-key=${secrets.arg}`, '--token', secrets.flag, '--verbose'],
      env: { API_TOKEN: secrets.env, PLAIN: 'plain' },
      cwd: '/',
      startOnDemand: true,
      idleTimeoutMs: 60_000,
      enabled: false,
      isolation: 'shared'
    },
    events: { type: 'sse', url, enabled: false, visibility: 'group' },
    rest: {
      type: 'openapi',
      url: 'https://api.example.com/v1',
      openapi: {
        url: `https://docs.example.com/openapi.json?api_key=${secrets.docs}`,
        security: { type: 'apiKey', name: 'x-key', in: 'header', value: secrets.apikey },
        passthroughHeaders: ['x-tenant']
      },
      enabled: false
    },
    inline: {
      type: 'openapi',
      openapi: {
        schema: {
          openapi: '3.0.3',
          info: { title: 'Small', version: '1' },
          servers: [{ url: `https://me:${secrets.inline}@api.example.com/v1` }],
          paths: {}
        },
        security: { type: 'http', http: { scheme: 'basic', username: 'me', password: secrets.pass } }
      },
      headers: { Authorization: `Bearer ${secrets.bearer}` },
      enabled: false
    }
  }
}

test('what GET gave, sent back by PUT, changes nothing', async (t) => {
  const fake = await startUpstream(t, offers)
  const secrets = Object.fromEntries(
    [
      'env', 'arg', 'flag', 'header', 'user', 'query', 'client', 'proxy', 'apikey', 'bearer', 'pass', 'llm', 'router',
      'db', 'docs', 'inline'
    ].map((what) => [what, canary(what)])
  )
  const { hub, admin } = await started(t, {}, {
    systemConfig: {
      auth: { betterAuth: { basePath: '/api/auth/better', providers: { oidc: { enabled: false } } } },
      fromElsewhere: { kept: [1, 2] },
      smartRouting: { ofAnotherVersion: true }
    }
  })
  const servers = everyConfig(fake.url, secrets)
  for (const [name, config] of Object.entries(servers)) await admin.add(name, config)

  for (const name of Object.keys(servers)) {
    await t.test(`server ${name}`, async () => {
      const before = await stored(hub)
      const shown = await admin.server(name)
      for (const [what, secret] of Object.entries(secrets)) assert.ok(!JSON.stringify(shown).includes(secret), `${what} is shown`)
      if (name === 'remote') {
        const { 'X-None': none, 'X-Variable': variable } = at(shown, 'config', 'headers') as Json
        assert.deepEqual([none, variable], ['', '${' + 'NAME}'], 'what is no secret is shown')
      }
      for (const body of [{ config: shown.config }, { ...shown }]) {
        const answer = await admin.ask('PUT', `/servers/${name}`, body)
        const record = fine(answer)
        assert.deepEqual(record.config, shown.config)
        assert.deepEqual((await admin.server(name)).config, shown.config)
        assert.deepEqual(await stored(hub), before)
      }
    })
  }

  await t.test('the server that was connected still is, on the connection it had', async () => {
    const connections = fake.count('initialize')
    await admin.ok('PUT', '/servers/live', { config: (await admin.server('live')).config })
    // On another connection, this would have come after its `initialize`.
    await admin.ok('POST', '/tools/call/live', { toolName: 'echo' })
    assert.deepEqual([(await admin.server('live')).status, fake.count('initialize')], ['connected', connections])
  })

  await t.test('groups', async () => {
    await admin.ok(
      'POST',
      '/groups',
      {
        name: 'mixed',
        description: 'of both',
        servers: ['live', { name: 'remote', tools: ['echo'], prompts: [], resources: 'all', alias: 'r' }]
      },
      201
    )
    await admin.ok('POST', '/groups', { name: 'bare' }, 201)
    for (const name of ['mixed', 'bare']) {
      const before = await stored(hub)
      const shown = await admin.ok('GET', `/groups/${name}`)
      assert.deepEqual(await admin.ok('PUT', `/groups/${name}`, shown), shown)
      assert.deepEqual(await admin.ok('GET', `/groups/${name}`), shown)
      assert.deepEqual(await stored(hub), before)
      const configs = list(await admin.ask('GET', `/groups/${name}/server-configs`))
      await admin.ok('PUT', `/groups/${name}/servers/batch`, { servers: configs })
      assert.deepEqual(await admin.ok('GET', `/groups/${name}`), shown)
    }
  })

  const system = {
    routing: { jsonBodyLimit: '2mb', bearerAuthHeaderName: 'X-Key' },
    install: { baseUrl: 'https://hub.example.com', npmRegistry: 'https://npm.example.com' },
    smartRouting: {
      enabled: false,
      dbUrl: `postgres://me:${secrets.db}@db.example.com/vectors`,
      llmProviderBaseUrl: 'https://llm.example.com/v1',
      llmProviderApiKey: secrets.llm,
      embeddingModel: 'small',
      embeddingDimensions: 256
    },
    mcpRouter: { apiKey: secrets.router, baseUrl: 'https://router.example.com', referer: 'https://hub.example.com', title: 'Hub' },
    oauthServer: { accessTokenLifetime: 60 },
    nameSeparator: '__'
  }

  await t.test('system configuration', async () => {
    for (const body of [undefined, system]) {
      if (body !== undefined) await admin.ok('PUT', '/system-config', body)
      const before = await stored(hub)
      const shown = await admin.system()
      for (const [what, secret] of Object.entries(secrets)) assert.ok(!JSON.stringify(shown).includes(secret), `${what} is shown`)
      assert.deepEqual(await admin.ok('PUT', '/system-config', shown), shown)
      assert.deepEqual(await admin.system(), shown)
      assert.deepEqual(at(await stored(hub), 'systemConfig', 'auth'), at(before, 'systemConfig', 'auth'))
      assert.deepEqual(await stored(hub), before)
    }
    assert.deepEqual(at(await stored(hub), 'systemConfig', 'fromElsewhere'), { kept: [1, 2] })
    for (const body of [{ fromElsewhere: { kept: [1, 2, 3] } }, { fromElsewhere: null }, { smartRouting: { ofAnotherVersion: false } }]) {
      refused(await admin.ask('PUT', '/system-config', body), 400, JSON.stringify(body))
    }
  })

  await t.test('the secrets are those that were given', async () => {
    const bare = JSON.stringify(fine(await admin.ask('GET', '/mcp-settings/export?includeSecrets=true')))
    for (const [what, secret] of Object.entries(secrets)) assert.ok(bare.includes(secret), `${what} is lost`)
  })

  await t.test('a mask that is sent to another target: 400', async () => {
    const shown = Object.fromEntries(
      await Promise.all(Object.keys(servers).map(async (name) => [name, (await admin.server(name)).config as Json] as const))
    )
    const other = 'http://127.0.0.1:9/other'
    const before = await stored(hub)
    for (const [what, name, config] of [
      ['url', 'live', { ...shown.live, url: other }],
      ['url with a masked password', 'remote', { ...shown.remote, url: String(shown.remote?.url).replace('/mcp', '/other') }],
      ['url on another host', 'remote', { ...shown.remote, url: String(shown.remote?.url).replace('127.0.0.1', '127.0.0.2') }],
      ['command', 'local', { ...shown.local, command: '/bin/cat' }],
      [
        'openapi.url',
        'rest',
        { ...shown.rest, openapi: { ...(shown.rest?.openapi as Json), url: 'https://evil.example.com/openapi.json' } }
      ],
      ['the API below openapi', 'rest', { ...shown.rest, url: 'https://evil.example.com/v1' }],
      ['a command in place of a url', 'live', { command: 'cat', env: shown.live?.headers }],
      [
        'a description in the config, beside the API',
        'rest',
        {
          ...shown.rest,
          openapi: {
            ...(shown.rest?.openapi as Json),
            schema: {
              openapi: '3.0.3',
              info: { title: 'x', version: '1' },
              paths: { '/x': { get: { servers: [{ url: 'https://evil.example.com' }], responses: {} } } }
            }
          }
        }
      ],
      ['a mask of another member', 'live', { ...shown.live, headers: { 'X-Other': at(shown.live, 'headers', 'X-Api-Key') } }],
      ['a mask that was never shown', 'live', { ...shown.live, headers: { 'X-Api-Key': `${MASK}zzzz` } }],
      [
        'proxy.url',
        'remote',
        { ...shown.remote, proxy: { url: String(at(shown.remote, 'proxy', 'url')).replace('127.0.0.1', 'evil.example.com') } }
      ],
      [
        'oauth.tokenEndpoint',
        'remote',
        { ...shown.remote, oauth: { ...(shown.remote?.oauth as Json), tokenEndpoint: 'https://evil.example.com/t' } }
      ]
    ] as [string, string, Json][]) { refused(await admin.ask('PUT', `/servers/${name}`, { config }), 400, what) }
    for (const [what, secretArgs, sentArgs] of [
      ['the other secret of two that look alike', ['--a-token', 'short1', '--b-password', 'short2'], ['--b-password', MASK]],
      ['the first of two goes', ['--verbose', '--a-token', 'short1', '--b-password', 'short2'], ['--a-token', MASK, '--b-password', MASK]],
      ['the same flag, once less', ['--token=short1', '--token=short2'], [`--token=${MASK}`]]
    ] as const) {
      await admin.ok('PUT', '/servers/local', { config: { ...servers.local, args: secretArgs } })
      refused(await admin.ask('PUT', '/servers/local', { config: { ...servers.local, args: sentArgs } }), 400, what)
    }
    await admin.ok('PUT', '/servers/local', {
      config: { ...servers.local, args: ['--port', '80', '--a-token', 'short1', '--b-password', 'short2', '--c'] }
    })
    await admin.ok('PUT', '/servers/local', {
      config: { ...servers.local, args: ['--port', '81', '--a-token', MASK, '--b-password', 'short3'] }
    })
    assert.deepEqual(at(await stored(hub), 'mcpServers', 'local', 'args'), [
      '--port', '81', '--a-token', 'short1', '--b-password', 'short3'
    ])
    await admin.ok('PUT', '/servers/local', { config: servers.local })
    for (const [name, config] of Object.entries(shown).filter(([, config]) => JSON.stringify(config).includes(MASK))) {
      refused(await admin.ask('POST', '/servers', { name: `${name}-copy`, config }), 400, name)
      const batch = await admin.ask('POST', '/servers/batch', { servers: [{ name: `${name}-copy`, config }] })
      assert.deepEqual([batch.status, at(batch.body, 'data', 'failureCount')], [400, 1], batch.text)
    }
    for (const body of [
      { smartRouting: { llmProviderBaseUrl: 'https://evil.example.com', llmProviderApiKey: `${MASK}${secrets.llm?.slice(-4)}` } },
      { mcpRouter: { baseUrl: 'https://evil.example.com', apiKey: `${MASK}${secrets.router?.slice(-4)}` } },
      { smartRouting: { llmProviderBaseUrl: 'https://evil.example.com' } },
      { mcpRouter: { baseUrl: 'https://evil.example.com' } },
      { mcpRouter: { baseUrl: null } },
      { mcpRouter: { apiKey: `${MASK}zzzz` } },
      { smartRouting: { dbUrl: String(at(await admin.system(), 'smartRouting', 'dbUrl')).replace('db.example.com', 'evil.example.com') } }
    ]) refused(await admin.ask('PUT', '/system-config', body), 400, JSON.stringify(body))
    assert.deepEqual(await stored(hub), before, 'and nothing of it is stored')
  })

  await t.test('a mask on a name of one\'s own: 400', async () => {
    refused(await admin.ask('PUT', '/servers/events', { config: { ...servers.events, headers: { Authorization: `${MASK}abcd` } } }), 400)
    await admin.ok('PUT', '/system-config', { mcpRouter: { apiKey: null, baseUrl: 'https://router.example.com' } })
    refused(await admin.ask('PUT', '/system-config', { mcpRouter: { apiKey: `${MASK}${secrets.router?.slice(-4)}` } }), 400)
  })
  await t.test('dots in texts for people are not masks', async () => {
    const text = `Cards are shown as ${MASK} 4242`
    const schema = (url: string): Json => ({ openapi: '3.0.3', info: { title: 'x', version: '1', description: text }, servers: [{ url }], paths: {} })
    const off = { enabled: false, visibility: 'private' }
    const configs = [schema('http://127.0.0.1:9/v1'), JSON.stringify(schema('http://127.0.0.1:9/v1'))].map((each) =>
      ({ ...off, type: 'openapi', openapi: { schema: each }, description: text, tools: { pay: { enabled: true, description: text } } }))
    for (const config of configs) {
      await admin.ok('POST', '/servers', { name: 'cards', config })
      await admin.ok('PUT', '/servers/cards', { config: { ...config, description: `${text}, always` } })
      assert.deepEqual(at(await stored(hub), 'mcpServers', 'cards', 'openapi', 'schema'), config.openapi.schema)
      await admin.ok('DELETE', '/servers/cards')
    }
    for (const url of [`http://127.0.0.1:9/v1?key=${MASK}`, `http://${MASK}@127.0.0.1:9/v1`, `${MASK}mple`]) {
      for (const each of [schema(url), JSON.stringify(schema(url))]) {
        refused(await admin.ask('POST', '/servers', { name: 'cards', config: { ...off, type: 'openapi', openapi: { schema: each } } }), 400, url)
      }
    }
    refused(await admin.ask('POST', '/servers', { name: 'cards', config: { ...off, url: 'http://127.0.0.1:9/', description: `http://${MASK}@h` } }), 400)
  })
  await t.test('a key that is stored first is for the first address', async () => {
    await admin.ok('PUT', '/system-config', { mcpRouter: null, smartRouting: null })
    for (const [section, key, address] of [
      ['mcpRouter', 'apiKey', 'baseUrl'], ['smartRouting', 'llmProviderApiKey', 'llmProviderBaseUrl']
    ] as const) {
      await admin.ok('PUT', '/system-config', { [section]: { [key]: 'canary-of-a-first-key' } })
      await admin.ok('PUT', '/system-config', { [section]: { [address]: 'https://first.example.com' } })
      refused(await admin.ask('PUT', '/system-config', { [section]: { [address]: 'https://second.example.com' } }), 400)
    }
  })
})

test('an owner without admin rights does not change what a command does with secrets that an admin stored', async (t) => {
  const run = { ...STDIO, env: { K: canary('env'), PLAIN: '' }, owner: 'bob', enabled: false }
  const { admin, bob } = await started(t, { filed: run }, {}, { env: { ALLOW_USER_STDIO: 'true' } })
  await admin.ok('POST', '/servers', { name: 'run', config: run })
  const put = async (by: typeof bob, name: string, change: Json): Promise<Answer> =>
    await by.ask('PUT', `/servers/${name}`, { config: { ...(await by.server(name)).config as Json, ...change } })
  for (const name of ['run', 'filed']) {
    fine(await put(bob, name, { description: 'Mine now' }))
    const env = at((await bob.server(name)).config, 'env') as Json
    for (const change of [{ args: ['-e', '1'] }, { cwd: '/tmp' }, { env: { ...env, PATH: '/tmp' } }, { env: { K: env.K } }]) {
      const answer = await put(bob, name, change)
      refused(answer, 400, JSON.stringify(change))
      assert.match(answer.text, /that others stored must be sent again/)
      refused(await bob.ask('POST', '/servers/test', { name, config: { ...(await bob.server(name)).config as Json, ...change } }), 400)
    }
    fine(await put(admin, name, { cwd: '/' }))
    refused(await put(bob, name, { cwd: '/tmp' }), 400, 'after a change by an admin')
    fine(await put(bob, name, { cwd: '/tmp', env: { K: canary('own') } }))
    fine(await put(bob, name, { args: [...STDIO.args, '--verbose'], cwd: '/' }))
  }
})
