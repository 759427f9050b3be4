// Built-in prompts and resources: the management API, the global MCP route as a real client sees it, whose a name is, and where they are
// kept.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  PromptListChangedNotificationSchema, ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { test } from 'tap'
import { fillPrompt } from '../../plugins/gateway/builtins/provider.ts'
import { startUpstream, tool, type Answer, type Call } from '../fakes/fault-http.ts'
import { manage } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { appFor } from '../helpers/app.ts'
import { agent, at, connected, KEY, names, Session, settings, text, type Json } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { bearerKey, startHub, until } from '../helpers/hub.ts'
import { openSession } from '../helpers/inject.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'

const ann = { username: 'ann', password: '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234', isAdmin: false }
const annsKey = bearerKey({ id: '44444444-4444-4444-8444-444444444444', name: 'ann', token: `thk_${'c'.repeat(64)}`, kind: 'user', owner: 'ann' })
const world = (more: Json = {}): Json => ({ users: [ann], bearerKeys: [bearerKey(), annsKey], ...more })

/** The management API of an app, as the admin's key; `ann`: as a user. */
const apiOf = (app: FastifyInstance) => async (
  method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, payload?: object, as: 'admin' | 'ann' = 'admin'
): Promise<LightMyRequestResponse> => await app.inject({
  method,
  url: `/api${url}`,
  headers: as === 'ann' ? { 'x-auth-token': app.auth.createLoginToken(ann) } : { authorization: `Bearer ${KEY}` },
  ...(payload === undefined ? {} : { payload })
})

const idOf = (body: unknown): string => String(at(body, 'data', 'id'))
const greet = { name: 'greet', template: 'Hello {{who}}', arguments: [{ name: 'who', required: true }] }
const rules = { uri: 'note://rules', name: 'Rules', content: 'Be kind', mimeType: 'text/plain' }

/** Answers reads. */
const on = ({ method, params }: Call): Answer => method === 'resources/read' ? { contents: [{ uri: params.uri, text: 'of a server' }] } : undefined

test('placeholders are filled once, as text', async () => {
  const filled = (template: string, given?: unknown, ...declared: string[]): string => fillPrompt({
    id: '1', name: 'p', template, arguments: declared.map((name) => ({ name: name.replace('!', ''), required: name.startsWith('!') }))
  }, given)
  for (const [wanted, ...given] of [
    ['a {{b}} c', 'a {{a}} c', { a: '{{b}}', b: 'x' }, 'a', 'b'],
    ['x x', '{{a}} {{ a }}', { a: 'x' }, 'a'],
    ['$& $1 $$', '{{a}}', { a: '$& $1 $$' }, 'a'],
    ['-', '{{a}}-', {}, 'a'],
    ['-', '{{a}}-', undefined, 'a'],
    ['{{other}} {a} {{', '{{other}} {a} {{', { a: 'x' }, 'a'],
    ['given', '{{undeclared}}', { undeclared: 'given' }],
    ['{x}', '{{{a}}}', { a: 'x' }, 'a'],
    ['{{__proto__}} {{constructor}} {{toString}}', '{{__proto__}} {{constructor}} {{toString}}', {}],
    ['x', '{{__proto__}}', JSON.parse('{"__proto__":"x"}') as object, '!__proto__'],
    ['', '{{a}}', { a: '' }, '!a']
  ] as Array<[string, string, unknown, ...string[]]>) {
    assert.equal(filled(given[0], given[1], ...given.slice(2) as string[]), wanted, given[0])
  }
  for (const [reason, ...given] of [
    [/the argument "a" of the prompt "p" is required/, '{{a}}', {}, '!a'],
    [/the arguments "a", "__proto__" of the prompt "p" are required/, '', { b: 'x' }, '!a', '!__proto__'],
    [/the argument "a" must be a string/, '{{a}}', { a: 1 }, 'a'],
    [/"arguments" must be an object of strings/, '{{a}}', ['x'], 'a'],
    [/would be longer than 1048576 characters/, '{{a}}'.repeat(1_000), { a: 'x'.repeat(2_000) }, 'a']
  ] as Array<[RegExp, string, unknown, ...string[]]>) {
    assert.throws(() => filled(given[0], given[1], ...given.slice(2) as string[]), (error: { code: number, message: string }) => {
      assert.equal(error.code, -32602)
      assert.match(error.message, reason)
      return true
    })
  }
})

test('the management API', async (t) => {
  const stored = { id: 'from-a-file', name: 'old', template: 'x', title: 'T', unknown: { kept: 1 } }
  const app = await appFor(t, world({ prompts: [stored], systemConfig: { routing: { jsonBodyLimit: '5mb' } } }))
  const api = apiOf(app)

  await t.test('what an admin writes, everybody reads', async () => {
    const made = await api('POST', '/prompts', { ...greet, title: 'Greet', description: 'Says hello' })
    assert.equal(made.statusCode, 201, made.body)
    const id = idOf(made.json())
    const record = { id, ...greet, title: 'Greet', description: 'Says hello', enabled: true }
    assert.deepEqual(at(made.json(), 'data'), record)
    for (const who of ['admin', 'ann'] as const) {
      assert.deepEqual(at((await api('GET', `/prompts/${id}`, undefined, who)).json(), 'data'), record)
      assert.deepEqual(names(at((await api('GET', '/prompts', undefined, who)).json(), 'data')), ['old', 'greet'])
    }
    assert.equal((await api('POST', '/prompts', { ...greet, name: 'prototype' })).statusCode, 400)
    const changed = await api('PUT', `/prompts/${id}`, { ...record, title: null, template: 'Hi {{who}}' })
    assert.deepEqual(at(changed.json(), 'data'), { id, ...greet, template: 'Hi {{who}}', description: 'Says hello', enabled: true })
    assert.equal((await api('DELETE', `/prompts/${id}`)).statusCode, 200)
    for (const method of ['GET', 'PUT', 'DELETE'] as const) {
      assert.equal((await api(method, `/prompts/${id}`, method === 'PUT' ? { name: 7 } : undefined)).statusCode, 404, method)
    }
    const resource = await api('POST', '/resources', { uri: 'note://one', content: '' })
    assert.equal(resource.statusCode, 201, resource.body)
    assert.deepEqual(at(resource.json(), 'data'), { id: idOf(resource.json()), uri: 'note://one', name: 'note://one', content: '', enabled: true })
    assert.equal((await api('PUT', `/resources/${idOf(resource.json())}`, { content: 'x', name: 'One' })).statusCode, 200)
    assert.deepEqual(names(at((await api('GET', '/resources', undefined, 'ann')).json(), 'data')), ['One'])
    assert.equal((await api('DELETE', `/resources/${idOf(resource.json())}`)).statusCode, 200)
  })

  await t.test('what is no name, URI, template or argument', async () => {
    for (const [path, body, reason] of [
      ['/prompts', { name: 'x' }, /template/],
      ['/prompts', { ...greet, name: '' }, /"name" must have 1 to 64 characters/],
      ['/prompts', { ...greet, name: 'x'.repeat(65) }, /"name" must have 1 to 64 characters/],
      ['/prompts', { ...greet, name: 'a\nb' }, /control characters/],
      ['/prompts', { ...greet, name: ' a' }, /begin or end with a space/],
      ['/prompts', { ...greet, name: 'a_0123abcd' }, /eight hexadecimal digits/],
      ['/prompts', { ...greet, arguments: [{ name: 'a' }, { name: 'a' }] }, /"arguments.1.name" "a" is listed twice/],
      ['/prompts', { ...greet, arguments: [{ name: 'a}' }] }, /braces/],
      ['/prompts', { ...greet, arguments: Array.from({ length: 101 }, (_, at) => ({ name: `a${at}` })) }, /more than 100/],
      ['/prompts', { ...greet, template: 'x'.repeat(gatewayLimits.builtIns.text + 1) }, /at most 1048576 characters/],
      ['/resources', { ...rules, uri: 'rules' }, /absolute URI/],
      ['/resources', { ...rules, uri: 'note://a b' }, /absolute URI/],
      ['/resources', { ...rules, uri: `note://${'x'.repeat(2_048)}` }, /at most 2048/],
      ['/resources', { ...rules, name: '\u202e' }, /control characters/],
      ['/resources', { ...rules, name: 'prototype' }, /"name" must not be "prototype"/],
      ['/resources', { ...rules, content: 'x'.repeat(gatewayLimits.builtIns.text + 1) }, /at most 1048576 characters/],
      ['/resources/read', {}, /uri/]
    ] as Array<[string, object, RegExp]>) {
      const answer = await api('POST', path, body)
      assert.equal(answer.statusCode, 400, answer.body)
      assert.match(answer.body.replaceAll('\\"', '"'), reason)
    }
  })

  await t.test('unknown members of a file stay', async () => {
    assert.equal((await api('PUT', '/prompts/from-a-file', { template: 'y' })).statusCode, 200)
    assert.deepEqual(app.settings.current.prompts.get('from-a-file'), { ...stored, template: 'y' })
    assert.deepEqual(at((await api('GET', '/mcp-settings/export')).json(), 'data', 'prompts'), [{ ...stored, template: 'y' }])
    assert.equal(at((await api('GET', '/mcp-settings/export', undefined, 'ann')).json(), 'data', 'prompts'), undefined)
  })

  await t.test('each write is audited', async () => {
    const made = await api('POST', '/resources', rules)
    await api('DELETE', `/resources/${idOf(made.json())}`)
    const [entry, before] = at((await api('GET', '/audit')).json(), 'data') as Json[]
    assert.deepEqual([entry?.entity, entry?.action, entry?.name], ['resource', 'delete', rules.uri])
    assert.deepEqual([before?.entity, before?.action, at(before, 'after', 'content')], ['resource', 'create', rules.content])
  })
})

test('no resource takes the URI of a skill\'s file, and no skill that of a resource', async (t) => {
  const app = await appFor(t, settings({}))
  const api = apiOf(app)
  const content = '---\nname: notes\ndescription: How to take notes\n---\n'
  const files = { 'a b.txt': 'YQ==' }
  const skill = idOf((await api('POST', '/skills', { content, files })).json())
  for (const uri of ['skill://notes/SKILL.md', 'skill://notes/a%20b.txt']) {
    assert.equal((await api('POST', '/resources', { ...rules, uri })).statusCode, 409, uri)
  }
  assert.equal((await api('POST', '/resources', { ...rules, uri: 'skill://notes/c.txt' })).statusCode, 201)
  const refused = await api('PUT', `/skills/${skill}`, { files: { ...files, 'c.txt': 'Yw==' } })
  assert.deepEqual([refused.statusCode, at(refused.json(), 'message')], [409, 'Another built-in has the URI "skill://notes/c.txt"'])
  assert.equal((await api('PUT', `/skills/${skill}`, { files: { 'd.txt': 'ZA==' } })).statusCode, 200)
})

test('a skill whose URI a server lists later can still get files, but cannot be enabled again', async (t) => {
  const upstream = await startUpstream(t, { resources: [{ uri: 'skill://notes/SKILL.md', name: 'notes' }] })
  const app = await appFor(t, settings({}))
  const api = apiOf(app)
  const skill = `/skills/${idOf((await api('POST', '/skills', { content: '---\nname: notes\ndescription: Notes\n---\n' })).json())}`
  assert.equal((await api('POST', '/servers', { name: 'desk', config: { url: upstream.url } })).statusCode, 200)
  await until(() => app.upstreams.get('desk')?.status === 'connected')
  const answer = await api('PUT', skill, { files: { 'a.txt': 'YQ==' } })
  assert.equal(answer.statusCode, 200, answer.body)
  assert.equal((await api('PUT', skill, { enabled: false })).statusCode, 200)
  assert.match((await api('PUT', skill, { enabled: true })).body, /The server .{1,2}desk.{1,2} already lists a skill/)
})

test('how many there may be, and how large', async (t) => {
  const prompts = Array.from({ length: gatewayLimits.builtIns.items }, (_, at) => ({ id: `${at}`, name: `p${at}`, template: 'x' }))
  const resources = Array.from({ length: 16 }, (_, at) => ({ id: `${at}`, uri: `note://${at}`, content: 'x'.repeat(1024 * 1024 - 10_000) }))
  const app = await appFor(t, world({ prompts, resources, systemConfig: { routing: { jsonBodyLimit: '5mb' } } }))
  const api = apiOf(app)
  const refused = await api('POST', '/prompts', greet)
  assert.deepEqual([refused.statusCode, at(refused.json(), 'code')], [503, 'TH_LIMIT_REACHED'])
  assert.equal((await api('PUT', '/prompts/7', { template: 'y' })).statusCode, 200, 'a change takes no place')
  const large = await api('POST', '/resources', { ...rules, content: 'x'.repeat(500_000) })
  assert.deepEqual([large.statusCode, at(large.json(), 'code')], [503, 'TH_LIMIT_REACHED'])
  assert.match(large.body, /together would have more than 16777216 characters/)
})

test('a real client on the global route', async (t) => {
  const upstream = await startUpstream(t, {
    tools: [tool('echo')], prompts: [{ name: 'ask' }], resources: [{ uri: 'file:///a', name: 'a' }], on
  })
  const hub = await startHub(t, { settings: settings({ fake: { url: upstream.url, owner: 'admin' } }) })
  await connected(hub, 1)
  const heard: string[] = []
  const client = await agent(t, `${hub.url}/mcp`, {
    prepare: (fresh) => {
      fresh.setNotificationHandler(PromptListChangedNotificationSchema, () => { heard.push('prompts') })
      fresh.setNotificationHandler(ResourceListChangedNotificationSchema, () => { heard.push('resources') })
      fresh.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => { heard.push(params.uri) })
    }
  })
  const hears = async (what: string): Promise<void> => { await until(() => heard.includes(what), () => `not ${what}: ${heard.join()}`) }
  assert.deepEqual(names((await client.listPrompts()).prompts), ['fake-ask'])
  const made = await manage(hub, 'POST', '/prompts', { ...greet, title: 'Greet', description: 'Says hello' })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  await hears('prompts')

  await t.test('prompts: without a prefix, after those of servers', async () => {
    const { prompts } = await client.listPrompts()
    assert.deepEqual(names(prompts), ['fake-ask', 'greet'])
    assert.deepEqual(prompts[1], { name: 'greet', title: 'Greet', description: 'Says hello', arguments: greet.arguments })
    assert.deepEqual(await client.getPrompt({ name: 'greet', arguments: { who: '{{who}} & you' } }), {
      description: 'Says hello', messages: [{ role: 'user', content: { type: 'text', text: 'Hello {{who}} & you' } }]
    })
    await assert.rejects(client.getPrompt({ name: 'greet' }), { code: -32602, message: /the argument "who" of the prompt "greet" is required/ })
    await assert.rejects(client.getPrompt({ name: 'fake-greet', arguments: {} }), { code: -32602 })
    const session = await Session.open(`${hub.url}/mcp`)
    const ref = { type: 'ref/prompt', name: 'greet' }
    assert.deepEqual(await session.ask('completion/complete', { ref, argument: { name: 'who', value: 'A' } }), {
      completion: { values: [], total: 0, hasMore: false }
    })
    const single = await Session.open(`${hub.url}/mcp/fake`)
    assert.deepEqual(names(await single.list('prompts/list', 'prompts')), ['ask'], 'no built-ins on the route of one server')
  })

  await t.test('names that objects inherit', async () => {
    for (const name of ['__proto__', 'constructor']) {
      const added = await manage(hub, 'POST', '/prompts', { name, template: `{{${name}}}!`, arguments: [{ name }] })
      assert.equal(added.status, 201, JSON.stringify(added.body))
      const session = await Session.open(`${hub.url}/mcp`)
      assert.equal(text(await session.ask('prompts/get', { name, arguments: JSON.parse(`{"${name}":"x"}`) as Json })), 'x!')
      assert.equal(text(await session.ask('prompts/get', { name })), '!')
      assert.equal((await manage(hub, 'DELETE', `/prompts/${idOf(added.body)}`)).status, 200)
      assert.equal((await session.request('prompts/get', { name })).error?.code, -32602)
    }
  })

  await t.test('resources: read, subscribed to, changed, disabled', async () => {
    heard.length = 0
    const added = await manage(hub, 'POST', '/resources', rules)
    await hears('resources')
    assert.deepEqual((await client.listResources()).resources.map(({ uri }) => uri), ['file:///a', rules.uri])
    assert.deepEqual((await client.readResource({ uri: rules.uri })).contents, [{ uri: rules.uri, mimeType: 'text/plain', text: 'Be kind' }])
    await client.subscribeResource({ uri: rules.uri })
    heard.length = 0
    await manage(hub, 'PUT', `/resources/${idOf(added.body)}`, { content: 'Be kinder' })
    await hears(rules.uri)
    assert.ok(!heard.includes('resources'), 'the list is the same')
    assert.equal(at((await client.readResource({ uri: rules.uri })).contents, 0, 'text'), 'Be kinder')
    await client.unsubscribeResource({ uri: rules.uri })
    heard.length = 0
    await manage(hub, 'PUT', `/resources/${idOf(added.body)}`, { content: 'Again', name: 'Renamed' })
    await hears('resources')
    assert.ok(!heard.includes(rules.uri), 'no news after the subscription ended')
    await manage(hub, 'PUT', `/resources/${idOf(added.body)}`, { enabled: false })
    await until(async () => (await client.listResources()).resources.length === 1)
    await assert.rejects(client.readResource({ uri: rules.uri }), { code: -32002 })
    await manage(hub, 'DELETE', `/resources/${idOf(added.body)}`)
  })

  await t.test('read by plain HTTP: everything that the caller sees', async () => {
    const added = await manage(hub, 'POST', '/resources', rules)
    const own = await manage(hub, 'POST', '/resources/read', { uri: rules.uri })
    assert.deepEqual(own.body, { success: true, data: { contents: [{ uri: rules.uri, mimeType: 'text/plain', text: 'Be kind' }] } })
    const servers = await manage(hub, 'POST', '/resources/read', { uri: 'file:///a' })
    assert.equal(servers.status, 200)
    assert.equal(at(servers.body, 'data', 'contents', 0, 'uri'), 'file:///a')
    const missing = await manage(hub, 'POST', '/resources/read', { uri: 'file:///missing' })
    assert.deepEqual([missing.status, at(missing.body, 'message')], [404, 'There is no such resource: "file:///missing"'])
    await manage(hub, 'DELETE', `/resources/${idOf(added.body)}`)
  })
})

test('a route without servers announces what servers may bring, and built-ins come and go', async (t) => {
  const hub = await startHub(t, { settings: settings({}) })
  const { init } = await Session.open(`${hub.url}/mcp`)
  assert.deepEqual(Object.keys(at(init, 'capabilities') as Json).sort(), ['completions', 'logging', 'prompts', 'resources', 'tools'])
})

test('whose a name is', async (t) => {
  const admins = await startUpstream(t, { prompts: [{ name: 'ask' }], resources: [{ uri: 'file:///a', name: 'a' }], on })
  const anns = await startUpstream(t, { prompts: [{ name: 'ask' }], resources: [{ uri: 'file:///ann', name: 'ann' }] })
  const app = await appFor(t, world({
    mcpServers: {
      desk: { url: admins.url, owner: 'admin', visibility: 'public' },
      own: { url: anns.url, owner: 'ann', visibility: 'public' }
    }
  }), { OUTBOUND_ALLOW: '127.0.0.0/8' })
  const api = apiOf(app)
  await until(() => ['desk', 'own'].every((name) => app.upstreams.get(name)?.status === 'connected'))
  const session = await openSession(app, '/mcp', KEY)
  const prompts = async (): Promise<string[]> => names(at((await session.request('prompts/list')).result, 'prompts'))
  const uris = async (): Promise<unknown[]> => (at((await session.request('resources/list')).result, 'resources') as Json[]).map(({ uri }) => uri)
  assert.deepEqual(await prompts(), ['desk-ask', 'own-ask'])

  const ids: string[] = []

  await t.test('an admin\'s server shows it already: 409', async () => {
    for (const [path, body, message] of [
      ['/prompts', { ...greet, name: 'desk-ask' }, 'The server "desk" already lists a prompt "desk-ask"'],
      ['/resources', { ...rules, uri: 'file:///a' }, 'The server "desk" already lists a resource "file:///a"']
    ] as const) {
      const refused = await api('POST', path, body)
      assert.deepEqual([refused.statusCode, at(refused.json(), 'message'), at(refused.json(), 'code')], [409, message, 'TH_DUPLICATE'])
    }
    const made = await api('POST', '/prompts', greet)
    assert.equal((await api('PUT', `/prompts/${idOf(made.json())}`, { name: 'desk-ask' })).statusCode, 409)
    const again = await api('POST', '/prompts', greet)
    assert.deepEqual([again.statusCode, at(again.json(), 'message')], [409, 'There is already a built-in prompt "greet"'])
    assert.equal((await api('DELETE', `/prompts/${idOf(made.json())}`)).statusCode, 200)
  })

  await t.test('a user\'s server yields', async () => {
    const made = [await api('POST', '/prompts', { ...greet, name: 'own-ask' }), await api('POST', '/resources', { ...rules, uri: 'file:///ann' })]
    for (const { statusCode, body } of made) assert.equal(statusCode, 201, body)
    const [first, second, third, ...others] = await prompts()
    assert.deepEqual([first, third, others], ['desk-ask', 'own-ask', []])
    assert.match(second ?? '', /^own-ask_[0-9a-f]{8}$/)
    assert.equal(text((await session.request('prompts/get', { name: 'own-ask', arguments: { who: 'x' } })).result), 'Hello x')
    assert.deepEqual(await uris(), ['file:///a', 'file:///ann'])
    const read = await session.request('resources/read', { uri: 'file:///ann' })
    assert.equal(at(read.result, 'contents', 0, 'text'), 'Be kind')
    await api('DELETE', `/prompts/${idOf(made[0]?.json())}`)
    await api('DELETE', `/resources/${idOf(made[1]?.json())}`)
    assert.deepEqual(await prompts(), ['desk-ask', 'own-ask'], 'the name goes back')
  })

  await t.test('what an admin\'s server lists later takes nothing, also after a restart of the server', async () => {
    for (const [path, body] of [
      ['/prompts', { ...greet, name: 'desk-later' }],
      ['/resources', { ...rules, uri: 'file:///later' }]
    ] as const) {
      const made = await api('POST', path, body)
      assert.equal(made.statusCode, 201)
      ids.push(idOf(made.json()))
    }
    admins.options.prompts?.push({ name: 'later' })
    admins.options.resources?.push({ uri: 'file:///later', name: 'later' })
    for (const round of ['changed', 'reloaded']) {
      if (round === 'changed') {
        for (const each of admins.sessions.values()) {
          await each.notify('notifications/prompts/list_changed')
          await each.notify('notifications/resources/list_changed')
        }
      } else {
        assert.equal((await api('POST', '/servers/desk/reload')).statusCode, 200)
      }
      await until(async () => (await prompts()).some((name) => /^desk-later_[0-9a-f]{8}$/.test(name)), round)
      assert.equal((await prompts()).at(-1), 'desk-later')
      assert.equal(text((await session.request('prompts/get', { name: 'desk-later', arguments: { who: 'x' } })).result), 'Hello x')
      const read = await session.request('resources/read', { uri: 'file:///later' })
      assert.equal(at(read.result, 'contents', 0, 'text'), 'Be kind')
      assert.deepEqual(await uris(), ['file:///a', 'file:///ann', 'file:///later'])
    }
    // A server's own route shows its own items.
    const own = await openSession(app, '/mcp/desk', KEY)
    assert.deepEqual(names(at((await own.request('prompts/list')).result, 'prompts')), ['ask', 'later'])
  })

  await t.test('a disabled one takes no name, and must be free when it is enabled', async () => {
    const made = await api('POST', '/prompts', { ...greet, name: 'desk-other', enabled: false })
    assert.equal(made.statusCode, 201, made.body)
    admins.options.prompts?.push({ name: 'other' })
    for (const each of admins.sessions.values()) await each.notify('notifications/prompts/list_changed')
    await until(async () => (await prompts()).includes('desk-other'))
    assert.equal((await api('PUT', `/prompts/${idOf(made.json())}`, { enabled: true })).statusCode, 409)
    assert.equal((await api('PUT', `/prompts/${idOf(made.json())}`, { template: 'x' })).statusCode, 200)
  })

  await t.test('a user sees built-ins, and servers\' resources as visibility says', async () => {
    const asAnn = await openSession(app, '/mcp', annsKey.token)
    assert.ok(names(at((await asAnn.request('prompts/list')).result, 'prompts')).includes('desk-later'))
    const hide = async (visibility: string): Promise<void> => {
      await api('PUT', '/servers/desk', { config: { url: admins.url, visibility } })
      await until(() => app.upstreams.get('desk')?.status === 'connected')
    }
    assert.equal((await api('POST', '/resources/read', { uri: 'file:///a' }, 'ann')).statusCode, 200)
    await hide('private')
    const hidden = await api('POST', '/resources/read', { uri: 'file:///a' }, 'ann')
    const absent = await api('POST', '/resources/read', { uri: 'file:///b' }, 'ann')
    assert.deepEqual([hidden.statusCode, hidden.body.replace('file:///a', 'file:///b')], [404, absent.body])
    assert.equal((await api('POST', '/resources/read', { uri: 'file:///later' }, 'ann')).statusCode, 200)
  })

  await t.test('what is built in no more is the server\'s', async () => {
    const [prompt, resource] = ids
    await api('PUT', `/prompts/${prompt}`, { enabled: false })
    await api('PUT', `/resources/${resource}`, { enabled: false })
    await until(async () => (await prompts()).includes('desk-later'))
    const read = await session.request('resources/read', { uri: 'file:///later' })
    assert.equal(at(read.result, 'contents', 0, 'text'), 'of a server')
    assert.equal((await api('PUT', `/prompts/${prompt}`, { enabled: true })).statusCode, 409)
    assert.equal((await api('PUT', `/resources/${resource}`, { enabled: true })).statusCode, 409)
  })
})

test('the settings file: an edit counts, bad entries are reported, and everything is there after a restart', async (t) => {
  const folder = await temporaryFolder(t)
  const first = await startHub(t, { folder, settings: settings({}, { resources: [{ id: 'bad' }, { id: '1', ...rules }] }) })
  assert.match(first.output(), /\\"resources\\" entry 1 is ignored/)
  assert.equal((await manage(first, 'POST', '/prompts', greet)).status, 201)
  const path = join(folder, 'mcp_settings.json')
  const stored = JSON.parse(await readFile(path, 'utf8')) as { prompts: Json[], resources: Json[] }
  assert.equal(stored.prompts[0]?.template, greet.template)
  assert.deepEqual(stored.resources, [{ id: 'bad' }, { id: '1', ...rules }])
  stored.prompts.push({ id: 'two', name: 'two', template: '2' }, { id: 'three', name: 'two', template: '3' })
  await writeFile(path, JSON.stringify(stored))
  const session = await Session.open(`${first.url}/mcp`)
  const prompts = async (of: Session): Promise<string[]> => names(await of.list('prompts/list', 'prompts'))
  await until(async () => (await prompts(session)).length === 2)
  assert.equal(text(await session.ask('prompts/get', { name: 'two' })), '2', 'of two with one name, the first')
  await first.stop()
  const second = await startHub(t, { folder })
  assert.deepEqual(await prompts(await Session.open(`${second.url}/mcp`)), ['greet', 'two'])
})

test('PostgreSQL: they are stored, and other replicas list them', async (t) => {
  const { url, query } = await database(t)
  const env = { DB_URL: url, ENCRYPTION_KEY: 'k'.repeat(64), LOG_LEVEL: 'warn' }
  const more = { prompts: [{ id: '1', ...greet, unknown: [1] }], resources: [{ id: '1', ...rules, content: 'https://user:secret@host/ ••••' }] }
  const one = await startHub(t, { settings: settings({}, more), env })
  const two = await startHub(t, { env })
  const session = await Session.open(`${two.url}/mcp`)
  const prompts = async (): Promise<string[]> => names(await session.list('prompts/list', 'prompts'))
  assert.deepEqual(await prompts(), ['greet'])
  assert.equal((await manage(one, 'POST', '/prompts', { name: '__proto__', template: 'x' })).status, 201)
  await until(async () => (await prompts()).includes('__proto__'))
  assert.equal(at(await session.ask('resources/read', { uri: rules.uri }), 'contents', 0, 'text'), 'https://user:secret@host/ ••••')
  assert.equal((await query('select 1 from prompts')).length, 2)
  await Promise.all([one.stop(), two.stop()])
})
