// Whose a name is outlives restarts, and changes of what does not decide it.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { ItemClaims } from '../../plugins/gateway/claims.ts'
import { Precedence } from '../../plugins/gateway/precedence.ts'
import type { ViewSection } from '../../plugins/gateway/section.ts'
import { makeStaticCatalogue } from '../../protocol/lists.ts'
import { startUpstream, tool, type Options, type Upstream } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { connected, Session, settings, type Json, type Message } from '../helpers/client.ts'
import { startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'

/** What each of the two servers lists at first; and the first one later: everything that the second one has. */
const lists = {
  first: {
    tools: [tool('x')],
    prompts: [{ name: 'p' }],
    resources: [{ uri: 'q:0', name: 'r' }],
    resourceTemplates: [{ uriTemplate: 'q:first/{n}', name: 't' }]
  },
  second: {
    tools: [tool('pay')],
    prompts: [{ name: 'ask' }],
    resources: [{ uri: 'q:9', name: 'r' }],
    resourceTemplates: [{ uriTemplate: 't:{+n}', name: 't' }, { uriTemplate: 'u:{n}', name: 't' }]
  },
  late: {
    tools: [tool('b-pay'), tool('x')],
    prompts: [{ name: 'b-ask' }, { name: 'p' }],
    resources: [{ uri: 'q:9', name: 'r' }, { uri: 'q:0', name: 'r' }],
    resourceTemplates: [{ uriTemplate: 't:special/{n}', name: 't' }, { uriTemplate: 'u:{n}', name: 't' }]
  }
} as const satisfies Record<string, Pick<Options, 'tools' | 'prompts' | 'resources' | 'resourceTemplates'>>

/** A server that says who it is, whatever is asked of it. */
const says = (who: string): Options['on'] => ({ method, params }) => {
  switch (method) {
    case 'tools/call': return { content: [{ type: 'text', text: `<${who}>` }] }
    case 'prompts/get': return { messages: [{ role: 'user', content: { type: 'text', text: `<${who}>` } }] }
    case 'resources/read': return { contents: [{ uri: String(params.uri), text: `<${who}>` }] }
    default: return undefined
  }
}

const who = (message: Message): string => /<(first|second)>/.exec(JSON.stringify(message))?.[1] ?? 'nobody'

/** Who answers to the names that both servers could have: a tool, a prompt, a resource, and two that templates match. */
async function meanings (hub: Hub): Promise<string[]> {
  const session = await Session.open(`${hub.url}/mcp`)
  return await Promise.all([
    session.request('tools/call', { name: 'qa-b-pay', arguments: {} }),
    session.request('prompts/get', { name: 'qa-b-ask' }),
    ...['q:9', 't:special/1', 'u:1'].map(async (uri) => await session.request('resources/read', { uri }))
  ].map(async (message) => who(await message)))
}
const all = (name: string): string[] => Array.from({ length: 5 }, () => name)

const api = async (hub: Hub, method: string, route: string, body?: Json): Promise<Json> =>
  await managed(hub, method, `/servers/${route}`, body)

/** Waits until the first server's list of tools, of this length, has been read. */
async function read (hub: Hub, tools: number): Promise<void> {
  await until(async () => {
    const own = await (await Session.open(`${hub.url}/mcp/qa`)).tools().catch(() => [])
    return own.length === tools && (await api(hub, 'GET', 'qa')).status === 'connected'
  }, 'its lists are not read')
}

interface Scene {
  first: Upstream
  second: Upstream
  config: (name: 'qa' | 'qa-b', more?: Json) => Json
  start: () => Promise<Hub>
}

/** Two servers of one rank, the first of which began late to list what the second one has. */
async function scene (t: Cleanup, owners: [string, string] | undefined): Promise<Scene & { hub: Hub }> {
  const first = await startUpstream(t, { ...lists.first, on: says('first') })
  const second = await startUpstream(t, { ...lists.second, on: says('second') })
  const config = (name: 'qa' | 'qa-b', more: Json = {}): Json => ({
    type: 'streamable-http',
    url: (name === 'qa' ? first : second).url,
    visibility: 'public',
    ...(owners && { owner: owners[name === 'qa' ? 0 : 1] }),
    ...more
  })
  const folder = await temporaryFolder(t)
  const given = settings({ qa: config('qa'), 'qa-b': config('qa-b') }, { users: [{ username: 'ann' }, { username: 'bob' }] })
  const start = async (): Promise<Hub> => await startHub(t, { settings: given, env: { DATA_DIR: folder } })
  const hub = await start()
  await connected(hub, 2)
  assert.deepEqual(await meanings(hub), all('second'))
  first.options = { ...first.options, ...lists.late }
  await api(hub, 'POST', 'qa/reload')
  await read(hub, 2)
  assert.deepEqual(await meanings(hub), all('second'), 'what comes late takes nothing')
  return { first, second, config, start, hub }
}

for (const [rank, owners] of [['users', ['ann', 'bob']], ['admins', undefined]] as const) {
  test(`what comes late takes nothing after a restart either: ${rank}' servers`, async (t) => {
    const { first, second, start, hub } = await scene(t, owners && [...owners])
    const names = await (await Session.open(`${hub.url}/mcp`)).tools()
    await hub.stop()

    const again = await start()
    await connected(again, 2)
    await read(again, 2)
    assert.deepEqual(await meanings(again), all('second'))
    assert.deepEqual(await (await Session.open(`${again.url}/mcp`)).tools(), names)
    await again.stop()

    await first.close()
    const without = await start()
    await connected(without, 1)
    assert.deepEqual(await meanings(without), all('second'), 'the first is away')
    await first.listen()
    await until(async () => (await api(without, 'GET', 'qa')).status === 'connected')
    assert.deepEqual(await meanings(without), all('second'), 'and comes back')
    await without.stop()

    await second.close()
    const alone = await start()
    await connected(alone, 1)
    await read(alone, 2)
    assert.deepEqual(await meanings(alone), all('nobody'), 'the second is away')
    await second.listen()
    second.options = { tools: [], prompts: [], resources: [], resourceTemplates: [], on: says('second') }
    await api(alone, 'POST', 'qa-b/reload')
    await until(async () => (await (await Session.open(`${alone.url}/mcp/qa-b`)).tools()).length === 0, 'it still lists')
    assert.deepEqual(await meanings(alone), all('nobody'), 'it lists nothing any more')
    await alone.stop()

    const less = await start()
    await connected(less, 2)
    assert.deepEqual(await meanings(less), all('nobody'), 'and listed nothing at the start')
    second.options = { ...lists.second, on: says('second') }
    await api(less, 'POST', 'qa-b/reload')
    await until(async () => (await (await Session.open(`${less.url}/mcp/qa-b`)).tools()).length === 1, 'it does not list')
    assert.deepEqual(await meanings(less), all('second'), 'and lists it again')
  })
}

test('a change of its configuration gives a server no names of another one', async (t) => {
  const { first, second, config, hub } = await scene(t, ['ann', 'bob'])
  const put = async (name: 'qa' | 'qa-b', more: Json): Promise<void> => {
    await api(hub, 'PUT', name, { config: config(name, more) })
    await until(async () => (await api(hub, 'GET', name)).status === 'connected')
  }
  const toggle = async (enabled: boolean): Promise<void> => { await api(hub, 'POST', 'qa/toggle', { enabled }) }
  for (const [what, change] of [
    ['its description', async () => { await put('qa', { description: 'other' }) }],
    ['its visibility', async () => { await put('qa', { visibility: 'private' }); await put('qa', {}) }],
    ['a header', async () => { await put('qa', { headers: { 'X-Any': 'other' } }) }],
    ['a pause', async () => { await toggle(false); await toggle(true) }],
    ['its address', async () => { await put('qa', { url: `${first.url}?v=2` }) }],
    ['its address, while it pauses', async () => {
      await toggle(false)
      await api(hub, 'PUT', 'qa', { config: config('qa', { url: `${first.url}?v=3`, enabled: false }) })
      await toggle(true)
    }],
    ['the description of the other one', async () => { await put('qa-b', { description: 'other' }) }],
    ['the address of the other one, where it lists the same', async () => { await put('qa-b', { url: `${second.url}?v=2` }) }]
  ] as const) {
    await change()
    await read(hub, 2)
    assert.deepEqual(await meanings(hub), all('second'), what)
  }

  // What it does not list any more since it is another one is free.
  second.options = { ...second.options, tools: [tool('other')], prompts: [], resources: [], resourceTemplates: [] }
  await put('qa-b', { url: `${second.url}?v=3` })
  await until(async () => (await (await Session.open(`${hub.url}/mcp/qa-b`)).tools())[0] === 'other')
  assert.deepEqual(await meanings(hub), all('first'))

  // One that is removed and added again begins anew, behind the other one.
  await api(hub, 'DELETE', 'qa-b')
  second.options = { ...second.options, ...lists.second }
  await api(hub, 'POST', '', { name: 'qa-b', config: config('qa-b') })
  await connected(hub, 2)
  assert.deepEqual((await meanings(hub)).slice(0, 3), all('first').slice(0, 3))
})

test('a tool whose name could be that of very many servers has a hash in it; an admin\'s keeps its name', async () => {
  const deep = (levels: number): string => Array.from({ length: levels }, () => 'a').join('-')
  /** Servers a, a-a, a-a-a and so on; the first one has tools that begin like the names of all others. */
  const precedence = (count: number, ofAdmin: boolean): Precedence => {
    const key = `${deep(count)}-x`
    const sections = Array.from({ length: count }, (_, n): ViewSection => {
      const name = deep(n + 1)
      const tools = [{ name: n === 0 ? key : 'x' }]
      const catalogue = makeStaticCatalogue({ name, version: '1', tools })
      const isOwnedByAdmin = n === 0 && ofAdmin
      return { server: { name, config: {} }, label: name, member: { name }, isOwnedByAdmin, provider: undefined, catalogue }
    })
    return new Precedence(sections, '-', ({ catalogue }) => {
      const claims = new ItemClaims()
      claims.record(catalogue ? [catalogue] : [])
      return claims
    })
  }
  const most = gatewayLimits.nameRivals + 1
  assert.equal(precedence(most, false).plainNameStanding(0, 'tools', `${deep(most)}-x`), 'won')
  assert.equal(precedence(most + 1, false).plainNameStanding(0, 'tools', `${deep(most + 1)}-x`), 'lost')
  assert.equal(precedence(most + 40, true).plainNameStanding(0, 'tools', `${deep(most + 40)}-x`), 'won')
})
