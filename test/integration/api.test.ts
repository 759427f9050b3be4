// The management API from outside, on one gateway; api/ has its routes one by one.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import bcrypt from 'bcryptjs'
import { limits } from '../../plugins/limits/index.ts'
import { Refusal, startUpstream, tool } from '../fakes/fault-http.ts'
import { assertPlain, at, connected, initialize, names, plain, send, Session, settings, text, within, type Json, type Message } from '../helpers/client.ts'
import { bearerKey, startHub, until } from '../helpers/hub.ts'
import {
  PASSWORD, MASK, STDIO, transcript, ask, Api, fine, refused, onDisk, configOnDisk, records, type Answer
} from '../helpers/management-client.ts'
import { setLimits } from '../helpers/patient.ts'

/** Routes of every kind. */
const lost = [
  ['GET', '/api/auth/user'], ['GET', '/api/auth/keys'], ['POST', '/api/auth/keys'], ['DELETE', '/api/auth/keys/{id}'],
  ['GET', '/api/servers'], ['POST', '/api/servers'], ['GET', '/api/servers/{name}'], ['PUT', '/api/servers/{name}'],
  ['DELETE', '/api/servers/{name}'], ['POST', '/api/servers/{name}/toggle'], ['POST', '/api/servers/{name}/reload'],
  ['GET', '/api/groups'], ['POST', '/api/groups'], ['GET', '/api/groups/{id}'], ['PUT', '/api/groups/{id}'],
  ['DELETE', '/api/groups/{id}'], ['POST', '/api/tools/call/{server}']
] as const

test('the management API', async (t) => {
  const fake = await startUpstream(t, {
    tools: [
      tool('echo', { title: 'Echo', annotations: { readOnlyHint: true }, outputSchema: { type: 'object' } }),
      tool('fail'),
      tool('two-words'),
      tool('typed', {
        inputSchema: {
          type: 'object',
          properties: {
            n: { type: 'integer' },
            x: { type: 'number' },
            b: { type: 'boolean' },
            list: { type: 'array', items: { type: 'string' } },
            o: { type: 'object' },
            s: { type: 'string' }
          }
        }
      })
    ],
    prompts: [{ name: 'greet', description: 'Greets' }],
    resources: [{ name: 'note', uri: 'fault://note' }],
    on ({ method, params }) {
      if (method !== 'tools/call') return undefined
      if (params.name === 'fail') return { content: [{ type: 'text', text: 'it failed' }], isError: true }
      if (params.name === 'typed') {
        return { content: [{ type: 'text', text: JSON.stringify(params.arguments) }], structuredContent: { seen: params.arguments } }
      }
      return undefined
    }
  })
  const hub = await startHub(t, { env: { ADMIN_PASSWORD: PASSWORD, LOG_LEVEL: 'debug' } })
  const admin = await Api.login(hub)
  const url = `${hub.url}/mcp`
  const created = await admin.ok('POST', '/auth/keys', { name: 'main', accessType: 'all' }, 201)
  const KEYED = String(created.token)
  const secrets = new Set([PASSWORD, admin.token])
  const newKey = async (body: Json): Promise<{ id: string, token: string, record: Json }> => {
    const record = await admin.ok('POST', '/auth/keys', body, 201)
    secrets.add(String(record.token))
    return { id: String(record.id), token: String(record.token), record }
  }
  await admin.add('fake', { type: 'streamable-http', url: fake.url, description: 'the fake one' })
  await admin.has('fake', 'connected')

  const never = await startUpstream(t, { on: ({ method }) => method === 'initialize' ? 'never' : undefined })
  await admin.add('never', { url: never.url })

  await t.test('keys: made, shown once, listed masked', async () => {
    const answer = await admin.ask('POST', '/auth/keys', { name: 'first', accessType: 'all' })
    const record = fine(answer, 201)
    const token = String(record.token)
    secrets.add(token)
    transcript.pop()
    assert.equal(typeof at(answer.body, 'message'), 'string')
    assert.match(token, /^thk_[0-9a-f]{64}$/)
    assert.match(String(record.id), /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
    assert.deepEqual(
      [record.name, record.kind, record.accessType, record.enabled, record.allowedGroups, record.allowedServers],
      ['first', 'system', 'all', true, [], []]
    )
    assert.equal(record.createdBy, 'admin')
    assert.ok(!Number.isNaN(new Date(String(record.createdAt)).getTime()), JSON.stringify(record))
    const all = records(await admin.ask('GET', '/auth/keys'))
    const listed = all.find((key) => key.id === record.id)
    assert.equal(listed?.token, `${token.slice(0, 8)}...${token.slice(-4)}`)
    assert.deepEqual([listed?.name, listed?.kind, listed?.accessType, listed?.enabled], ['first', 'system', 'all', true])
    for (const key of all) assert.match(String(key.token), /^thk_[0-9a-f]{4}\.\.\.[0-9a-f]{4}$/)
    assert.equal((await Api.key(hub, token).ask('GET', '/servers')).status, 200)
    const second = await newKey({ name: 'first' })
    assert.notEqual(second.token, token)
    transcript.pop()
  })

  await t.test('keys: who opens what', async () => {
    const scoped = await newKey({ name: 'scoped', accessType: 'servers', allowedServers: ['fake'] })
    transcript.pop()
    const users = await newKey({ name: 'user', kind: 'user', owner: 'admin' })
    transcript.pop()
    assert.deepEqual(
      [scoped.record.accessType, scoped.record.allowedServers, users.record.kind, users.record.owner],
      ['servers', ['fake'], 'user', 'admin']
    )
    for (const { token } of [scoped, users]) {
      refused(await Api.key(hub, token).ask('GET', '/servers'), 401)
      refused(await Api.key(hub, token).ask('GET', '/auth/user'), 401)
    }
    assert.equal((await send(`${url}/fake`, { key: scoped.token, body: initialize() })).status, 200)
    assert.equal((await send(`${url}/never`, { key: scoped.token, body: initialize() })).status, 403)
    assert.equal((await send(url, { key: scoped.token, body: initialize() })).status, 403)
    assert.equal((await send(url, { key: users.token, body: initialize() })).status, 200)
    const system = Api.key(hub, KEYED)
    assert.equal(at((await system.ask('GET', '/auth/user')).body, 'user', 'isAdmin'), true)
    await system.add('by-key', { url: fake.url, enabled: false })
    assert.equal(at(await system.server('by-key'), 'config', 'owner'), 'admin')
    assert.equal(
      (await ask(hub, 'GET', '/api/servers', { headers: { authorization: `bearer ${KEYED}` } })).status,
      200,
      'the scheme has no case'
    )
  })

  await t.test('keys: deleted, they are worth nothing at once, and what they opened ends', async () => {
    const key = await newKey({ name: 'short-lived' })
    transcript.pop()
    const session = await Session.open(url, { key: key.token })
    const stream = await session.listen()
    assert.equal(stream.status, 200)
    const answer = await admin.ask('DELETE', `/auth/keys/${key.id}`)
    fine(answer)
    assert.ok(!('data' in (answer.body as Json)), answer.text)
    assert.equal((await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).status, 401)
    assert.equal((await send(url, { key: key.token, body: initialize() })).status, 401)
    refused(await Api.key(hub, key.token).ask('GET', '/servers'), 401)
    await within('the end of the stream', stream.done)
    refused(await admin.ask('DELETE', `/auth/keys/${key.id}`), 404)
    for (const id of ['nope', '__proto__', '00000000-0000-4000-8000-000000000000']) {
      refused(await admin.ask('DELETE', `/auth/keys/${id}`), 404, id)
    }
    assert.ok(!records(await admin.ask('GET', '/auth/keys')).some(({ id }) => id === key.id))
    const other = await Session.open(url, { key: KEYED })
    assert.ok((await other.tools()).includes('fake-echo'), 'other keys still work')
  })

  await t.test('servers: the record has all that its upstream says of a tool', async () => {
    assert.deepEqual(at(await admin.server('fake'), 'tools', 0), {
      name: 'echo',
      title: 'Echo',
      description: 'The tool echo',
      inputSchema: { type: 'object' },
      outputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
      enabled: true
    })
  })

  await t.test('servers: create answers at once with the record, enabled by default', async () => {
    const answer = await admin.ask('POST', '/servers', { name: 'child', config: STDIO })
    const record = fine(answer)
    assert.equal(typeof at(answer.body, 'message'), 'string')
    assert.equal(record.name, 'child')
    assert.ok(['connecting', 'connected'].includes(String(record.status)), answer.text)
    assert.equal(at(record, 'config', 'command'), STDIO.command)
    assert.deepEqual(at(record, 'config', 'args'), STDIO.args)
    const now = await admin.has('child', 'connected')
    assert.ok(names(now.tools).includes('pid'))
    assert.equal(at(await onDisk(hub), 'mcpServers', 'child', 'command'), STDIO.command)
    const off = await admin.add('off', { ...STDIO, enabled: false })
    assert.deepEqual([off.status, off.tools, at(off, 'config', 'enabled')], ['disabled', [], false])
  })

  await t.test('servers: names', async () => {
    const config = { url: fake.url, enabled: false }
    for (const name of [
      ' lead', 'trail ', 'a\u0000b', 'a\nb', '😀', 'a?b', 'a%b', 'a#b', 'a\\b', '<b>', {}, undefined, 'constructor', 'prototype',
      'hasOwnProperty', 'valueOf', 'isPrototypeOf', 'openapi', 'servers', 'stats', 'batch', 'group', 'groups', 'mcp', 'sse',
      'messages', 'api', 'oauth', 'tools', 'prompts', 'resources'
    ]) refused(await admin.ask('POST', '/servers', { name, config }), 400, JSON.stringify(name))
    const id = await admin.ask('POST', '/servers', { name: '33333333-3333-4333-8333-33333333333A', config })
    refused(id, 400)
    assert.equal(at(id.body, 'message'), '"name" must not look like an id')
    for (const name of ['a', '10', 'with inner space', 'Größe.1_2-3', '日本語', 'x'.repeat(128), 'é'.normalize('NFC')]) {
      assert.equal((await admin.add(name, config)).name, name)
      assert.equal((await admin.server(name)).name, name)
      const gone = await admin.ask('DELETE', `/servers/${encodeURIComponent(name)}`)
      fine(gone)
      assert.ok(!('data' in (gone.body as Json)), gone.text)
      refused(await admin.ask('GET', `/servers/${encodeURIComponent(name)}`), 404)
    }
    refused(await admin.ask('DELETE', '/servers/nope'), 404)
  })

  await t.test('servers: what is no config', async () => {
    const before = await readFile(hub.settingsPath, 'utf8')
    for (const config of [
      undefined, null, [], 'text', 7, {}, { type: 'carrier-pigeon', url: fake.url }, { type: 'stdio' },
      { type: 'stdio', url: fake.url }, { type: 'sse' }, { type: 'streamable-http', command: 'node' },
      { type: 'stdio', command: 7 }, { type: 'stdio', command: '' }, { command: 'node', args: '--version' },
      { command: 'node', args: [7] }, { command: 'node', env: { A: {} } }, { command: 'node', env: [] }, { url: 7 },
      { url: 'not a url' }, { url: '' }, { url: fake.url, headers: { a: {} } }, { url: fake.url, headers: 'a: b' },
      { url: fake.url, visibility: 'everyone' }, { url: fake.url, enabled: 'yes' },
      { url: fake.url, keepAliveInterval: 'often' }, { url: fake.url, isolation: 'none' },
      { url: fake.url, options: { timeout: 'long' } }, { url: fake.url, passthroughHeaders: 'x-a' }, { url: fake.url, passthroughHeaders: [7] },
      { url: fake.url, sharedWithUsers: 'bob' }, { url: fake.url, description: 7 }
    ]) {
      refused(await admin.ask('POST', '/servers', { name: 'bad', config }), 400, JSON.stringify(config))
      refused(await admin.put('fake', config), 400, JSON.stringify(config))
    }
    assert.equal(await readFile(hub.settingsPath, 'utf8'), before)
    refused(await admin.ask('GET', '/servers/bad'), 404)
    assert.equal((await admin.server('fake')).status, 'connected')
  })

  await t.test('servers: secrets leave in no answer', async () => {
    const secret = (what: string): string => `canary-${what}-${randomBytes(8).toString('hex')}-${what.slice(0, 2)}9z`
    const canaries = {
      env: secret('env'),
      header: secret('header'),
      key: secret('apikey'),
      user: secret('userinfo'),
      query: secret('query'),
      arg: secret('arg'),
      flag: secret('flag'),
      client: secret('client')
    }
    for (const canary of Object.values(canaries)) secrets.add(canary)
    const local = {
      ...STDIO,
      args: [...STDIO.args, `--api-key=${canaries.arg}`, '--token', canaries.flag],
      env: { API_TOKEN: canaries.env }
    }
    const plainUrl = new URL(fake.url)
    const remote = {
      type: 'streamable-http',
      url: `${plainUrl.protocol}//user:${canaries.user}@${plainUrl.host}${plainUrl.pathname}?api_key=${canaries.query}`,
      headers: { Authorization: `Bearer ${canaries.header}`, 'X-Api-Key': canaries.key },
      oauth: { clientId: 'me', clientSecret: canaries.client },
      enabled: false
    }
    const own = { type: 'streamable-http', url: fake.url, headers: { 'X-Api-Key': canaries.key } }
    const answers: Answer[] = []
    for (const [name, config] of Object.entries({ local, remote, own })) {
      answers.push(await admin.ask('POST', '/servers', { name, config }))
      fine(answers.at(-1) ?? assert.fail())
    }
    await admin.has('local', 'connected')
    await admin.has('own', 'connected')
    assert.ok(fake.received.some(({ headers }) => headers['x-api-key'] === canaries.key), 'the upstream gets the real one')
    for (const name of ['local', 'remote', 'own']) {
      answers.push(
        await admin.ask('GET', `/servers/${name}`),
        await admin.ask('GET', '/servers'),
        await admin.ask('GET', '/servers?limit=1000'),
        await admin.ask('POST', `/servers/${name}/toggle`, { enabled: name !== 'remote' })
      )
    }
    answers.push(await admin.ask('POST', '/servers/local/reload'))
    await admin.has('local', 'connected')
    for (const answer of answers) {
      for (const [what, canary] of Object.entries(canaries)) assert.ok(!answer.text.includes(canary), `${what} in ${answer.text}`)
    }

    assert.equal(at(await admin.server('own'), 'config', 'headers', 'X-Api-Key'), MASK + canaries.key.slice(-4))
    for (const name of ['local', 'remote', 'own']) fine(await admin.ask('DELETE', `/servers/${name}`))
  })

  await t.test('servers: an update replaces the config; owner, visibility, enabled and overrides stay when absent', async () => {
    await admin.add('changing', { url: fake.url, description: 'one', headers: { 'X-A': 'a' } })
    await admin.has('changing', 'connected')
    const answer = await admin.put('changing', { url: fake.url, description: 'two' })
    const record = fine(answer)
    assert.deepEqual([
      at(record, 'config', 'description'), at(record, 'config', 'owner'), at(record, 'config', 'visibility')
    ], ['two', 'admin', 'private'])
    assert.equal(at(await configOnDisk(hub, 'changing'), 'headers'), undefined)
    await admin.has('changing', 'connected')
    fine(await admin.put('changing', { url: fake.url, enabled: false }))
    assert.equal((await admin.server('changing')).status, 'disabled')
    fine(await admin.put('changing', { url: fake.url, description: 'three' }))
    assert.equal((await admin.server('changing')).status, 'disabled')
    fine(
      await admin.put('changing', {
        url: fake.url,
        enabled: true,
        tools: { fail: { enabled: false }, echo: { enabled: true, description: 'Another word for it' } }
      })
    )
    fine(await admin.put('changing', { url: fake.url, description: 'four' }))
    const now = await admin.has('changing', 'connected')
    const tools = now.tools as Json[]
    assert.equal(tools.find(({ name }) => name === 'fail')?.enabled, false)
    assert.equal(tools.find(({ name }) => name === 'echo')?.description, 'Another word for it')
    const session = await Session.open(url, { key: KEYED })
    const seen = await session.tools()
    assert.ok(seen.includes('changing-echo') && !seen.includes('changing-fail'), seen.join(' '))
    refused(await admin.run('changing', 'fail'), 404)
    fine(await admin.put('changing', { url: fake.url, visibility: 'private' }))
    fine(await admin.put('changing', { url: fake.url, visibility: 'public' }))
    fine(await admin.put('changing', { url: fake.url }))
    assert.equal(at(await admin.server('changing'), 'config', 'visibility'), 'public')
  })

  await t.test('servers: toggled, its tools go from an open session and come back, with news', async () => {
    const session = await Session.open(url, { key: KEYED })
    const stream = await session.listen()
    assert.ok((await session.tools()).includes('child-echo'))
    const isNews = ({ method }: Message): boolean => method === 'notifications/tools/list_changed'
    const off = await admin.ask('POST', '/servers/child/toggle', { enabled: false })
    const record = fine(off)
    assert.equal(typeof at(off.body, 'message'), 'string')
    assert.deepEqual([record.status, at(record, 'config', 'enabled')], ['disabled', false])
    await stream.wait(isNews)
    assert.ok(!(await session.tools()).some((name) => name.startsWith('child-')))
    assert.equal((await admin.server('child')).status, 'disabled')
    const seen = stream.messages.length
    fine(await admin.ask('POST', '/servers/child/toggle', { enabled: true }))
    await admin.has('child', 'connected')
    await until(() => stream.messages.slice(seen).some(isNews), 'no news of the connection')
    assert.ok((await session.tools()).includes('child-echo'))
    assert.equal(text(await session.call('child-echo', { message: 'back' })), 'back')
    fine(await admin.ask('POST', '/servers/child/toggle', { enabled: true }))
    for (const body of [{}, { enabled: 'false' }, { enabled: 1 }, { enabled: null }, [], null]) {
      refused(await admin.ask('POST', '/servers/child/toggle', body), 400, JSON.stringify(body))
    }
    assert.equal((await admin.server('child')).status, 'connected')
    refused(await admin.ask('POST', '/servers/nope/toggle', { enabled: true }), 404)
    stream.close()
  })

  await t.test('servers: a reload gives a new child', async () => {
    const pid = async (): Promise<string> => text(fine(await admin.run('child', 'pid')))
    const before = await pid()
    const answer = await admin.ask('POST', '/servers/child/reload')
    assert.equal(fine(answer).name, 'child')
    assert.equal(typeof at(answer.body, 'message'), 'string')
    await until(async () => (await pid()) !== before, 'still the old child')
    await until(() => { try { process.kill(Number(before), 0); return false } catch { return true } }, 'the old child lives on')
    refused(await admin.ask('POST', '/servers/nope/reload'), 404)
    const sessions = fake.count('initialize')
    fine(await admin.ask('POST', '/servers/fake/reload'))
    await until(() => fake.count('initialize') > sessions, 'no new connection')
    await admin.has('fake', 'connected')
  })

  await t.test('servers: why one is not connected', async () => {
    await admin.add('dying', { ...STDIO, env: { FAULT_DIE: '1' } })
    await until(async () => {
      const { status, error } = await admin.server('dying')
      return status === 'disconnected' && /3/.test(String(error)) && String(error).includes('cannot read the licence file')
    }, 'neither the exit code nor the last words')
    await admin.add('absent', { command: '/nowhere/at-all' })
    await until(async () => {
      const { status, error } = await admin.server('absent')
      return status === 'disconnected' && typeof error === 'string' && error !== ''
    })
    await admin.add('closed', { url: 'http://127.0.0.1:1/mcp' })
    await until(async () => {
      const { status, error } = await admin.server('closed')
      return status === 'disconnected' && typeof error === 'string' && error !== ''
    })
    refused(await within('the call', admin.run('closed', 'echo')), 502)
    for (const name of ['dying', 'absent', 'closed']) fine(await admin.ask('DELETE', `/servers/${name}`))
  })

  await t.test('servers: a call waits for a server that is still connecting', async (t) => {
    let connect = (): void => {}
    const gate = new Promise<void>((resolve) => { connect = resolve })
    const slow = await startUpstream(t, {
      prompts: [{ name: 'greet' }],
      on: async ({ method }) => {
        if (method === 'initialize') await gate
        return method === 'prompts/get' ? { messages: [{ role: 'user', content: { type: 'text', text: 'Greet you' } }] } : undefined
      }
    })
    assert.equal((await admin.add('slow', { url: slow.url })).status, 'connecting')
    const opened = async (): Promise<Session> => await Session.open(`${url}/slow`, { key: KEYED })
    const asked = Promise.all([
      admin.run('slow', 'echo', { message: 'patience' }),
      opened().then(async (session) => await session.request('tools/call', { name: 'echo', arguments: { message: 'patience' } })),
      opened().then(async (session) => await session.tools()),
      admin.ok('POST', '/mcp/slow/prompts/greet', {})
    ])
    assert.equal((await admin.server('slow')).status, 'connecting')
    connect()
    const [rest, direct, list, filled] = await asked
    assert.equal(text(fine(rest)), 'patience')
    assert.equal(text(direct.result ?? assert.fail(JSON.stringify(direct))), 'patience')
    assert.deepEqual(list, ['echo'])
    assert.equal(at(filled, 'messages', 0, 'content', 'text'), 'Greet you')
    fine(await admin.ask('DELETE', '/servers/slow'))
  })

  await t.test('groups: an open session follows', async () => {
    await admin.ok('POST', '/groups', { name: 'live', servers: ['fake'] }, 201)
    const session = await Session.open(`${url}/live`, { key: KEYED })
    const stream = await session.listen()
    assert.deepEqual(await session.tools(), ['fake-echo', 'fake-fail', 'fake-two-words', 'fake-typed'])
    for (const [servers, expected] of [
      [
        ['fake', { name: 'child', tools: ['echo', 'pid'] }],
        ['fake-echo', 'fake-fail', 'fake-two-words', 'fake-typed', 'child-echo', 'child-pid']
      ],
      [[{ name: 'child', tools: ['echo'] }], ['child-echo']],
      [[], []]
    ] as const) {
      const seen = stream.messages.length
      await admin.ok('PUT', '/groups/live', { servers })
      await until(
        () => stream.messages.slice(seen).some(({ method }) => method === 'notifications/tools/list_changed'),
        `no news of ${JSON.stringify(servers)}`
      )
      assert.deepEqual((await session.tools()).sort(), [...expected].sort())
    }
    stream.close()
    fine(await admin.ask('DELETE', '/groups/live'))
  })

  await t.test('tools are called by REST, bare or qualified', async () => {
    for (const [name, bare] of [['echo', 'echo'], ['fake-echo', 'echo'], ['fake-two-words', 'two-words']] as const) {
      const data = fine(await admin.run('fake', name, { message: 'hello' }))
      assert.equal(text(data), 'hello')
      assert.deepEqual(data.arguments, { message: 'hello' })
      assert.ok(data.toolName === name || data.toolName === bare, String(data.toolName))
    }
    const none = fine(await admin.ask('POST', '/tools/call/fake', { toolName: 'echo' }))
    assert.deepEqual(none.arguments, {})
    const failed = fine(await admin.run('fake', 'fail'))
    assert.deepEqual([failed.isError, text(failed)], [true, 'it failed'])
    refused(await admin.run('fake', 'nope'), 404)
    refused(await admin.run('fake', 'child-echo'), 404)
    refused(await admin.run('nope', 'echo'), 404)
    refused(await admin.run('off', 'echo'), 404, 'disabled')
    for (const body of [
      {}, { toolName: 7 }, { toolName: '' }, { toolName: 'echo', arguments: 'text' },
      { toolName: 'echo', arguments: [] }, [], null
    ]) {
      const answer = await admin.ask('POST', '/tools/call/fake', body)
      assert.ok(
        answer.status === 400 || (answer.status === 404 && JSON.stringify(body) === '{"toolName":""}'),
        `${JSON.stringify(body)}: ${answer.text}`
      )
      refused(answer, answer.status)
    }
    fake.options = {
      ...fake.options,
      tools: [...(fake.options.tools ?? []), tool('refuse')],
      on: ((before) => (call) =>
        call.method === 'tools/call' && call.params.name === 'refuse' ? new Refusal(-32000, 'not today') : before?.(call))(fake.options.on)
    }
    await fake.broadcast('notifications/tools/list_changed')
    await until(async () => names((await admin.server('fake')).tools).includes('refuse'), 'the new tool never came')
    refused(await admin.run('fake', 'refuse'), 502)
  })

  await t.test('arguments are converted to the types of the schema', async () => {
    const converted = fine(await admin.run('fake', 'typed', { n: '7', x: '1.5', b: 'true', list: 'a,b', o: '{"k":1}', s: '5' }))
    const expected = { n: 7, x: 1.5, b: true, list: ['a', 'b'], o: { k: 1 }, s: '5' }
    assert.deepEqual(JSON.parse(text(converted)), expected)
    assert.deepEqual(converted.structuredContent, { seen: expected })
  })

  await t.test('what is no request of the API', async () => {
    const headers = admin.headers
    for (const [method, route] of [
      ['GET', '/api/nope'], ['POST', '/api/nope'], ['GET', '/api/servers/fake/nope'], ['GET', '/api'], ['GET', '/api/'],
      ['DELETE', '/api/servers']
    ] as const) { refused(await ask(hub, method, route, { headers }), 404, `${method} ${route}`) }
    for (const raw of ['{', '{"name":}', 'hello', '[', '{"a":1}}', '']) {
      refused(await ask(hub, 'POST', '/api/servers', { headers, raw }), 400, raw)
    }
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml', 'multipart/form-data; boundary=x']) {
      refused(await ask(hub, 'POST', '/api/servers', { headers: { ...headers, 'content-type': type }, raw: '{"name":"x"}' }), 415, type)
    }
    refused(
      await ask(hub, 'POST', '/api/servers', {
        headers,
        body: { name: 'big', config: { url: fake.url, description: 'x'.repeat(1_100_000) } }
      }),
      413
    )
    for (const route of ['/api/servers/%E0%A4%A', '/api/servers/%', '/api/groups/%zz']) {
      const answer = await plain(`http://127.0.0.1:${hub.port}${route}`, { headers })
      assert.equal(answer.status, 400, `${route}: ${answer.body}`)
      assert.equal(at(JSON.parse(answer.body), 'success'), false, `${route}: ${answer.body}`)
    }
    const long = await ask(hub, 'GET', `/api/servers/${'a'.repeat(4_000)}`, { headers })
    assert.ok(long.status >= 400 && long.status < 500, String(long.status))
    refused(long, long.status)
    const polluted = await ask(hub, 'POST', '/api/groups', {
      headers,
      raw: '{"name":"polluted","__proto__":{"isAdmin":true},"constructor":{"prototype":{"polluted":1}}}'
    })
    assert.ok(polluted.status < 500, polluted.text)
    assert.ok(!('data' in (polluted.body as Json)) || at(polluted.body, 'data', 'isAdmin') === undefined)
    if (polluted.status === 201) fine(await admin.ask('DELETE', '/groups/polluted'))
  })

  await t.test('odd methods on every route: never a 5xx', async () => {
    for (const route of new Set([
      ...lost.map(([, one]) => one.replace(/\{\w+\}/, 'fake-nope')),
      '/api/auth/login',
      '/health',
      '/health/live',
      '/health/ready',
      '/metrics',
      '/docs/json',
      '/'
    ])) {
      for (const method of ['HEAD', 'PUT', 'PATCH', 'OPTIONS', 'DELETE', 'PROPFIND', 'QUERY']) {
        const answer = await plain(`http://127.0.0.1:${hub.port}${route}`, { method, headers: admin.headers }).catch((error: unknown) => ({
          status: 400,
          body: String(error)
        }))
        assert.ok(answer.status < 500, `${method} ${route}: ${answer.status} ${answer.body}`)
        assertPlain(answer.body)
      }
    }
    const before = fake.count('tools/call')
    await plain(`http://127.0.0.1:${hub.port}/api/tools/call/fake`, { method: 'HEAD', headers: admin.headers })
    assert.equal(fake.count('tools/call'), before)
  })

  await t.test('the page of the API\'s document is served', async () => {
    const page = await fetch(`${hub.url}/docs`)
    assert.equal(page.status, 200)
    assert.match(String(page.headers.get('content-type')), /^text\/html/)
    assertPlain(await (await fetch(`${hub.url}/docs/json`)).text())
  })

  await t.test('metrics are for admins', async () => {
    assert.equal((await fetch(`${hub.url}/metrics`)).status, 401)
    assert.equal((await fetch(`${hub.url}/metrics`, { headers: { authorization: 'Bearer nobody' } })).status, 401)
  })

  await t.test('metrics in the format of Prometheus, calls counted by server', async () => {
    const read = async (): Promise<{ text: string, samples: Map<string, number> }> => {
      const reply = await fetch(`${hub.url}/metrics`, { headers: admin.headers })
      assert.equal(reply.status, 200)
      assert.match(String(reply.headers.get('content-type')), /^text\/plain/)
      const body = await reply.text()
      const samples = new Map<string, number>()
      for (const line of body.split('\n')) {
        if (line === '' || line.startsWith('#')) continue
        const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^}]*\})?) (-?[0-9.eE+-]+|nan|[+-]Inf)(?: \d+)?$/i.exec(line)
        assert.ok(match !== null, `no sample: ${line}`)
        samples.set(match[1] ?? '', Number(match[2]))
      }
      return { text: body, samples }
    }
    const before = await read()
    const session = await Session.open(url, { key: KEYED })
    for (let n = 0; n < 3; n++) fine(await admin.run('fake', 'echo'))
    await session.call('fake-echo')
    const grown = (name: RegExp, by: number, now: Map<string, number>): string[] =>
      [...now].filter(([sample, value]) => name.test(sample) && value - (before.samples.get(sample) ?? 0) === by).map(([sample]) => sample)
    let now = await read()
    await until(
      async () => {
        now = await read()
        return grown(/call\w*(total|count)\{.*"fake"/, 4, now.samples).length > 0
      },
      () => `four calls counted nowhere: ${[...now.samples].filter(([sample]) => sample.includes('"fake"')).join('; ')}`
    )
    assert.ok(grown(/(seconds|duration|ms|latency)\w*_count\{.*"fake"/, 4, now.samples).length > 0, 'no latency')
    for (const topic of [/error/i, /session/i, /link|connection/i, /upstream|state|status/i, /lag|eventloop|event_loop/i]) {
      assert.match(now.text, topic)
    }
    for (let n = 0; n < 30; n++) {
      await admin.run(`nobody-knows-${n}`, 'echo')
      await admin.run('fake', `nobody-knows-${n}`)
      await session.request('tools/call', { name: `nobody-knows-${n}` })
      await ask(hub, 'GET', `/api/nobody-knows-${n}`)
      await ask(hub, 'GET', `/nobody-knows-${n}`)
    }
    const after = await read()
    assert.ok(!after.text.includes('nobody-knows'), 'what a caller makes up is no label')
    assert.ok(after.samples.size < now.samples.size + 40, `${now.samples.size} became ${after.samples.size} samples`)
    await admin.ask('POST', '/servers', { name: 'passing', config: { url: fake.url } })
    await admin.has('passing', 'connected')
    fine(await admin.run('passing', 'echo'))
    fine(await admin.ask('DELETE', '/servers/passing'))
  })

  await t.test('health', async () => {
    const health: unknown = await (await fetch(`${hub.url}/health`)).json()
    assert.equal(typeof at(health, 'status'), 'string')
    assert.ok(!Number.isNaN(new Date(String(at(health, 'timestamp'))).getTime()))
    assert.equal(typeof at(health, 'uptime'), 'number')
    assert.ok(Number(at(health, 'servers', 'total')) >= 3 && Number(at(health, 'servers', 'connected')) >= 2, JSON.stringify(health))
    assert.equal((await fetch(`${hub.url}/health/live`)).status, 200)
    assert.equal((await fetch(`${hub.url}/health/ready`)).status, 200)
  })

  await t.test('a call to a server that never comes ends when the time for a connection is over', async (t) => {
    setLimits(t, limits, { connectionWait: 300 })
    refused(await within('the answer', admin.run('never', 'echo')), 502)
    const opened = await within('the answer', send(`${url}/never`, { key: KEYED, body: initialize() }))
    assert.equal(opened.messages.at(-1)?.error?.code, -32001, opened.body)
  })

  await t.test('no secret was in any answer, log line, metric or, in plain, in the settings file', async () => {
    const file = await readFile(hub.settingsPath, 'utf8')
    const metrics = await (await fetch(`${hub.url}/metrics`, { headers: admin.headers })).text()
    secrets.add(KEYED)
    for (const secret of secrets) {
      assert.ok(
        !hub.output().includes(secret),
        `in the log: ${secret}: ${hub.output().split('\n').find((line) => line.includes(secret))?.slice(0, 1_000)}`
      )
      assert.ok(!file.includes(secret), `in the file: ${secret}`)
      assert.ok(!metrics.includes(secret), `in the metrics: ${secret}`)
    }
    const canaries = [...secrets].filter((secret) => secret !== admin.token && secret !== KEYED)
    for (const answer of transcript) {
      for (const secret of canaries) assert.ok(!answer.includes(secret), `in an answer: ${secret}: ${answer.slice(0, 1_000)}`)
    }
    for (const answer of transcript) assert.doesNotMatch(answer, /\$2[aby]\$\d\d\$|scrypt|argon2/, 'a hash in an answer')
  })
})

// ---- others than admins ---------------------------------------------------------------------------

test('a user who is no admin', async (t) => {
  const fake = await startUpstream(t)
  const secret = `hidden-${randomBytes(8).toString('hex')}`
  const hub = await startHub(t, {
    env: { LOG_LEVEL: 'warn' },
    settings: settings(
      {
        shared: {
          type: 'streamable-http',
          url: fake.url,
          visibility: 'public',
          owner: 'admin',
          description: 'for all',
          headers: { 'X-Token': secret }
        },
        closed: { type: 'streamable-http', url: fake.url, visibility: 'private', owner: 'admin' },
        own: { type: 'streamable-http', url: fake.url, visibility: 'private', owner: 'bob' }
      },
      {
        users: [
          { username: 'admin', password: bcrypt.hashSync(PASSWORD, 4), isAdmin: true },
          { username: 'bob', password: bcrypt.hashSync('Bobs-Word-1', 4), isAdmin: false }
        ],
        groups: [
          { id: '33333333-3333-4333-8333-333333333333', name: 'mixed', servers: ['shared', 'closed'], owner: 'admin' },
          { id: '44444444-4444-4444-8444-444444444444', name: 'hidden', servers: ['closed'], owner: 'admin' }
        ]
      }
    )
  })
  await connected(hub, 3)
  const bob = await Api.login(hub, 'bob', 'Bobs-Word-1')
  const admin = await Api.login(hub)

  await t.test('sees public servers without their secrets, and its own', async () => {
    assert.deepEqual(names(records(await bob.ask('GET', '/servers'))).sort(), ['own', 'shared'])
    const answer = await bob.ask('GET', '/servers/shared')
    assert.ok(!answer.text.includes(secret) && !answer.text.includes(fake.url), answer.text)
    const { config } = fine(answer)
    for (const key of Object.keys(config as Json)) {
      assert.ok(['type', 'description', 'visibility', 'owner', 'enabled'].includes(key), key)
    }
    assert.equal(at(await bob.server('own'), 'config', 'url'), fake.url)
    const [hidden, unknown] = [await bob.ask('GET', '/servers/closed'), await bob.ask('GET', '/servers/clothes')]
    refused(hidden, 404)
    assert.equal(hidden.text.replaceAll('closed', '*'), unknown.text.replaceAll('clothes', '*'))
  })

  await t.test('takes no name that is another\'s but for its case, or an id', async () => {
    const config = { url: 'https://mcp.example.com/mcp', enabled: false }
    for (const name of ['SHARED', 'Own']) {
      for (const answer of [
        await bob.ask('POST', '/servers', { name, config }),
        await bob.ask('POST', '/servers/test', { name, config })
      ]) {
        refused(answer, 400, name)
        assert.match(answer.text, /differs from .* only by case; only an admin/)
      }
    }
    refused(await bob.ask('PUT', '/servers/own', { config, newName: 'Shared' }), 400)
    refused(await bob.ask('POST', '/servers', { name: '33333333-3333-4333-8333-333333333333', config }), 400)
    // Its own name may be written anew, and an admin may do what a user may not.
    await admin.add('bobs', { ...config, owner: 'bob' })
    fine(await bob.ask('PUT', '/servers/bobs', { config, newName: 'BOBS' }))
    fine(await bob.ask('DELETE', '/servers/BOBS'))
    await admin.add('SHARED', config)
    fine(await admin.ask('DELETE', '/servers/SHARED'))
  })

  await t.test('stores nothing that runs a command', async () => {
    for (const config of [STDIO, { type: 'stdio', command: 'id' }]) {
      refused(await bob.ask('POST', '/servers', { name: 'mine', config }), 403, JSON.stringify(config))
      refused(await bob.put('own', config), 403, JSON.stringify(config))
    }
    refused(await admin.ask('GET', '/servers/mine'), 404)
    const stored = await bob.ask('POST', '/servers', { name: 'remote', config: { url: 'https://mcp.example.com/mcp', enabled: false } })
    assert.equal(at(fine(stored), 'config', 'owner'), 'bob')
  })

  await t.test('nor anything of type openapi', async () => {
    refused(
      await bob.ask('POST', '/servers', { name: 'mine', config: { type: 'openapi', url: 'https://api.example.com/openapi.json' } }),
      403
    )
  })

  await t.test('sees groups with what it may see of them', async () => {
    const groups = records(await bob.ask('GET', '/groups'))
    assert.deepEqual(groups.map(({ name, servers }) => [name, servers]), [['mixed', ['shared']]])
    refused(await bob.ask('GET', '/groups/hidden'), 404)
    for (const [method, body] of [['PUT', { description: 'x' }], ['DELETE', undefined]] as const) {
      refused(await bob.ask(method, '/groups/mixed', body), 403)
      refused(await bob.ask(method, '/groups/hidden', body), 404)
    }
    assert.equal((await bob.ok('POST', '/groups', { name: 'bobs', servers: ['shared', 'own'] }, 201)).owner, 'bob')
    refused(await bob.ask('POST', '/groups', { name: 'shared', servers: [] }), 400, 'a server\'s name')
    refused(await bob.ask('POST', '/groups', { name: 'sneaky', servers: ['closed'] }), 400)
  })

  await t.test('has keys of its own, for MCP only', async () => {
    const record = await bob.ok('POST', '/auth/keys', { name: 'bobs' }, 201)
    assert.deepEqual([record.kind, record.owner, record.accessType], ['user', 'bob', 'all'])
    const grab = await bob.ask('POST', '/auth/keys', { name: 'more', kind: 'system', accessType: 'all', owner: 'admin' })
    assert.ok(
      grab.status === 403 || grab.status === 400 || (at(grab.body, 'data', 'kind') === 'user' && at(grab.body, 'data', 'owner') === 'bob'),
      grab.text
    )
    assert.ok(records(await bob.ask('GET', '/auth/keys')).every(({ owner }) => owner === 'bob'))
    refused(await Api.key(hub, String(record.token)).ask('GET', '/servers'), 401)
    const foreign = await bob.ask('DELETE', `/auth/keys/${bearerKey().id}`)
    assert.ok(foreign.status === 403 || foreign.status === 404, foreign.text)
    const session = await Session.open(`${hub.url}/mcp`, { key: String(record.token) })
    assert.deepEqual((await session.tools()).sort(), ['own-echo', 'shared-echo'])
    fine(await bob.ask('DELETE', `/auth/keys/${String(record.id)}`))
    assert.equal((await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).status, 401)
  })

  await t.test('calls what it sees', async () => {
    assert.equal(text(fine(await bob.run('shared', 'echo', { message: 'hi' }))), 'hi')
    refused(await bob.run('closed', 'echo'), 404)
  })
})
