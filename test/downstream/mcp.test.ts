import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CallToolResultSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { Pool } from 'undici'
import {
  agent,
  assertRefused,
  at,
  connected,
  directStdio,
  everything,
  failed,
  failure,
  initialize,
  KEY,
  names,
  open,
  OTHER,
  otherKey,
  plain,
  send,
  Session,
  settings,
  sleep,
  text,
  type Json,
  type Message,
  type Stream
} from '../helpers/client.ts'
import { Raw, Refusal, startUpstream, tool } from '../fakes/fault-http.ts'
import { measureHold } from '../fakes/loop-hold.ts'
import { bearerKey, npmServer, path, startHub, until, type Cleanup } from '../helpers/hub.ts'

const TEAM = '0f9d2c2e-52f5-4c5c-9df6-3b8f3f2b9b01'
const CHOSEN = '0f9d2c2e-52f5-4c5c-9df6-3b8f3f2b9b02'
const DOCUMENT = 'demo://resource/static/document/features.md'

function folder (t: Cleanup): string {
  const made = realpathSync(mkdtempSync(join(tmpdir(), 'tool-hub-files-')))
  t.after(() => { rmSync(made, { recursive: true, force: true }) })
  return made
}

/** Every page of the four lists, as far as the server has them. */
async function lists (client: Client): Promise<Record<string, Json[]>> {
  const has = client.getServerCapabilities() ?? {}
  const all = async (page: (cursor?: string) => Promise<Json>, key: string): Promise<Json[]> => {
    const items: Json[] = []
    let cursor: string | undefined
    do {
      const result = await page(cursor)
      items.push(...result[key] as Json[])
      cursor = result.nextCursor as string | undefined
    } while (cursor !== undefined)
    return items
  }
  return {
    tools: has.tools === undefined ? [] : await all(async (cursor) => await client.listTools({ cursor }), 'tools'),
    prompts: has.prompts === undefined ? [] : await all(async (cursor) => await client.listPrompts({ cursor }), 'prompts'),
    resources: has.resources === undefined ? [] : await all(async (cursor) => await client.listResources({ cursor }), 'resources'),
    resourceTemplates:
      has.resources === undefined ? [] : await all(async (cursor) => await client.listResourceTemplates({ cursor }), 'resourceTemplates')
  }
}

test('real servers, through the SDK\'s own client', async (t) => {
  const files = folder(t)
  writeFileSync(join(files, 'hello.txt'), 'hello from a file')
  const [webUrl, sseUrl] = await Promise.all([everything(t), everything(t, 'sse')])
  const stdio = {
    local: npmServer('everything', 'stdio'),
    files: npmServer('filesystem', files),
    notes: npmServer('memory')
  }
  const servers = {
    web: { type: 'streamable-http', url: webUrl },
    local: { type: 'stdio', ...stdio.local },
    files: { type: 'stdio', ...stdio.files },
    notes: { type: 'stdio', ...stdio.notes, env: { MEMORY_FILE_PATH: join(files, 'notes.jsonl') } },
    old: { type: 'sse', url: sseUrl },
    either: { url: sseUrl },
    off: { type: 'stdio', ...stdio.local, enabled: false }
  }
  const enabled = Object.keys(servers).filter((name) => name !== 'off')
  const hub = await startHub(t, {
    settings: settings(servers, {
      groups: [
        { id: TEAM, name: 'team', description: '', owner: 'admin', servers: ['web', 'files'] },
        {
          id: CHOSEN,
          name: 'chosen',
          description: '',
          owner: 'admin',
          servers: [
            { name: 'web', tools: ['echo', 'get-sum'], prompts: ['simple-prompt'], resources: [DOCUMENT] },
            { name: 'local', tools: ['echo'], prompts: 'all', resources: [], alias: 'l' }
          ]
        },
        { id: '0f9d2c2e-52f5-4c5c-9df6-3b8f3f2b9b03', name: 'bare', description: '', owner: 'admin', servers: ['files'] }
      ]
    })
  })
  await connected(hub, enabled.length)
  const direct: Record<string, Client> = {
    web: await agent(t, webUrl, { key: null }),
    local: await directStdio(t, stdio.local),
    files: await directStdio(t, stdio.files),
    notes: await directStdio(t, stdio.notes, { MEMORY_FILE_PATH: join(files, 'other.jsonl') })
  }
  const client = await agent(t, `${hub.url}/mcp`)

  await t.test('the global route lists every server\'s tools under <server>-<tool>, in the order of the settings', async () => {
    await until(async () => {
      const listed = names((await lists(client)).tools)
      for (const name of ['web', 'local', 'files', 'notes']) {
        const expected = names((await lists(direct[name] as Client)).tools).map((one) => `${name}-${one}`)
        assert.deepEqual(listed.filter((one) => one.startsWith(`${name}-`)), expected)
      }
      return true
    }, () => `the lists never became equal: ${hub.output().slice(-2_000)}`)
    const listed = names((await lists(client)).tools)
    const order = listed.map((one) => one.split('-')[0]).filter((one, index, all) => one !== all[index - 1])
    assert.deepEqual(order, enabled)
    assert.equal(new Set(listed).size, listed.length)
  })

  await t.test('tools of every server can be called', async () => {
    assert.equal(text(await client.callTool({ name: 'web-echo', arguments: { message: 'one' } })), 'Echo: one')
    assert.equal(text(await client.callTool({ name: 'local-get-sum', arguments: { a: 2, b: 3 } })), 'The sum of 2 and 3 is 5.')
    assert.equal(
      text(await client.callTool({ name: 'files-read_text_file', arguments: { path: join(files, 'hello.txt') } })),
      'hello from a file'
    )
    assert.equal(text(await client.callTool({ name: 'old-echo', arguments: { message: 'sse' } })), 'Echo: sse')
    assert.equal(text(await client.callTool({ name: 'either-echo', arguments: { message: 'fall-back' } })), 'Echo: fall-back')
    await client.callTool({
      name: 'notes-create_entities',
      arguments: { entities: [{ name: 'Ada', entityType: 'person', observations: ['counts'] }] }
    })
    const graph = await client.callTool({ name: 'notes-read_graph', arguments: {} })
    assert.deepEqual(at(graph, 'structuredContent', 'entities', 0, 'name'), 'Ada')
    assert.match(await readFile(join(files, 'notes.jsonl'), 'utf8'), /Ada/)
  })

  await t.test('results come as the server gave them', async () => {
    for (const [name, args] of [
      ['get-structured-content', { location: 'Chicago' }],
      ['get-tiny-image', {}],
      ['get-annotated-message', { messageType: 'error', includeImage: true }],
      ['get-resource-reference', { resourceType: 'Blob', resourceId: 'x' }]
    ] as const) {
      const expected = await direct.web?.callTool({ name, arguments: args })
      assert.deepEqual(await client.callTool({ name: `web-${name}`, arguments: args }), expected, name)
      assert.deepEqual(await client.callTool({ name: `local-${name}`, arguments: args }), expected, name)
    }
  })

  await t.test('a single-server route is the server itself: lists, capabilities, serverInfo, instructions', async (t) => {
    for (const name of ['web', 'local', 'files', 'notes']) {
      const expected = direct[name] as Client
      const through = await agent(t, `${hub.url}/mcp/${name}`)
      assert.deepEqual(through.getServerCapabilities(), expected.getServerCapabilities(), name)
      assert.deepEqual(through.getServerVersion(), expected.getServerVersion(), name)
      assert.equal(through.getInstructions(), expected.getInstructions(), name)
      assert.deepEqual(await lists(through), await lists(expected), name)
    }
  })

  await t.test('a single-server route takes raw and qualified names in calls', async (t) => {
    const web = await agent(t, `${hub.url}/mcp/web`)
    assert.equal(text(await web.callTool({ name: 'echo', arguments: { message: 'raw' } })), 'Echo: raw')
    assert.equal(text(await web.callTool({ name: 'web-echo', arguments: { message: 'qualified' } })), 'Echo: qualified')
    assert.match(text(await web.getPrompt({ name: 'simple-prompt' })), /simple prompt/)
    assert.match(text(await web.getPrompt({ name: 'web-simple-prompt' })), /simple prompt/)
  })

  await t.test('a group by id and by name', async (t) => {
    for (const name of [TEAM, 'team']) {
      const team = await agent(t, `${hub.url}/mcp/${name}`)
      const listed = names((await lists(team)).tools)
      assert.ok(listed.includes('web-echo') && listed.includes('files-read_text_file'), listed.join(' '))
      assert.ok(listed.every((one) => one.startsWith('web-') || one.startsWith('files-')), listed.join(' '))
      assert.equal(text(await team.callTool({ name: 'web-echo', arguments: { message: name } })), `Echo: ${name}`)
    }
  })

  await t.test('names are qualified by the kind of route, never by count: a group of one', async (t) => {
    const bare = await agent(t, `${hub.url}/mcp/bare`)
    const listed = names((await lists(bare)).tools)
    assert.ok(listed.length > 0 && listed.every((one) => one.startsWith('files-')), listed.join(' '))
    for (const absent of ['prompts', 'resources', 'completions'] as const) {
      assert.equal(bare.getServerCapabilities()?.[absent], undefined, absent)
    }
  })

  await t.test('selectors and aliases of a group\'s members', async (t) => {
    const chosen = await agent(t, `${hub.url}/mcp/chosen`)
    const listed = await lists(chosen)
    assert.deepEqual(names(listed.tools), ['web-echo', 'web-get-sum', 'l-echo'])
    assert.deepEqual(names(listed.prompts), [
      'web-simple-prompt',
      ...names((await lists(direct.local as Client)).prompts).map((name) => `l-${name}`)
    ])
    assert.deepEqual(listed.resources?.map((one) => one.uri), [DOCUMENT])
    assert.equal(text(await chosen.callTool({ name: 'l-echo', arguments: { message: 'alias' } })), 'Echo: alias')
    const session = await Session.open(`${hub.url}/mcp/chosen`)
    for (const name of ['web-get-env', 'local-echo', 'l-get-sum', 'files-read_text_file']) {
      assert.ok(failed(await session.request('tools/call', { name, arguments: {} })), name)
    }
    assert.ok(failed(await session.request('prompts/get', { name: 'web-args-prompt', arguments: { city: 'Rome' } })))
    assert.ok(failed(await session.request('resources/read', { uri: 'demo://resource/static/document/architecture.md' })))
  })

  await t.test('prompts', async () => {
    const listed = names((await lists(client)).prompts)
    for (const name of ['web', 'local', 'old']) assert.ok(listed.includes(`${name}-args-prompt`), listed.join(' '))
    assert.equal(
      text(await client.getPrompt({ name: 'local-args-prompt', arguments: { city: 'Paris', state: 'Texas' } })),
      "What's weather in Paris, Texas?"
    )
  })

  await t.test('resources and templates keep their URIs', async () => {
    const listed = await lists(client)
    assert.ok(listed.resources?.some((one) => one.uri === DOCUMENT))
    assert.ok(listed.resources?.some((one) => one.uri === 'memory://knowledge-graph'))
    assert.ok(listed.resourceTemplates?.some((one) => one.uriTemplate === 'demo://resource/dynamic/text/{resourceId}'))
    const expected = await direct.web?.readResource({ uri: DOCUMENT })
    assert.deepEqual(await client.readResource({ uri: DOCUMENT }), expected)
    assert.match(String(at(await client.readResource({ uri: 'demo://resource/dynamic/text/7' }), 'contents', 0, 'text')), /^Resource 7: /)
    assert.match(String(at(await client.readResource({ uri: 'memory://knowledge-graph' }), 'contents', 0, 'text')), /Ada/)
  })

  await t.test('completion', async (t) => {
    const prompt = { argument: { name: 'department', value: 'S' } }
    assert.deepEqual(
      (await client.complete({ ref: { type: 'ref/prompt', name: 'local-completable-prompt' }, ...prompt })).completion.values,
      ['Sales', 'Support']
    )
    assert.deepEqual(
      (
        await client.complete({
          ref: { type: 'ref/prompt', name: 'web-completable-prompt' },
          argument: { name: 'name', value: '' },
          context: { arguments: { department: 'Sales' } }
        })
      ).completion.values,
      ['David', 'Eve', 'Frank']
    )
    assert.deepEqual(
      (
        await client.complete({
          ref: { type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' },
          argument: { name: 'resourceId', value: '5' }
        })
      ).completion.values,
      ['5']
    )
    const web = await agent(t, `${hub.url}/mcp/web`)
    assert.deepEqual((await web.complete({ ref: { type: 'ref/prompt', name: 'completable-prompt' }, ...prompt })).completion.values, [
      'Sales',
      'Support'
    ])
  })

  await t.test('progress, over every transport', async () => {
    for (const name of ['web', 'local', 'old']) {
      const seen: number[] = []
      const result = await client.callTool(
        { name: `${name}-trigger-long-running-operation`, arguments: { duration: 0.4, steps: 4 } },
        undefined,
        {
          onprogress: (progress) => {
            seen.push(progress.progress)
          }
        }
      )
      assert.match(text(result), /completed/)
      assert.deepEqual(seen, [1, 2, 3, 4], name)
    }
  })

  await t.test('logging/setLevel, and messages that follow', async (t) => {
    for (const name of ['web', 'local']) {
      const session = await Session.open(`${hub.url}/mcp/${name}`)
      const stream = await session.listen()
      assert.deepEqual(await session.ask('logging/setLevel', { level: 'debug' }), {})
      const started = await session.post({
        jsonrpc: '2.0',
        id: 'start',
        method: 'tools/call',
        params: { name: 'toggle-simulated-logging', arguments: {} }
      })
      assert.match(text(started.messages.find((one) => one.id === 'start')?.result), /Started/)
      // the first comes at once, with the call or beside it; more every five seconds
      let message: Message | undefined
      await until(() => {
        message = [...started.messages, ...stream.messages].find(
          (one) => one.method === 'notifications/message' && /-level/.test(String(one.params?.data))
        )
        return message !== undefined
      }, 'no message')
      assert.equal(typeof message?.params?.level, 'string')
      await session.call('toggle-simulated-logging')
      stream.close()
    }
  })

  await t.test('a subscription reaches the one who subscribed, and nobody else', async (t) => {
    const updates: string[] = []
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => { updates.push(params.uri) })
    const stranger = await Session.open(`${hub.url}/mcp`)
    const overheard = await stranger.listen()
    const entity = (name: string): { name: string; arguments: Json } => ({
      name: 'notes-create_entities',
      arguments: { entities: [{ name, entityType: 'person', observations: [] }] }
    })
    await client.subscribeResource({ uri: 'memory://knowledge-graph' })
    await client.callTool(entity('Grace'))
    await until(() => updates.length === 1, 'no update')
    assert.deepEqual(updates, ['memory://knowledge-graph'])
    await client.unsubscribeResource({ uri: 'memory://knowledge-graph' })
    await client.callTool(entity('Joan'))
    await sleep(300)
    assert.equal(updates.length, 1)
    assert.equal(overheard.messages.filter((one) => one.method === 'notifications/resources/updated').length, 0)
    overheard.close()

    const session = await Session.open(`${hub.url}/mcp/web`)
    const stream = await session.listen()
    await session.ask('resources/subscribe', { uri: 'demo://resource/dynamic/text/1' })
    await session.call('toggle-subscriber-updates')
    const update = await stream.wait((one) => one.method === 'notifications/resources/updated')
    assert.equal(update.params?.uri, 'demo://resource/dynamic/text/1')
    stream.close()
  })

  await t.test('a task of 2025-11-25 runs through', async (t) => {
    const web = await agent(t, `${hub.url}/mcp/web`)
    await web.listTools()
    const seen: string[] = []
    let last: unknown
    for await (const message of web.experimental.tasks.callToolStream(
      { name: 'simulate-research-query', arguments: { topic: 'gateways' } },
      CallToolResultSchema,
      { task: { ttl: 60_000 } }
    )) {
      seen.push(message.type)
      last = message
    }
    assert.equal(seen[0], 'taskCreated', JSON.stringify(last))
    assert.match(text(at(last, 'result')), /Research Report: gateways/)
  })

  await t.test('the aliases under /api', async (t) => {
    const everywhere = await agent(t, `${hub.url}/api/mcp`)
    assert.equal(text(await everywhere.callTool({ name: 'local-echo', arguments: { message: 'a' } })), 'Echo: a')
    const web = await agent(t, `${hub.url}/api/mcp/web`)
    assert.equal(text(await web.callTool({ name: 'echo', arguments: { message: 'b' } })), 'Echo: b')
    for (const route of ['/api/mcp/team', '/api/mcp/group/team']) {
      const team = await agent(t, `${hub.url}${route}`)
      assert.equal(text(await team.callTool({ name: 'web-echo', arguments: { message: route } })), `Echo: ${route}`)
    }
    assert.equal((await send(`${hub.url}/api/mcp`, { key: null, body: initialize() })).status, 401)
    assert.equal((await send(`${hub.url}/api/mcp/web`, { key: null, body: initialize() })).status, 401)
    assert.equal((await send(`${hub.url}/api/mcp/group/team`, { key: null, body: initialize() })).status, 401)
    assert.equal((await send(`${hub.url}/api/mcp/group/web`, { body: initialize() })).status, 404)
  })

  await t.test('what stands behind a merged route shows in its capabilities and instructions', async () => {
    const capabilities = client.getServerCapabilities()
    for (const kind of ['tools', 'prompts', 'resources', 'logging', 'completions'] as const) {
      assert.ok(capabilities?.[kind] !== undefined, kind)
    }
    assert.notDeepEqual(client.getServerVersion(), direct.web?.getServerVersion())
    const start = (direct.web?.getInstructions() ?? '').trim().split('\n').find((line) => line.trim() !== '' && !line.startsWith('#')) ?? ''
    assert.ok(start !== '' && client.getInstructions()?.includes(start.trim()), client.getInstructions())
  })

  await t.test('unknown names are errors, not crashes', async () => {
    const session = await Session.open(`${hub.url}/mcp`)
    for (const [method, params] of [
      ['tools/call', { name: 'web-nope', arguments: {} }],
      ['tools/call', { name: 'nope' }],
      ['tools/call', { name: 'off-echo', arguments: { message: '' } }],
      ['tools/call', { name: '__proto__' }],
      ['tools/call', { name: 'echo', arguments: { message: '' } }],
      ['prompts/get', { name: 'nope' }],
      ['resources/read', { uri: 'nope://nope' }],
      ['completion/complete', { ref: { type: 'ref/prompt', name: 'nope' }, argument: { name: 'a', value: '' } }],
      ['resources/subscribe', { uri: 'nope://nope' }]
    ] as const) {
      const message = await session.request(method, params)
      assert.ok(failed(message), `${method} ${JSON.stringify(params)}: ${JSON.stringify(message)}`)
      assert.notEqual(failure(message), '')
    }
  })
})

test('what is passed on is passed on as it came', async (t) => {
  const result =
    '{"content":[{"type":"text","text":"x","odd":12345678901234567890}],"structuredContent":{"big":12345678901234567890,"huge":1e400,' +
    '"one":1.0},"x-unknown":{"deep":[1e400,null]},"_meta":{"vendor/a":9007199254740993}}'
  const odd = tool('odd', {
    title: 'Odd',
    icons: [{ src: 'https://example.com/i.png', 'x-icon': 1 }],
    outputSchema: { type: 'object', 'x-schema': true },
    annotations: { readOnlyHint: true, 'x-hint': 'kept' },
    execution: { taskSupport: 'optional' },
    _meta: { 'vendor/b': { c: [1] } },
    'x-tool': { nested: [true, null, 'ü'] }
  })
  const many = (kind: string): Json[] => Array.from({ length: 5 }, (_, index) => ({ name: `${kind}-${index}`, 'x-item': index }))
  const sent = {
    capabilities: {
      tools: { listChanged: true, 'x-tools': 1 },
      prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      logging: {},
      completions: {},
      experimental: { 'vendor/c': { d: 1 } }
    },
    serverInfo: { name: 'exact', title: 'Exact', version: '9.9.9', websiteUrl: 'https://example.com', 'x-info': [1] },
    instructions: 'Use the exact tools exactly.'
  }
  const upstream = await startUpstream(t, {
    ...sent,
    pageSize: 2,
    tools: [odd, tool('raw'), tool('streamed'), tool('refused'), tool('talk'), tool('slow'), tool('big')],
    prompts: many('prompt'),
    resources: many('resource').map((one) => ({ ...one, uri: `exact://${String(one.name)}` })),
    resourceTemplates: many('template').map((one) => ({ ...one, uriTemplate: `exact://${String(one.name)}/{id}` })),
    on: async ({ method, params, notify }) => {
      if (method === 'prompts/get' || method === 'resources/read') return new Raw(result)
      if (method === 'completion/complete') return new Raw('{"completion":{"values":["a"],"total":12345678901234567890},"x-unknown":1.0}')
      if (method === 'vendor/unknown') return new Raw('{"vendor":1e400}')
      if (method !== 'tools/call') return undefined
      if (params.name === 'raw') return new Raw(result)
      if (params.name === 'refused') return new Refusal(-32055, 'nope', { why: ['because', 1] })
      if (params.name === 'big') return { content: [{ type: 'text', text: 'ü€😀\u2028'.repeat(200_000) }] }
      if (params.name === 'streamed') {
        notify('notifications/progress', {
          progressToken: at(params, '_meta', 'progressToken'),
          progress: 1,
          total: 2,
          message: 'half',
          'x-progress': [1]
        })
        await sleep(50)
        return new Raw(result)
      }
      if (params.name === 'talk') {
        notify('notifications/message', { level: 'info', logger: 'l', data: { said: 'info' } })
        notify('notifications/message', { level: 'error', logger: 'l', data: { said: 'error' } })
        return undefined
      }
      return undefined
    }
  })
  const other = await startUpstream(t)
  const hub = await startHub(t, {
    settings: settings({
      exact: { type: 'streamable-http', url: upstream.url, headers: { 'x-static': 'yes' } },
      other: { type: 'streamable-http', url: other.url },
      child: { type: 'stdio', command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
    })
  })
  await connected(hub, 3)
  const global = await Session.open(`${hub.url}/mcp`)
  const single = await Session.open(`${hub.url}/mcp/exact`)

  await t.test('a single-server route\'s initialize: capabilities, serverInfo and instructions, unknown fields included', async () => {
    assert.deepEqual(
      { capabilities: single.init.capabilities, serverInfo: single.init.serverInfo, instructions: single.init.instructions },
      sent
    )
    assert.ok(String(global.init.instructions).includes(sent.instructions), String(global.init.instructions))
  })

  await t.test('every page of an upstream\'s lists is followed, and nothing of an item is lost', async () => {
    const kinds = [
      ['tools/list', 'tools', 7],
      ['prompts/list', 'prompts', 5],
      ['resources/list', 'resources', 5],
      ['resources/templates/list', 'resourceTemplates', 5]
    ] as const
    for (const [method, key, count] of kinds) {
      const expected = upstream.options[key] ?? []
      assert.equal(expected.length, count)
      assert.deepEqual(await single.list(method, key), expected, method)
      const merged = (await global.list(method, key)).filter(
        (item) => /exact/.test(String(item.name)) || /^exact:/.test(String(item.uri ?? item.uriTemplate))
      )
      const qualified = key === 'tools' || key === 'prompts'
      assert.deepEqual(merged, expected.map((item) => qualified ? { ...item, name: `exact-${String(item.name)}` } : item), method)
    }
  })

  await t.test('big numbers and unknown fields of results', async () => {
    for (const [session, prefix] of [[global, 'exact-'], [single, '']] as const) {
      for (const [method, params] of [
        ['tools/call', { name: `${prefix}raw`, arguments: {} }],
        ['prompts/get', { name: `${prefix}prompt-1` }],
        ['resources/read', { uri: 'exact://resource-3' }]
      ] as const) {
        const reply = await session.post({ jsonrpc: '2.0', id: 'r', method, params })
        assert.equal(reply.status, 200)
        assert.ok(reply.body.includes(result), `${method}: ${reply.body}`)
      }
      const streamed = await session.post({
        jsonrpc: '2.0',
        id: 's',
        method: 'tools/call',
        params: { name: `${prefix}streamed`, arguments: {}, _meta: { progressToken: 0 } }
      })
      assert.ok(streamed.sse && streamed.body.includes(result), streamed.body)
      const progress = streamed.messages.find((one) => one.method === 'notifications/progress')
      assert.deepEqual(progress?.params, { progressToken: 0, progress: 1, total: 2, message: 'half', 'x-progress': [1] })
    }
    const completion = await single.post({
      jsonrpc: '2.0',
      id: 'c',
      method: 'completion/complete',
      params: { ref: { type: 'ref/prompt', name: 'prompt-1' }, argument: { name: 'a', value: '' } }
    })
    assert.ok(completion.body.includes('{"completion":{"values":["a"],"total":12345678901234567890},"x-unknown":1.0}'), completion.body)
    const child = await global.post({
      jsonrpc: '2.0',
      id: 'k',
      method: 'tools/call',
      params: { name: 'child-raw', arguments: { json: result } }
    })
    assert.ok(child.body.includes(result), child.body)
  })

  await t.test('big numbers and unknown fields of arguments', async () => {
    const args = '{"n":12345678901234567890,"huge":1e400,"nested":{"x-unknown":[1e-400,{"__proto__":{"a":1}}]},"text":"ü"}'
    for (const [session, name] of [[global, 'exact-raw'], [single, 'raw'], [single, 'exact-raw']] as const) {
      await session.post(
        `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":${JSON.stringify(name)},"arguments":${args},` +
        '"_meta":{"vendor/key":{"z":9007199254740993}},"x-param":[1e400]}}'
      )
      const { body, message } = upstream.received.filter((one) => one.message.method === 'tools/call').at(-1) ?? {
        body: '',
        message: {} as Message
      }
      assert.equal(message.params?.name, 'raw')
      for (const piece of [args, '"vendor/key":{"z":9007199254740993}', '"x-param":[1e400]']) {
        assert.ok(body.includes(piece), `${piece} is not in ${body}`)
      }
    }
  })

  await t.test('an upstream\'s error: code, message and data', async () => {
    for (const [session, name] of [[global, 'exact-refused'], [single, 'refused']] as const) {
      assert.deepEqual((await session.request('tools/call', { name, arguments: {} })).error, {
        code: -32055,
        message: 'nope',
        data: { why: ['because', 1] }
      })
    }
  })

  await t.test('a large result, whole', async () => {
    assert.equal(text(await global.call('exact-big')), 'ü€😀\u2028'.repeat(200_000))
  })

  await t.test('ids of every kind come back as they were', async () => {
    for (const id of [0, -1, 7, 'text', '', '0', 4294967296]) {
      const reply = await global.post({
        jsonrpc: '2.0',
        id,
        method: 'tools/call',
        params: { name: 'exact-odd', arguments: { message: 'm' } }
      })
      assert.equal(reply.messages.at(-1)?.id, id, reply.body)
      assert.equal(text(reply.messages.at(-1)?.result), 'm')
    }
  })

  await t.test('ping is answered, an unknown method refused on merged routes and handed on by single-server ones', async () => {
    assert.deepEqual(await global.ask('ping'), {})
    assert.deepEqual(await single.ask('ping'), {})
    assert.equal((await global.request('vendor/unknown', {})).error?.code, -32601)
    const reply = await single.post({ jsonrpc: '2.0', id: 1, method: 'vendor/unknown', params: {} })
    assert.ok(reply.body.includes('{"vendor":1e400}'), reply.body)
    assert.equal((await single.request('vendor/else', {})).error?.code, -32601)
  })

  await t.test('subscribing and levels: what goes up and what comes down, errors too', async () => {
    const on = upstream.options.on
    upstream.options.on = (call) => {
      if (call.method === 'logging/setLevel' && call.params.level === 'alert') return new Refusal(-32099, 'no alerts here', { a: 1 })
      if (call.method === 'resources/subscribe') {
        return call.params.uri === 'exact://none' ? new Refusal(-32098, 'no such thing', 7) : new Raw('{"_meta":{"n":1.0}}')
      }
      return call.method === 'resources/unsubscribe' ? new Raw('{"x":1e400}') : on?.(call)
    }
    const own = await Session.open(`${hub.url}/mcp/exact`, { capabilities: { sampling: {} } })
    const raw = async (method: string, params: string): Promise<string> =>
      (await own.post(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`)).body
    const params = '{"uri":"exact://resource-3","n":1.0,"_meta":{"my":1e400}}'
    assert.match(await raw('resources/subscribe', params), /"result":\{"_meta":\{"n":1\.0\}\}/)
    assert.match(await raw('resources/unsubscribe', params.replace('"my"', '"progressToken":1,"my"')), /"result":\{"x":1e400\}/)
    for (const method of ['subscribe', 'unsubscribe']) {
      assert.ok(
        upstream.received.some(({ message, body }) => message.method === `resources/${method}` && body.includes(`"params":${params}`)),
        method
      )
    }
    assert.deepEqual((await own.request('resources/subscribe', { uri: 'exact://none' })).error, {
      code: -32098,
      message: 'no such thing',
      data: 7
    })
    assert.deepEqual((await own.request('logging/setLevel', { level: 'alert' })).error, {
      code: -32099,
      message: 'no alerts here',
      data: { a: 1 }
    })
    const call = await own.start({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'talk', arguments: {} } })
    await call.done
    assert.deepEqual(
      call.messages.flatMap(({ method, params }) => (method === 'notifications/message' ? [params?.level] : [])),
      ['info', 'error'],
      'a level that was refused is none'
    )
    await own.end()
    upstream.options.on = on
  })

  await t.test('the level a client set is the level it hears', async () => {
    const quiet = await Session.open(`${hub.url}/mcp/exact`)
    const loud = await Session.open(`${hub.url}/mcp/exact`)
    await loud.ask('logging/setLevel', { level: 'debug' })
    await quiet.ask('logging/setLevel', { level: 'error' })
    assert.ok(upstream.received.some(({ message }) => message.method === 'logging/setLevel' && message.params?.level === 'debug'))
    for (const [session, expected] of [[quiet, ['error']], [loud, ['error', 'info']]] as const) {
      const stream = await session.listen()
      const reply = await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'talk', arguments: {} } })
      await sleep(200)
      const levels = [...reply.messages, ...stream.messages]
        .filter((one) => one.method === 'notifications/message')
        .map((one) => String(one.params?.level))
      assert.deepEqual([...new Set(levels)].sort(), expected)
      stream.close()
    }
  })

  await t.test('list_changed reaches the sessions it concerns, and the list has changed', async () => {
    const elsewhere = await (await Session.open(`${hub.url}/mcp/other`)).listen()
    const stream = await global.listen()
    const one = await single.listen()
    upstream.options.tools = [...upstream.options.tools ?? [], tool('new')]
    await upstream.broadcast('notifications/tools/list_changed')
    await stream.wait((message) => message.method === 'notifications/tools/list_changed')
    await one.wait((message) => message.method === 'notifications/tools/list_changed')
    assert.ok((await global.tools()).includes('exact-new'))
    assert.ok((await single.tools()).includes('new'))
    upstream.options.prompts = upstream.options.prompts?.slice(1)
    await upstream.broadcast('notifications/prompts/list_changed')
    await stream.wait((message) => message.method === 'notifications/prompts/list_changed')
    assert.ok(!names(await global.list('prompts/list', 'prompts')).includes('exact-prompt-0'))
    upstream.options.resources = upstream.options.resources?.slice(1)
    await upstream.broadcast('notifications/resources/list_changed')
    await stream.wait((message) => message.method === 'notifications/resources/list_changed')
    assert.ok(!names(await global.list('resources/list', 'resources')).includes('resource-0'))
    await global.call('child-grow', { name: 'grown' })
    await until(async () => (await global.tools()).includes('child-grown'), 'the stdio server\'s new tool never showed')
    assert.equal(elsewhere.messages.length, 0, JSON.stringify(elsewhere.messages))
    for (const opened of [elsewhere, stream, one]) opened.close()
  })

  await t.test('a tool that is new is there at once, whatever its server said before', async () => {
    const grow = async (name: string, session: Session): Promise<void> => {
      upstream.options.tools = [...upstream.options.tools ?? [], tool(name)]
      await upstream.broadcast('notifications/tools/list_changed')
      // The answer of a call is behind the news.
      await session.call(session === global ? 'exact-raw' : 'raw', {})
    }
    // News that are none make the gateway slow to believe the next.
    for (let n = 0; n < 6; n++) { await upstream.broadcast('notifications/tools/list_changed'); await sleep(40 * 1.6 ** n) }
    await grow('called', single)
    assert.equal((await single.request('tools/call', { name: 'called', arguments: {} })).error, undefined)
    await grow('listed', global)
    assert.ok((await global.tools()).includes('exact-listed'))
    await grow('both', global)
    const [called, listed] = await Promise.all([global.request('tools/call', { name: 'exact-both', arguments: {} }), global.tools()])
    assert.deepEqual([called.error, listed.includes('exact-both')], [undefined, true])
  })

  await t.test('a list does not wait for long for what a silent server calls new, and not again', async () => {
    upstream.options.on = ((on) => (call) => call.method === 'tools/list' ? 'never' : on?.(call))(upstream.options.on)
    await upstream.broadcast('notifications/tools/list_changed')
    await single.call('raw', {})
    const timed = async (): Promise<number> => {
      const begun = Date.now()
      assert.ok((await single.tools()).length > 0)
      return Date.now() - begun
    }
    const [first, second] = [await timed(), await timed()]
    assert.ok(first < 2_000 && second < 400, `${first} ms, then ${second} ms`)
  })

  await t.test('configured headers go upstream, the caller\'s key never does', async () => {
    assert.ok(upstream.received.every(({ headers }) => headers['x-static'] === 'yes'))
    for (const { headers, body } of [...upstream.received, ...other.received]) {
      assert.ok(!JSON.stringify(headers).includes(KEY) && !body.includes(KEY))
    }
  })
})

test('names longer than 64 characters are cut, always in the same way, and still work', async (t) => {
  const long = 'a_tool_whose_name_goes_on_and_on_and_on_for_far_longer_than_anyone_needs_'
  const tools = [`${long}1`, `${long}2`, 'short'].map((name) => tool(name))
  const upstream = await startUpstream(t, {
    tools,
    prompts: [{ name: `${long}p` }],
    on: ({ method, params }) =>
      method === 'prompts/get' ? { messages: [{ role: 'user', content: { type: 'text', text: String(params.name) } }] } : undefined
  })
  const content = settings({ long: { type: 'streamable-http', url: upstream.url } })
  const seen: string[][] = []
  let previous: string | undefined
  for (let start = 0; start < 2; start++) {
    const hub = await startHub(t, previous === undefined ? { settings: content } : { folder: previous })
    previous = hub.folder
    await connected(hub, 1)
    for (let session = 0; session < 2; session++) {
      const client = await Session.open(`${hub.url}/mcp`)
      const listed = await client.tools()
      const prompts = names(await client.list('prompts/list', 'prompts'))
      assert.equal(listed.length, 3)
      assert.equal(new Set(listed).size, 3)
      for (const name of [...listed, ...prompts]) assert.match(name, /^[A-Za-z0-9_.-]{1,64}$/)
      assert.equal(listed[2], 'long-short')
      assert.equal(text(await client.call(String(listed[0]))), `${long}1`)
      assert.equal(text(await client.call(String(listed[1]))), `${long}2`)
      assert.equal(text(await client.ask('prompts/get', { name: prompts[0] })), `${long}p`)
      seen.push([...listed, ...prompts])
    }
    await hub.stop()
  }
  for (const again of seen) assert.deepEqual(again, seen[0])
})

test('sessions', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('slow')] })
  const hub = await startHub(t, {
    settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }, { bearerKeys: [bearerKey(), otherKey()] })
  })
  await connected(hub, 1)
  const url = `${hub.url}/mcp`
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
  const on = (id: string): Record<string, string> => ({ 'mcp-session-id': id })

  await t.test('an id is long, printable and new each time', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, async () => (await Session.open(url)).id))
    assert.equal(new Set(ids).size, 5)
    for (const id of ids) assert.match(id, /^[\x21-\x7e]{43,128}$/)
  })

  await t.test('every legacy revision is spoken, an unknown one is answered with one that is', async () => {
    for (const version of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']) {
      const session = await Session.open(url, { version })
      assert.equal(session.version, version)
      assert.ok((await session.tools()).includes('fake-echo'))
    }
    assert.match((await Session.open(url, { version: '1999-01-01' })).version, /^20(24|25)-\d\d-\d\d$/)
  })

  await t.test('what a client declares is kept for the session, so it has a bound', async () => {
    const begin = async (experimental: Json): Promise<object> => {
      const { messages: [answer = {}] } = await send(url, { body: initialize('2025-11-25', { experimental }) })
      return answer
    }
    const ordinary = Array.from({ length: 10 }, (_, n) => [`feature${n}`, { enabled: true, modes: 'a' }])
    for (const fits of [{ x: { y: 'z'.repeat(7_000) } }, { x: { y: 'ж'.repeat(4_000) } }, Object.fromEntries(ordinary) as Json]) {
      assert.ok('result' in await begin(fits), JSON.stringify(fits).slice(0, 100))
    }
    for (const [large, sentence] of [
      [{ x: { y: 'z'.repeat(9_000) } }, /has more than 8192 characters, or half as many where any is beyond Latin-1; declare less/],
      [{ x: { y: 'ж'.repeat(4_200) } }, /has more than 8192 characters/],
      // A hundred bytes of memory each, for three characters.
      [{ x: { y: Array(200).fill({}) } }, /"capabilities" has too many members and values; declare less/]
    ] as const) {
      const answer = await begin(large)
      assert.equal(at(answer, 'error', 'code'), -32602)
      assert.match(String(at(answer, 'error', 'message')), sentence)
    }
  })

  await t.test('a missing id is 400, an unknown one 404, for POST, GET and DELETE', async () => {
    for (const method of ['POST', 'GET', 'DELETE']) {
      const body = method === 'POST' ? list : undefined
      assertRefused(await send(url, { method, body }), 400, -32000)
      assertRefused(await send(url, { method, body, headers: on('f'.repeat(64)) }), 404, -32001)
    }
    assertRefused(await send(url, { body: { jsonrpc: '2.0', method: 'notifications/initialized' }, headers: on('nobody') }), 404, -32001)
  })

  await t.test('DELETE ends it', async () => {
    const session = await Session.open(url)
    const stream = await session.listen()
    const ended = await session.end()
    assert.ok(ended.status === 200 || ended.status === 204, String(ended.status))
    await until(() => stream.ended, 'the GET stream stayed open')
    assertRefused(await session.post(list), 404, -32001)
    assertRefused(await session.end(), 404, -32001)
    assertRefused(await session.listen().then(async (one) => { await one.done; return one }), 404, -32001)
  })

  await t.test('another key\'s session, and another route\'s, is unknown', async () => {
    const session = await Session.open(url)
    for (const [where, key] of [[url, OTHER], [`${url}/fake`, KEY], [`${hub.url}/mcp/fake`, OTHER]] as const) {
      for (const method of ['POST', 'GET', 'DELETE']) {
        assertRefused(await send(where, { method, key, body: method === 'POST' ? list : undefined, headers: on(session.id) }), 404, -32001)
      }
    }
    assert.equal((await send(url, { key: null, body: list, headers: on(session.id) })).status, 401)
    assert.ok((await session.tools()).includes('fake-echo'))
  })

  await t.test('notifications and answers to nothing: 202 without a body', async () => {
    const session = await Session.open(url)
    for (const body of [
      { jsonrpc: '2.0', method: 'notifications/roots/list_changed' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'never asked' } },
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'x', progress: 1 } },
      { jsonrpc: '2.0', method: 'notifications/vendor' }
    ]) {
      const reply = await session.post(body)
      assert.equal(reply.status, 202, JSON.stringify(body))
      assert.equal(reply.body, '')
    }
  })

  await t.test('several GET streams, each message on one of them', async () => {
    const session = await Session.open(url)
    await session.tools()
    const streams = await Promise.all([session.listen(), session.listen(), session.listen()])
    for (const stream of streams) assert.equal(stream.status, 200)
    for (let round = 1; round <= 3; round++) {
      upstream.options.tools = [...upstream.options.tools ?? [], tool(`round${round}`)]
      await upstream.broadcast('notifications/tools/list_changed')
      const heard = (): number =>
        streams.flatMap((stream) => stream.messages).filter((one) => one.method === 'notifications/tools/list_changed').length
      await until(() => heard() >= round, `round ${round} was not heard`)
      await sleep(300)
      assert.equal(heard(), round)
    }
    for (const stream of streams) { assert.ok(!stream.ended); stream.close() }
  })

  await t.test('a stream begins at once, tells proxies not to buffer, and is not cached', async () => {
    const session = await Session.open(url)
    const stream = await session.listen()
    assert.equal(stream.status, 200)
    assert.ok(stream.sse)
    assert.equal(stream.headers.get('x-accel-buffering'), 'no')
    assert.match(stream.headers.get('cache-control') ?? '', /no-store/)
    await until(() => stream.comments > 0, 'no first comment')
    stream.close()
  })

  await t.test('Last-Event-ID replays what came after it, to the same principal only', async () => {
    const session = await Session.open(url)
    await session.tools()
    const stream = await session.listen()
    const changed = () => stream.events.filter((event) => event.message?.method === 'notifications/tools/list_changed')
    for (let round = 1; round <= 3; round++) {
      upstream.options.tools = [...upstream.options.tools ?? [], tool(`again${round}`)]
      await upstream.broadcast('notifications/tools/list_changed')
      await until(() => changed().length === round, 'not heard')
    }
    stream.close()
    const [first, ...rest] = changed()
    assert.ok(first?.id !== undefined && first.id !== '', 'the events carry no id')
    assert.equal(new Set(changed().map((event) => event.id)).size, 3)
    assertRefused(await send(url, { method: 'GET', key: OTHER, headers: { ...on(session.id), 'last-event-id': first.id } }), 404, -32001)
    const stranger = await Session.open(url, { key: OTHER })
    const foreign = await stranger.listen(first.id)
    const again = await session.listen(first.id)
    const replayed = () => again.events.filter((event) => event.message !== undefined).map((event) => event.id)
    await until(() => replayed().length >= 2, () => `not replayed: HTTP ${again.status} ${again.body}`)
    assert.deepEqual(replayed().slice(0, 2), rest.map((event) => event.id))
    await sleep(200)
    assert.equal(foreign.messages.length, 0, 'replayed to a stranger')
    foreign.close()
    again.close()
  })

  await t.test('log messages wait for a client that holds no stream, unless they are too large', async () => {
    const session = await Session.open(url)
    for (const size of [10, 300_000, 1_000]) await upstream.broadcast('notifications/message', { level: 'info', data: 'x'.repeat(size) })
    await session.tools()
    await sleep(100)
    const stream = await session.listen()
    const sizes = (): number[] =>
      stream.messages.flatMap(({ method, params }) => (method === 'notifications/message' ? [String(params?.data).length] : []))
    await until(() => sizes().length >= 2, 'the messages did not come')
    assert.deepEqual(sizes(), [10, 1_000])
    await upstream.broadcast('notifications/message', { level: 'info', data: 'x'.repeat(300_000) })
    await until(() => sizes().at(-1) === 300_000, 'one that need not wait is not bounded')
    stream.close()
  })

  await t.test('a batch is answered at 2025-03-26 and refused later', async () => {
    const batch = [
      { jsonrpc: '2.0', id: 'a', method: 'ping' },
      { jsonrpc: '2.0', method: 'notifications/vendor' },
      { jsonrpc: '2.0', id: 'b', method: 'tools/call', params: { name: 'fake-echo', arguments: { message: 'batched' } } },
      { jsonrpc: '2.0', id: 'c', method: 'nope' }
    ]
    const session = await Session.open(url, { version: '2025-03-26' })
    const reply = await session.post(batch)
    assert.equal(reply.status, 200, reply.body)
    const answers = new Map(reply.messages.map((one) => [one.id, one]))
    assert.deepEqual([...answers.keys()].sort(), ['a', 'b', 'c'])
    assert.deepEqual(answers.get('a')?.result, {})
    assert.equal(text(answers.get('b')?.result), 'batched')
    assert.equal(answers.get('c')?.error?.code, -32601)
    const silent = await session.post([{ jsonrpc: '2.0', method: 'notifications/vendor' }])
    assert.equal(silent.status, 202)
    const errorsOf = (reply: Stream): Array<[unknown, number | undefined]> =>
      reply.messages.map((one): [unknown, number | undefined] => [one.id, one.error?.code])
    const mixed = await session.post([
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      5,
      { jsonrpc: '2.0', id: 'bad', method: 7 },
      { jsonrpc: '2.0', method: 'notifications/vendor' },
      { jsonrpc: '2.0', id: {}, method: 'ping' }
    ])
    assert.deepEqual(
      [mixed.status, errorsOf(mixed).sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1))],
      [
        200,
        [
          [1, undefined],
          ['bad', -32600],
          [null, -32600],
          [null, -32600]
        ]
      ],
      mixed.body
    )
    const none = await session.post([1, 2, 3])
    assert.deepEqual([none.status, errorsOf(none)], [400, [[null, -32600], [null, -32600], [null, -32600]]], none.body)
    assertRefused(await session.post([]), 400, -32600)
    assertRefused(await session.post(Array.from({ length: 1_001 }, () => 1)), 400, -32600)
    for (const version of ['2025-06-18', '2025-11-25']) assertRefused(await (await Session.open(url, { version })).post(batch), 400, -32600)
  })

  await t.test('a long batch is handled in steps: others have the event loop between them', async () => {
    const session = await Session.open(url, { version: '2025-03-26' })
    for (const [method, params] of [['logging/setLevel', { level: 'info' }], ['resources/subscribe', { uri: 'fake://r' }]] as const) {
      const batch = Array.from({ length: 1_000 }, (_, id) => ({ jsonrpc: '2.0', id, method, params }))
      const parts: number[] = []
      // The garbage collector may hold it in one of them.
      for (let round = 0; round < 4; round++) {
        const longest = measureHold()
        const before = process.cpuUsage()
        const reply = await session.post(batch)
        const { user, system } = process.cpuUsage(before)
        const [held, all] = [longest(), (user + system) / 1_000]
        parts.push(held / all)
        t.comment(`${method}: ${Math.round(held)} of ${Math.round(all)} ms at once`)
        assert.equal(reply.messages.length, 1_000)
        assert.deepEqual(new Set(reply.messages.map(({ id }) => id)).size, 1_000)
      }
      assert.ok(Math.min(...parts) < 1 / 4, `${method}: ${parts.map((part) => part.toFixed(2)).join(', ')} of the time at once`)
    }
  })
})

test('enableSessionRebuild', async (t) => {
  const upstream = await startUpstream(t)
  const hub = await startHub(t, {
    settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }, { systemConfig: { enableSessionRebuild: true } })
  })
  await connected(hub, 1)
  const call = (name: string, id: string | number = 1): Json => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: { message: `to ${name}` } }
  })
  const on = (id: string): Record<string, string> => ({ 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' })

  await t.test('a POST rebuilds the session and is answered', async () => {
    const id = '1'.repeat(64)
    const reply = await send(`${hub.url}/mcp`, { body: call('fake-echo'), headers: on(id) })
    assert.equal(reply.status, 200, reply.body)
    assert.equal(text(reply.messages.at(-1)?.result), 'to fake-echo')
    assert.equal(reply.headers.get('mcp-session-id') ?? id, id)
    const stream = await open(`${hub.url}/mcp`, { method: 'GET', headers: on(id) })
    assert.equal(stream.status, 200)
    upstream.options.tools = [tool('echo'), tool('more')]
    await upstream.broadcast('notifications/tools/list_changed')
    await stream.wait((one) => one.method === 'notifications/tools/list_changed')
    stream.close()
    assert.ok([200, 204].includes((await send(`${hub.url}/mcp`, { method: 'DELETE', headers: on(id) })).status))
  })

  await t.test('a GET rebuilds it, too', async () => {
    const id = '2'.repeat(64)
    const stream = await open(`${hub.url}/mcp`, { method: 'GET', headers: on(id) })
    assert.equal(stream.status, 200)
    assert.ok(stream.sse)
    const reply = await send(`${hub.url}/mcp`, { body: call('fake-echo'), headers: on(id) })
    assert.equal(text(reply.messages.at(-1)?.result), 'to fake-echo')
    stream.close()
  })

  await t.test('many requests at once on one unknown id are all answered', async () => {
    const replies = await Promise.all(
      Array.from(
        { length: 16 },
        async (_, index) => await send(`${hub.url}/mcp`, { body: call('fake-echo', index), headers: on('3'.repeat(64)) })
      )
    )
    for (const [index, reply] of replies.entries()) {
      assert.equal(reply.status, 200, reply.body)
      assert.equal(reply.messages.at(-1)?.id, index)
      assert.equal(text(reply.messages.at(-1)?.result), 'to fake-echo')
    }
  })

  await t.test('a single-server route takes raw and qualified names', async () => {
    for (const name of ['echo', 'fake-echo']) {
      const reply = await send(`${hub.url}/mcp/fake`, { body: call(name), headers: on('4'.repeat(64)) })
      assert.equal(text(reply.messages.at(-1)?.result), `to ${name}`, reply.body)
    }
  })

  await t.test('DELETE of an unknown id is 404, a missing id 400, a key still needed, an absurd id refused', async () => {
    assertRefused(await send(`${hub.url}/mcp`, { method: 'DELETE', headers: on('5'.repeat(64)) }), 404, -32001)
    for (const method of ['POST', 'GET', 'DELETE']) {
      assertRefused(await send(`${hub.url}/mcp`, { method, body: method === 'POST' ? call('fake-echo') : undefined }), 400, -32000)
    }
    assert.equal((await send(`${hub.url}/mcp`, { key: null, body: call('fake-echo'), headers: on('6'.repeat(64)) })).status, 401)
    const absurd = await send(`${hub.url}/mcp`, { body: call('fake-echo'), headers: on('7'.repeat(4_000)) })
    assert.ok(absurd.status >= 400 && absurd.status < 500, String(absurd.status))
  })
})

test('keys and routes', async (t) => {
  const upstreams = await Promise.all([startUpstream(t), startUpstream(t), startUpstream(t)])
  const [one, two, three] = upstreams.map(({ url }) => ({ type: 'streamable-http', url }))
  const token = (letter: string): string => `thk_${letter.repeat(64)}`
  const key = (letter: string, more: Json): Json =>
    bearerKey({ id: `33333333-3333-4333-8333-33333333333${letter}`, name: letter, token: token(letter), ...more })
  const groups = [
    { id: TEAM, name: 'team', description: '', owner: 'admin', servers: ['one', 'two'] },
    { id: CHOSEN, name: 'empty', description: '', owner: 'admin', servers: [] }
  ]
  const hub = await startHub(t, {
    settings: settings({ one, two, three }, {
      groups,
      bearerKeys: [
        bearerKey(),
        key('1', { enabled: false }),
        key('2', { accessType: 'groups', allowedGroups: ['team'] }),
        key('3', { accessType: 'groups', allowedGroups: [TEAM] }),
        key('4', { accessType: 'servers', allowedServers: ['one'] }),
        key('5', { accessType: 'servers', allowedServers: ['one', 'two'] }),
        key('6', { accessType: 'custom', allowedGroups: ['team'], allowedServers: ['three'] }),
        key('7', { accessType: 'servers', allowedServers: [] })
      ]
    })
  })
  await connected(hub, 3)

  await t.test('no key, a wrong key, a disabled key: 401, which says how', async () => {
    const body = initialize()
    const malformed = [
      '',
      'Bearer',
      'Bearer ',
      `Basic ${KEY}`,
      `Bearer ${KEY}x`,
      `Bearer ${KEY.slice(0, -1)}`,
      'Bearer thk_',
      `Bearer ${token('1')}`,
      'Bearer __proto__'
    ]
    for (const route of ['/mcp', '/mcp/one', '/mcp/team', '/mcp/nowhere', '/api/mcp']) {
      for (const headers of [{}, ...malformed.map((authorization) => ({ authorization }))]) {
        const reply = await send(`${hub.url}${route}`, { key: null, headers, body })
        assertRefused(reply, 401)
        assert.equal(reply.headers.get('www-authenticate'), 'Bearer')
        const parsed: unknown = JSON.parse(reply.body)
        assert.equal(typeof at(parsed, 'error'), 'string', reply.body)
        assert.ok(String(at(parsed, 'error_description') ?? '') !== '', reply.body)
      }
    }
    for (const method of ['GET', 'DELETE']) assert.equal((await send(`${hub.url}/mcp`, { key: null, method })).status, 401)
    assert.equal((await send(`${hub.url}/mcp`, { key: null, body: '{"broken' })).status, 401)
    assert.equal((await send(`${hub.url}/mcp?token=${KEY}`, { key: null, body })).status, 401)
    assert.equal((await send(`${hub.url}/mcp`, { key: null, headers: { 'x-auth-token': KEY }, body })).status, 401)
  })

  await t.test('a scoped key opens what its scope says, and 403 elsewhere', async () => {
    const routes = ['/mcp', '/mcp/team', `/mcp/${TEAM}`, '/mcp/one', '/mcp/three']
    const expected: Record<string, number[]> = {
      2: [403, 200, 200, 403, 403],
      3: [403, 200, 200, 403, 403],
      4: [403, 403, 403, 200, 403],
      5: [403, 200, 200, 200, 403],
      6: [403, 200, 200, 403, 200],
      7: [403, 403, 403, 403, 403]
    }
    for (const [letter, statuses] of Object.entries(expected)) {
      for (const [index, route] of routes.entries()) {
        const reply = await send(`${hub.url}${route}`, { key: token(letter), body: initialize() })
        if (statuses[index] === 403) assertRefused(reply, 403)
        assert.equal(reply.status, statuses[index], `key ${letter} on ${route}: ${reply.body}`)
      }
    }
    for (const letter of ['5', '7']) {
      assert.equal((await send(`${hub.url}/mcp/empty`, { key: token(letter), body: initialize() })).status, 403, 'a group without members')
    }
  })

  await t.test('a scoped key finds what it opened', async () => {
    const session = await Session.open(`${hub.url}/mcp/team`, { key: token('2') })
    assert.deepEqual(await session.tools(), ['one-echo', 'two-echo'])
    assert.equal(text(await session.call('two-echo', { message: 'scoped' })), 'scoped')
    assert.ok(failed(await session.request('tools/call', { name: 'three-echo', arguments: {} })))
  })

  await t.test('an unknown name is 404', async () => {
    for (const name of [
      'nowhere',
      '__proto__',
      'constructor',
      'toString',
      '%2e%2e',
      'One',
      'one%20',
      '99999999-9999-4999-8999-999999999999'
    ]) {
      assertRefused(await send(`${hub.url}/mcp/${name}`, { body: initialize() }), 404)
    }
  })

  await t.test('/health, /config and /public-config', async () => {
    const read = async (name: string): Promise<unknown> => {
      const response = await fetch(`${hub.url}${name}`)
      assert.equal(response.status, 200)
      return await response.json()
    }
    const health = await read('/health')
    assert.equal(typeof at(health, 'status'), 'string')
    assert.equal(typeof at(health, 'uptime'), 'number')
    assert.equal(new Date(String(at(health, 'timestamp'))).toISOString(), at(health, 'timestamp'))
    assert.deepEqual(at(health, 'servers'), { total: 3, connected: 3 })
    const { version } = JSON.parse(await readFile(path('package.json'), 'utf8')) as { version: string }
    const config = await read('/config')
    assert.equal(at(config, 'success'), true)
    assert.equal(at(config, 'data', 'basePath'), '')
    assert.equal(at(config, 'data', 'version'), version)
    assert.equal(typeof at(config, 'data', 'name'), 'string')
    const open = await read('/public-config')
    assert.equal(at(open, 'success'), true)
    assert.equal(at(open, 'data', 'skipAuth'), false)
    assert.deepEqual(at(open, 'data', 'permissions'), {})
  })

  await t.test('the root says what this is, to people', async () => {
    const page = await fetch(`${hub.url}/`)
    assert.equal(page.status, 200)
    assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/)
    const text = (await page.text()).replace(/<style>.*?<\/style>/s, '').replace(/\s+/g, ' ')
    assert.match(text, /<strong>ready<\/strong>, with 3 of 3 servers connected/)
    for (const link of ['/docs', '/health']) {
      assert.ok(text.includes(`href="${link}"`), link)
      assert.equal((await fetch(`${hub.url}${link}`)).status, 200, link)
    }
    assert.match(text, /<code>\/mcp<\/code>/)
    const icon = await fetch(`${hub.url}/favicon.ico`)
    assert.deepEqual([icon.status, icon.headers.get('content-type')], [200, 'image/svg+xml'])
  })

  await t.test('BASE_PATH, bearerAuthHeaderName, nameSeparator; enableGlobalRoute and enableGroupNameRoute off', async (t) => {
    const hub = await startHub(t, {
      env: { BASE_PATH: '/gate' },
      settings: settings(
        { one, two },
        {
          groups,
          systemConfig: {
            nameSeparator: '__',
            routing: { bearerAuthHeaderName: 'X-Hub-Key', enableGlobalRoute: false, enableGroupNameRoute: false }
          }
        }
      )
    })
    await connected(hub, 2)
    const keyed = { 'x-hub-key': KEY }
    const session = await Session.open(`${hub.url}/mcp/${TEAM}`, { key: null, headers: keyed })
    assert.deepEqual(await session.tools(), ['one__echo', 'two__echo'])
    assert.equal(text(await session.call('two__echo', { message: 'm' })), 'm')
    assert.ok(failed(await session.request('tools/call', { name: 'two-echo', arguments: {} })))
    const single = await Session.open(`${hub.url}/mcp/one`, { key: null, headers: { 'x-hub-key': `Bearer ${KEY}` } })
    assert.equal(text(await single.call('one__echo', { message: 'q' })), 'q')
    assert.equal((await send(`${hub.url}/mcp/one`, { body: initialize() })).status, 401, 'Authorization is not the header any more')
    assert.equal((await send(`${hub.url}/mcp/one`, { key: null, headers: { 'x-hub-key': 'nonsense' }, body: initialize() })).status, 401)
    assertRefused(await send(`${hub.url}/mcp`, { key: null, headers: keyed, body: initialize() }), 403)
    assertRefused(await send(`${hub.url}/api/mcp`, { key: null, headers: keyed, body: initialize() }), 403)
    assertRefused(await send(`${hub.url}/mcp/team`, { key: null, headers: keyed, body: initialize() }), 404)
    assert.equal(at(await (await fetch(`${hub.url}/config`)).json(), 'data', 'basePath'), '/gate')
    const origin = `http://127.0.0.1:${hub.port}`
    for (const route of ['/health', '/config', '/mcp/one']) {
      const reply = await plain(`${origin}${route}`, { headers: keyed })
      assert.equal(reply.status, 404, route)
    }
  })

  await t.test('enableBearerAuth=false: the anonymous view', async (t) => {
    const hub = await startHub(t, {
      settings: settings(
        {
          open: { ...one, visibility: 'public', owner: 'bob' },
          defaulted: { ...two },
          admins: { ...two, owner: 'admin' },
          closed: { ...three, visibility: 'private' },
          grouped: { ...three, visibility: 'group' },
          bobs: { ...three, owner: 'bob' }
        },
        {
          users: [
            { username: 'admin', password: 'x', isAdmin: true },
            { username: 'bob', password: 'x', isAdmin: false }
          ],
          groups: [
            { id: TEAM, name: 'team', description: '', owner: 'admin', servers: ['open', 'closed'] },
            { id: CHOSEN, name: 'hidden', description: '', owner: 'admin', servers: ['closed', 'bobs'] }
          ],
          systemConfig: { routing: { enableBearerAuth: false } }
        }
      )
    })
    await connected(hub, 6)
    const anonymous = await Session.open(`${hub.url}/mcp`, { key: null })
    assert.deepEqual(await anonymous.tools(), ['defaulted-echo', 'admins-echo', 'open-echo'])
    assert.equal(text(await anonymous.call('open-echo', { message: 'hello' })), 'hello')
    assert.ok(failed(await anonymous.request('tools/call', { name: 'closed-echo', arguments: {} })))
    for (const name of ['closed', 'grouped', 'bobs']) {
      assertRefused(await send(`${hub.url}/mcp/${name}`, { key: null, body: initialize() }), 404)
    }
    const absent = await send(`${hub.url}/mcp/nowhere`, { key: null, body: initialize() })
    const hidden = await send(`${hub.url}/mcp/closed`, { key: null, body: initialize() })
    assert.equal(hidden.body, absent.body.replaceAll('nowhere', 'closed'), 'hidden and absent must look the same')
    const team = await Session.open(`${hub.url}/mcp/team`, { key: null })
    assert.deepEqual(await team.tools(), ['open-echo'])
    assertRefused(await send(`${hub.url}/mcp/hidden`, { key: null, body: initialize() }), 404)
    const keyed = await Session.open(`${hub.url}/mcp`)
    assert.deepEqual(await keyed.tools(), ['defaulted', 'admins', 'closed', 'grouped', 'open', 'bobs'].map((name) => `${name}-echo`))
    assertRefused(
      await send(`${hub.url}/mcp`, {
        key: null,
        body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
        headers: { 'mcp-session-id': keyed.id }
      }),
      404,
      -32001
    )
  })

  await t.test('a user\'s key sees what its owner may see', async (t) => {
    const hub = await startHub(t, {
      settings: settings(
        {
          open: { ...one, visibility: 'public', owner: 'admin' },
          mine: { ...two, owner: 'bob', visibility: 'private' },
          defaulted: { ...three },
          theirs: { ...three, owner: 'eve', visibility: 'private' }
        },
        {
          users: [
            { username: 'admin', password: 'x', isAdmin: true },
            { username: 'bob', password: 'x', isAdmin: false },
            { username: 'eve', password: 'x', isAdmin: false }
          ],
          bearerKeys: [key('8', { kind: 'user', owner: 'bob' }), key('9', { kind: 'user', owner: 'nobody' })]
        }
      )
    })
    await connected(hub, 4)
    const bob = await Session.open(`${hub.url}/mcp`, { key: token('8') })
    assert.deepEqual(await bob.tools(), ['open-echo', 'mine-echo'])
    assertRefused(await send(`${hub.url}/mcp/theirs`, { key: token('8'), body: initialize() }), 404)
    const orphan = await send(`${hub.url}/mcp`, { key: token('9'), body: initialize() })
    assert.ok(orphan.status === 401 || orphan.status === 403, String(orphan.status))
  })
})

test('the SDK client: a wrong key fails, a group\'s tools work after a reconnect under the same session', async (t) => {
  const upstream = await startUpstream(t)
  const hub = await startHub(t, { settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }) })
  await connected(hub, 1)
  const refused = new Client({ name: 'test', version: '1.0.0' })
  await assert.rejects(
    refused.connect(
      new StreamableHTTPClientTransport(new URL(`${hub.url}/mcp`), { requestInit: { headers: { authorization: 'Bearer wrong' } } })
    )
  )
  const headers = { authorization: `Bearer ${KEY}` }
  const first = new StreamableHTTPClientTransport(new URL(`${hub.url}/mcp`), { requestInit: { headers } })
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(first)
  const { sessionId } = first
  assert.ok(sessionId !== undefined)
  await client.close()
  const second = new StreamableHTTPClientTransport(new URL(`${hub.url}/mcp`), { requestInit: { headers }, sessionId })
  const again = new Client({ name: 'test', version: '1.0.0' })
  await again.connect(second)
  second.setProtocolVersion('2025-11-25')
  assert.equal(text(await again.callTool({ name: 'fake-echo', arguments: { message: 'still here' } })), 'still here')
  await second.terminateSession()
  await again.close()
  const gone = await send(`${hub.url}/mcp`, { body: { jsonrpc: '2.0', id: 1, method: 'ping' }, headers: { 'mcp-session-id': sessionId } })
  assertRefused(gone, 404, -32001)
})

test('two clients with the same ids, 20,000 interleaved calls: no answer crosses', async (t) => {
  const upstream = await startUpstream(t, {
    on: async ({ method, params }) => {
      const message = String(at(params, 'arguments', 'message'))
      // some overtake others
      if (method === 'tools/call' && /[37]$/.test(message)) await sleep(Number(message.at(-2)) / 2)
      return undefined
    }
  })
  const hub = await startHub(t, {
    settings: settings(
      {
        http: { type: 'streamable-http', url: upstream.url },
        stdio: { type: 'stdio', command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
      },
      { bearerKeys: [bearerKey(), otherKey()] }
    )
  })
  await connected(hub, 2)
  const pool = new Pool(hub.url, { connections: 32 })
  t.after(async () => { await pool.close() })
  const clients = [{ name: 'one', key: KEY, next: 0 }, { name: 'two', key: OTHER, next: 0 }]
  const work = clients.flatMap((client) => Array.from({ length: 16 }, () => client))
  const sessions = new Map(
    await Promise.all(clients.map(async (client) => [client.name, await Session.open(`${hub.url}/mcp`, { key: client.key })] as const))
  )
  let crossed: string | undefined
  await Promise.all(work.map(async (client) => {
    const headers = {
      ...sessions.get(client.name)?.headers,
      authorization: `Bearer ${client.key}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json'
    }
    while (client.next < 10_000 && crossed === undefined) {
      const id = client.next++
      const message = `${client.name} ${id}`
      const name = `${id % 2 === 0 ? 'http' : 'stdio'}-echo`
      const { statusCode, body } = await pool.request({
        method: 'POST',
        path: '/mcp',
        headers,
        body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: { message } } })
      })
      const answer = (await body.text()).replace(/^[^{]*/, '').trim()
      const parsed: unknown = statusCode === 200 ? JSON.parse(answer) : undefined
      if (at(parsed, 'id') !== id || at(parsed, 'result', 'content', 0, 'text') !== message) {
        crossed ??= `${message} was answered with HTTP ${statusCode} ${answer}`
      }
    }
  }))
  assert.equal(crossed, undefined)
  assert.deepEqual(clients.map(({ next }) => next), [10_000, 10_000])
})
