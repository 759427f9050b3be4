import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { pathToFileURL } from 'node:url'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  type ClientCapabilities
} from '@modelcontextprotocol/sdk/types.js'
import { agent, at, everything, failed, listed, names, Session, settings, sleep, text, within, type Json } from '../helpers/client.ts'
import { startUpstream, tool, type Answer, type Call } from '../fakes/fault-http.ts'
import { bearerKey, npmServer, path, startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'

const ISOLATIONS = ['auto', 'shared', 'session', 'user'] as const
const KINDS = ['sampling', 'elicitation', 'roots'] as const
const GATED = ['get-roots-list', 'trigger-elicitation-request', 'trigger-sampling-request', 'trigger-url-elicitation']
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

  static async open (
    t: Cleanup,
    url: string,
    name: string,
    key?: string,
    capabilities: ClientCapabilities = ALL,
    root?: string
  ): Promise<AskedClient> {
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
    case 'sampling':
      return [
        'sampling/createMessage',
        { messages: [{ role: 'user', content: { type: 'text', text: tag } }], maxTokens: 10, 'x-unknown': [tag] }
      ]
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
  await sleep(Number(args.delay ?? 0))
  const [name, more] = question(args.kind as typeof KINDS[number], String(args.tag))
  const reply = args.via === 'get' ? await session.ask(name, more) : await ask(name, more)
  await sleep(Number(args.linger ?? 0))
  return reply.error === undefined
    ? { content: [{ type: 'text', text: JSON.stringify(reply.result) }] }
    : { content: [{ type: 'text', text: JSON.stringify(reply.error) }], isError: true }
}

const stdioFake = (more: Json = {}): Json => ({
  type: 'stdio',
  command: process.execPath,
  args: [path('test/fakes/fault-stdio.mjs')],
  visibility: 'public',
  ...more
})

/** Whose answer a tool `ask` brought back: a name, or the error's text. */
function author (result: unknown): { name?: string, error?: string } {
  if (at(result, 'isError') === true) return { error: text(result) }
  const parsed: unknown = JSON.parse(text(result))
  return { name: String(at(parsed, 'model') ?? at(parsed, 'content', 'name') ?? at(parsed, 'roots', 0, 'name')) }
}

/** Both ask at the same moment and stay open for a while; nobody may ever hear the other's question. */
async function both (
  askers: [AskedClient, AskedClient],
  server: string,
  kind: (typeof KINDS)[number],
  more: Json = {}
): Promise<{ name?: string; error?: string }[]> {
  const before = askers.map((asker) => asker.asked.length)
  const results = await Promise.all(
    askers.map(async (asker) =>
      author(await asker.call(`${server}-ask`, { kind, tag: `${asker.name} asks ${server}`, delay: 250, linger: 400, ...more }))
    )
  )
  for (const [index, asker] of askers.entries()) {
    const heard = asker.asked.slice(before[index])
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

const mine = (askers: [AskedClient, AskedClient], results: { name?: string, error?: string }[], what: string): void => {
  assert.deepEqual(results, askers.map(({ name }) => ({ name })), what)
}

test('two clients, one upstream that asks: every isolation, both transports, all questions', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('ask'), tool('echo')], on: answer })
  const servers: Json = {}
  for (const isolation of ISOLATIONS) {
    servers[`http-${isolation}`] = { type: 'streamable-http', url: upstream.url, visibility: 'public', isolation }
    servers[`stdio-${isolation}`] = stdioFake({ isolation })
  }
  delete (servers['http-auto'] as Json).isolation
  const hub = await startHub(t, { settings: settings(servers, people) })
  await listed(hub, Object.keys(servers))
  // the same key for both: what tells them apart is their session
  const askers: [AskedClient, AskedClient] = [
    await AskedClient.open(t, `${hub.url}/mcp`, 'one'),
    await AskedClient.open(t, `${hub.url}/mcp`, 'two')
  ]
  const users: [AskedClient, AskedClient] = [
    await AskedClient.open(t, `${hub.url}/mcp`, 'ann', ANN),
    await AskedClient.open(t, `${hub.url}/mcp`, 'ben', BEN)
  ]

  for (const isolation of ISOLATIONS) {
    const pair = isolation === 'user' ? users : askers

    await t.test(`${isolation}, HTTP: questions on the call's own stream`, async () => {
      for (const kind of KINDS) mine(pair, await both(pair, `http-${isolation}`, kind, { linger: 0 }), kind)
    })

    await t.test(`${isolation}, HTTP: questions on the session's stream`, async () => {
      for (const kind of KINDS) {
        const results = await both(pair, `http-${isolation}`, kind, { via: 'get' })
        if (isolation === 'shared') for (const { error } of results) assert.match(error ?? '', /isolation/, kind)
        else mine(pair, results, kind)
      }
    })

    await t.test(`${isolation}, stdio`, async () => {
      for (const kind of KINDS) {
        const results = await both(pair, `stdio-${isolation}`, kind)
        if (isolation === 'shared') for (const { error } of results) assert.match(error ?? '', /isolation/, kind)
        else if (isolation !== 'auto') mine(pair, results, kind)
        else for (const { name, error } of results) if (name === undefined) assert.match(error ?? '', /isolation/, kind)
      }
    })

    await t.test(`${isolation}: one after the other, each hears its own`, async () => {
      for (const server of [`http-${isolation}`, `stdio-${isolation}`]) {
        for (const kind of KINDS) {
          for (const asker of pair) {
            for (const via of ['post', 'get']) {
              assert.deepEqual(
                author(await asker.call(`${server}-ask`, { kind, tag: 'alone', via })),
                { name: asker.name },
                `${server} ${kind} ${via}`
              )
            }
          }
        }
      }
    })

    await t.test(`${isolation}: one client with several calls open`, async () => {
      const [asker] = pair
      for (const server of [`http-${isolation}`, `stdio-${isolation}`]) {
        const results = await Promise.all(
          [1, 2, 3].map(async (index) =>
            author(await asker.call(`${server}-ask`, { kind: 'elicitation', tag: `call ${index}`, delay: 100, linger: 200 }))
          )
        )
        assert.deepEqual(results, [1, 2, 3].map(() => ({ name: asker.name })), server)
      }
    })
  }

  await t.test('auto, stdio: once seen asking with several owners open, each gets a link of its own', async () => {
    await both(askers, 'stdio-auto', 'sampling')
    await until(
      async () => (await both(askers, 'stdio-auto', 'sampling')).every(({ name }) => name !== undefined),
      'still not isolated'
    )
    for (const kind of KINDS) mine(askers, await both(askers, 'stdio-auto', kind), kind)
  })

  await t.test('user: two sessions of one user never hear each other\'s questions', async (t) => {
    const twice: [AskedClient, AskedClient] = [users[0], await AskedClient.open(t, `${hub.url}/mcp`, 'ann2', ANN)]
    for (const kind of KINDS) {
      mine(twice, await both(twice, 'http-user', kind, { linger: 0 }), kind)
      for (const { name, error } of await both(twice, 'stdio-user', kind)) {
        if (name === undefined) assert.match(error ?? '', /isolation/, kind)
      }
    }
  })

  await t.test('a client that cannot be asked is not asked, and nobody in its place', async (t) => {
    const deaf = await AskedClient.open(t, `${hub.url}/mcp`, 'deaf', undefined, {})
    const before = [...askers, ...users].map((asker) => asker.asked.length)
    for (const isolation of ISOLATIONS) {
      for (const server of [`http-${isolation}`, `stdio-${isolation}`]) {
        for (const kind of KINDS) {
          const result = await deaf.call(`${server}-ask`, { kind, tag: 'deaf' })
          assert.equal(at(result, 'isError'), true, `${server} ${kind}: ${JSON.stringify(result)}`)
        }
      }
    }
    assert.deepEqual([...askers, ...users].map((asker) => asker.asked.length), before)
  })
})

test('a question by hand: its bytes, its answer, and a stranger\'s answer', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('ask'), tool('echo')], on: answer })
  const log = join(realpathSync(mkdtempSync(join(tmpdir(), 'tool-hub-ask-'))), 'log')
  t.after(() => { rmSync(join(log, '..'), { recursive: true, force: true }) })
  const hub = await startHub(t, {
    settings: settings({ http: { type: 'streamable-http', url: upstream.url }, stdio: stdioFake({ env: { FAULT_LOG: log } }) }, people)
  })
  await listed(hub, ['http', 'stdio'])
  const capabilities = {
    sampling: { context: {} },
    elicitation: { form: {}, 'x-form': 1 },
    roots: {},
    experimental: { 'vendor/x': { y: 1 } }
  }
  const call = (server: string, id: number | string): Json => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: `${server}-ask`, arguments: { kind: 'sampling', tag: 'by hand' } }
  })
  const asked = { method: 'sampling/createMessage' }

  for (const server of ['http', 'stdio']) {
    await t.test(`${server}: asked on the call's own stream, answered by the one who was asked only`, async () => {
      const session = await Session.open(`${hub.url}/mcp`, { capabilities })
      const strangers = [
        await Session.open(`${hub.url}/mcp`, { capabilities }),
        await Session.open(`${hub.url}/mcp/${server}`, { capabilities }),
        await Session.open(`${hub.url}/mcp`)
      ]
      const stream = await session.start(call(server, 0))
      const posed = await stream.wait((message) => message.method === asked.method)
      assert.ok(typeof posed.id === 'string' || typeof posed.id === 'number')
      assert.deepEqual(at(posed.params, 'messages', 0, 'content', 'text'), 'by hand')
      if (server === 'http') assert.deepEqual(posed.params, question('sampling', 'by hand')[1])
      const said = (name: string): Json => ({
        jsonrpc: '2.0',
        id: posed.id,
        result: { model: name, role: 'assistant', content: { type: 'text', text: name }, 'x-answer': [1] }
      })
      for (const stranger of strangers) {
        const reply = await stranger.post(said('stranger'))
        assert.ok(reply.status < 500, reply.body)
      }
      await sleep(300)
      assert.ok(!stream.ended && !stream.messages.some((message) => message.result !== undefined), stream.body)
      assert.equal((await session.post(said('owner'))).status, 202)
      const result = (await stream.wait((message) => message.id === 0 && message.method === undefined)).result
      assert.deepEqual(JSON.parse(text(result)), said('owner').result)
      await until(() => stream.ended, 'the stream stayed open after its response')
      assert.ok((await session.post(said('again'))).status < 500)
    })

    await t.test(`${server}: an error for an answer`, async () => {
      const session = await Session.open(`${hub.url}/mcp/${server}`, { capabilities })
      const stream = await session.start({
        jsonrpc: '2.0',
        id: 'e',
        method: 'tools/call',
        params: { name: 'ask', arguments: { kind: 'elicitation', tag: 'yes?' } }
      })
      const posed = await stream.wait((message) => message.method === 'elicitation/create')
      await session.post({ jsonrpc: '2.0', id: posed.id, error: { code: -32077, message: 'user said no', data: { why: 1 } } })
      const result = (await stream.wait((message) => message.id === 'e' && message.method === undefined)).result
      assert.equal(result?.isError, true)
      if (server === 'http') assert.deepEqual(JSON.parse(text(result)), { code: -32077, message: 'user said no', data: { why: 1 } })
      else assert.equal(text(result), 'user said no')
    })
  }

  await t.test('a question with no call open comes on the session\'s GET stream', async () => {
    const session = await Session.open(`${hub.url}/mcp/http`, { capabilities })
    const stream = await session.listen()
    await session.call('echo')
    const link = upstream.sessions.get(upstream.received.filter(({ message }) => message.params?.name === 'echo').at(-1)?.session ?? '')
    assert.ok(link !== undefined)
    const reply = link.ask('roots/list', {})
    const posed = await stream.wait((message) => message.method === 'roots/list')
    await session.post({ jsonrpc: '2.0', id: posed.id, result: { roots: [{ uri: 'file:///r', name: 'r' }] } })
    assert.deepEqual((await within('the answer', reply)).result, { roots: [{ uri: 'file:///r', name: 'r' }] })
    stream.close()
  })

  await t.test('upstreams are told what this client really can', async () => {
    await (await Session.open(`${hub.url}/mcp/stdio`)).call('echo')
    assert.ok([...upstream.sessions.values()].some((one) => JSON.stringify(one.capabilities.sampling) === '{"context":{}}'))
    const told = readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json)
      .filter((one) => one.event === 'initialize')
    assert.ok(
      told.some(
        (one) =>
          at(one.capabilities, 'sampling') === undefined &&
          at(one.capabilities, 'elicitation') === undefined &&
          at(one.capabilities, 'roots') === undefined
      ),
      'the link for clients that cannot be asked'
    )
    assert.ok(told.some((one) => at(one.capabilities, 'sampling') !== undefined), 'the link for clients that can')
  })
})

/** server-everything and server-filesystem behind the gateway, in the isolations that a question can be told apart in. */
async function real (t: Cleanup, folder: string): Promise<Hub> {
  const url = await everything(t)
  const servers: Json = {}
  for (const isolation of ['auto', 'session', 'user']) {
    servers[`web-${isolation}`] = { type: 'streamable-http', url, visibility: 'public', isolation }
    servers[`local-${isolation}`] = { type: 'stdio', ...npmServer('everything', 'stdio'), visibility: 'public', isolation }
  }
  servers.files = { type: 'stdio', ...npmServer('filesystem', folder), visibility: 'public', isolation: 'session' }
  const hub = await startHub(t, { settings: settings(servers, people) })
  await listed(hub, Object.keys(servers))
  return hub
}

test('server-everything and server-filesystem ask their clients', async (t) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tool-hub-roots-')))
  t.after(() => { rmSync(folder, { recursive: true, force: true }) })
  const hub = await real(t, folder)
  const single = [...['auto', 'session', 'user'].flatMap((isolation) => [`web-${isolation}`, `local-${isolation}`])]

  await t.test('a client that cannot be asked does not see the tools that ask; one that can does', async (t) => {
    for (const server of single) {
      const able = await AskedClient.open(t, `${hub.url}/mcp/${server}`, 'able', server.endsWith('user') ? ANN : undefined)
      await until(async () => {
        const seen = await able.tools()
        return GATED.every((name) => seen.includes(name))
      }, `${server}: the tools that ask never showed`)
      const deaf = await AskedClient.open(t, `${hub.url}/mcp/${server}`, 'deaf', server.endsWith('user') ? BEN : undefined, {})
      const seen = await deaf.tools()
      assert.ok(seen.includes('echo'), server)
      assert.deepEqual(GATED.filter((name) => seen.includes(name)), [], server)
    }
  })

  await t.test('a client sees the tools for exactly what it can', async (t) => {
    for (const server of ['web-auto', 'web-session', 'local-session']) {
      const sampler = await AskedClient.open(t, `${hub.url}/mcp/${server}`, 'sampler', undefined, { sampling: {} })
      await until(async () => (await sampler.tools()).includes('trigger-sampling-request'), `${server}: no tool that samples`)
      const seen = await sampler.tools()
      assert.deepEqual(GATED.filter((name) => seen.includes(name)), ['trigger-sampling-request'], server)
    }
  })

  for (const server of single) {
    await t.test(`${server}: sampling and elicitation reach the client that called`, async (t) => {
      const keys = server.endsWith('user') ? [ANN, BEN] : [undefined, undefined]
      const askers = await Promise.all(
        ['one', 'two'].map(async (name, index) => await AskedClient.open(t, `${hub.url}/mcp/${server}`, name, keys[index]))
      )
      for (const asker of askers) {
        await until(async () => (await asker.tools()).includes('trigger-url-elicitation'), 'no tool that asks')
      }
      const round = async (asker: AskedClient): Promise<string[]> => [
        text(await asker.call('trigger-sampling-request', { prompt: `for ${asker.name}` })),
        text(await asker.call('trigger-elicitation-request')),
        text(await asker.call('trigger-url-elicitation', { url: 'https://example.com/', message: `url for ${asker.name}` }))
      ]
      const check = (asker: AskedClient, [sampled, elicited, opened]: string[]): void => {
        assert.match(sampled ?? '', new RegExp(`sampled by ${asker.name}`))
        assert.match(elicited ?? '', new RegExp(`Name: ${asker.name}\\b`))
        assert.match(opened ?? '', /completed the URL/)
        for (const one of asker.asked) assert.doesNotMatch(one, new RegExp(`for ${asker.name === 'one' ? 'two' : 'one'}\\b`))
      }
      for (const asker of askers) check(asker, await round(asker))
      if (server === 'local-auto') return
      for (let again = 0; again < 5; again++) {
        const rounds = await Promise.all(askers.map(round))
        for (const [index, asker] of askers.entries()) check(asker, rounds[index] ?? [])
      }
    })
  }

  await t.test('roots are each client\'s own', async (t) => {
    for (const server of ['web-auto', 'web-session', 'local-session']) {
      const askers = await Promise.all(['one', 'two'].map(async (name) => await AskedClient.open(t, `${hub.url}/mcp/${server}`, name)))
      for (const asker of askers) {
        await until(async () => (await asker.tools()).includes('get-roots-list'), 'no tool for roots')
        await until(
          async () => text(await asker.call('get-roots-list')).includes(asker.root),
          `${server}: ${asker.name}'s roots never came`
        )
        const listed = text(await asker.call('get-roots-list'))
        assert.ok(!listed.includes(asker.name === 'one' ? 'file:///home/two' : 'file:///home/one'), listed)
      }
    }
  })

  await t.test('server-filesystem keeps to each client\'s roots, and follows when they change', async (t) => {
    const [first, second, third] = ['a', 'b', 'c'].map((name) => join(folder, name)) as [string, string, string]
    for (const made of [first, second, third]) mkdirSync(made)
    const one = await AskedClient.open(t, `${hub.url}/mcp/files`, 'one', undefined, ALL, pathToFileURL(first).href)
    const two = await AskedClient.open(t, `${hub.url}/mcp/files`, 'two', undefined, ALL, pathToFileURL(second).href)
    const allowed = async (asker: AskedClient): Promise<string> =>
      text(await asker.call('list_allowed_directories'))
        .split('\n')
        .slice(1)
        .join()
    await until(async () => await allowed(one) === first, 'the first client\'s roots never came')
    await until(async () => await allowed(two) === second, 'the second client\'s roots never came')
    one.root = pathToFileURL(third).href
    await one.client?.sendRootsListChanged()
    await until(async () => await allowed(one) === third, 'the change was not followed')
    assert.equal(await allowed(two), second)
  })

  await t.test('an error that asks for a URL elicitation comes whole', async () => {
    const session = await Session.open(`${hub.url}/mcp/web-session`, { capabilities: { elicitation: { form: {}, url: {} } } })
    await until(async () => (await session.tools()).includes('trigger-url-elicitation'), 'no tool')
    const message = await session.request('tools/call', {
      name: 'trigger-url-elicitation',
      arguments: { url: 'https://example.com/', errorPath: true }
    })
    assert.ok(failed(message))
    assert.equal(message.error?.code, -32042)
    assert.equal(at(message.error?.data, 'elicitations', 0, 'url'), 'https://modelcontextprotocol.io')
  })
})
