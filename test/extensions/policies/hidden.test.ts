// What a policy hides answers as what does not exist, however it is asked for, and clients hear of it.
import assert from 'node:assert/strict'
import type { FastifyInstance } from 'fastify'
import bcrypt from 'bcryptjs'
import { test, type Test } from 'tap'
import { makeStaticCatalogue } from '../../../protocol/lists.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { loggedIn, manage, managed } from '../../fakes/replica.ts'
import { secret } from '../../fakes/webhook-receiver.ts'
import { at, KEY, open, Session, settings, silence, type Json, type Message, type Stream } from '../../helpers/client.ts'
import { startEventsHub } from '../../helpers/events-hub.ts'
import { until } from '../../helpers/hub.ts'
import { openSession } from '../../helpers/inject.ts'
import { modernRequest } from '../../helpers/modern-request.ts'
import { addPolicy, rule, startWithPolicies, type AskApi } from '../../helpers/policies.ts'
import { served } from '../../helpers/served.ts'

/** The items named `secret` are listed and hidden, those named `unlisted` only hidden, and those named `absent` are nowhere. */
const hides = rule('h', `tool.name in ["secret", "note://secret", "doc:///secret/{path}", "skill://secret/SKILL.md", "note://unlisted",
  "skill://unlisted/SKILL.md", "skill://unlisted"]`, 'hide')

/** A gateway over the server `lib`, which answers everything that reaches it. */
async function startLibrary (t: Test): Promise<{ app: FastifyInstance, api: AskApi }> {
  const { app, api } = await startWithPolicies(t, settings({}))
  const inputSchema = { type: 'object' }
  const catalogue = makeStaticCatalogue({
    name: 'lib',
    version: '1',
    tools: [{ name: 'shown', inputSchema }, { name: 'secret', inputSchema }],
    prompts: [{ name: 'shown' }, { name: 'secret' }],
    resources: [{ uri: 'note://secret', name: 'secret' }],
    resourceTemplates: [{ uriTemplate: 'doc:///secret/{path}', name: 'files' }, { uriTemplate: 'note://{name}', name: 'notes' }],
    skills: [{ uri: 'skill://secret/SKILL.md', frontmatter: { name: 'secret', description: 'd' }, resources: [{ uri: 'skill://secret/SKILL.md', digest: 'sha256:00', size: 1 }] }]
  })
  app.gateway.addProvider({
    name: 'lib',
    catalogue: () => catalogue,
    call: async () => ({ kind: 'response', id: null, resultText: '{"reached":true}' }),
    subscribe: async () => '{"reached":true}',
    unsubscribe: async () => '{"reached":true}'
  })
  return { app, api }
}

type Asked = readonly [method: string, params: Json]
type Ask = (...asked: Asked) => Promise<Message>

/** Both eras on one route. */
async function waysOf (app: FastifyInstance, url: string): Promise<Record<'legacy' | 'modern', Ask>> {
  const session = await openSession(app, url, KEY)
  return {
    legacy: async (method, params) => await session.request(method, params),
    modern: async (method, params) => {
      const { headers, body: payload } = modernRequest(method, { params })
      return (await app.inject({ method: 'POST', url, headers, payload })).json()
    }
  }
}

const completing = (ref: Json): Asked => ['completion/complete', { ref, argument: { name: 'a', value: '' } }]
const namedBy = (prefix: string, name: string): Asked[] => [
  ['tools/call', { name: `${prefix}${name}`, arguments: {} }],
  ['prompts/get', { name: `${prefix}${name}` }],
  completing({ type: 'ref/prompt', name: `${prefix}${name}` }),
  completing({ type: 'ref/resource', uri: `doc:///${name}/{path}` }),
  ['resources/unsubscribe', { uri: `note://${name}` }]
]
const locatedBy = (name: string): Asked[] => [
  ['resources/read', { uri: `doc:///${name}/a` }],
  ['resources/subscribe', { uri: `doc:///${name}/a` }],
  completing({ type: 'ref/resource', uri: `doc:///${name}/a` }),
  ['resources/read', { uri: `skill://${name}/SKILL.md` }],
  ['skills/get', { uri: `skill://${name}/SKILL.md` }],
  ['resources/directory/read', { uri: `skill://${name}` }]
]

test('a listed item that is hidden answers byte for byte as one that does not exist, in both eras', async (t) => {
  const { app, api } = await startLibrary(t)
  await addPolicy(api, hides)
  for (const [url, of] of [
    ['/mcp', (name: string) => [...namedBy('lib-', name), ...locatedBy(name)]],
    // An unlisted URI is the server's there.
    ['/mcp/lib', (name: string) => namedBy('', name)]
  ] as const) {
    const absent = of('absent')
    for (const [era, ask] of Object.entries(await waysOf(app, url))) {
      for (const [n, asked] of of('secret').entries()) {
        const what = `${url} ${era} ${JSON.stringify(asked)}`
        const answer = await ask(...asked)
        assert.doesNotMatch(JSON.stringify(answer), /reached|undefined/, what)
        const other = JSON.stringify(await ask(...absent[n] as Asked)).replaceAll('absent', 'secret')
        assert.equal(JSON.stringify(answer).replace(/"id":\d+/, ''), other.replace(/"id":\d+/, ''), what)
      }
    }
  }
})

test('an item that no list has and a policy hides answers as one that does not exist, in both eras', async (t) => {
  const { app, api } = await startLibrary(t)
  await addPolicy(api, hides)
  const skill = 'skill://unlisted/SKILL.md'
  for (const url of ['/mcp', '/mcp/lib']) {
    for (const [era, ask] of Object.entries(await waysOf(app, url))) {
      const refused = async (...asked: Asked): Promise<unknown[]> => {
        const { error } = await ask(...asked)
        return [error?.code, error?.message]
      }
      const notFound = era === 'modern' ? -32602 : -32002
      const note = 'note://unlisted'
      assert.deepEqual(await refused('resources/read', { uri: note }), [notFound, `Resource not found: ${note}`], `${url} ${era}`)
      assert.deepEqual(await refused(...completing({ type: 'ref/resource', uri: note })), [-32602, `Unknown resource template: ${note}`], `${url} ${era}`)
      assert.deepEqual(await refused('skills/get', { uri: skill }), [-32602, `No skill is served at ${skill}`], `${url} ${era}`)
      assert.deepEqual(await refused('resources/directory/read', { uri: 'skill://unlisted' }), [-32602, 'There is no folder at skill://unlisted'], `${url} ${era}`)
    }
  }
})

test('sessions are told what is hidden at their address, and of nothing else', async (t) => {
  const { api, url } = await startWithPolicies(t, settings({}))
  const session = await Session.open(`${url}/mcp`)
  const stream = await session.listen()
  const told = (): number => stream.messages.filter(({ method }) => method === 'notifications/tools/list_changed').length
  assert.deepEqual(await session.tools(), ['up-read', 'up-write', 'up-delete'])
  const here = await addPolicy(api, rule('here', 'principal.address == "127.0.0.1" && tool.name == "delete"', 'hide'))
  await until(() => told() === 1, 'it was not told')
  assert.deepEqual(await session.tools(), ['up-read', 'up-write'])
  await addPolicy(api, rule('elsewhere', 'principal.address == "192.0.2.1" && tool.name == "write"', 'hide'))
  await silence(300)
  assert.equal(told(), 1, 'nothing has changed at this address')
  assert.equal((await api('DELETE', `/policies/${here}`)).status, 200)
  await until(() => told() === 2, 'it was not told that it is shown again')
  assert.deepEqual(await session.tools(), ['up-read', 'up-write', 'up-delete'])
})

test('the same session gets another list at another address', async (t) => {
  const { app, api } = await startWithPolicies(t, settings({}))
  await addPolicy(api, rule('there', 'principal.address == "192.0.2.1" && tool.name == "delete"', 'hide'))
  const session = await openSession(app, '/mcp', KEY, '192.0.2.1')
  const listed = async (remoteAddress: string): Promise<unknown> => {
    const reply = await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }, remoteAddress)
    return (at(reply.json(), 'result', 'tools') as Json[]).map(({ name }) => name)
  }
  assert.deepEqual(await listed('192.0.2.1'), ['up-read', 'up-write'])
  assert.deepEqual(await listed('192.0.2.2'), ['up-read', 'up-write', 'up-delete'])
})

test('an event type that a policy hides ends its streams and webhooks', async (t) => {
  const { hub, world, receiver } = await startEventsHub(t, { env: { OUTBOUND_ALLOW: '127.0.0.1' } })
  const named = { name: 'incident.created', arguments: {} }
  const events = async (method: string, more: Json = {}): Promise<Stream> =>
    await open(`${hub.url}/mcp/pager`, modernRequest(method, { params: { ...named, ...more } }))
  // A rule that hides something else: the stream begins with a filter.
  await managed(hub, 'POST', '/policies', rule('other', 'principal.address == "192.0.2.1"', 'hide'))
  const stream = await events('events/stream')
  await stream.wait(({ method }) => method === 'notifications/events/active')
  const subscribed = await events('events/subscribe', { delivery: { mode: 'webhook', url: receiver.url, secret } })
  assert.equal((await subscribed.wait(() => true)).error, undefined)
  // Another change of the settings takes no access.
  await managed(hub, 'POST', '/groups', { name: 'g' })
  await world.raise({ n: 1 })
  await until(() => receiver.events().length === 1)
  await stream.wait(({ method }) => method === 'notifications/events/event')
  const isHere = 'principal.address == "127.0.0.1" && tool.name == "incident.created"'
  await managed(hub, 'POST', '/policies', rule('h', isHere, 'hide'))
  const ended = await stream.wait(({ method }) => method === 'notifications/events/terminated')
  assert.deepEqual(at(ended.params, 'error', 'data'), { kind: 'event' })
  await until(() => receiver.got.some(({ body }) => body.type === 'terminated'), 'the webhook was not told')
  await until(() => world.webhooks.size === 0 && world.streaming === 0, 'the server was not told')
})

const users = [{ username: 'ann', password: bcrypt.hashSync('Same-1234', 4), createdAt: new Date().toISOString() }]

test('a group of a user is told the same of a hidden tool and of one that does not exist', async (t) => {
  const { url } = await startUpstream(t, { tools: [tool('shown'), tool('secret')] })
  const hub = await served(t, { lib: { url, visibility: 'public' } }, { users })
  await managed(hub, 'POST', '/policies', rule('h', 'tool.name == "secret"', 'hide'))
  const ann = await loggedIn(hub, 'ann', 'Same-1234')
  const stored = async (name: string): Promise<[unknown, string]> => {
    const { status, body, text } = await manage(hub, 'POST', '/groups', { name: `of-${name}`, servers: [{ name: 'lib', tools: [name] }] }, ann)
    assert.equal(status, 201, text)
    return [at(body, 'data', 'servers', 0, 'tools', 0), text.replaceAll(/[0-9a-f-]{36}/g, '').replaceAll(name, 'x')]
  }
  const [[absent, told], [hidden, toldOfHidden], [, toldOfShown]] = [await stored('absent'), await stored('secret'), await stored('shown')]
  assert.deepEqual([absent, hidden, toldOfHidden], ['absent', 'secret', told])
  assert.notEqual(toldOfShown, told)
  assert.deepEqual(await stored('lib-secret').then(([name]) => name), 'lib-secret', 'its name is not completed')
})

test('records of a server and what a user sees hide what is hidden at the address of the request', async (t) => {
  const { url } = await startUpstream(t, { tools: [tool('shown'), tool('secret')] })
  const hub = await served(t, { lib: { url, visibility: 'public' } }, { users }, { env: { TRUST_PROXY: '127.0.0.1' } })
  const ann = await loggedIn(hub, 'ann', 'Same-1234')
  await managed(hub, 'POST', '/policies', rule('h', 'principal.address == "192.0.2.1" && tool.name == "secret"', 'hide'))
  const toolsAt = async (address: string): Promise<unknown[]> => {
    const headers = { ...ann, 'x-forwarded-for': address }
    const data = async (path: string): Promise<unknown> => at((await manage(hub, 'GET', path, undefined, headers)).body, 'data')
    const names = (tools: unknown): unknown => (tools as Json[]).map(({ name }) => name)
    const view = await data('/users/ann/view')
    return [
      names(at(await data('/servers'), 0, 'tools')), names(at(await data('/servers/lib'), 'tools')),
      names(at(view, 'servers', 0, 'tools')), names(at(view, 'tools')), at(await data('/openapi/stats'), 'totalTools')
    ]
  }
  for (const address of ['192.0.2.1', '192.0.2.1:8080', '::ffff:192.0.2.1', '[::FFFF:c000:201]:80']) {
    assert.deepEqual(await toolsAt(address), [...Array(4).fill(['shown']), 1], address)
  }
  assert.deepEqual(await toolsAt('192.0.2.2'), [...Array(4).fill(['shown', 'secret']), 2])
})
