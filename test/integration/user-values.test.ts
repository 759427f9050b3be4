/* eslint no-template-curly-in-string: off -- configs hold them */
// Servers that want values of each of their users (`userVariables`).
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { manage, managed } from '../fakes/replica.ts'
import { admin, as, give, isConnected, keyOf, settingsOf, startValueServers, users } from '../fakes/value-servers.ts'
import { at, Session, text, type Json } from '../helpers/client.ts'
import { modernAgent } from '../helpers/modern-client.ts'
import { startHub, until, type Hub } from '../helpers/hub.ts'

const servers = ['header', 'stdio', 'address'] as const
/** Values that nothing else contains. That of an address has characters that would change its meaning. */
const canary = (user: string, server: string): string => `canary/${user}?&#${server} %41`
const recordOf = async (hub: Hub, name: string, headers = admin as Record<string, string>): Promise<Json> =>
  await managed(hub, 'GET', `/servers/${name}`, undefined, headers)
async function textsOf (folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const texts = entries.filter((each) => each.isFile()).map(async (each) => await readFile(join(each.parentPath, each.name), 'latin1'))
  return (await Promise.all(texts)).join('\n')
}

/** Whether an answer of a server shows that it was made with a user's value, and no other's. */
function assertOwn (answer: string, user: string, server: typeof servers[number]): void {
  const own = canary(user, server)
  const expected = server === 'address' ? encodeURIComponent(own) : server === 'stdio' ? JSON.stringify(own).slice(1, -1) : own
  assert.ok(answer.includes(expected), `${server} for ${user}: ${answer}`)
  for (const other of users.filter((each) => each !== user)) assert.ok(!answer.includes(other), answer)
}

test('each server sees the values of the caller, and nobody sees those of another', async (t) => {
  const { configs, seen } = await startValueServers(t)
  const hub = await startHub(t, { settings: settingsOf(configs) })

  await t.test('until the owner has given values, the record tells what to give', async () => {
    for (const name of servers) {
      await until(async () => (await recordOf(hub, name)).status === 'disconnected', hub.output)
      const { error } = await recordOf(hub, name)
      assert.match(String(error), new RegExp(`values from its owner ann first: TOKEN \\(PUT /api/servers/${name}/my-variables\\)`))
    }
    assert.deepEqual(seen, [])
    const shown = await managed(hub, 'GET', '/servers/header/my-variables', undefined, await as(hub, 'ann'))
    assert.deepEqual(shown, [
      { name: 'TOKEN', title: 'Your token', secret: true, required: true, isSet: false },
      { name: 'NOTE', secret: true, required: false, isSet: false }
    ])
  })

  for (const name of servers) {
    for (const user of ['ann', 'bob'] as const) await give(hub, user, { TOKEN: canary(user, name) }, name)
    await isConnected(hub, name)
  }

  await t.test('30 calls of two users at once, over MCP of both eras, REST and $smart', async (t) => {
    const agents = await Promise.all((['ann', 'bob'] as const).flatMap((user) => servers.map(async (server) => {
      const key = keyOf[user]
      const session = await Session.open(`${hub.url}/mcp/${server}`, { key })
      const smart = await Session.open(`${hub.url}/mcp/$smart`, { key })
      const modern = await modernAgent(t, `${hub.url}/mcp/${server}`, { key })
      const ways: Array<() => Promise<string>> = [
        async () => text(await session.call('tell')),
        async () => text(await modern.client.callTool({ name: 'tell', arguments: {} })),
        async () => (await manage(hub, 'POST', `/tools/${server}/tell`, {}, { authorization: `Bearer ${key}` })).text,
        async () => text(await smart.call('call_tool', { toolName: `${server}-tell`, arguments: {} })),
        async () => text(await session.call('tell'))
      ]
      return ways.map((ask) => ({ user, server, ask }))
    })))
    const calls = Array.from({ length: 5 }, (_, n) => agents.flatMap((ways) => ways[n] ?? [])).flat()
    assert.equal(calls.length, 30)
    const answers = await Promise.all(calls.map(async ({ ask }) => await ask()))
    for (const [n, { user, server }] of calls.entries()) assertOwn(answers[n] ?? '', user, server)
  })

  await t.test('who has given none sees the tools, and learns what to open', async () => {
    for (const name of servers) {
      const session = await Session.open(`${hub.url}/mcp/${name}`, { key: keyOf.cleo })
      assert.deepEqual(await session.tools(), ['tell'])
      const { error } = await session.request('tools/call', { name: 'tell', arguments: {} })
      assert.match(error?.message ?? '', /set your values for it first: open http:\/\/127\.0\.0\.1:\d+\/oauth\/login\/[\w-]{43}/)
      const able = await Session.open(`${hub.url}/mcp/${name}`, { key: keyOf.cleo, capabilities: { elicitation: { url: {} } } })
      assert.deepEqual(await able.tools(), ['tell'])
      const refused = (await able.request('tools/call', { name: 'tell', arguments: {} })).error
      assert.equal(refused?.code, -32042)
      assert.match(String(at(refused?.data, 'elicitations', 0, 'url')), /\/oauth\/login\//)
      const rest = await manage(hub, 'POST', `/tools/${name}/tell`, {}, { authorization: `Bearer ${keyOf.cleo}` })
      assert.equal(rest.status, 502, rest.text)
      const nobody = await Session.open(`${hub.url}/mcp/${name}`, { key: keyOf.nobody })
      assert.match((await nobody.request('tools/call', { name: 'tell', arguments: {} })).error?.message ?? '', /requires values from each user/)
    }
  })

  await t.test('the owner and admins see who has given which, and nobody sees values', async () => {
    for (const headers of [admin, await as(hub, 'ann')]) {
      const given = await managed(hub, 'GET', '/servers/header/variables', undefined, headers) as unknown as Json[]
      assert.deepEqual(given.map(({ username, names }) => [username, names]), [['ann', ['TOKEN']], ['bob', ['TOKEN']]])
    }
    assert.equal((await manage(hub, 'GET', '/servers/header/variables', undefined, await as(hub, 'bob'))).status, 403)
    assert.equal((await manage(hub, 'PUT', '/servers/header/my-variables', { values: {} }, admin)).status, 403)
    const routes = [
      '/servers', '/servers/header', '/servers/header/my-variables', '/servers/header/variables', '/settings', '/logs', '/audit',
      '/mcp-settings/export', '/mcp-settings/export?includeSecrets=true', '/openapi.json'
    ]
    const answers = await Promise.all([admin, await as(hub, 'bob'), await as(hub, 'ann')].flatMap((headers) =>
      routes.map(async (route) => {
        const { status, text: answer } = await manage(hub, 'GET', route, undefined, headers)
        assert.ok(status === 200 || status === 403, `${route}: ${status}`)
        return answer
      })))
    const template = await manage(hub, 'POST', '/templates/export', { name: 'all' }, admin)
    assert.match(template.text, /"Bearer \$\{user\.TOKEN\}"/)
    answers.push(template.text)
    const metrics = await (await fetch(`${hub.url}/metrics`, { headers: admin })).text()
    const everywhere = [...answers, metrics, hub.output(), await textsOf(hub.folder)].join('\n')
    for (const form of [/canary/, /canary%2Fann/, new RegExp(Buffer.from('canary').toString('base64').slice(0, 7))]) {
      assert.doesNotMatch(everywhere, form)
    }
    assert.match(everywhere, /\$\{user\.TOKEN\}/)
  })

  await t.test('a changed value counts for its user alone, and other connections stay', async () => {
    const pid = async (user: 'ann' | 'bob'): Promise<Json> => JSON.parse(text(await (await Session.open(`${hub.url}/mcp/stdio`, { key: keyOf[user] })).call('tell'))) as Json
    const before = [await pid('ann'), await pid('bob')]
    await give(hub, 'bob', { TOKEN: 'another', NOTE: 'a note' }, 'stdio')
    const after = [await pid('ann'), await pid('bob')]
    assert.equal(after[0]?.pid, before[0]?.pid)
    assert.notEqual(after[1]?.pid, before[1]?.pid)
    assert.deepEqual(after[1]?.args, ['--token=another', 'a note'])
    assert.deepEqual(before[1]?.args, [`--token=${canary('bob', 'stdio')}`])
    await give(hub, 'bob', { NOTE: null }, 'stdio')
    assert.deepEqual((await pid('bob')).args, ['--token=another'])
  })

  await t.test('what was taken back is not used any more', async () => {
    const session = await Session.open(`${hub.url}/mcp/header`, { key: keyOf.bob })
    assertOwn(text(await session.call('tell')), 'bob', 'header')
    await manage(hub, 'DELETE', '/servers/header/my-variables', undefined, await as(hub, 'bob'))
    assert.match((await session.request('tools/call', { name: 'tell', arguments: {} })).error?.message ?? '', /set your values/)
    assert.equal((await recordOf(hub, 'header')).status, 'connected')
    await manage(hub, 'DELETE', '/servers/header/my-variables', undefined, await as(hub, 'ann'))
    await until(async () => (await recordOf(hub, 'header')).status === 'disconnected', hub.output)
  })
})

test('what a server lists for the values of a user is listed to this user only, whatever the client can do', async (t) => {
  const server = await startUpstream(t, {
    on: ({ method, headers }) => {
      const names = headers.authorization === 'Bearer of-bob' ? ['who', 'extra'] : ['who']
      if (method === 'tools/list') return { tools: names.map((name) => tool(name)) }
      return method === 'tools/call' ? { content: [{ type: 'text', text: headers.authorization }] } : undefined
    }
  })
  const config = { url: server.url, owner: 'ann', visibility: 'public', headers: { Authorization: 'Bearer ${user.TOKEN}' }, userVariables: [{ name: 'TOKEN' }] }
  const hub = await startHub(t, { settings: settingsOf({ own: config }) })
  await give(hub, 'ann', { TOKEN: 'of-ann' }, 'own')
  await isConnected(hub, 'own')
  await give(hub, 'bob', { TOKEN: 'of-bob' }, 'own')
  for (const capabilities of [{}, { sampling: {} }]) {
    const [ann, bob] = [await Session.open(`${hub.url}/mcp/own`, { key: keyOf.ann, capabilities }), await Session.open(`${hub.url}/mcp/own`, { key: keyOf.bob, capabilities })]
    await until(async () => (await bob.tools()).join() === 'who,extra', 'the own list is not shown')
    assert.equal(text(await bob.call('extra')), 'Bearer of-bob')
    assert.deepEqual(await ann.tools(), ['who'])
  }
  const { status } = await fetch(`${hub.url}/api/tools/own/extra`, { headers: { authorization: `Bearer ${keyOf.bob}` } })
  assert.equal(status, 200, 'over plain HTTP, too')
  await managed(hub, 'DELETE', '/servers/own/my-variables', undefined, await as(hub, 'bob'))
  const bob = await Session.open(`${hub.url}/mcp/own`, { key: keyOf.bob })
  assert.deepEqual(await bob.tools(), ['who'], 'what the owner sees')
})
