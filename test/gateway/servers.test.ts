// Servers over HTTP that differ from what MCP says, and are served all the same.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { at, connected, KEY, Session, settings, text } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'
import { startSse } from '../helpers/wire.ts'

test('servers that accept a connection and say nothing do not keep others from connecting', async (t) => {
  const silent = await startSse(t, { endpoint: false })
  const good = await startUpstream(t)
  const quiet = ['one', 'two', 'three', 'four']
  const servers = { ...Object.fromEntries(quiet.map((name) => [name, { type: 'sse', url: silent.url }])), good: { url: good.url } }
  const statuses = async (url: string): Promise<unknown[]> => await Promise.all(quiet.map(async (name) => {
    const reply = await fetch(`${url}/api/servers/${name}`, { headers: { authorization: `Bearer ${KEY}` } })
    const { data } = await reply.json() as { data: unknown }
    return at(data, 'error') === undefined || at(data, 'error') === null ? at(data, 'status') : `${String(at(data, 'status'))}, with an error`
  }))
  const hub = await startHub(t, { env: { INIT_TIMEOUT: '10m' }, settings: settings(servers) })
  await connected(hub, 1)
  assert.deepEqual(await statuses(hub.url), quiet.map(() => 'connecting'), 'they are still waited for')
  assert.equal(text(await (await Session.open(`${hub.url}/mcp/good`)).call('echo', { message: 'well' })), 'well')
  await hub.stop()
  const short = await startHub(t, { env: { INIT_TIMEOUT: '1s' }, settings: settings(servers) })
  await until(async () => (await statuses(short.url)).every((status) => status === 'disconnected, with an error'))
})

test('a server with sessions that answers 404 to GET is not taken for one that has lost its session', async (t) => {
  let gets = 0
  const server = await startUpstream(t, {
    raw: (req, res) => {
      if (req.method !== 'GET') return false
      gets++
      res.writeHead(404, { 'content-type': 'text/html' }).end('Cannot GET /mcp')
      return true
    }
  })
  const hub = await startHub(t, { settings: settings({ noGet: { url: server.url } }) })
  await connected(hub, 1)
  await until(() => gets > 0)
  const session = await Session.open(`${hub.url}/mcp/noGet`)
  for (let n = 0; n < 4; n++) assert.equal(text(await session.call('echo', { message: `m${n}` })), `m${n}`)
  assert.equal(server.count('initialize'), 1, 'the session was taken for lost')
})

test('a redirect within the origin is followed', async (t) => {
  const moved = await startUpstream(t, {
    raw: (req, res) => {
      if (req.url !== '/old') return false
      res.writeHead(307, { location: '/mcp' }).end()
      return true
    }
  })
  const hub = await startHub(t, { settings: settings({ moved: { url: new URL('/old', moved.url).href } }) })
  await connected(hub, 1)
  assert.equal(text(await (await Session.open(`${hub.url}/mcp/moved`)).call('echo', { message: 'here' })), 'here')
})

test('a resource that is disabled, or not selected, is read through no template, its own server\'s or a greedy one', async (t) => {
  const read = (owner: string) => ({ method, params }: { method: string, params: Record<string, unknown> }) =>
    method === 'resources/read' ? { contents: [{ uri: params.uri, text: `${owner} ${String(params.uri)}` }] } : undefined
  const papers = await startUpstream(t, {
    tools: [],
    resources: ['secret', 'other', 'open'].map((name) => ({ uri: `file:///${name}`, name })),
    resourceTemplates: [{ uriTemplate: 'file:///{name}', name: 't' }],
    on: read('papers')
  })
  const greedy = await startUpstream(t, { tools: [], resources: [], resourceTemplates: [{ uriTemplate: '{x}', name: 't' }], on: read('greedy') })
  const group = (n: number, name: string, ...servers: unknown[]): object =>
    ({ id: `00000000-0000-4000-8000-00000000000${n}`, name, owner: 'admin', servers })
  const hub = await startHub(t, {
    settings: settings(
      { greedy: { url: greedy.url }, papers: { url: papers.url, resources: { 'file:///secret': { enabled: false } } } },
      { groups: [group(1, 'chosen', { name: 'papers', resources: ['file:///open', 'file:///{name}'] }), group(2, 'library', 'greedy', 'papers')] }
    )
  })
  await connected(hub, 2)
  for (const [route, hidden] of [['papers', ['secret']], ['chosen', ['secret', 'other']], ['library', ['secret']]] as const) {
    const session = await Session.open(`${hub.url}/mcp/${route}`)
    for (const name of ['open', 'by-template']) {
      const { contents } = await session.ask('resources/read', { uri: `file:///${name}` })
      assert.equal(at(contents, 0, 'text'), `papers file:///${name}`, route)
    }
    for (const name of hidden) {
      const message = await session.request('resources/read', { uri: `file:///${name}` })
      assert.ok(message.error !== undefined, `${route}: ${name} was read: ${JSON.stringify(message.result)}`)
    }
  }
  assert.ok(!papers.received.some(({ body }) => body.includes('file:///secret')))
  assert.equal(greedy.count('resources/read'), 0)
})
