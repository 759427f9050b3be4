// What a merged route shows can be used through it, whichever server it comes from.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { connected, Session, settings, type Json } from '../helpers/client.ts'
import { startHub, type Cleanup } from '../helpers/hub.ts'

/** A server with apps that no list has, and with prompts, resources and templates to complete. */
const start = async (t: Cleanup, name: string): Promise<Upstream> => await startUpstream(t, {
  tools: [
    { ...tool('show'), _meta: { ui: { resourceUri: `ui://${name}/app` } } },
    { ...tool('old'), _meta: { 'ui/resourceUri': `ui://${name}/old` } },
    tool('plain')
  ],
  prompts: [{ name: 'p', arguments: [{ name: 'a' }] }],
  resources: [{ uri: `${name}://one`, name: 'one' }],
  resourceTemplates: [{ uriTemplate: `${name}://item/{id}`, name: 'item' }],
  capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} },
  on: ({ method, params }) => {
    if (method === 'resources/read') return { contents: [{ uri: params.uri, text: `${name} read ${String(params.uri)}` }] }
    if (method === 'completion/complete') return { completion: { values: [`${name} ${JSON.stringify(params.ref)}`] } }
    return undefined
  }
})

test('on a merged route', async (t) => {
  const [one, two] = [await start(t, 'one'), await start(t, 'two')]
  const hub = await startHub(t, { settings: settings({ one: { url: one.url }, two: { url: two.url } }) })
  await connected(hub, 2)
  const session = await Session.open(`${hub.url}/mcp`)
  const read = async (uri: string): Promise<unknown> => (await session.request('resources/read', { uri })).result?.contents
  const readBy = (name: string, uri: string): Json[] => [{ uri, text: `${name} read ${uri}` }]

  await t.test('the app of a shown tool is read from the server of the tool, listed or not', async () => {
    for (const name of ['one', 'two']) {
      for (const uri of [`ui://${name}/app`, `ui://${name}/old`]) assert.deepEqual(await read(uri), readBy(name, uri))
    }
    assert.equal(await read('ui://two/other'), undefined)
  })

  await t.test('every reference that is shown can be completed', async () => {
    const complete = async (ref: Json): Promise<unknown> =>
      (await session.ask('completion/complete', { ref, argument: { name: 'a', value: '' } })).completion
    for (const { name } of await session.list('prompts/list', 'prompts')) {
      const server = String(name).split('-')[0]
      assert.deepEqual(await complete({ type: 'ref/prompt', name }), { values: [`${server} {"type":"ref/prompt","name":"p"}`] })
    }
    const templates = await session.list('resources/templates/list', 'resourceTemplates')
    const resources = await session.list('resources/list', 'resources')
    const uris = [...templates.map(({ uriTemplate }) => uriTemplate), ...resources.map(({ uri }) => uri)].map(String)
    assert.equal(uris.length, 4)
    for (const uri of uris) {
      const server = uri.split(':')[0]
      assert.deepEqual(await complete({ type: 'ref/resource', uri }), { values: [`${server} {"type":"ref/resource","uri":"${uri}"}`] })
    }
  })
})

test('the app of a tool that a group does not show is not read', async (t) => {
  const one = await start(t, 'one')
  const groups = [{ id: '33333333-3333-4333-8333-333333333333', name: 'g', servers: [{ name: 'one', tools: ['plain'] }] }]
  const hub = await startHub(t, { settings: settings({ one: { url: one.url } }, { groups }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/g`)
  assert.deepEqual(await session.tools(), ['one-plain'])
  assert.equal((await session.request('resources/read', { uri: 'ui://one/app' })).error?.code, -32002)
})
