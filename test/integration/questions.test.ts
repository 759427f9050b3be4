import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { pathToFileURL } from 'node:url'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, type ClientCapabilities
} from '@modelcontextprotocol/sdk/types.js'
import { agent, at, everything, failed, listed, names, Session, settings, text, within, type Json } from '../helpers/client.ts'
import { startUpstream, tool, type Answer, type Call } from '../fakes/fault-http.ts'
import { startGates, type Gates } from '../fakes/gates.ts'
import { bearerKey, npmServer, startHub, until, type Cleanup } from '../helpers/hub.ts'
import { stdioFake } from '../helpers/stdio-fake.ts'
import { served } from '../helpers/served.ts'

const ISOLATIONS = ['auto', 'shared', 'session', 'user'] as const
const KINDS = ['sampling', 'elicitation', 'roots'] as const
const ALL: ClientCapabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } }
const ANN = `thk_${'c'.repeat(64)}`
const BEN = `thk_${'d'.repeat(64)}`

const people = {
  users: ['ann', 'ben'].map((username) => ({ username, password: 'x', isAdmin: false })),
  bearerKeys: [
    bearerKey(),
    bearerKey({ id: '44444444-4444-4444-8444-444444444441', name: 'ann', token: ANN, kind: 'user', owner: 'ann' }),
    bearerKey({ id: '44444444-4444-4444-8444-444444444442', name: 'ben', token: BEN, kind: 'user', owner: 'ben' })
  ]
}

/** A client that can be asked everything, answers with its own name, and remembers what it was asked. */
class AskedClient {
  readonly name: string
  readonly asked: string[] = []
  root: string
  client: Client | undefined

  constructor (name: string) {
    this.name = name
    this.root = `file:///home/${name}`
  }

  static async open (t: Cleanup, url: string, name: string, key?: string, capabilities = ALL, root?: string): Promise<AskedClient> {
    const asker = new AskedClient(name)
    if (root !== undefined) asker.root = root
    asker.client = await agent(t, url, {
      key,
      name,
      capabilities,
      prepare: (client) => {
        if (capabilities.sampling !== undefined) {
          client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
            asker.asked.push(text({ content: [params.messages[0]?.content].flat() }))
            return { model: name, role: 'assistant', content: { type: 'text', text: `sampled by ${name}` } }
          })
        }
        if (capabilities.elicitation !== undefined) {
          client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
            asker.asked.push(params.message)
            return params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { name } }
          })
        }
        if (capabilities.roots !== undefined) {
          client.setRequestHandler(ListRootsRequestSchema, () => {
            asker.asked.push('roots')
            return { roots: [{ uri: asker.root, name }] }
          })
        }
      }
    })
    return asker
  }

  async call (name: string, args: Json = {}): Promise<unknown> {
    assert.ok(this.client !== undefined)
    return await within(`${this.name} calls ${name}`, this.client.callTool({ name, arguments: args }))
  }

  async tools (): Promise<string[]> {
    return names((await this.client?.listTools())?.tools ?? [])
  }
}

/** The question that the tool `ask` of both fakes asks; its tag comes from the call that caused it. */
const question = (kind: typeof KINDS[number], tag: string): [string, Json] => {
  switch (kind) {
    case 'sampling': {
      const messages = [{ role: 'user', content: { type: 'text', text: tag } }]
      return ['sampling/createMessage', { messages, maxTokens: 10, 'x-unknown': [tag] }]
    }
    case 'elicitation':
      return ['elicitation/create', { message: tag, requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }]
    case 'roots':
      return ['roots/list', {}]
  }
}

/** The HTTP fake's tool `ask`: on the call's own stream, or (via: 'get') on the session's, related to no call. */
async function answer ({ method, params, ask, session }: Call): Promise<Answer> {
  if (method !== 'tools/call' || params.name !== 'ask') return undefined
  const args = params.arguments as Json
  if (args.before !== undefined) await fetch(String(args.before))
  const [name, more] = question(args.kind as typeof KINDS[number], String(args.tag))
  const reply = args.via === 'get' ? await session.ask(name, more) : await ask(name, more)
  if (args.after !== undefined) await fetch(String(args.after))
  return reply.error === undefined
    ? { content: [{ type: 'text', text: JSON.stringify(reply.result) }] }
    : { content: [{ type: 'text', text: JSON.stringify(reply.error) }], isError: true }
}

/** Whose answer a tool `ask` brought back: a name, or the error's text. */
interface Author { name?: string, error?: string }
function author (result: unknown): Author {
  if (at(result, 'isError') === true) return { error: text(result) }
  const parsed: unknown = JSON.parse(text(result))
  return { name: String(at(parsed, 'model') ?? at(parsed, 'content', 'name') ?? at(parsed, 'roots', 0, 'name')) }
}

type Pair = [AskedClient, AskedClient]

/** Both calls are open when the first question is asked, and until both are answered; nobody may ever hear the other's question. */
async function both (gates: Gates, askers: Pair, server: string, kind: typeof KINDS[number], more: Json = {}): Promise<Author[]> {
  const heardBefore = askers.map((asker) => asker.asked.length)
  const [before, after] = [gates.meeting(2), gates.meeting(2)]
  const results = await Promise.all(askers.map(async (asker) =>
    author(await asker.call(`${server}-ask`, { kind, tag: `${asker.name} asks ${server}`, before, after, ...more }))
  ))
  for (const [index, asker] of askers.entries()) {
    const heard = asker.asked.slice(heardBefore[index])
    for (const one of heard) {
      if (one !== 'roots') assert.equal(one, `${asker.name} asks ${server}`, `${asker.name} heard another's question`)
    }
    if (results[index]?.name !== undefined) {
      assert.equal(results[index]?.name, asker.name, `${asker.name} got another's answer from ${server}`)
      assert.equal(heard.length, 1)
    }
  }
  return results
}

const mine = (askers: Pair, results: Author[], what: string): void => {
  assert.deepEqual(results, askers.map(({ name }) => ({ name })), what)
}
const isolated = ({ error }: Author, kind: string): void => { assert.match(error ?? '', /isolation/, kind) }

test('two clients, one upstream that asks: every isolation, both transports, all questions', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('ask'), tool('echo')], on: answer })
  const gates = await startGates(t)
  const servers: Json = {}
  for (const isolation of ISOLATIONS) {
    servers[`http-${isolation}`] = { type: 'streamable-http', url: upstream.url, visibility: 'public', isolation }
    servers[`stdio-${isolation}`] = stdioFake(t, {}, { isolation, visibility: 'public' }).config
  }
  delete (servers['http-auto'] as Json).isolation
  const hub = await startHub(t, { settings: settings(servers, people) })
  await listed(hub, Object.keys(servers))
  const open = async (name: string, key?: string): Promise<AskedClient> => await AskedClient.open(t, `${hub.url}/mcp`, name, key)
  // the same key for both: what tells them apart is their session
  const askers: Pair = [await open('one'), await open('two')]
  const users: Pair = [await open('ann', ANN), await open('ben', BEN)]

  for (const isolation of ISOLATIONS) {
    const pair = isolation === 'user' ? users : askers
    const names2 = [`http-${isolation}`, `stdio-${isolation}`]

    await t.test(`${isolation}, HTTP: questions on the call's own stream`, async () => {
      for (const kind of KINDS) mine(pair, await both(gates, pair, `http-${isolation}`, kind), kind)
    })

    await t.test(`${isolation}, HTTP: questions on the session's stream`, async () => {
      for (const kind of KINDS) {
        const results = await both(gates, pair, `http-${isolation}`, kind, { via: 'get' })
        if (isolation === 'shared') for (const one of results) isolated(one, kind)
        else mine(pair, results, kind)
      }
    })

    await t.test(`${isolation}, stdio`, async () => {
      for (const kind of KINDS) {
        const results = await both(gates, pair, `stdio-${isolation}`, kind)
        if (isolation === 'shared') for (const one of results) isolated(one, kind)
        else if (isolation !== 'auto') mine(pair, results, kind)
        else for (const one of results) if (one.name === undefined) isolated(one, kind)
      }
    })

    await t.test(`${isolation}: one client with several calls open`, async () => {
      const [asker] = pair
      for (const server of names2) {
        const [before, after] = [gates.meeting(3), gates.meeting(3)]
        const results = await Promise.all([1, 2, 3].map(async (index) =>
          author(await asker.call(`${server}-ask`, { kind: 'elicitation', tag: `call ${index}`, before, after }))
        ))
        assert.deepEqual(results, [1, 2, 3].map(() => ({ name: asker.name })), server)
      }
    })
  }

  await t.test('auto, stdio: once seen asking with several owners open, each gets a link of its own', async () => {
    await until(
      async () => (await both(gates, askers, 'stdio-auto', 'sampling')).every(({ name }) => name !== undefined),
      'still not isolated'
    )
    for (const kind of KINDS) mine(askers, await both(gates, askers, 'stdio-auto', kind), kind)
  })

  await t.test('user: two sessions of one user never hear each other\'s questions', async () => {
    const twice: Pair = [users[0], await open('ann2', ANN)]
    for (const kind of KINDS) {
      mine(twice, await both(gates, twice, 'http-user', kind), kind)
      for (const one of await both(gates, twice, 'stdio-user', kind)) if (one.name === undefined) isolated(one, kind)
    }
  })

  await t.test('a client that cannot be asked is not asked, and nobody in its place', async (t) => {
    const deaf = await AskedClient.open(t, `${hub.url}/mcp`, 'deaf', undefined, {})
    const before = [...askers, ...users].map((asker) => asker.asked.length)
    for (const server of Object.keys(servers)) {
      for (const kind of KINDS) {
        const result = await deaf.call(`${server}-ask`, { kind, tag: 'deaf' })
        assert.equal(at(result, 'isError'), true, `${server} ${kind}: ${JSON.stringify(result)}`)
      }
    }
    assert.deepEqual([...askers, ...users].map((asker) => asker.asked.length), before)
  })
})

test('a question by hand: its bytes, its answer, and a stranger\'s answer', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('ask'), tool('echo')], on: answer })
  const { config } = stdioFake(t)
  const hub = await startHub(t, { settings: settings({ http: { type: 'streamable-http', url: upstream.url }, stdio: config }, people) })
  await listed(hub, ['http', 'stdio'])
  const experimental = { 'vendor/x': { y: 1 } }
  const capabilities = { sampling: { context: {} }, elicitation: { form: {}, 'x-form': 1 }, roots: {}, experimental }

  for (const server of ['http', 'stdio']) {
    await t.test(`${server}: asked on the call's own stream, answered by the one who was asked only`, async () => {
      const session = await Session.open(`${hub.url}/mcp`, { capabilities })
      const strangers = [
        await Session.open(`${hub.url}/mcp`, { capabilities }),
        await Session.open(`${hub.url}/mcp/${server}`, { capabilities }),
        await Session.open(`${hub.url}/mcp`)
      ]
      const params = { name: `${server}-ask`, arguments: { kind: 'sampling', tag: 'by hand' } }
      const stream = await session.start({ jsonrpc: '2.0', id: 0, method: 'tools/call', params })
      const posed = await stream.wait(({ method }) => method === 'sampling/createMessage')
      assert.ok(typeof posed.id === 'string' || typeof posed.id === 'number')
      assert.deepEqual(at(posed.params, 'messages', 0, 'content', 'text'), 'by hand')
      if (server === 'http') assert.deepEqual(posed.params, question('sampling', 'by hand')[1])
      const said = (name: string): Json => {
        const result = { model: name, role: 'assistant', content: { type: 'text', text: name }, 'x-answer': [1] }
        return { jsonrpc: '2.0', id: posed.id, result }
      }
      for (const stranger of strangers) assert.ok((await stranger.post(said('stranger'))).status < 500)
      // Another call goes there and back meanwhile.
      await session.call(`${server}-echo`)
      assert.ok(!stream.ended && !stream.messages.some((message) => message.result !== undefined), stream.body)
      assert.equal((await session.post(said('owner'))).status, 202)
      const result = (await stream.wait((message) => message.id === 0 && message.method === undefined)).result
      assert.deepEqual(JSON.parse(text(result)), said('owner').result)
      await until(() => stream.ended, 'the stream stayed open after its response')
      assert.ok((await session.post(said('again'))).status < 500)
    })

    await t.test(`${server}: an error for an answer`, async () => {
      const session = await Session.open(`${hub.url}/mcp/${server}`, { capabilities })
      const params = { name: 'ask', arguments: { kind: 'elicitation', tag: 'yes?' } }
      const stream = await session.start({ jsonrpc: '2.0', id: 'e', method: 'tools/call', params })
      const posed = await stream.wait((message) => message.method === 'elicitation/create')
      await session.post({ jsonrpc: '2.0', id: posed.id, error: { code: -32077, message: 'user said no', data: { why: 1 } } })
      const result = (await stream.wait((message) => message.id === 'e' && message.method === undefined)).result
      assert.equal(result?.isError, true)
      if (server === 'http') assert.deepEqual(JSON.parse(text(result)), { code: -32077, message: 'user said no', data: { why: 1 } })
      else assert.equal(text(result), 'user said no')
    })
  }
})

test('a question with an unknown method reaches clients of a single server, and is refused on merged routes', async (t) => {
  const upstream = await startUpstream(t, {
    tools: [tool('ask')],
    on: async ({ method, ask }) =>
      method === 'tools/call' ? { content: [{ type: 'text', text: JSON.stringify(await ask('vendor/ask', {})) }] } : undefined
  })
  const hub = await served(t, { s: { url: upstream.url } })
  const merged = await Session.open(`${hub.url}/mcp`, { capabilities: ALL })
  const call = { jsonrpc: '2.0', id: 'c', method: 'tools/call' }
  const refused = await merged.start({ ...call, params: { name: 's-ask', arguments: {} } })
  assert.match(text((await refused.wait(({ id, method }) => id === 'c' || method === 'vendor/ask')).result), /-32601/)
  const single = await Session.open(`${hub.url}/mcp/s`, { capabilities: ALL })
  const stream = await single.start({ ...call, params: { name: 'ask', arguments: {} } })
  const { id } = await stream.wait(({ method }) => method === 'vendor/ask')
  await single.post({ jsonrpc: '2.0', id, result: { vendor: 1 } })
  assert.match(text((await stream.wait((message) => message.id === 'c')).result), /"result":\{"vendor":1\}/)
})

test('server-everything and server-filesystem ask their clients', async (t) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tool-hub-roots-')))
  t.after(() => { rmSync(folder, { recursive: true, force: true }) })
  const hub = await startHub(t, {
    settings: settings({
      files: { type: 'stdio', ...npmServer('filesystem', folder), isolation: 'session' },
      web: { type: 'streamable-http', url: await everything(t), isolation: 'session' }
    })
  })
  await listed(hub, ['files', 'web'])

  await t.test('server-filesystem keeps to each client\'s roots, and follows when they change', async (t) => {
    const [first, second, third] = ['a', 'b', 'c'].map((name) => join(folder, name)) as [string, string, string]
    for (const made of [first, second, third]) mkdirSync(made)
    const one = await AskedClient.open(t, `${hub.url}/mcp/files`, 'one', undefined, ALL, pathToFileURL(first).href)
    const two = await AskedClient.open(t, `${hub.url}/mcp/files`, 'two', undefined, ALL, pathToFileURL(second).href)
    const allowed = async (asker: AskedClient): Promise<string> =>
      text(await asker.call('list_allowed_directories')).split('\n').slice(1).join()
    await until(async () => await allowed(one) === first, 'the first client\'s roots never came')
    await until(async () => await allowed(two) === second, 'the second client\'s roots never came')
    one.root = pathToFileURL(third).href
    await one.client?.sendRootsListChanged()
    await until(async () => await allowed(one) === third, 'the change was not followed')
    assert.equal(await allowed(two), second)
  })

  await t.test('an error that asks for a URL elicitation comes whole', async () => {
    const session = await Session.open(`${hub.url}/mcp/web`, { capabilities: { elicitation: { form: {}, url: {} } } })
    await until(async () => (await session.tools()).includes('trigger-url-elicitation'), 'no tool')
    const args = { url: 'https://example.com/', errorPath: true }
    const message = await session.request('tools/call', { name: 'trigger-url-elicitation', arguments: args })
    assert.ok(failed(message))
    assert.equal(message.error?.code, -32042)
    assert.equal(at(message.error?.data, 'elicitations', 0, 'url'), 'https://modelcontextprotocol.io')
  })
})
