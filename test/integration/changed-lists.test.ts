// Changes of what a remote server lists, for clients that have connections of their own to it since they can be asked.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import { startLegacyBridge } from '../fakes/legacy-bridge.ts'
import { managed } from '../fakes/replica.ts'
import { startModern } from '../fakes/modern-server.ts'
import { connected, Session, settings, silence, text } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'
import { modernAgent } from '../helpers/modern-client.ts'

/** A server, and what changes its tools. */
interface Changing { readonly url: string, readonly change: () => void, readonly last: () => string }

async function legacy (t: Test): Promise<Changing> {
  const { url, world } = await startLegacyBridge(t)
  const change = (): void => {
    world.tools.push(`grown-${world.tools.length}`)
    for (const server of world.servers) server.sendToolListChanged().catch(() => {})
  }
  return { url, change, last: () => world.tools.at(-1) ?? '' }
}

async function modern (t: Test): Promise<Changing> {
  const { url, world } = await startModern(t, { modern: true })
  const change = (): void => {
    const [first] = world.tools
    if (first) world.tools.push({ ...first, name: `grown-${world.tools.length}` })
    world.changed()
  }
  return { url, change, last: () => world.tools.at(-1)?.name ?? '' }
}

for (const [era, start] of Object.entries({ legacy, modern })) {
  void test(`every change of a ${era} server reaches clients that can be asked`, async (t) => {
    const { url, change, last } = await start(t)
    const hub = await startHub(t, { settings: settings({ s: { type: 'streamable-http', url } }) })
    await connected(hub, 1)
    const route = `${hub.url}/mcp/s`
    for (let round = 0; round < 2; round++) {
      const agents = await Promise.all([0, 1].map(async () => (await modernAgent(t, route)).client))
      const heard = agents.map(() => 0)
      const listening = await Promise.all(agents.map(async (agent, n) => {
        agent.setNotificationHandler('notifications/tools/list_changed', () => { heard[n] = (heard[n] ?? 0) + 1 })
        return await agent.listen({ toolsListChanged: true, resourceSubscriptions: ['test://one', 'r://one'] })
      }))
      const session = await Session.open(route, { capabilities: { elicitation: {}, sampling: {} } })
      // Several calls at once open several connections of one owner.
      if (round === 1) {
        await Promise.all(agents.flatMap((agent) => [0, 1].map(async () => await agent.callTool({ name: 'cancelled', arguments: {} }))))
      }
      for (let changes = 1; changes <= 3; changes++) {
        change()
        await until(() => heard.every((count) => count >= changes), `round ${round}: ${changes} changes, heard ${heard.join()}`)
        // More of the same change may come.
        await silence(100)
      }
      for (const agent of agents) {
        assert.ok((await agent.listTools()).tools.some(({ name }) => name === last()), `round ${round}: not listed to a modern client`)
      }
      assert.ok((await session.tools()).includes(last()), `round ${round}: not listed to a session`)
      for (const each of listening) await each.close()
      await session.end()
    }
  })
}

void test('a server that comes back in the modern era is known as such, and its subscriptions go on', async (t) => {
  const former = await startLegacyBridge(t)
  const hub = await startHub(t, { settings: settings({ s: { type: 'streamable-http', url: former.url } }) })
  await connected(hub, 1)
  const { client, heard } = await modernAgent(t, `${hub.url}/mcp/s`)
  await client.listen({ toolsListChanged: true, resourceSubscriptions: ['r://one'] })
  const session = await Session.open(`${hub.url}/mcp/s`, { capabilities: { elicitation: {}, sampling: {} } })
  await session.request('resources/subscribe', { uri: 'r://one' })
  const stream = await session.listen()
  const updates = (): number => heard.get('notifications/resources/updated')?.length ?? 0
  const told = (): number => stream.messages.filter(({ method }) => method === 'notifications/resources/updated').length
  const [server] = former.world.servers
  await server?.sendResourceUpdated({ uri: 'r://one' })
  await until(() => former.world.subscribed.has('r://one'), 'not subscribed')
  for (const each of former.world.servers) await each.sendResourceUpdated({ uri: 'r://one' })
  await until(() => updates() > 0 && told() > 0, 'no update of the legacy server')
  await former.stop()
  const later = await startModern(t, { modern: true, port: Number(new URL(former.url).port) })
  const [before, toldBefore] = [updates(), told()]
  await until(async () => {
    later.world.updated('r://one')
    return updates() > before && told() > toldBefore
  }, 'no update of the modern server')
  await until(async () => (await managed(hub, 'GET', '/servers/s')).era === 'modern', 'still shown as legacy')
  assert.ok((await client.listTools()).tools.some(({ name }) => name === 'twice'))
  assert.equal(text(await session.call('echo', { message: 'hi' })), 'hi')
  stream.close()
  await session.end()
})
