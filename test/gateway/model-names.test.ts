// Names on merged routes: as agents' model APIs take them, while calls also take them as they are written.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { mapToOwnNames, acceptedPrefixesOf } from '../../plugins/settings/access/item-names.ts'
import { overrideOf, unmatchedOverrideWarnings } from '../../plugins/settings/access/overrides.ts'
import { separatorWarning } from '../../schemas/names.ts'
import { startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { manage, managed } from '../fakes/replica.ts'
import { at, connected, Session, settings, text, type Json } from '../helpers/client.ts'
import { startHub, type Cleanup } from '../helpers/hub.ts'

const taken = /^[a-zA-Z0-9_-]{1,64}$/
const tools = ['plain', 'files/read', 'files.read', 'files_read', 'читать', 'x'.repeat(70)]

/** A server that says its name and the item that it was asked for. */
async function named (t: Cleanup, who: string, names: readonly string[] = tools): Promise<Upstream> {
  return await startUpstream(t, {
    tools: names.map((name) => tool(name)),
    prompts: [{ name: 'p' }, { name: 'ask me' }],
    on: ({ method, params }) => {
      const said = `${who} ${String(params.name)}`
      if (method === 'tools/call') return { content: [{ type: 'text', text: said }] }
      return method === 'prompts/get' ? { messages: [{ role: 'user', content: { type: 'text', text: said } }] } : undefined
    }
  })
}

const prompts = async (session: Session): Promise<string[]> => {
  const listed = at(await session.request('prompts/list'), 'result', 'prompts') as Array<{ name: string }>
  return listed.map(({ name }) => name)
}

const servers = ['plain', 'my server', 'my.server', 'сервер', 'サーバー', 'é']

test('merged routes show names that model APIs take; calls take names as they are written, too', async (t) => {
  const mcpServers: Json = {}
  for (const name of servers) mcpServers[name] = { url: (await named(t, name)).url }
  const more = { prompts: [{ id: 'b', name: 'built in/prompt', template: 'built in' }] }
  const hub = await startHub(t, { settings: settings(mcpServers, more) })
  await connected(hub, servers.length)
  const session = await Session.open(`${hub.url}/mcp`)
  const listed = await session.tools()
  assert.equal(listed.length, servers.length * tools.length)
  assert.equal(new Set(listed).size, listed.length)
  for (const name of [...listed, ...await prompts(session)]) assert.match(name, taken)
  assert.deepEqual(listed.slice(0, 4).filter((name) => !/_[0-9a-f]{8}$/.test(name)), ['plain-plain', 'plain-files_read'])
  assert.ok(listed.includes('my_server-plain') && listed.includes('e-plain'))
  for (const [n, name] of listed.entries()) {
    const [server, own] = [servers[Math.floor(n / tools.length)], tools[n % tools.length]]
    for (const form of [name, `${server}-${own}`]) assert.equal(text(await session.call(form)), `${server} ${own}`, form)
  }
  const [, , ofSecond] = await prompts(session)
  for (const form of [ofSecond, 'my server-p', 'built in/prompt']) {
    const got = await session.request('prompts/get', { name: form })
    assert.match(JSON.stringify(got), form === 'built in/prompt' ? /"built in"/ : /my server p/, form)
  }

  const single = await Session.open(`${hub.url}/mcp/${encodeURIComponent('my server')}`)
  assert.deepEqual(await single.tools(), tools, 'a single server has its own names')
  const merged = listed.slice(tools.length, 2 * tools.length)
  for (const [n, own] of tools.entries()) {
    for (const form of [own, `my server-${own}`, merged[n] ?? '']) {
      assert.equal(text(await single.call(form)), `my server ${own}`, form)
      assert.equal(text(await managed(hub, 'POST', '/tools/call/my%20server', { toolName: form })), `my server ${own}`, form)
    }
  }
  const found = await Session.open(`${hub.url}/mcp/$smart`)
  for (const form of [merged[1], 'my server-files/read']) {
    assert.equal(text(await found.call('call_tool', { toolName: form, arguments: {} })), 'my server files/read')
  }
  const again = await startHub(t, { settings: settings(mcpServers, more) })
  await connected(again, servers.length)
  assert.deepEqual(await (await Session.open(`${again.url}/mcp`)).tools(), listed, 'the same in another process')
})

test('overrides and selections take names of merged routes', async (t) => {
  const { url } = await named(t, 'my server')
  const hub = await startHub(t, { settings: settings({ 'my server': { url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const [, shown = ''] = await session.tools()
  for (const form of ['files/read', 'my server-files/read', shown]) {
    const route = `/servers/my%20server/tools/${encodeURIComponent(form)}/toggle`
    const off = await managed(hub, 'POST', route, { enabled: false })
    assert.deepEqual([off.name, off.enabled], ['files/read', false], form)
    assert.ok(!(await session.tools()).includes(shown), form)
    await managed(hub, 'POST', route, { enabled: true })
  }
  assert.equal((await manage(hub, 'POST', '/servers/my%20server/tools/my%20server-nope/toggle', { enabled: false })).status, 404)
  const member = { name: 'my server', alias: 'the other', tools: [shown, 'my server-files.read', 'the other-plain', 'files_read', 'nope'] }
  const made = await managed(hub, 'POST', '/groups', { name: 'g', servers: [member] })
  assert.deepEqual(at(made, 'servers', 0, 'tools'), ['files/read', 'files.read', 'plain', 'files_read', 'nope'])
  const group = await Session.open(`${hub.url}/mcp/g`)
  const names = await group.tools()
  assert.equal(names.length, 4)
  for (const name of names) assert.match(name, /^the_other-/)
  assert.equal(text(await group.call('the other-files/read')), 'my server files/read')

  const off = { enabled: false }
  const inFile = (key: string) => ({ name: 'my server', separator: '-', config: { tools: { [key]: off } } })
  for (const key of ['files/read', 'my server-files/read', shown]) {
    assert.equal(overrideOf(inFile(key), 'tools', 'files/read'), off, key)
    assert.equal(overrideOf(inFile(key), 'tools', 'files_read'), undefined, key)
    const lists = { tools: [{ key: 'files/read', text: '{}' }], prompts: [], resources: [], resourceTemplates: [], skills: [], events: [] }
    assert.deepEqual(unmatchedOverrideWarnings(inFile(key), { lists }), [], key)
  }
})

test('a separator that model APIs do not take stands as "_", with a warning', async () => {
  for (const [separator, prefix] of [['::', 'a_'], ['.', 'a_'], ['/', 'a_'], ['__', 'a__'], ['-', 'a-'], ['a.b', 'aa_b']]) {
    assert.deepEqual(acceptedPrefixesOf('a', separator ?? ''), prefix === `a${separator}` ? [prefix] : [prefix, `a${separator}`])
    assert.equal(separatorWarning(separator) === undefined, prefix === `a${separator}`, separator)
  }
  assert.deepEqual([...mapToOwnNames('a', '.', ['b'])], [['a_b', 'b'], ['a.b', 'b']])
})

test('no name of another server is taken by what its items become', async (t) => {
  const first = await named(t, 'first', ['files/read'])
  const own = [...mapToOwnNames('my server', '-', ['files/read']).keys()][0] ?? ''
  const second = await named(t, 'second', [own.slice('my_server-'.length), 'plain'])
  const hub = await startHub(t, {
    settings: settings({ 'my server': { url: first.url }, my_server: { url: second.url, owner: 'ann' } }, { users: [{ username: 'ann' }] })
  })
  await connected(hub, 2)
  const session = await Session.open(`${hub.url}/mcp`)
  const names = await session.tools()
  assert.equal(new Set(names).size, 3)
  assert.equal(names[0], own)
  assert.equal(text(await session.call(own)), 'first files/read')
  await first.close()
  const answer = await session.request('tools/call', { name: own, arguments: {} })
  assert.ok(!JSON.stringify(answer).includes('second'), 'also while the first is away')
})
