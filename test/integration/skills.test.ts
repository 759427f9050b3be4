// The extension "Skills" through the gateway: the answers that clients of both eras get directly and through it, on the routes of one
// server and of several, and skills of the gateway's own.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { Client } from '@modelcontextprotocol/client'
import { ResourceListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { test, type Test } from 'tap'
import { z } from 'zod'
import { startUpstream } from '../fakes/fault-http.ts'
import { manage } from '../fakes/replica.ts'
import { mainFile, SkillWorld, startLegacySkills, startModernSkills, type SkillServer } from '../fakes/skills.ts'
import { zip as zipOf } from '../fakes/zip.ts'
import { multipartOf, multipartType } from '../helpers/bundles.ts'
import { agent, connected, KEY, Session, settings, type AgentOptions, type Json } from '../helpers/client.ts'
import { startHub, until, type Hub } from '../helpers/hub.ts'
import { modernAgent } from '../helpers/modern-client.ts'

const extension = 'io.modelcontextprotocol/skills'
const knowing = { extensions: { [extension]: {} } }
const billing = new SkillWorld({
  'skill://git-workflow': { 'SKILL.md': mainFile('git-workflow') },
  'skill://acme/refunds': { 'SKILL.md': mainFile('refunds'), 'examples/email.md': 'Dear …', 'examples/deep/note.md': 'é' },
  'skill://reports/daily': { 'SKILL.md': mainFile('daily') },
  'skill://archive/old': { 'SKILL.md': mainFile('old'), 'x.md': 'x' }
})
billing.unlisted.add('skill://archive/old')

/** What a client of the SDK gets, without the members that each hop writes itself. */
type Ask = (method: string, params?: Json) => Promise<unknown>
const accept = { '~standard': { version: 1 as const, vendor: 'test', validate: (value: unknown) => ({ value }) } }
const strip = (value: unknown): unknown => {
  const { resultType: _type, ttlMs: _ttl, cacheScope: _scope, _meta: _own, ...rest } = value as Json
  return rest
}
const outcome = async (asked: Promise<unknown>): Promise<unknown> => {
  try {
    return strip(await asked)
  } catch (error) {
    const { code, message } = error as { code: number, message: string }
    return { code, message: message.replace(/^MCP error -\d+: /, '') }
  }
}
async function legacyAsk (t: Test, url: string, capabilities: Json = knowing, options: AgentOptions = {}): Promise<Ask> {
  const client = await agent(t, url, { capabilities, ...options })
  return async (method, params = {}) => await outcome(client.request({ method, params } as never, z.looseObject({}) as never))
}
const modernAsk = async (t: Test, url: string): Promise<Ask> => {
  const { client } = await modernAgent(t, url, { capabilities: knowing })
  return async (method, params = {}) => await outcome(modernRequest(client, method, params))
}
const modernRequest = async (client: Client, method: string, params: Json): Promise<unknown> =>
  await client.request({ method, params } as never, accept as never)

const requests: ReadonlyArray<readonly [string, Json?]> = [
  ['skills/list'],
  ['skills/get', { uri: 'skill://acme/refunds/SKILL.md' }],
  ['skills/get', { uri: 'skill://reports/daily/SKILL.md' }],
  ['skills/get', { uri: 'skill://archive/old/SKILL.md' }],
  ['skills/get', { uri: 'skill://nobody/SKILL.md' }],
  ['resources/read', { uri: 'skill://acme/refunds/examples/deep/note.md' }],
  ['resources/read', { uri: 'skill://archive/old/x.md' }],
  ['resources/directory/read', { uri: 'skill://acme/refunds' }],
  ['resources/directory/read', { uri: 'skill://acme/refunds/examples' }],
  ['resources/directory/read', { uri: 'skill://acme/refunds/SKILL.md' }],
  ['resources/list']
]
const servers: Record<string, (t: Test, world: SkillWorld) => Promise<SkillServer>> =
  { legacy: startLegacySkills, modern: startModernSkills }
const clients: Record<string, (t: Test, url: string) => Promise<Ask>> = { legacy: legacyAsk, modern: modernAsk }

for (const [era, start] of Object.entries(servers)) {
  void test(`skills of a ${era} server: the same answers directly and through the gateway`, async (t) => {
    const { url } = await start(t, billing)
    const other = await startLegacySkills(t, new SkillWorld({ 'skill://other': { 'SKILL.md': mainFile('other') } }, false))
    const hub = await startHub(t, {
      settings: settings({
        one: { type: 'streamable-http', url, owner: 'admin' }, two: { type: 'streamable-http', url: other.url, owner: 'admin' }
      })
    })
    await connected(hub, 2)
    const direct = await clients[era]?.(t, url)
    for (const [clientEra, ask] of Object.entries(clients)) {
      const [single, merged] = [await ask(t, `${hub.url}/mcp/one`), await ask(t, `${hub.url}/mcp`)]
      for (const [method, params] of requests) {
        const expected = await direct?.(method, params)
        const what = `${clientEra} client: ${method} ${JSON.stringify(params)}`
        assert.deepEqual(await single(method, params), expected, `${what} on the route of the server`)
        const got = await merged(method, params) as Json
        if (method === 'skills/list') {
          const entries = got.skills as Json[]
          assert.deepEqual(entries.slice(0, 3), (expected as Json).skills, what)
          assert.deepEqual(entries.slice(3), [{
            uri: 'skill://other/SKILL.md',
            frontmatter: { name: 'other', description: 'How to other', metadata: { version: '2.1.0' }, 'allowed-tools': 'Bash(git:*)' },
            resources: [{ uri: 'skill://other/SKILL.md', digest: `sha256:${createHash('sha256').update(mainFile('other')).digest('hex')}`, size: mainFile('other').length }],
            _meta: { 'com.example/x': [1, null] }
          }], what)
        } else if (method === 'resources/list') {
          assert.deepEqual((got.resources as Json[]).map(({ uri }) => uri), [...(expected as { resources: Json[] }).resources.map(({ uri }) => uri), 'skill://other/SKILL.md'])
        } else if ('code' in got) assert.equal(got.code, (expected as Json).code, what)
        else assert.deepEqual(got, expected, what)
      }
      // What a server cannot do, its manifests can.
      assert.deepEqual(await merged('resources/directory/read', { uri: 'skill://other' }), { resources: [{ uri: 'skill://other/SKILL.md', name: 'SKILL.md' }] })
    }
  })
}

test('a modern client gets the freshness of skills, and only routes with skills announce them', async (t) => {
  const { url } = await startModernSkills(t, billing)
  const plain = await startUpstream(t, { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] })
  const hub = await startHub(t, {
    settings: settings({ one: { type: 'streamable-http', url }, none: { type: 'streamable-http', url: plain.url } })
  })
  await connected(hub, 2)
  const { client } = await modernAgent(t, `${hub.url}/mcp/one`, { capabilities: knowing })
  for (const [method, params] of [['skills/list', {}], ['skills/get', { uri: 'skill://git-workflow/SKILL.md' }]] as const) {
    const { ttlMs, cacheScope } = await modernRequest(client, method, params) as Json
    assert.ok(Number(ttlMs) > 200_000, method)
    assert.equal(cacheScope, 'private')
  }
  const announced = (init: Json): unknown => ((init.capabilities as Json).extensions as Json | undefined)?.[extension]
  const [merged, none] = [await Session.open(`${hub.url}/mcp`), await Session.open(`${hub.url}/mcp/none`)]
  assert.deepEqual(announced(merged.init), { directoryRead: true })
  assert.equal(announced(none.init), undefined)
  const plainAsk = await legacyAsk(t, `${hub.url}/mcp/none`)
  for (const method of ['skills/list', 'skills/get']) {
    assert.deepEqual(await plainAsk(method, { uri: 'skill://x/SKILL.md' }), { code: -32601, message: `Method not found: ${method}` })
  }
})

test('servers are told who knows skills, and who knows them is told of changes', async (t) => {
  const world = new SkillWorld({ 'skill://a': { 'SKILL.md': mainFile('a') } })
  const upstream = await startLegacySkills(t, world)
  const hub = await startHub(t, { settings: settings({ s: { type: 'streamable-http', url: upstream.url } }) })
  await connected(hub, 1)
  const heard = new Map<string, number>()
  const listening = async (name: string, capabilities: Json): Promise<Ask> => await legacyAsk(t, `${hub.url}/mcp`, capabilities, {
    name,
    prepare: (made) => {
      made.setNotificationHandler(ResourceListChangedNotificationSchema, () => { heard.set(name, (heard.get(name) ?? 0) + 1) })
    }
  })
  await listening('plain', {})
  const declares = await listening('declares', knowing)
  const lists = await listening('lists', {})
  await lists('skills/list')
  await declares('skills/list')
  // Only a manifest changes, and no list of resources.
  world.skills.set('skill://a', { 'SKILL.md': mainFile('a'), 'new.md': 'n' })
  const before = upstream.count('skills/list')
  await upstream.notify('notifications/resources/list_changed')
  await until(() => upstream.count('skills/list') > before && heard.has('declares') && heard.has('lists'), () => `heard: ${JSON.stringify([...heard])}`)
  const { skills } = await declares('skills/list') as { skills: Array<{ resources: unknown[] }> }
  assert.equal(skills[0]?.resources.length, 2)
  assert.equal(heard.get('plain'), undefined, 'nothing changes for clients that do not know the extension')
})

const upload = async (hub: Hub, file: Buffer): Promise<{ status: number, body: Json }> => {
  const reply = await fetch(`${hub.url}/api/skills/upload`, {
    method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': multipartType }, body: new Uint8Array(multipartOf(file, 'skillFile'))
  })
  return { status: reply.status, body: await reply.json() as Json }
}
const api = async (...asked: Parameters<typeof manage>): Promise<{ status: number, body: Json }> =>
  await manage(...asked) as { status: number, body: Json }

test('an admin uploads a skill, and chooses its routes', async (t) => {
  const upstream = await startLegacySkills(t, new SkillWorld({ 'skill://taken': { 'SKILL.md': mainFile('taken') } }))
  const group = { id: '33333333-3333-4333-8333-333333333333', name: 'daily', servers: ['s'] }
  const bare = { id: '55555555-5555-4555-8555-555555555555', name: 'bare', servers: [{ name: 's', skills: [] }] }
  const hub = await startHub(t, {
    settings: { ...settings({ s: { type: 'streamable-http', url: upstream.url } }), groups: [group, bare] }
  })
  await connected(hub, 1)
  const text = `${mainFile('notes', 'license: MIT\nmetadata:\n  version: "1.0"\n  tags: [a, 1]\n')}See references/MORE.md`
  const binary = Buffer.from([0, 255, 254, 10])
  const zip = zipOf([
    { name: 'notes/SKILL.md', data: text }, { name: 'notes/references/MORE.md', data: 'more' }, { name: 'notes/a b.bin', data: binary },
    { name: '__MACOSX/notes/._SKILL.md', data: 'x' }
  ])
  const { status, body } = await upload(hub, zip)
  assert.equal(status, 200, JSON.stringify(body))
  const record = body.data as { id: string, name: string, files: Json[], content: string, uri: string }
  assert.deepEqual([record.name, record.uri, record.content], ['notes', 'skill://notes/SKILL.md', text])

  const ask = await legacyAsk(t, `${hub.url}/mcp`)
  const skillsOn = async (path: string): Promise<string[]> => {
    const asked = await (await legacyAsk(t, `${hub.url}${path}`))('skills/list') as { skills?: Json[] }
    return (asked.skills ?? []).map(({ uri }) => String(uri))
  }
  const fact = (data: string | Buffer): Json => ({ digest: `sha256:${createHash('sha256').update(data).digest('hex')}`, size: Buffer.byteLength(data) })
  assert.deepEqual(await ask('skills/get', { uri: record.uri }), {
    skill: {
      uri: 'skill://notes/SKILL.md',
      frontmatter: { name: 'notes', description: 'How to notes', license: 'MIT', metadata: { version: '1.0', tags: ['a', 1] } },
      resources: [
        { uri: 'skill://notes/SKILL.md', ...fact(text) }, { uri: 'skill://notes/references/MORE.md', ...fact('more') },
        { uri: 'skill://notes/a%20b.bin', ...fact(binary) }
      ]
    }
  })
  assert.deepEqual(await ask('resources/read', { uri: 'skill://notes/SKILL.md' }), { contents: [{ uri: 'skill://notes/SKILL.md', mimeType: 'text/markdown', text }] })
  assert.deepEqual(await ask('resources/read', { uri: 'skill://notes/a%20b.bin' }), {
    contents: [{ uri: 'skill://notes/a%20b.bin', mimeType: 'application/octet-stream', blob: binary.toString('base64') }]
  })
  assert.deepEqual(await ask('resources/directory/read', { uri: 'skill://notes/references/' }), {
    resources: [{ uri: 'skill://notes/references/MORE.md', name: 'MORE.md' }]
  })
  assert.deepEqual(await skillsOn('/mcp/daily'), ['skill://taken/SKILL.md'])

  // Its routes: a group, by its name, in place of the global one.
  const changed = await api(hub, 'PUT', `/skills/${record.id}`, { global: false, groups: ['bare'] })
  assert.deepEqual([changed.status, (changed.body.data as Json).groups], [200, [bare.id]])
  assert.deepEqual([await skillsOn('/mcp'), await skillsOn('/mcp/daily'), await skillsOn('/mcp/bare')],
    [['skill://taken/SKILL.md'], ['skill://taken/SKILL.md'], ['skill://notes/SKILL.md']])
  assert.ok('code' in (await ask('resources/read', { uri: 'skill://notes/SKILL.md' }) as Json))
  const onBare = await legacyAsk(t, `${hub.url}/mcp/bare`)
  assert.equal(((await onBare('resources/read', { uri: 'skill://notes/references/MORE.md' })) as { contents: Json[] }).contents[0]?.text, 'more')
  assert.deepEqual(((await onBare('skills/get', { uri: 'skill://taken/SKILL.md' })) as Json).code, -32602, 'not selected')
  assert.equal((await api(hub, 'PUT', `/skills/${record.id}`, { groups: ['nobody'] })).status, 400)

  // A second upload replaces the files, and nothing else.
  const next = await upload(hub, zipOf([{ name: 'SKILL.md', data: mainFile('notes') }]))
  const { id, global, files } = next.body.data as { id: string, global: boolean, files: Json[] }
  assert.deepEqual([id, global, files.length], [record.id, false, 1])
  const made = await api(hub, 'POST', '/skills', { content: `\ufeff${mainFile('by-json')}`, files: { 'x.md': Buffer.from('x').toString('base64') }, groups: ['daily'] })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  assert.deepEqual(await skillsOn('/mcp/daily'), ['skill://taken/SKILL.md', 'skill://by-json/SKILL.md'])
  assert.deepEqual(((await api(hub, 'GET', '/skills')).body.data as Json[]).map(({ name }) => name), ['notes', 'by-json'])

  for (const [what, answer, code] of [
    ['a taken URI', await api(hub, 'POST', '/skills', { content: mainFile('taken') }), 409],
    ['the same name', await api(hub, 'POST', '/skills', { content: mainFile('notes') }), 409],
    ['no frontmatter', await api(hub, 'POST', '/skills', { content: '# x' }), 400],
    ['a name with capitals', await api(hub, 'POST', '/skills', { content: mainFile('Notes') }), 400],
    ['YAML that repeats itself', await api(hub, 'POST', '/skills', { content: '---\nname: x\nname: y\ndescription: d\n---\n' }), 400],
    ['a path upwards', await api(hub, 'POST', '/skills', { content: mainFile('up'), files: { '../x': '' } }), 400],
    ['no base64', await api(hub, 'POST', '/skills', { content: mainFile('up'), files: { x: '?' } }), 400],
    ['no SKILL.md', await upload(hub, zipOf([{ name: 'x.md', data: 'x' }])), 400],
    ['two folders', await upload(hub, zipOf([{ name: 'a/SKILL.md', data: mainFile('a') }, { name: 'b/x', data: 'x' }])), 400],
    ['a path out of the archive', await upload(hub, zipOf([{ name: 'SKILL.md', data: mainFile('a') }, { name: '../x', data: 'x' }])), 400],
    ['a link', await upload(hub, zipOf([{ name: 'SKILL.md', data: mainFile('a') }, { name: 'l', data: '/etc/passwd', central: { mode: 0o120777 } }])), 400],
    ['no archive', await upload(hub, Buffer.from('x')), 400]
  ] as const) {
    assert.equal(answer.status, code, `${what}: ${JSON.stringify(answer.body)}`)
  }
  // A skill that names a removed group can be stored again.
  const { id: skillId } = made.body.data as { id: string }
  assert.equal((await api(hub, 'DELETE', '/groups/daily')).status, 200)
  const { groups } = (await api(hub, 'GET', `/skills/${skillId}`)).body.data as Json
  const putBack = await api(hub, 'PUT', `/skills/${skillId}`, { groups })
  assert.equal(putBack.status, 200, JSON.stringify(putBack.body))
  assert.equal((await api(hub, 'DELETE', `/skills/${record.id}`)).status, 200)
  assert.deepEqual(await skillsOn('/mcp/bare'), [])
})

test('$smart finds skills beside tools, and they are read by what it says', async (t) => {
  const upstream = await startLegacySkills(t, billing)
  const hub = await startHub(t, { settings: settings({ s: { type: 'streamable-http', url: upstream.url } }) })
  await connected(hub, 1)
  const ask = await legacyAsk(t, `${hub.url}/mcp/$smart`, {})
  const find = async (query: string): Promise<Json> =>
    ((await ask('tools/call', { name: 'search_tools', arguments: { query } })) as { structuredContent: Json }).structuredContent
  const [found] = (await find('refunds')).skills as Json[]
  const expected = { name: 'refunds', description: 'How to refunds', uri: 'skill://acme/refunds/SKILL.md', serverName: 's', score: 0 }
  assert.deepEqual({ ...found, score: 0 }, expected)
  assert.ok('contents' in (await ask('resources/read', { uri: found?.uri }) as Json))
  assert.equal('skills' in await find('echo'), false, 'nothing more where no skill matches')
})
