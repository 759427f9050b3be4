// The system configuration by the management API: every key, what is refused, and what takes effect at once.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'tap'
import { at, initialize, KEY, names, send, Session, text, type Json } from '../helpers/client.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import { until } from '../helpers/hub.ts'
import { Api, fine, list, MASK, offers, onDisk, refused, started, type Answer } from '../helpers/management.ts'

interface Key { good: unknown[], bad: unknown[], value?: unknown, secret?: boolean }

const flag = (value?: boolean): Key => ({ good: [true, false], bad: ['true', 1, 0, [], {}], value })
const words = (...good: string[]): Key => ({ good, bad: [7, true, [], {}] })
/** @param max the largest that is taken */
const count = (value?: number, max?: number): Key => ({
  good: [1, max ?? 5_000], bad: ['7', -1, 1.5, true, [], {}, ...(max === undefined ? [] : [max + 1])], value
})

/** Every key of the specification; `value`: its default. */
const keys: Record<string, Key> = {
  'routing.enableGlobalRoute': flag(true),
  'routing.enableGroupNameRoute': flag(true),
  'routing.enableBearerAuth': flag(true),
  'routing.bearerAuthHeaderName': {
    good: ['X-Key', 'x-mcp-token'], bad: [7, true, '', 'two words', 'a:b', 'a\nb', [], {}], value: 'Authorization'
  },
  'routing.jsonBodyLimit': {
    good: ['512kb', '2mb', '100000b', '10MB', '1.5 Mb', '2048.7'],
    bad: [7, true, 'big', '-1mb', '', '1.5.5mb', [], {}],
    value: '1mb'
  },
  'routing.skipAuth': flag(false),
  'install.pythonIndexUrl': words('https://pypi.example.com/simple'),
  'install.npmRegistry': { ...words('https://npm.example.com'), bad: [7, 'npm', 'https://npm.example.com/\n--evil'] },
  'install.baseUrl': {
    ...words('https://hub.example.com', 'https://hub.example.com/a/@b'),
    bad: [7, 'https://u:word@hub.example.com/', 'https://hub.example.com/?x=1', 'https://hub.example.com/#x', 'ftp://hub.example.com']
  },
  'smartRouting.enabled': flag(true),
  'smartRouting.dbUrl': {
    ...words('postgres://db.example.com/vectors', 'postgresql://db.example.com/v', 'pglite://vectors'),
    bad: [7, 'mysql://db.example.com/vectors', 'vectors'],
    secret: true
  },
  'smartRouting.llmProviderBaseUrl': words('https://llm.example.com/v1'),
  'smartRouting.llmProviderApiKey': { ...words('sk-a-long-key-of-an-embeddings-api'), secret: true },
  'smartRouting.embeddingModel': words('small', 'large'),
  'smartRouting.embeddingDimensions': count(),
  'smartRouting.embeddingDimensionsApiPassthrough': flag(false),
  'smartRouting.progressiveDisclosure': flag(false),
  'toolResultCompression.enabled': flag(false),
  'toolResultCompression.minTokens': count(2_000),
  'toolResultCompression.maxOutputTokens': count(1_200),
  'toolResultCompression.structuredContent': flag(false),
  'toolResultCompression.strategy': {
    good: ['json', 'log', 'search', 'diff', 'text', 'auto'], bad: ['fast', '', 7, true, []], value: 'auto'
  },
  'mcpRouter.apiKey': { ...words('sk-a-long-key-of-a-router'), secret: true },
  'mcpRouter.referer': words('https://hub.example.com'),
  'mcpRouter.title': words('Hub'),
  'mcpRouter.baseUrl': words('https://router.example.com'),
  nameSeparator: { good: ['_', '::', '12345678', '-'], bad: ['', ' ', 'a b', '123456789', 'é', '\n', 7, true, []], value: '-' },
  enableSessionRebuild: flag(false),
  'oauthServer.enabled': flag(false),
  'oauthServer.accessTokenLifetime': count(3_600, 86_400),
  'oauthServer.refreshTokenLifetime': count(1_209_600, 31_536_000),
  'oauthServer.authorizationCodeLifetime': count(60, 600),
  'oauthServer.requireClientSecret': flag(false),
  'oauthServer.allowedScopes': { good: [['mcp'], ['mcp', 'manage']], bad: ['mcp', ['a b'], {}], value: ['mcp', 'manage', 'profile', 'openid'] },
  'oauthServer.requireState': flag(false),
  'oauthServer.dynamicRegistration.enabled': flag(true),
  'oauthServer.dynamicRegistration.allowedGrantTypes': {
    good: [['authorization_code']], bad: ['authorization_code', ['implicit'], {}], value: ['authorization_code', 'refresh_token']
  },
  'oauthServer.dynamicRegistration.requiresAuthentication': flag(false)
}

/** A body that says just this. */
const saying = (key: string, value: unknown): Json =>
  key.split('.').reduceRight<unknown>((inner, part) => ({ [part]: inner }), value) as Json

test('install.baseUrl is kept, and the answer says that BASE_URL takes precedence', async (t) => {
  const { admin } = await started(t, {}, {}, { env: { BASE_URL: 'https://hub.example.com' } })
  const message = async (body: unknown): Promise<unknown> => {
    const answer = await admin.ask('PUT', '/system-config', body)
    assert.equal(answer.status, 200, answer.text)
    return at(answer.body, 'message')
  }
  assert.match(String(await message({ install: { baseUrl: 'https://other.example.com' } })), /"install.baseUrl" has no effect.*BASE_URL/)
  for (const baseUrl of ['https://hub.example.com', null]) assert.doesNotMatch(String(await message({ install: { baseUrl } })), /BASE_URL/)
  assert.doesNotMatch(String(await message({ install: { npmRegistry: 'https://npm.example.com' } })), /BASE_URL/)
})

test('the system configuration', async (t) => {
  const fake = await startUpstream(t, offers)
  const { hub, admin, bob } = await started(t)
  await admin.add('alpha', { url: fake.url })
  const put = async (body: unknown): Promise<Answer> => await admin.ask('PUT', '/system-config', body)
  const value = async (key: string): Promise<unknown> => at(await admin.system(), ...key.split('.'))

  await t.test('every key: what it takes, what not, its default, and null to have it back', async () => {
    for (const [key, { good, bad, value: usual, secret }] of Object.entries(keys)) {
      assert.deepEqual(await value(key), usual, `the default of ${key}`)
      for (const one of good) {
        const answer = await put(saying(key, one))
        const shown = at(fine(answer), ...key.split('.'))
        assert.deepEqual(await value(key), shown, key)
        if (secret !== true || !JSON.stringify(shown).includes(MASK)) assert.deepEqual(shown, one, key)
        else assert.ok(!answer.text.includes(String(one)), `${key} is shown`)
      }
      const before = await onDisk(hub)
      for (const one of bad) refused(await put(saying(key, one)), 400, `${key} = ${JSON.stringify(one)}`)
      assert.deepEqual(await onDisk(hub), before)
      fine(await put(saying(key, null)))
      assert.deepEqual(await value(key), usual, `${key} after null`)
    }
  })

  await t.test('what is absent stays, in the section and beside it, nested as well', async () => {
    fine(
      await put({
        install: { baseUrl: 'https://hub.example.com' },
        toolResultCompression: { minTokens: 100, strategy: 'log' },
        oauthServer: { dynamicRegistration: { enabled: false, requiresAuthentication: true } },
        nameSeparator: '_'
      })
    )
    fine(await put({ toolResultCompression: { minTokens: 200 } }))
    fine(await put({ oauthServer: { requireState: true } }))
    fine(await put({ install: {} }))
    const now = await admin.system()
    assert.deepEqual(
      [
        at(now, 'install', 'baseUrl'),
        at(now, 'toolResultCompression', 'minTokens'),
        at(now, 'toolResultCompression', 'strategy'),
        at(now, 'oauthServer', 'requireState'),
        at(now, 'oauthServer', 'dynamicRegistration', 'requiresAuthentication'),
        now.nameSeparator
      ],
      ['https://hub.example.com', 200, 'log', true, true, '_']
    )
    fine(await put({ toolResultCompression: null, install: null, oauthServer: null, nameSeparator: null }))
    const reset = await admin.system()
    assert.deepEqual(
      [reset.toolResultCompression, reset.install, at(reset, 'oauthServer', 'requireState'), reset.nameSeparator],
      [{ enabled: false, minTokens: 2_000, maxOutputTokens: 1_200, strategy: 'auto', structuredContent: false }, {}, false, '-']
    )
  })

  await t.test('what is not taken: unknown, nothing, the flat body of before, or half of it wrong', async () => {
    const before = await onDisk(hub)
    for (const body of [
      {},
      { unknown: true },
      { routing: { unknown: true } },
      { oauthServer: { dynamicRegistration: { unknown: true } } },
      { auth: { betterAuth: { basePath: '/x' } } },
      { apiKey: 'sk-1', model: 'x', temperature: 1, maxTokens: 100 },
      { openaiApiKey: 'sk-1' },
      { temperature: 0.5 },
      { nameSeparator: '_', unknown: true },
      { nameSeparator: '_', routing: { skipAuth: 'yes' } },
      { systemConfig: { nameSeparator: '_' } },
      [{ nameSeparator: '_' }]
    ]) { refused(await put(body), 400, JSON.stringify(body)) }
    for (const raw of ['{"__proto__":{"nameSeparator":"_"}}', '{"constructor":{}}', '{"routing":{"__proto__":{"skipAuth":true}}}']) {
      const answer = await admin.ask('PUT', '/system-config', undefined, { raw, headers: { 'content-type': 'application/json' } })
      refused(answer, 400, raw)
    }
    refused(await bob.ask('PUT', '/system-config', { nameSeparator: '_' }), 403)
    assert.deepEqual(await onDisk(hub), before)
  })

  await t.test('a section that is no object, what a pattern wants in words', async () => {
    for (const section of ['routing', 'install', 'smartRouting', 'toolResultCompression', 'mcpRouter', 'oauthServer']) {
      for (const value of [[], 7, 'text']) refused(await put({ [section]: value }), 400, section)
    }
    assert.match((await put({ routing: { bearerAuthHeaderName: 'a b' } })).text, /expected the name of an HTTP header, without a colon or spaces/)
  })

  await t.test('the older names of the embeddings API are understood', async () => {
    fine(
      await put({
        smartRouting: {
          openaiApiBaseUrl: 'https://old.example.com/v1',
          openaiApiKey: 'sk-of-the-older-name-1234',
          openaiApiEmbeddingModel: 'older'
        }
      })
    )
    const shown = await value('smartRouting')
    assert.deepEqual([at(shown, 'llmProviderBaseUrl'), at(shown, 'llmProviderApiKey'), at(shown, 'embeddingModel')],
      ['https://old.example.com/v1', `${MASK}1234`, 'older'])
    fine(await put({ smartRouting: null }))
  })

  await t.test('nameSeparator: the names of lists at once, told to open sessions', async () => {
    const session = await Session.open(`${hub.url}/mcp`)
    const stream = await session.listen()
    assert.ok((await session.tools()).includes('alpha-echo'))
    for (const separator of ['__', '::', null]) {
      const seen = stream.messages.length
      const answer = await put({ nameSeparator: separator })
      fine(answer)
      assert.equal(/"nameSeparator": "::" becomes "_" in names/.test(String(at(answer.body, 'message'))), separator === '::')
      const shown = `alpha${separator === '::' ? '_' : separator ?? '-'}echo`
      await until(() => stream.messages.slice(seen).some(({ method }) => method === 'notifications/tools/list_changed'),
        `no news of ${String(separator)}`)
      assert.ok((await session.tools()).includes(shown), shown)
      for (const name of [shown, `alpha${separator ?? '-'}echo`]) {
        assert.equal(text(await session.call(name, { message: 'named' })), 'named')
        assert.equal(text(await admin.ok('POST', '/tools/call/alpha', { toolName: name, arguments: { message: 'by REST' } })), 'by REST')
      }
    }
    stream.close()
  })

  const opened = async (route: string, key: string | null = KEY, headers: Record<string, string> = {}): Promise<number> =>
    (await send(`${hub.url}${route}`, { key, headers, body: initialize() })).status

  await t.test('enableBearerAuth, bearerAuthHeaderName', async () => {
    assert.deepEqual([await opened('/mcp', null), await opened('/mcp')], [401, 200])
    fine(await put({ routing: { bearerAuthHeaderName: 'X-Hub-Key' } }))
    assert.deepEqual(
      [
        await opened('/mcp'),
        await opened('/mcp', null, { 'x-hub-key': KEY }),
        await opened('/mcp', null, { 'X-HUB-KEY': `Bearer ${KEY}` })
      ],
      [401, 200, 200]
    )
    for (const headers of [{ 'x-hub-key': KEY }, { authorization: `Bearer ${KEY}` }] as Record<string, string>[]) {
      assert.equal((await new Api(hub, headers).ask('GET', '/servers')).status, 200)
    }
    fine(await put({ routing: { bearerAuthHeaderName: null, enableBearerAuth: false } }))
    assert.deepEqual([await opened('/mcp', null), await opened('/mcp')], [200, 200])
    assert.equal((await new Api(hub).ask('GET', '/servers')).status, 401, 'MCP only')
    fine(await put({ routing: { enableBearerAuth: null } }))
    assert.equal(await opened('/mcp', null), 401)
  })

  await t.test('jsonBodyLimit, larger and smaller', async () => {
    const call = async (size: number): Promise<number[]> => {
      const rest = await admin.ask('POST', '/tools/call/alpha', { toolName: 'echo', arguments: { message: 'x'.repeat(size) } })
      if (rest.status === 413) refused(rest, 413)
      const mcp = await send(`${hub.url}/mcp/alpha`, { body: { ...initialize(), padding: 'x'.repeat(size) } })
      return [rest.status, mcp.status]
    }
    assert.deepEqual([await call(500_000), await call(1_100_000)], [[200, 200], [413, 413]])
    fine(await put({ routing: { jsonBodyLimit: '3mb' } }))
    assert.deepEqual([await call(2_500_000), await call(3_300_000)], [[200, 200], [413, 413]])
    fine(await put({ routing: { jsonBodyLimit: '10kb' } }))
    assert.deepEqual([await call(5_000), await call(20_000)], [[200, 200], [413, 413]])
    fine(await put({ routing: { jsonBodyLimit: '0.5MB' } }))
    assert.deepEqual([await call(500_000), await call(600_000)], [[200, 200], [413, 413]])
    fine(await put({ routing: { jsonBodyLimit: null } }))
    assert.deepEqual(await call(500_000), [200, 200])
  })

  await t.test('a limit that would lock everybody out is refused, or can be taken back', async () => {
    for (const jsonBodyLimit of ['0', '0mb', '1b', '10b']) {
      const answer = await put({ routing: { jsonBodyLimit } })
      if (answer.status === 200) fine(await put({ routing: { jsonBodyLimit: null } }))
      else refused(answer, 400, jsonBodyLimit)
    }
  })

  await t.test('skipAuth: a guest who is an admin, on the API only', async () => {
    const nobody = new Api(hub)
    assert.equal((await nobody.ask('GET', '/servers')).status, 401)
    fine(await put({ routing: { skipAuth: true } }))
    assert.deepEqual(names(list(await nobody.ask('GET', '/servers'))), ['alpha'])
    const guest = await nobody.ask('GET', '/auth/user')
    assert.deepEqual([at(guest.body, 'user', 'username'), at(guest.body, 'user', 'isAdmin')], ['guest', true])
    assert.equal(at(await (await fetch(`${hub.url}/public-config`)).json(), 'data', 'skipAuth'), true)
    assert.equal((await nobody.ask('GET', '/mcp-settings/export')).status, 200)
    refused(await nobody.ask('GET', '/mcp-settings/export?includeSecrets=true'), 403)
    assert.equal(await opened('/mcp', null), 401)
    await nobody.ok('PUT', '/system-config', { routing: { skipAuth: false } })
    assert.equal((await nobody.ask('GET', '/servers')).status, 401)
    assert.equal(at(await (await fetch(`${hub.url}/public-config`)).json(), 'data', 'skipAuth'), false)
  })

  await t.test('bearerAuthKey on a gateway with keys is ignored; without keys it becomes one, and the answer and the log say what it opens', async (t) => {
    const made = 'a-key-that-a-client-made-up'
    for (const hasKeys of [true, false]) {
      const { hub, admin } = await started(t, {}, hasKeys ? {} : { bearerKeys: [] })
      const answer = await admin.ask('PUT', '/system-config', { routing: { enableBearerAuth: true, bearerAuthKey: made } })
      fine(answer)
      assert.ok(!answer.text.includes(made), answer.text)
      assert.ok(!JSON.stringify(await admin.system()).includes(made))
      assert.match(String(at(answer.body, 'message')),
        hasKeys ? /"routing\.bearerAuthKey" was ignored/ : /management API with admin rights\. To limit it/)
      const status = async (): Promise<number> => (await send(`${hub.url}/mcp`, { key: made, body: initialize() })).status
      assert.equal(await status(), hasKeys ? 401 : 200)
      assert.equal(/management API with admin rights/.test(hub.output()), !hasKeys)
      const keyNames = list(await admin.ask('GET', '/auth/keys')).map(({ name }) => name)
      assert.equal(keyNames.includes('default'), !hasKeys)
      assert.ok(!(await readFile(hub.settingsPath, 'utf8')).includes(made))
      // Once only, whether keys are left or not.
      const again = await admin.ask('PUT', '/system-config', { routing: { bearerAuthKey: `${made}-again` } })
      fine(again)
      assert.match(String(at(again.body, 'message')), /"routing\.bearerAuthKey" was ignored/)
      assert.deepEqual(list(await admin.ask('GET', '/auth/keys')).map(({ name }) => name), keyNames)
      fine(await admin.ask('PUT', '/system-config', { routing: { bearerAuthKey: null } }))
    }
  })

  await t.test('bearerAuthKey that is edited into the file of a running gateway, too', async (t) => {
    const { hub, admin } = await started(t)
    const old = 'the-one-key-that-somebody-wrote-down'
    await writeFile(hub.settingsPath, JSON.stringify({ ...await onDisk(hub), systemConfig: { routing: { bearerAuthKey: old } } }))
    await until(async () => (await send(`${hub.url}/mcp`, { key: old, body: initialize() })).status === 200, () => hub.output())
    await until(async () => !(await readFile(hub.settingsPath, 'utf8')).includes(old))
    assert.ok(list(await admin.ask('GET', '/auth/keys')).some(({ name }) => name === 'default'))
  })
})
