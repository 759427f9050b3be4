// Real servers from npm over every transport, through the SDK's own client.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { CallToolResultSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import {
  agent, at, connected, directStdio, everything, failed, initialize, names, send, Session, settings, silence, text, type Json
} from '../helpers/client.ts'
import { npmServer, startHub, until, type Cleanup } from '../helpers/hub.ts'

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
    const web = await agent(t, `${hub.url}/mcp/web`)
    const department = { name: 'department', value: 'S' }
    const template = { type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' } as const
    const prompt = (name: string) => ({ type: 'ref/prompt', name: `${name}completable-prompt` }) as const
    const context = { arguments: { department: 'Sales' } }
    for (const [by, ref, argument, more, values] of [
      [client, prompt('local-'), department, {}, ['Sales', 'Support']],
      [client, prompt('web-'), { name: 'name', value: '' }, { context }, ['David', 'Eve', 'Frank']],
      [client, template, { name: 'resourceId', value: '5' }, {}, ['5']],
      [web, prompt(''), department, {}, ['Sales', 'Support']]
    ] as const) {
      const { completion } = await by.complete({ ref, argument, ...more })
      assert.deepEqual(completion.values, values, JSON.stringify(ref))
    }
  })
  await t.test('progress, over every transport', async () => {
    const session = await Session.open(`${hub.url}/mcp`)
    for (const name of ['web', 'local', 'old']) {
      const { messages } = await session.post({
        jsonrpc: '2.0',
        id: 'long',
        method: 'tools/call',
        params: { name: `${name}-trigger-long-running-operation`, arguments: { duration: 0.4, steps: 4 }, _meta: { progressToken: 7 } }
      })
      assert.match(text(messages.at(-1)?.result), /completed/)
      const progress = messages.flatMap(({ method, params }) => method === 'notifications/progress' ? [[params?.progressToken, params?.progress]] : [])
      assert.deepEqual(progress, [[7, 1], [7, 2], [7, 3], [7, 4]], name)
    }
  })
  await t.test('a subscription reaches the one who subscribed, and nobody else', async () => {
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
    // Who still subscribes hears of the next one.
    const other = await Session.open(`${hub.url}/mcp`)
    const heard = await other.listen()
    await other.ask('resources/subscribe', { uri: 'memory://knowledge-graph' })
    await client.unsubscribeResource({ uri: 'memory://knowledge-graph' })
    await client.callTool(entity('Joan'))
    await heard.wait((one) => one.method === 'notifications/resources/updated')
    heard.close()
    await silence(50)
    assert.equal(updates.length, 1)
    assert.equal(overheard.messages.filter((one) => one.method === 'notifications/resources/updated').length, 0)
    overheard.close()
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
    assert.equal((await send(`${hub.url}/api/mcp/group/web`, { body: initialize() })).status, 404)
  })
})
